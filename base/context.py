"""The settings of one run. An operator's settings for all runs have the same class. Studio draws
its form from them.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
)

from pydantic import (
    Field,
)

from longtable.base.settings_base import NAME, TEXT, Settings, setting

STRICTER: dict[str, tuple[str, ...]] = {
    "approve_sql": ("never", "costly", "always"),
    "check_numbers": ("off", "flag"),
    "privacy": ("off", "types"),
}
"""Fields with choices of different strictness, the strictest choice last."""
LIMITS = {
    "model_limit",
    "max_model_calls",
    "max_message_chars",
    "max_repairs",
    "max_retries",
    "request_timeout",
    "thinking",
}
"""Numeric fields. An operator's value of such a field is the maximum for runs."""
MOST_TURNS = 10_000
MOST_SECONDS = 31_536_000
"""Longest period of a rate limit in seconds (a year). `MOST_TURNS` is the most turns in a period:
the times of an owner's turns are one item of the store, and 10,000 times are 0.5 MB, which each
turn reads and writes.
"""


@dataclass(frozen=True, kw_only=True)
class Context(Settings):
    """The settings of one run. Raises `ConfigError` if a value is wrong; the error names the field,
    the value and what is allowed.

    A field with the value "" counts as not set, because forms send "" for a field left empty.
    """

    # The upper bounds are far beyond use: a checkpoint takes integers of 64 bits, LangGraph 10,007
    # steps.
    model_limit: Annotated[int, Field(ge=1, le=100_000_000)] | None = setting(
        None,
        "The model's input limit in tokens. Empty: from the model's profile or the table of known"
        " models.",
    )
    system_prompt: Annotated[str, TEXT] | None = setting(
        None,
        "Replaces the built-in system prompt. Memory is added below it.",
        langgraph_nodes=["respond"],
        langgraph_type="prompt",
    )
    language: Literal["en", "zh"] | None = setting(
        None, "Language of notices: 'en' or 'zh'. Empty: the language of the newest message."
    )
    max_model_calls: Annotated[int, Field(ge=1, le=1_000)] = setting(
        12, "Model calls allowed in one turn; then the turn ends with a notice."
    )
    max_message_chars: Annotated[int, Field(ge=1, le=100_000_000)] = setting(
        8_000, "Characters allowed in one message of the user."
    )
    max_repairs: Annotated[int, Field(ge=0, le=1_000)] = setting(
        3,
        "How often a failing query may be corrected in one turn; then the model has to say that it"
        " failed.",
    )
    approve_sql: Literal["never", "costly", "always"] = setting(
        "costly",
        "Which queries a person approves before they run: 'never', 'costly' ones, or 'always'.",
    )
    check_numbers: Literal["off", "flag"] = setting(
        "flag",
        "Figures of an answer that no result of its turn holds: 'flag' them after the answer, or"
        " 'off'.",
    )
    privacy: Literal["off", "types"] = setting(
        "off",
        "What the model is shown of the data: 'types' withholds every cell, it sees types, counts"
        " and names only; the person sees all rows. Or 'off'.",
    )
    owner: Annotated[str, NAME] | None = setting(
        None,
        "Whose thread it is. A thread another owner opened is not found; one opened without an"
        " owner is open to all.",
    )
    model: Annotated[str, NAME] | None = setting(
        None,
        "Which of the operator's models answers, by its name in their list. Empty: the graph's"
        " own.",
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = setting(
        None, "Sampling temperature of the model, 0 to 2. Empty: as the model was made."
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        setting(
            None,
            "How hard a reasoning model thinks: none, minimal, low, medium, high, xhigh or max.",
        )
    )
    thinking: bool | Annotated[int, Field(ge=1, le=10_000_000)] | None = setting(
        None,
        "Whether a model that can do both thinks before it answers, or the tokens it may think,"
        " where its server takes a budget. Empty: as the model was made.",
    )
    request_timeout: Annotated[float, Field(ge=0.001, le=86_400)] | None = setting(
        None, "Seconds one model call may wait for its server. Empty: as the model was made."
    )
    max_retries: Annotated[int, Field(ge=0, le=20)] = setting(
        0,
        "Further tries of a model call that failed before its answer began, beside those of its"
        " client.",
    )
    prompt_cache: Literal["5m", "1h", "off"] = setting(
        "5m",
        "How long Claude's prompt cache keeps a call: '5m', '1h' (dearer to write), or 'off' for no"
        " marks. OpenAI's cache works by itself.",
    )
    prompt_cache_key: bool | None = setting(
        None,
        "Whether calls of OpenAI's protocol name their thread's cache. Empty: only to OpenAI's own"
        " servers, because others may refuse what they do not know.",
    )
    project: Annotated[str, NAME] | None = setting(
        None, "What a thread is for: threads are listed and their usage added up by it."
    )
    channel: Annotated[str, NAME] | None = setting(
        None, "Where the message came from, kept in its metadata: 'web', 'chat', a bot's name."
    )

    REPLACED: ClassVar = {
        "memory_prompt": "use build_graph(memory_prompt=...)",
        "schema_share": (
            "the schema always takes up to 4 % of the limit, and the tools tell the rest"
        ),
        "max_request_messages": "use build_graph(request_limits=RequestLimits(messages=...))",
        "max_request_chars": "use build_graph(request_limits=RequestLimits(chars=...))",
        "max_request_bytes": "use build_graph(request_limits=RequestLimits(bytes=...))",
        "max_overflow_retries": "leave it out, a turn compacts up to 3 times after an overflow",
        "thinking_budget": "use Context(thinking=...), which takes tokens, too",
    }
    OLD_DEFAULTS: ClassVar = {
        "schema_share": 0.04,
        "max_request_messages": 60,
        "max_request_chars": 120_000,
        "max_request_bytes": 262_144,
        "max_overflow_retries": 3,
    }
    GONE: ClassVar = {("check_numbers", "mend"): "use 'flag'"}

    def __new__(cls, **values: Any) -> Self:
        """Note which fields were set. A field may be set to its default on purpose."""
        context = super().__new__(cls)
        chosen = frozenset(
            name for name, value in values.items() if value is not None and value != ""
        )
        context.__dict__["_fields_set"] = chosen
        return context

    def __post_init__(self) -> None:
        """Replace "" by the field's default, and check every field."""
        for each in dataclasses.fields(self):
            if getattr(self, each.name) == "":
                object.__setattr__(self, each.name, each.default)
        super().__post_init__()

    def replace(self, **changes: Any) -> "Context":
        """Return a copy with these fields changed. Use this instead of `dataclasses.replace`, which
        would mark every field as set.
        """
        return type(self)(**{**{name: getattr(self, name) for name in self.fields_set}, **changes})

    @property
    def fields_set(self) -> frozenset[str]:
        """The names of the fields that were set. If that was not noted (some copies lose it), the
        names of the fields whose value differs from the default.
        """
        unlike = (
            each.name
            for each in dataclasses.fields(self)
            if getattr(self, each.name) != each.default
        )
        # Pydantic replaces the whole `__dict__`.
        return frozenset(self.__dict__.get("_fields_set", unlike))

    def within(self, operator: "Context") -> "Context":
        """Return these settings, limited by an operator's settings.

        If only one of the two sets a field, that value is used. If both set a field, the result has
        the stricter choice for fields in `STRICTER`, the smaller number for fields in `LIMITS`, and
        the operator's value for all other fields.
        """
        return self.replace(
            **{name: self._within(name, getattr(operator, name)) for name in operator.fields_set}
        )

    def _within(self, name: str, most: Any) -> Any:
        mine = getattr(self, name)
        if name not in self.fields_set:
            return most
        if name in STRICTER:
            return max(mine, most, key=STRICTER[name].index)
        # `thinking=True` means as many tokens as the model likes.
        return (
            min(mine, most, key=lambda value: math.inf if value is True else value)
            if name in LIMITS
            else most
        )


@dataclass(frozen=True, kw_only=True)
class RequestLimits(Settings):
    """Limits on all messages of one request together. They apply to requests of clients, but not to
    a graph that runs as a node of another graph.

    A single message of `Context.max_message_chars` characters is always within the limits.
    """

    messages: Annotated[int, Field(ge=1, le=1_000_000)] = 60
    """Most messages of one request. The last message must be the user's."""
    chars: Annotated[int, Field(ge=1, le=1_000_000_000)] = 120_000
    """Most characters of the texts of these messages together."""
    bytes: Annotated[int, Field(ge=1, le=10_000_000_000)] = 262_144
    """Most bytes of these messages as they are sent, with images and tool calls (256 KiB). A
    request that hands in an earlier conversation may have 32 times as many.
    """


def requester(user: object, claimed: str | None) -> str | None:
    """Return the owner of a request: the identity that the server's authentication found, or
    `claimed` if the server has no authentication.

    `user`: the server's data on the sender. If the server has authentication and the sender is not
    authenticated, the owner is None, whatever the request claims.
    """
    if user is None or type(user).__module__ == "langgraph_api.auth.noop":
        # Agent Server's, where it authenticates nobody
        return claimed
    return str(getattr(user, "identity", "")) if getattr(user, "is_authenticated", False) else None
