"""What surrounds the messages of a call, the numbers that bound it, and what a thread learns of its
provider's count.
"""

import re
import statistics
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeGuard

from langchain_core.messages import SystemMessage

from longtable.base.errors import ConfigError, install_extra
from longtable.memory.answers import Sent
from longtable.memory.policy import CompactionPolicy
from longtable.memory.tokens import (
    STAND_IN_ENCODING,
    UNKNOWN_ENCODING,
    TokenCounter,
    counter,
    is_installed,
)
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
SPARE_SHARE, TALK_SHARE = 0.03, 0.1
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
"""Room for what stands around a memory's text: its introduction and headings."""


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
        """Return what stands in the system message besides memory: the system prompt, the
        whisper.
        """
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


MOST_TOKENS = 10**12
"""No report of tokens is as large as this: larger numbers, and what is none, teach nothing."""
LOWEST, HIGHEST = 0.5, 3.0
"""Bounds of the ratio. Against o200k_base, on 13 kinds of text in nine languages: 0.6 (Qwen 3.5,
Thai) to 2.7 (cl100k, Hindi).
"""
IMPLAUSIBLE = 2.0
"""A reading this many times outside the bounds is about something else than this call."""
LEAST_COUNTED = 300
"""Tokens below which a call teaches nothing: what a server adds of its own outweighs the
tokenizer.
"""
JUMP = 1.5
READINGS = 3


@dataclass(frozen=True)
class Calibration:
    """What a thread has learned about its provider: tokens reported per token counted, and the
    limit an error named.

    A reading is the reported input tokens over what was counted for the same call. The ratio
    follows the last three. It rises at once, to half as much again as their median; the rest of a
    larger jump waits for a second reading: a tokenizer does not double from one call to the next, a
    server that adds up several calls does. It falls with the median. So one wild reading raises it
    by at most half, and the next good one puts it right; slow decay, the usual way, would hold one
    wrong report against a thread for many turns.
    """

    ratio: float = 1.0
    samples: int = 0
    """Readings taken in, ever."""
    limit: int | None = None
    """Tokens, from a provider's error; see
    `longtable.nodes.model.provider_errors.learned_limit`.
    """
    recent: tuple[float, ...] = ()
    """The last readings, oldest first, within the bounds."""

    @property
    def factor(self) -> float:
        """Return what counted tokens are multiplied by for the trigger: never less than 1."""
        return max(1.0, self.ratio)

    def learn(self, counted: int, usage: Mapping[str, Any] | None) -> "Calibration":
        """Return what is known after a call of `counted` tokens whose answer has this
        `usage_metadata`.

        Unchanged when nothing can be learned: no usage or a broken one, zero, a small call, far too
        few tokens. Far too many (a server that adds up its calls) take the oldest reading with
        them: trust wears off while they last.
        """
        reported = _reported(usage)
        if reported is None or counted < LEAST_COUNTED:
            return self
        low, high = reported[0] / counted, reported[1] / counted
        if high < LOWEST / IMPLAUSIBLE:
            return self
        if low > HIGHEST * IMPLAUSIBLE:
            return self._with(self.recent[1:])
        # Where it is open whether cached tokens are part of the input, anything between may be
        # true: keep what is known.
        known = statistics.median_low(self.recent) if self.recent else 1.0
        reading = _bounded(min(max(known, low), high))
        return replace(self._with((*self.recent, reading)[-READINGS:]), samples=self.samples + 1)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "ratio": self.ratio,
            "samples": self.samples,
            "limit": self.limit,
            "recent": list(self.recent),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> "Calibration":
        """Return what `as_json` wrote; None, or what a later version wrote otherwise, is read as
        far as it makes sense.
        """
        value = value or {}
        stored = value.get("recent")
        recent = (
            tuple(_bounded(each) for each in stored if _is_number(each))[-READINGS:]
            if isinstance(stored, list | tuple)
            else ()
        )
        ratio, samples, limit = (value.get(name) for name in ("ratio", "samples", "limit"))
        return cls(
            ratio=_bounded(ratio) if _is_number(ratio) else 1.0,
            samples=(
                samples
                if isinstance(samples, int) and not isinstance(samples, bool) and samples > 0
                else 0
            ),
            limit=(
                limit
                if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
                else None
            ),
            recent=recent,
        )

    def _with(self, recent: tuple[float, ...]) -> "Calibration":
        if not recent:
            return replace(self, ratio=1.0, recent=())
        middle = statistics.median_low(recent)
        return replace(
            self, ratio=_bounded(min(max(middle, recent[-1]), middle * JUMP)), recent=recent
        )


def _reported(usage: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Return the least and the most input tokens a report can mean, None when it says nothing.

    LangChain's `input_tokens` includes cached ones (OpenAI); some servers leave them out
    (Anthropic's own protocol). More cached than input tokens: they are left out, for sure.
    """
    if not isinstance(usage, Mapping):
        return None
    tokens = usage.get("input_tokens")
    if not _is_number(tokens) or tokens < 1:
        return None
    details = usage.get("input_token_details")
    cache_figures = (
        [details.get(name) for name in ("cache_read", "cache_creation")]
        if isinstance(details, Mapping)
        else []
    )
    cached = sum(int(each) for each in cache_figures if _is_number(each) and each > 0)
    most = int(tokens) + cached
    return (most if cached > tokens else int(tokens)), most


def _bounded(ratio: float) -> float:
    return round(min(max(ratio, LOWEST), HIGHEST), 4)


def _is_number(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST_TOKENS
    )


NEWEST_ENCODING = "o200k_base"
"""Encoding of OpenAI's models that tiktoken does not list yet."""

# Input tokens. OpenAI: the providers' model pages as carried by langchain-openai's profiles
# (2026-11); DeepSeek and Qwen: their API documentation's context lengths for these names.
KNOWN_LIMITS: dict[str, int] = {
    "deepseek-chat": 64_000,
    "deepseek-reasoner": 64_000,
    "qwen-plus": 128_000,
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-mini": 1_047_576,
    "gpt-4.1-nano": 1_047_576,
    "gpt-5": 272_000,
    "gpt-5-mini": 272_000,
    "gpt-5-nano": 272_000,
    "gpt-5.1": 272_000,
    "gpt-5.2": 272_000,
    "gpt-5.4": 1_050_000,
    "o1": 200_000,
    "o3": 200_000,
    "o3-mini": 200_000,
    "o4-mini": 200_000,
}


_QWEN = re.compile(r"qwen|qwq|deepseek-r1-distill-qwen")
_QWEN_VERSION = re.compile(r"qwen-?(\d+(?:\.\d+)?)(?=$|[-:_.])")
_DEEPSEEK = re.compile(r"deepseek")
# Models by that name with another vocabulary: the first generation, and the small R1s, which are
# Llama or Qwen inside.
_OTHER_VOCABULARY = re.compile(
    r"distill|deepseek-llm|deepseek-coder-(?:1\.3|6\.7|7|33)b|deepseek-r1:(?:1\.5|7|8|14|32|70)b"
)
_DATED = re.compile(r"|-\d{4}(-\d{2}-\d{2})?|-latest|-preview")


class EncodingFallbackWarning(UserWarning):
    """A model's own tokenizer is not known; another one counts."""


def model_limit(
    name: str, *, setting: int | None = None, profile: Mapping[str, object] | None = None
) -> int:
    """Return the input limit in tokens: the setting, else the model's profile, else the table.

    A dated name ("gpt-4o-2024-08-06") counts as its family. Raises `ConfigError` when none of the
    three knows.
    """
    if setting is not None:
        return setting
    profile_limit = (profile or {}).get("max_input_tokens")
    if isinstance(profile_limit, int) and profile_limit > 0:
        return profile_limit
    bare = name.rsplit("/", 1)[-1].lower()
    for known in sorted(KNOWN_LIMITS, key=len, reverse=True):
        rest = bare.removeprefix(known)
        if rest != bare and _DATED.fullmatch(rest):
            return KNOWN_LIMITS[known]
    raise ConfigError(
        f"the input limit of model {name or 'without a name'!r} is not known: set"
        " Context.model_limit (on the command line --model-limit N) to the number of tokens its"
        " provider documents",
        says="limit_unknown",
    )


def encoding_name(name: str) -> str:
    """Return the encoding of a model name: tiktoken's, or a tokenizer of the extra `tokenizers`.

    Where that is not installed, or the name has neither, another tokenizer counts, as an estimate;
    a warning says so once a name.
    """
    import tiktoken.model

    bare = name.rsplit("/", 1)[-1].lower()
    try:
        encoding = tiktoken.model.encoding_name_for_model(bare)
    except KeyError:
        if bare.startswith(("gpt-", "o1", "o3", "o4")):
            return NEWEST_ENCODING
        own = _own_tokenizer(bare)
        if own and is_installed(own):
            return own
        what_to_do = f"; for exact counts {install_extra('tokenizers')}" if own else ""
        warnings.warn(
            f"the tokenizer of model {name or 'without a name'!r} is not"
            f" {'installed' if own else 'known'}: tokens are counted with"
            f" {STAND_IN_ENCODING}{what_to_do}",
            EncodingFallbackWarning,
            stacklevel=2,
        )
        return own or UNKNOWN_ENCODING
    return encoding if encoding in {"cl100k_base", "o200k_base"} else UNKNOWN_ENCODING


def _own_tokenizer(bare: str) -> str | None:
    """Return which tokenizer of the extra is a model's own, None when it is none of them."""
    if _QWEN.match(bare):
        version = _QWEN_VERSION.match(bare)
        return "qwen3.5" if version and float(version.group(1)) >= 3.5 else "qwen"
    return "deepseek" if _DEEPSEEK.match(bare) and not _OTHER_VOCABULARY.search(bare) else None
