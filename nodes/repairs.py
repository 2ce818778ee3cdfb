"""Bound how often a failing query is mended in one turn: counted from the turn's own messages, so a restart forgets nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.base.errors import DatabaseUnavailableError, LongtableError, QueryCancelledError
from longtable.memory.rounds import all_calls
from longtable.memory.stamps import turn_number
from longtable.memory.tokens import compact_json
from longtable.nodes.answers import told_in

FINAL = (
    "No further try is allowed in this turn. Do not call this tool again; tell the user that the query could not be made to run, "
    "with this last error, and do not guess what it would have returned."
)


class RepairsUsedUpError(LongtableError):
    """The turn has no repair left; the query was not run."""

    def __init__(self, *, repairs: int, last: str) -> None:
        tries = f"{repairs} repair{'' if repairs == 1 else 's'}"
        super().__init__(f"not run: the query failed, and so did {tries} of it. The last error was: {last} {FINAL}")
        self.repairs, self.last = repairs, last


class QueryRejectedError(LongtableError):
    """A person did not approve the query; it was not run."""

    def __init__(self, reason: str) -> None:
        told = f"their reason: {reason}" if reason else "they gave no reason"
        super().__init__(f"not run: the user did not approve this query; {told}. Do not send it again unless the user asks for it")
        self.reason = reason


NO_TRY = {RepairsUsedUpError.code, QueryRejectedError.code, DatabaseUnavailableError.code, QueryCancelledError.code}
"""Classes of errors that say nothing against the query."""


@dataclass(frozen=True)
class Tries:
    """How the queries of a turn went so far."""

    failed: int
    """Failed tries: what failed at first counts once, however many calls were made at the same time; then each."""
    last: str
    """The newest error."""

    def left(self, repairs: int) -> int | None:
        """Return how many more may fail; None before the first has failed."""
        return max(0, repairs + 1 - self.failed) if self.failed else None


def tries_of(messages: Sequence[BaseMessage], turn: int, queries: Collection[str]) -> Tries:
    """Count the failed calls of these tools in a turn, which the newest messages are."""
    newest: list[BaseMessage] = []
    for message in reversed(messages):
        if message.type == "human" or (turn_number(message) or turn) != turn:
            break
        newest.append(message)
    asked_by: dict[str, int] = {}
    failed: dict[int, int] = {}
    last = ""
    for place, message in enumerate(reversed(newest)):
        if isinstance(message, AIMessage):
            asked_by.update({call["id"] or "": place for call in all_calls(message)})
        elif isinstance(message, ToolMessage) and message.name in queries and (error := _error(message)):
            asker = asked_by.get(message.tool_call_id, -1)
            failed[asker] = failed.get(asker, 0) + 1
            last = str(error.get("message", ""))
    first = min(failed, default=0)
    return Tries(sum(1 if asker == first else count for asker, count in failed.items()), last)


def told(answer: ToolMessage, left: int) -> ToolMessage:
    """Return the answer of a failed query with the repairs that are left, and what to do when none is."""
    if (error := _error(answer)) is None:
        return answer
    more: dict[str, Any] = {"repairs_left": left} if left else {"repairs_left": 0, "final": FINAL}
    return answer.model_copy(update={"content": compact_json({"error": {**error, **more}})})


def _error(message: ToolMessage) -> Mapping[str, Any] | None:
    """Return what a failed query's answer tells, None for any other."""
    if message.status != "error":
        return None
    error = told_in(message).get("error")
    return error if isinstance(error, dict) and error.get("class") not in NO_TRY else None
