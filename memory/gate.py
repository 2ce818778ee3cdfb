"""The one acceptance gate: every new memory passes it, whoever wrote it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A memory that asks to be accepted. Sizes in tokens."""

    summary: str
    summary_tokens: int
    replaced_tokens: int
    """What it replaces: the folded messages and the memory before."""
    view_tokens: int
    """The whole next call with it: system, tools, memory, messages."""
    view_before: int
    budget: int
    """The threshold: the view must be under it where the view alone decides that."""
    kept_tokens: int
    """What the view holds in any case: system, tools, newest rounds."""
    margin: float
    summary_budget: int
    """Most tokens a summary may have."""


def objections(candidate: Candidate) -> list[str]:
    """Return why a memory is not accepted, each reason in words a summariser can act on; empty when it is."""
    reasons = []
    if not candidate.summary.strip():
        reasons.append("it is empty or lacks the headings")
    most = min(int(candidate.replaced_tokens * (1 - candidate.margin)), candidate.summary_budget)
    if candidate.summary_tokens > most:
        reasons.append(f"it has {candidate.summary_tokens} tokens, at most {most} are accepted")
    if candidate.view_tokens >= candidate.view_before:
        reasons.append(f"the view would not shrink ({candidate.view_before} to {candidate.view_tokens} tokens)")
    if candidate.view_tokens > candidate.budget and candidate.kept_tokens < candidate.budget:
        reasons.append(f"the view would have {candidate.view_tokens} tokens, the threshold is {candidate.budget}")
    return reasons
