"""What a query may cost: frozen values, checked when built."""

from dataclasses import dataclass

from longtable.base.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """Most that one query may take; over it, the query is stopped and nothing of it is returned."""

    seconds: float = 30.0
    rows: int = 10_000
    bytes: int = 8_000_000
    """Size of the result."""
    memory_bytes: int = 1_000_000_000
    """Memory of the engine, where the engine can be held to it (DuckDB: all queries of one `Database` together)."""
    temp_bytes: int = 1_000_000_000
    """Temporary space on disk, where the engine can be held to it (PostgreSQL). DuckDB has none, SQLite's ends with `seconds`."""

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not 0 < self.seconds <= 86_400:
            raise ConfigError(f"QueryLimits.seconds must be over 0 and at most 86400, found {self.seconds!r}")
        for name, least in (("rows", 1), ("bytes", 1_000), ("memory_bytes", 16_000_000), ("temp_bytes", 1_000_000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"QueryLimits.{name} must be a whole number of at least {least}, found {value!r}")


@dataclass(frozen=True, kw_only=True)
class FileLimits:
    """Most that files may come to that are loaded as a database."""

    files: int = 200
    bytes: int = 1_000_000_000
    """All files together, as they are on disk."""
    memory_bytes: int = 4_000_000_000
    """What they may take when loaded."""
    sheet_rows: int = 1_100_000
    """Rows of one Excel sheet."""

    def __post_init__(self) -> None:
        for name, least in (("files", 1), ("bytes", 1), ("memory_bytes", 16_000_000), ("sheet_rows", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"FileLimits.{name} must be a whole number of at least {least}, found {value!r}")
