"""The settings of compaction, in one frozen value that is checked when it is built."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from longtable.base.errors import ConfigError
from longtable.base.settings_base import TEXT, Settings

WINDOW = "window"
"""Name of the strategy that summarises nothing."""
TOPICS = "topics"
"""Name of the strategy that files messages into documents by subject."""
MOST = 1_000_000_000
"""Upper bound of every whole number, so that a checkpoint can hold it."""

Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=0, le=MOST)]
AtLeastOne = Annotated[int, Field(ge=1, le=MOST)]


@dataclass(frozen=True, kw_only=True)
class CompactionPolicy(Settings):
    """When to compact, how much to keep, and how large a memory may be. Shares are shares of the
    model's input limit.
    """

    threshold: Share = 0.6
    """Share of the limit above which a compaction is due."""
    reserve: Share = 0.15
    """Share of the limit kept free for the model's answer."""
    keep_rounds: AtLeastOne = 6
    """A compaction keeps at most this many of the newest rounds word for word. It keeps fewer if
    there would be no room for three further rounds, of the mean size of the newest three with whole
    results.
    """
    keep_messages: Count = 0
    """A compaction keeps at least this many of the newest messages word for word, whatever
    `keep_rounds` says.
    """
    min_messages: Count = 10
    """A thread with fewer messages is compacted only if its view is over the threshold."""
    trigger_tokens: AtLeastOne | None = None
    """Also compact if memory and messages together, without system prompt and tools, have more
    tokens than this.
    """
    trigger_messages: AtLeastOne | None = None
    """Also compact if at least this many messages are not compacted yet."""
    strategy: Annotated[str, TEXT] = "rolling"
    """How the memory is written: "rolling" (one summary), "topics" (documents by subject), "window"
    (nothing is summarised; a call holds the newest `keep_messages`), or the name of a strategy
    passed to `build_graph`.
    """
    summary_share: Share = 0.15
    """Largest size of the summary, as a share of the limit."""
    pin_share: Share = 0.08
    """Largest size of the pins, as a share of the limit."""
    ledger_share: Share = 0.07
    """Largest size of the query ledger, as a share of the limit."""
    memory_role: Literal["system", "assistant", "user"] = "system"
    """Where the memory stands. "system": within the system message. "assistant" or "user": in a
    separate message of this role.
    """
    rebuild_every: Count = 5
    """Every this many compactions, the summary is made again from the original messages. 0 means
    never.
    """
    ahead: bool = True
    """If true, compact after an answer if one more round like the newest would pass the threshold.
    Then the next turn need not wait for a compaction.
    """
    # At a limit of 32,000 turn 500 takes 27 ms of processor with 200 or 300 here, 40 with 1,000.
    retire_after: Count | None = 200
    """If the live transcript has more messages than this, messages that an earlier compaction
    covers move to the store. None means that they never do.
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
        """Return the fields as plain JSON, the form in which a thread keeps them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CompactionPolicy":
        """Read the JSON that `as_json` wrote. Fields that only other versions know are ignored."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})


# -- what earlier systems had, as settings ---------------------------------------------------------


def analyst() -> CompactionPolicy:
    """Return the default policy: compact above 60 % of the limit, and keep up to 6 rounds word for
    word.
    """
    return CompactionPolicy()


def rolling_chat() -> CompactionPolicy:
    """Return the policy of a chat's rolling summary: compact at 12 uncompacted messages or above
    3,500 tokens, and keep the newest 4 messages.
    """
    return CompactionPolicy(
        trigger_messages=12, trigger_tokens=3_500, min_messages=4, keep_rounds=1, keep_messages=4
    )


def single_history() -> CompactionPolicy:
    """Return the policy of one long history: above 12,000 tokens, all but the newest 30 messages
    become one summary message, which is marked with the range of its source messages.
    """
    return CompactionPolicy(
        trigger_tokens=12_000,
        min_messages=0,
        keep_rounds=1,
        keep_messages=30,
        memory_role="assistant",
    )


def window(messages: int = 20) -> CompactionPolicy:
    """Return the policy of a sliding window: each call holds only the newest `messages` messages.
    Nothing is summarised, and all messages stay in the thread.
    """
    return CompactionPolicy(strategy=WINDOW, keep_messages=messages, keep_rounds=1)


def topics() -> CompactionPolicy:
    """Return the policy of documents by subject: once 40 messages are not filed yet, all but the
    newest 20 are filed.
    """
    return CompactionPolicy(
        strategy="topics",
        trigger_messages=40,
        min_messages=0,
        keep_rounds=1,
        keep_messages=20,
        summary_share=0.2,
    )
