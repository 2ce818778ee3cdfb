"""What surrounds the messages of a call, and the numbers that bound it."""

from dataclasses import dataclass, field
from functools import cached_property

from langchain_core.messages import SystemMessage

from longtable.memory.policy import CompactionPolicy
from longtable.memory.reasoning import Sent
from longtable.memory.tokens import TokenCounter, counter

WINDOW_SHARE = 0.25
"""Most the memory's text may take of the summariser's window: it reads it beside what is to be compacted, and writes it again."""
SUMMARY_FLOOR = 64
"""Tokens a summary may always have: two or three lines, below which it says nothing."""
AROUND_SHARE = 0.5
"""Where system prompt and tools take more of the threshold than this, the budgets of the memory's parts shrink with what is left."""


@dataclass(frozen=True, kw_only=True)
class CallConfig:
    """System prompt, tools, limit and policy of a thread's next call. Sizes in counted tokens."""

    system: str
    tool_tokens: int
    """Tokens of the tool definitions that go with each call."""
    limit: int
    """The model's input limit, in the provider's tokens."""
    encoding: str
    policy: CompactionPolicy = field(default_factory=CompactionPolicy)
    ceiling: int | None = None
    """Tokens this turn's calls may have after the provider said a call is too long: half of what it was sent."""
    factor: float = 1.0
    """The provider's tokens for each one counted, never under 1: what bounds a call shrinks by it."""
    window: int | None = None
    """The summariser's input limit in tokens, None without a summariser."""
    reasoning: Sent = "never"
    """When the model wants its reasoning back."""

    @property
    def threshold_tokens(self) -> int:
        """Return the tokens at which a compaction is due, and that no view after a compaction passes."""
        return self._bounded(self.policy.threshold)

    @property
    def target_tokens(self) -> int:
        """Return the tokens a view should have after a compaction."""
        return self._share(self.policy.target)

    @property
    def summary_tokens(self) -> int:
        """Return the most tokens the lossy text of a memory may take."""
        tokens = max(SUMMARY_FLOOR, self._memory_share(self.policy.summary_share))
        return tokens if self.window is None else min(tokens, int(self.window * WINDOW_SHARE))

    @property
    def pin_tokens(self) -> int:
        """Return the most tokens the pins may take."""
        return self._memory_share(self.policy.pin_share)

    @property
    def ledger_tokens(self) -> int:
        """Return the most tokens the query ledger may take."""
        return self._memory_share(self.policy.ledger_share)

    @property
    def hard_tokens(self) -> int:
        """Return the tokens beyond which the model has no room left to answer."""
        return self._bounded(1 - self.policy.reserve)

    @property
    def counter(self) -> TokenCounter:
        """Return the counter of its encoding."""
        return counter(self.encoding)

    def _bounded(self, share: float) -> int:
        return min(int(self.limit * share / self.factor), self.ceiling or self.limit)

    @cached_property
    def _room(self) -> float:
        around = self.counter.message(SystemMessage(self.system)) + self.tool_tokens
        return max(0.0, min(1.0, (1 - around / max(1, self.threshold_tokens)) / (1 - AROUND_SHARE)))

    def _memory_share(self, share: float) -> int:
        return int(self._share(share) * self._room)

    def _share(self, share: float) -> int:
        # Of the threshold, so that all shrinks with it when the provider refused a call.
        return int(self.threshold_tokens * share / self.policy.threshold)


@dataclass(frozen=True)
class Parts:
    """Counted tokens of a call by part. `total` is what a provider is sent."""

    system: int
    tools: int
    memory: int
    messages: int
    passed: int = 0
    """Material of context providers, in this call alone."""

    @property
    def total(self) -> int:
        return self.system + self.tools + self.memory + self.messages + self.passed
