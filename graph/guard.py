"""Never let two runs of one thread overwrite each other: compare and set the thread's head in the transaction that writes.

A run that loaded the newest checkpoint may write only while that checkpoint is still the newest, and while no other run
has written to it since. The other run gets `ThreadBusyError`, and what it was about to write is not written. Deliberate
forks go through: a run or an update that named a `checkpoint_id` writes beside what is there, and is guarded from its
own first checkpoint on.
"""

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from longtable.base.twins import a_from, in_thread
from longtable.graph.admission import Base, admit, base_of, in_order, key_of, noted, noting, plain
from longtable.graph.again import again
from longtable.graph.damage import readable
from longtable.graph.heads import Heads, ProcessHeads, Saver, SqliteHeads
from longtable.graph.locks import Turns


class GuardedSaver(BaseCheckpointSaver[Any]):
    """A checkpoint saver around another one. Across processes in SQLite and PostgreSQL, else within this one.

    The `a...` methods run the blocking ones in a thread. `turns`: how a `Conversation` takes turns on its threads.
    """

    def __init__(self, inner: Saver, *, turns: Turns | None = None) -> None:
        self.inner = inner
        self.turns = turns or Turns()
        self.heads = _heads_of(inner)

    @property
    def serde(self) -> SerializerProtocol:  # type: ignore[override]  # the base class has a plain attribute
        """The serializer of the saver within."""
        return self.inner.serde

    @property
    def config_specs(self) -> list[Any]:
        """What a config may hold for the saver within."""
        return self.inner.config_specs

    def with_allowlist(self, extra_allowlist: Any) -> "GuardedSaver":
        """Return a guard of the same heads over a saver that restores these types too."""
        inner = self.inner.with_allowlist(extra_allowlist)
        if inner is self.inner:
            return self
        clone = copy.copy(self)
        clone.inner = inner
        return clone

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version of a channel, as the saver within counts."""
        return self.inner.get_next_version(current, channel)

    def setup(self) -> None:
        """Create the tables that are missing."""
        if (setup := getattr(self.inner, "setup", None)) is not None:
            setup()
        self.heads.setup()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Load a checkpoint, and note in its config what the run has seen."""
        # Read before the checkpoint: a writer that comes between the two is then one this run has not seen.
        seen = again(lambda: self.heads.writer(key_of(config)))
        with _decoding(config):
            return noted(_checked(again(lambda: self.inner.get_tuple(plain(config)))), config, seen)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first."""
        with _decoding(config):
            yield from self.inner.list(config, filter=filter, before=before, limit=limit)

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        """Return the ids of a thread's checkpoints, newest first, unreadable ones too; none for a saver that cannot list them."""
        return self.heads.checkpoint_ids(thread_id)

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Store a checkpoint. Raises `ThreadBusyError`."""
        key, base = key_of(config), base_of(config)

        def write() -> RunnableConfig:
            with noting(base) as note, self.heads.writing(key) as head:
                if (writer := admit(head, base, checkpoint)) is not None:
                    head.claim(writer)
                saved = head.saver.put(plain(config), checkpoint, metadata, new_versions)
                note(lambda base: base.put(checkpoint, metadata))
            return saved

        with in_order(base):
            return again(write)

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote. Raises `ThreadBusyError`."""
        key, base = key_of(config), base_of(config)

        def write() -> None:
            with noting(base) as note, self.heads.writing(key) as head:
                if (writer := admit(head, base)) is not None:
                    head.claim(writer)
                head.saver.put_writes(plain(config), writes, task_id, task_path)
                note(Base.wrote)

        with in_order(base):
            again(write)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self.heads.delete(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what these runs wrote."""
        self.inner.delete_for_runs(run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread."""
        self.inner.copy_thread(source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop old checkpoints, where the saver within can."""
        self.inner.prune(thread_ids, strategy=strategy)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes that delta channels are rebuilt from."""
        with _decoding(config):
            return again(lambda: self.inner.get_delta_channel_history(config=plain(config), channels=channels))

    # -- awaited ------------------------------------------------------------------------------------------------------

    # Any: mypy takes `self` of an overriding attribute from the base class, and then refuses the method.
    asetup: Any = a_from(setup)
    aget_tuple: Any = a_from(get_tuple)
    aput: Any = a_from(put)
    aput_writes: Any = a_from(put_writes)
    adelete_thread: Any = a_from(delete_thread)
    adelete_for_runs: Any = a_from(delete_for_runs)
    acopy_thread: Any = a_from(copy_thread)
    aprune: Any = a_from(prune)
    aget_delta_channel_history: Any = a_from(get_delta_channel_history)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first."""
        for found in await in_thread(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield found


def _checked(found: CheckpointTuple | None) -> CheckpointTuple | None:
    """Raise `ValueError` for a checkpoint that bears another id than its row: every write after it would seem another run's."""
    if found is not None and found.checkpoint["id"] != found.config["configurable"]["checkpoint_id"]:
        raise ValueError("a checkpoint bears another id than its row")
    return found


def _decoding(config: RunnableConfig | None) -> AbstractContextManager[None]:
    thread_id = (config or {}).get("configurable", {}).get("thread_id")
    return readable(str(thread_id)) if thread_id is not None else nullcontext()


def _heads_of(inner: Saver) -> Heads:
    """Return how the heads of a saver are read and compared."""
    if isinstance(inner, SqliteSaver):
        return SqliteHeads(inner)
    if any(base.__module__.startswith("langgraph.checkpoint.postgres") for base in type(inner).__mro__):
        from longtable.graph import postgres

        if isinstance(inner, postgres.PostgresSaver):
            return postgres.PostgresHeads(inner)
    return ProcessHeads(inner)
