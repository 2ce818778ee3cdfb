"""Read and change the threads of a server through the server's own API. The routes use this."""

import asyncio
import re
import sys
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.types import Interrupt, StateSnapshot
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from longtable.app.server.server_lists import KnownThreads, ThreadsAhead, all_threads
from longtable.base.concurrency import a_from, in_thread
from longtable.base.errors import (
    LongtableError,
    ThreadBusyError,
    ThreadNotFoundError,
    TurnPendingError,
)
from longtable.base.events import Event
from longtable.base.stored import THREADS, Namespace
from longtable.graph.running.answers import CompactionEvent, compaction_of
from longtable.graph.thread_state import StoredThreads, is_pending, leftover_update
from longtable.graph.transcripts import find_thread
from longtable.memory.messages.marks import marks_of
from longtable.nodes.state import compacting_update, thread_of, turn_of, values_of
from longtable.store.records.item_values import (
    MOST_ITEMS,
    IsWanted,
    KeyValue,
    newest_of,
    values_in,
)
from longtable.store.records.thread_index import Entry, owner_of, title_of

Result = TypeVar("Result")
GRAPH = "longtable"
AEGRA_DATABASE = "aegra_api.core.database"
"""The module of Aegra that has its store, loaded where Aegra runs our routes."""
LANGGRAPH_STORE = "langgraph_api.store"
"""The module of LangGraph's server that has its store, loaded where that server runs our routes."""


class CompactionFailedError(LongtableError):
    """The run of the server that should have compacted a thread ended with an error."""


class ServerThreads(StoredThreads):
    """The threads of a server, through its API. Call it in a worker thread while the event loop
    `loop` runs. `known`: what earlier requests learnt of the server's threads.

    With `deletes`, a thread that is gone is treated as an empty thread, because some of its data
    may still be in the store.
    """

    def __init__(
        self,
        client: LangGraphClient,
        loop: asyncio.AbstractEventLoop,
        *,
        deletes: bool = False,
        ahead: ThreadsAhead | None = None,
        known: KnownThreads | None = None,
    ) -> None:
        self.client = client
        self.loop = loop
        self.deletes = deletes
        self.ahead = ahead
        self.known = known or KnownThreads()

    @property
    def optional_store(self) -> BaseStore:
        """Return the store in which runs keep their records: that of the server's own process if
        the routes run in it, otherwise the one that the server's API shows.

        Aegra's API shows only a part of the store, below the name of the user who asks, and runs
        write outside that part. LangGraph's API writes each answer as JSON, which takes longer than
        all else that a report does.
        """
        if (aegra := sys.modules.get(AEGRA_DATABASE)) is not None:
            return _StoreOnLoop(self, aegra.db_manager.get_store())
        get_store = getattr(sys.modules.get(LANGGRAPH_STORE), "get_store", None)
        if get_store is not None:
            return _StoreOnLoop(self, self.wait(get_store()))
        return _ServerStore(self)

    def wait(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Run a call of the client in its event loop, and return the result."""
        return asyncio.run_coroutine_threadsafe(call, self.loop).result()

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateSnapshot:
        """Return the newest state of a thread. Raises `ThreadNotFoundError` if there is no such
        thread.
        """
        assert checkpoint_id is None, "a server's checkpoints are not read"
        if not re.fullmatch(r"[\w-]{1,200}", thread_id, re.ASCII):
            # The client puts it into an address as it is.
            raise ThreadNotFoundError(thread_id)
        listed = self.ahead.take(thread_id) if self.ahead is not None else None
        state = _listed_state(listed) if listed is not None else None
        if state is not None:
            return state
        try:
            return self.wait(_state(self.client, thread_id))
        except ThreadNotFoundError:
            if not self.deletes:
                raise
            # Its place in the index may be left.
            return StateSnapshot({}, (), {}, None, None, None, (), ())

    def states(self) -> dict[str, str] | None:
        """Return for each thread when the server last changed it. This may have been a change of
        its title alone. Return None if the server cannot say so without the threads' values.
        """
        try:
            found = self.known.current(self.search, self.count)
        except UnprocessableEntityError:  # Aegra: a change outside of runs leaves the time as it is
            return None
        return {thread_id: str(thread["updated_at"]) for thread_id, thread in found.items()}

    def search(self, **options: Any) -> Sequence[Mapping[str, Any]]:
        """Search the server's threads; see `ThreadsClient.search`."""
        return self.wait(self.client.threads.search(**options))

    def count(self) -> int:
        """Return the number of the server's threads."""
        return self.wait(self.client.threads.count())

    def reading(self, thread_ids: Sequence[str]) -> "ServerThreads":
        """Return the threads in a form that loads the values of many at once."""
        ahead = ThreadsAhead(self.search, thread_ids)
        return ServerThreads(
            self.client, self.loop, deletes=self.deletes, ahead=ahead, known=self.known
        )

    def is_deleted(self, thread_id: str) -> bool:  # noqa: ARG002  # the server says what is there
        """Return True. The server itself tells which threads exist, so a thread without checkpoints
        has lost none.
        """
        return True

    def forget(self, thread_id: str) -> None:
        """Delete a thread on the server."""
        with suppress(NotFoundError, UnprocessableEntityError):
            self.wait(self.client.threads.delete(thread_id))

    def update(self, thread_id: str, values: Mapping[str, Any], node: str) -> None:
        """Write values into the state of a thread, in the name of a node."""
        self.wait(self.client.threads.update_state(thread_id, {**values}, as_node=node))

    @contextmanager
    def alone(self, thread_id: str, *, wait: bool = False) -> Iterator[None]:  # noqa: ARG002  # the server queues its runs itself
        """Raise `ThreadBusyError` if a run of the thread is active when the block begins."""
        with suppress(NotFoundError, UnprocessableEntityError):
            if self.wait(self.client.threads.get(thread_id))["status"] == "busy":
                raise ThreadBusyError(thread_id)
        yield


def entries_of_existing(threads: ServerThreads) -> list[KeyValue]:
    """Return id and entry in the index of each thread of the server, in no order. A thread that the
    server copied has no entry yet, so it is written here.
    """
    found = _server_threads(threads)
    entries = dict(values_in(threads.optional_store, THREADS))
    for thread_id, metadata in found.items():
        if thread_id not in entries and metadata.get("graph_id"):
            with suppress(LongtableError):
                entry = _entry_of_copy(threads, thread_id, metadata)
                if entry is not None:
                    threads.batch([PutOp(THREADS, thread_id, entry, False)])
                    entries[thread_id] = entry
    return [(thread_id, entries[thread_id]) for thread_id in found if thread_id in entries]


def _server_threads(threads: ServerThreads) -> dict[str, Mapping[str, Any]]:
    """Return the metadata of all threads of the server, by thread id."""
    try:
        found = threads.known.current(threads.search, threads.count)
    except UnprocessableEntityError:  # Aegra refuses `select`; its answer has no values anyway
        found = all_threads(threads.search)
    return {thread_id: thread["metadata"] or {} for thread_id, thread in found.items()}


def _entry_of_copy(
    threads: ServerThreads, thread_id: str, metadata: Mapping[str, Any]
) -> Entry | None:
    """Return the entry in the index for a thread that the server copied, None if no turn of it was
    copied.
    """
    state = threads.load(thread_id)
    thread = thread_of(values_of(state))
    turn = turn_of(values_of(state))
    if not turn.get("number") or not thread.messages:
        return None
    times = [str(marks_of(message).get("time") or "") for message in thread.messages]
    asked = next((each.text for each in thread.messages if each.type == "human"), "")
    return {
        "title": str(metadata.get("title") or "") or title_of(asked),
        "project": str(metadata.get("project") or ""),
        "owner": owner_of(turn),
        "created": times[0],
        "updated": max(times),
        "turns": turn["number"],
        "messages": thread.length,
        "model": str((state.values.get("brief") or {}).get("model") or ""),
    }


async def write_metadata(client: LangGraphClient, thread_id: str) -> None:
    """Copy the title and project of a thread from the index into the server's metadata, which
    `threads.search` reads.
    """
    item: Any = await client.store.get_item(THREADS, thread_id)
    if item is not None:
        metadata = {name: item["value"].get(name) or "" for name in ("title", "project")}
        await client.threads.update(thread_id, metadata=metadata)


class MetadataWriter(AsyncCallbackHandler):
    """Writes the title and project of a thread into its metadata when a run on a server ends."""

    # LangChain calls it for chains alone
    ignore_llm = ignore_chat_model = ignore_retriever = ignore_agent = ignore_custom_event = True

    def __init__(self) -> None:
        self.threads: dict[UUID, str] = {}

    async def on_chain_start(
        self,
        *_: Any,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Any = None,
        **__: Any,
    ) -> None:
        """Remember which thread a run belongs to."""
        if (
            parent_run_id is None
            and metadata
            and metadata.get("thread_id")
            and find_spec("langgraph_api")
        ):
            self.threads[run_id] = str(metadata["thread_id"])

    async def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """Write title and project of the run's thread into its metadata."""
        if thread_id := self.threads.pop(run_id, None):
            with suppress(NotFoundError):
                await write_metadata(get_client(), thread_id)

    async def on_chain_error(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """Do the same after a run that failed."""
        await self.on_chain_end(run_id=run_id)


async def compact_thread(
    client: LangGraphClient, thread_id: str, owner: str | None
) -> CompactionEvent | None:
    """Compact a thread now. Return the event that says what was done, or why nothing was compacted.
    Raises `ThreadNotFoundError`, `TurnPendingError`, `ThreadBusyError` or `CompactionFailedError`.
    """
    state, _ = await in_thread(
        find_thread, ServerThreads(client, asyncio.get_running_loop()), thread_id, owner
    )
    if is_pending(state):
        raise TurnPendingError(thread_id)
    if update := leftover_update(state):
        await client.threads.update_state(thread_id, dict(update), as_node="prepare")
    command = {
        "goto": "compact",
        "update": compacting_update(values_of(state)),
    }
    context = {"owner": owner} if owner else {}
    events: list[Event] = []
    try:
        async for part in client.runs.stream(
            thread_id,
            GRAPH,
            command=cast("Any", command),
            context=cast("Any", context),
            stream_mode=["custom"],
            multitask_strategy="reject",
        ):
            if part.event == "error":
                raise CompactionFailedError(
                    f"the server could not compact thread {thread_id!r}: {part.data}"
                )
            if part.event == "custom":
                events.append(cast("Event", part.data))
    except (ConflictError, UnprocessableEntityError) as error:
        raise ThreadBusyError(thread_id) from error
    return compaction_of(events)


async def _state(client: LangGraphClient, thread_id: str) -> StateSnapshot:
    try:
        state = await client.threads.get_state(thread_id)
    except (NotFoundError, UnprocessableEntityError) as error:
        # No such thread, or no valid id.
        raise ThreadNotFoundError(thread_id) from error
    values = _values(cast("Mapping[str, Any]", state["values"] or {}))
    tasks = tuple(_Task(task["name"], _interrupts(task)) for task in state["tasks"])
    checkpoint = state.get("checkpoint") or {}
    return StateSnapshot(
        values,
        tuple(state["next"]),
        {"configurable": {"checkpoint_id": checkpoint.get("checkpoint_id")}},
        cast("Any", state["metadata"]),
        state["created_at"],
        None,
        cast("Any", tasks),
        (),
    )


def _listed_state(thread: Mapping[str, Any]) -> StateSnapshot | None:
    """Return the state of a thread as a search of the server tells it: its values, but no
    checkpoint and no tasks. Return None before the thread's first turn: who owns it is then in its
    checkpoint alone.
    """
    values = _values(thread.get("values") or {})
    state = StateSnapshot(values, (), {}, None, thread["updated_at"], None, (), ())
    return state if turn_of(values_of(state)).get("number") else None


def _values(stored: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(stored)
    if "messages" in values:
        values["messages"] = _messages(values["messages"])
    return values


class _Task:
    """A task, with only the fields that `is_pending` and `waiting_in` read."""

    def __init__(self, name: str, interrupts: tuple[Interrupt, ...]) -> None:
        self.name = name
        self.interrupts = interrupts


def _interrupts(task: Mapping[str, Any]) -> tuple[Interrupt, ...]:
    found = task.get("interrupts") or ()
    return tuple(Interrupt(each.get("value"), id=str(each.get("id") or "")) for each in found)


def _messages(items: list[dict[str, Any]]) -> list[BaseMessage]:
    return messages_from_dict([{"type": message["type"], "data": message} for message in items])


class _StoreOnLoop(BaseStore):
    """A store of this process that works on the event loop of the server."""

    def __init__(self, threads: ServerThreads, store: BaseStore) -> None:
        self.threads = threads
        self.store = store

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        return self.threads.wait(self.store.abatch(ops))

    abatch: Any = a_from(batch)


class _ServerStore(BaseStore):
    """The store of a server, through its API."""

    def __init__(self, threads: ServerThreads) -> None:
        self.threads = threads

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        return [self._do(op) for op in ops]

    abatch: Any = a_from(batch)

    def values_in(self, namespace: Namespace) -> Iterator[KeyValue]:
        """See `longtable.store.records.item_values`."""
        search = self.threads.client.store.search_items
        found = self.threads.wait(search(namespace, limit=MOST_ITEMS))
        return (
            (item["key"], item["value"])
            for item in found["items"]
            if tuple(item["namespace"]) == namespace
        )

    def newest_in(self, namespace: Namespace, is_wanted: IsWanted, most: int) -> list[KeyValue]:
        """See `longtable.store.records.item_values`. A server cannot order values."""
        return newest_of(self.values_in(namespace), is_wanted, most)

    def _do(self, op: Op) -> Any:
        store = self.threads.client.store
        wait = self.threads.wait
        match op:
            case GetOp(namespace, key):
                stored: Any = None
                with suppress(NotFoundError):
                    stored = wait(store.get_item(namespace, key))
                return _item(stored) if stored else None  # one server answers 404, another one null
            case SearchOp(namespace, limit=limit, offset=offset):
                found = wait(store.search_items(namespace, limit=limit, offset=offset))
                return [_item(item) for item in found["items"]]
            case ListNamespacesOp((MatchCondition("prefix", path),)):
                names = wait(store.list_namespaces(prefix=list(path), limit=op.limit))
                return [tuple(namespace) for namespace in names["namespaces"]]
            case PutOp(namespace, key, None):
                return wait(store.delete_item(namespace, key))
            case PutOp(namespace, key, value):
                return wait(store.put_item(namespace, key, dict(value or {}), index=False))
        raise TypeError(f"a server's store does not do {type(op).__name__}")


def _item(stored: Mapping[str, Any]) -> Item:
    times = {name: stored[name] for name in ("created_at", "updated_at")}
    return Item(
        value=stored["value"], key=stored["key"], namespace=tuple(stored["namespace"]), **times
    )
