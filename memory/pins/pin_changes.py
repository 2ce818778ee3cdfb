"""Make and end pins during one step of the graph, for the tools `remember` and `forget`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from langchain_core.messages import BaseMessage

from longtable.base.errors import PinRefusedError
from longtable.memory.pins.pins import Pin, PinEnd, current_pins, make_pin, newer_than, pin_end
from longtable.memory.pins.quotes import find_quote
from longtable.memory.pins.secrets import holds_secret

MOST_A_TURN = 5
"""Most calls of `remember` and `forget` that take effect in one turn."""


@dataclass
class PinChanges:
    """Changes that tools make to a thread's pins in one step. It is safe for the tool calls of one
    answer, which run in parallel.
    """

    pins: Sequence[Pin]
    said: Sequence[BaseMessage]
    """The user's messages, oldest first."""
    used: int
    """Number of calls that have taken effect in this turn."""
    made: list[Pin] = field(default_factory=list)
    ends: list[PinEnd] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def remember(self, quote: str, replaces: str | None = None) -> str:
        """Pin a quote and return the id of the new pin. `replaces`: id of the pin that the new pin
        ends. Raises `PinRefusedError` if the call is not allowed, such as if no message of the user
        holds the quote.
        """
        with self._lock:
            source, text = self._checked(quote, replaces)
            self.made.append(make_pin(text, source, by="model"))
            return self.made[-1].id

    def forget(self, pin: str, quote: str) -> str:
        """End a pin and return its id. `quote`: words of the user, newer than the pin, that end it.
        Raises `PinRefusedError` if the call is not allowed.
        """
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
