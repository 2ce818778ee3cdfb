"""Compare the figures of an answer with the results of its turn and with earlier messages of the
thread.
"""

import json
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from importlib import import_module
from itertools import takewhile
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.base.concurrency import BoundedCache
from longtable.memory.counting.figures import Figure, Source, bare_numbers, figures
from longtable.memory.messages.marks import turn_number
from longtable.memory.thread import Thread
from longtable.nodes.tooling.tool_jobs import NO_TRY
from longtable.tools.cells import json_rows
from longtable.tools.database import QueryResult

MOST_CELLS = 300_000
"""If a turn's results have more cells than this, no figure is checked or flagged. This many cells
take 3 s.
"""
MOST_FLAGGED = 20
EARLIER_MESSAGES = 100
"""How many messages before the turn are searched for numbers that the answer may repeat. Without
this bound, the check would take longer as the thread grows.
"""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Pattern of a terminal's codes for cursor and colours. Numbers in these codes are not figures of
the answer.
"""

NUMBER_CHECK = "longtable.checks.number_check"
"""Name of the module that judges figures. It is imported by name, so that no package depends on it.
"""


class Unsupported(Protocol):
    """The function `unsupported` of the module `NUMBER_CHECK`."""

    def __call__(
        self,
        answer: str,
        sources: Sequence[Source],
        question: str,
        said: Iterable[float],
        earlier: Iterable[float],
    ) -> list[Figure]:
        """Return the figures of an answer that the results do not support."""
        ...


Whole = Callable[[str], QueryResult | None]
"""Function that returns the stored result of a handle, None if it is not stored."""

NumberCache = BoundedCache[bytes, "array[float]"]
"""The numbers in messages, by a hash of a message's content."""
KEPT_MESSAGES = 4_096
"""Most messages whose numbers a process keeps. Without this cache, reading 200 tool results anew
took half of a turn's own time.
"""


def unsupported_in(thread: Thread, turn: int, whole: Whole, cache: NumberCache) -> list[str]:
    """Return the figures of the turn's answer, as written, that no result of the turn holds and
    that do not follow from a result by one step of calculation.

    Figures of an earlier answer or of the memory may be repeated. A turn without a query is not
    checked. Nor is a turn if some rows of its results are not available here, because nothing may
    be flagged by guess.
    """
    messages = [
        *takewhile(lambda message: turn_number(message) == turn, reversed(thread.messages))
    ][::-1]
    earlier = thread.messages[: len(thread.messages) - len(messages)][-EARLIER_MESSAGES:]
    answer = (
        _ESCAPES.sub("", str(messages[-1].text))
        if messages and isinstance(messages[-1], AIMessage)
        else ""
    )
    tools = [(message, _json(message)) for message in messages if isinstance(message, ToolMessage)]
    results = [content for _, content in tools if "columns" in content and "rows" in content]
    sources = [source for result in results if (source := _source(result, whole)) is not None]
    # After a query that failed every figure is made up, but those of the error.
    errors = [
        content["error"]
        for message, content in tools
        if message.status == "error" and isinstance(content.get("error"), dict)
    ]
    queried = bool(results) or any(
        "problem" in error or error.get("class") in NO_TRY for error in errors
    )
    if (
        not queried
        or len(sources) < len(results)
        or sum(len(source.rows) * len(source.columns) for source in sources) > MOST_CELLS
    ):
        return []
    # The summary is of columns that are not shown, "empty" says why there are no rows.
    stated_numbers: list[float] = []
    for result in results:
        stated_numbers += bare_numbers(f"{result.get('summary')} {result.get('empty')}")
    for message, content in tools:
        if content not in results:
            stated_numbers += bare_numbers(str(message.text))
    tool_numbers: list[float] = []
    user_numbers: list[float] = []
    for each in earlier:
        is_tool = isinstance(each, ToolMessage)
        numbers = _numbers_of(str(each.text), is_tool, cache)
        (tool_numbers if is_tool else user_numbers).extend(numbers)
    for compaction in thread.compactions[-1:]:
        user_numbers += _numbers_of(f"{dict(compaction)}", False, cache)
    question = "\n".join(str(message.text) for message in messages if message.type == "human")
    unsupported: Unsupported = import_module(NUMBER_CHECK).unsupported
    left = unsupported(answer, sources, question, [*stated_numbers, *user_numbers], tool_numbers)
    return list(dict.fromkeys(figure.text for figure in left))[:MOST_FLAGGED]


def _json(message: BaseMessage) -> dict[str, Any]:
    try:
        content = json.loads(str(message.text))
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {}


def _source(content: dict[str, Any], whole: Whole) -> Source | None:
    """Return a result with all its rows. Return None if some rows are neither shown in the message
    nor stored.
    """
    rows = [row for row in content["rows"] if isinstance(row, list)]
    count = content.get("row_count", content.get("total"))
    count = count if isinstance(count, int) else len(rows)
    if count <= len(rows) and not content.get("shown_columns"):
        return Source(content["columns"], rows, count, str(content.get("sql", "")))
    # Too large a result is not even loaded: millions of rows take seconds.
    handle = content.get("handle") if count * len(content["columns"]) <= MOST_CELLS else None
    result = whole(handle) if isinstance(handle, str) else None
    cells = json_rows(result.shown(result.rows)) if result else []
    return Source(result.columns, cells, result.row_count, result.sql) if result else None


def _numbers_of(text: str, is_tool: bool, cache: NumberCache) -> "array[float]":
    """Return the numbers in a message: all numbers of a tool's result, or the figures that any
    other text claims.
    """
    key = blake2b(f"{is_tool} {text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    known = cache.get(key)
    return (
        known
        if known is not None
        else cache.put(
            key, array("d", bare_numbers(text) if is_tool else [f.value for f in figures(text)])
        )
    )
