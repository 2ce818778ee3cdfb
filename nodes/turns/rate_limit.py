"""How many turns an owner may begin in a time: in this process, or shared over Redis or PostgreSQL."""

import logging
import time
from collections.abc import Callable
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
TAKEN = 4_096
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
        """Count a turn that begins. Raises `RateLimitedError` where the owner has none left. `turn`: what `give_back` is to know it by."""
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
            self._taken.put(turn, owner or NOBODY)

    def give_back(self, turn: str) -> None:
        """Count a turn less that failed before anything came of it: once, and only by the process that counted it."""
        owner = self._taken.pop(turn)
        if owner is None:
            return
        try:
            self._allowance.give_back(owner)
        except Exception as error:  # then it stays counted
            _log.warning("the rate limit's storage failed (%s): a turn that failed stays counted", type(error).__name__)

    @cached_property
    def _taken(self) -> BoundedCache[str, str]:
        return BoundedCache(TAKEN)

    @cached_property
    def _allowance(self) -> Allowance:
        if self.storage.startswith(("postgresql://", "postgres://")):
            if find_spec("psycopg") is None:
                raise MissingExtraError("a rate limit cannot be kept in PostgreSQL", "postgres")
            return PostgresAllowance(self.storage, self.turns, self.seconds)
        return _limits_allowance(self.storage, self.turns, self.seconds)


def _limits_allowance(storage: str, turns: int, seconds: int, now: Callable[[], float] = time.time) -> Allowance:
    try:
        from limits.errors import ConfigurationError
        from limits.limits import RateLimitItemPerSecond
        from limits.storage import MemoryStorage, RedisStorage, storage_from_string
        from limits.strategies import MovingWindowRateLimiter
    except ImportError as error:
        raise MissingExtraError("a rate limit cannot be kept", "limits") from error
    try:
        kept = storage_from_string(storage, **(QUICK if storage.startswith("redis") else {}))
        limiter, item = MovingWindowRateLimiter(kept), RateLimitItemPerSecond(turns, seconds, namespace="longtable")
    except ConfigurationError as error:
        raise ConfigError(f"RateLimit.storage cannot be used: {error}") from error

    class Moving:
        def take(self, owner: str) -> float:
            if limiter.hit(item, owner):
                return 0.0
            return max(0.1, limiter.get_window_stats(item, owner).reset_time - now())

        def give_back(self, owner: str) -> None:
            # `limits` has no method for it: both storages hold a list of times, the newest first; of others it stays counted.
            key = item.key_for(owner)
            if isinstance(kept, MemoryStorage):
                with kept.locks[key]:
                    del kept.events.get(key, [])[:1]
            elif isinstance(kept, RedisStorage):
                connection: Any = kept.get_connection()
                connection.lpop(kept.prefixed_key(key))

    return Moving()


class PostgresAllowance:
    """Turns counted in a table of PostgreSQL, which `limits` has no storage for; each take is one transaction."""

    TABLE = "CREATE TABLE IF NOT EXISTS longtable_turns_taken (owner TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)"
    INDEX = "CREATE INDEX IF NOT EXISTS longtable_turns_taken_by_owner ON longtable_turns_taken (owner, at)"
    ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
    CLOCK = "SELECT extract(epoch FROM clock_timestamp())::double precision"  # the server's: workers' clocks differ
    FORGET = "DELETE FROM longtable_turns_taken WHERE owner = %s AND at <= %s"
    FIRST = "SELECT at FROM longtable_turns_taken WHERE owner = %s ORDER BY at DESC OFFSET %s LIMIT 1"
    COUNT = "INSERT INTO longtable_turns_taken (owner, at) VALUES (%s, %s)"
    GIVE_BACK = """DELETE FROM longtable_turns_taken WHERE ctid =
        (SELECT ctid FROM longtable_turns_taken WHERE owner = %s ORDER BY at DESC LIMIT 1)"""

    def __init__(self, url: str, turns: int, seconds: int) -> None:
        self.url, self.turns, self.seconds = url, turns, seconds
        self._made = False

    def take(self, owner: str) -> float:
        """Count one turn and return 0, or count none and return the seconds to wait."""
        import psycopg

        with psycopg.connect(self.url, connect_timeout=5) as connection:
            if not self._made:
                self._make(connection)
            connection.execute(self.ALONE, (f"longtable turns {owner}",))
            now = float(self._one(connection, self.CLOCK, ()))
            connection.execute(self.FORGET, (owner, now - self.seconds))
            oldest = self._one(connection, self.FIRST, (owner, self.turns - 1))
            if oldest is not None:
                return max(0.1, float(oldest) + self.seconds - now)
            connection.execute(self.COUNT, (owner, now))
        return 0.0

    def give_back(self, owner: str) -> None:
        """Count one turn less, the newest."""
        import psycopg

        with psycopg.connect(self.url, connect_timeout=5) as connection:
            connection.execute(self.ALONE, (f"longtable turns {owner}",))
            connection.execute(self.GIVE_BACK, (owner,))

    def _make(self, connection: Any) -> None:
        connection.execute(self.ALONE, ("longtable turns setup",))
        connection.execute(self.TABLE)
        connection.execute(self.INDEX)
        connection.commit()
        self._made = True

    def _one(self, connection: Any, sql: str, given: tuple[Any, ...]) -> Any:
        row = connection.execute(sql, given).fetchone()
        return row[0] if row else None
