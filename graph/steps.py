"""What an operation on stored threads asks of saver and store, written once for sync and async callers.

An operation is a generator: it yields one of these steps and is sent its result. `run` and `arun` carry them out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, Op
from langgraph.types import StateSnapshot

from longtable.base.errors import ConfigError
from longtable.base.twins import in_thread
from longtable.graph.guard import GuardedSaver
from longtable.graph.locks import turns_of
from longtable.graph.persistence import storage_errors
from longtable.graph.running import Graph, aload_state, load_state
from longtable.memory.archive import apage, page
from longtable.memory.search import Original
from longtable.nodes.records.archive_store import StoreShelf, akeep_originals, keep_originals

if TYPE_CHECKING:
    from longtable.graph.archive_files import ArchiveFiles
    from longtable.tools.results import ResultStore


@dataclass(frozen=True)
class Batch:
    """Carry out store operations, in one transaction where the store has them; each is None where there is no store."""

    ops: Sequence[Op]


@dataclass(frozen=True)
class Load:
    """Read a thread's state, the newest or that of a checkpoint: a `StateSnapshot`. Raises `DamagedThreadError`."""

    thread_id: str
    checkpoint_id: str | None = None


@dataclass(frozen=True)
class Checkpoints:
    """Read the ids of a thread's checkpoints and nothing else of them, the newest first."""

    thread_id: str


@dataclass(frozen=True)
class Save:
    """Write these values as a step of their own."""

    thread_id: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Forget:
    """Delete a thread's checkpoints and writes."""

    thread_id: str


@dataclass(frozen=True)
class Page:
    """Read archived messages `first` to `last`: a list of `Original`."""

    thread_id: str
    first: int
    last: int


@dataclass(frozen=True)
class Shelve:
    """Write messages to the archive."""

    thread_id: str
    originals: Sequence[Original]


@dataclass(frozen=True)
class Drop:
    """Delete what is kept of a thread outside the store: its whole results, its archive files."""

    kept: "ResultStore | ArchiveFiles"
    thread_id: str


Step = Batch | Load | Checkpoints | Save | Forget | Page | Shelve | Drop
Result = TypeVar("Result")
Steps = Generator[Step, Any, Result]


def run(steps: Steps[Result], graph: Graph, *, alone: str | None = None, wait: bool = False) -> Result:
    """Carry out an operation with a sync saver and store. Raises `PersistenceError` where they fail.

    `alone`: a thread that no turn and no other operation may work on meanwhile; one under way is waited for (`wait`), or
    `ThreadBusyError` is raised.
    """
    with storage_errors(), turns_of(graph.checkpointer).turn(alone, wait=wait) if alone else nullcontext():
        answer: Any = None
        failure: Exception | None = None
        while True:
            try:
                step = steps.throw(failure) if failure else steps.send(answer)
            except StopIteration as done:
                result: Result = done.value
                return result
            failure = None
            try:
                answer = _do(step, graph)
            except Exception as error:
                failure = error


async def arun(steps: Steps[Result], graph: Graph, *, alone: str | None = None, wait: bool = False) -> Result:
    """Carry out an operation with an async saver and store: see `run`."""
    with storage_errors():
        async with turns_of(graph.checkpointer).aturn(alone, wait=wait) if alone else nullcontext():
            return await carried(steps, lambda step: _ado(step, graph))


async def carried(steps: Steps[Result], do: Callable[[Step], Awaitable[Any]]) -> Result:
    """Carry out an operation, each step by `do`; what a step raises is raised where the operation asked for it."""
    answer: Any = None
    failure: Exception | None = None
    while True:
        try:
            step = steps.throw(failure) if failure else steps.send(answer)
        except StopIteration as done:
            result: Result = done.value
            return result
        failure = None
        try:
            answer = await do(step)
        except Exception as error:
            failure = error


def _do(step: Step, graph: Graph) -> Any:
    match step:
        case Batch(ops):
            return graph.store.batch(ops) if graph.store is not None else [None] * len(ops)
        case Load(thread_id, checkpoint_id):
            return load_state(graph, config_of(thread_id, checkpoint_id))
        case Checkpoints(thread_id):
            saver = graph.checkpointer
            return saver.checkpoint_ids(thread_id) if isinstance(saver, GuardedSaver) else []
        case Save(thread_id, values):
            return graph.update_state(config_of(thread_id), dict(values), as_node="prepare")
        case Forget(thread_id):
            return _saver(graph).delete_thread(thread_id)
        case Drop(kept, thread_id):
            return kept.delete(thread_id)
        case Page(thread_id, first, last):
            return page(StoreShelf(_store(graph)), thread_id, first, last) if first <= last else []
        case Shelve(thread_id, originals):
            return keep_originals(StoreShelf(_store(graph)), thread_id, originals)


async def _ado(step: Step, graph: Graph) -> Any:
    match step:
        case Batch(ops):
            return await graph.store.abatch(ops) if graph.store is not None else [None] * len(ops)
        case Load(thread_id, checkpoint_id):
            return await aload_state(graph, config_of(thread_id, checkpoint_id))
        case Checkpoints(thread_id):
            saver = graph.checkpointer
            return await in_thread(saver.checkpoint_ids, thread_id) if isinstance(saver, GuardedSaver) else []
        case Save(thread_id, values):
            return await graph.aupdate_state(config_of(thread_id), dict(values), as_node="prepare")
        case Forget(thread_id):
            return await _saver(graph).adelete_thread(thread_id)
        case Drop(kept, thread_id):
            return await asyncio.to_thread(kept.delete, thread_id)
        case Page(thread_id, first, last):
            return await apage(StoreShelf(_store(graph)), thread_id, first, last) if first <= last else []
        case Shelve(thread_id, originals):
            return await akeep_originals(StoreShelf(_store(graph)), thread_id, originals)


def config_of(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """Return the configuration that names a thread, and a checkpoint of it."""
    checkpoint = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    return {"configurable": {"thread_id": thread_id, **checkpoint}}


def is_there(state: StateSnapshot) -> bool:
    """Tell whether a thread has ever been written."""
    return state.created_at is not None


def _store(graph: Graph) -> BaseStore:
    if graph.store is None:
        raise ConfigError("archived messages are in a store: compile the graph with it, graph.compile(..., store=...)")
    return graph.store


def _saver(graph: Graph) -> BaseCheckpointSaver[Any]:
    if not isinstance(graph.checkpointer, BaseCheckpointSaver):
        raise ConfigError("threads are kept by a checkpointer: compile the graph with it, graph.compile(checkpointer=...)")
    return graph.checkpointer
