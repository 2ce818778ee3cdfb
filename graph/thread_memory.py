"""What `Conversation` offers beside turns: the transcript, the view, and what is remembered, to look at and to change."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from langchain_core.messages import BaseMessage
from langgraph.types import Command, StateSnapshot

from longtable.base.context import Context
from longtable.base.errors import ConfigError, EmptyMessageError, UndoTooFarError, UnknownMessageError, UnknownPinError, UnknownTopicError
from longtable.base.events import ContextCompressed, Event
from longtable.graph.damage import readable
from longtable.graph.persistence import storage_errors
from longtable.graph.preview import CompactionPreview, preview_of
from longtable.graph.running import Runner, Update, Values, left_over
from longtable.memory.archive import apage, page
from longtable.memory.merging import merged_count, unmerged
from longtable.memory.pins import Pin, live_pins, make_pin
from longtable.memory.search import Original
from longtable.memory.stamps import EXCLUDED, marked
from longtable.memory.thread import Edit, Thread
from longtable.memory.topic_strategy import topics_of
from longtable.memory.topics import Found, Topic, current, find_section, versions
from longtable.memory.view import Layout
from longtable.nodes.records import old_compactions as old_records
from longtable.nodes.records.archive_store import StoreShelf
from longtable.nodes.state import UNDER_WAY, layout_of, next_view, thread_of, turn_of
from longtable.nodes.turns.refusals import FAILED, exclusions, request_in
from longtable.tools.charts.chart_tool import Chart, chart_of
from longtable.tools.database import QueryResult

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from longtable.tools.results import ResultStore

ResultForm = Literal["rows", "arrow", "pandas"]


class ThreadMemory(Runner):
    """One thread's transcript and memory. Each method has an `a...` twin for async checkpointers and stores."""

    # -- transcript and view ----------------------------------------------------------------------------------------

    def history(self, *, start: int = 1, limit: int | None = None) -> list[BaseMessage]:
        """Return the transcript in order, live and archived alike: `limit` messages from number `start` (from 1), or all.

        An excluded message is marked: `longtable.memory.stamps.kind_of`. Raises `ThreadNotFoundError`.
        """
        thread = thread_of(self._values(self._state()))
        first, last = _range(thread, start, limit)
        return _transcript(thread, self._archived(thread, first, last), first, last)

    async def ahistory(self, *, start: int = 1, limit: int | None = None) -> list[BaseMessage]:
        """Return the transcript in order: see `history`."""
        thread = thread_of(self._values(await self._astate()))
        first, last = _range(thread, start, limit)
        return _transcript(thread, await self._aarchived(thread, first, last), first, last)

    def view(self) -> list[BaseMessage]:
        """Return exactly what the next model call would be sent. Raises `ThreadNotFoundError`."""
        values = self._values(self._state())
        with readable(self.thread_id):
            return next_view(values, self.context)

    async def aview(self) -> list[BaseMessage]:
        """Return exactly what the next model call would be sent. Raises `ThreadNotFoundError`."""
        values = self._values(await self._astate())
        with readable(self.thread_id):
            return next_view(values, self.context)

    # -- compaction -------------------------------------------------------------------------------------------------

    @overload
    def compact(self, *, preview: Literal[False] = False) -> ContextCompressed | None: ...
    @overload
    def compact(self, *, preview: Literal[True]) -> CompactionPreview | None: ...
    def compact(self, *, preview: bool = False) -> ContextCompressed | CompactionPreview | None:
        """Fold now, also under the threshold; None when there is nothing to fold. `preview`: only say what that would fold and cost.

        Raises `ThreadNotFoundError`, and `TurnPendingError` while an interrupted turn waits.
        """
        with storage_errors():
            if preview:
                return preview_of(self._resting(self._state()), self.context)
            with self._alone():
                self._keep_interrupted()
                if update := left_over(self._state()):
                    self.graph.update_state(self.config, update, as_node="prepare")
                return _compressed(list(self._run(self._fold_now(self._state()))))

    @overload
    async def acompact(self, *, preview: Literal[False] = False) -> ContextCompressed | None: ...
    @overload
    async def acompact(self, *, preview: Literal[True]) -> CompactionPreview | None: ...
    async def acompact(self, *, preview: bool = False) -> ContextCompressed | CompactionPreview | None:
        """Fold now, or say what that would fold and cost: see `compact`."""
        with storage_errors():
            if preview:
                return preview_of(self._resting(await self._astate()), self.context)
            async with self._aalone():
                await self._akeep_interrupted()
                if update := left_over(await self._astate()):
                    await self.graph.aupdate_state(self.config, update, as_node="prepare")
                command = self._fold_now(await self._astate())
                return _compressed([event async for event in self._arun(command)])

    def undo(self) -> str | None:
        """Drop the newest compaction, so that the view before it holds again; return its id, None where there is none.

        The next fold waits until new messages have come. Raises `UndoTooFarError` where its originals have retired.
        """
        return self._change(lambda values: _undo(values, self.context))

    async def aundo(self) -> str | None:
        """Drop the newest compaction: see `undo`."""
        return await self._achange(lambda values: _undo(values, self.context))

    # -- pins -------------------------------------------------------------------------------------------------------

    def pins(self) -> list[Pin]:
        """Return the statements that stay word for word, superseded ones left out."""
        return live_pins(thread_of(self._values(self._state())).pins)

    async def apins(self) -> list[Pin]:
        """Return the statements that stay word for word, superseded ones left out."""
        return live_pins(thread_of(self._values(await self._astate())).pins)

    def pin(self, text: str) -> Pin:
        """Keep a statement word for word in every view from now on, until `unpin`."""
        return self._change(lambda values: _pin(values, text))

    async def apin(self, text: str) -> Pin:
        """Keep a statement word for word: see `pin`."""
        return await self._achange(lambda values: _pin(values, text))

    def unpin(self, pin_id: str) -> None:
        """Let go of a pin, one the conversation made too. Raises `UnknownPinError`."""
        self._change(lambda values: _unpin(values, pin_id))

    async def aunpin(self, pin_id: str) -> None:
        """Let go of a pin: see `unpin`."""
        await self._achange(lambda values: _unpin(values, pin_id))

    # -- excluding --------------------------------------------------------------------------------------------------

    def exclude(self, message_id: str) -> None:
        """Leave a message out of views, summaries and recall from now on; it stays in the transcript, marked.

        A memory that holds it is made again at the next compaction. With the message that opened a failed turn goes all
        after it, and the turn is over. Raises `UnknownMessageError`.
        """
        thread = thread_of(self._values(self._state()))
        number = _live_number(thread, message_id) or _retired_number(self._archived(thread, 1, thread.archived), message_id)
        self._change(lambda values: _exclude(values, message_id, number), mid_turn=True)

    async def aexclude(self, message_id: str) -> None:
        """Leave a message out of views, summaries and recall: see `exclude`."""
        thread = thread_of(self._values(await self._astate()))
        number = _live_number(thread, message_id) or _retired_number(await self._aarchived(thread, 1, thread.archived), message_id)
        await self._achange(lambda values: _exclude(values, message_id, number), mid_turn=True)

    def include(self, message_id: str) -> None:
        """Take an excluded message in again. Raises `UnknownMessageError` where it is not excluded."""
        self._change(lambda values: _include(values, message_id), mid_turn=True)

    async def ainclude(self, message_id: str) -> None:
        """Take an excluded message in again: see `include`."""
        await self._achange(lambda values: _include(values, message_id), mid_turn=True)

    # -- topics -----------------------------------------------------------------------------------------------------

    def topics(self) -> list[Topic]:
        """Return the newest version of each topic; none where another strategy keeps the memory."""
        return current(self._topics())

    async def atopics(self) -> list[Topic]:
        """Return the newest version of each topic; none where another strategy keeps the memory."""
        return current(await self._atopics())

    def topic(self, topic_id: str) -> Topic:
        """Return a topic's newest version. Raises `UnknownTopicError`."""
        return self.versions(topic_id)[-1]

    async def atopic(self, topic_id: str) -> Topic:
        """Return a topic's newest version. Raises `UnknownTopicError`."""
        return (await self.aversions(topic_id))[-1]

    def artifact(self, topic_id: str) -> str:
        """Return a topic's document: Markdown, each section with its source messages. Raises `UnknownTopicError`."""
        return self.topic(topic_id).artifact

    async def aartifact(self, topic_id: str) -> str:
        """Return a topic's document: see `artifact`."""
        return (await self.atopic(topic_id)).artifact

    def versions(self, topic_id: str) -> list[Topic]:
        """Return all versions of a topic, oldest first. Raises `UnknownTopicError`."""
        return _versions(self._topics(), topic_id)

    async def aversions(self, topic_id: str) -> list[Topic]:
        """Return all versions of a topic, oldest first. Raises `UnknownTopicError`."""
        return _versions(await self._atopics(), topic_id)

    def find_section(self, keyword: str) -> Found | None:
        """Return the topic section that answers a keyword, titles before contents; its sources are message numbers."""
        return find_section(topics_of(thread_of(self._values(self._state()))), keyword)

    async def afind_section(self, keyword: str) -> Found | None:
        """Return the topic section that answers a keyword: see `find_section`."""
        return find_section(topics_of(thread_of(self._values(await self._astate()))), keyword)

    # -- results ----------------------------------------------------------------------------------------------------

    @overload
    def result(self, handle: str, form: Literal["rows"] = "rows") -> QueryResult: ...
    @overload
    def result(self, handle: str, form: Literal["arrow"]) -> "pyarrow.Table": ...
    @overload
    def result(self, handle: str, form: Literal["pandas"]) -> "pandas.DataFrame": ...
    def result(self, handle: str, form: ResultForm = "rows") -> "QueryResult | pyarrow.Table | pandas.DataFrame":
        """Return the whole result that a handle (r1, r2 ...) names: its rows, or an Arrow table, or a DataFrame.

        Raises `UnknownResultError`, `ResultGoneError` with its SQL.
        """
        self._values(self._state())
        return self._whole_result(handle, form)

    @overload
    async def aresult(self, handle: str, form: Literal["rows"] = "rows") -> QueryResult: ...
    @overload
    async def aresult(self, handle: str, form: Literal["arrow"]) -> "pyarrow.Table": ...
    @overload
    async def aresult(self, handle: str, form: Literal["pandas"]) -> "pandas.DataFrame": ...
    async def aresult(self, handle: str, form: ResultForm = "rows") -> "QueryResult | pyarrow.Table | pandas.DataFrame":
        """Return the whole result that a handle names: see `result`."""
        self._values(await self._astate())
        return await asyncio.to_thread(self._whole_result, handle, form)

    def chart(self, handle: str, spec: Mapping[str, object] | None = None, *, wish: str = "") -> Chart:
        """Return a result as a chart, by the spec of a `chart` event or by a wish ("line by month"); notebooks show it.

        Raises `ChartSpecError` and what `result` raises. Pictures of it need the extra `charts`, its text does not.
        """
        return chart_of(handle, self.result(handle), spec=spec, wish=wish)

    async def achart(self, handle: str, spec: Mapping[str, object] | None = None, *, wish: str = "") -> Chart:
        """Return a result as a chart: see `chart`."""
        return await asyncio.to_thread(chart_of, handle, await self.aresult(handle), spec=spec, wish=wish)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _fold_now(self, state: StateSnapshot) -> Command[str]:
        return Command(goto="compact", update={"turn": {**turn_of(self._resting(state)), "status": "compacting"}})

    def _archived(self, thread: Thread, first: int, last: int) -> list[Original]:
        """Return the retired messages of a range of numbers."""
        last = min(last, thread.archived)
        with readable(self.thread_id, "its archive"):
            return page(self._shelf(), self.thread_id, first, last) if first <= last else []

    async def _aarchived(self, thread: Thread, first: int, last: int) -> list[Original]:
        last = min(last, thread.archived)
        with readable(self.thread_id, "its archive"):
            return await apage(self._shelf(), self.thread_id, first, last) if first <= last else []

    def _topics(self) -> list[Topic]:
        """Return every version of every topic, also of those whose compactions retired."""
        thread = thread_of(self._values(self._state()))
        batches = old_records.gets(self.thread_id, 1, merged_count(thread.compactions))
        with readable(self.thread_id, "its archive"):
            return _topics_with(thread, [item for batch in batches for item in self._shelf().store.batch(batch)])

    async def _atopics(self) -> list[Topic]:
        thread = thread_of(self._values(await self._astate()))
        batches = old_records.gets(self.thread_id, 1, merged_count(thread.compactions))
        with readable(self.thread_id, "its archive"):
            return _topics_with(thread, [item for batch in batches for item in await self._shelf().store.abatch(batch)])

    def _whole_result(self, handle: str, form: ResultForm) -> "QueryResult | pyarrow.Table | pandas.DataFrame":
        results = self._results()
        whole = {"rows": results.get, "arrow": results.arrow, "pandas": results.frame}
        if form not in whole:
            raise ConfigError(f"a result is returned as {', '.join(whole)}, found {form!r}")
        return whole[form](self.thread_id, handle)

    def _results(self) -> "ResultStore":
        if self.results is None:
            raise ConfigError("this conversation has no result store: give it the one of build_graph, Conversation(..., results=...)")
        return self.results

    def _shelf(self) -> StoreShelf:
        if self.graph.store is None:
            raise ConfigError("messages of this thread have retired to a store: compile the graph with it, graph.compile(..., store=...)")
        return StoreShelf(self.graph.store)


def _topics_with(thread: Thread, retired: Sequence[Any]) -> list[Topic]:
    return topics_of(replace(thread, compactions=unmerged(old_records.read(retired), thread.compactions)))


def _edit(op: str, **more: Any) -> Edit:
    return cast("Edit", {"id": uuid.uuid4().hex, "op": op, **more})


def _range(thread: Thread, start: int, limit: int | None) -> tuple[int, int]:
    if start < 1 or (limit is not None and limit < 0):
        raise ConfigError(f"history counts from 1 and takes no negative limit, found start={start}, limit={limit}")
    return start, thread.length if limit is None else min(thread.length, start + limit - 1)


def _transcript(thread: Thread, archived: Sequence[Original], first: int, last: int) -> list[BaseMessage]:
    live = thread.messages[max(0, first - 1 - thread.archived) : max(0, last - thread.archived)]
    messages = [*(original.message for original in archived), *live]
    return [marked(message, kind=EXCLUDED) if message.id in thread.excluded else message for message in messages]


def _live_number(thread: Thread, message_id: str) -> int:
    """Return the number of a live message, 0 where it is none."""
    return next((thread.archived + i + 1 for i, message in enumerate(thread.messages) if message.id == message_id), 0)


def _retired_number(archived: Sequence[Original], message_id: str) -> int:
    """Return the number of a retired message. Raises `UnknownMessageError`."""
    for original in archived:
        if original.message.id == message_id:
            return original.number
    raise UnknownMessageError(message_id)


def _undo(values: Values, context: Context) -> tuple[str | None, Update]:
    layout = layout_of(values, context)
    record = layout.thread.live[0]
    if record is None:
        return None, {}
    if "merged" in record:  # what stood before it is in the store
        raise UndoTooFarError(layout.thread.archived)
    edit = _edit("undo", record=record["id"])
    before = replace(layout.thread, edits=[*layout.thread.edits, edit])
    older = before.live[0]
    if before.archived > (older["count"] if older else 0):
        raise UndoTooFarError(before.archived)
    # The breaker: or the next call would fold the same rounds at once; not where what came back does not fit a call.
    tokens = Layout(before, layout.frame).parts.total
    breaker = tokens if tokens <= layout.frame.hard_tokens else None
    return str(record["id"]), {"edits": [edit], "turn": {**turn_of(values), "breaker": breaker}}


def _pin(values: Values, text: str) -> tuple[Pin, Update]:
    if not text.strip():
        raise EmptyMessageError
    pin = make_pin(text, turn=turn_of(values).get("number", 0))
    return pin, {"edits": [_edit("pin", pin=pin.as_json())]}


def _unpin(values: Values, pin_id: str) -> tuple[None, Update]:
    pins = thread_of(values).pins
    pin = next((pin for pin in pins if pin.id == pin_id), None)
    if pin is None:
        raise UnknownPinError(pin_id)
    # With it go the older ones on its matter, or what it superseded would come back, and other cuts of the same words.
    gone = [other.id for other in pins if other.id == pin.id or other.matter == pin.matter or _same_words(other, pin)]
    return None, {"edits": [_edit("unpin", pins=gone)]}


def _same_words(one: Pin, other: Pin) -> bool:
    return one.message_id == other.message_id != "" and (one.text in other.text or other.text in one.text)


def _exclude(values: Values, message_id: str, number: int) -> tuple[None, Update]:
    thread, turn = thread_of(values), turn_of(values)
    if turn.get("status") in UNDER_WAY or "failure" in turn:
        request = request_in(thread, turn["number"])
        if request and request[0].id == message_id:  # what followed answers nothing then
            turn.pop("failure", None)
            return None, {"edits": exclusions(thread, request), "turn": {**turn, "status": FAILED}}
    return None, {"edits": [_edit("exclude", message=message_id, number=number)]}


def _include(values: Values, message_id: str) -> tuple[None, Update]:
    if message_id not in thread_of(values).excluded:
        raise UnknownMessageError(message_id)
    return None, {"edits": [_edit("include", message=message_id)]}


def _versions(topics: Sequence[Topic], topic_id: str) -> list[Topic]:
    found = versions(topics, topic_id)
    if not found:
        raise UnknownTopicError(topic_id)
    return found


def _compressed(events: list[Event]) -> ContextCompressed | None:
    return next((event for event in events if event["type"] == "context_compressed"), None)
