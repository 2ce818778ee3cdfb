"""Hold the figures of an answer against the results of its turn, and against what the thread said before."""

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.figures import figures, number_in
from longtable.memory.number_check import Source, unsupported
from longtable.memory.stamps import turn_number
from longtable.memory.thread import Compaction, Thread
from longtable.nodes.records.bounded_cache import BoundedCache
from longtable.nodes.turns.tool_jobs import NO_TRY
from longtable.tools.cells import json_value
from longtable.tools.database import QueryResult

MOST_CELLS = 1_000_000
"""Cells of a turn's results past which nothing is checked, and nothing flagged."""
MOST_FLAGGED = 20
EARLIER_TURNS = 3
"""Turns before this one whose results an answer may compare with."""
EARLIER_MESSAGES = 200

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""What moves a terminal's cursor or colours its text claims no figure."""

Whole = Callable[[str], QueryResult | None]
"""Returns the result behind a handle, None where it is not kept."""


NumberCache = BoundedCache[bytes, "array[float]"]
"""The numbers of messages, by their content: those of an earlier message never change."""
KEPT_MESSAGES = 4_096
"""Messages whose numbers a process keeps: reading 200 tool results anew took half of a turn's own time."""


def unsupported_in(thread: Thread, turn: int, whole: Whole, said: NumberCache) -> list[str]:
    """Return the figures of the turn's answer that no result of the turn gives, directly or by one step, as written.

    What an earlier answer, result or the memory says may be repeated, and compared with what the last turns found. A turn
    that asked no query is not checked, nor one whose rows are not all here: nothing is flagged by guess.
    """
    start = len(thread.messages)
    while start and turn_number(thread.messages[start - 1]) == turn:
        start -= 1
    earlier, messages = thread.messages[:start], thread.messages[start:]
    answer = messages[-1] if messages else None
    if not isinstance(answer, AIMessage) or not answer.text.strip():
        return []
    sources: list[Source] = []
    numbers: list[float] = []
    queried = False
    for message in messages:
        if not isinstance(message, ToolMessage):
            continue
        told = _json(message)
        queried |= message.status == "error" and _is_failed_query(told)  # then every figure is made up, but what the error says
        if not _is_result(told):
            numbers += _numbers_of(message, said)
            continue
        source = _source(told, whole)
        if source is None:
            return []
        queried = True
        sources.append(source)
        # What is told beside the rows may be repeated: of columns that are not shown, and why nothing was found.
        numbers += [number for name in ("summary", "empty") if name in told for leaf in _leaves(told[name]) for number in _numbers_in(leaf)]
    if not queried or sum(len(source.rows) * len(source.columns) for source in sources) > MOST_CELLS:
        return []
    question = "\n".join(str(message.text) for message in messages if message.type == "human")
    text = _ESCAPES.sub("", str(answer.text))
    left = unsupported(text, sources, question, numbers)
    if left:
        before = [number for message in earlier[-EARLIER_MESSAGES:] for number in _numbers_of(message, said)]
        before += [number for compaction in thread.compactions[-1:] for number in _numbers_of_compaction(compaction, said)]
        again = unsupported(text, [*sources, *_recent(earlier, turn)], question, numbers, before)
        places = {(figure.start, figure.end) for figure in again}
        left = [figure for figure in left if (figure.start, figure.end) in places]
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
    near = takewhile(lambda message: turn - turn_number(message) <= EARLIER_TURNS, reversed(earlier))
    told = [_json(message) for message in near if isinstance(message, ToolMessage)][::-1]
    shown = [{**found, "row_count": 0, "shown_columns": 0} for found in told if _is_result(found)]
    return [source for found in shown if (source := _source(found, lambda _: None))]


def _numbers_of(message: BaseMessage, said: NumberCache) -> "array[float]":
    """Return the numbers that a message holds, of a tool's answer those of its cells."""
    text = str(message.text)
    if not isinstance(message, ToolMessage):
        return _known(text, said, lambda: [text])
    return _known(f"tool {text}", said, lambda: [text] if isinstance(told := _json(message), str) else _leaves(told))


def _numbers_of_compaction(compaction: Compaction, said: NumberCache) -> "array[float]":
    leaves = list(_leaves(dict(compaction)))
    return _known("\n".join(leaves), said, lambda: leaves)


def _known(content: str, said: NumberCache, leaves: Callable[[], Iterable[str]]) -> "array[float]":
    key = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    known = said.get(key)
    return known if known is not None else said.put(key, array("d", (number for leaf in leaves() for number in _numbers_in(leaf))))


def _numbers_in(text: str) -> list[float]:
    """Return the sizes of the numbers of a text, to six decimals."""
    if (number := number_in(text)) is not None:
        return [round(abs(number), 6)]
    return [round(abs(figure.value), 6) for figure in figures(text)] if any(char.isnumeric() for char in text) else []


def _leaves(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        for value in told.values():
            yield from _leaves(value)
    elif isinstance(told, list):
        for value in told:
            yield from _leaves(value)
    elif isinstance(told, int | float | str) and not isinstance(told, bool):
        yield str(told)
