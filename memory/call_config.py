"""The configuration of a model call: its system prompt and tools, and the limits on its size."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from langchain_core.messages import SystemMessage

from longtable.memory.counting.tokens import TokenCounter, counter
from longtable.memory.messages.reasoning import Sent
from longtable.memory.policy import CompactionPolicy
from longtable.memory.voices import Voice

WINDOW_SHARE = 0.25
"""Largest share of the summariser's window that the memory's text may take. The window must hold
this text twice, as input and as output, and the messages to compact.
"""
SUMMARY_FLOOR = 64
"""Tokens that a summary may always have: two or three lines. A shorter summary would say nothing.
"""
MEMORY_SHARE = 0.05
"""Share of the limit that summary and ledger may always take together, however much room the kept
rounds take.
"""
SPARE_SHARE = 0.03
TALK_SHARE = 0.1
"""If the parts of a call that must stay leave less than `SPARE_SHARE` of the limit free below the
threshold, the call may go over the threshold. The rest of the call may then take `TALK_SHARE` of
the limit.
"""
WHISPER_SHARE = 0.1
"""Largest whisper of a mode (see `CallConfig.whisper`), as a share of the limit. For example, a
reviewer's reasons to send work back may fill a page.
"""
MATERIAL_SHARE = 0.15
"""Most room that is kept free below the threshold for material of context providers, as a share of
the limit.
"""
BLOCK_TOKENS = 120
"""Tokens reserved for the introduction and the headings of a memory's text."""


@dataclass(frozen=True, kw_only=True)
class CallConfig:
    """System prompt, tools, limit and policy of a thread's next call. Sizes are in tokens as we
    count them, unless said otherwise.
    """

    system: str
    tool_tokens: int
    """Tokens of the tool definitions that go with each call."""
    limit: int
    """The model's input limit, in the provider's tokens."""
    encoding: str
    policy: CompactionPolicy = field(default_factory=CompactionPolicy)
    ceiling: int | None = None
    """Most tokens of a call in this turn after the provider refused a call as too long: half the
    tokens of the refused call. None if no call was refused.
    """
    factor: float = 1.0
    """How many of the provider's tokens one counted token stands for, at least 1. The limits on a
    call are divided by this factor.
    """
    window: int | None = None
    """The summariser's input limit in tokens, None without a summariser."""
    pin_tools: bool = False
    """Whether the tools `remember` and `forget` go with each call."""
    reasoning: Sent = "never"
    """When the model wants its reasoning back."""
    voice: Voice | None = None
    """The persona that makes the call, None without a team."""
    whisper: str = ""
    """Text that the team's mode tells the voice for this call only. It stands last in the system
    message, because it changes most often.
    """
    material_tokens: int = 0
    """Tokens of the material in the newest call. The same number is kept free for the next call."""

    def with_whisper(self, text: str) -> "CallConfig":
        """Return a call config with this text as its whisper, which is what a team's mode tells one
        voice alone. The text is cut to `WHISPER_SHARE` of the limit.
        """
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
        """Return the tokens over which a compaction is due: the policy's threshold minus the room
        for material of context providers. After a compaction, a view is not larger than this.
        """
        return self._bounded(self.policy.threshold) - self.free_for_material

    @property
    def free_for_material(self) -> int:
        """Return the tokens that are kept free below the threshold for context providers."""
        return min(self.material_tokens, self.share(MATERIAL_SHARE))

    def share(self, share: float) -> int:
        """Return a share of the limit in tokens. It is computed from the threshold, so that after
        the provider refused a call every share shrinks together with the threshold.
        """
        return int(self._bounded(self.policy.threshold) * share / self.policy.threshold)

    @property
    def summary_tokens(self) -> int:
        """Return the most tokens that the summary (the lossy text of a memory) may take."""
        tokens = max(SUMMARY_FLOOR, self._memory_share(self.policy.summary_share))
        return tokens if self.window is None else min(tokens, int(self.window * WINDOW_SHARE))

    @property
    def pin_tokens(self) -> int:
        """Return the most tokens the pins may take."""
        return self.share(self.policy.pin_share)

    def unused_pin_tokens(self, used: int) -> int:
        """Return the tokens of the pins' share that are left over if the pins take `used` tokens.
        If the policy has a trigger in tokens below the threshold, the share is smaller, as all
        shares of a memory are.
        """
        return max(0, self._memory_share(self.policy.pin_share) - used)

    @property
    def pins_by_code(self) -> bool:
        """Return whether code looks for rules said in passing at the end of each turn, not only in
        compactions. True if the model has no tools to pin with, or if code writes the summaries.
        """
        return self.window is None or not self.pin_tools

    @property
    def ledger_tokens(self) -> int:
        """Return the most tokens the query ledger may take."""
        return self._memory_share(self.policy.ledger_share)

    @property
    def least_memory(self) -> int:
        """Return the tokens that summary and ledger may always take together."""
        return max(SUMMARY_FLOOR, self._memory_share(MEMORY_SHARE))

    def _memory_share(self, share: float) -> int:
        """Return a share of the limit in tokens. If the policy has a trigger in tokens that is
        lower than the threshold, compute the share as if the trigger were the threshold.
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
        """Return the most tokens of a call that still leaves the model room to answer."""
        return self._bounded(1 - self.policy.reserve)

    @property
    def counter(self) -> TokenCounter:
        """Return the token counter of the encoding."""
        return counter(self.encoding)

    def _bounded(self, share: float) -> int:
        return min(int(self.limit * share / self.factor), self.ceiling or self.limit)


@dataclass(frozen=True)
class Parts:
    """Counted tokens of a call by part. `total` is the size of the whole call."""

    system: int
    tools: int
    memory: int
    messages: int
    passed: int = 0
    """Tokens of the material of context providers, which is in this call only."""

    @property
    def total(self) -> int:
        return self.system + self.tools + self.memory + self.messages + self.passed
