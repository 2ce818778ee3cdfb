"""Metadata of a stored message: its author, its tokens, and the material sent with its call."""

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.counting.provider_reports import reported, reported_model
from longtable.memory.messages.call_reports import tool_report
from longtable.memory.messages.marks import GIVEN, kind_of, marks_of, turn_number
from longtable.memory.messages.reasoning import reasoning_of, text_or_empty


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Reported tokens of the call that gave an answer. Tokens read from the prompt cache (`cached`)
    and written to it are part of the input, reasoning tokens part of the output.
    """

    input: int
    output: int
    cached: int
    reasoning: int
    cache_written: int = 0


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Material of one context provider that was sent with the call of an answer and not kept.

    `tokens` is the size of the material, `ms` the time that the provider took.
    """

    source: str
    tokens: int
    ms: int
    cites: tuple[str, ...] = ()
    """Names of what it quotes."""


@dataclass(frozen=True, kw_only=True)
class MessageMetadata:
    """One message's metadata. Unknown fields are empty."""

    kind: str
    """normal, summary, recalled, steered or excluded."""
    turn: int
    time: str
    run: str
    """Id of the run that opened the turn."""
    owner: str
    channel: str
    model: str
    provider: str
    instead_of: str
    """If a fallback model answered: the name of the model that it replaced. Otherwise empty."""
    usage: Reported | None
    reasoning: str
    """The model's reasoning, apart from the content."""
    sources: tuple[int, int] | None
    """Numbers of the first and last message that this message summarises; None if it is no
    summary.
    """
    notice: str
    """The notice's code if this message is a notice; otherwise empty."""
    given: bool
    """True if a caller handed the message in, so that this thread's model did not make it."""
    verified: str
    """Of a query's answer: the name of the verified query that it equals but for parameters."""
    verified_by: str
    """Who checked that query."""
    passed: tuple[Passed, ...]
    """Material that context providers added to the call."""


def metadata_of(message: BaseMessage) -> MessageMetadata:
    """Return a message's metadata. Broken values are left empty, and never raise an error."""
    marks = marks_of(message)
    tokens = reported(message) if isinstance(message, AIMessage) else None
    model = reported_model(message) if isinstance(message, AIMessage) else ""
    names = ("time", "run", "owner", "channel", "notice", "instead_of", "verified")
    texts = {name: text_or_empty(marks.get(name)) for name in names}
    verified = tool_report(message).get("verified")
    texts["verified_by"] = ""
    if isinstance(verified, dict):
        texts["verified_by"] = text_or_empty(verified.get("checked_by"))
    materials = marks.get("passed")
    passed = map(_passed, materials) if isinstance(materials, list) else ()
    return MessageMetadata(
        kind=kind_of(message),
        turn=turn_number(message),
        **texts,
        model=model or text_or_empty(marks.get("model")),
        provider=text_or_empty(message.response_metadata.get("model_provider")),
        usage=Reported(**tokens) if tokens else None,
        reasoning=reasoning_of(message),
        sources=_range(marks.get("sources")),
        given=marks.get(GIVEN) is True,
        passed=tuple(filter(None, passed)),
    )


def _range(value: Any) -> tuple[int, int] | None:
    whole = (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(number, int) for number in value)
    )
    return (value[0], value[1]) if whole else None


def _passed(value: Any) -> Passed | None:
    if not isinstance(value, dict) or not all(
        isinstance(value.get(name), int) for name in ("tokens", "ms")
    ):
        return None
    named = value.get("cites")
    cites = tuple(map(text_or_empty, named)) if isinstance(named, list) else ()
    source = text_or_empty(value.get("source"))
    return Passed(source=source, tokens=value["tokens"], ms=value["ms"], cites=cites)
