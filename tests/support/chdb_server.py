"""ClickHouse's HTTP interface over chdb, the real engine in this process.

A test starts it by `python chdb_server.py FOLDER PORT [CERTIFICATE]`, where port 0 means any free
one, and reads the port from its first line. With a certificate it speaks TLS. It listens on
loopback and ends when its standard input does, that is with the process that started it.

What chdb does not have is made here: accounts, query ids, and the end of a query whose reader went
away. chdb has one account, which may do anything: what an account may not do is not tested by it.
"""

import base64
import json
import select
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

_chdb: Any = import_module("chdb")  # it has no types
OPERATOR = "operator"
"""The account that makes databases. It has no password, and nothing is logged."""
_NO_SETTINGS = frozenset(
    {"query", "database", "query_id", "default_format", "user", "password", "session_id"}
    | {"compress", "decompress", "buffer_size", "wait_end_of_query", "client_protocol_version"}
    | {"send_progress_in_http_headers", "http_headers_progress_interval_ms", "role", "quota_key"}
)
"""Parameters of a URL that the HTTP interface reads itself."""
_CODE = "Code: "
_BAD_LOGIN = 516
_LOOK_SECONDS = 0.05
_STATUS = {_BAD_LOGIN: 403, 81: 404, 60: 404, 62: 400}


class EngineError(Exception):
    """An error of the engine, with its code."""

    def __init__(self, text: str) -> None:
        start = text.find(_CODE)
        self.text = text[max(0, start) :]
        number = self.text.removeprefix(_CODE).partition(".")[0]
        self.code = int(number) if number.isdigit() else 1002
        super().__init__(self.text)


class Server(ThreadingHTTPServer):
    """The server, with the accounts that may ask it."""

    daemon_threads = True

    def __init__(self, folder: str, port: int, certificate: str = "") -> None:
        super().__init__(("127.0.0.1", port), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.folder = folder
        self.accounts: dict[str, dict[str, Any]] = {OPERATOR: {"password": "", "grants": []}}
        self.engine = _chdb.connect(folder)  # keeps the engine open between requests

    def connect(self) -> Any:
        """Return a connection with settings of its own."""
        return _chdb.connect(self.folder)


def run(connection: Any, sql: str, form: str = "TabSeparated") -> bytes:
    """Run one statement and return what it answers. Raises `EngineError`."""
    try:
        return bytes(connection.query(sql, form).bytes())
    except RuntimeError as error:
        raise EngineError(str(error)) from error


def quoted(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    @property
    def place(self) -> Server:
        """Return the server."""
        return cast(Server, self.server)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        """Answer /ping, and read a query from the URL."""
        if urlsplit(self.path).path == "/ping":
            self._send(200, b"Ok.\n", {})
            return
        self.do_POST()

    def do_POST(self) -> None:
        """Run the query of a request."""
        parameters = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sql = "\n".join(filter(None, [parameters.get("query", ""), body.decode()]))
        try:
            self._send(200, self._answer(sql, parameters), {})
        except EngineError as error:
            headers = {"X-ClickHouse-Exception-Code": str(error.code)}
            text = error.text + " (version 26.9.2.1 (official build))\n"
            self._send(_STATUS.get(error.code, 500), text.encode(), headers)

    def _answer(self, sql: str, parameters: Mapping[str, str]) -> bytes:
        name = self._account(parameters)
        plain = sql.strip()
        if name == OPERATOR and plain.startswith("ACCOUNT "):
            account = json.loads(plain.removeprefix("ACCOUNT "))
            self.place.accounts[account["name"]] = account
            return b""
        account = self.place.accounts[name]
        if plain.startswith("SHOW GRANTS") and account["grants"]:
            return self._grants(account["grants"])
        connection = self.place.connect()
        try:
            self._set(connection, {**account.get("settings", {}), **parameters}, account)
            return self._watched(connection, self._as_chdb_has_it(sql), parameters)
        finally:
            connection.close()

    def _grants(self, lines: list[str]) -> bytes:
        union = " UNION ALL ".join(f"SELECT {quoted(line)} AS GRANTS" for line in lines)
        return run(self.place.engine, union, self._format({}))

    def _account(self, parameters: Mapping[str, str]) -> str:
        scheme, _, login = self.headers.get("Authorization", "").partition(" ")
        text = base64.b64decode(login).decode() if scheme == "Basic" else ""
        name, _, password = text.partition(":")
        account = self.place.accounts.get(name or parameters.get("user", ""))
        if account is None or account.get("password", "") != password:
            raise EngineError(
                f"Code: {_BAD_LOGIN}. DB::Exception: {name}: Authentication failed: password is"
                " incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)"
            )
        return name

    def _set(
        self, connection: Any, parameters: Mapping[str, str], account: Mapping[str, Any]
    ) -> None:
        """Set the database and the settings of a request, all at once, as the interface does: with
        `readonly=1` among them, others may still be set, but none by the query.
        """
        if database := parameters.get("database"):
            run(connection, f"USE `{database}`")
        first = account.get("readonly")
        if first is not None:
            run(connection, f"SET readonly = {first}")
        settings = {
            name: value
            for name, value in parameters.items()
            if name not in _NO_SETTINGS and not name.startswith("param_")
        }
        # The interface does so for a GET, and chdb finds a query by it.
        settings["log_comment"] = parameters.get("query_id", "")
        if first is not None:
            del settings["log_comment"]
        if settings:
            parts = ", ".join(f"{name} = {quoted(value)}" for name, value in settings.items())
            run(connection, f"SET {parts}")

    def _as_chdb_has_it(self, sql: str) -> str:
        if sql.lstrip().upper().startswith("KILL QUERY"):
            return sql.replace("query_id", "Settings['log_comment']")
        return sql

    def _watched(self, connection: Any, sql: str, parameters: Mapping[str, str]) -> bytes:
        """Run a query, and stop it when its reader closes the connection and wanted that."""
        done = threading.Event()
        wanted = parameters.get("cancel_http_readonly_queries_on_client_close") == "1"
        if wanted and parameters.get("query_id"):
            arguments = (done, parameters["query_id"])
            threading.Thread(target=self._watch, args=arguments, daemon=True).start()
        try:
            return run(connection, sql, self._format(parameters))
        finally:
            done.set()

    def _format(self, parameters: Mapping[str, str]) -> str:
        wanted = self.headers.get("X-ClickHouse-Format") or parameters.get("default_format")
        return wanted or "TabSeparated"

    def _watch(self, done: threading.Event, query_id: str) -> None:
        while not done.wait(_LOOK_SECONDS):
            ready, _, _ = select.select([self.connection], [], [], 0)
            if ready and not self.connection.recv(1, socket.MSG_PEEK):
                with_comment = f"Settings['log_comment'] = {quoted(query_id)}"
                run(self.place.connect(), f"KILL QUERY WHERE {with_comment} ASYNC")
                return

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # the reader went away


def main() -> None:
    """Serve until standard input ends."""
    server = Server(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
