"""What the summariser's calls of one fold take: each a span, their tokens kept in the compaction's record."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage

from longtable.memory.fold import Outcome, Request
from longtable.memory.frame import Frame
from longtable.memory.reasoning import parted
from longtable.memory.spent import taken_by
from longtable.memory.tokens import TokenCounter
from longtable.nodes.providers import provider_error
from longtable.nodes.tracing import log_cause, span, usage_fields


@dataclass
class Taken:
    """The calls of one fold."""

    model: str
    about: dict[str, Any]
    counter: TokenCounter
    calls: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def on(cls, model: str, thread_id: str, turn: int, frame: Frame) -> "Taken":
        """Return none yet, of a fold in this turn of a thread."""
        about = {"thread_id": thread_id, "turn": turn, "purpose": "summarise", "gen_ai.request.model": model or None}
        return cls(model, about, frame.counter)

    @contextmanager
    def call(self, request: Request) -> Iterator[Callable[[BaseMessage], str]]:
        """Run one call; the block hands its answer to what it is given, for the text."""
        with span("model", self.model or "summariser", self.about) as told:

            def note(answer: BaseMessage) -> str:
                told.update(usage_fields(answer))
                self.calls.append(taken_by(answer, request, self.model, self.counter))
                return str(parted(answer, self.model).text)  # a memory is made of what it says, not of what it thought

            yield note

    def noted(self, outcome: Outcome) -> Outcome:
        """Return the outcome, its record with what was taken: nothing else of a thread tells it."""
        return replace(outcome, record={**outcome.record, "spent": self.calls}) if outcome.record and self.calls else outcome


def failure_of(error: Exception) -> Exception:
    """Return what a failed call stands for; the log has its cause."""
    known = provider_error(error)
    log_cause(known.code if known else "summariser_failed", error)
    return known or error
