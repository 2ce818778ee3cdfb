"""The base class of settings: frozen dataclasses whose fields are checked by their annotations. The
error for an unknown field suggests the most similar one.
"""

import dataclasses
import inspect
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, ConfigDict, GetCoreSchemaHandler, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from longtable.base.errors import ConfigError, UnknownSettingError

MOST_OWNER = 200

OWNER_RULE = f"1 to {MOST_OWNER} printable characters without blanks at the ends"


class SettingWarning(UserWarning):
    """A setting of an earlier version was read and has no effect any more."""


class _Signature:
    """The signature of a class, made from the parameters of `__init__`. Without it, `inspect` would
    use the parameters of `__new__`.
    """

    def __get__(self, instance: object, owner: Any) -> inspect.Signature:
        return inspect.Signature(list(inspect.signature(owner.__init__).parameters.values())[1:])


class _Kind(type):
    if not TYPE_CHECKING:  # type checkers read the parameters of `__init__`

        def __call__(cls, *args: Any, **values: Any) -> Any:
            return super().__call__(*args, **_current(cls, values))


def _refuse_unknown(kind: Any, values: Mapping[str, Any]) -> None:
    """Raise `UnknownSettingError` for the first name that is no field. The error suggests the most
    similar field.
    """
    fields = [each.name for each in dataclasses.fields(kind)]
    known = {*fields, *kind.REPLACED, *kind.WITHOUT_EFFECT}
    for name in [each for each in values if each not in known]:
        near = nearest(name, fields)
        advice = f"did you mean {near}?" if near else f"it has {', '.join(fields)}"
        raise UnknownSettingError(
            f"{kind.__name__} has no field {shown(name)}; {advice}", name=name, near=near
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the most similar of the known names, "" if none is similar."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    best = process.extractOne(
        name[:60].lower(), list(known), scorer=OSA.normalized_similarity, score_cutoff=0.6
    )
    return best[0] if best else ""


def _current(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without fields of earlier versions.

    Warns of a field that has no effect any more. Raises `ConfigError` for an unknown field, for a
    field that was replaced by another setting, and for a choice that no longer exists.
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
    """Base of frozen dataclasses whose fields pydantic checks when an object is built.

    Raises `ConfigError` if a field is wrong. The error names the field, its value and the allowed
    values. For a field or a choice of an earlier version, the error names the replacement. Saved
    settings may still hold such a field: it is ignored if its value is the old default, None or "".
    """

    REPLACED: ClassVar[Mapping[str, str]] = {}
    """Fields of earlier versions that another setting has replaced, each with advice."""
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {}
    """Fields of earlier versions that are ignored with a warning, each with the reason."""
    OLD_DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    """The defaults of fields in `REPLACED` whose default was not None."""
    GONE: ClassVar[Mapping[tuple[str, str], str]] = {}
    """Choices of earlier versions, as (field, choice), each with advice."""
    __signature__ = _Signature()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Let pydantic accept the same arguments as a call of the class. (It builds a dataclass
        without calling the class.)
        """
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
    """Return the annotation of each field of a settings class, by the field's name."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


@cache
def _checks(kind: Any) -> Any:
    """Return a pydantic model with the fields of a settings class. The model is strict: neither "7"
    nor True is a number.
    """
    fields: dict[str, Any] = {name: (hint, ...) for name, hint in _hints(kind).items()}
    config = ConfigDict(strict=True, protected_namespaces=())
    return create_model(kind.__name__, __config__=config, **fields)


def _allowed(hint: Any, said: str) -> str:
    """Return a text with a field's allowed values, such as "a whole number from 1 to 20 or None".
    `said`: pydantic's own text, which is used for all fields except numbers.
    """
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
    """Return the metadata in the `Annotated` of a type, and of the parts of a union."""
    rules: list[Any] = []
    for each in (hint, *get_args(hint)):
        rules += getattr(each, "__metadata__", ())
    return rules


def _text_rule(hint: Any) -> str:
    """Return the key of the error sentence for a field of text, "" for any other field."""
    rules = _rules(hint)
    return "setting_name" if NAME in rules else "setting_text" if TEXT in rules else ""


def _symbols(hint: Any) -> str:
    """Return the allowed values of a field as symbols that fit a sentence of any language."""
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


def setting(default: Any, description: str, **extra: Any) -> Any:
    metadata: dict[str, Any] = {"description": description}
    if extra:
        metadata["json_schema_extra"] = extra
    return field(default=default, metadata=metadata)


def shown(value: object) -> str:
    """Return a value as short text for an error message. Very large integers are described by their
    bits, because Python refuses to write thousands of digits.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if -(10**30) < value < 10**30 else f"one of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
