"""What a run tells while it works: the payloads of the custom stream, each a plain dict with a `type`.

`Conversation.stream` yields these, and besides them `token` and `answer`.
"""

from typing import Any, Literal, NotRequired, TypedDict


class UsageParts(TypedDict):
    """Tokens of the next call by part."""

    system: int
    tools: int
    memory: int
    messages: int


class ContextUsage(TypedDict):
    """Counted before each model call. Tokens; `fraction` is total / limit."""

    type: Literal["context_usage"]
    total: int
    limit: int
    fraction: float
    threshold: float
    parts: UsageParts
    estimated: bool


class ContextCompressed(TypedDict):
    """Rounds were folded. Tokens of the whole next call before and after."""

    type: Literal["context_compressed"]
    id: str
    original_tokens: int
    compressed_tokens: int
    messages: int
    method: Literal["model", "fallback"]
    reasons: list[str]
    ms: int


class ContextCompactionSkipped(TypedDict):
    """A fold was due and did not happen; the view before it stays."""

    type: Literal["context_compaction_skipped"]
    reasons: list[str]


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
    """A query ended. On success: the SQL as run, and the whole result as the person gets it (cells are JSON values)."""

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
    error: NotRequired[str]


class Token(TypedDict):
    """A piece of the answer's text, as it streams."""

    type: Literal["token"]
    text: str


class AnswerEvent(TypedDict):
    """The turn is complete. `status`: 'answered', or the code of the notice that stands for an answer."""

    type: Literal["answer"]
    text: str
    status: str
    turn: int


Event = (
    ContextUsage
    | ContextCompressed
    | ContextCompactionSkipped
    | ToolStarted
    | ToolFinished
    | QueryStarted
    | QueryFinished
    | Token
    | AnswerEvent
)
