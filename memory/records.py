"""The record that a compaction leaves in the state, and the data in such records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from longtable.base.errors import Reason
from longtable.memory.counting.provider_reports import UNKNOWN
from longtable.memory.counting.usage import SummaryCall
from longtable.memory.pins.pins import PinEnd


class Covered(TypedDict):
    """The messages that a compaction covers."""

    id: str
    previous: str | None
    """Id of the compaction that this one continues, None for the first."""
    strategy: NotRequired[str]
    """Absent in old records, from before there were other strategies than "rolling"."""
    from_id: str | None
    to_id: str | None
    """Ids of the first (`from_id`) and the last (`to_id`) covered message."""
    count: int
    """How many messages of the transcript the compaction covers."""
    length: int
    """How many messages the transcript had when the compaction was made."""
    folded: int
    """How many of the covered messages no earlier compaction covers. In a compaction of results:
    how many results it is the first to shrink.
    """


class Memory(TypedDict):
    """The content that a compaction keeps of the messages that it covers."""

    summary: str
    ledger_budget: NotRequired[int]
    """Most tokens of the query ledger beside the summary."""
    pins: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    excluded: list[int]
    """Numbers of the covered messages that were excluded when the memory was written."""
    rebuilt: bool
    """Whether the summary was made from the originals instead of the previous summary."""
    language: str


class Writing(TypedDict):
    """How a compaction was written, and how many tokens it saves. `tokens_before` and
    `tokens_after` are sizes of the next call.
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


class CompactionReport(TypedDict):
    """How a compaction went, as its event told it."""

    ms: int
    reasons: list[Reason]
    ahead: bool
    archive: NotRequired[str]


class Compaction(Covered, Memory, Writing):
    """One compaction as the state keeps it: plain JSON."""

    kind: NotRequired[Literal["results"]]
    """Present in a compaction without a memory, which only shrinks results of tools to their heads,
    up to the message `to_id`.
    """
    ended: NotRequired[list[PinEnd]]
    """Ends of pins. The summariser found that the user took these pins back or replaced them."""
    writer: NotRequired[str]
    """Name of the model that wrote the memory, or "code". Absent in records of earlier versions;
    see `writer_of`.
    """
    why_by_code: NotRequired[str]
    """Why code wrote the memory, "" if a model wrote it."""
    spent: NotRequired[list[SummaryCall]]
    """Tokens of the summariser's calls."""
    kept: NotRequired[dict[str, Any]]
    """The strategy's own data."""
    earlier: NotRequired[int]
    """Number of ledger lines that the merge left out. Only merged records have this key and the
    keys below.
    """
    folds: NotRequired[int]
    """How many of the merged compactions came after the last one made from the originals."""
    merged: NotRequired[int]
    """How many compactions were merged into this record. They are in the store."""
    replaces: NotRequired[list[str]]
    """Ids of the records in the state that this merged record replaces."""
    report: NotRequired[CompactionReport]
    """How the compaction went. Absent in records of earlier versions."""


BY_CODE = "code"


def is_results(record: Compaction) -> bool:
    """Return whether a compaction only shrinks results of tools and has no memory."""
    return record.get("kind") == "results"


def writer_of(record: Compaction) -> str:
    """Return who wrote a compaction: the name of a model, "code", or "unknown" in an old record."""
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
