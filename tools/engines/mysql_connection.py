"""Open connections to a MySQL or MariaDB server: read the URL, ask for TLS, bound what is read, and
stop what runs.
"""

import json
import socket
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, cast

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions
from pymysql.cursors import SSCursor

from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.base.url import read_server_url

CONNECT_SECONDS = 10
SPARE_SECONDS = 15
"""The seconds beyond the time limit of a query after which a silent server counts as gone."""
PORT = 3306
ACCESS_DENIED = (1044, 1045, 1698)
"""The server's codes for a wrong account or password, and for a database that it may not use."""
RESET_CONNECTION = 0x1F
"""The protocol's command, for which the driver has no method."""
OLDEST = {"MySQL": (8, 0), "MariaDB": (10, 5)}
PARAMETERS = ("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key", "unix_socket")
MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


@dataclass(frozen=True)
class Address:
    """What a URL says of the server. `mode` says how the connection is encrypted."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    unix_socket: str | None
    mode: str
    ca: str | None
    cert: str | None
    key: str | None


def read_address(server: str) -> Address:
    """Read a server's URL. Raises `ConfigError`, without the password, if it cannot be read."""
    url = read_server_url(
        server,
        title="MySQL",
        example="mysql://user:password@host:3306/database",
        parameters=PARAMETERS,
    )
    given = url.parameters
    ca = given.get("ssl_ca")
    mode = given.get("ssl_mode", "VERIFY_CA" if ca else "PREFERRED").upper().replace("-", "_")
    if mode not in MODES:
        raise ConfigError(
            f"ssl_mode in the MySQL URL must be one of {', '.join(MODES)}, found {mode[:40]!r}"
        )
    return Address(
        host=url.host,
        port=url.port or PORT,
        user=url.user,
        password=url.password,
        database=url.database,
        unix_socket=given.get("unix_socket"),
        mode=mode,
        ca=ca,
        cert=given.get("ssl_cert"),
        key=given.get("ssl_key"),
    )


def tls_settings(address: Address) -> dict[str, Any]:
    """Return the driver's settings for encryption. Raises `ConfigError` for a file of certificates
    that cannot be read.
    """
    if address.mode == "DISABLED":
        return {"ssl_disabled": True}
    if address.mode == "PREFERRED" and not address.cert:
        return {}
    try:
        context = ssl.create_default_context(cafile=address.ca)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # servers' own certificates are simple
        context.check_hostname = address.mode == "VERIFY_IDENTITY"
        if not address.mode.startswith("VERIFY"):
            context.verify_mode = ssl.CERT_NONE
        if address.cert:
            context.load_cert_chain(address.cert, address.key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"the certificates that the MySQL URL names cannot be read: {error}: check ssl_ca,"
            " ssl_cert and ssl_key"
        ) from error
    return {"ssl": context}


class TooMuchReadError(Exception):
    """The server sent more bytes than the query may have."""


class BoundedReader:
    """Reads from the server until no bytes are left. `left` is None if nothing is bounded."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left: int | None = None

    def read(self, count: int) -> bytes:
        """Read some bytes. Raises `TooMuchReadError` before anything over the bound is read."""
        if self.left is not None:
            self.left -= count
            if self.left < 0:
                raise TooMuchReadError
        return cast(bytes, self._file.read(count))

    def close(self) -> None:
        """Close the connection's file."""
        self._file.close()


@dataclass(frozen=True)
class ServerVersion:
    """Which server it is. `kind` is "MySQL" or "MariaDB"."""

    kind: str
    number: tuple[int, ...]

    @property
    def is_mariadb(self) -> bool:
        """Return whether it is MariaDB."""
        return self.kind == "MariaDB"


def read_version(text: str) -> ServerVersion:
    """Read a server's version, such as `10.11.19-MariaDB-0+deb12u1` or `8.0.36`."""
    kind = "MariaDB" if "mariadb" in text.lower() else "MySQL"
    plain = text.removeprefix("5.5.5-")  # how old clients are told of MariaDB 10
    numbers = plain.partition("-")[0].split(".")
    return ServerVersion(kind, tuple(int(part) for part in numbers if part.isdigit()))


class Field(NamedTuple):
    """A column of a result, as the protocol describes it."""

    name: str
    type_code: int
    flags: int
    charset: int


class Connection:
    """One connection, with the reader that bounds what it reads."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.reader = BoundedReader(raw._rfile)
        raw._rfile = self.reader
        self.version = read_version(raw.get_server_info())
        self.in_transaction = False
        self._cursor: SSCursor | None = None
        self.warnings = 0
        """The number of warnings about the last streamed query."""

    @property
    def is_streaming(self) -> bool:
        """Return whether rows of a query are unread."""
        return self._cursor is not None

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open, as far as this side knows."""
        return bool(self.raw.open)

    def rows(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Run a statement of this package, and return all rows."""
        with self.raw.cursor() as cursor:
            cursor.execute(sql)
            return cast("Sequence[tuple[Any, ...]]", cursor.fetchall())

    def stream(self, sql: str) -> SSCursor:
        """Run a query whose rows are read one by one. Its cursor is not closed when rows are
        unread, because that would read them all: close the connection.
        """
        cursor = SSCursor(self.raw)
        self._cursor = cursor
        cursor.execute(sql)
        return cursor

    def end_stream(self, cursor: SSCursor) -> None:
        """Close a cursor whose rows are all read."""
        self.warnings = int(cursor.warning_count)
        cursor.close()
        self._cursor = None

    def fields(self, cursor: SSCursor) -> list[Field]:
        """Return the columns of a query that runs, none for a statement that has no rows."""
        result: Any = cursor._result
        return [
            Field(str(field.name), field.type_code, field.flags, field.charsetnr)
            for field in getattr(result, "fields", ())
        ]

    def reset(self) -> None:
        """End the transaction, and forget all settings, variables and locks of the session."""
        self.rows("ROLLBACK")
        self.in_transaction = False
        self.raw._execute_command(RESET_CONNECTION, b"")
        self.raw._read_ok_packet()
        # The server forgot the character set, too; the driver still reads UTF-8.
        self.rows("SET NAMES utf8mb4")

    def close(self) -> None:
        """Close the connection at once. Unread rows stay unread."""
        self.raw._force_close()
        if self._cursor is not None:
            # Otherwise both would read the rest when they are deleted.
            result: Any = self._cursor._result
            if result is not None:
                result.unbuffered_active = False
                result.connection = None
            self._cursor.connection = None
            self._cursor = None


def _bits(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _json(text: str) -> object:
    try:
        return json.loads(text, parse_float=Decimal)
    except (RecursionError, ValueError):
        return text


CONVERTERS: Mapping[Any, Callable[[Any], object]] = {
    **conversions,
    FIELD_TYPE.BIT: _bits,
    FIELD_TYPE.JSON: _json,
}


SETTINGS: Mapping[str, Any] = {
    "charset": "utf8mb4",
    "conv": dict(CONVERTERS),
    "local_infile": False,  # no server gets a file of this machine
    "program_name": "longtable",
}


class MysqlDriver:
    """What the pool asks of PyMySQL."""

    def __init__(self, server: str, *, seconds: float) -> None:
        self.address = read_address(server)
        self._tls = tls_settings(self.address)
        self._seconds = seconds

    def connect(self) -> Connection:
        """Open a connection."""
        raw = self._open(read_seconds=self._seconds + SPARE_SECONDS)
        connection = Connection(raw)
        oldest = OLDEST[connection.version.kind]
        if connection.version.number < oldest:
            connection.close()
            found = ".".join(map(str, connection.version.number))
            wanted = " or ".join(f"{kind} {low[0]}.{low[1]}" for kind, low in OLDEST.items())
            raise DatabaseUnavailableError(
                f"the server is {connection.version.kind} {found}: {wanted} or newer is needed"
            )
        raw.autocommit(True)
        return connection

    def cancel(self, connection: Connection) -> None:
        """Stop the running statement by `KILL QUERY` over a second connection."""
        number = int(connection.raw.thread_id())
        with suppress(DatabaseUnavailableError, pymysql.Error, OSError):
            other = Connection(self._open(read_seconds=1.0, connect_seconds=1.0))
            try:
                other.rows(f"KILL QUERY {number}")
            finally:
                other.close()

    def is_idle(self, connection: Connection) -> bool:
        """Return whether a connection is open and in no transaction."""
        return connection.is_open and not connection.in_transaction

    def close(self, connection: Connection) -> None:
        """Close a connection."""
        connection.close()

    def _open(self, *, read_seconds: float, connect_seconds: float = CONNECT_SECONDS) -> Any:
        address = self.address
        if address.unix_socket and not Path(address.unix_socket).exists():
            raise DatabaseUnavailableError(
                f"the MySQL server cannot be reached: there is no socket {address.unix_socket!r}"
            )
        place: dict[str, Any] = {
            "host": address.host,
            "port": address.port,
            "unix_socket": address.unix_socket,
            "user": address.user,
            "password": address.password,
            "database": address.database,
        }
        limits: dict[str, Any] = {
            "connect_timeout": connect_seconds,
            "read_timeout": max(1, round(read_seconds)),
            "write_timeout": max(1, round(read_seconds)),
        }
        try:
            raw = pymysql.connect(**place, **limits, **self._tls, **SETTINGS)
        except (pymysql.Error, OSError, RuntimeError, struct.error, ValueError) as error:
            # RuntimeError: an authentication for which a package is missing
            raise unreachable(error) from error
        if address.mode not in ("DISABLED", "PREFERRED") and not raw._secure:
            raw.close()
            raise DatabaseUnavailableError("SSL is required but the server did not encrypt")
        return raw


def unreachable(error: Exception) -> DatabaseUnavailableError:
    """Return the error for a server to which no connection can be opened."""
    text = str(error.args[-1]) if error.args else type(error).__name__
    if isinstance(error, socket.timeout):
        text = "it does not answer in time"
    if error.args and error.args[0] in ACCESS_DENIED:
        return DatabaseUnavailableError(
            f"the MySQL server does not admit the account: {text[:300]}"
        )
    return DatabaseUnavailableError(f"the MySQL server cannot be reached: {text[:300]}")
