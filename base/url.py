"""Read a database URL: the engine, and the file or server."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from longtable.base.errors import ConfigError

ENDINGS = {
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".duckdb": "duckdb",
}
DATA_ENDINGS = frozenset(
    {".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx"}
)
PACKABLE = DATA_ENDINGS - {".parquet", ".xlsx"}
"""Endings of files that may be compressed, as in sales.csv.gz."""
GZIP = ".gz"


@dataclass(frozen=True)
class Server:
    """A kind of server: its dialect, the scheme of the URL that its driver gets, its name for
    people, and how its URL is written.
    """

    dialect: str
    scheme: str
    title: str
    example: str


_POSTGRES = Server(
    "postgres", "postgresql", "PostgreSQL", "postgresql://user:password@host:5432/database"
)
_MYSQL = Server("mysql", "mysql", "MySQL", "mysql://user:password@host:3306/database")
_CLICKHOUSE = Server(
    "clickhouse", "clickhouse", "ClickHouse", "clickhouse://user:password@host:8123/database"
)
_CLICKHOUSE_TLS = replace(_CLICKHOUSE, scheme="clickhouses")
SERVERS = {
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "clickhouse": _CLICKHOUSE,
    "clickhouses": _CLICKHOUSE_TLS,
}
"""Servers by the schemes of their URLs."""
SUPPORTED = (
    "sqlite:///file.db or duckdb:///file.duckdb (four slashes before an absolute path), a path"
    " ending in .db, .sqlite, .sqlite3 or .duckdb, postgresql://user:password@host/database,"
    " mysql://user:password@host/database (MariaDB too), clickhouse://user:password@host/database"
    " (clickhouses:// with TLS), or files:///folder, a folder or a file ending in .csv, .tsv, .txt,"
    " .parquet, .json, .jsonl or .xlsx, text also packed as in .csv.gz"
)
_HOST = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^:@\[\]]*)(:\d*)?")
_LOGIN = re.compile(r"(?:[^@%\s]|%[0-9a-fA-F]{2})*")
UNWALLED = {"mssql": "SQL Server", "oracle": "Oracle"}
WHY_UNWALLED = (
    "a model's SQL runs only where the engine itself can be held to reading, and that wall is built"
    " for SQLite, DuckDB, PostgreSQL, MySQL, MariaDB and ClickHouse only"
)


@dataclass(frozen=True)
class Location:
    """The location of a database: a file or a server.

    `path` is the database file. If `load` is true, it is instead a data file (such as CSV) or a
    folder of data files, which are to be loaded. `server` is the URL of a server; it holds the
    password, so it is never shown.
    """

    dialect: str
    name: str
    path: Path | None = None
    server: str = field(default="", repr=False)
    load: bool = False


def data_ending(path: Path) -> str:
    """Return the ending of a data file in lower case, such as ".csv", also for "sales.csv.gz".
    Return "" for a file that is not a data file.
    """
    name = path.name.lower()
    ending = Path(name.removesuffix(GZIP)).suffix
    known = PACKABLE if name.endswith(GZIP) else DATA_ENDINGS
    return ending if ending in known else ""


def data_stem(path: Path) -> str:
    """Return the name of a data file without its ending: "sales" for "sales.csv.gz"."""
    is_packed = path.suffix.lower() == GZIP and data_ending(path)
    return Path(path.stem).stem if is_packed else path.stem


def parse_url(url: str) -> Location:
    """Return the location that a database URL or path names. Raises `ConfigError`, with a list of
    the supported forms, if it names none.
    """
    if not isinstance(url, str) or not url.strip():
        raise ConfigError(
            f"the database URL must be text that is not blank, found {url!r}: use {SUPPORTED}"
        )
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        path = Path(url.strip())
        dialect = ENDINGS.get(path.suffix.lower())
        if data_ending(path) or (dialect is None and path.is_dir()):
            return Location("duckdb", data_stem(path.resolve()), path, load=True)
        if dialect is None or url.strip().startswith(("sqlite:", "duckdb:")):
            raise ConfigError(
                f"the database {url!r} is neither a URL nor a path of a known kind: use {SUPPORTED}"
            )
        return Location(dialect, path.stem, path)
    kind = scheme.lower().partition("+")[0]
    if kind in UNWALLED:
        # The URL may hold a password: it is not repeated.
        raise ConfigError(
            f"{UNWALLED[kind]} databases ({kind}://) are not supported: {WHY_UNWALLED}; use"
            f" {SUPPORTED}"
        )
    if kind in SERVERS:
        return _server(SERVERS[kind], rest)
    if kind not in ("sqlite", "duckdb", "files"):
        raise ConfigError(f"the database scheme {kind!r} is unknown: use {SUPPORTED}")
    if not rest.startswith("/") or rest in ("/", "/:memory:"):
        raise ConfigError(f"the database URL {url!r} names no file: use {SUPPORTED}")
    if kind == "files":
        # Three slashes before a relative path, as everywhere; where there is none, what many write
        # for an absolute one.
        path = Path(rest[1:] if Path(rest[1:]).exists() or not Path(rest).exists() else rest)
        return Location("duckdb", data_stem(path.resolve()), path, load=True)
    path = Path(rest[1:])
    return Location("sqlite" if kind == "sqlite" else "duckdb", path.stem, path)


def _server(kind: Server, rest: str) -> Location:
    """Read the part of a server's URL after "://" as libpq does. Raises `ConfigError` if it cannot
    be read.
    """
    server = f"{kind.scheme}://{rest}"
    try:
        parts = urlsplit(server)
        parameters = parse_qs(parts.query)
        name = (
            unquote(parts.path.lstrip("/"))
            or parameters.get("dbname", [""])[0]
            or unquote(parts.username or "")
            or kind.dialect
        )
    except ValueError:
        raise _unreadable(kind) from None
    login, _, hosts = parts.netloc.rpartition("@")
    # With a second @, a blank or half an escape libpq would take a part of the password for the
    # host, and say it.
    if (
        not server.isprintable()
        or not _LOGIN.fullmatch(login)
        or not all(_HOST.fullmatch(host) for host in hosts.split(","))
    ):
        raise _unreadable(kind)
    return Location(kind.dialect, name, server=server)


def _unreadable(kind: Server) -> ConfigError:
    return ConfigError(
        f"the {kind.title} URL cannot be read: write {kind.example}, special characters of user and"
        " password percent-encoded (@ is %40)"
    )


def without_password(url: str, location: Location) -> str:
    """Return a database URL in a form that can be shown: without password and parameters."""
    if not location.server:
        return url
    parts = urlsplit(location.server)
    login, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{login.partition(':')[0]}{at}{host}{parts.path}"


@dataclass(frozen=True)
class ServerUrl:
    """The parts of a server's URL. `user` and `password` are "" and `port` is None if the URL has
    none.
    """

    scheme: str
    host: str
    port: int | None
    user: str
    password: str = field(repr=False)
    database: str
    parameters: Mapping[str, str]


def read_server_url(
    server: str, *, title: str, example: str, parameters: Sequence[str]
) -> ServerUrl:
    """Read the URL of a server named `title`, which may have these parameters. Raises
    `ConfigError`, without the password, if it cannot be read or names no database; `example` is
    what to write then.
    """
    try:
        parts = urlsplit(server)
        port = parts.port
        given = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise ConfigError(
            f"the {title} URL cannot be read: check its host, port and parameters"
        ) from None
    for name in given:
        if name not in parameters:
            raise ConfigError(
                f"the {title} URL has the unknown parameter {name[:40]!r}: known are"
                f" {', '.join(parameters)}"
            )
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise ConfigError(f"the {title} URL names no database: write {example}")
    return ServerUrl(
        scheme=parts.scheme,
        host=parts.hostname or "127.0.0.1",
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=database,
        parameters=given,
    )


def refuse_same_file(
    database: str, store: Path | None, *, names: tuple[str, str] = ("database", "store")
) -> None:
    """Raise `ConfigError` if database and store are the same file, because threads would then be
    written into the user's data.
    """
    try:
        path = parse_url(database).path
    except ConfigError:  # whoever opens it says what is wrong with it
        return
    if store is None or path is None:
        return
    same = os.path.realpath(store) == os.path.realpath(path)
    with suppress(OSError):  # one of them is not there
        # Hard links, and names that differ in case alone where that is the same.
        same = same or store.samefile(path)
    if same:
        raise ConfigError(
            f"{names[1]} and {names[0]} are the same file, {str(path)!r}: threads are never kept"
            f" in the database that is asked; name another file for {names[1]}, or leave it out"
        )
