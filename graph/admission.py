"""Decide whether a run may write to a thread: what it has seen of the head goes with its config, and is compared here.

LangGraph hands the config of the checkpoint it loaded to each write of the run, so a mark in it tells one run from
another, and a run that loaded the newest checkpoint from one that asked for a certain one.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, get_checkpoint_id
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.base.id import uuid6

from longtable.base.errors import PersistenceError, ThreadBusyError
from longtable.graph.heads import Head, Key

MARK = "__longtable_base"  # LangGraph keeps keys that begin with two underscores out of a checkpoint's metadata
SINCE_1582, MOST_AHEAD = 0x01B21DD213814000, 400 * 86_400 * 10**7
"""In units of 100 ns: where the times of ids begin, and by how much one may be ahead of the clock and still be followed."""
FILLED = "recursion_limit"
"""What LangGraph puts into every config of a run or an update, which is then a copy of the caller's."""


class Base(str):
    """What one run has seen and stored of a thread. A string, its id, so that a config which holds it stays plain data."""

    key: Key
    head: str | None
    """The checkpoint that must still be the newest when the run writes."""
    seen: str | None
    """Who had written last, and how often, when the run loaded."""
    writes: int
    """How often the run has written."""
    free: bool
    """Whether the run asked for a certain checkpoint, and has stored none of its own yet."""
    stored: bool | None
    """Whether the thread has taken in what the run was given; None where it is on its way in."""
    order: threading.Lock
    """Its writes come one after the other: no other may read what one has noted and takes back, for it failed at its end."""

    @classmethod
    def made(cls, key: Key, head: str | None, seen: str | None, *, free: bool = False) -> "Base":
        """Return the base of a run that has written nothing yet."""
        base = cls(uuid6().hex)
        base.key, base.head, base.seen, base.free = key, head, seen, free
        base.stored, base.writes = False, 0
        base.order = threading.Lock()
        return base

    def __deepcopy__(self, memo: dict[int, Any]) -> "Base":
        """Return itself: a run has one, however often its config is copied."""
        return self

    def named(self, writes: int) -> str:
        """Return the writer's name after so many writes."""
        return f"{self}:{writes}"

    def wrote(self) -> None:
        """Note that the run has stored what a task wrote: without a checkpoint before, its input may be among it (durability `exit`)."""
        self.writes += 1
        self.stored = self.stored or None

    def put(self, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> None:
        """Note that the run has stored a checkpoint, which is the head now."""
        self.head = checkpoint["id"]
        self.free = False
        self.writes += 1
        # What only the input checkpoint holds is on its way in: another run may put its own input in its place, or keep both.
        # One without a source is the empty one that a first run with durability `exit` hangs its writes on.
        self.stored = True if metadata.get("source") in ("loop", "update", "fork") else self.stored or None


@contextmanager
def noting(base: Base | None) -> Iterator[Callable[[Callable[[Base], None]], None]]:
    """Give what notes a write in the base, within its transaction; taken back where that fails at its very end.

    Else the run would take itself for another one at its next write.
    """
    before: dict[str, Any] = {}

    def note(change: Callable[[Base], None]) -> None:
        if base is not None:
            before.update(vars(base))
            change(base)

    try:
        yield note
    except BaseException:
        if base is not None and before:
            vars(base).update(before)
        raise


def in_order(base: Base | None) -> AbstractContextManager[Any]:
    """Return a block for one write of a run at a time."""
    return base.order if base is not None else nullcontext()


def _given(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})


def key_of(config: RunnableConfig) -> Key:
    """Return thread id and namespace of a config."""
    given = _given(config)
    return str(given["thread_id"]), str(given.get("checkpoint_ns", ""))


def base_of(config: RunnableConfig) -> Base | None:
    """Return what the run of this config has seen, None where it loaded nothing through the guard."""
    base = _given(config).get(MARK)
    return base if isinstance(base, Base) and base.key == key_of(config) else None


def plain(config: RunnableConfig) -> RunnableConfig:
    """Return the config without the mark."""
    if MARK not in _given(config):
        return config
    return {**config, "configurable": {key: value for key, value in _given(config).items() if key != MARK}}


def noted(found: CheckpointTuple | None, config: RunnableConfig, seen: str | None) -> CheckpointTuple | None:
    """Return what was loaded, marked with a base for the run that loads it."""
    key, asked = key_of(config), get_checkpoint_id(config)
    if found is None:
        if FILLED in config and not asked:
            # There is no checkpoint whose config could carry the mark: LangGraph goes on with this one, which is the run's own.
            _given(config)[MARK] = Base.made(key, None, seen)
        return None
    _not_before(found.checkpoint["id"])
    base = Base.made(key, found.checkpoint["id"], seen, free=bool(asked))
    return found._replace(config={**found.config, "configurable": {**_given(found.config), MARK: base}})


def _not_before(checkpoint_id: str) -> None:
    """Let this process make no checkpoint id that sorts before one it has read: ids are times, and a clock may be set back."""
    try:
        made = UUID(checkpoint_id)
    except ValueError:  # another program's id
        return
    read, now = made.int >> 80 << 12 | made.int >> 64 & 0xFFF, time.time_ns() // 100 + SINCE_1582
    if made.version == 6 and now < read < now + MOST_AHEAD:
        known: int | None = ids._last_v6_timestamp
        vars(ids)["_last_v6_timestamp"] = max(known or 0, read)


def admit(head: Head, base: Base | None, checkpoint: Checkpoint | None = None) -> str | None:
    """Return what to name as the writer, None to leave it. Raises `ThreadBusyError` where another run came between.

    Writes of a task are counted, for they leave the head where it is: who loaded before them has not seen them.
    """
    if base is None:  # no run: somebody who writes to the saver by hand
        return None
    mine = head.writer == (base.named(base.writes) if base.writes else base.seen) and head.checkpoint_id == base.head
    # This very write was kept, and only its answer was lost with the connection: done again it changes nothing.
    kept = head.writer == base.named(base.writes + 1)
    if not (base.free or mine or kept):
        raise ThreadBusyError(base.key[0], stored=base.stored)
    if checkpoint is not None and head.checkpoint_id is not None and checkpoint["id"] < head.checkpoint_id:
        raise PersistenceError(
            f"the newest checkpoint of thread {base.key[0]!r} was made at a later time than it is now by this machine's clock, "
            "so a new one would not be the newest: set the clock right, or wait until it has caught up"
        )
    return base.named(base.writes + 1)
