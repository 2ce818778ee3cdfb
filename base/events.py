"""The events of a run while it works: the payloads of the custom stream, each a plain dict with a
`type`.

`Conversation.stream` yields these, and besides them `token`, `reasoning` and `answer`.
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
    """Material that context providers added to this call alone. Present only if they added any."""


class UsageFigures(TypedDict):
    """Tokens of the next call. `total` and `parts` in counted tokens; `calibrated` in the
    provider's: total x ratio.
    """

    total: int
    calibrated: int
    ratio: float
    """The provider's tokens for each counted token, according to its reports. 1 if it reports
    fewer, or nothing.
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
    """Whether the figures are those of one call that stands for all personas, whichever is asked.
    This is so in a mode that keeps secrets.
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
    """Counted before each model call."""

    type: Literal["context_usage"]
    voice: NotRequired[str]
    """The persona that is asked if there is a team."""


class ContextCompressed(TypedDict):
    """Rounds were compacted. Tokens of the whole next call before and after."""

    type: Literal["context_compressed"]
    id: str
    original_tokens: int
    compressed_tokens: int
    messages: int
    strategy: str
    method: Literal["model", "fallback"]
    writer: str
    """Who wrote it: the name of the model, or "code"."""
    why_by_code: str
    """Why code wrote it and not a model, in a sentence. "" if a model wrote it."""
    input: int
    output: int
    """Tokens of the summariser's calls for it, including calls whose text was refused."""
    coverage: float
    """Tokens of text the writer saw / tokens of text compacted."""
    rebuilt: bool
    """The memory was made from the originals, not from the one before."""
    ahead: bool
    """It was made after the answer, for the next turn."""
    reasons: list[Reason]
    """Failures on the way: drafts that the gate refused, a summariser that failed, an archive file
    that was not written.
    """
    ms: int
    kind: NotRequired[Literal["results"]]
    """Present if only results of tools shrank to their heads. `messages` counts them, and no
    summary was made.
    """
    topics: NotRequired[dict[str, str]]
    """Titles, by id, of the topics that it changed: it filed messages into them, or took excluded
    messages out.
    """
    archive: NotRequired[str]
    """Key of the file that holds the compacted messages: `Conversation.archive_file(key)`."""


class ContextCompactionSkipped(TypedDict):
    """A compaction was due and did not happen; the view before it stays."""

    type: Literal["context_compaction_skipped"]
    reasons: list[Reason]
    input: NotRequired[int]
    output: NotRequired[int]
    """Tokens of the summariser's calls whose text was refused. Present only if there were any."""


class PassedMaterial(TypedDict):
    """Material that one context provider added to a call. `tokens` include the text around it.
    `ms`: the time that the provider took.
    """

    source: str
    tokens: int
    ms: int
    shortened: bool
    cites: list[str]
    """Names of what the material quotes, as its provider gave them."""


class ContextPassed(TypedDict):
    """Context providers were asked for a call, the `call`th of its turn. `left_out`: providers that
    failed or were slow, or whose material had no room.
    """

    type: Literal["context_passed"]
    call: int
    passed: list[PassedMaterial]
    left_out: list[Reason]


class ModelRetry(TypedDict):
    """A model did not answer and is asked again after `wait_s` seconds. `code`: the code of the
    error.

    With the code "thread_busy" another run took the thread over, and the turn begins again.
    """

    type: Literal["model_retry"]
    model: str
    attempt: int
    wait_s: float
    code: str
    in_place: NotRequired[bool]
    """Whether the turn continues from where it was, with its queries so far, and does not begin
    again.
    """


class ModelFallback(TypedDict):
    """A model did not answer, and the next in line is asked."""

    type: Literal["model_fallback"]
    model: str
    fallback: str
    code: str


class MessagesRetired(TypedDict):
    """Compacted messages left the live transcript for the archive; `Conversation.history` still has
    them all.
    """

    type: Literal["messages_retired"]
    messages: int
    archived: int


class Recall(TypedDict):
    """Originals were brought back for this call. `turns`: where they come from."""

    type: Literal["recall"]
    query: str
    found: int
    turns: list[int]
    via: Literal["marker", "tool"]


class PinsChanged(TypedDict):
    """Words of the user were pinned, or the user's words ended pins. `/pins` lists pins and
    restores one.

    `by`: "model", "heuristic" (code found it, said in passing).
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
    """A tool other than a query ended. `error` is the text the model got."""

    type: Literal["tool_finished"]
    call_id: str
    name: str
    status: Literal["success", "error"]
    ms: int
    error: NotRequired[str]


class QueryStarted(TypedDict):
    """A query begins; `sql` is the text the model asked for."""

    type: Literal["query_started"]
    call_id: str
    name: str
    sql: str


class QueryFinished(TypedDict):
    """A query ended. On success: the SQL as run, and the whole result as the person gets it (cells
    are JSON values).
    """

    type: Literal["query_finished"]
    call_id: str
    name: str
    status: Literal["success", "error"]
    ms: int
    sql: str
    columns: NotRequired[list[str]]
    column_types: NotRequired[list[str]]
    rows: NotRequired[list[list[Any]]]
    row_count: NotRequired[int]
    handle: NotRequired[str]
    """Where a result store keeps the whole result: `Conversation.result(handle)`."""
    not_kept: NotRequired[str]
    """Why the result store could not keep it."""
    error: NotRequired[str]
    problem: NotRequired[Problem]
    """The kind of fault, the same for every engine. The next fields tell the place in the SQL as
    asked, and the names probably meant.
    """
    rule: NotRequired[str]
    """Which rule of a wall refused it."""
    line: NotRequired[int]
    column: NotRequired[int]
    nearest: NotRequired[list[str]]


class ChartShown(TypedDict):
    """A chart is to be drawn: a checked Vega-Lite spec without data, for the result that the handle
    names.

    `Conversation.chart(handle, spec)` gives its rows, and draws it. `notes` say which data are left
    out or added up.
    """

    type: Literal["chart"]
    call_id: str
    handle: str
    spec: dict[str, Any]
    notes: list[str]


class UnsupportedNumbers(TypedDict):
    """Figures of the answer, as written, that do not follow from a result of its turn, directly or
    by one step. This event comes after the tokens.
    """

    type: Literal["unsupported_numbers"]
    turn: int
    figures: list[str]
    failure: NotRequired[str]
    """Why the check could not be made. If it could not, there are no figures."""


class SchemaChanged(TypedDict):
    """The database's schema has changed since the turn before. Tables are given by name; for a
    large schema, only the tables that the conversation was told of.
    """

    type: Literal["schema_changed"]
    changed: list[str]
    new: list[str]
    gone: list[str]


class AuditFailed(TypedDict):
    """The store did not accept the audit entries for this number of calls. The turn goes on.
    `failure`: the error's class.
    """

    type: Literal["audit_failed"]
    calls: int
    failure: str


class ActionRequest(TypedDict):
    """One call that waits for a person's decision: the tool, its arguments, and why the person is
    asked.
    """

    name: str
    args: dict[str, Any]
    description: str


class ReviewConfig(TypedDict):
    """Which decisions an action allows."""

    action_name: str
    allowed_decisions: list[Literal["approve", "edit", "reject"]]


class ApprovalRequested(TypedDict):
    """Calls wait for a person's decision, one for each action, in order:
    `Conversation.resume(decisions)`. Nothing of them has run.
    """

    type: Literal["approval_requested"]
    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]


class InputRequested(TypedDict):
    """A tool waits for an answer (it called `interrupt`): `Conversation.resume(answer)`. `value` is
    its question.
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
    """A message arrived while a turn was running. To the reader of that turn this says that the
    message joined the turn, to the sender that it is on its way there.
    """

    type: Literal["steered"]
    id: str
    text: str
    turn: int


class Failed(TypedDict):
    """The run failed; this is the last event. It holds the text that a person may be told, for
    readers of the stream alone.
    """

    type: Literal["failed"]
    code: str
    """The error's `code`, or "error" if it was not raised on purpose."""
    text: str
    """One sentence for the person, in the language of `Context.language` or of the newest
    message.
    """
    retry_after: float | None
    """Seconds after which another try may help, if known."""


class Token(TypedDict):
    """A piece of the answer's text, as it streams."""

    type: Literal["token"]
    text: str


class ReasoningEvent(TypedDict):
    """A piece of the model's reasoning, as it streams; no part of the answer.
    `metadata_of(message).reasoning` has it whole.
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
"""After `overflow` and `again` the call is counted and made once more. `refused`: the input was
refused. `failed`: the provider refused the request. A status of `Notice` is the code of the notice
that takes the place of the answer.
"""
Wait = Literal["approval_requested", "input_requested"]
"""What a turn waits for: a person's approval, or a person's input."""
AnswerStatus = TurnStatus | Wait | Literal["steered", ""]
"""How a turn ended, or what it waits for. "steered": its message joined another turn. Empty if
nothing ran.
"""


class AnswerEvent(TypedDict):
    """The turn is complete, or waits. `status`: 'answered', the code of the notice that takes the
    place of an answer, 'approval_requested' or 'input_requested'.
    """

    type: Literal["answer"]
    text: str
    status: AnswerStatus
    turn: int
    voices: NotRequired[list["SpokenAnswer"]]
    """What each voice of a team answered, in order; `text` is the last one's."""
    tokens: NotRequired[ReportedTokens]
    """Of the model calls of this stream together. Absent if the provider reports none."""


class TeamTurn(TypedDict):
    """A turn of a team begins. `tokens`: tokens of the next call of each voice that may speak; in a
    mode that keeps secrets, of one call that stands for all, as "team". `most_calls`: the most
    calls of all voices together.
    """

    type: Literal["team_turn"]
    mode: str
    tokens: dict[str, int]
    most_calls: int


class VoiceStarted(TypedDict):
    """A voice of the team is asked, or goes on after another voice. Until the next event of this
    type, each event's `voice` names it. `name` and `color` are for display.
    """

    type: Literal["voice_started"]
    voice: str
    name: str
    color: str
    at_once: NotRequired[bool]
    """Whether others are asked at the same time."""


class UnknownMentions(TypedDict):
    """The message has at signs before words that name nobody in the team; they stay text."""

    type: Literal["unknown_mentions"]
    words: list[str]
    known: list[str]


class SpokenAnswer(TypedDict):
    """What one voice of a team answered."""

    voice: str
    name: str
    text: str
    unsupported_numbers: NotRequired[list[str]]
    """Figures of its text that no result supports, as written."""


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
    """Return the newest count of a turn. For a team, return the count of the voice with the largest
    share of its limit. Counts from before a compaction are ignored.
    """
    newest: dict[str, ContextUsage] = {}
    for event in events:
        if event["type"] == "context_compressed" and not event["ahead"]:
            newest = {}
        elif event["type"] == "context_usage":
            newest[event.get("voice", "")] = event
    return max(newest.values(), key=lambda usage: usage["fraction"], default=None)
