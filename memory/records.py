"""The record that a compaction leaves in the state, and the data in such records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from longtable.memory.counting.provider_reports import UNKNOWN
from longtable.memory.counting.usage import SummaryCall
from longtable.memory.pins.pins import PinEnd


class Covered(TypedDict):
    """The messages that a compaction covers."""

    id: str
    previous: str | None
    """Id of the compaction that it continues."""
    strategy: NotRequired[str]
    """Absent in records from before there were other strategies than "rolling"."""
    from_id: str | None
    to_id: str | None
    """First and last message covered."""
    count: int
    """How many messages of the transcript it covers."""
    length: int
    """Messages of the transcript when it was made."""
    folded: int
    """Number of messages that it is the first to cover."""


class Memory(TypedDict):
    """The content that a compaction keeps of the messages that it covers."""

    summary: str
    ledger_budget: NotRequired[int]
    """Most tokens of the query ledger beside its text."""
    pins: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    excluded: list[int]
    """Numbers of covered messages that were excluded."""
    rebuilt: bool
    """Whether its text was made from the originals."""
    language: str


class Writing(TypedDict):
    """How a compaction was written, and how many tokens it saves. Token counts are of the next
    call.
    """

    method: Literal["model", "fallback"]
    coverage: float
    coverage_note: str
    summary_tokens: int
    folded_tokens: int
    tokens_before: int
    tokens_after: int
    policy_version: int
    turn: int
    time: str


class Compaction(Covered, Memory, Writing):
    """One compaction as the state keeps it: plain JSON."""

    kind: NotRequired[Literal["results"]]
    """Present in a record without a memory: it only shrinks results of tools to their heads, up to
    its last message.
    """
    ended: NotRequired[list[PinEnd]]
    """Ends of pins that, as the summariser found, the user took back or replaced."""
    writer: NotRequired[str]
    """Name of the model that wrote it, or "code". Absent in records from before this was stored;
    see `writer_of`.
    """
    why_by_code: NotRequired[str]
    """Why code wrote it, "" if a model did."""
    spent: NotRequired[list[SummaryCall]]
    """Tokens of the summariser's calls."""
    kept: NotRequired[dict[str, Any]]
    """The strategy's own data."""
    earlier: NotRequired[int]
    """Number of lines of the ledger that were left out. Only merged records have this key and the
    keys below.
    """
    folds: NotRequired[int]
    """Compactions since the last one that was made from the originals."""
    merged: NotRequired[int]
    """How many compactions were merged into it; they are in the store."""
    replaces: NotRequired[list[str]]
    """Ids of the merged compactions that were in the state."""


BY_CODE = "code"


def is_results(record: Compaction) -> bool:
    """Return whether a compaction wrote no memory: it only shrinks results of tools."""
    return record.get("kind") == "results"


def writer_of(record: Compaction) -> str:
    """Return who wrote a compaction: the name of a model, or "code"."""
    if record["method"] == "fallback":
        return BY_CODE
    return record.get("writer") or next(
        (call["model"] for call in reversed(record.get("spent", []))), UNKNOWN
    )


def stored_pins(records: Iterable[Compaction]) -> Iterator[dict[str, Any]]:
    """Yield the pins that compactions keep, oldest first."""
    for record in records:
        yield from record.get("pins", ())


def stored_ends(records: Iterable[Compaction]) -> Iterator[PinEnd]:
    """Yield the ends of pins that compactions keep."""
    for record in records:
        yield from record.get("ended", ())


def stored_lines(records: Iterable[Compaction]) -> Iterator[dict[str, Any]]:
    """Yield the lines of the query ledger that compactions keep."""
    for record in records:
        yield from record.get("ledger", ())


def stored_topics(record: Compaction) -> Sequence[dict[str, Any]]:
    """Return the versions of topics that a compaction keeps."""
    kept: Mapping[str, Any] = record.get("kept") or {}
    topics: Sequence[dict[str, Any]] = kept.get("topics", ())
    return topics
