"""Never let two runs of one thread overwrite each other: compare the thread's head in the same
transaction that writes.

A run that loaded the newest checkpoint may write only as long as no other run has written since.
Otherwise the run gets `ThreadBusyError` and writes nothing more; `ThreadBusyError.stored` says
whether its message was stored before that. Deliberate forks are allowed: a run or an update that
names a `checkpoint_id` may write its first checkpoint whatever the head is, and is guarded from
then on.
"""

# LangGraph hands the config of the checkpoint it loaded to each write of the run. A mark in it
# tells one run from another, and a run that loaded the newest checkpoint from one that asked for a
# certain one. Of 96 bare runs that lost, 32 had stored their message.

import copy
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR
from langgraph.checkpoint.sqlite import SqliteSaver

from longtable.base.concurrency import a_from, in_thread
from longtable.store.damage import readable
from longtable.store.heads import (
    Expected,
    HeadMovedError,
    Heads,
    ProcessHeads,
    Saver,
    SqliteHeads,
    key_of,
    retry_once,
)
from longtable.store.history_cache import SHARES, HistoryCache, may_share
from longtable.store.locks import ThreadLocks
from longtable.store.writers import Write, Writer

# LangGraph keeps keys that begin with two underscores out of a checkpoint's metadata
MARK = "__longtable_base"
TOGETHER = "__longtable_together"
"""Key in the config of a run. If it is true, some writes wait and are stored together with the next
one: those of cheap tasks, and checkpoints after which only `ingest` runs. A run may set it if each
superstep has one task, if nothing waits for a reader between two steps, and if the run stops before
or after no node but `prepare`.
"""
COSTLY = frozenset({"respond", "run_tools", "compact"})
"""Nodes whose work nobody wants done twice: calls of models and tools. Their writes never wait, so
that they are stored even if the checkpoint that follows cannot be.
"""
BRANCH = "branch:to:"
"""How LangGraph names the channel that starts a node, followed by the node's name."""
QUICK = frozenset({f"{BRANCH}ingest"})
"""The channels that start nodes before which a checkpoint may wait: `ingest` alone. Readers see the
others while the model answers, and `settle` writes their id to the thread's index entry.
"""
ERROR_SOURCE = "__error_source_node__"
"""Channel in which LangGraph says which node failed, for its error handlers."""
FILLED = "recursion_limit"
"""A key that LangGraph puts into each config of a run or an update. A config with this key is
LangGraph's own copy of the caller's config.
"""


class GuardedSaver(BaseCheckpointSaver[Any]):
    """A checkpoint saver that wraps another saver and guards its threads. With savers for SQLite
    and PostgreSQL the guard works across processes, with any other saver within this process only.

    The async methods (`aput`, ...) run the blocking methods in an OS thread. `locks`: the locks
    that a `Conversation` takes on its threads.
    """

    def __init__(self, inner: Saver, *, locks: ThreadLocks | None = None) -> None:
        self.inner = inner
        self.locks = locks or ThreadLocks()
        self.heads = _heads_of(inner)

    @property
    def serde(self) -> SerializerProtocol:  # type: ignore[override]  # the base class has a plain attribute
        """The serializer of the wrapped saver."""
        return self.inner.serde

    @property
    def config_specs(self) -> list[Any]:
        """The config fields of the wrapped saver."""
        return self.inner.config_specs

    def with_allowlist(self, extra_allowlist: Any) -> "GuardedSaver":
        """Return a guard with the same heads and locks, whose wrapped saver may also restore these
        types.
        """
        inner = self.inner.with_allowlist(extra_allowlist)
        if inner is self.inner:
            return self
        clone = copy.copy(self)
        clone.inner = inner
        return clone

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version of a channel, as the wrapped saver counts versions."""
        return self.inner.get_next_version(current, channel)

    def setup(self) -> None:
        """Create the tables that are missing."""
        if (setup := getattr(self.inner, "setup", None)) is not None:
            setup()
        self.heads.setup()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Load a checkpoint, and mark its config with a `Writer` for the run that loaded it. Raises
        `DamagedThreadError` if the checkpoint cannot be decoded.
        """
        # Read before the checkpoint: this run has not seen a writer that comes between the two.
        seen = retry_once(lambda: self.heads.writer(key_of(config)))
        with _decoding(config):
            return _with_mark(
                _check_sound(retry_once(lambda: self.inner.get_tuple(_without_mark(config)))),
                config,
                seen,
            )

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
        """Return the ids of a thread's checkpoints, newest first, including checkpoints that cannot
        be read. The list is empty if the wrapped saver cannot list ids.
        """
        return self.heads.checkpoint_ids(thread_id)

    def newest_checkpoints(self) -> dict[str, str] | None:
        """Return the id of the newest checkpoint of each thread, including checkpoints that cannot
        be read. Return None if the wrapped saver cannot list ids.
        """
        return self.heads.newest_checkpoints()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Raises `ThreadBusyError` if another run has written."""
        if (writer := _writer_of(config)) is not None:
            checkpoint = {**checkpoint, "id": writer.stored_id(checkpoint["id"])}

        def put(saver: Saver) -> RunnableConfig:
            return saver.put(_without_mark(config), checkpoint, metadata, new_versions)

        waits = _checkpoint_may_wait(config, checkpoint, metadata)
        self._write(config, Write(put, checkpoint, metadata), waits=waits)
        thread_id, namespace = key_of(config)
        stored = {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint["id"],
        }
        return {"configurable": stored}

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task. Raises `ThreadBusyError` if another run has written. In a run
        with `TOGETHER` they may wait for the checkpoint that follows. If the process is killed
        before that, about a millisecond later, the task runs again.
        """
        stored = _without_partial_writes(writes)

        def put_writes(saver: Saver) -> None:
            saver.put_writes(_without_mark(config), stored, task_id, task_path)

        self._write(config, Write(put_writes), waits=_may_wait(config, writes, task_path))

    def _write(self, config: RunnableConfig, write: Write, *, waits: bool = False) -> None:
        """Compare the head and write, in one transaction. If the config has no mark, it comes not
        from a run but from a caller who writes by hand; then the head is not compared.
        """
        writer = _writer_of(config)

        def compare_and_write(expected: Expected | None = None) -> None:
            with self.heads.writing(key_of(config), expected) as head:
                if writer is not None:
                    writer.claim(head, write)
                    for earlier in writer.waiting:
                        earlier.call(head.saver)
                write.call(head.saver)

        if writer is None:
            retry_once(compare_and_write)
            return
        with writer.order:
            if waits:
                writer.waiting.append(write)
                return
            try:
                retry_once(partial(compare_and_write, writer.expected(write)))
            except HeadMovedError:  # read the head, to say how it moved
                retry_once(compare_and_write)
            writer.wrote(write)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self.heads.delete(thread_id)
        self._forget_loaded([thread_id])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete old checkpoints, if the wrapped saver can do that."""
        self.inner.prune(thread_ids, strategy=strategy)
        self._forget_loaded(thread_ids)

    def _forget_loaded(self, thread_ids: Iterable[str]) -> None:
        """Drop from memory what turns loaded of threads whose stored data were deleted."""
        cache = getattr(self.inner, "cache", None)
        if isinstance(cache, HistoryCache):
            for thread_id in thread_ids:
                cache.drop(thread_id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the stored values and writes from which delta channels are rebuilt."""
        with _decoding(config):
            return retry_once(
                lambda: self.inner.get_delta_channel_history(
                    config=_without_mark(config), channels=channels
                )
            )

    # -- awaited -----------------------------------------------------------------------------------

    # Any: mypy takes `self` of an overriding attribute from the base class, and then refuses the
    # method.
    asetup: Any = a_from(setup)
    aget_tuple: Any = a_from(get_tuple)
    aput: Any = a_from(put)
    aput_writes: Any = a_from(put_writes)
    adelete_thread: Any = a_from(delete_thread)
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
        listed = await in_thread(
            lambda: [*self.list(config, filter=filter, before=before, limit=limit)]
        )
        for checkpoint in listed:
            yield checkpoint


def _check_sound(loaded: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return a loaded checkpoint if it is consistent. Otherwise raise `ValueError` or a similar
    error: the checkpoint can be decoded, but was certainly not written in this form.

    Two faults would do harm. If the checkpoint's id differs from the id of its row, every later
    write would seem to come from another run. If a node has seen a version that no channel has, the
    node would not run, and the turn would never end.
    """
    if loaded is None:
        return None
    checkpoint = loaded.checkpoint
    if checkpoint["id"] != loaded.config["configurable"]["checkpoint_id"]:
        raise ValueError("a checkpoint bears another id than its row")
    if "source" in loaded.metadata:
        _check_number(loaded.metadata["step"])
    versions: dict[str, Any] = checkpoint["channel_versions"]
    if len({type(version) for version in versions.values()}) > 1:
        raise ValueError("the versions of a checkpoint's channels are of several types")
    for version in versions.values():
        _check_number(version.partition(".")[0] if isinstance(version, str) else version)
    for seen in checkpoint["versions_seen"].values():
        if any(version > versions.get(channel, version) for channel, version in seen.items()):
            raise ValueError("a node has seen a version that its channel does not have")
    return loaded


def _check_number(number: str | int | float) -> None:
    """Raise `ValueError` or a similar error if a version is not a number, because the next version
    is computed from it.
    """
    int(number)


def _decoding(config: RunnableConfig | None) -> AbstractContextManager[None]:
    thread_id = (config or {}).get("configurable", {}).get("thread_id")
    return readable(str(thread_id)) if thread_id is not None else nullcontext()


def _heads_of(inner: Saver) -> Heads:
    """Return the object that reads and compares the heads of threads in this saver."""
    if isinstance(inner, SqliteSaver):
        return SqliteHeads(inner)
    if any(
        base.__module__.startswith("langgraph.checkpoint.postgres") for base in type(inner).__mro__
    ):
        from langgraph.checkpoint.postgres import PostgresSaver

        from longtable.store.postgres.postgres_heads import PostgresHeads

        if isinstance(inner, PostgresSaver):
            return PostgresHeads(inner)
    return ProcessHeads(inner)


def _configurable(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})


def _writer_of(config: RunnableConfig) -> Writer | None:
    """Return the run that a config belongs to. Return None if the config has no mark, because it
    does not come from a checkpoint that this guard loaded.
    """
    writer = _configurable(config).get(MARK)
    return writer if isinstance(writer, Writer) and writer.key == key_of(config) else None


def _may_wait(config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_path: str) -> bool:
    """Return whether these writes of a task may wait for the next checkpoint. Those of a costly
    node may not. Nor may what says how a task stopped, for no checkpoint follows it: an error, a
    question to a person.
    """
    if not _stores_together(config):
        return False
    if task_path.rpartition(", ")[2] in COSTLY:
        return False
    return not any(channel.startswith("__") for channel, _ in writes)


def _checkpoint_may_wait(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
) -> bool:
    """Return whether a checkpoint may wait for the next write. The input of a run may not, nor its
    last checkpoint.
    """
    if not _stores_together(config) or metadata.get("source") != "loop":
        return False
    starts = [
        channel
        for channel in checkpoint.get("updated_channels") or ()
        if channel.startswith((BRANCH, "__"))
    ]
    return bool(starts) and QUICK.issuperset(starts)


def _stores_together(config: RunnableConfig) -> bool:
    configurable = _configurable(config)
    return bool(configurable.get(TOGETHER)) and not configurable.get("checkpoint_ns")


def _without_partial_writes(writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
    """Return the writes of a task to store: all or none of its values.

    LangGraph stores what a task had written when it failed or was cancelled, treats these writes as
    complete, and does not run the task again. A task that was cancelled after its values and before
    its edge would have no next one, so its values are left out. One that had reached its edge is
    done, so its error is left out.
    """
    failed = any(channel == ERROR for channel, _ in writes)
    if not failed:
        return writes
    done = any(channel.startswith(BRANCH) for channel, _ in writes)
    stops = {*WRITES_IDX_MAP, ERROR_SOURCE}
    left_out = {ERROR, ERROR_SOURCE} if done else {channel for channel, _ in writes} - stops
    return [(channel, value) for channel, value in writes if channel not in left_out]


def _without_mark(config: RunnableConfig) -> RunnableConfig:
    """Return the config for the wrapped saver: without the mark, and with the id under which the
    checkpoint is stored.
    """
    if MARK not in _configurable(config):
        return config
    configurable = {key: value for key, value in _configurable(config).items() if key != MARK}
    if (writer := _writer_of(config)) is not None and (
        checkpoint_id := configurable.get("checkpoint_id")
    ):
        configurable["checkpoint_id"] = writer.stored_id(checkpoint_id)
    return {**config, "configurable": configurable}


def _with_mark(
    loaded: CheckpointTuple | None, config: RunnableConfig, seen: str | None
) -> CheckpointTuple | None:
    """Return the loaded checkpoint with a mark in its config: a `Writer` for the run that loaded
    it. If there is no checkpoint, put the mark into the run's own config and return None.
    """
    key = key_of(config)
    checkpoint_id = get_checkpoint_id(config)
    if loaded is None:
        if FILLED in config and not checkpoint_id:
            # There is no checkpoint whose config could carry the mark: LangGraph goes on with this
            # one, the run's own.
            _configurable(config)[MARK] = Writer.new(key, None, seen)
        return None
    writer = Writer.new(key, loaded.checkpoint["id"], seen, free=bool(checkpoint_id))
    marks: dict[str, Any] = {MARK: writer}
    if may_share(config):
        marks[SHARES] = True
    return loaded._replace(
        config={**loaded.config, "configurable": {**_configurable(loaded.config), **marks}}
    )
