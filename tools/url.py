"""Read a database URL: which engine, which file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from longtable.graph.errors import ConfigError

Dialect = Literal["sqlite", "duckdb"]

ENDINGS: dict[str, Dialect] = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
SUPPORTED = (
    "sqlite:///file.db or duckdb:///file.duckdb (four slashes before an absolute path),"
    " or a path ending in .db, .sqlite, .sqlite3 or .duckdb"
)
NOT_YET = {
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "postgres": "PostgreSQL",
    "postgresql": "PostgreSQL",
    "mssql": "SQL Server",
    "oracle": "Oracle",
}


@dataclass(frozen=True)
class Location:
    """Where a database is."""

    dialect: Dialect
    path: Path


def parse_url(url: str) -> Location:
    """Return what the URL names; raise `ConfigError` naming the supported forms."""
    if not isinstance(url, str) or not url.strip():
        raise ConfigError(f"the database URL must be text that is not blank, found {url!r}: use {SUPPORTED}")
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        dialect = ENDINGS.get(Path(url.strip()).suffix.lower())
        if dialect is None or url.strip().startswith(("sqlite:", "duckdb:")):
            raise ConfigError(f"the database {url!r} is neither a URL nor a path of a known kind: use {SUPPORTED}")
        return Location(dialect, Path(url.strip()))
    kind = scheme.lower().partition("+")[0]
    if kind in NOT_YET:
        # The URL may hold a password: it is not repeated.
        raise ConfigError(f"{NOT_YET[kind]} databases ({kind}://) are not supported: use {SUPPORTED}")
    if kind not in ("sqlite", "duckdb"):
        raise ConfigError(f"the database scheme {kind!r} is unknown: use {SUPPORTED}")
    if not rest.startswith("/") or rest in ("/", "/:memory:"):
        raise ConfigError(f"the database URL {url!r} names no file: use {SUPPORTED}")
    return Location("sqlite" if kind == "sqlite" else "duckdb", Path(rest[1:]))
