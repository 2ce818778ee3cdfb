"""Hold the figures of an answer against the results of its turn, and against what the thread said before."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.figures import figures, number_in
from longtable.memory.number_check import Source, unsupported
from longtable.memory.stamps import turn_number
from longtable.memory.thread import Thread
from longtable.nodes.repairs import NO_TRY
from longtable.tools.cells import json_value
from longtable.tools.database import QueryResult

MOST_CELLS = 1_000_000
"""Cells of a turn's results past which nothing is checked, and nothing flagged."""
MOST_FLAGGED = 20
EARLIER_TURNS = 3
"""Turns before this one whose results an answer may compare with."""
EARLIER_MESSAGES = 200
TEXT_CHARS = 1_500

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""What moves a terminal's cursor or colours its text claims no figure."""

Whole = Callable[[str], QueryResult | None]
"""Returns the result behind a handle, None where it is not kept."""


def unsupported_in(thread: Thread, turn: int, whole: Whole) -> list[str]:
    """Return the figures of the turn's answer that no result of the turn gives, directly or by one step, as written.

    What an earlier answer, result or the memory says may be repeated, and compared with what the last turns found. A turn
    that asked no query is not checked, nor one whose rows are not all here: nothing is flagged by guess.
    """
    messages = [message for message in thread.messages if turn_number(message) == turn]
    answer = messages[-1] if messages else None
    if not isinstance(answer, AIMessage) or not answer.text.strip():
        return []
    sources: list[Source] = []
    queried = False
    for message in messages:
        if not isinstance(message, ToolMessage):
            continue
        told = _json(message)
        queried |= message.status == "error" and _is_failed_query(told)  # then every figure is made up, but what the error says
        if not _is_result(told):
            sources.append(_texts([message]))
            continue
        source = _source(told, whole)
        if source is None:
            return []
        queried = True
        sources.append(source)
        # What is told beside the rows may be repeated: of columns that are not shown, and why nothing was found.
        sources += [_as_text(_figures(leaf) for leaf in _leaves(told[name])) for name in ("summary", "empty") if name in told]
    if not queried or sum(len(source.rows) * len(source.columns) for source in sources) > MOST_CELLS:
        return []
    question = "\n".join(str(message.text) for message in messages if message.type == "human")
    text = _ESCAPES.sub("", str(answer.text))
    left = unsupported(text, sources, question)
    if left:
        earlier = [message for message in thread.messages if turn_number(message) != turn]
        more = [*_recent(earlier, turn), _texts(earlier[-EARLIER_MESSAGES:]), _memory(thread)]
        again = {(figure.start, figure.end) for figure in unsupported(text, [*sources, *more], question)}
        left = [figure for figure in left if (figure.start, figure.end) in again]
    return list(dict.fromkeys(figure.text for figure in left))[:MOST_FLAGGED]


def _json(message: BaseMessage) -> Any:
    try:
        return json.loads(message.text)
    except (ValueError, RecursionError):
        return message.text


def _is_result(told: Any) -> bool:
    return isinstance(told, dict) and isinstance(told.get("columns"), list) and isinstance(told.get("rows"), list)


def _is_failed_query(told: Any) -> bool:
    error = told.get("error") if isinstance(told, dict) else None
    return isinstance(error, dict) and ("problem" in error or error.get("class") in NO_TRY)


def _source(told: dict[str, Any], whole: Whole) -> Source | None:
    """Return all rows of a result, None where some are neither shown nor kept."""
    rows = [row for row in told["rows"] if isinstance(row, list)]
    count = told.get("row_count", told.get("total"))
    count = count if isinstance(count, int) else len(rows)
    if count <= len(rows) and not told.get("shown_columns"):
        return Source(told["columns"], rows, count, str(told.get("sql", "")))
    if count * len(told["columns"]) > MOST_CELLS:  # not even loaded: millions of rows take seconds
        return None
    result = whole(told["handle"]) if isinstance(told.get("handle"), str) else None
    if result is None:
        return None
    return Source(result.columns, [[json_value(cell) for cell in row] for row in result.shown(result.rows)], result.row_count, result.sql)


def _recent(earlier: Sequence[BaseMessage], turn: int) -> list[Source]:
    """Return the results of the last turns, as far as they were shown."""
    told = [_json(m) for m in earlier if isinstance(m, ToolMessage) and turn - turn_number(m) <= EARLIER_TURNS]
    shown = [{**found, "row_count": 0, "shown_columns": 0} for found in told if _is_result(found)]
    return [source for found in shown if (source := _source(found, lambda _: None))]


def _texts(messages: Sequence[BaseMessage]) -> Source:
    """Return the figures of messages as text: they may be repeated, but nothing is made of them."""
    return _as_text(leaf for message in messages for leaf in _said(message))


def _memory(thread: Thread) -> Source:
    return _as_text(_figures(leaf) for record in thread.compactions[-1:] for leaf in _leaves(record))


def _said(message: BaseMessage) -> Iterator[str]:
    if isinstance(message, ToolMessage) and not isinstance(told := _json(message), str):
        yield from (_figures(leaf) for leaf in _leaves(told))
    else:
        yield _figures(str(message.text))


def _figures(text: str) -> str:
    if (number := number_in(text)) is not None:
        return f"{number:.6f}"
    return " ".join(f"{figure.value:.6f}" for figure in figures(text)) if any(char.isnumeric() for char in text) else ""


def _leaves(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        for value in told.values():
            yield from _leaves(value)
    elif isinstance(told, list):
        for value in told:
            yield from _leaves(value)
    elif isinstance(told, int | float | str) and not isinstance(told, bool):
        yield str(told)


def _as_text(parts: Iterator[str]) -> Source:
    rows: list[list[object]] = []
    held = ""
    for part in parts:
        for number in part.split():
            held += f" n{number}"  # a letter before it: a cell that is one number would be added up
            if len(held) > TEXT_CHARS:
                rows.append([held])
                held = ""
    return Source(("said",), [*rows, [held]] if held else rows, 1)
