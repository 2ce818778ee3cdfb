"""Load data files into a new DuckDB file in a temporary folder.

The folder is removed together with the `Database`. If the process was killed, the next load of any
process removes the folder.
"""

import os
import shutil
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from longtable.tools.engines.base import FileLimits, LoadNote
from longtable.tools.workers.pool import Workers
from longtable.tools.workers.worker_requests import LOAD

LOAD_SECONDS = 3600.0
LOADED = "longtable-files-"
"""Prefix of the names of these temporary folders."""
_locks: dict[Path, int] = {}
"""Descriptors of the locks that this process holds, by folder."""


def load_database(
    path: Path, files: FileLimits, *, in_process: bool
) -> tuple[Path, tuple[LoadNote, ...]]:
    """Load data files into a new DuckDB file. Return its path, and notes on the guesses made."""
    _sweep()
    target = Path(tempfile.mkdtemp(prefix=LOADED)) / "files.duckdb"
    _lock(target.parent)
    try:
        if in_process:
            from longtable.tools.files.load import load_files

            return target, load_files(path, target, files=files)
        request = LOAD.request(
            {"path": str(path.absolute()), "target": str(target), "files": files}
        )
        with closing(Workers(memory_bytes=files.memory_bytes)) as workers:
            return target, workers.call(request, seconds=LOAD_SECONDS)
    except BaseException:
        remove_folder(target.parent)
        raise


def _lock(folder: Path) -> None:
    """Lock the folder until this process ends, even if it is killed. After that the next load may
    remove the folder.
    """
    if sys.platform != "win32":
        import fcntl

        descriptor = os.open(folder / "new", os.O_CREAT | os.O_WRONLY, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        (folder / "new").rename(folder / "lock")  # it is never there without being held
        _locks[folder] = descriptor


def remove_folder(folder: Path) -> None:
    """Remove the folder of a loaded database, and release its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if (descriptor := _locks.pop(folder, None)) is not None:
        os.close(descriptor)


def _sweep() -> None:
    """Remove the folders of processes that were killed. A folder without a lock file is kept,
    because it may have just been made.
    """
    if sys.platform == "win32":
        return
    import fcntl

    for path in Path(tempfile.gettempdir()).glob(f"{LOADED}*/lock"):
        with suppress(OSError):  # held, or gone, or another user's
            lock = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
            finally:
                os.close(lock)
