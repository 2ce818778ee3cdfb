"""The query ledger: one line for each query that ran, made by code from tool messages, and its text
for the view.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import accumulate, islice
from operator import getitem
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.counting.tokens import levels_that_fit
from longtable.memory.messages.marks import TABLES, is_recalled, marks_of, turn_number
from longtable.memory.messages.rounds import all_calls

QUESTION_CHARS = 200
FIGURES_CHARS = 160
CELL_CHARS = 32
FIGURE_ROWS = 3
FIGURE_COLUMNS = 6

Json = Any


@dataclass(frozen=True)
class LedgerLine:
    """One query that ran.

    `sql`: the SQL as the engine ran it. `tables`: the tables that the query read, as the database
    reports them. `rows`: the row count of the result. `figures`: the first figures of the result,
    in short form. `handle`: where the full result is kept, "" if nowhere. `message_id`: id of the
    tool message with the result. `database`: the name of the database, "" if there was only one.
    """

    turn: int
    question: str
    sql: str
    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: int = 0
    figures: str = ""
    handle: str = ""
    message_id: str = ""
    database: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the line as plain JSON."""
        plain = {**asdict(self), "tables": list(self.tables), "columns": list(self.columns)}
        if not self.database:
            del plain["database"]
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "LedgerLine":
        """Read the JSON that `as_json` wrote. The field for filters in JSON of an earlier version
        is ignored.
        """
        lists = {name: tuple(data[name]) for name in ("tables", "columns")}
        known = {"database": "", **data}
        return cls(**{**{name: known[name] for name in cls.__dataclass_fields__}, **lists})


def ledger_lines(messages: Sequence[BaseMessage]) -> list[LedgerLine]:
    """Return a line for each query that ran, in the order of the messages. The same SQL gives one
    line per round.

    Failed calls, recalled messages and answers that are no query results give no line.
    """
    lines: list[LedgerLine] = []
    question = ""
    questions: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    for message in messages:
        if is_recalled(message):
            continue
        if message.type == "human":
            question = _clip(" ".join(str(message.text).split()), QUESTION_CHARS)
            seen = set()
        elif isinstance(message, AIMessage):
            questions.update(
                {
                    call["id"] or "": call["args"]["sql"]
                    for call in all_calls(message)
                    if isinstance(call["args"].get("sql"), str)
                }
            )
        elif isinstance(message, ToolMessage) and message.status != "error":
            line = _line(message, questions.get(message.tool_call_id, ""), question)
            if line and (line.database, line.sql) not in seen:
                seen.add((line.database, line.sql))
                lines.append(line)
    return lines


def _line(message: ToolMessage, called: str, question: str) -> LedgerLine | None:
    answer = _answer(str(message.text))
    if answer is None:
        return None
    sql = answer.get("sql")
    sql = sql if isinstance(sql, str) and sql.strip() else called
    if not sql.strip():
        return None
    columns = tuple(map(str, _list(answer.get("columns"))))
    rows = [_list(row) for row in _list(answer.get("rows"))]
    handle = answer.get("handle")
    database = answer.get("database")
    return LedgerLine(
        turn=turn_number(message),
        question=question,
        sql=sql,
        tables=tuple(map(str, _list(marks_of(message).get(TABLES)))),
        columns=columns,
        rows=_row_count(answer, rows),
        figures=figures_of(columns, rows),
        handle=handle if isinstance(handle, str) else "",
        message_id=message.id or "",
        database=database if isinstance(database, str) and _WORD.fullmatch(database) else "",
    )


def _row_count(answer: Mapping[str, Json], rows: Sequence[object]) -> int:
    """Return the row count that an answer states, else the number of rows that it shows."""
    count = answer.get("row_count")
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 10**15:
        return count
    return len(rows)


def _answer(text: str) -> dict[str, Json] | None:
    """Return the JSON of a query's answer, None if the text is something else or was cut."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return (
        answer
        if isinstance(answer, dict) and "row_count" in answer and "columns" in answer
        else None
    )


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def figures_of(columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> str:
    """Return the first cells of a result as short text. A single row gives "count=6200, avg=3.4";
    several rows give the first three, such as "Oslo/12; Bergen/7".
    """
    if not rows:
        return ""
    if len(rows) == 1:
        cells = [f"{name}={_cell(cell)}" for name, cell in zip(columns, rows[0], strict=False)][
            :FIGURE_COLUMNS
        ]
        return _clip(", ".join(cells), FIGURES_CHARS)
    short = ["/".join(map(_cell, row[:FIGURE_COLUMNS])) for row in rows[:FIGURE_ROWS]]
    return _clip("; ".join(short), FIGURES_CHARS)


def _cell(value: Json) -> str:
    text = (
        "null"
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
    )
    return _clip(" ".join(text.split()), CELL_CHARS)


def _clip(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


FRESH = 4
"""Number of newest lines that keep their figures as long as an older line can be shortened instead.
Follow-up questions are mostly about these lines.
"""

HEADING = {
    "en": "Queries that ran, the SQL word for word (⏎ stands for a line break):",
    "zh": "已执行的查询，SQL 逐字保留（⏎ 表示换行）：",
}
_LEFT_OUT = {
    "en": "({n} earlier queries did not fit here; they are in the transcript.)",
    "zh": "（另有 {n} 条查询因篇幅未列出，见会话记录。）",
}

# Everything that str.splitlines takes for a line end, as one visible character. A backslash would
# need doubling, and a pattern in SQL would no longer read as it ran.
_SIGNS = {
    "\n": "⏎",
    "\r": "␍",
    "\v": "␋",
    "\f": "␌",
    "\x1c": "␜",
    "\x1d": "␝",
    "\x1e": "␞",
    "\x85": "␤",
    "\u2028": "␊",
    "\u2029": "␗",
}
_ESCAPE = "␛"
_BREAKS = {sign: char for char, sign in _SIGNS.items()}
_TO_WRITE = re.compile(f"[{''.join(_SIGNS)}{''.join(_BREAKS)}{_ESCAPE}]")
_TO_READ = re.compile(f"{_ESCAPE}(.)|[{''.join(_BREAKS)}]", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w{0,63}")
"""Pattern of the name of a database."""
_START = re.compile(rf'- T(\d+)(?: in ({_WORD.pattern}))? (?=")')
_FIELD = re.compile(rf"((?:[^|{_ESCAPE}]|{_ESCAPE}.)*) \| ")
_NAME = re.compile(rf"((?:[^,{_ESCAPE}]|{_ESCAPE}.)+)(?:, |$)")
_ROWS = "rows "
_HANDLE = "handle "
_TABLES = "tables "
_SQL = "SQL: "


def fit_ledger(
    lines: Sequence[LedgerLine], budget: int, count: Callable[[str], int], language: str = "en"
) -> tuple[list[LedgerLine], int]:
    """Return the lines that fit `budget` tokens together with the heading, in order, and how many
    were dropped.

    A line that alone is over the budget is dropped first. Then older lines lose their figures,
    oldest first. Then older lines are dropped, oldest first. The newest four lose their figures or
    are dropped only if no other line is left. Lines that are too old to stay are not tokenized,
    because counting all 190 lines of a long thread three times took a third of a turn's time.
    """
    room = budget - count(HEADING[language]) - 1
    costs = (_cost(line, count) for line in reversed(lines))
    if all(total <= room for total in accumulate(costs)):
        return list(lines), 0
    room -= count(_LEFT_OUT[language].format(n=len(lines))) + 1
    newest = (
        line
        for line in reversed(lines)
        if _cost(line, count) <= room or _cost(_bare(line), count) <= room
    )
    fresh = list(islice(newest, FRESH))[::-1]
    left = room - sum(_cost(line, count) for line in fresh)
    if left < 0:
        fitting = _shortened(fresh, room, count)
    else:
        older: list[LedgerLine] = []
        bare = 0
        for line in newest:
            older.append(line)
            bare += _cost(_bare(line), count)
            if bare > left:
                break
        fitting = [*_shortened(older[::-1], left, count), *fresh]
    return fitting, len(lines) - len(fitting)


def _shortened(
    lines: Sequence[LedgerLine], room: int, count: Callable[[str], int]
) -> list[LedgerLine]:
    """Return the lines that fit `room` tokens. First lines lose their figures, oldest first; then
    lines are dropped, oldest first.
    """
    costs = [(_cost(line, count), _cost(_bare(line), count), 0) for line in lines]
    levels = levels_that_fit(len(lines), 2, lambda levels: sum(map(getitem, costs, levels)) <= room)
    return [
        (line, _bare(line))[level]
        for line, level in zip(lines, levels or (), strict=False)
        if level < 2
    ]


@lru_cache(maxsize=16_384)
def _bare(line: LedgerLine) -> LedgerLine:
    return replace(line, figures="")


def render_ledger(lines: Sequence[LedgerLine], language: str, left_out: int = 0) -> str:
    """Return the heading and one line for each query, "" if there is no query."""
    if not lines and not left_out:
        return ""
    text = [HEADING[language], *(_written(line) for line in lines)]
    if left_out:
        text.append(_LEFT_OUT[language].format(n=left_out))
    return "\n".join(text)


def ledger_in(text: str) -> list[LedgerLine]:
    """Return the lines in a text that `render_ledger` made, each with turn, question, rows, handle,
    figures, tables and the exact SQL.
    """
    return [line for raw in text.split("\n") if (line := _read(raw))]


@lru_cache(maxsize=16_384)
def _written(line: LedgerLine) -> str:
    # The same lines are fitted again before each call.
    fields = [f'"{_field(line.question)}"', f"{_ROWS}{line.rows}"]
    if line.handle:
        fields.append(f"{_HANDLE}{_field(line.handle)}")
    if line.figures:
        # A figure that begins like another field is told apart by the escape.
        mark = _ESCAPE if line.figures.startswith((_ROWS, _HANDLE, _TABLES, _SQL)) else ""
        fields.append(mark + _field(line.figures))
    if line.tables:
        fields.append(
            _TABLES + ", ".join(_field(name).replace(",", f"{_ESCAPE},") for name in line.tables)
        )
    place = f" in {line.database}" if line.database else ""
    return f"- T{line.turn}{place} {' | '.join(fields)} | {_SQL}{_encode(line.sql)}"


def _read(text: str) -> LedgerLine | None:
    start = _START.match(text)
    if not start:
        return None
    place = start.end()
    fields: list[str] = []
    while not (fields and text.startswith(_SQL, place)):
        match = _FIELD.match(text, place)
        if not match:
            return None
        fields.append(match[1])
        place = match.end()
    question, rows, *others = [*fields, ""] if len(fields) == 1 else fields
    if not (
        len(question) > 1
        and question.endswith('"')
        and rows.startswith(_ROWS)
        and rows[len(_ROWS) :].isdecimal()
    ):
        return None
    line = LedgerLine(
        int(start[1]),
        _decode(question[1:-1]),
        _decode(text[place + len(_SQL) :]),
        rows=int(rows[len(_ROWS) :]),
        database=start[2] or "",
    )
    for other in others:
        if other.startswith(_HANDLE):
            line = replace(line, handle=_decode(other[len(_HANDLE) :]))
        elif other.startswith(_TABLES):
            line = replace(
                line, tables=tuple(_decode(name) for name in _NAME.findall(other[len(_TABLES) :]))
            )
        else:
            line = replace(line, figures=_decode(other))
    return line


def _encode(text: str) -> str:
    return _TO_WRITE.sub(lambda match: _SIGNS.get(match[0]) or f"{_ESCAPE}{match[0]}", text)


def _field(text: str) -> str:
    return _encode(text).replace("|", f"{_ESCAPE}|")


def _decode(text: str) -> str:
    return _TO_READ.sub(lambda match: match[1] or _BREAKS[match[0]], text)


def _cost(line: LedgerLine, count: Callable[[str], int]) -> int:
    return count(_written(line)) + 1
