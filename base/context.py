"""Settings of one run, and what an operator sets for all runs. Studio draws its form from the fields' types and metadata."""

import dataclasses
import inspect
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from longtable.base.errors import ConfigError


def _setting(default: Any, description: str, **extra: Any) -> Any:
    metadata: dict[str, Any] = {"description": description}
    if extra:
        metadata["json_schema_extra"] = extra
    return field(default=default, metadata=metadata)


BOUNDS: dict[str, tuple[int, int]] = {
    "model_limit": (1, 100_000_000),
    "max_model_calls": (1, 1_000),
    "max_overflow_retries": (0, 100),
    "max_message_chars": (1, 100_000_000),
    "max_retries": (0, 20),
    "max_request_messages": (1, 1_000_000),
    "max_request_chars": (1, 1_000_000_000),
    "max_request_bytes": (1, 10_000_000_000),
    "max_repairs": (0, 1_000),
}
"""Least and most of each whole number. The most is far beyond use: a checkpoint takes no integer past 64 bits, LangGraph 10,007 steps."""

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
STRICTER: dict[str, tuple[str, ...]] = {
    "approve_sql": ("never", "costly", "always"),
    "check_numbers": ("off", "flag"),
    "privacy": ("off", "types"),
}
"""Choices of which one is stricter than another, the strictest last."""
LIMITS = {*BOUNDS, "schema_share", "thinking_budget", "request_timeout"}
"""Numbers for which an operator's value is the maximum."""
MOST_SCHEMA_SHARE = 0.5
MOST_OWNER = 200
OWNER_RULE = f"1 to {MOST_OWNER} printable characters without blanks at the ends"


@dataclass(frozen=True, kw_only=True)
class Context:
    """Per-run settings, checked when built; a wrong value raises `ConfigError` naming field, value and what is allowed.

    "" stands for a field that was not given: forms send it for one that was left empty.
    """

    model_limit: int | None = _setting(
        None, "The model's input limit in tokens. Empty: from the model's profile or the table of known models."
    )
    system_prompt: str | None = _setting(
        None,
        "Replaces the built-in system prompt. Memory is added below it.",
        langgraph_nodes=["respond"],
        langgraph_type="prompt",
    )
    memory_prompt: str | None = _setting(
        None,
        "Replaces the instructions of the summariser.",
        langgraph_nodes=["compact"],
        langgraph_type="prompt",
    )
    language: Literal["en", "zh"] | None = _setting(None, "Language of notices: 'en' or 'zh'. Empty: the language of the newest message.")
    max_model_calls: int = _setting(12, "Model calls allowed in one turn; then the turn ends with a notice.")
    max_overflow_retries: int = _setting(3, "How often a turn folds harder after the provider says the context is too long.")
    max_message_chars: int = _setting(8_000, "Characters allowed in one message of the user.")
    max_request_messages: int = _setting(60, "Messages allowed in one request; the last must be the user's.")
    max_request_chars: int = _setting(120_000, "Characters allowed in all messages of one request together.")
    max_request_bytes: int = _setting(262_144, "Bytes allowed in one request, with images and tool calls as they are sent (256 KiB).")
    max_repairs: int = _setting(3, "How often a failing query may be mended in one turn; then the model has to say that it failed.")
    approve_sql: Literal["never", "costly", "always"] = _setting(
        "costly", "Which queries a person approves before they run: 'never', 'costly' ones, or 'always'."
    )
    schema_share: float = _setting(
        0.04,
        "Share of the limit that the database's schema may take in the system prompt, 0 to 0.5; what does not fit is left to the tools.",
    )
    check_numbers: Literal["off", "flag"] = _setting(
        "flag",
        "Figures of an answer that no result of its turn gives: 'flag' them after the answer, or 'off'.",
    )
    privacy: Literal["off", "types"] = _setting(
        "off",
        "What the model is shown of the data: 'types' withholds every cell, it sees types, counts and names only;"
        " the person sees all rows. Or 'off'.",
    )
    owner: str | None = _setting(
        None, "Whose thread it is. A thread another owner opened is not found; one opened without an owner is open to all."
    )
    temperature: float | None = _setting(None, "Sampling temperature of the model, 0 to 2. Empty: as the model was made.")
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = _setting(
        None, "How hard a reasoning model thinks: none, minimal, low, medium, high, xhigh or max."
    )
    thinking: bool | None = _setting(None, "Whether a model that can do both thinks before it answers. Empty: as the model was made.")
    thinking_budget: int | None = _setting(None, "Tokens a model may think, where its server takes a budget.")
    request_timeout: float | None = _setting(None, "Seconds one model call may wait for its server. Empty: as the model was made.")
    max_retries: int = _setting(0, "Further tries of a model call that failed before its answer began, beside those of its client.")
    project: str | None = _setting(None, "What a thread is for: threads are listed and their usage added up by it.")
    channel: str | None = _setting(None, "Where the message came from, kept in its metadata: 'web', 'chat', a bot's name.")

    __signature__: ClassVar[inspect.Signature]

    def __new__(cls, **values: Any) -> "Context":
        """Note which fields were given: a value that equals the default may have been chosen."""
        context = super().__new__(cls)
        context.__dict__["_fields_set"] = frozenset(name for name, value in values.items() if value is not None and value != "")
        return context

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            if getattr(self, each.name) == "":
                object.__setattr__(self, each.name, each.default)
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if value is None and name == "model_limit":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ConfigError(f"Context.{name} must be a whole number from {least:,} to {most:,}, found {_shown(value)}")
        share = self.schema_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= MOST_SCHEMA_SHARE:
            raise ConfigError(f"Context.schema_share must be a number from 0 to {MOST_SCHEMA_SHARE}, found {_shown(share)}")
        for name, choices in {**STRICTER, "language": ("en", "zh", None), "reasoning_effort": (*EFFORTS, None)}.items():
            if getattr(self, name) not in choices:
                allowed = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
                raise ConfigError(f"Context.{name} must be {allowed}, found {_shown(getattr(self, name))}")
        if self.owner is not None and not is_owner(self.owner):
            raise ConfigError(f"Context.owner must be None or {OWNER_RULE}, found {_shown(self.owner)}")
        self._check_model_settings()
        for name in ("channel", "project"):
            if getattr(self, name) is not None and not is_owner(getattr(self, name)):
                raise ConfigError(f"Context.{name} must be None or {OWNER_RULE}, found {_shown(getattr(self, name))}")
        for name in ("system_prompt", "memory_prompt"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise ConfigError(f"Context.{name} must be text that is not blank, or None, found {value!r}")

    def _check_model_settings(self) -> None:
        if self.thinking not in (None, True, False):
            raise ConfigError(f"Context.thinking must be True, False or None, found {_shown(self.thinking)}")
        for name, least, most in (("temperature", 0, 2), ("thinking_budget", 1, 10_000_000), ("request_timeout", 0.001, 86_400)):
            value = getattr(self, name)
            kinds = (int,) if name == "thinking_budget" else (int, float)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool) or not least <= value <= most):
                raise ConfigError(f"Context.{name} must be None or a number from {least:,} to {most:,}, found {_shown(value)}")

    def replace(self, **changes: Any) -> "Context":
        """Return a copy with these fields changed, checked anew. `dataclasses.replace` instead marks every field as given."""
        return type(self)(**{**{name: getattr(self, name) for name in self.fields_set}, **changes})

    @property
    def fields_set(self) -> frozenset[str]:
        """The names of the fields that were given a value; of a copy that did not note them, those unlike their default."""
        unlike = (each.name for each in dataclasses.fields(self) if getattr(self, each.name) != each.default)
        return frozenset(self.__dict__.get("_fields_set", unlike))  # pydantic replaces the whole `__dict__`

    def within(self, operator: "Context") -> "Context":
        """Return these settings as far as an operator's allow.

        For each field the operator set: use the operator's value if this context sets none; otherwise the stricter choice
        (`STRICTER`), the smaller number (`LIMITS`), or the operator's value.
        """
        return self.replace(**{name: self._within(name, getattr(operator, name)) for name in operator.fields_set})

    def _within(self, name: str, most: Any) -> Any:
        mine = getattr(self, name)
        if name not in self.fields_set:
            return most
        if name in STRICTER:
            return max(mine, most, key=STRICTER[name].index)
        return min(mine, most) if name in LIMITS else most


# Without this, inspect shows `__new__`'s, which names no field.
Context.__signature__ = inspect.Signature(list(inspect.signature(Context.__init__).parameters.values())[1:])


def requester(user: object, claimed: str | None) -> str | None:
    """Return whose a request is: the identity that a server's authentication found; `claimed` where the server has none.

    `user`: what the server says of who sent it. One that is not authenticated is nobody, whatever the request claims.
    """
    if user is None or type(user).__module__ == "langgraph_api.auth.noop":  # Agent Server's, where it authenticates nobody
        return claimed
    return str(getattr(user, "identity", "")) if getattr(user, "is_authenticated", False) else None


def is_owner(value: object) -> bool:
    """Tell whether a value can name an owner."""
    return isinstance(value, str) and 1 <= len(value) <= MOST_OWNER and value.isprintable() and value == value.strip()


def _shown(value: object) -> str:
    """Return a value as a message shows it, clipped: Python refuses to write out an integer of thousands of digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if -(10**30) < value < 10**30 else f"one of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
