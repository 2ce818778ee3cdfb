"""Rebuild the events of a past turn from what is kept of it. Pure: values in, events out.

Events that last: see `LASTING`. Others are told in a stream alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from longtable.base.events import (
    AnswerEvent,
    AnswerStatus,
    ChartShown,
    ContextPassed,
    ContextUsage,
    Event,
    Failed,
    ModelFallback,
    PassedMaterial,
    QueryFinished,
    QueryStarted,
    ReasoningEvent,
    Recall,
    SchemaChanged,
    SpokenAnswer,
    Steered,
    Token,
    ToolFinished,
    ToolStarted,
    UnsupportedNumbers,
    Verified,
    VoiceStarted,
)
from longtable.graph.running.stream_events import added_tokens, answers_in
from longtable.memory.counting.provider_reports import reported
from longtable.memory.messages.call_reports import REPORT, answer_report, tool_report
from longtable.memory.messages.marks import (
    GIVEN,
    RECALLED,
    STEERED,
    TABLES,
    VERIFIED,
    kind_of,
    mark_of,
    marks_of,
)
from longtable.memory.messages.metadata import Passed, metadata_of
from longtable.memory.messages.reasoning import reasoning_of
from longtable.memory.messages.rounds import CHANGED, all_calls
from longtable.memory.records import Compaction
from longtable.memory.thread import Edit, ends_of
from longtable.memory.voices import VOICE
from longtable.nodes.compacting.compaction_events import compressed_event
from longtable.nodes.state import FOOTER, pins_changed
from longtable.nodes.team.mode_hook import answer_text
from longtable.nodes.tooling.audit import AuditEntry
from longtable.nodes.tooling.recall import recall_event
from longtable.nodes.tooling.tool_call import call_database
from longtable.nodes.tooling.tool_jobs import answer_json
from longtable.tools.memory_tools import answered

LASTING = (
    "answer",
    "approval_requested",
    "chart",
    "context_compressed",
    "context_passed",
    "context_usage",
    "failed",
    "input_requested",
    "model_fallback",
    "pins_changed",
    "query_finished",
    "query_started",
    "reasoning",
    "recall",
    "schema_changed",
    "steered",
    "token",
    "tool_finished",
    "tool_started",
    "unsupported_numbers",
    "voice_started",
)
"""Types of events that a past turn has."""
MOST_ROWS = 200
"""Most rows of a result in a `query_finished` event of a past turn. `row_count` is of all rows."""
RUN_SQL = "run_sql"
CHART = "show_chart"
DETAILS = ("problem", "rule", "line", "column", "nearest")
NOT_STORED = "the thread keeps no more of it: its result was not stored"


@dataclass(frozen=True)
class PastResult:
    """What is left of a stored result: its metadata and its first rows, as JSON values. `gone`: why
    rows are missing, "" if the first `MOST_ROWS` are there.
    """

    sql: str
    columns: Sequence[str]
    column_types: Sequence[str]
    rows: Sequence[Sequence[Any]]
    row_count: int
    gone: str = ""


@dataclass(frozen=True)
class KeptTurn:
    """Everything that is kept of one turn."""

    number: int
    messages: Sequence[BaseMessage]
    first: int
    """Number of the first message in the transcript, counted from 1."""
    compactions: Sequence[Compaction] = ()
    """The compactions that were made in this turn, or after it for the next."""
    undone: frozenset[str] = frozenset()
    edits: Sequence[Edit] = ()
    """The edits that name this turn."""
    results: Mapping[str, PastResult] = field(default_factory=dict)
    """The results of its queries, by handle."""
    audit: Mapping[str, AuditEntry] = field(default_factory=dict)
    """Audit entries by key, of the calls whose tool messages have no report."""
    status: AnswerStatus | None = None
    """The status of the thread's newest turn, None for an older turn."""
    is_open: bool = False
    """True for the newest turn while it is not closed."""
    waiting: Sequence[Event] = ()
    """The open questions of the turn."""

    @property
    def own(self) -> list[BaseMessage]:
        """Return the turn's messages without conversation that the caller handed in."""
        given = [i for i, message in enumerate(self.messages) if mark_of(message, GIVEN) is True]
        return list(self.messages[given[-1] + 1 :] if given else self.messages)

    @property
    def question(self) -> BaseMessage | None:
        """Return the user's message that opened the turn."""
        return next((message for message in self.own if message.type == "human"), None)

    @property
    def failure(self) -> Edit | None:
        """Return the edit that says why the turn failed, None if it did not, or was answered
        since.
        """
        if self.answer is not None:
            return None
        return next((edit for edit in reversed(self.edits) if edit["op"] == "fail"), None)

    @property
    def answer(self) -> AIMessage | None:
        """Return the message that ended the turn, None if the turn has no answer."""
        last = self.own[-1] if self.own else None
        if self.is_open or not isinstance(last, AIMessage) or all_calls(last):
            return None
        return last


def status_of_turn(turn: KeptTurn) -> str:
    """Return how a turn ended: the status of its answer, the code of its failure, what it waits
    for, "running" while it can be continued, or "" if it was left without an answer.
    """
    if turn.waiting:
        return turn.waiting[0]["type"]
    if (failure := turn.failure) is not None:
        return failure.get("code", "failed")
    if turn.answer is None:
        return "" if turn.status is None or turn.status == "answered" else turn.status
    if turn.status is not None:
        return turn.status
    notice = metadata_of(turn.answer).notice
    return notice or ("cut_off" if _is_cut_off(turn.answer) else "answered")


def _is_cut_off(answer: AIMessage) -> bool:
    reasons = [answer.response_metadata.get(name) for name in ("finish_reason", "stop_reason")]
    return bool({"length", "max_tokens"}.intersection(map(str, reasons)))


def past_events(turn: KeptTurn) -> list[Event]:
    """Return the lasting events of a turn, in the order in which they were told. Events of calls
    that ran side by side stand in the order of the calls.
    """
    return list(_events(turn))


def _events(turn: KeptTurn) -> Iterator[Event]:
    own = turn.own
    first = turn.first + len(turn.messages) - len(own)
    last = turn.first + len(turn.messages) - 1
    speaker = ""
    yield from _compactions(turn, range(first))
    for number, message in enumerate(own, first):
        if message.type == "human":
            yield from _arrival(message, turn.number)
        elif isinstance(message, AIMessage):
            voice = str(mark_of(message, VOICE) or "")
            yield from _of_voice(voice, _said(message, voice if voice != speaker else ""))
            speaker = voice
            yield from _of_voice(voice, _calls(turn, message, own[number - first + 1 :]))
            yield from _closing(turn, message)
        if number < last or turn.answer is None:
            yield from _compactions(turn, range(number, number + 1))
    yield from _unplaced_pins(turn)
    yield from turn.waiting
    yield from _end(turn)
    if turn.answer is not None:
        yield from _compactions(turn, range(last, last + 1))
    yield from _compactions(turn, range(last + 1, 10**12))


def _of_voice(voice: str, events: Iterator[Event]) -> Iterator[Event]:
    """Yield the events, which name the voice if there is one."""
    for event in events:
        yield cast("Event", {**event, "voice": voice}) if voice else event


# -- messages --------------------------------------------------------------------------------------


def _arrival(message: BaseMessage, turn: int) -> Iterator[Event]:
    """Yield the events of a message of the user."""
    change = mark_of(message, CHANGED)
    if isinstance(change, dict):
        yield SchemaChanged(
            type="schema_changed",
            changed=list(change.get("changed", ())),
            new=list(change.get("new", ())),
            gone=list(change.get("gone", ())),
        )
    if kind_of(message) == STEERED:
        yield Steered(type="steered", id=str(message.id), text=str(message.text), turn=turn)


def _said(message: AIMessage, new_voice: str) -> Iterator[Event]:
    """Yield the events of a model call and its text. `new_voice`: the voice that begins to speak
    with it, "" if there is none.
    """
    report = answer_report(message)
    if "usage" in report:
        yield cast("ContextUsage", {"type": "context_usage", **report["usage"]})
    if new_voice:
        name = message.name or new_voice.capitalize()
        color = report.get("color", "")
        yield VoiceStarted(type="voice_started", voice=new_voice, name=name, color=color)
    if "material" in report:
        yield ContextPassed(type="context_passed", **report["material"])
    elif passed := metadata_of(message).passed:
        parts = list(map(_material, passed))
        yield ContextPassed(type="context_passed", call=1, passed=parts, left_out=[])
    for recall in report.get("recalls", ()):
        yield Recall(type="recall", via="marker", **recall)
    for fallback in report.get("fallbacks", ()):
        yield ModelFallback(type="model_fallback", **fallback)
    if reasoning := reasoning_of(message):
        yield ReasoningEvent(type="reasoning", text=reasoning)
    text = _streamed_text(message)
    if text and (not metadata_of(message).notice or mark_of(message, VOICE)):
        yield Token(type="token", text=text)


def _material(passed: Passed) -> PassedMaterial:
    """Return the material of an older version's answer, as far as its mark describes it."""
    return PassedMaterial(
        source=passed.source,
        tokens=passed.tokens,
        ms=passed.ms,
        shortened=False,
        cites=list(passed.cites),
    )


def _streamed_text(message: BaseMessage) -> str:
    """Return the text of a message without the footer, which is not streamed."""
    return str(message.text).removesuffix(str(mark_of(message, FOOTER) or ""))


def _whole_text(message: AIMessage) -> AIMessage:
    """Return a message with its footer, which the thread's own messages lack."""
    footer = str(mark_of(message, FOOTER) or "")
    if not footer or not isinstance(message.content, str) or message.content.endswith(footer):
        return message
    return message.model_copy(update={"content": message.content + footer})


# -- calls -----------------------------------------------------------------------------------------


def _calls(turn: KeptTurn, message: AIMessage, following: Sequence[BaseMessage]) -> Iterator[Event]:
    """Yield the events of the tool calls of a message that were answered. `following`: the messages
    after it. Some servers repeat the ids of calls, so only those up to the next answer count.
    """
    own = takewhile(lambda each: not isinstance(each, AIMessage), following)
    answers = {each.tool_call_id: each for each in own if isinstance(each, ToolMessage)}
    calls = [
        (place, call, answers[call["id"] or ""])
        for place, call in enumerate(all_calls(message))
        if call["id"] in answers
    ]
    for _, call, answer in calls:
        yield _started(call, answer)
    for place, call, answer in calls:
        entry = turn.audit.get(f"{message.id}:{place}")
        yield from _ended(call, answer, entry, turn.results)


def _args(call: ToolCall, answer: ToolMessage) -> dict[str, Any]:
    """Return the arguments with which a call ran, with the SQL of a person if there is any."""
    report = tool_report(answer)
    changed = {name: value for name, value in report.items() if name in ("sql", "database")}
    return {**call["args"], **changed} if changed else call["args"]


def _is_query(answer: ToolMessage) -> bool:
    """Return whether a call was told as a query."""
    if REPORT in marks_of(answer):
        return tool_report(answer).get("query", False)
    return answer.name == RUN_SQL


def has_result(answer: BaseMessage) -> bool:
    """Return whether a tool message answers a query that gave a result. Messages of version 0.1.0
    have no mark that says so.
    """
    if TABLES in marks_of(answer):
        return True
    if not isinstance(answer, ToolMessage) or answer.status == "error" or answer.name != RUN_SQL:
        return False
    return "columns" in answer_json(answer)


def _started(call: ToolCall, answer: ToolMessage) -> Event:
    args = _args(call, answer)
    name = call["name"]
    call_id = call["id"] or ""
    if _is_query(answer):
        sql = str(args.get("sql", ""))
        event = QueryStarted(type="query_started", call_id=call_id, name=name, sql=sql)
        if database := call_database(args):
            event["database"] = database
        return event
    return ToolStarted(type="tool_started", call_id=call_id, name=name, args=args)


def _ended(
    call: ToolCall,
    answer: ToolMessage,
    entry: AuditEntry | None,
    results: Mapping[str, PastResult],
) -> Iterator[Event]:
    """Yield the events of the end of a call: what it recalled, how it ended, its chart."""
    content = answer_json(answer)
    args = _args(call, answer)
    if kind_of(answer) == RECALLED and answer.status != "error":
        yield recall_event(str(args.get("query", "")), answered(answer.text), via="tool")
    known = {**_end_of_call(call, answer, entry), **_error(answer, content)}
    if has_result(answer) or _is_query(answer):
        error = content.get("error")
        named = error if isinstance(error, dict) else content
        if database := call_database(named) or call_database(args):
            known["database"] = database
    if has_result(answer):
        yield cast(
            "Event", {**known, "type": "query_finished", **_result(answer, content, results)}
        )
    elif _is_query(answer):
        sql = str(args.get("sql", ""))
        yield cast("QueryFinished", {**known, "type": "query_finished", "sql": sql})
    else:
        yield cast("ToolFinished", {**known, "type": "tool_finished"})
    if answer.name == CHART and answer.status != "error" and isinstance(content.get("spec"), dict):
        yield ChartShown(
            type="chart",
            call_id=call["id"] or "",
            handle=str(content.get("handle", "")),
            spec=content["spec"],
            notes=list(map(str, content.get("notes", ()))),
        )


def _end_of_call(call: ToolCall, answer: ToolMessage, entry: AuditEntry | None) -> dict[str, Any]:
    """Return the fields that the last events of all calls have."""
    report = tool_report(answer)
    ms = report.get("ms", entry.ms if entry else None)
    fields = {
        "call_id": call["id"] or "",
        "name": call["name"],
        "status": "error" if answer.status == "error" else "success",
        "ms": ms or 0,
    }
    names = ("decision", "decided_by")
    decided = {name: value for name, value in report.items() if name in names}
    return {**fields, **decided}


def _error(answer: ToolMessage, content: Mapping[str, Any]) -> dict[str, Any]:
    error = content.get("error")
    if answer.status != "error" or not isinstance(error, dict):
        return {}
    details = {name: error[name] for name in DETAILS if error.get(name)}
    return {"error": str(error.get("message", "")), **details}


def _result(
    answer: ToolMessage, content: Mapping[str, Any], results: Mapping[str, PastResult]
) -> dict[str, Any]:
    """Return the fields of a query that gave a result. If the result is not stored, they are those
    of the preview that the model was shown.
    """
    report = tool_report(answer)
    handle = str(content.get("handle") or "")
    result = results.get(handle) or _preview(content)
    fields: dict[str, Any] = {
        "sql": result.sql,
        "columns": list(result.columns),
        "column_types": list(result.column_types),
        "rows": [list(row) for row in result.rows],
        "row_count": result.row_count,
    }
    if handle:
        fields["handle"] = handle
    if "not_kept" in report:
        fields["not_kept"] = report["not_kept"]
    if verified := report.get("verified") or _verified(answer):
        fields["verified"] = verified
    if result.gone:
        fields["gone"] = result.gone
    return fields


def _preview(content: Mapping[str, Any]) -> PastResult:
    rows = content.get("rows")
    rows = rows if isinstance(rows, list) and not content.get("shown_columns") else []
    count = content.get("row_count", content.get("total"))
    count = count if isinstance(count, int) else len(rows)
    return PastResult(
        sql=str(content.get("sql", "")),
        columns=list(map(str, content.get("columns", ()))),
        column_types=list(map(str, content.get("types", ()))),
        rows=rows,
        row_count=count,
        gone=NOT_STORED if len(rows) < count else "",
    )


def _verified(answer: ToolMessage) -> Verified | None:
    """Return the verified query of which older messages keep the name alone."""
    name = mark_of(answer, VERIFIED)
    if not isinstance(name, str):
        return None
    return Verified(query=name, question="", checked_by="", checked_on="")


# -- compactions, pins and flags -------------------------------------------------------------------


def _compactions(turn: KeptTurn, lengths: range) -> Iterator[Event]:
    """Yield the events of the compactions that were made when the transcript had one of these
    lengths.
    """
    for record in turn.compactions:
        if record["length"] in lengths:
            event = compressed_event(record)
            if record["id"] in turn.undone:
                event["undone"] = True
            yield event
            if record["pins"] or record.get("ended"):
                yield pins_changed(record["pins"], record.get("ended", ()))


def _closing(turn: KeptTurn, message: AIMessage) -> Iterator[Event]:
    """Yield the events that followed a message and its calls: flagged figures and pins."""
    edits = [edit for edit in turn.edits if "answer" in edit and edit["answer"] == message.id]
    for edit in edits:
        if edit["op"] == "flag":
            yield _flag(turn, edit)
    yield from _pins([edit for edit in edits if edit["op"] in ("pin", "unpin")])


def _flag(turn: KeptTurn, edit: Edit) -> Event:
    event = UnsupportedNumbers(
        type="unsupported_numbers", turn=turn.number, figures=list(edit.get("figures", ()))
    )
    if "failure" in edit:
        event["failure"] = edit["failure"]
    return cast("Event", {**event, "voice": edit["voice"]}) if "voice" in edit else event


def _unplaced_pins(turn: KeptTurn) -> Iterator[Event]:
    """Yield the pins of an older version, which does not say when in the turn they were set."""
    yield from _pins(
        [
            edit
            for edit in turn.edits
            if "answer" not in edit
            and (
                (edit["op"] == "pin" and "turn" not in edit)
                or (edit["op"] == "unpin" and "quote" in edit)
            )
        ]
    )


def _pins(edits: Sequence[Edit]) -> Iterator[Event]:
    pinned = [edit["pin"] for edit in edits if edit["op"] == "pin"]
    ended = list(chain.from_iterable(ends_of(edit) for edit in edits if edit["op"] == "unpin"))
    if pinned or ended:
        yield pins_changed(pinned, ended)


# -- the end ---------------------------------------------------------------------------------------


def _end(turn: KeptTurn) -> Iterator[Event]:
    """Yield the last event of a turn: its answer, or its failure."""
    failure = turn.failure
    if turn.answer is not None or turn.waiting:
        yield _answer(turn)
    elif failure is not None:
        yield Failed(
            type="failed",
            code=failure.get("code", "failed"),
            text=failure.get("text", ""),
            retry_after=failure.get("retry_after"),
        )


def _answer(turn: KeptTurn) -> AnswerEvent:
    made = [_whole_text(each) for each in turn.own if isinstance(each, AIMessage)]
    answers = answers_in(made)
    text = str(made[-1].text) if made else ""
    if answers and str(answers[-1].text) == text:
        text = answer_text(answers)
    status = cast("AnswerStatus", status_of_turn(turn))
    event = AnswerEvent(type="answer", text=text, status=status, turn=turn.number)
    tokens = None
    for message in made:
        tokens = added_tokens(tokens, reported(message))
    if tokens is not None:
        event["tokens"] = tokens
    if any(mark_of(message, VOICE) for message in made):
        event["voices"] = [_spoken(turn, answer) for answer in answers]
    return event


def _spoken(turn: KeptTurn, answer: AIMessage) -> SpokenAnswer:
    voice = str(mark_of(answer, VOICE))
    spoken = SpokenAnswer(voice=voice, name=answer.name or "", text=str(answer.text))
    flags = [edit for edit in turn.edits if edit["op"] == "flag" and edit["answer"] == answer.id]
    if figures := list(chain.from_iterable(flag["figures"] for flag in flags)):
        spoken["unsupported_numbers"] = figures
    return spoken
