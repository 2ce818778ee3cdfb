"""Open connections to a PostgreSQL server with deadlines, and stop what runs on them."""

from collections.abc import Callable
from contextlib import suppress

import psycopg

from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.tools.engines.postgres_introspection import RawConnection, register_loaders

CONNECT_SECONDS = 10
OLDEST_VERSION = 120_000
# A network that went silent must not hold a thread for hours.
KEEPALIVE: dict[str, str | int] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def connector(server: str, *, seconds: float) -> Callable[[], RawConnection]:
    """Return a function that opens one connection to the server of this URL. Raises `ConfigError`
    for a URL that libpq cannot read.
    """
    try:
        from_url = {
            key: value
            for key, value in psycopg.conninfo.conninfo_to_dict(server).items()
            if value is not None
        }
    except psycopg.Error:
        # What libpq says may quote the password: it is not repeated, nor kept as the cause, which a
        # log would show.
        raise ConfigError(
            "the PostgreSQL URL cannot be read: check its host, port and parameters"
        ) from None
    settings = (
        KEEPALIVE
        | {"connect_timeout": CONNECT_SECONDS, "fallback_application_name": "longtable"}
        | from_url
    )
    settings["client_encoding"] = "utf8"
    # Not for the walled transaction, which says it all again, but for whatever should run outside
    # of one.
    first = f"-c default_transaction_read_only=on -c statement_timeout={round(seconds * 1000) + 1}"
    options = f"{settings.get('options', '')} {first}".strip()

    def connect() -> RawConnection:
        try:
            try:
                connection = _open({**settings, "options": options})
            except psycopg.OperationalError as error:
                if "startup parameter" not in str(error):
                    raise
                # A pooler such as PgBouncer, which passes no options on.
                connection = _open(settings)
        except psycopg.Error as error:
            raise DatabaseUnavailableError(
                f"the PostgreSQL server cannot be reached: {what_failed(error)}"
            ) from error
        version = connection.info.server_version
        if version < OLDEST_VERSION:
            connection.close()
            raise DatabaseUnavailableError(
                f"the server is PostgreSQL {version // 10_000}: version {OLDEST_VERSION // 10_000}"
                " or newer is needed"
            )
        return connection

    return connect


def _open(settings: dict[str, str | int]) -> RawConnection:
    text = psycopg.conninfo.make_conninfo("", **settings)
    connection: RawConnection = psycopg.connect(
        text, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
    )
    register_loaders(connection)
    return connection


def what_failed(error: psycopg.Error) -> str:
    return str(error).strip().split("\n", 1)[0]


class PostgresDriver:
    """What the pool asks of psycopg."""

    def __init__(self, server: str, *, seconds: float) -> None:
        self._connect = connector(server, seconds=seconds)

    def connect(self) -> RawConnection:
        """Open a connection."""
        return self._connect()

    def cancel(self, connection: RawConnection) -> None:
        """Ask the server to stop the running statement."""
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=1.0)

    def is_idle(self, connection: RawConnection) -> bool:
        """Return whether a connection is open and in no transaction."""
        idle = psycopg.pq.TransactionStatus.IDLE
        return not connection.closed and connection.info.transaction_status == idle

    def close(self, connection: RawConnection) -> None:
        """Close a connection."""
        connection.close()
