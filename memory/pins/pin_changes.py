"""Pin and unpin in one step, as the tools `remember` and `forget` ask."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from langchain_core.messages import BaseMessage

from longtable.base.errors import PinRefusedError
from longtable.memory.pins.pins import Pin, PinEnd, current_pins, make_pin, newer_than, pin_end
from longtable.memory.pins.quotes import find_quote
from longtable.memory.pins.secrets import holds_secret

MOST_A_TURN = 5
"""Calls of `remember` and `forget` that take effect in one turn."""


@dataclass
class PinChanges:
    """Changes of a thread's pins by the tools in one step. Calls of one answer run side by side."""

    pins: Sequence[Pin]
    said: Sequence[BaseMessage]
    """The user's messages, oldest first."""
    used: int
    """Calls of this turn that took effect."""
    made: list[Pin] = field(default_factory=list)
    ends: list[PinEnd] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def remember(self, quote: str, replaces: str | None = None) -> str:
        """Pin a quote, in place of another pin if one is named, and return its id. Raises
        `PinRefusedError`.
        """
        with self._lock:
            source, text = self._checked(quote, replaces)
            self.made.append(make_pin(text, source, by="model"))
            return self.made[-1].id

    def forget(self, pin: str, quote: str) -> str:
        """End a pin by a quote that is newer, and return its id. Raises `PinRefusedError`."""
        with self._lock:
            self._checked(quote, pin)
            return pin

    def _checked(self, quote: str, ends: str | None) -> tuple[BaseMessage, str]:
        if self.used >= MOST_A_TURN:
            raise PinRefusedError(
                f"not done: {MOST_A_TURN} pins were changed in this turn, more are not allowed"
            )
        ended = {end["pin"] for end in self.ends}
        pins = [*current_pins(self.pins), *self.made]
        live = {pin.id: pin for pin in pins if pin.id not in ended}
        if ends and ends not in live:
            raise PinRefusedError(
                f"not done: no pin {ends!r} holds; those that do: {', '.join(live) or 'none'}"
            )
        source, text = find_quote(quote, newer_than(live[ends], self.said) if ends else self.said)
        if source is None:
            raise PinRefusedError(
                f"not done: no message of the user{' after that pin' if ends else ''} holds these"
                " words: quote exactly"
            )
        if not ends and any(pin.ended and pin.id == make_pin(text, source).id for pin in self.pins):
            raise PinRefusedError(
                "not done: the user took these words back since; quote newer ones"
            )
        if holds_secret(text):
            raise PinRefusedError("not done: passwords, keys and tokens are never pinned")
        self.used += 1
        if ends:
            self.ends.append(pin_end(live[ends], source, text))
        return source, text
