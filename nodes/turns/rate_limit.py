"""How many turns an owner may begin in a time: in this process, or shared over Redis or PostgreSQL."""

import logging
import time
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Protocol

from longtable.base.errors import ConfigError, MissingExtraError, RateLimitedError
from longtable.nodes.records.bounded_cache import BoundedCache

NOBODY = "-"
"""Whose turns those without an owner are: they share one allowance."""

QUICK: dict[str, Any] = {"socket_connect_timeout": 2.0, "socket_timeout": 2.0}
"""Seconds that a Redis which does not answer may hold up a turn; its client would wait for ever. A URL may say otherwise."""
COUNTED = 4_096
"""Newest turns of which a process knows that it counted them."""

_log = logging.getLogger("longtable.rate_limit")


class Allowance(Protocol):
    """Where turns are counted."""

    def take(self, owner: str) -> float:
        """Count one turn and return 0, or count none and return the seconds to wait."""
        ...

    def give_back(self, owner: str) -> None:
        """Count one turn less."""
        ...


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """So many turns of one owner in so many seconds, over a window that moves.

    `storage`: "memory://" (this process), "redis://...", "postgresql://...", or what else `limits` knows by that name.
    A turn whose model could not be asked is not counted. Needs the extra `limits`, but for PostgreSQL. A storage that
    cannot be reached lets turns pass, and the log says so.
    """

    turns: int = 20
    seconds: int = 3_600
    storage: str = field(default="memory://", repr=False)  # it may hold a password

    def __post_init__(self) -> None:
        if not 1 <= self.turns <= 1_000_000 or not 1 <= self.seconds <= 31_536_000:
            raise ConfigError(
                f"RateLimit: turns must be 1 to 1,000,000 and seconds 1 to 31,536,000, found {self.turns!r} and {self.seconds!r}"
            )
        if "://" not in self.storage:
            raise ConfigError(f"RateLimit.storage must be memory://, redis://... or postgresql://..., found {self.storage!r}")

    def check(self, owner: str | None, *, turn: str = "") -> None:
        """Count a turn that begins, for `give_back` to know by `turn`. Raises `RateLimitedError` where the owner has none left."""
        try:
            wait = self._allowance.take(owner or NOBODY)
        except ConfigError:
            raise
        except Exception as error:  # an allowance that cannot be counted costs nobody the answer
            _log.warning("the rate limit's storage failed (%s): the turn passes", type(error).__name__)
            return
        if wait > 0:
            raise RateLimitedError(turns=self.turns, seconds=self.seconds, wait_s=round(wait, 1))
        if turn:
            self._counted.put(turn, owner or NOBODY)

    def give_back(self, turn: str) -> None:
        """Count a turn less that failed before anything came of it: once, and only by the process that counted it."""
        if (owner := self._counted.pop(turn)) is None:
            return
        try:
            self._allowance.give_back(owner)
        except Exception as error:  # then it stays counted
            _log.warning("the rate limit's storage failed (%s): a turn that failed stays counted", type(error).__name__)

    @cached_property
    def _counted(self) -> BoundedCache[str, str]:
        return BoundedCache(COUNTED)

    @cached_property
    def _allowance(self) -> Allowance:
        in_postgres = self.storage.startswith(("postgresql://", "postgres://"))
        needed = "psycopg" if in_postgres else "limits"
        if find_spec(needed) is None:
            raise MissingExtraError("a rate limit cannot be kept", "postgres" if in_postgres else "limits")
        return (PostgresAllowance if in_postgres else LimitsAllowance)(self.storage, self.turns, self.seconds)


class LimitsAllowance:
    """Turns counted by the package `limits`: in this process, in Redis, or in another storage it knows."""

    def __init__(self, storage: str, turns: int, seconds: int) -> None:
        from limits import errors
        from limits import storage as storages
        from limits.limits import RateLimitItemPerSecond
        from limits.strategies import MovingWindowRateLimiter

        try:
            self.storage: Any = storages.storage_from_string(storage, **(QUICK if storage.startswith("redis") else {}))
            self.limiter = MovingWindowRateLimiter(self.storage)
        except errors.ConfigurationError as error:
            raise ConfigError(f"RateLimit.storage cannot be used: {error}") from error
        self.item = RateLimitItemPerSecond(turns, seconds, namespace="longtable")

    def take(self, owner: str) -> float:
        """Count one turn and return 0, or count none and return the seconds to wait."""
        if self.limiter.hit(self.item, owner):
            return 0.0
        return max(0.1, self.limiter.get_window_stats(self.item, owner).reset_time - time.time())

    def give_back(self, owner: str) -> None:
        """Count one turn less. `limits` has no method for it: these two storages hold a list of times, the newest first."""
        from limits.storage import MemoryStorage, RedisStorage

        key = self.item.key_for(owner)
        if isinstance(self.storage, MemoryStorage):
            with self.storage.locks[key]:
                del self.storage.events.get(key, [])[:1]
        elif isinstance(self.storage, RedisStorage):
            connection: Any = self.storage.get_connection()
            connection.lpop(self.storage.prefixed_key(key))


class PostgresAllowance:
    """Turns counted in a table of PostgreSQL, which `limits` has no storage for; each take is one transaction."""

    SETUP = """CREATE TABLE IF NOT EXISTS longtable_turns_taken (owner TEXT NOT NULL, at DOUBLE PRECISION NOT NULL);
        CREATE INDEX IF NOT EXISTS longtable_turns_taken_by_owner ON longtable_turns_taken (owner, at)"""
    ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
    CLOCK = "SELECT extract(epoch FROM clock_timestamp())::double precision"  # the server's: workers' clocks differ
    FORGET = "DELETE FROM longtable_turns_taken WHERE owner = %s AND at <= %s"
    FIRST = "SELECT at FROM longtable_turns_taken WHERE owner = %s ORDER BY at DESC OFFSET %s LIMIT 1"
    COUNT = "INSERT INTO longtable_turns_taken (owner, at) VALUES (%s, %s)"
    GIVE_BACK = """DELETE FROM longtable_turns_taken WHERE ctid =
        (SELECT ctid FROM longtable_turns_taken WHERE owner = %s ORDER BY at DESC LIMIT 1)"""

    def __init__(self, url: str, turns: int, seconds: int) -> None:
        self.url, self.turns, self.seconds = url, turns, seconds
        self.ready = False

    def take(self, owner: str) -> float:
        """Count one turn and return 0, or count none and return the seconds to wait."""
        with self._connection() as connection:
            if not self.ready:
                connection.execute(self.ALONE, ("longtable turns setup",))
                connection.execute(self.SETUP)
                connection.commit()
                self.ready = True
            connection.execute(self.ALONE, (f"longtable turns {owner}",))
            now = float(connection.execute(self.CLOCK).fetchone()[0])
            connection.execute(self.FORGET, (owner, now - self.seconds))
            if oldest := connection.execute(self.FIRST, (owner, self.turns - 1)).fetchone():
                return max(0.1, float(oldest[0]) + self.seconds - now)
            connection.execute(self.COUNT, (owner, now))
        return 0.0

    def give_back(self, owner: str) -> None:
        """Count one turn less, the newest."""
        with self._connection() as connection:
            connection.execute(self.ALONE, (f"longtable turns {owner}",))
            connection.execute(self.GIVE_BACK, (owner,))

    def _connection(self) -> Any:
        import psycopg

        return psycopg.connect(self.url, connect_timeout=5)
