"""Pins: statements of the user that hold for later answers, quoted word for word.

This module makes a pin from a model's proposal or from a sentence said in passing, and determines
which pins still hold. The module `quotes` checks quotes, `pin_lines` writes pins into a view.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from longtable.memory.messages.marks import COLLEAGUE, RECALLED, kind_of, speaker_of, turn_number
from longtable.memory.pins.net import rules_in
from longtable.memory.pins.quotes import (
    holds_words,
    lines_of,
    rules_of,
    without_quotes_section,
)
from longtable.memory.pins.secrets import holds_secret

IN_PASSING = "heuristic"
"""Value of `Pin.by` for pins said in passing, which the module `net` found. It is stored in threads
since version 0.1.0, and so must not change.
"""


@dataclass(frozen=True)
class Pin:
    """A statement of the user, word for word.

    `by`: who made the pin: "model" (a tool call or the summariser), "heuristic" (said in passing,
    found by code) or "user" (made by hand, without a message). `speaker`: the name that the message
    bears. `ended`: the user's words that ended the pin, "" while it holds.
    """

    id: str
    text: str
    message_id: str
    turn: int
    by: str
    speaker: str = ""
    ended: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the pin as plain JSON without `ended`, because ends are stored apart."""
        return {name: value for name, value in asdict(self).items() if name != "ended"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Pin":
        """Read the JSON that `as_json` wrote. In JSON of an older version, `kind` and `matter` are
        ignored.
        """
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


class PinEnd(TypedDict):
    """The end of a pin. `quote`: the user's words that ended it. `message` and `turn`: id and turn
    of the message that holds these words.
    """

    pin: str
    quote: str
    message: str
    turn: int


def make_pin(
    text: str, message: BaseMessage | None = None, *, turn: int = 0, by: str = "user"
) -> Pin:
    """Return a pin that quotes a message or, without a message, a pin made by hand in `turn`."""
    digest = hashlib.sha256(
        f"{(message and message.id) or ''}\n{' '.join(text.split())}".encode(
            "utf-8", "surrogatepass"
        )
    ).hexdigest()[:8]
    if message is None:
        return Pin(f"p{digest}", text, "", turn, by)
    return Pin(f"p{digest}", text, message.id or "", turn_number(message), by, speaker_of(message))


def pins_in_passing(messages: Sequence[BaseMessage], known: Sequence[Pin] = ()) -> list[Pin]:
    """Return a pin for each sentence of the user that looks like a lasting rule (see `net`).
    Sentences with secrets are left out. `known`: earlier pins; a sentence that may change one of
    them is pinned too.
    """
    pins: dict[str, Pin] = {}
    earlier = [pin.text for pin in known if not pin.ended]
    for message in said_by_user(messages):
        for text in rules_in(str(message.text), earlier):
            if not holds_secret(text):
                pin = make_pin(text, message, by=IN_PASSING)
                pins[pin.id] = pin
                earlier.append(text)
    return list(pins.values())


def repeated_as_rule(summary: str, rule: str) -> bool:
    """Return whether a summary repeats `rule` word for word under a heading for rules, such as
    constraints or preferences.
    """
    return any(line.kind == "rules" and holds_words(line.text, rule) for line in lines_of(summary))


def said_by_user(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the user's own messages. Messages of a tool, the assistant or a colleague are left
    out. Messages that only repeat earlier ones are left out too.
    """
    return [
        message
        for message in messages
        if message.type == "human" and kind_of(message) not in (RECALLED, COLLEAGUE)
    ]


# -- what a model proposes -------------------------------------------------------------------------


def without_pins(text: str) -> str:
    """Return a summary without its section on pins."""
    return without_quotes_section(text)


def pins_in(
    summary: str, messages: Iterable[BaseMessage], pins: Sequence[Pin]
) -> tuple[list[Pin], list[PinEnd]]:
    """Return the new pins that a summary names, and the ends of earlier pins (`pins`) that it
    names. Quotes that are in no message of the user, and secrets, are left out.
    """
    new_pins: list[Pin] = []
    ends: list[PinEnd] = []
    user_messages = said_by_user(messages)
    known = {pin.id: pin for pin in current_pins(pins)}
    for rule in rules_of(summary, user_messages):
        if holds_secret(rule.quote):
            continue
        old = known.get(rule.pin)
        if old and rule.source in newer_than(old, user_messages):
            ends.append(pin_end(old, rule.source, rule.quote))
        if not rule.only_ends:
            new_pins.append(make_pin(rule.quote, rule.source, by="model"))
    return new_pins, ends


def pin_end(pin: Pin, source: BaseMessage, quote: str) -> PinEnd:
    return PinEnd(pin=pin.id, quote=quote, message=source.id or "", turn=turn_number(source))


def newer_than(pin: Pin, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages that came after the message that the pin quotes. `messages`: those of the
    user, oldest first.
    """
    place = next(
        (
            at
            for at, message in enumerate(messages)
            if pin.message_id and message.id == pin.message_id
        ),
        None,
    )
    return (
        messages[place + 1 :]
        if place is not None
        else [message for message in messages if turn_number(message) > pin.turn]
    )


# -- which hold ------------------------------------------------------------------------------------


def with_ends(
    pins: Iterable[Pin], ends: Iterable[PinEnd], restored: Mapping[str, int]
) -> list[Pin]:
    """Return the pins, oldest first, with `ended` set for each pin that has ended. `restored`: the
    turn in which a person last restored a pin, by pin id; earlier ends of the pin do not count.
    """
    by_pin: dict[str, str] = {}
    for end in ends:
        if end["turn"] > restored.get(end["pin"], -1):
            by_pin.setdefault(end["pin"], end["quote"])
    return [
        replace(pin, ended=by_pin.get(pin.id, "")) for pin in sorted(pins, key=lambda pin: pin.turn)
    ]


def current_pins(pins: Sequence[Pin], *, ended: bool = False) -> list[Pin]:
    """Return the pins that hold, in order. With `ended=True`, return the ended pins too.

    A pin whose text is part of another pin of the same message is left out. If the same words were
    pinned more than once, only the newest pin is returned.
    """
    by_text: dict[str, list[tuple[str, Pin]]] = {}
    for pin in sorted(pins, key=lambda pin: (pin.by == IN_PASSING, -len(pin.text))):
        text = " ".join(pin.text.split())
        others = by_text.setdefault(pin.message_id or pin.id, [])
        if not any(
            text in other or (pin.by != firm.by == "model" and other in text)
            for other, firm in others
        ):
            others.append((text, pin))
    stated = chain.from_iterable(by_text.values())
    whole = {pin.id for _, pin in stated if not pin.ended}
    # Of the same words said again the newest stands: it may have come after another that disagrees.
    newest = {(pin.text, pin.by): pin.id for pin in pins if pin.id in whole}
    return [
        pin for pin in pins if (pin.ended and ended) or newest.get((pin.text, pin.by)) == pin.id
    ]
