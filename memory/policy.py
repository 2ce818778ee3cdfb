"""The settings of compaction, in one frozen value that is checked when it is built."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from longtable.base.errors import ConfigError
from longtable.base.settings_base import TEXT, Settings

WINDOW = "window"
"""The strategy that summarises nothing."""
TOPICS = "topics"
"""The strategy that files messages into documents by subject."""
MOST = 1_000_000_000
"""Upper bound of every whole number, so that a checkpoint can hold it."""

Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=0, le=MOST)]
AtLeastOne = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(frozen=True, kw_only=True)
class CompactionPolicy(Settings):
    """When to compact, how much to keep, and how large a memory may be. Shares are of the model's
    limit, sizes are in tokens unless said otherwise.
    """

    threshold: Share = 0.6
    """Share of the limit at which compaction is due."""
    reserve: Share = 0.15
    """Share of the limit kept free for the model's answer."""
    keep_rounds: AtLeastOne = 6
    """Most of the newest rounds kept word for word: as many as leave room for three more, of the
    mean size of the newest three with whole results.
    """
    keep_messages: Count = 0
    """Newest messages kept word for word at least, besides `keep_rounds`."""
    min_messages: Count = 10
    """A thread with fewer messages is compacted only when its view is over the threshold."""
    trigger_tokens: AtLeastOne | None = None
    """Also compact when memory and messages (system prompt and tools aside) pass this many
    tokens.
    """
    trigger_messages: AtLeastOne | None = None
    """Also compact when so many messages are not compacted yet."""
    strategy: Annotated[str, TEXT] = "rolling"
    """Who writes the memory: "rolling" (one summary), "topics" (documents by subject), "window"
    (nothing is summarised: the call holds the newest `keep_messages`), or the name of a strategy
    passed to `build_graph`.
    """
    summary_share: Share = 0.15
    """Most the summary may take, as a share of the limit."""
    pin_share: Share = 0.08
    """Most the pins may take, as a share of the limit."""
    ledger_share: Share = 0.07
    """Most the query ledger may take, as a share of the limit."""
    memory_role: Literal["system", "assistant", "user"] = "system"
    """Place of the memory: within the one "system" message, or a message of its own of the
    "assistant" or "user".
    """
    rebuild_every: Count = 5
    """Every so many compactions the summary is made from the originals again; 0: never."""
    ahead: bool = True
    """Compact after the answer if one more round like the newest would pass the threshold, so that
    the next turn need not wait.
    """
    # At a limit of 32,000 turn 500 takes 27 ms of processor with 200 or 300 here, 40 with 1,000.
    retire_after: Count | None = 200
    """Messages that an earlier compaction covers leave the live transcript for the store once it
    holds more than this; None: never.
    """

    WITHOUT_EFFECT: ClassVar = {
        "target": "a memory has its shares of the limit (summary_share, pin_share, ledger_share)",
    }
    REPLACED: ClassVar = {
        "min_new_messages": "a compaction always waits for 4 new messages",
        "clip_tool_chars": "the summariser always reads 800 characters of a tool result",
        "preview_chars": "a tool result that has to shrink always keeps 200 characters",
        "margin": "a new memory always has to be smaller by a tenth than what it replaces",
        "breaker_share": (
            "after one that failed, compaction always waits for a twelfth of the trigger"
        ),
        "summary_floor": "set summary_share; a summary may always have 64 tokens",
        "rebuild_windows": (
            "originals are always read again only where they fit one window of the summariser"
        ),
        "version": "leave it out",
    }

    def __post_init__(self) -> None:
        """Check each field, and the fields that depend on one another."""
        super().__post_init__()
        if self.threshold + self.reserve > 1:
            raise ConfigError(
                f"CompactionPolicy.threshold ({self.threshold}) and reserve ({self.reserve})"
                " together must not pass 1"
            )
        if self.strategy == WINDOW and not self.keep_messages:
            raise ConfigError(
                "CompactionPolicy.strategy 'window' needs keep_messages: how many of the newest"
                " messages a call holds"
            )
        if self.trigger_messages is not None and self.trigger_messages <= self.keep_messages:
            raise ConfigError(
                f"CompactionPolicy.trigger_messages ({self.trigger_messages}) must be more than"
                f" keep_messages ({self.keep_messages})"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON, as a thread keeps them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CompactionPolicy":
        """Read the JSON that `as_json` wrote. Fields of other versions are left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


# -- what earlier systems had, as settings ---------------------------------------------------------


def analyst() -> CompactionPolicy:
    """Return the default: past 60 % of the limit compact, keep 6 rounds word for word, never fewer
    than 10 messages.
    """
    return CompactionPolicy()


def rolling_chat() -> CompactionPolicy:
    """Return a chat's rolling summary: at 12 messages or over 3,500 tokens, and 4 new ones; the
    newest 4 stay.
    """
    return CompactionPolicy(
        trigger_messages=12, trigger_tokens=3_500, min_messages=4, keep_rounds=1, keep_messages=4
    )


def single_history() -> CompactionPolicy:
    """Return one long history: over 12,000 tokens all but the last 30 messages become one summary
    message with its source range.
    """
    return CompactionPolicy(
        trigger_tokens=12_000,
        min_messages=0,
        keep_rounds=1,
        keep_messages=30,
        memory_role="assistant",
    )


def window(messages: int = 20) -> CompactionPolicy:
    """Return a sliding window: each call holds the newest `messages`; nothing is summarised, all
    stays in the thread.
    """
    return CompactionPolicy(strategy=WINDOW, keep_messages=messages, keep_rounds=1)


def topics() -> CompactionPolicy:
    """Return documents by subject: when 40 messages are not filed yet, all but the newest 20
    are.
    """
    return CompactionPolicy(
        strategy="topics",
        trigger_messages=40,
        min_messages=0,
        keep_rounds=1,
        keep_messages=20,
        summary_share=0.2,
    )
