"""Requests to a ClickHouse server over HTTP: read the URL, ask for TLS, send settings, and stop
what runs.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any, cast
from uuid import uuid4
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ClickHouseError
from urllib3.exceptions import HTTPError

from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.base.url import read_server_url
from longtable.tools.engines.clickhouse.clickhouse_values import FORMAT

CONNECT_SECONDS = 10
SPARE_SECONDS = 15
"""The seconds beyond the time limit of a query after which a silent server counts as gone."""
PORT = 8123
TLS_PORT = 8443
OLDEST = (24, 8)
PARAMETERS = ("ca", "cert", "key", "verify", "max_rows_to_read")
NOT_ADMITTED = (192, 193, 194, 516)
"""The server's codes for an unknown account and for a wrong password."""
CHUNK_BYTES = 65_536

# What the driver logs is also in its error, which is raised.
logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Address:
    """What a URL says of the server."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    tls: bool
    verify: bool
    ca: str | None
    cert: str | None
    key: str | None
    max_rows_to_read: int | None
    """The most rows that one query may read, None for what the account's profile says."""


def read_address(server: str) -> Address:
    """Read a server's URL. Raises `ConfigError`, without the password, if it cannot be read."""
    url = read_server_url(
        server,
        title="ClickHouse",
        example="clickhouse://user:password@host:8123/database",
        parameters=PARAMETERS,
    )
    given = url.parameters
    tls = url.scheme == "clickhouses"
    for name in ("ca", "cert", "key"):
        _check_certificate(name, given.get(name), tls=tls)
    certificates = {name: given.get(name) for name in ("ca", "cert", "key")}
    return Address(
        host=url.host,
        port=url.port or (TLS_PORT if tls else PORT),
        user=url.user or "default",
        password=url.password,
        database=url.database,
        tls=tls,
        verify=_verify(given.get("verify", "true")),
        max_rows_to_read=_rows(given.get("max_rows_to_read")),
        **certificates,
    )


def _check_certificate(name: str, path: str | None, *, tls: bool) -> None:
    if path is None:
        return
    if not tls:
        raise ConfigError(
            f"the ClickHouse URL has {name}, but no TLS: write clickhouses:// for an encrypted"
            " connection"
        )
    if not Path(path).is_file():
        raise ConfigError(f"the ClickHouse URL names no readable file by {name}: found {path!r}")


def _verify(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(
            f"verify in the ClickHouse URL must be true or false, found {text[:40]!r}"
        )
    return text.lower() == "true"


def _rows(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(
            "max_rows_to_read in the ClickHouse URL must be a whole number of at least 1, found"
            f" {text[:40]!r}"
        )
    return int(text)


class TooMuchReadError(Exception):
    """The server sent more bytes than the query may have."""


class Connection:
    """One client of the server, for one query at a time. Over HTTP no state of a query is left in
    the server, so none has to be reset.
    """

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.query_id = ""
        """The id of the running query, "" if none runs."""
        self.is_open = True

    @property
    def zone(self) -> tzinfo:
        """Return the time zone of the server."""
        try:
            return ZoneInfo(str(self.raw.server_tz))
        except (ZoneInfoNotFoundError, ValueError):
            return cast(tzinfo, self.raw.server_tz)

    @contextmanager
    def lines(
        self, sql: str, settings: Mapping[str, str], *, form: str = FORMAT, most: int | None = None
    ) -> Iterator[Iterator[bytes]]:
        """Run one statement, and lend the lines of its answer. Raises `TooMuchReadError` when more
        than `most` bytes were read.
        """
        self.query_id = f"longtable-{uuid4()}"
        # The whole answer before its status: an error never comes in the midst of rows.
        asked = {**settings, "query_id": self.query_id, "wait_end_of_query": "1"}
        stream = None
        try:
            stream = self.raw.raw_stream(
                sql, settings=asked, transport_settings={"X-ClickHouse-Format": form}
            )
            yield _lines(stream, most)
        finally:
            self.query_id = ""
            if stream is not None:
                stream.close()

    def texts(self, sql: str, settings: Mapping[str, str]) -> list[str]:
        """Run a statement that has one column, and return its rows as they are."""
        with self.lines(sql, settings, form="TSVRaw") as lines:
            return [line.decode("utf-8", "replace") for line in lines]

    def kill(self) -> None:
        """Ask the server to stop the running query. Raises no error."""
        query_id = self.query_id
        if not query_id:
            return
        with suppress(HTTPError, OSError):
            self.raw.http.request(
                "POST",
                self.raw.url,
                body=f"KILL QUERY WHERE query_id = '{query_id}' ASYNC".encode(),
                headers=self.raw.headers,
                timeout=1.0,
                retries=False,
            )

    def close(self) -> None:
        """Close the client. A query whose answer is unread ends on the server, too."""
        self.is_open = False
        with suppress(ClickHouseError, HTTPError, OSError):
            self.raw.close()


def _lines(stream: Any, most: int | None) -> Iterator[bytes]:
    left = most
    begun: list[bytes] = []  # the parts of a line that is longer than a chunk
    while chunk := stream.read(CHUNK_BYTES):
        if left is not None:
            left -= len(chunk)
            if left < 0:
                raise TooMuchReadError
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    if rest := b"".join(begun):
        yield rest


CLIENT: Mapping[str, Any] = {
    "compress": False,
    "query_retries": 0,
    "connect_timeout": CONNECT_SECONDS,
    "client_name": "longtable",
    "autogenerate_session_id": False,  # a session would let one query at a time through
    "dedicated_pool": True,
}


class ClickhouseDriver:
    """What the pool asks of clickhouse-connect."""

    def __init__(self, server: str, *, seconds: float) -> None:
        self.address = read_address(server)
        self._seconds = seconds

    def connect(self) -> Connection:
        """Open a client, and ask the server for its version."""
        address = self.address
        tls: dict[str, Any] = {}
        if address.tls:
            tls = {
                "verify": address.verify,
                "ca_cert": address.ca,
                "client_cert": address.cert,
                "client_cert_key": address.key,
            }
        place: dict[str, Any] = {
            "interface": "https" if address.tls else "http",
            "host": address.host,
            "port": address.port,
            "username": address.user,
            "password": address.password,
            "database": address.database,
        }
        seconds = max(1, round(self._seconds + SPARE_SECONDS))
        try:
            raw = clickhouse_connect.get_client(
                **place, **tls, **CLIENT, send_receive_timeout=seconds
            )
        except (ClickHouseError, HTTPError, OSError, ValueError) as error:
            raise unreachable(error, address) from error
        number = _version(str(raw.server_version))
        if number < OLDEST:
            raw.close()
            raise DatabaseUnavailableError(
                f"the server is ClickHouse {raw.server_version}: ClickHouse"
                f" {OLDEST[0]}.{OLDEST[1]} or newer is needed"
            )
        return Connection(raw)

    def cancel(self, connection: Connection) -> None:
        """Stop the running query by `KILL QUERY`, in a request of its own."""
        connection.kill()

    def is_idle(self, connection: Connection) -> bool:
        """Return whether a client can be lent again."""
        return connection.is_open and not connection.query_id

    def close(self, connection: Connection) -> None:
        """Close a client."""
        connection.close()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def unreachable(error: Exception, address: Address) -> DatabaseUnavailableError:
    """Return the error for a server of which no client can be opened."""
    code = getattr(error, "code", None)
    text = str(error).replace(address.password, "…") if address.password else str(error)
    if code in NOT_ADMITTED:
        return DatabaseUnavailableError(
            f"the ClickHouse server does not admit the account {address.user!r}: check user and"
            " password in the URL"
        )
    if code == 81:
        return DatabaseUnavailableError(
            f"the ClickHouse server has no database {address.database!r}, or the account may not"
            " see it: check the URL's last part"
        )
    place = f"{address.host}:{address.port}"
    return DatabaseUnavailableError(
        f"the ClickHouse server at {place} cannot be reached: {text[:300]}: check host and port"
        f" (HTTP is {PORT}, TLS {TLS_PORT}; 9000 is another protocol)"
    )
