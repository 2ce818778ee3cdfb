"""Take a transcript apart for people: what was said, the SQL that ran, the rows that came back."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.rounds import all_calls
from longtable.memory.stamps import EXCLUDED, kind_of, marks_of, turn_number

MOST_CELL = 200
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters, marks that reorder text, what has no width, hidden tags, halves of surrogates."""

WORDS: dict[str, dict[str, str]] = {
    "turn": {"en": "Turn {turn}", "zh": "第 {turn} 轮"},
    "human": {"en": "User", "zh": "用户"},
    "ai": {"en": "Assistant", "zh": "助手"},
    "tool": {"en": "Result", "zh": "结果"},
    "system": {"en": "System", "zh": "系统"},
    "call": {"en": "Call of {name}", "zh": "调用 {name}"},
    "rows": {"en": "{shown} of {count} rows", "zh": "共 {count} 行，显示 {shown} 行"},
    "chart": {"en": "Chart of {handle}", "zh": "{handle} 的图表"},
    "failed": {"en": "Failed", "zh": "失败"},
    "excluded": {"en": "left out of memory", "zh": "已从记忆中排除"},
    "untitled": {"en": "Conversation", "zh": "会话"},
}


@dataclass(frozen=True)
class Heading:
    """A turn begins."""

    turn: int
    time: str


@dataclass(frozen=True)
class Said:
    """A text. `markdown`: it was written as Markdown, by a model; else as plain text."""

    role: str
    text: str
    markdown: bool
    excluded: bool


@dataclass(frozen=True)
class Code:
    """A call's SQL, or its arguments as JSON."""

    name: str
    language: str
    text: str


@dataclass(frozen=True)
class Rows:
    """The rows a query showed; `count` is how many there were."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    count: int


@dataclass(frozen=True)
class Drawing:
    """A chart of a result: `spec` is Vega-Lite without data; `text` is what the tool told of it."""

    handle: str
    spec: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Failure:
    """What a tool said went wrong."""

    text: str


Part = Heading | Said | Code | Rows | Drawing | Failure


def word(key: str, language: str, **values: object) -> str:
    """Return one label, filled in."""
    words = WORDS[key]
    return words.get(language, words["en"]).format(**values)


def plain(text: str) -> str:
    """Return text without characters that hide or reorder others."""
    return _UNSAFE.sub(lambda found: "" if found.group() == "\r" else "\ufffd", text)


def parts_of(messages: Sequence[BaseMessage]) -> Iterator[Part]:
    """Yield a transcript's parts in order."""
    turn = 0
    for message in messages:
        if (number := turn_number(message)) > turn:
            turn = number
            yield Heading(turn, plain(str(marks_of(message).get("time", ""))))
        yield from _parts(message)


def _parts(message: BaseMessage) -> Iterator[Part]:
    text = plain(str(message.text))
    if isinstance(message, ToolMessage):
        yield _result(text, failed=message.status == "error")
        return
    if text.strip():
        role = message.type if message.type in WORDS else "system"
        yield Said(role, text, markdown=isinstance(message, AIMessage), excluded=kind_of(message) == EXCLUDED)
    if isinstance(message, AIMessage):
        for call in all_calls(message):
            name, args = plain(str(call["name"])), call["args"]
            sql = args.get("sql") if isinstance(args, dict) else None
            yield Code(name, "sql", plain(sql)) if isinstance(sql, str) else Code(name, "json", _json(args))


def _result(text: str, *, failed: bool) -> Part:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if failed:
        error = found.get("error") if isinstance(found, dict) else None
        told = error.get("message") if isinstance(error, dict) else None
        return Failure(plain(told) if isinstance(told, str) else text)
    if isinstance(found, dict) and (rows := _rows(found)):
        return rows
    if isinstance(found, dict) and found.get("shown") is True and isinstance(found.get("spec"), dict):
        return Drawing(plain(str(found.get("handle", "")))[:20], found["spec"], _json(found))
    return Code("", "json", _json(found)) if isinstance(found, dict | list) else Code("", "text", text)


def _rows(found: dict[str, Any]) -> Rows | None:
    columns, rows, count = found.get("columns"), found.get("rows"), found.get("row_count")
    if not isinstance(columns, list) or not columns or not isinstance(rows, list):
        return None
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        return None
    cells = [[_cell(value) for value in row] for row in rows]
    return Rows([_cell(name) for name in columns], cells, count if isinstance(count, int) else len(rows))


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = plain(" ".join(text.split()))
    return line if len(line) <= MOST_CELL else f"{line[: MOST_CELL - 1]}…"


def _json(value: object) -> str:
    return plain(json.dumps(value, ensure_ascii=False, indent=2, default=str))
