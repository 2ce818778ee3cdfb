"""The query ledger's lines: one for each query that ran, made by code from the tool messages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.ledger_sql import filters_in, tables_in
from longtable.memory.rounds import all_calls
from longtable.memory.stamps import is_recalled, turn_number

QUESTION_CHARS = 200
FIGURES_CHARS = 160
CELL_CHARS = 32
FIGURE_ROWS = 3
FIGURE_COLUMNS = 6

Json = Any


@dataclass(frozen=True)
class LedgerLine:
    """One query that ran. `sql` as the engine ran it, `message_id` of the tool message with its result.

    `rows`: how many the result had; `figures`: the first key figures, short; `handle`: where the full result is kept, "" if nowhere.
    """

    turn: int
    question: str
    sql: str
    tables: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: int = 0
    figures: str = ""
    handle: str = ""
    message_id: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {**asdict(self), "tables": list(self.tables), "filters": list(self.filters), "columns": list(self.columns)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "LedgerLine":
        """Read what `as_json` wrote."""
        lists = {name: tuple(data[name]) for name in ("tables", "filters", "columns")}
        return cls(**{**{name: data[name] for name in cls.__dataclass_fields__}, **lists})


def ledger_lines(messages: Sequence[BaseMessage], *, dialect: str = "") -> list[LedgerLine]:
    """Return a line for each query among the messages that ran, in order; the same SQL again in one round counts once.

    Failed calls, recalled messages and answers that are no query results give none. `dialect`: sqlglot's name, "" for any.
    """
    lines: list[LedgerLine] = []
    question = ""
    asked: dict[str, str] = {}
    seen: set[str] = set()
    for message in messages:
        if is_recalled(message):
            continue
        if message.type == "human":
            question = _clip(" ".join(str(message.text).split()), QUESTION_CHARS)
            seen = set()
        elif isinstance(message, AIMessage):
            asked.update({call["id"] or "": call["args"]["sql"] for call in all_calls(message) if isinstance(call["args"].get("sql"), str)})
        elif isinstance(message, ToolMessage) and message.status != "error":
            line = _line(message, asked.get(message.tool_call_id, ""), question, dialect)
            if line and line.sql not in seen:
                seen.add(line.sql)
                lines.append(line)
    return lines


def _line(message: ToolMessage, called: str, question: str, dialect: str) -> LedgerLine | None:
    answer = _answer(str(message.text))
    if answer is None:
        return None
    sql = answer.get("sql")
    sql = sql if isinstance(sql, str) and sql.strip() else called
    if not sql.strip():
        return None
    columns = tuple(str(name) for name in _list(answer.get("columns")))
    rows = [_list(row) for row in _list(answer.get("rows"))]
    count = answer.get("row_count")
    handle = answer.get("handle")
    return LedgerLine(
        turn=turn_number(message),
        question=question,
        sql=sql,
        tables=tables_in(sql, dialect),
        filters=filters_in(sql, dialect),
        columns=columns,
        rows=count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 10**15 else len(rows),
        figures=figures_of(columns, rows),
        handle=handle if isinstance(handle, str) else "",
        message_id=message.id or "",
    )


def _answer(text: str) -> dict[str, Json] | None:
    """Return the JSON of a query's answer, None where a message is something else or was cut."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) and "row_count" in answer and "columns" in answer else None


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def figures_of(columns: Sequence[str], rows: Sequence[Sequence[Json]]) -> str:
    """Return the first figures of a result: "count=6200, avg=3.4" for one row, the first three rows for several."""
    if not rows:
        return ""
    if len(rows) == 1:
        cells = [f"{name}={_cell(cell)}" for name, cell in zip(columns, rows[0], strict=False)][:FIGURE_COLUMNS]
        return _clip(", ".join(cells), FIGURES_CHARS)
    short = ["/".join(_cell(cell) for cell in row[:FIGURE_COLUMNS]) for row in rows[:FIGURE_ROWS]]
    return _clip("; ".join(short), FIGURES_CHARS)


def _cell(value: Json) -> str:
    text = "null" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _clip(" ".join(text.split()), CELL_CHARS)


def _clip(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
