"""Files of compacted messages: one JSON file for each compaction, written before the compaction
takes effect, and fetched by a key.

    folder/<thread>/20261121T120000Z-1-34.json

The name of a thread's folder is the plain ASCII part of the thread's id and a hash of the whole id.
So no id can name a place outside the folder, no name is too long, and no two names differ only by
case. The key of a file is its name, such as "20261121T120000Z-1-34.json"; any other text is no key.
Links are not followed.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from longtable.base.errors import ConfigError, PersistenceError, StoreKeyError, UnknownArchiveError
from longtable.base.stored import NODE
from longtable.memory.search import Original
from longtable.store.encryption import (
    check_key,
    decrypted,
    encrypted,
    encryption_of,
    new_encryption,
)
from longtable.store.records.retired import encode_message

FORMAT = "longtable-archive"
SCHEMA = 1
STALE_SECONDS = 3_600.0
_KEY = re.compile(r"([0-9]{8}T[0-9]{6}Z)-([0-9]{1,9})-([0-9]{1,9})(?:-[0-9]{1,4})?\.json")
_TIME = "%Y%m%dT%H%M%SZ"
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True)
class ArchiveFile:
    """A file of a thread's archive. It holds the messages `first` to `last` of the transcript,
    which were compacted at `time` (ISO 8601). `bytes` is the size of the file.
    """

    key: str
    time: str
    first: int
    last: int
    bytes: int


class ArchiveFiles:
    """All archive files under one folder. It is safe to share between OS threads and processes.

    `key`: a passphrase with which each file is encrypted (extra `encryption`). Usually it is the
    passphrase of the store. The data of an encrypted store is never written to a file in plain
    text.
    """

    def __init__(self, folder: Path | str, *, key: str | None = None) -> None:
        if not isinstance(folder, Path | str) or not str(folder):
            raise ConfigError(f"ArchiveFiles takes a folder, found {folder!r}")
        self.folder = Path(folder).expanduser().absolute()
        self._passphrase = check_key(key)

    @property
    def encrypts(self) -> bool:
        """True if the files are encrypted."""
        return self._passphrase is not None

    def keep(
        self, thread_id: str, originals: Sequence[Original], *, compaction: str, time: datetime
    ) -> str:
        """Write all messages that a compaction covers to a file, and return the file's key. If a
        file of this compaction exists already, return its key.

        The file is written whole or not at all. Raises `PersistenceError` if it cannot be written.
        """
        first = originals[0].number
        last = originals[-1].number
        stamp = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC).strftime(_TIME)
        body = {
            "type": FORMAT,
            "schema": SCHEMA,
            "thread_id": thread_id,
            "compaction": compaction,
            "time": stamp,
        }
        messages = ",".join(
            f'{{"number":{each.number},"message":{encode_message(each.message)}}}'
            for each in originals
        )
        text = (
            f'{json.dumps(body)[:-1]}, "first": {first}, "last": {last}, "messages": [{messages}]}}'
        )
        home = self._home(thread_id)
        try:
            home.mkdir(parents=True, exist_ok=True)
            for known in self.files(thread_id):
                # A run that was killed behind the file, and is resumed.
                if (known.first, known.last) == (first, last) and self._compaction(
                    thread_id, known.key
                ) == compaction:
                    return known.key
            return self._settle(home, f"{stamp}-{first}-{last}", self._written(text))
        except OSError as error:
            raise self._failed(error) from error

    def files(self, thread_id: str) -> list[ArchiveFile]:
        """Return the files in a thread's archive, the oldest first."""
        home = self._home(thread_id)
        try:
            entries = [] if home.is_symlink() else list(os.scandir(home))
        except (FileNotFoundError, NotADirectoryError):
            return []
        files = [
            ArchiveFile(
                entry.name,
                _iso(match[1]),
                int(match[2]),
                int(match[3]),
                entry.stat(follow_symlinks=False).st_size,
            )
            for entry in entries
            if (match := _KEY.fullmatch(entry.name)) and entry.is_file(follow_symlinks=False)
        ]
        return sorted(files, key=lambda file: (file.time, file.first, file.last, file.key))

    def read(self, thread_id: str, key: str) -> str:
        """Return the JSON text of a file, decrypted if the file is encrypted.

        Raises `UnknownArchiveError` if `key` is not the key of a file of this thread,
        `StoreKeyError` if the passphrase is wrong or missing.
        """
        return self._opened(self._stored(thread_id, key))

    def copy(self, source: str, target: str, compactions: Collection[str]) -> None:
        """Copy the files of these compactions from the thread `source` to its fork `target`, under
        the same keys. The content still names the thread for which a file was written.

        Raises `PersistenceError` if the files cannot be written.
        """
        try:
            for file in self.files(source):
                if self._compaction(source, file.key) in compactions:
                    home = self._home(target)
                    home.mkdir(parents=True, exist_ok=True)
                    self._settle(
                        home, file.key.removesuffix(".json"), self._stored(source, file.key)
                    )
        except OSError as error:
            raise self._failed(error) from error

    def _stored(self, thread_id: str, key: str) -> str:
        """Return a file's content as stored. Raises `UnknownArchiveError` if the thread has no such
        file.
        """
        home = self._home(thread_id)
        if not _KEY.fullmatch(key) or home.is_symlink():
            raise UnknownArchiveError(key)
        try:
            descriptor = os.open(home / key, _FLAGS)
        except OSError:  # not there, a link, no right to read it
            raise UnknownArchiveError(key) from None
        with os.fdopen(descriptor, encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnknownArchiveError(key)
            return file.read()

    def _failed(self, error: OSError) -> PersistenceError:
        return PersistenceError(
            f"the archive cannot be written in {str(self.folder)!r}: {error.strerror or error}"
        )

    def delete(self, thread_id: str) -> None:
        """Delete all files of a thread. If this graph runs as a node of the thread's graph, the
        files of the node are in the same folder, and are deleted too.
        """
        home = self._home(thread_id)
        doomed = self.folder / f"deleted-{uuid.uuid4().hex}"
        try:
            home.rename(doomed)
        except (FileNotFoundError, NotADirectoryError):
            return
        if doomed.is_symlink():
            doomed.unlink()
        shutil.rmtree(doomed, ignore_errors=True)

    def _home(self, thread_id: str) -> Path:
        return self.folder.joinpath(*(_folder(part) for part in thread_id.split(NODE)))

    def _settle(self, home: Path, name: str, text: str) -> str:
        """Write a file under a temporary name beside the other files, then rename it to the first
        free name. Return that name.
        """
        draft = home / f"draft-{uuid.uuid4().hex}"
        try:
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            others = {entry.name for entry in os.scandir(home)}
            key = next(
                key
                for n in range(1, 10_000)
                if (key := f"{name}.json" if n == 1 else f"{name}-{n}.json") not in others
            )
            draft.rename(home / key)
        finally:
            draft.unlink(missing_ok=True)
            _sweep(home)
        return key

    # -- encryption --------------------------------------------------------------------------------

    @cached_property
    def _seal(self) -> tuple[EncryptedSerializer, str]:
        assert self._passphrase is not None, "only what has a passphrase encrypts"
        return new_encryption(self._passphrase)

    def _written(self, text: str) -> str:
        if not self.encrypts:
            return text
        serializer, proof = self._seal
        return json.dumps(
            {"type": FORMAT, "schema": SCHEMA, "seal": proof, "sealed": encrypted(serializer, text)}
        )

    def _opened(self, text: str) -> str:
        fields = json.loads(text) if '"seal"' in text[:200] else {}
        if "sealed" not in fields:
            return text
        if self._passphrase is None:
            raise StoreKeyError(
                "this archive file is encrypted: give the key of its store, ArchiveFiles(folder,"
                " key=...)"
            )
        own = self.__dict__.get("_seal")
        serializer = (
            own[0]
            if own and own[1] == fields["seal"]
            else encryption_of(self._passphrase, fields["seal"])
        )
        return str(decrypted(serializer, fields["sealed"]))

    def _compaction(self, thread_id: str, key: str) -> str | None:
        """Return the id of the compaction for which a file was written, None if the file cannot be
        read.
        """
        try:
            return str(json.loads(self.read(thread_id, key))["compaction"])
        except (ValueError, KeyError, TypeError, UnknownArchiveError, StoreKeyError):
            return None


def archive_from(setting: "ArchiveFiles | Path | str | None") -> ArchiveFiles | None:
    """Return the archive files that a setting names, None if it is None. Raises `ConfigError` if
    the setting is neither a folder nor an `ArchiveFiles`.
    """
    if setting is None or isinstance(setting, ArchiveFiles):
        return setting
    return ArchiveFiles(setting)


def _folder(part: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", part[:80].lower()).strip("-")[:32]
    return f"{plain or 'thread'}-{hashlib.sha256(part.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _iso(stamp: str) -> str:
    try:
        return datetime.strptime(stamp, _TIME).replace(tzinfo=UTC).isoformat()
    except ValueError:  # digits, and no date
        return stamp


def _sweep(home: Path) -> None:
    """Delete drafts that a killed process left behind. Newer drafts stay, because another process
    may still be writing them.
    """
    for draft in home.glob("draft-*"):
        try:
            if draft.stat().st_mtime < datetime.now(UTC).timestamp() - STALE_SECONDS:
                draft.unlink()
        except FileNotFoundError:  # another process was first
            continue
