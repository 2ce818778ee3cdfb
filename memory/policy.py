"""Every number of compaction, in one frozen value, checked when it is built."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longtable.base.errors import ConfigError

WINDOW = "window"
"""The strategy that summarises nothing."""
MEMORY_ROLES = ("system", "assistant", "user")

_SHARES = (
    "threshold",
    "target",
    "summary_share",
    "reserve",
    "margin",
    "breaker_share",
    "pin_share",
    "ledger_share",
)
_LEAST = {
    "keep_rounds": 1,
    "min_messages": 0,
    "min_new_messages": 0,
    "clip_tool_chars": 80,
    "preview_chars": 40,
    "keep_messages": 0,
    "trigger_tokens": 1,
    "trigger_messages": 1,
    "summary_floor": 0,
    "rebuild_every": 0,
    "rebuild_windows": 1,
    "retire_after": 0,
}
MOST = 1_000_000_000
"""Most of any whole number, so that a checkpoint can hold it."""
_OPTIONAL = ("trigger_tokens", "trigger_messages", "retire_after")


@dataclass(frozen=True, kw_only=True)
class CompactionPolicy:
    """When to fold, what to keep, how small to get. Shares are of the model's limit, sizes in tokens unless said."""

    threshold: float = 0.6
    """Share of the limit at which a fold is due."""
    target: float = 0.3
    """Share of the limit the view should have after a fold, where what is kept word for word allows it."""
    keep_rounds: int = 6
    """Newest rounds kept word for word."""
    min_messages: int = 10
    """A thread with fewer messages is folded only when its view would not fit the limit at all."""
    min_new_messages: int = 4
    """Messages that must have come since the last fold before the next; a view over the threshold waits only for as many not folded."""
    summary_share: float = 0.15
    """Most the summary may take, as a share of the limit."""
    reserve: float = 0.15
    """Share of the limit kept free for the model's answer."""
    clip_tool_chars: int = 800
    """Characters of one tool result that the summariser is shown. Nothing else is clipped."""
    preview_chars: int = 200
    """Characters left of a tool result that had to shrink in a view."""
    margin: float = 0.1
    """A new memory is accepted only if smaller than what it replaces by this share."""
    breaker_share: float = 0.05
    """After a fold that failed, no other is tried until this share of the limit came anew."""
    strategy: str = "rolling"
    """Who writes the memory: "rolling" (one summary), "topics" (documents by subject), "window" (nothing is summarised:
    the call holds the newest `keep_messages`), or the name of a strategy given to `build_graph`."""
    keep_messages: int = 0
    """Newest messages kept word for word at least, besides `keep_rounds`."""
    trigger_tokens: int | None = None
    """Also fold when memory and messages (system prompt and tools aside) pass this many tokens."""
    trigger_messages: int | None = None
    """Also fold when so many messages are not folded yet."""
    summary_floor: int = 64
    """Tokens a summary may always have, however small its share is."""
    pin_share: float = 0.08
    """Most the pins may take, as a share of the limit."""
    ledger_share: float = 0.07
    """Most the query ledger may take, as a share of the limit."""
    memory_role: str = "system"
    """Where memory stands: inside the one "system" message, or as a message of its own of the "assistant" or "user"."""
    rebuild_every: int = 5
    """Every so many folds the summary is made from the originals again; 0: never."""
    rebuild_windows: int = 1
    """A summary is made from the originals only where these fill at most so many windows of the summariser: each is a call."""
    ahead: bool = True
    """Fold after the answer when one more round like the newest would pass the threshold: the next turn need not wait."""
    retire_after: int | None = 1_000
    """Folded messages leave the live transcript for the archive once it holds more than this; None: never."""
    version: int = 2
    """Part of a compaction's identity: raise it when the same input should be folded anew."""

    def __post_init__(self) -> None:
        for name in _SHARES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise ConfigError(f"CompactionPolicy.{name} must be between 0 and 1, found {value!r}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
                raise ConfigError(f"CompactionPolicy.{name} must be a whole number from {least} to {MOST:,}, found {value!r}")
        if self.target >= self.threshold:
            raise ConfigError(f"CompactionPolicy.target ({self.target}) must be under CompactionPolicy.threshold ({self.threshold})")
        if self.threshold + self.reserve > 1:
            raise ConfigError(f"CompactionPolicy.threshold ({self.threshold}) and reserve ({self.reserve}) together must not pass 1")
        if self.memory_role not in MEMORY_ROLES:
            raise ConfigError(f"CompactionPolicy.memory_role must be one of {', '.join(MEMORY_ROLES)}, found {self.memory_role!r}")
        if not isinstance(self.strategy, str) or not self.strategy:
            raise ConfigError(f"CompactionPolicy.strategy must be the name of a strategy, found {self.strategy!r}")
        if self.strategy == WINDOW and not self.keep_messages:
            raise ConfigError("CompactionPolicy.strategy 'window' needs keep_messages: how many of the newest messages a call holds")
        if self.trigger_messages is not None and self.trigger_messages <= self.keep_messages:
            raise ConfigError(
                f"CompactionPolicy.trigger_messages ({self.trigger_messages}) must be more than keep_messages ({self.keep_messages})"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON, as a thread keeps them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CompactionPolicy":
        """Read what `as_json` wrote; a field that this version does not know is left aside."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


# -- what earlier systems had, as settings ----------------------------------------------------------------------------


def analyst() -> CompactionPolicy:
    """Return the default: past 60 % of the limit fold, keep 6 rounds word for word, never fewer than 10 messages."""
    return CompactionPolicy()


def rolling_chat() -> CompactionPolicy:
    """Return a chat's rolling summary: at 12 messages or over 3,500 tokens, and 4 new ones; 4 stay, the summary may have 500 tokens."""
    return CompactionPolicy(
        trigger_messages=12,
        trigger_tokens=3_500,
        min_messages=4,
        min_new_messages=4,
        keep_rounds=1,
        keep_messages=4,
        summary_floor=500,
    )


def single_history() -> CompactionPolicy:
    """Return one long history: over 12,000 tokens all but the last 30 messages become one summary message with its source range."""
    return CompactionPolicy(trigger_tokens=12_000, min_messages=0, keep_rounds=1, keep_messages=30, memory_role="user")


def window(messages: int = 20) -> CompactionPolicy:
    """Return a sliding window: each call holds the newest `messages`; nothing is summarised, all stays in the thread."""
    return CompactionPolicy(strategy=WINDOW, keep_messages=messages, keep_rounds=1)


def topics() -> CompactionPolicy:
    """Return documents by subject: when 40 messages are not filed yet, all but the newest 20 are."""
    return CompactionPolicy(strategy="topics", trigger_messages=40, min_messages=0, keep_rounds=1, keep_messages=20, summary_share=0.2)
