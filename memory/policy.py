"""Every number of compaction, in one frozen value, checked when it is built."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from longtable.graph.errors import ConfigError


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
    """Messages that must have come since the last fold before the next, unless the view would not fit at all."""
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
    version: int = 1
    """Part of a compaction's identity: raise it when the same input should be folded anew."""

    def __post_init__(self) -> None:
        for name in ("threshold", "target", "summary_share", "reserve", "margin", "breaker_share"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise ConfigError(f"CompactionPolicy.{name} must be between 0 and 1, found {value!r}")
        for name, least in (
            ("keep_rounds", 1),
            ("min_messages", 0),
            ("min_new_messages", 0),
            ("clip_tool_chars", 80),
            ("preview_chars", 40),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"CompactionPolicy.{name} must be a whole number of at least {least}, found {value!r}")
        if self.target >= self.threshold:
            raise ConfigError(f"CompactionPolicy.target ({self.target}) must be under CompactionPolicy.threshold ({self.threshold})")
        if self.threshold + self.reserve > 1:
            raise ConfigError(f"CompactionPolicy.threshold ({self.threshold}) and reserve ({self.reserve}) together must not pass 1")

    def as_json(self) -> dict[str, float]:
        """Return the fields as plain JSON, as a thread keeps them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, float]) -> "CompactionPolicy":
        """Read what `as_json` wrote; a field that this version does not know is left aside."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})  # type: ignore[arg-type]  # ints stay ints in JSON
