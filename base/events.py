"""The events that a run emits while it works. Each is a plain dict with a `type`, and a payload of
LangGraph's custom stream.

`Conversation.stream` yields these events, and also `token`, `reasoning` and `answer`.
"""

from collections.abc import Iterable
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from longtable.base.errors import Problem, Reason


class UsageParts(TypedDict):
    """Tokens of the next call by part."""

    system: int
    tools: int
    memory: int
    messages: int
    passed: NotRequired[int]
    """Tokens of the material that context providers added to this call only. Present only if they
    added any.
    """


class UsageFigures(TypedDict):
    """Tokens of the next call. `total` and `parts` are tokens as we count them. `calibrated` is an
    estimate in the provider's tokens: total x ratio.
    """

    total: int
    calibrated: int
    ratio: float
    """How many of the provider's tokens one counted token stands for, according to the provider's
    reports. It is 1 if the provider reports fewer tokens than counted, or reports nothing.
    """
    limit: int
    fraction: float
    """calibrated / limit."""
    threshold: float
    parts: UsageParts
    shrunk: int
    """Number of tool results shown as a preview or a stub, so that the call fits."""
    left_out: int
    """Number of messages not shown, so that the call fits."""
    estimated: bool
    """Whether the counts are estimates, because the tokenizer's data could not be read."""
    of_team: NotRequired[bool]
    """True if the figures are those of one call that stands for all personas, whichever of them is
    asked. A mode that keeps secrets reports in this way.
    """


class ReportedTokens(TypedDict):
    """Tokens of calls as their provider reported them. Tokens read from the prompt cache (`cached`)
    and written to it are part of the input, reasoning tokens part of the output.
    """

    input: int
    output: int
    cached: int
    cache_written: int
    reasoning: int


class ContextUsage(UsageFigures):
    """The size of a model call, counted before the call."""

    type: Literal["context_usage"]
    voice: NotRequired[str]
    """Id of the persona that is asked. Present only if there is a team."""


class ContextCompressed(TypedDict):
    """Rounds were compacted. `original_tokens` and `compressed_tokens` are the sizes of the whole
    next call before and after the compaction.
    """

    type: Literal["context_compressed"]
    id: str
    original_tokens: int
    compressed_tokens: int
    messages: int
    strategy: str
    method: Literal["model", "fallback"]
    writer: str
    """Who wrote the memory: the name of the model, or "code"."""
    why_by_code: str
    """Why code and not a model wrote the memory, in a sentence. "" if a model wrote it."""
    input: int
    output: int
    """Tokens of the summariser's calls (`input` and `output`), including calls whose text was
    refused.
    """
    coverage: float
    """Share of the compacted text, in tokens, that the writer of the memory saw."""
    rebuilt: bool
    """True if the memory was made from the original messages, not from the previous memory."""
    ahead: bool
    """True if the compaction was made after an answer, for the next turn."""
    reasons: list[Reason]
    """Failures before the success: drafts that the gate refused, a summariser that failed, an
    archive file that was not written.
    """
    ms: int
    kind: NotRequired[Literal["results"]]
    """Present if no summary was made, and only results of tools shrank to their heads. Then
    `messages` is the number of these results.
    """
    topics: NotRequired[dict[str, str]]
    """Titles, by id, of the topics that the compaction changed: it filed messages into them, or
    took excluded messages out.
    """
    archive: NotRequired[str]
    """Key of the file that holds the compacted messages: `Conversation.archive_file(key)`."""
    undone: NotRequired[bool]
    """True in a past turn if the compaction was undone since."""


class ContextCompactionSkipped(TypedDict):
    """A compaction was due but did not succeed. The view stays as it was."""

    type: Literal["context_compaction_skipped"]
    reasons: list[Reason]
    input: NotRequired[int]
    output: NotRequired[int]
    """Tokens of the summariser's calls (`input` and `output`) whose text was refused. Both are
    present only if there were such calls.
    """


class PassedMaterial(TypedDict):
    """Material that one context provider added to a call. `tokens` is the size of the whole message
    with the material. `ms`: the time that the provider took.
    """

    source: str
    tokens: int
    ms: int
    shortened: bool
    cites: list[str]
    """Names of what the material quotes, as its provider gave them."""


class ContextPassed(TypedDict):
    """Context providers were asked for material for a model call. `call`: number of the call within
    its turn. `left_out`: providers that failed or were slow, or whose material had no room.
    """

    type: Literal["context_passed"]
    call: int
    passed: list[PassedMaterial]
    left_out: list[Reason]


class ModelRetry(TypedDict):
    """A model did not answer and is asked again after `wait_s` seconds. `code`: the code of the
    error.

    The code "thread_busy" means that another run took the thread over, and that the turn begins
    again.
    """

    type: Literal["model_retry"]
    model: str
    attempt: int
    wait_s: float
    code: str
    in_place: NotRequired[bool]
    """True if the turn continues where it was, with its queries so far, instead of beginning again.
    """


class ModelFallback(TypedDict):
    """A model did not answer, and the next model in line (`fallback`) is asked instead."""

    type: Literal["model_fallback"]
    model: str
    fallback: str
    code: str


class MessagesRetired(TypedDict):
    """Compacted messages moved from the live transcript to the archive. `Conversation.history`
    still returns all messages. `messages`: how many moved now. `archived`: how many are in the
    archive now.
    """

    type: Literal["messages_retired"]
    messages: int
    archived: int


class Recall(TypedDict):
    """Original messages were brought back for this call. `turns`: the turns they come from."""

    type: Literal["recall"]
    query: str
    found: int
    turns: list[int]
    via: Literal["marker", "tool"]


class PinsChanged(TypedDict):
    """Words of the user were pinned, or words of the user ended pins. The command `/pins` lists
    pins, and can restore a pin.

    `by`: "model", or "heuristic" for words said in passing that code found.
    """

    type: Literal["pins_changed"]
    pinned: list[dict[Literal["id", "text", "by"], str]]
    ended: list[dict[Literal["id", "quote"], str]]


class ToolStarted(TypedDict):
    """A tool other than a query begins."""

    type: Literal["tool_started"]
    call_id: str
    name: str
    args: dict[str, Any]


class ToolFinished(TypedDict):
    """A tool other than a query ended. `error` is the error text that the model was given."""

    type: Literal["tool_finished"]
    call_id: str
    name: str
    status: Literal["success", "error"]
    ms: int
    error: NotRequired[str]
    decision: NotRequired[Literal["approve", "edit", "reject"]]
    decided_by: NotRequired[str]
    """What a person decided on the call, and who, as in `QueryFinished`."""


class QueryStarted(TypedDict):
    """A query begins. `sql` is the text as the model wrote it."""

    type: Literal["query_started"]
    call_id: str
    name: str
    sql: str
    database: NotRequired[str]
    """The name of the database that is asked. Present only if there are several."""


class Verified(TypedDict):
    """A query that somebody checked, from the knowledge folder. `checked_on`: a day, such as
    2026-11-27. Both `checked_by` and `checked_on` may be empty.
    """

    query: str
    """The name of the query."""
    question: str
    checked_by: str
    checked_on: str


class QueryFinished(TypedDict):
    """A query ended. If it succeeded, the event holds the SQL as it ran, and the whole result as
    the person gets it; cells are JSON values.
    """

    type: Literal["query_finished"]
    call_id: str
    name: str
    status: Literal["success", "error"]
    ms: int
    sql: str
    database: NotRequired[str]
    """The name of the database that was asked. Present only if there are several."""
    columns: NotRequired[list[str]]
    column_types: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]
    row_count: NotRequired[int]
    handle: NotRequired[str]
    """The name under which the result store keeps the whole result; see
    `Conversation.result(handle)`.
    """
    verified: NotRequired[Verified]
    """The verified query that the SQL equals but for parameters."""
    decision: NotRequired[Literal["approve", "edit", "reject"]]
    """What a person decided on the query. Absent if nobody was asked."""
    decided_by: NotRequired[str]
    """Who decided: the owner of the run if a server authenticated the person, or else the `by` of
    the decision, or else the owner of the run; "" if none is set.
    """
    gone: NotRequired[str]
    """Of a past turn: why `rows` lacks rows that the result had."""
    not_kept: NotRequired[str]
    """Why the result store could not keep the result."""
    error: NotRequired[str]
    problem: NotRequired[Problem]
    """The kind of fault, the same for every engine. `line` and `column` are the place of the fault
    in the SQL as the model wrote it; `nearest` are names that were probably meant.
    """
    rule: NotRequired[str]
    """Which rule of a wall refused the query."""
    line: NotRequired[int]
    column: NotRequired[int]
    nearest: NotRequired[list[str]]


class ChartShown(TypedDict):
    """A chart is to be drawn. `spec` is a checked Vega-Lite spec without data. `handle` names the
    result that it shows.

    `Conversation.chart(handle, spec)` adds the result's rows to the spec and draws it. `notes` say
    which data are left out or added up.
    """

    type: Literal["chart"]
    call_id: str
    handle: str
    spec: dict[str, Any]
    notes: list[str]


class UnsupportedNumbers(TypedDict):
    """Figures of the answer, as written, that no result of the turn holds and that do not follow
    from a result by one step of calculation. This event comes after the answer's tokens.
    """

    type: Literal["unsupported_numbers"]
    turn: int
    figures: list[str]
    failure: NotRequired[str]
    """Why the figures could not be checked. Then `figures` is empty."""


class SchemaChanged(TypedDict):
    """The database's schema has changed since the previous turn. The lists hold names of tables;
    for a large schema, only of tables that the conversation was told about.
    """

    type: Literal["schema_changed"]
    changed: list[str]
    new: list[str]
    gone: list[str]


class AuditFailed(TypedDict):
    """The store did not accept the audit entries of some calls. The turn goes on. `calls`: the
    number of these calls. `failure`: the class of the error.
    """

    type: Literal["audit_failed"]
    calls: int
    failure: str


class ActionRequest(TypedDict):
    """One tool call that waits for a person's decision. `name` is the tool, `args` its arguments,
    `description` why the person is asked.
    """

    name: str
    args: dict[str, Any]
    description: str


class ReviewConfig(TypedDict):
    """Which decisions a person may take on an action."""

    action_name: str
    allowed_decisions: list[Literal["approve", "edit", "reject"]]


class ApprovalRequested(TypedDict):
    """Tool calls wait for a person's decisions, and none of them has run. Pass one decision for
    each action, in order, to `Conversation.resume(decisions)`.
    """

    type: Literal["approval_requested"]
    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]


class InputRequested(TypedDict):
    """A tool asked a person a question (it called `interrupt`) and waits for the answer; pass it to
    `Conversation.resume(answer)`. `value` is the question.
    """

    type: Literal["input_requested"]
    id: str
    value: Any


class ThreadWaiting(TypedDict):
    """Another turn is using the thread, in this process or another. The message waits until that
    turn is over.
    """

    type: Literal["thread_waiting"]
    thread_id: str


class Steered(TypedDict):
    """A message arrived while a turn was running.

    In the stream of that turn, the event means that the message has joined the turn. In the stream
    of the message's sender, it means that the message is on its way to the turn.
    """

    type: Literal["steered"]
    id: str
    text: str
    turn: int


class Failed(TypedDict):
    """The run failed; this is the last event. It holds a text that a person may be told, for
    clients that only read the stream.
    """

    type: Literal["failed"]
    code: str
    """The error's `code`, or "error" if it was not raised on purpose."""
    text: str
    """One sentence for the person, in the language of `Context.language` or of the newest
    message.
    """
    retry_after: float | None
    """Seconds after which another try may help, None if not known."""


class Token(TypedDict):
    """A piece of the answer's text, as it streams."""

    type: Literal["token"]
    text: str


class ReasoningEvent(TypedDict):
    """A piece of the model's reasoning, as it streams. It is not part of the answer.
    `metadata_of(message).reasoning` has the whole reasoning.
    """

    type: Literal["reasoning"]
    text: str


Notice = Literal[
    "call_budget",
    "empty_answer",
    "recall_exhausted",
    "content_filter",
    "voice_failed",
    "voice_gone",
    "nobody",
]
TurnStatus = (
    Literal[
        "running", "overflow", "again", "refused", "failed", "compacting", "cut_off", "answered"
    ]
    | Notice
)
"""The status of a turn. `overflow` and `again`: the model call is counted and made once more.
`refused`: the input was refused. `failed`: the provider refused the request. A value of `Notice` is
the code of the notice that takes the place of the answer.
"""
Wait = Literal["approval_requested", "input_requested"]
"""What a turn waits for: a person's approval, or a person's input."""
AnswerStatus = TurnStatus | Wait | Literal["steered", ""]
"""How a turn ended, or what it waits for. "steered": the message joined another turn. "": nothing
ran.
"""


class AnswerEvent(TypedDict):
    """The turn is complete, or waits for a person. `status`: 'answered', 'approval_requested',
    'input_requested', 'steered', or the code of the notice that takes the place of an answer.
    """

    type: Literal["answer"]
    text: str
    status: AnswerStatus
    turn: int
    voices: NotRequired[list["SpokenAnswer"]]
    """What each voice of a team answered, in order. `text` is the answer of the last voice."""
    tokens: NotRequired[ReportedTokens]
    """Tokens of all model calls of this stream. Absent if the provider reports none."""


class TeamTurn(TypedDict):
    """A turn of a team begins.

    `tokens`: for each voice that may speak, the tokens of its next call. In a mode that keeps
    secrets, there is instead one entry "team", for a call that stands for all voices. `most_calls`:
    the limit on model calls, for all voices together.
    """

    type: Literal["team_turn"]
    mode: str
    tokens: dict[str, int]
    most_calls: int


class VoiceStarted(TypedDict):
    """A voice of the team is asked, or continues after another voice. Until the next event of this
    type, events that belong to this voice name it in `voice`. `name` and `color` are for display.
    """

    type: Literal["voice_started"]
    voice: str
    name: str
    color: str
    at_once: NotRequired[bool]
    """True if other voices are asked at the same time."""


class UnknownMentions(TypedDict):
    """The message has at signs before words that name nobody in the team. They stay in the text."""

    type: Literal["unknown_mentions"]
    words: list[str]
    known: list[str]


class SpokenAnswer(TypedDict):
    """What one voice of a team answered."""

    voice: str
    name: str
    text: str
    unsupported_numbers: NotRequired[list[str]]
    """Figures of the voice's text, as written, that no result supports."""


Event = (
    ContextUsage
    | ContextCompressed
    | ContextCompactionSkipped
    | ContextPassed
    | ModelRetry
    | ModelFallback
    | MessagesRetired
    | Recall
    | PinsChanged
    | ToolStarted
    | ToolFinished
    | QueryStarted
    | QueryFinished
    | ChartShown
    | UnsupportedNumbers
    | SchemaChanged
    | AuditFailed
    | ApprovalRequested
    | InputRequested
    | ThreadWaiting
    | Steered
    | Failed
    | Token
    | ReasoningEvent
    | AnswerEvent
    | TeamTurn
    | VoiceStarted
    | UnknownMentions
)


def largest_usage(events: Iterable[Event]) -> ContextUsage | None:
    """Return the newest `ContextUsage` of a turn, None if there is none. For a team, return that of
    the voice whose call fills the largest share of its limit. Counts from before a compaction are
    ignored.
    """
    newest: dict[str, ContextUsage] = {}
    for event in events:
        if event["type"] == "context_compressed" and not event["ahead"]:
            newest = {}
        elif event["type"] == "context_usage":
            newest[event.get("voice", "")] = event
    return max(newest.values(), key=lambda usage: usage["fraction"], default=None)


def verified_queries(events: Iterable[Event]) -> list[Verified]:
    """Return the verified queries among the queries of a turn, each once. Empty unless all queries
    that gave a result are verified ones.
    """
    queries = [
        event
        for event in events
        if event["type"] == "query_finished" and event["status"] == "success"
    ]
    verified = {
        query["verified"]["query"]: query["verified"] for query in queries if "verified" in query
    }
    are_all = all("verified" in query for query in queries)
    return list(verified.values()) if are_all else []
