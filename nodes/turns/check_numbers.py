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

MOST_CELLS = 300_000
"""Cells of a turn's results past which nothing is checked, and nothing flagged: so many take 3 s."""
MOST_FLAGGED = 20
EARLIER_TURNS = 3
"""Turns before this one whose results an answer may compare with."""
EARLIER_MESSAGES = 100
"""Messages before the turn whose numbers may be repeated: with more, a turn's check grows with its thread."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""What moves a terminal's cursor or colours its text claims no figure."""

Whole = Callable[[str], QueryResult | None]
"""Returns the result behind a handle, None where it is not stored."""

NumberCache = BoundedCache[bytes, "array[float]"]
"""The numbers of messages, by their content: those of an earlier message never change."""
KEPT_MESSAGES = 4_096
"""Messages whose numbers a process keeps: reading 200 tool results anew took half of a turn's own time."""


def unsupported_in(thread: Thread, turn: int, whole: Whole, cache: NumberCache) -> list[str]:
    """Return the figures of the turn's answer, as written, that no result of the turn gives, directly or by one step.

    What an earlier answer or the memory says may be repeated, and compared with the results of the last turns. A turn without
    a query is not checked, nor one whose rows are not all here: nothing is flagged by guess.
    """
    start = len(thread.messages)
    while start and turn_number(thread.messages[start - 1]) == turn:
        start -= 1
    earlier, messages = thread.messages[:start], thread.messages[start:]
    answer = messages[-1] if messages else None
    if not isinstance(answer, AIMessage) or not answer.text.strip():
        return []
    contents = [(message, _json(message)) for message in messages if isinstance(message, ToolMessage)]
    results = [content for _, content in contents if _is_result(content)]
    found = [_source(result, whole) for result in results]
    sources = [source for source in found if source is not None]
    # After a query that failed every figure is made up, but those of the error.
    queried = bool(results) or any(message.status == "error" and _is_failed_query(content) for message, content in contents)
    if not queried or len(sources) < len(found) or sum(len(source.rows) * len(source.columns) for source in sources) > MOST_CELLS:
        return []
    numbers = [n for message, content in contents if not _is_result(content) for n in _numbers_of(message, cache)]
    # The summary is of columns that are not shown, "empty" says why there are no rows.
    numbers += [n for result in results for name in ("summary", "empty") for leaf in _leaves(result.get(name)) for n in _numbers_in(leaf)]
    question = "\n".join(str(message.text) for message in messages if message.type == "human")
    text = _ESCAPES.sub("", str(answer.text))
    left = unsupported(text, sources, question, numbers)
    if left:
        before = earlier[-EARLIER_MESSAGES:]
        numbers += [n for message in before if not isinstance(message, ToolMessage) for n in _numbers_of(message, cache)]
        numbers += [n for compaction in thread.compactions[-1:] for n in _numbers_of_compaction(compaction, cache)]
        cells = [n for message in before if isinstance(message, ToolMessage) for n in _numbers_of(message, cache)]
        again = unsupported(text, [*sources, *_recent(before, turn)], question, numbers, cells)
        places = {figure.start for figure in again}
        left = [figure for figure in left if figure.start in places]
    return list(dict.fromkeys(figure.text for figure in left))[:MOST_FLAGGED]


def _json(message: BaseMessage) -> Any:
    try:
        return json.loads(message.text)
    except (ValueError, RecursionError):
        return message.text


def _is_result(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("columns"), list) and isinstance(content.get("rows"), list)


def _is_failed_query(content: Any) -> bool:
    error = content.get("error") if isinstance(content, dict) else None
    return isinstance(error, dict) and ("problem" in error or error.get("class") in NO_TRY)


def _source(content: dict[str, Any], whole: Whole) -> Source | None:
    """Return all rows of a result, None where some are neither shown nor stored."""
    rows = [row for row in content["rows"] if isinstance(row, list)]
    count = content.get("row_count", content.get("total"))
    count = count if isinstance(count, int) else len(rows)
    if count <= len(rows) and not content.get("shown_columns"):
        return Source(content["columns"], rows, count, str(content.get("sql", "")))
    # Too large a result is not even loaded: millions of rows take seconds.
    handle = content.get("handle") if count * len(content["columns"]) <= MOST_CELLS else None
    result = whole(handle) if isinstance(handle, str) else None
    if result is None:
        return None
    return Source(result.columns, [[json_value(cell) for cell in row] for row in result.shown(result.rows)], result.row_count, result.sql)


def _recent(earlier: Sequence[BaseMessage], turn: int) -> list[Source]:
    """Return the results of the last turns, as far as they were shown."""
    near = takewhile(lambda message: turn - turn_number(message) <= EARLIER_TURNS, reversed(earlier))
    contents = [_json(message) for message in near if isinstance(message, ToolMessage)][::-1]
    shown = [{**content, "row_count": 0, "shown_columns": 0} for content in contents if _is_result(content)]
    return [source for content in shown if (source := _source(content, lambda _: None))]


def _numbers_of(message: BaseMessage, cache: NumberCache) -> "array[float]":
    """Return the numbers that a message holds, of a tool's answer those of its cells."""
    is_tool = isinstance(message, ToolMessage)
    return _cached(f"{'tool ' * is_tool}{message.text}", cache, lambda: _leaves(_json(message) if is_tool else message.text))


def _numbers_of_compaction(compaction: Compaction, cache: NumberCache) -> "array[float]":
    return _cached(f"compaction {compaction['id']} {compaction['summary']}", cache, lambda: _leaves(dict(compaction)))


def _cached(content: str, cache: NumberCache, leaves: Callable[[], Iterable[str]]) -> "array[float]":
    key = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    known = cache.get(key)
    return known if known is not None else cache.put(key, array("d", (number for leaf in leaves() for number in _numbers_in(leaf))))


def _numbers_in(text: str) -> list[float]:
    """Return the sizes of the numbers of a text, to six decimals."""
    if (number := number_in(text)) is not None:
        return [round(abs(number), 6)]
    return [round(abs(figure.value), 6) for figure in figures(text)] if any(char.isnumeric() for char in text) else []


def _leaves(content: Any) -> Iterator[str]:
    if isinstance(content, dict | list):
        for value in content.values() if isinstance(content, dict) else content:
            yield from _leaves(value)
    elif isinstance(content, int | float | str) and not isinstance(content, bool):
        yield str(content)
