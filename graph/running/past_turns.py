"""The turns of a thread, each with its lasting events, read page by page."""

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.store.base import GetOp, Item
from langgraph.types import StateSnapshot

from longtable.base.errors import ConfigError, LongtableError
from longtable.base.events import Event
from longtable.base.stored import thread_namespace
from longtable.graph.ratings import ratings_in
from longtable.graph.running.past_events import (
    MOST_ROWS,
    KeptTurn,
    PastResult,
    has_result,
    past_events,
    status_of_turn,
)
from longtable.graph.thread_state import StoredThreads, waiting_in
from longtable.graph.transcripts import unfinished_failure
from longtable.memory.compaction.merging import unmerged
from longtable.memory.messages.call_reports import REPORT
from longtable.memory.messages.marks import mark_of, marks_of, turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.memory.records import Compaction
from longtable.memory.thread import Edit, Thread
from longtable.nodes.closing.failures import failed_or_open
from longtable.nodes.state import UNDER_WAY, State, thread_of, turn_of, values_of
from longtable.nodes.tooling.audit import AuditEntry
from longtable.nodes.tooling.tool_jobs import answer_json
from longtable.store.damage import readable
from longtable.store.records.retired import DAMAGED, key_of, page
from longtable.store.records.retired_store import StoreArchive
from longtable.store.storage_errors import storage_errors
from longtable.tools.cells import json_rows

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultStore


@dataclass(frozen=True)
class PastTurn:
    """One turn of a thread, as a page shows it."""

    number: int
    id: str
    """Id of the user's message that opened the turn."""
    question: str
    """The text of that message."""
    time: str
    """When the message was accepted, in ISO 8601."""
    status: str
    """How the turn ended: the status of its answer, or the code of its failure. It is "running"
    while the turn runs, and if it was interrupted and can be resumed. It is "" if the turn was left
    without an answer.
    """
    excluded: bool
    """Whether the question is excluded from calls."""
    events: list[Event]
    """The turn's lasting events, as `Conversation.turns` lists them."""
    rating: int = 0
    """1 if a person found the answer right, -1 if wrong, 0 if nobody has said."""


@storage_errors()
def past_turns(
    threads: StoredThreads,
    thread_id: str,
    state: StateSnapshot,
    *,
    start: int = 1,
    limit: int | None = None,
    results: "ResultStore | None" = None,
) -> list[PastTurn]:
    """Return the turns of a thread, oldest first. See `Conversation.turns`.

    Of archived messages only those of these turns are read, and about two for each doubling of
    their number to find the first.
    """
    values = values_of(state)
    newest = turn_of(values).get("number", 0)
    first, last = turn_range(newest, start, limit)
    reader = _Reader(threads, thread_id, values, results)
    with readable(thread_id, "its archive"):
        kept = list(reader.kept(first, last))
    if kept and kept[-1].number == newest:
        kept[-1] = reader.newest(kept[-1], state)
    thread = thread_of(values)
    scores = {rating.turn: rating.score for rating in ratings_in(thread.edits, {})}
    return [_shown(turn, thread.excluded, scores) for turn in kept]


def turn_range(newest: int, start: int, limit: int | None) -> tuple[int, int]:
    """Return the numbers of the first and the last turn of a page. A negative `start` counts from
    the newest turn, which is -1. Raises `ConfigError` for a start of 0 and a negative limit.
    """
    if start == 0 or (limit is not None and limit < 0):
        raise ConfigError(
            f"turns count from 1, or from -1 at the newest, and take no negative limit, found"
            f" start={start}, limit={limit}"
        )
    first = start if start > 0 else max(1, newest + 1 + start)
    return first, newest if limit is None else min(newest, first + limit - 1)


def _shown(turn: KeptTurn, excluded: Mapping[str, int], scores: Mapping[int, int]) -> PastTurn:
    question = turn.question
    return PastTurn(
        number=turn.number,
        id=str(question.id) if question is not None else "",
        question=str(question.text) if question is not None else "",
        time=str(mark_of(question, "time") or "") if question is not None else "",
        status=status_of_turn(turn),
        excluded=question is not None and question.id in excluded,
        events=past_events(turn),
        rating=scores.get(turn.number, 0),
    )


@dataclass(frozen=True)
class _Reader:
    """Reads what is kept of the turns of one thread."""

    threads: StoredThreads
    thread_id: str
    values: State
    results: "ResultStore | None"

    def kept(self, first: int, last: int) -> Iterator[KeptTurn]:
        """Yield the turns with these numbers, as far as the thread has messages of them."""
        thread = thread_of(self.values)
        start = self._first_of(thread, first)
        end = self._first_of(thread, last + 1) - 1
        messages = self._messages(thread, start, end)
        records = self._compactions(thread, first)
        place = start
        for number, group in groupby(messages, key=turn_number):
            of_turn = list(group)
            if first <= number <= last:
                yield KeptTurn(
                    number=number,
                    messages=of_turn,
                    first=place,
                    compactions=[record for record in records if record["turn"] == number],
                    undone=thread.undone,
                    edits=[edit for edit in thread.edits if _turn_of_edit(edit) == number],
                    results=self._results(of_turn),
                    audit=self._audit(of_turn),
                )
            place += len(of_turn)

    def newest(self, turn: KeptTurn, state: StateSnapshot) -> KeptTurn:
        """Return the thread's newest turn with what its record and its open questions say."""
        record = turn_of(self.values)
        status = record.get("status", "running")
        waiting: list[Event] = []
        for one in waiting_in(state):
            voice = record.get("voice")
            event = {**one.event, "voice": voice} if voice else one.event
            waiting.append(cast("Event", event))
        is_open = failed_or_open(record) or bool(waiting)
        return replace(
            turn,
            status="running" if status in UNDER_WAY else status,
            is_open=is_open,
            waiting=waiting,
            edits=[*turn.edits, *unfinished_failure(self.threads, self.thread_id, record)],
        )

    def _first_of(self, thread: Thread, turn: int) -> int:
        """Return the number of the first message whose turn is at least `turn`. Messages stand in
        the order of their turns.
        """
        archived = thread.archived
        place = bisect.bisect_left(range(1, archived + 1), turn, key=self._turn_in_archive)
        if place < archived:
            return place + 1
        return archived + 1 + bisect.bisect_left(thread.messages, turn, key=turn_number)

    def _turn_in_archive(self, number: int) -> int:
        namespace = thread_namespace("archive", self.thread_id)
        (item,) = StoreArchive(self.threads.store).get(namespace, [key_of(number)])
        turn = (item or {}).get("turn")
        if isinstance(turn, int):
            return turn
        # Missing or damaged: the page that is read then says so.
        return page(StoreArchive(self.threads.store), self.thread_id, number, number)[0].turn

    def _messages(self, thread: Thread, first: int, last: int) -> list[BaseMessage]:
        """Return the messages `first` to `last`, whether they are archived or live."""
        archived = thread.archived
        messages: list[BaseMessage] = []
        if first <= min(last, archived):
            archive = StoreArchive(self.threads.store)
            originals = page(archive, self.thread_id, first, min(last, archived))
            messages = [original.message for original in originals]
        return [*messages, *thread.messages[max(0, first - 1 - archived) : max(0, last - archived)]]

    def _compactions(self, thread: Thread, first: int) -> Sequence[Compaction]:
        """Return the compactions made in turn `first` or later. Those in the store are read only if
        they may be as new.
        """
        merged = [record["turn"] for record in thread.compactions if "merged" in record]
        retired: Sequence[Compaction] = ()
        if merged and max(merged) >= first:
            retired = self.threads.retired_compactions(self.thread_id, thread)
        return [each for each in unmerged(retired, thread.compactions) if each["turn"] >= first]

    def _results(self, messages: Sequence[BaseMessage]) -> dict[str, PastResult]:
        handles = [
            str(answer_json(message).get("handle") or "")
            for message in messages
            if isinstance(message, ToolMessage) and has_result(message)
        ]
        found = {handle: self._result(handle) for handle in handles if handle}
        return {handle: result for handle, result in found.items() if result is not None}

    def _result(self, handle: str) -> PastResult | None:
        """Return what is left of a result, None if the store does not know it."""
        if self.results is None:
            return None
        try:
            meta = self.results.meta(self.thread_id, handle)
        except LongtableError:  # never stored here: the message's preview is all there is
            return None
        gone = ""
        rows: Sequence[Sequence[Any]] = []
        try:
            rows = json_rows(self.results.page(self.thread_id, handle, size=MOST_ROWS).rows)
        except LongtableError as error:
            gone = str(error)
        return PastResult(
            sql=meta.sql,
            columns=meta.columns,
            column_types=meta.types,
            rows=rows,
            row_count=meta.row_count,
            gone=gone,
        )

    def _audit(self, messages: Sequence[BaseMessage]) -> dict[str, AuditEntry]:
        """Return the audit entries of calls that an older version ran, by key."""
        old = {
            message.tool_call_id
            for message in messages
            if isinstance(message, ToolMessage) and REPORT not in marks_of(message)
        }
        if not old or self.threads.optional_store is None:
            return {}
        namespace = thread_namespace("audit", self.thread_id)
        keys = _audit_keys(messages, old)
        items = self.threads.batch([GetOp(namespace, key) for key in keys])
        return {
            key: AuditEntry.from_json(item.value)
            for key, item in zip(keys, items, strict=True)
            if isinstance(item, Item) and DAMAGED not in item.value
        }


def _audit_keys(messages: Sequence[BaseMessage], call_ids: set[str]) -> list[str]:
    keys: list[str] = []
    for message in messages:
        calls = all_calls(message) if isinstance(message, AIMessage) else []
        for place, call in enumerate(calls):
            if call["id"] in call_ids:
                keys.append(f"{message.id}:{place}")
    return keys


def _turn_of_edit(edit: Edit) -> int:
    """Return the turn that an edit belongs to, 0 if it belongs to none."""
    if edit["op"] == "pin":
        return int(edit["pin"].get("turn", 0))
    return edit.get("turn", 0)
