"""A server's threads through its own API: what the routes read of them, compact and delete."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.types import StateSnapshot
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from longtable.base.errors import LongtableError, ThreadBusyError, ThreadNotFoundError, TurnPendingError
from longtable.base.events import Event
from longtable.base.twins import a_from, in_thread
from longtable.graph.thread_runner import CompactionEvent, compaction_of
from longtable.graph.thread_state import StoredThreads, is_pending, is_stored, leftover_update
from longtable.graph.threads import delete as delete_stored
from longtable.graph.transcripts import find_thread
from longtable.nodes.state import turn_of

if TYPE_CHECKING:
    from longtable.graph.archive_files import ArchiveFiles
    from longtable.tools.results import ResultStore

Result = TypeVar("Result")
GRAPH = "longtable"


class CompactionFailedError(LongtableError):
    """The server's run that was to compact a thread ended with an error."""


class ServerThreads(StoredThreads):
    """A server's threads through its API; called in a thread, while the event loop it was made in runs.

    `deletes`: what is kept of a thread may be deleted, too, and a thread that is gone is an empty one.
    """

    def __init__(self, client: LangGraphClient, *, deletes: bool = False) -> None:
        self.client, self.deletes, self.loop = client, deletes, asyncio.get_running_loop()

    @property
    def optional_store(self) -> BaseStore:
        return _ServerStore(self)

    def wait(self, call: Coroutine[Any, Any, Result]) -> Result:
        """Run a call of the client in its event loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(call, self.loop).result()

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateSnapshot:
        """Return a thread's newest state. Raises `ThreadNotFoundError`."""
        assert checkpoint_id is None, "a server's checkpoints are not read"
        try:
            return self.wait(_state(self.client, thread_id))
        except ThreadNotFoundError:
            if not self.deletes:
                raise
            return StateSnapshot({}, (), {}, None, None, None, (), ())  # its place in the index may be left

    def forget(self, thread_id: str) -> None:
        """Delete a thread in the server."""
        assert self.deletes, "this only reads"
        with suppress(NotFoundError, UnprocessableEntityError):
            self.wait(self.client.threads.delete(thread_id))


async def compact(client: LangGraphClient, thread_id: str, owner: str | None) -> CompactionEvent | None:
    """Compact a thread now; None when there is nothing to compact. Raises `ThreadNotFoundError`, `TurnPendingError`, `ThreadBusyError`."""
    state, _ = await in_thread(find_thread, ServerThreads(client), thread_id, owner)
    if is_pending(state):
        raise TurnPendingError(thread_id)
    if update := leftover_update(state):
        await client.threads.update_state(thread_id, dict(update), as_node="prepare")
    command = {"goto": "compact", "update": {"turn": {**turn_of(state.values), "status": "compacting"}}}
    context = {"owner": owner} if owner else {}
    told: list[Event] = []
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
                raise CompactionFailedError(f"the server could not compact thread {thread_id!r}: {part.data}")
            if part.event == "custom":
                told.append(cast("Event", part.data))
    except (ConflictError, UnprocessableEntityError) as error:
        raise ThreadBusyError(thread_id) from error
    return compaction_of(told)


async def delete(
    client: LangGraphClient, thread_id: str, owner: str | None, *, results: "ResultStore | None", archive: "ArchiveFiles | None"
) -> None:
    """Delete a thread with all that is kept of it here, or what is left of one that the server itself deleted.

    Raises `ThreadNotFoundError`, `ThreadBusyError` while a run is under way.
    """
    threads = ServerThreads(client, deletes=True)
    state, _ = await in_thread(find_thread, threads, thread_id, owner)
    if is_stored(state) and (await client.threads.get(thread_id))["status"] == "busy":
        raise ThreadBusyError(thread_id)
    await in_thread(delete_stored, threads, thread_id, owner, results=results, archive=archive)


async def _state(client: LangGraphClient, thread_id: str) -> StateSnapshot:
    try:
        found = await client.threads.get_state(thread_id)
    except (NotFoundError, UnprocessableEntityError) as error:  # no such thread, or an id that can be none
        raise ThreadNotFoundError(thread_id) from error
    values = dict(cast("Mapping[str, Any]", found["values"] or {}))
    if "messages" in values:
        values["messages"] = _messages(values["messages"])
    tasks = tuple(_Task(task["name"]) for task in found["tasks"])
    return StateSnapshot(
        values, tuple(found["next"]), {}, cast("Any", found["metadata"]), found["created_at"], None, cast("Any", tasks), ()
    )


class _Task:
    """What `is_pending` asks of a task."""

    def __init__(self, name: str) -> None:
        self.name = name


def _messages(given: list[dict[str, Any]]) -> list[BaseMessage]:
    return messages_from_dict([{"type": message["type"], "data": message} for message in given])


class _ServerStore(BaseStore):
    """A server's store as far as it is read, and what is kept of a thread deleted."""

    def __init__(self, threads: ServerThreads) -> None:
        self.threads = threads

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        return [self._do(op) for op in ops]

    abatch: Any = a_from(batch)

    def _do(self, op: Op) -> Any:
        store, deletes = self.threads.client.store, self.threads.deletes
        match op:
            case GetOp(namespace, key):
                found: Any = None
                with suppress(NotFoundError):
                    found = self.threads.wait(store.get_item(namespace, key))
                return _item(found) if found else None  # one server answers 404, another one null
            case SearchOp(namespace, limit=limit) if deletes:
                return [_item(item) for item in self.threads.wait(store.search_items(namespace, limit=limit))["items"]]
            case ListNamespacesOp((MatchCondition("prefix", path),)) if deletes:
                names = self.threads.wait(store.list_namespaces(prefix=list(path), limit=op.limit))
                return [tuple(namespace) for namespace in names["namespaces"]]
            case PutOp(namespace, key, None) if deletes:
                self.threads.wait(store.delete_item(namespace, key))
                return None
        raise TypeError(f"a server's store is only read, found {type(op).__name__}")


def _item(found: Mapping[str, Any]) -> Item:
    times = {name: found[name] for name in ("created_at", "updated_at")}
    return Item(value=found["value"], key=found["key"], namespace=tuple(found["namespace"]), **times)
