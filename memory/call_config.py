"""What surrounds the messages of a call, the numbers that bound it, and what a thread learns of its
provider's count.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from langchain_core.messages import SystemMessage

from longtable.memory.counting.tokens import TokenCounter, counter
from longtable.memory.messages.reasoning import Sent
from longtable.memory.policy import CompactionPolicy
from longtable.memory.voices import Voice

WINDOW_SHARE = 0.25
"""Most the memory's text may take of the summariser's window: it reads it beside what is to be
compacted, and writes it again.
"""
SUMMARY_FLOOR = 64
"""Tokens a summary may always have: two or three lines, below which it says nothing."""
MEMORY_SHARE = 0.05
"""Share of the limit that summary and ledger may always have together, however much the kept rounds
take.
"""
SPARE_SHARE = 0.03
TALK_SHARE = 0.1
"""Where what must stay leaves less than the first share of the limit below the threshold, the
threshold cannot be held: the rest of the call may have the second share then.
"""
WHISPER_SHARE = 0.1
"""Most that a mode may whisper, as a share of the limit: a reviewer's reason to send work back may
be a page.
"""
MATERIAL_SHARE = 0.15
"""Most that is kept free below the threshold for material of context providers."""
BLOCK_TOKENS = 120
"""Room for the introduction and the headings of a memory's text."""


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
    """Tokens this turn's calls may have after the provider said a call is too long: half of what it
    was sent.
    """
    factor: float = 1.0
    """The provider's tokens for each one counted, never under 1: what bounds a call shrinks by
    it.
    """
    window: int | None = None
    """The summariser's input limit in tokens, None without a summariser."""
    pin_tools: bool = False
    """Whether the tools `remember` and `forget` go with each call."""
    reasoning: Sent = "never"
    """When the model wants its reasoning back."""
    voice: Voice | None = None
    """Who the call is made as, None without a team."""
    whisper: str = ""
    """What the team's mode tells the voice for this call; it stands last, for it changes most."""
    material_tokens: int = 0
    """What context providers gave the newest call: as much is kept free for the next."""

    def with_whisper(self, text: str) -> "CallConfig":
        """Return the call config of a voice that is whispered this, cut to its share."""
        most = self.share(WHISPER_SHARE)
        if len(text) <= most or self.counter.text(text) <= most:
            return replace(self, whisper=text)
        mark = f"… [cut: {len(text):,} characters in all]"
        cut = self.counter.prefix(text, most - self.counter.text(mark) - 2)
        return replace(self, whisper=f"{cut}{mark}")

    @property
    def instructions(self) -> str:
        """Return the system message without the memory: the system prompt, then the whisper."""
        return "\n\n".join(filter(None, [self.system, self.whisper]))

    @property
    def threshold_tokens(self) -> int:
        """Return the tokens at which a compaction is due, and that no view after a compaction
        passes: material of context providers has its room below the policy's threshold.
        """
        return self._bounded(self.policy.threshold) - self.free_for_material

    @property
    def free_for_material(self) -> int:
        """Return the tokens that are kept free below the threshold for context providers."""
        return min(self.material_tokens, self.share(MATERIAL_SHARE))

    def share(self, share: float) -> int:
        """Return the tokens of a share of the limit; of the threshold, so that all shrinks with it
        when the provider refused a call.
        """
        return int(self._bounded(self.policy.threshold) * share / self.policy.threshold)

    @property
    def summary_tokens(self) -> int:
        """Return the most tokens the lossy text of a memory may take."""
        tokens = max(SUMMARY_FLOOR, self._memory_share(self.policy.summary_share))
        return tokens if self.window is None else min(tokens, int(self.window * WINDOW_SHARE))

    @property
    def pin_tokens(self) -> int:
        """Return the most tokens the pins may take."""
        return self.share(self.policy.pin_share)

    def unused_pin_tokens(self, used: int) -> int:
        """Return what pins of so many tokens leave of their share; as little as the other shares
        where the policy's own trigger is lower than the limit's.
        """
        return max(0, self._memory_share(self.policy.pin_share) - used)

    @property
    def pins_by_code(self) -> bool:
        """Return whether code looks for rules said in passing at the end of each turn already, not
        in compactions alone: the model calls no tools, or code writes the summaries.
        """
        return self.window is None or not self.pin_tools

    @property
    def ledger_tokens(self) -> int:
        """Return the most tokens the query ledger may take."""
        return self._memory_share(self.policy.ledger_share)

    @property
    def least_memory(self) -> int:
        """Return the tokens that summary and ledger may always have together."""
        return max(SUMMARY_FLOOR, self._memory_share(MEMORY_SHARE))

    def _memory_share(self, share: float) -> int:
        """Return the tokens of a share of the limit; if the policy's own trigger in tokens is
        lower, of the limit whose threshold that would be.
        """
        tokens = self.share(share)
        trigger = self.policy.trigger_tokens
        if trigger is None:
            return tokens
        return min(tokens, int(trigger * share / self.policy.threshold))

    @cached_property
    def around_tokens(self) -> int:
        """Return the tokens of system prompt and tools."""
        return self.counter.message(SystemMessage(self.instructions)) + self.tool_tokens

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
