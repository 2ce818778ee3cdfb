"""Settings of one run, and what an operator sets for all runs. Studio draws its form from them."""

import dataclasses
import inspect
import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from longtable.base.errors import ConfigError, UnknownSettingError

STRICTER: dict[str, tuple[str, ...]] = {
    "approve_sql": ("never", "costly", "always"),
    "check_numbers": ("off", "flag"),
    "privacy": ("off", "types"),
}
"""Choices of which one is stricter than another, the strictest last."""
LIMITS = {
    "model_limit",
    "max_model_calls",
    "max_message_chars",
    "max_repairs",
    "max_retries",
    "request_timeout",
    "thinking",
}
"""Numbers for which an operator's value is the maximum."""
MOST_TURNS = 10_000
MOST_SECONDS = 31_536_000
"""Of a rate limit. An owner's times are one item of the store: 10,000 of them are 0.5 MB, read and
written with each turn.
"""
MOST_OWNER = 200
OWNER_RULE = f"1 to {MOST_OWNER} printable characters without blanks at the ends"


class SettingWarning(UserWarning):
    """A setting of an earlier version was read and has no effect any more."""


class _Signature:
    """The parameters of a class's `__init__`; `inspect` would take those of `__new__`."""

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        return inspect.Signature(list(inspect.signature(owner.__init__).parameters.values())[1:])


class _Kind(type):
    if not TYPE_CHECKING:  # type checkers read the parameters of `__init__`

        def __call__(cls, *args: Any, **values: Any) -> Any:
            return super().__call__(*args, **_current(cls, values))


def _refuse_unknown(kind: Any, values: Mapping[str, Any]) -> None:
    """Raise `UnknownSettingError` for the first name that is no field, with the nearest one."""
    fields = [each.name for each in dataclasses.fields(kind)]
    known = {*fields, *kind.REPLACED, *kind.WITHOUT_EFFECT}
    for name in [each for each in values if each not in known]:
        near = nearest(name, fields)
        advice = f"did you mean {near}?" if near else f"it has {', '.join(fields)}"
        raise UnknownSettingError(
            f"{kind.__name__} has no field {shown(name)}; {advice}", name=name, near=near
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that is most like this one, "" if none is."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    best = process.extractOne(
        name[:60].lower(), list(known), scorer=OSA.normalized_similarity, score_cutoff=0.6
    )
    return best[0] if best else ""


def _current(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without fields of earlier versions. Warns of one that has no effect any
    more; raises `ConfigError` for one that needs another setting instead, or is unknown.
    """
    _refuse_unknown(kind, values)
    for name, value in values.items():
        if name in kind.WITHOUT_EFFECT and value is not None:
            warnings.warn(
                f"{kind.__name__}.{name} has no effect any more: {kind.WITHOUT_EFFECT[name]}",
                SettingWarning,
                stacklevel=3,
            )
        if name in kind.REPLACED and value not in (None, "", kind.OLD_DEFAULTS.get(name)):
            raise ConfigError(
                f"{kind.__name__} has no field {name!r} any more: {kind.REPLACED[name]}"
            )
        if isinstance(value, str) and (advice := kind.GONE.get((name, value))):
            raise ConfigError(f"{kind.__name__}.{name}: {value} is gone: {advice}")
    gone = {*kind.REPLACED, *kind.WITHOUT_EFFECT}
    return {name: value for name, value in values.items() if name not in gone}


class Settings(metaclass=_Kind):
    """Base of frozen dataclasses whose fields pydantic checks when they are built.

    Raises `ConfigError` naming field, value and what is allowed; for a field or a choice of an
    earlier version, what replaced it. Saved settings may still hold such a field: one at its
    default, None or "" is left out.
    """

    REPLACED: ClassVar[Mapping[str, str]] = {}
    """Fields of earlier versions, with what replaced each."""
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {}
    """Fields of earlier versions that are read and left out, with the reason: a warning says so."""
    OLD_DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    """Their defaults, of those that had another than None."""
    GONE: ClassVar[Mapping[tuple[str, str], str]] = {}
    """Field and choice of earlier versions, with what to do instead."""
    __signature__ = _Signature()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take what a call takes: pydantic builds a dataclass without calling it."""
        return core_schema.no_info_before_validator_function(
            lambda given: _current(cls, given) if isinstance(given, Mapping) else given,
            handler(source),
        )

    def __post_init__(self) -> None:
        """Check every field by its annotation."""
        kind: Any = type(self)
        hints = _hints(kind)
        values = {name: getattr(self, name) for name in hints}
        try:
            _checks(kind).model_validate(values)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            name = str(first["loc"][0])
            raise ConfigError(
                f"{kind.__name__}.{name} must be {_allowed(hints[name], first['msg'])}, found"
                f" {shown(values[name])}",
                name=name,
                wanted=_symbols(hints[name]),
                says=_text_rule(hints[name]),
            ) from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the annotation of each field."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


@cache
def _checks(kind: Any) -> Any:
    """Return the fields as a pydantic model. It is strict: neither "7" nor True is a number."""
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in _hints(kind).items()}
    config = ConfigDict(strict=True, protected_namespaces=())
    return create_model(kind.__name__, __config__=config, **fields)


def _allowed(hint: Any, said: str) -> str:
    """Return what a field takes, with both bounds of a number; `said` is pydantic's message."""
    kinds = get_args(hint)
    choices = [
        text for kind, text in ((bool, "True, False"), (type(None), "None")) if kind in kinds
    ]
    for each in (hint, *kinds):
        for rule in getattr(each, "__metadata__", ()):
            if isinstance(rule, FieldInfo):
                low, high = rule.metadata
                number = "a whole number" if get_args(each)[0] is int else "a number"
                words = "from {:,} to {:,}" if hasattr(low, "ge") else "between {:,} and {:,}"
                bounds = words.format(dataclasses.astuple(low)[0], dataclasses.astuple(high)[0])
                return " or ".join([f"{number} {bounds}", *choices])
    return " or ".join(
        [said.removeprefix("Input should be ").removeprefix("Value error, "), *choices]
    )


def _rules(hint: Any) -> list[Any]:
    """Return what is annotated to a type, or to the parts of a union."""
    rules: list[Any] = []
    for each in (hint, *get_args(hint)):
        rules += getattr(each, "__metadata__", ())
    return rules


def _text_rule(hint: Any) -> str:
    """Return the key of the sentence on a field that takes text, "" for another field."""
    rules = _rules(hint)
    return "setting_name" if NAME in rules else "setting_text" if TEXT in rules else ""


def _symbols(hint: Any) -> str:
    """Return what a field takes in signs that stand in a sentence of any language."""
    symbols: list[str] = []
    for each in (hint, *get_args(hint)):
        if get_origin(each) is Literal:
            symbols += get_args(each)
    if bool in get_args(hint):
        symbols.append("true | false")
    for rule in _rules(hint):
        if isinstance(rule, FieldInfo):
            bounds = [dataclasses.astuple(bound)[0] for bound in rule.metadata]
            symbols.append(" … ".join(f"{bound:,}" for bound in bounds))
    return " | ".join(symbols)


def is_owner(value: object) -> bool:
    """Return whether a value can name an owner."""
    return (
        isinstance(value, str)
        and 1 <= len(value) <= MOST_OWNER
        and value.isprintable()
        and value == value.strip()
    )


def _checked_name(value: str) -> str:
    if not is_owner(value):
        raise ValueError(OWNER_RULE)
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("text that is not blank")
    return value


NAME = AfterValidator(_checked_name)
TEXT = AfterValidator(_not_blank)


def _setting(default: Any, description: str, **extra: Any) -> Any:
    metadata: dict[str, Any] = {"description": description}
    if extra:
        metadata["json_schema_extra"] = extra
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Context(Settings):
    """Settings of one run; a wrong value raises `ConfigError` naming field, value and what is
    allowed.

    "" stands for a field that was not set: forms send it for one that was left empty.
    """

    # The upper bounds are far beyond use: a checkpoint takes integers of 64 bits, LangGraph 10,007
    # steps.
    model_limit: Annotated[int, Field(ge=1, le=100_000_000)] | None = _setting(
        None,
        "The model's input limit in tokens. Empty: from the model's profile or the table of known"
        " models.",
    )
    system_prompt: Annotated[str, TEXT] | None = _setting(
        None,
        "Replaces the built-in system prompt. Memory is added below it.",
        langgraph_nodes=["respond"],
        langgraph_type="prompt",
    )
    language: Literal["en", "zh"] | None = _setting(
        None, "Language of notices: 'en' or 'zh'. Empty: the language of the newest message."
    )
    max_model_calls: Annotated[int, Field(ge=1, le=1_000)] = _setting(
        12, "Model calls allowed in one turn; then the turn ends with a notice."
    )
    max_message_chars: Annotated[int, Field(ge=1, le=100_000_000)] = _setting(
        8_000, "Characters allowed in one message of the user."
    )
    max_repairs: Annotated[int, Field(ge=0, le=1_000)] = _setting(
        3,
        "How often a failing query may be corrected in one turn; then the model has to say that it"
        " failed.",
    )
    approve_sql: Literal["never", "costly", "always"] = _setting(
        "costly",
        "Which queries a person approves before they run: 'never', 'costly' ones, or 'always'.",
    )
    check_numbers: Literal["off", "flag"] = _setting(
        "flag",
        "Figures of an answer that no result of its turn holds: 'flag' them after the answer, or"
        " 'off'.",
    )
    privacy: Literal["off", "types"] = _setting(
        "off",
        "What the model is shown of the data: 'types' withholds every cell, it sees types, counts"
        " and names only; the person sees all rows. Or 'off'.",
    )
    owner: Annotated[str, NAME] | None = _setting(
        None,
        "Whose thread it is. A thread another owner opened is not found; one opened without an"
        " owner is open to all.",
    )
    model: Annotated[str, NAME] | None = _setting(
        None,
        "Which of the operator's models answers, by its name in their list. Empty: the graph's"
        " own.",
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = _setting(
        None, "Sampling temperature of the model, 0 to 2. Empty: as the model was made."
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        _setting(
            None,
            "How hard a reasoning model thinks: none, minimal, low, medium, high, xhigh or max.",
        )
    )
    thinking: bool | Annotated[int, Field(ge=1, le=10_000_000)] | None = _setting(
        None,
        "Whether a model that can do both thinks before it answers, or the tokens it may think,"
        " where its server takes a budget. Empty: as the model was made.",
    )
    request_timeout: Annotated[float, Field(ge=0.001, le=86_400)] | None = _setting(
        None, "Seconds one model call may wait for its server. Empty: as the model was made."
    )
    max_retries: Annotated[int, Field(ge=0, le=20)] = _setting(
        0,
        "Further tries of a model call that failed before its answer began, beside those of its"
        " client.",
    )
    project: Annotated[str, NAME] | None = _setting(
        None, "What a thread is for: threads are listed and their usage added up by it."
    )
    channel: Annotated[str, NAME] | None = _setting(
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
        """Note which fields were set: a value that equals the default may have been chosen."""
        context = super().__new__(cls)
        chosen = frozenset(
            name for name, value in values.items() if value is not None and value != ""
        )
        context.__dict__["_fields_set"] = chosen
        return context

    def __post_init__(self) -> None:
        """Take "" for the default, and check every field."""
        for each in dataclasses.fields(self):
            if getattr(self, each.name) == "":
                object.__setattr__(self, each.name, each.default)
        super().__post_init__()

    def replace(self, **changes: Any) -> "Context":
        """Return a copy with these fields changed. `dataclasses.replace` instead marks every field
        as set.
        """
        return type(self)(**{**{name: getattr(self, name) for name in self.fields_set}, **changes})

    @property
    def fields_set(self) -> frozenset[str]:
        """The fields that were set; of a copy that did not note them, those unlike their
        default.
        """
        unlike = (
            each.name
            for each in dataclasses.fields(self)
            if getattr(self, each.name) != each.default
        )
        # Pydantic replaces the whole `__dict__`.
        return frozenset(self.__dict__.get("_fields_set", unlike))

    def within(self, operator: "Context") -> "Context":
        """Return these settings as far as an operator's allow.

        For each field the operator set: use the operator's value if this context sets none;
        otherwise the stricter choice (`STRICTER`), the smaller number, or the operator's value.
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
    """Limits of all messages of one request together. They hold where clients come in, not within
    another graph.

    One message of `Context.max_message_chars` always passes.
    """

    messages: Annotated[int, Field(ge=1, le=1_000_000)] = 60
    """Messages of one request; the last must be the user's."""
    chars: Annotated[int, Field(ge=1, le=1_000_000_000)] = 120_000
    """Characters of their texts."""
    bytes: Annotated[int, Field(ge=1, le=10_000_000_000)] = 262_144
    """Bytes with images and tool calls as they are sent (256 KiB). With an earlier talk that a
    request hands in, 32 times as many.
    """


def requester(user: object, claimed: str | None) -> str | None:
    """Return whose a request is: the identity that a server's authentication found; `claimed` where
    the server has none.

    `user`: what the server says of who sent it. One that is not authenticated is nobody, whatever
    the request claims.
    """
    if user is None or type(user).__module__ == "langgraph_api.auth.noop":
        # Agent Server's, where it authenticates nobody
        return claimed
    return str(getattr(user, "identity", "")) if getattr(user, "is_authenticated", False) else None


def shown(value: object) -> str:
    """Return a value for a message, clipped: Python does not write an integer of thousands of
    digits.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if -(10**30) < value < 10**30 else f"one of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
