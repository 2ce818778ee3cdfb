"""Files that people upload, each the database of one thread.

A file lies in a folder of its owner and its thread, and is deleted with the thread. Its database is
opened when its thread is asked, behind the same walls as any other; at most eight are open.
"""

import gzip
import shutil
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from longtable.base.errors import ConfigError, PersistenceError, TooManyTurnsError
from longtable.base.url import GZIP, data_ending
from longtable.graph.thread_state import Graph
from longtable.tools.database import Database

MOST_OPEN = 8
MOST_NAME = 60
DATABASES = (".db", ".sqlite", ".sqlite3")
"""Endings of SQLite files. Other uploads are data files, which are loaded."""


@dataclass(frozen=True)
class Uploaded:
    """The open database of a thread, and the graph that asks it."""

    database: Database
    graph: Graph


OpenUpload = Callable[[str], Uploaded]
"""Opens a database by its URL and builds its graph. Raises the errors of `Database.open`."""


class UploadRefusedError(ConfigError):
    """A file is of no kind that can be asked, or is too large; nothing was kept."""

    code = ConfigError.code


def safe_name(name: str) -> str:
    """Return the name under which a file is kept: letters, digits, `-` and `_`, and its ending.
    Raises `UploadRefusedError` for a file of another kind.
    """
    path = Path(name.replace("\\", "/")).name
    ending = data_ending(Path(path)) or Path(path).suffix.lower()
    packed = GZIP if path.lower().endswith(GZIP) else ""
    if ending not in DATABASES and not data_ending(Path(path)):
        raise UploadRefusedError(
            f"an upload is a CSV, Excel, Parquet, JSON or SQLite file, found {path[-40:]!r}",
            name="file",
            wanted=".csv, .tsv, .txt, .xlsx, .parquet, .json, .jsonl, .db, .sqlite",
        )
    stem = path[: len(path) - len(ending) - len(packed)]
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in stem)
    return f"{kept[:MOST_NAME].strip('_') or 'data'}{ending}{packed}"


class Uploads:
    """The uploaded files of all threads of a server. Its methods may be called from any thread.

    `is_busy` says whether a turn of a thread runs: its database then stays open.
    """

    def __init__(
        self,
        folder: Path,
        open_upload: OpenUpload,
        *,
        most_bytes: int,
        is_busy: Callable[[str], bool],
        most_open: int = MOST_OPEN,
    ) -> None:
        self.folder = folder
        self.open_upload = open_upload
        self.most_bytes = most_bytes
        self.is_busy = is_busy
        self.most_open = most_open
        self._open: dict[tuple[str, str | None], Uploaded] = {}
        self._lock = threading.Lock()

    def folder_of(self, thread_id: str, owner: str | None) -> Path:
        """Return the folder of a thread's file."""
        # A mark before the names: neither "." nor ".." may be one.
        whose = f"o-{quote(owner, safe='')}" if owner else "all"
        return self.folder / whose[:200] / f"t-{quote(thread_id, safe='')}"[:200]

    def file_of(self, thread_id: str, owner: str | None) -> Path | None:
        """Return the file of a thread, None if it has none."""
        home = self.folder_of(thread_id, owner)
        files = sorted(home.glob("*")) if home.is_dir() else []
        return next((file for file in files if not file.name.startswith(".")), None)

    def keep(self, thread_id: str, owner: str | None, name: str, source: BinaryIO) -> Uploaded:
        """Keep a file as the database of a thread, and open it. A file that cannot be asked is
        deleted again.

        Raises `UploadRefusedError`, `PersistenceError` if the disk does not take it, and the errors
        of `Database.open`.
        """
        kept = safe_name(name)
        home = self.folder_of(thread_id, owner)
        draft = home / ".draft"
        try:
            home.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as target:
                self._copy(source, target)
            if kept.endswith(GZIP):
                self._check_unpacked(draft)
            draft.replace(home / kept)
        except OSError as error:
            shutil.rmtree(home, ignore_errors=True)
            raise PersistenceError(f"the upload cannot be kept: {error.strerror}") from error
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        try:
            opened = self.of(thread_id, owner)
            assert opened is not None
            opened.database.catalog()
        except BaseException:
            self.delete(thread_id, owner)
            raise
        return opened

    def _copy(self, source: BinaryIO, target: BinaryIO) -> None:
        left = self.most_bytes
        while chunk := source.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise UploadRefusedError(
                    f"the file is larger than {self.most_bytes:,} bytes",
                    name="file",
                    wanted=f"at most {self.most_bytes:,} bytes",
                )
            target.write(chunk)

    def _check_unpacked(self, packed: Path) -> None:
        """Refuse a file that is too large once it is unpacked: a packed file of 150 kB may hold
        gigabytes.
        """
        left = self.most_bytes
        try:
            with gzip.open(packed) as file:
                while left >= 0 and (chunk := file.read(1 << 20)):
                    left -= len(chunk)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            return  # whoever loads it says what is wrong with it
        if left < 0:
            raise UploadRefusedError(
                f"the file is larger than {self.most_bytes:,} bytes once it is unpacked",
                name="file",
                wanted=f"at most {self.most_bytes:,} bytes",
            )

    def of(self, thread_id: str, owner: str | None) -> Uploaded | None:
        """Return the open database of a thread, None if the thread has no file of its own. Raises
        `TooManyTurnsError` if as many are open as may be, and turns run on all of them.
        """
        file = self.file_of(thread_id, owner)
        if file is None:
            return None
        key = (thread_id, owner)
        with self._lock:
            opened = self._open.pop(key, None)
            if opened is None:
                self._make_room()
                opened = self.open_upload(url_of(file))
            self._open[key] = opened  # the newest last
        return opened

    def _make_room(self) -> None:
        while len(self._open) >= self.most_open:
            idle = [key for key in self._open if not self.is_busy(key[0])]
            if not idle:
                raise TooManyTurnsError(most=self.most_open)
            self._open.pop(idle[0]).database.close()

    def copy(self, thread_id: str, other_id: str, owner: str | None) -> None:
        """Give a fork the file of its thread."""
        file = self.file_of(thread_id, owner)
        if file is not None:
            home = self.folder_of(other_id, owner)
            home.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, home / file.name)

    def delete(self, thread_id: str, owner: str | None) -> None:
        """Close the database of a thread and delete its file. Nothing happens if it has none."""
        with self._lock:
            opened = self._open.pop((thread_id, owner), None)
            if opened is not None:
                opened.database.close()
        shutil.rmtree(self.folder_of(thread_id, owner), ignore_errors=True)

    def close(self) -> None:
        """Close all databases. The files stay."""
        with self._lock:
            for opened in self._open.values():
                opened.database.close()
            self._open.clear()


def url_of(file: Path) -> str:
    """Return the URL of a file as a database."""
    kind = "sqlite" if file.suffix in DATABASES else "files"
    return f"{kind}:///{file.absolute()}"
