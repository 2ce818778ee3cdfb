"""Keep track of the writer of a thread: the one run whose checkpoints may be stored."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base.id import uuid6

from longtable.base.errors import PersistenceError, ThreadBusyError
from longtable.store.heads import Expected, Head, Key, Saver

SINCE_1582 = 0x01B21DD213814000

MOST_AHEAD = 400 * 86_400 * 10**7
"""The time in a checkpoint id may be ahead of the clock by at most this much, in units of 100 ns. A
larger difference is ignored. (`SINCE_1582` has the same unit: these times begin in 1582.)
"""


@dataclass(frozen=True)
class Write:
    """A write of a run: of a task, or of a checkpoint."""

    call: Callable[[Saver], object]
    checkpoint: Checkpoint | None = None
    metadata: CheckpointMetadata | None = None


class Writer(str):
    """One run, with what it has loaded and stored of a thread. It is a string (the run's id), so
    that a config that holds it stays plain data.
    """

    key: Key
    loaded: str | None
    """Id of the checkpoint that the run loaded, None if there was none."""
    head: str | None
    """Id of the checkpoint that must still be the newest when the run writes."""
    seen: str | None
    """Name of the last write when this run loaded: the run that wrote, and how often it had
    written.
    """
    writes: int
    """How often this run has written."""
    free: bool
    """True if the run asked for a certain checkpoint and has not stored one of its own yet. Then
    its write is not compared with the head.
    """
    stored: bool | None
    """Whether the run's input is stored in the thread; None while it is being stored."""
    shift: int
    """The time, in units of 100 ns, that is added to the times in the ids of the run's checkpoints.
    It is above 0 if the checkpoint that the run loaded is ahead of the clock.
    """
    waiting: list[Write]
    """Writes that wait to be stored together with the next one, the oldest first."""
    order: threading.Lock
    """Lock with which only one write of the run at a time compares the head and notes its result.
    """

    @classmethod
    def new(cls, key: Key, loaded: str | None, seen: str | None, *, free: bool = False) -> "Writer":
        """Return a run that has written nothing yet."""
        writer = cls(uuid6().hex)
        writer.key = key
        writer.loaded = loaded
        writer.head = loaded
        writer.seen = seen
        writer.free = free
        writer.stored = False
        writer.writes = 0
        writer.waiting = []
        writer.order = threading.Lock()
        ahead = (_time_of(loaded) or 0) - (time.time_ns() // 100 + SINCE_1582)
        writer.shift = ahead + 1 if 0 < ahead < MOST_AHEAD else 0
        return writer

    def __deepcopy__(self, memo: dict[int, Any]) -> "Writer":
        """Return this same object: a run has one `Writer`, however often its config is copied."""
        return self

    def stored_id(self, checkpoint_id: str) -> str:
        """Return the id under which a checkpoint of this run is stored. It sorts after the id of
        the checkpoint that the run loaded, even if the clock was set back.
        """
        time_ = _time_of(checkpoint_id)
        if not self.shift or time_ is None or checkpoint_id == self.loaded:
            return checkpoint_id
        later = time_ + self.shift
        rest = UUID(checkpoint_id).int & (1 << 64) - 1
        return str(UUID(int=later >> 12 << 80 | 6 << 76 | (later & 0xFFF) << 64 | rest))

    def expected(self, write: Write) -> Expected | None:
        """Return the head that `claim` will accept for a write. Return None if that cannot be said
        before the head is read.
        """
        checkpoint = self._first_checkpoint(write)
        set_back = checkpoint is not None and checkpoint["id"] < (self.head or "")
        if self.free or set_back:
            return None
        return Expected(self.head, self._last, self._name(self.writes + 1))

    def claim(self, head: Head, write: Write) -> None:
        """Record this run as the last writer. Raises `ThreadBusyError` if another run has written
        since this run loaded.

        The writes of single tasks count, too. They do not change the newest checkpoint, but a run
        that loaded before these writes has not seen them. Raises `PersistenceError` if the
        checkpoint would not be the newest, because the clock was set back.
        """
        # This very write was stored, and only its answer was lost with the connection: the same
        # again changes nothing.
        repeated = head.writer == self._name(self.writes + 1)
        expected = head.writer == self._last and head.checkpoint_id == self.head
        if not (self.free or repeated or expected):
            raise ThreadBusyError(self.key[0], stored=self.stored)
        checkpoint = self._first_checkpoint(write)
        if (
            checkpoint is not None
            and head.checkpoint_id is not None
            and checkpoint["id"] < head.checkpoint_id
        ):
            raise PersistenceError(
                f"the newest checkpoint of thread {self.key[0]!r} was made at a later time than it"
                " is now by this machine's clock, so a new one would not be the newest: set the"
                " clock right, or wait until it has caught up"
            )
        head.claim(self._name(self.writes + 1))

    def wrote(self, write: Write) -> None:
        """Note that a write of this run was stored, with all that waited for it."""
        self.writes += 1
        for each in (*self.waiting, write):
            self._note(each)
        self.waiting.clear()

    def _note(self, write: Write) -> None:
        if write.checkpoint is None or write.metadata is None:
            # Of a task: with durability "exit" the input may be among it.
            self.stored = self.stored or None
            return
        self.head = write.checkpoint["id"]
        self.free = False
        # What only the input checkpoint holds is on its way in: another run may put its own input
        # in its place, or keep both. One without a source is the empty one that a first run with
        # durability "exit" hangs its writes on.
        source = write.metadata.get("source")
        self.stored = True if source in ("loop", "update", "fork") else self.stored or None

    def _first_checkpoint(self, write: Write) -> Checkpoint | None:
        """Return the oldest checkpoint of those that are stored together with a write."""
        checkpoints = (each.checkpoint for each in (*self.waiting, write))
        return next((each for each in checkpoints if each is not None), None)

    @property
    def _last(self) -> str | None:
        """The name of the last write, if no other run has written."""
        return self._name(self.writes) if self.writes else self.seen

    def _name(self, writes: int) -> str:
        return f"{self}:{writes}"


def _time_of(checkpoint_id: str | None) -> int | None:
    """Return the time in a checkpoint id, in units of 100 ns since 1582. Return None if the id is
    not a UUID of version 6.
    """
    try:
        uuid = UUID(checkpoint_id or "")
    except ValueError:
        return None
    return uuid.int >> 80 << 12 | uuid.int >> 64 & 0xFFF if uuid.version == 6 else None
