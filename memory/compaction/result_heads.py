"""Shrink results of tools to their heads: columns, row count, the first rows, and the handle or
message number that brings the rest back.

This needs no model. It changes only the view: the transcript, the summariser and the query ledger
keep the whole results. The record of a compaction of `kind: "results"` names a message in `to_id`:
results are shrunk up to this message.
"""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from longtable.memory.counting.tokens import compact_json, fingerprint
from longtable.memory.messages.marks import marks_of
from longtable.memory.messages.rounds import DESCRIBED, split_rounds

HEAD_ROWS = 3
LINE_CHARS = 200
"""Most characters of a row, or of a column's name."""
TEXT_CHARS = 400
"""Most characters of a result that is no table."""
MOST_HEAD_CHARS = 1_500
"""Most characters of a head. A wide table loses rows, one by one, until its head is this short."""
WORTH = 0.8
"""A head replaces a result only if it is at most this share of the result's size."""
ROUNDS_WHOLE = (2, 1)
"""How many of the newest rounds with results keep their results whole: two, or one if two do not
fit.
"""
COLUMNS = ("columns", "rows", "row_count", "total", "handle", "page", "pages", "column_count")
"""Fields of a query's answer that the head keeps. The SQL is not among them: the tool call has it.
"""
_SEPARATOR = re.compile(r"[\s|:+=-]+")


def is_result(message: BaseMessage) -> bool:
    """Return whether a message is a tool result that a head would make smaller. False for a
    description of tables: it holds no rows, and the model would ask for it again.
    """
    if not isinstance(message, ToolMessage) or DESCRIBED in marks_of(message):
        return False
    return head_text(str(message.text), 0) is not None


def head_of(message: BaseMessage, number: int) -> BaseMessage:
    """Return a result with its head in place of its text. Any other message is returned unchanged.
    `number`: the message's place in the transcript, from 1.
    """
    text = head_text(str(message.text), number) if is_result(message) else None
    return message if text is None else message.model_copy(update={"content": text})


@lru_cache(maxsize=2_048)
def head_text(text: str, number: int) -> str | None:
    """Return the head of a result's text, None if the head would not be much smaller."""
    head = _head(text, number)
    return head if len(head) <= WORTH * len(text) else None


def shrunk(messages: Sequence[BaseMessage], numbers: dict[str | None, int]) -> list[BaseMessage]:
    """Return the messages with heads in place of results. `numbers`: the numbers of the messages to
    shrink, by id.
    """
    return [
        head_of(message, numbers[message.id]) if message.id in numbers else message
        for message in messages
    ]


def ends_of_whole_rounds(
    messages: Sequence[BaseMessage], excluded: Collection[str] = ()
) -> list[int]:
    """Return the indices before which results may shrink, one for each number of rounds in
    `ROUNDS_WHOLE`; 0 if there are not so many rounds with results.

    A round without a result does not count. Otherwise a mere "thanks" would make the last result
    shrink.
    """
    places: list[int] = []
    start = len(messages)
    for round_ in reversed(split_rounds(messages)):
        start -= len(round_)
        if any(is_result(message) and message.id not in excluded for message in round_):
            places.append(start)
    return [places[whole - 1] if whole <= len(places) else 0 for whole in ROUNDS_WHOLE]


def results_id(messages: Sequence[BaseMessage], *made_of: object) -> str:
    """Return the identity of a compaction that shrinks the results among these messages."""
    digest = hashlib.sha256(f"results/{made_of}".encode())
    for message in filter(is_result, messages):
        digest.update(f"/{message.id}/".encode() + fingerprint(message))
    return digest.hexdigest()[:24]


# -- heads -----------------------------------------------------------------------------------------


def _head(text: str, number: int) -> str:
    answer = _json_of(text)
    recalled = f'recall_history("m{number}")'
    if isinstance(answer, dict) and isinstance(answer.get("rows"), list):
        return _query_head(answer, recalled)
    if isinstance(answer, list):
        return _rows_head([compact_json(row) for row in answer], 0, recalled)
    lines = [line for line in text.splitlines() if line.strip()]
    if answer is None and len(lines) > HEAD_ROWS + 1:
        is_ruled = bool(_SEPARATOR.fullmatch(lines[1]))
        return _rows_head(lines, 2 if is_ruled else 1, recalled)
    whole = f"[shortened: {len(text):,} characters in all; {recalled} reads them]"
    return f"{text[:TEXT_CHARS]}… {whole}"


def _json_of(text: str) -> Any:
    """Return the JSON of a text, None if the text is not JSON."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _query_head(answer: dict[str, Any], recalled: str) -> str:
    """Return a query's answer as JSON with only its first rows."""
    handle = answer.get("handle")
    source = f'fetch_result("{handle}")' if isinstance(handle, str) and handle else recalled
    shown: list[Any] = answer["rows"][:HEAD_ROWS]
    kept = {name: answer[name] for name in COLUMNS if name in answer}

    def written() -> str:
        note = f"first {len(shown)} rows; {source} brings the others back"
        return compact_json({**kept, "rows": shown, "shortened": note})

    return _within(shown, written)


def _rows_head(lines: Sequence[str], heads: int, recalled: str) -> str:
    """Return the heading lines and the first rows of a table as text."""
    rows = len(lines) - heads
    shown = list(lines[: heads + HEAD_ROWS])

    def written() -> str:
        note = f"[first {len(shown) - heads} of {rows:,} rows; {recalled} reads them all]"
        return "\n".join([*(_clipped(line) for line in shown), note])

    return _within(shown, written)


def _within(rows: list[Any], written: Callable[[], str]) -> str:
    """Return the text that `written` makes of `rows`. Rows are removed from the end of the list
    until the text is short enough; one row stays.
    """
    while len(written()) > MOST_HEAD_CHARS and len(rows) > 1:
        rows.pop()
    return written()


def _clipped(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}…"
