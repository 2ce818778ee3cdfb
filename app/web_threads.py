"""A server's threads through its own API: what the routes read of them, fold, and delete."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.types import StateSnapshot
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from longtable.base.errors import LongtableError, ThreadBusyError, ThreadNotFoundError, TurnPendingError
from longtable.base.events import ContextCompressed
from longtable.graph.operations import delete_steps
from longtable.graph.running import is_pending, left_over
from longtable.graph.steps import Batch, Drop, Forget, Load, Page, Step, Steps, carried, is_there
from longtable.graph.transcripts import seen_steps
from longtable.memory.archive import apage
from longtable.nodes.records.archive_store import StoreShelf
from longtable.nodes.state import turn_of

if TYPE_CHECKING:
    from longtable.graph.archive_files import ArchiveFiles
    from longtable.tools.results import ResultStore

Result = TypeVar("Result")
GRAPH = "longtable"


class CompactionFailedError(LongtableError):
    """The server's run that was to fold a thread ended with an error."""


async def read(steps: Steps[Result], client: LangGraphClient) -> Result:
    """Carry out an operation that only reads, through a server's API."""
    return await carried(steps, lambda step: _read(step, client))


async def compact(client: LangGraphClient, thread_id: str, owner: str | None) -> ContextCompressed | None:
    """Fold a thread now; None when there is nothing to fold. Raises `ThreadNotFoundError`, `TurnPendingError`, `ThreadBusyError`."""
    state, _ = await read(seen_steps(thread_id, owner), client)
    if is_pending(state):
        raise TurnPendingError(thread_id)
    if update := left_over(state):
        await client.threads.update_state(thread_id, update, as_node="prepare")
    command = {"goto": "compact", "update": {"turn": {**turn_of(state.values), "status": "compacting"}}}
    context = {"owner": owner} if owner else {}
    made: ContextCompressed | None = None
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
                raise CompactionFailedError(f"the server could not fold thread {thread_id!r}: {part.data}")
            if part.event == "custom" and part.data.get("type") == "context_compressed":
                made = cast("ContextCompressed", part.data)
    except (ConflictError, UnprocessableEntityError) as error:
        raise ThreadBusyError(thread_id) from error
    return made


async def delete(
    client: LangGraphClient, thread_id: str, owner: str | None, *, results: "ResultStore | None", archive: "ArchiveFiles | None"
) -> None:
    """Delete a thread with all that is kept of it here, or what is left of one that the server itself deleted.

    Raises `ThreadNotFoundError`, `ThreadBusyError` while a run is under way.
    """
    state, _ = await carried(seen_steps(thread_id, owner), lambda step: _delete(step, client))
    if is_there(state) and (await client.threads.get(thread_id))["status"] == "busy":
        raise ThreadBusyError(thread_id)
    await carried(delete_steps(thread_id, owner, results=results, archive=archive), lambda step: _delete(step, client))


async def _delete(step: Step, client: LangGraphClient) -> Any:
    match step:
        case Load(thread_id):
            try:
                return await _state(client, thread_id)
            except ThreadNotFoundError:  # its place in the index may be left
                return StateSnapshot({}, (), {}, None, None, None, (), ())
        case Batch(ops):
            return await _ServerStore(client, deletes=True).abatch(ops)
        case Forget(thread_id):
            with suppress(NotFoundError, UnprocessableEntityError):
                await client.threads.delete(thread_id)
            return None
        case Drop(kept, thread_id):
            return await asyncio.to_thread(kept.delete, thread_id)
        case _:
            raise TypeError(f"this only deletes, found {type(step).__name__}")


async def _read(step: Step, client: LangGraphClient) -> Any:
    match step:
        case Load(thread_id):
            return await _state(client, thread_id)
        case Batch(ops):
            return await _ServerStore(client).abatch(ops)
        case Page(thread_id, first, last):
            return await apage(StoreShelf(_ServerStore(client)), thread_id, first, last) if first <= last else []
        case _:
            raise TypeError(f"this only reads, found {type(step).__name__}")


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
    """A server's store as far as it is read, and what is kept of a thread deleted (`deletes`)."""

    def __init__(self, client: LangGraphClient, *, deletes: bool = False) -> None:
        self.client, self.deletes = client, deletes

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        raise TypeError(f"a server's store is awaited, found {len(list(ops))} operations that are not")

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        return [await self._done(op) for op in ops]

    async def _done(self, op: Op) -> Any:
        match op:
            case GetOp(namespace, key):
                found: Any = None
                with suppress(NotFoundError):
                    found = await self.client.store.get_item(namespace, key)
                return _item(found) if found else None  # one server answers 404, another one null
            case SearchOp(namespace, limit=limit) if self.deletes:
                return [_item(item) for item in (await self.client.store.search_items(namespace, limit=limit))["items"]]
            case ListNamespacesOp((MatchCondition("prefix", path),)) if self.deletes:
                names = await self.client.store.list_namespaces(prefix=list(path), limit=op.limit)
                return [tuple(namespace) for namespace in names["namespaces"]]
            case PutOp(namespace, key, None) if self.deletes:
                await self.client.store.delete_item(namespace, key)
                return None
        raise TypeError(f"a server's store is only read, found {type(op).__name__}")


def _item(found: Mapping[str, Any]) -> Item:
    times = {name: found[name] for name in ("created_at", "updated_at")}
    return Item(value=found["value"], key=found["key"], namespace=tuple(found["namespace"]), **times)
