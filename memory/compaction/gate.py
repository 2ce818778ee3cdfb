"""The one acceptance gate: every new memory passes it, whoever wrote it."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.base.errors import Reason
from longtable.memory.messages.rounds import all_calls


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a new memory and of the next call, in tokens."""

    summary: int
    replaced: int
    """Size of the text that the memory replaces: the compacted messages and the previous memory."""
    view: int
    """Size of the whole next call with the new memory: system, tools, memory, messages."""
    view_before: int
    budget: int
    """The threshold. The view may not be over it, unless the parts in `kept` alone fill it."""
    kept: int
    """Size of the parts that every view holds: system, tools, newest rounds."""
    summary_budget: int
    """Most tokens that the summary may have."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A new memory as the gate judges it."""

    summary: str
    sizes: Sizes
    margin: float
    """The share by which the summary must be smaller than the text that it replaces."""
    missing_pins: Sequence[str] = ()
    """Pins that fit the budget for pins, but that the memory block does not hold word for word."""
    unknown_citations: Sequence[int] = ()
    """Cited numbers that no message of the transcript has."""
    pairs_valid: bool = True
    """Whether each tool call of the view has exactly its answers."""


def objections(candidate: Candidate) -> list[Reason]:
    """Return why a memory is refused, each reason in words that a summariser can act on. Empty if
    the memory is accepted.
    """
    reasons: list[Reason] = []

    def object_(code: str, message: str) -> None:
        reasons.append(Reason(code=code, message=message))

    if not candidate.summary.strip():
        object_("empty", "the summary is empty or has no line that can be used")
    sizes = candidate.sizes
    most = min(int(sizes.replaced * (1 - candidate.margin)), sizes.summary_budget)
    if sizes.summary > most:
        object_("too_long", f"it has {sizes.summary} tokens, at most {most} are accepted")
    if sizes.view >= sizes.view_before:
        object_(
            "no_gain",
            f"the view would not shrink ({sizes.view_before} to {sizes.view} tokens)",
        )
    if sizes.view > sizes.budget and sizes.kept < sizes.budget:
        object_(
            "over_threshold",
            f"the view would have {sizes.view} tokens, the threshold is {sizes.budget}",
        )
    if candidate.missing_pins:
        object_(
            "pins_missing",
            f"it lacks words of the user that must stay: {'; '.join(candidate.missing_pins)[:300]}",
        )
    if candidate.unknown_citations:
        object_(
            "unknown_citations",
            "it cites messages that do not exist:"
            f" {', '.join(map(str, candidate.unknown_citations[:10]))}",
        )
    if not candidate.pairs_valid:
        object_(
            "broken_pairs",
            "the view would hold a tool call without its answer, or an answer without its call",
        )
    return reasons


def pairs_valid(messages: Sequence[BaseMessage]) -> bool:
    """Return whether each tool call is followed by exactly its answers, and each answer follows its
    call.
    """
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return False
            open_calls.remove(message.tool_call_id)
            continue
        if open_calls:
            return False
        if isinstance(message, AIMessage):
            open_calls = [call["id"] or "" for call in all_calls(message)]
    return not open_calls
