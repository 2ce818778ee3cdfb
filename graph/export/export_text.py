"""Write a transcript as Markdown or HTML for people.

No message can imitate the structure of the document, run code or load anything. Plain text is
escaped. A model's Markdown stands in a quote, unless it contains HTML, pictures or link
definitions; then it is shown as plain text. Charts are drawn as SVG if possible (`Draw`), otherwise
their spec is shown.
"""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.messages.marks import EXCLUDED, kind_of, marks_of, speaker_of, turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.nodes.tooling.tool_call import call_database

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST_CELL = 200
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Matches control characters, marks that reorder text, characters without width, hidden tags, and
lone surrogates.
"""

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
    """The start of a turn."""

    turn: int
    time: str


@dataclass(frozen=True)
class Speech:
    """What somebody said. `markdown` is True if a model wrote the text as Markdown; otherwise it is
    plain text.
    """

    role: str
    text: str
    markdown: bool
    excluded: bool
    speaker: str = ""
    """The name of the speaker in the message, "" if there is none."""


@dataclass(frozen=True)
class Code:
    """The SQL of a tool call or its arguments as JSON, or a tool's answer that is neither rows nor
    a chart.
    """

    name: str
    language: str
    text: str


@dataclass(frozen=True)
class Rows:
    """The rows of a query that the transcript shows. `count` is the number of all rows of the
    result.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    count: int


@dataclass(frozen=True)
class Drawing:
    """A chart of a result. `spec` is Vega-Lite without data; `text` is the tool's answer as JSON,
    or the drawn chart.
    """

    handle: str
    spec: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Failure:
    """A tool's error message."""

    text: str


Part = Heading | Speech | Code | Rows | Drawing | Failure


def word(key: str, language: str, **values: object) -> str:
    """Return a label in this language, with `values` filled in."""
    words = WORDS[key]
    return words.get(language, words["en"]).format(**values)


def plain(text: str) -> str:
    """Return text in which characters that hide or reorder text are replaced by a visible sign."""
    return _UNSAFE.sub(lambda found: "" if found.group() == "\r" else "\ufffd", text)


def parts_of(messages: Sequence[BaseMessage]) -> Iterator[Part]:
    """Yield the parts of a transcript in order."""
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
        yield Speech(
            role,
            text,
            markdown=isinstance(message, AIMessage),
            excluded=kind_of(message) == EXCLUDED,
            speaker=plain(speaker_of(message)),
        )
    if isinstance(message, AIMessage):
        for call in all_calls(message):
            name = plain(str(call["name"]))
            args = call["args"]
            sql = args.get("sql") if isinstance(args, dict) else None
            database = plain(call_database(args)) if isinstance(args, dict) else ""
            yield (
                Code(f"{name} {database}".strip(), "sql", plain(sql))
                if isinstance(sql, str)
                else Code(name, "json", _json(args))
            )


def _result(text: str, *, failed: bool) -> Part:
    try:
        answer: Any = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if failed:
        error = answer.get("error") if isinstance(answer, dict) else None
        message = error.get("message") if isinstance(error, dict) else None
        return Failure(plain(message) if isinstance(message, str) else text)
    if isinstance(answer, dict) and (rows := _rows(answer)):
        return rows
    if (
        isinstance(answer, dict)
        and answer.get("shown") is True
        and isinstance(answer.get("spec"), dict)
    ):
        return Drawing(plain(str(answer.get("handle", "")))[:20], answer["spec"], _json(answer))
    return (
        Code("", "json", _json(answer))
        if isinstance(answer, dict | list)
        else Code("", "text", text)
    )


def _rows(answer: dict[str, Any]) -> Rows | None:
    columns = answer.get("columns")
    rows = answer.get("rows")
    count = answer.get("row_count")
    if not isinstance(columns, list) or not columns or not isinstance(rows, list):
        return None
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        return None
    cells = list(map(_plain_cells, rows))
    return Rows(_plain_cells(columns), cells, count if isinstance(count, int) else len(rows))


def _plain_cells(values: Sequence[object]) -> list[str]:
    return [_cell(value) for value in values]


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = plain(" ".join(text.split()))
    return line if len(line) <= MOST_CELL else f"{line[: MOST_CELL - 1]}…"


def _json(value: object) -> str:
    return plain(json.dumps(value, ensure_ascii=False, indent=2, default=str))


Draw = Callable[[Drawing], str | None]
"""Returns a chart as SVG that may stand in a document: it is one line, and nothing in it runs,
links or loads. Returns None if the chart cannot be drawn.
"""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$^])")
_LINE_START = re.compile(r"^([-+=:])")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff }
h2 { font-size: 1rem; color: #666; border-top: 1px solid #ddd; margin-top: 2rem; padding-top: .5rem }
.said { margin: .75rem 0; padding: .5rem 1rem; border-left: 3px solid #bbb; overflow-wrap: anywhere }
.human { border-color: #2a6fdb } .ai { border-color: #2f9e63 } .failed { border-color: #c0392b }
.plain, .failed { white-space: pre-wrap } .excluded { opacity: .6 }
.role { font-weight: 600; font-size: .85rem; color: #555; display: block }
pre { background: #f5f5f5; padding: .75rem; overflow-x: auto } .rows { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem } td, th { border: 1px solid #ddd; padding: .25rem .5rem; text-align: left }
figure { margin: .75rem 0; overflow-x: auto } figcaption { color: #666; font-size: .85rem }
caption { caption-side: bottom; text-align: left; color: #666; font-size: .85rem }
"""


def to_markdown(
    messages: Sequence[BaseMessage],
    *,
    title: str = "",
    language: str = "en",
    draw: Draw | None = None,
) -> str:
    """Return a transcript as CommonMark with tables."""
    blocks = [f"# {escaped(' '.join(plain(title).split()) or word('untitled', language))}"]
    blocks += [_markdown(part, language) for part in _drawn(parts_of(messages), draw)]
    return "\n\n".join(blocks) + "\n"


def to_html(
    messages: Sequence[BaseMessage],
    *,
    title: str = "",
    language: str = "en",
    draw: Draw | None = None,
) -> str:
    """Return a transcript as an HTML page that loads nothing and runs nothing."""
    name = _text(" ".join(plain(title).split()) or word("untitled", language))
    body = "\n".join(_html(part, language) for part in _drawn(parts_of(messages), draw))
    return (
        f'<!DOCTYPE html>\n<html lang="{"zh" if language == "zh" else "en"}">\n<head>\n<meta'
        ' charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width,'
        f' initial-scale=1">\n<title>{name}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n{body}\n</body>\n</html>\n"
    )


def _drawn(parts: Iterable[Part], draw: Draw | None) -> Iterator[Part]:
    """Yield the parts. The text of a chart is replaced by its picture. If there is no picture, the
    chart becomes code.
    """
    for part in parts:
        if not isinstance(part, Drawing):
            yield part
            continue
        picture = draw(part) if draw else None
        yield replace(part, text=plain(picture)) if picture else Code("", "json", part.text)


# -- Markdown --------------------------------------------------------------------------------------


def escaped(text: str) -> str:
    """Return Markdown that shows a plain text unchanged: line breaks stay, and no character is read
    as markup.
    """
    lines = [line.strip() for line in _SPECIAL.sub(r"\\\1", text).split("\n")]
    # What would begin a list or underline a heading; an empty line would end the paragraph.
    safe = [_NUMBERED.sub(r"\1\\\2", _LINE_START.sub(r"\\\1", line)) or "&nbsp;" for line in lines]
    return "\\\n".join(safe)


def fenced(text: str, language: str) -> str:
    """Return code between two fences that are longer than any run of backticks in the code."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _markdown(part: Part, language: str) -> str:
    match part:
        case Heading():
            return f"## {word('turn', language, turn=part.turn)}{f' · {escaped(part.time)}' if part.time else ''}"
        case Speech():
            note = f" ({word('excluded', language)})" if part.excluded else ""
            text = (
                part.text.strip("\n")
                if part.markdown and harmless(part.text)
                else escaped(part.text.strip())
            )
            return (
                f"**{word(part.role, language)}{f' ({escaped(part.speaker)})' if part.speaker else ''}**{note}\n\n"
                + _quoted(text)
            )
        case Code():
            label = (
                f"**{word('call', language, name=escaped(part.name))}**"
                if part.name
                else f"**{word('tool', language)}**"
            )
            return f"{label}\n\n{fenced(part.text, part.language)}"
        case Rows():
            lines = [part.columns, ["---"] * len(part.columns)]
            table = "\n".join(
                f"| {' | '.join(cells)} |"
                for cells in [_cells(lines[0]), lines[1], *map(_cells, part.rows)]
            )
            return f"{table}\n\n{word('rows', language, shown=len(part.rows), count=part.count)}"
        case Drawing():  # in one line, in a block of HTML: nothing in it is read as Markdown
            return f"**{word('chart', language, handle=escaped(part.handle))}**\n\n<div>{part.text}</div>"
        case Failure():
            return f"**{word('failed', language)}**\n\n{_quoted(escaped(part.text.strip()))}"


def _cells(cells: Sequence[str]) -> list[str]:
    return [escaped(cell) for cell in cells]


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def harmless(text: str) -> bool:
    """Return whether a Markdown text contains no HTML, no picture and no link definition."""
    env: dict[str, object] = {}
    tokens = _parser(safe=False).parse(text, env)
    return not env.get("references") and not any(
        token.type in {"html_block", "html_inline", "image"} for token in [*tokens, *_inner(tokens)]
    )


def _row(cells: Sequence[str], tag: str) -> str:
    """Return the row of a table in HTML."""
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


@cache
def _parser(*, safe: bool) -> "MarkdownIt":
    """Return a parser of Markdown. A safe one takes HTML for text, and knows no pictures."""
    from markdown_it import MarkdownIt  # 60 modules, which a turn does not need

    parser = MarkdownIt("commonmark", {"html": not safe}).enable(["table", "strikethrough"])
    return parser.disable(["image", "reference"]) if safe else parser


def _inner(tokens: "Sequence[Token]") -> "list[Token]":
    return list(chain.from_iterable(token.children or [] for token in tokens))


# -- HTML ------------------------------------------------------------------------------------------


def safe_html(markdown: str) -> str:
    """Return Markdown as HTML. HTML tags in it are shown as text, and pictures are not loaded."""
    rendered: str = _parser(safe=True).render(markdown)
    return rendered


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _html(part: Part, language: str) -> str:
    match part:
        case Heading():
            time = (
                f' · <time datetime="{_text(part.time)}">{_text(part.time)}</time>'
                if part.time
                else ""
            )
            return f"<h2>{_text(word('turn', language, turn=part.turn))}{time}</h2>"
        case Speech():
            note = f" ({_text(word('excluded', language))})" if part.excluded else ""
            kind = f"said {part.role}{' excluded' if part.excluded else ''}"
            body = (
                safe_html(part.text)
                if part.markdown
                else f'<div class="plain">{_text(part.text.strip())}</div>'
            )
            name = f" ({_text(part.speaker)})" if part.speaker else ""
            return (
                f'<div class="{kind}" dir="auto"><span'
                f' class="role">{_text(word(part.role, language))}{name}{note}</span>{body}</div>'
            )
        case Code():
            label = _text(
                word("call", language, name=part.name) if part.name else word("tool", language)
            )
            opened = " open" if part.language == "sql" else ""
            return (
                f"<details{opened}><summary>{label}</summary>"
                "<pre><code"
                f' class="language-{part.language}">{_text(part.text)}</code></pre></details>'
            )
        case Rows():
            head = _row(part.columns, "th")
            rows = "".join(_row(row, "td") for row in part.rows)
            caption = _text(word("rows", language, shown=len(part.rows), count=part.count))
            return (
                "<div"
                f' class="rows"><table><caption>{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
            )
        case Drawing():
            label = _text(word("chart", language, handle=part.handle))
            return f"<figure>{part.text}<figcaption>{label}</figcaption></figure>"
        case Failure():
            return (
                '<div class="said failed" dir="auto"><span'
                f' class="role">{_text(word("failed", language))}</span>{_text(part.text)}</div>'
            )
