"""Turn errors of SQLite, PostgreSQL and the disk into `PersistenceError`s that say what to do."""

import asyncio
import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from longtable.base.errors import AWAITED, ConfigError, PersistenceError

OPEN_FILES = {errno.EMFILE, errno.ENFILE}
DISK_AND_FILES = {*OPEN_FILES, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_UNOPENED = (
    "cannot be opened: check that its folder can be written, and that this process may open more"
    " files (ulimit -n)"
)
_UNWRITTEN = "cannot be written: make room on its disk, or look whether the disk is sound"
_LOCKED = "is locked by another program: close it or wait"
DAMAGED = "is not a SQLite database, or it is damaged: give another file"
_SHARED = (
    "was used by two threads at once over one sqlite3 connection: give the checkpointer and the"
    " store a connection each, as open_persistence does"
)
_ADVICE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: _UNWRITTEN,
    sqlite3.SQLITE_IOERR: _UNWRITTEN,
    sqlite3.SQLITE_CANTOPEN: _UNOPENED,
    sqlite3.SQLITE_READONLY: "cannot be used: check that it can be written",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_MISUSE: _SHARED,
    sqlite3.SQLITE_ROW: _SHARED,
    sqlite3.SQLITE_DONE: _SHARED,
}


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turn the exceptions of SQLite and PostgreSQL into `PersistenceError`s that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise PersistenceError(f"the conversation store {advice(error)} ({error})") from error
    except asyncio.InvalidStateError as error:
        # What LangGraph's stores raise where they would block their own event loop.
        raise ConfigError(AWAITED) from error
    except OSError as error:
        if error.errno not in DISK_AND_FILES:
            raise
        raise PersistenceError(
            f"the conversation store {_UNOPENED if error.errno in OPEN_FILES else _UNWRITTEN}"
            f" ({error.strerror})"
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in {"psycopg", "psycopg_pool"}:
            raise
        raise PersistenceError(
            f"the conversation store in PostgreSQL failed ({error}): check that the server runs,"
            " and the URL"
        ) from error


def advice(error: sqlite3.Error) -> str:
    """Return what is wrong with the SQLite file and what to do, such as "is locked by another
    program: close it or wait". SQLite's primary result code decides.
    """
    # None where Python's module itself objects: to a closed connection.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "closed" in str(error):
        return "was closed: open it again"
    return _ADVICE.get((code or 0) & 0xFF, "cannot be used: look at its file")
