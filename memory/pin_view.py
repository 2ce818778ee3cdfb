"""Which pins a model call is shown: the live ones, within a budget, as lines of the memory block."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from longtable.memory.pin_matters import EVERYTHING, REPLACES, SEPARATOR, words_about
from longtable.memory.pins import Pin

LONG_PIN = 600
"""Characters that a pin keeps where the budget is short."""

MOST_COMPARED = 64
"""Newest pins that a revocation in free words is held against: keeps a long thread linear."""


def live_pins(pins: Sequence[Pin]) -> list[Pin]:
    """Return the pins that hold, in the order given (as stated): later ones on the same matter supersede, revocations too.

    A pin about several matters holds until each of them is superseded. A quote inside another of the same message goes.
    What takes a rule back stays as a pin itself: a summary may still tell of the rule.
    """
    board = _Board()
    for pin in _once(pins):
        board.add(pin)
    return board.live()


def _once(pins: Sequence[Pin]) -> list[Pin]:
    """Leave out what another pin of the same message holds already."""
    by_message: dict[str, list[int]] = defaultdict(list)
    for place, pin in enumerate(pins):
        by_message[pin.message_id or f"\n{pin.id}"].append(place)
    kept: set[int] = set()
    for places in by_message.values():
        held = "\n\n"
        # Longest first, so that one text collects all that contain others; a message's length bounds the work.
        for place in sorted(places, key=lambda at: (-len(pins[at].text), at)):
            folded = " ".join(pins[place].text.split())
            if folded not in held:
                kept.add(place)
                held += f"{folded}\n\n"
    return [pin for place, pin in enumerate(pins) if place in kept]


class _Board:
    """The pins added so far, which of them hold, and indexes to find those a new one touches."""

    def __init__(self) -> None:
        self.pins: list[Pin] = []
        self.open: list[set[str]] = []
        self.by_matter: dict[str, list[int]] = defaultdict(list)
        self.by_base: dict[str, list[int]] = defaultdict(list)
        self.by_word: dict[str, list[int]] = defaultdict(list)
        self.filters: list[int] = []

    def add(self, pin: Pin) -> None:
        matters = pin.matter.split(SEPARATOR)
        for matter in matters:
            self._supersede(self.by_matter.pop(matter, ()), matter)
        if pin.kind == "revocation":
            self._revoke(pin, matters)
        elif pin.matter.startswith(REPLACES):
            while self.filters and not self.open[self.filters[-1]]:
                self.filters.pop()
            if self.filters:
                self.open[self.filters.pop()].clear()
        self._index(pin, matters)

    def _index(self, pin: Pin, matters: Sequence[str]) -> None:
        place = len(self.pins)
        self.pins.append(pin)
        self.open.append(set(matters))
        for matter in matters:
            self.by_matter[matter].append(place)
            self.by_base[matter.partition("|")[0]].append(place)
        if pin.kind == "filter":
            self.filters.append(place)
        if pin.kind != "revocation":
            for word in words_about(pin.text):
                self.by_word[word].append(place)

    def _supersede(self, places: Iterable[int], matter: str) -> None:
        for place in places:
            self.open[place].discard(matter)

    def _revoke(self, pin: Pin, matters: Sequence[str]) -> None:
        if pin.matter == EVERYTHING:
            for place, other in enumerate(self.pins):
                if other.by != "user":
                    self.open[place].clear()
            self.by_matter.clear()
            return
        for matter in matters:
            if "|" not in matter:  # a whole base: "forget the rounding" takes "rounding|price" too
                for place in self.by_base.pop(matter, ()):
                    self.open[place] = {other for other in self.open[place] if other.partition("|")[0] != matter}
        words = words_about(pin.text)
        known = [self.by_word[word] for word in words if word in self.by_word]
        if words and len(known) == len(words):
            for place in min(known, key=len)[-MOST_COMPARED:]:
                if words <= words_about(self.pins[place].text):
                    self.open[place].clear()

    def live(self) -> list[Pin]:
        return [pin for place, pin in enumerate(self.pins) if self.open[place]]


# -- under a budget -------------------------------------------------------------------------------------------------

_FIRST_TO_GO = frozenset({"style", "preference", "format", "revocation"})
_LAST_TO_GO = frozenset({"rule", "constraint", "definition", "unit", "filter", "exclusion", "rounding", "language"})

HEADING = {
    "en": "Pinned words of the user, verbatim: they hold for every answer; where two disagree, the later one.",
    "zh": "用户的原话（逐字保留）：对每个回答都有效；若有冲突，以后说的为准。",
}
_LEFT_OUT = {
    "en": "({n} more pins did not fit here; they are in the transcript.)",
    "zh": "（另有 {n} 条因篇幅未列出，见会话记录。）",
}
_TURN = {"en": "turn {n}", "zh": "第 {n} 轮"}
_BY_HAND = {"en": "pinned by hand", "zh": "手动固定"}


def fit_pins(pins: Sequence[Pin], budget: int, count: Callable[[str], int]) -> tuple[list[Pin], int]:
    """Return the pins whose lines fit `budget` tokens with the heading, in order, and how many gave way.

    First pins past 600 characters are clipped, with a mark. Then pins go: style, preferences, formats and revocations
    first, then decisions and notes, then rules, constraints, definitions, units and filters, pins made by hand last; the
    oldest first within a class.
    """
    if not pins:
        return [], 0
    room = budget - max(count(HEADING[language]) + 1 for language in HEADING)
    kept = list(pins)
    costs = [_cost(pin, count) for pin in kept]
    if sum(costs) > room:
        kept = [_clipped(pin) for pin in kept]
        costs = [_cost(pin, count) if pin is not before else cost for pin, before, cost in zip(kept, pins, costs, strict=True)]
    total = sum(costs)
    if total <= room:
        return kept, 0
    room -= max(count(_LEFT_OUT[language].format(n=len(kept))) + 1 for language in HEADING)
    gone: set[int] = set()
    for place in sorted(range(len(kept)), key=lambda at: (_class(kept[at]), at)):
        if total <= room:
            break
        gone.add(place)
        total -= costs[place]
    return [pin for place, pin in enumerate(kept) if place not in gone], len(gone)


def render_pins(pins: Sequence[Pin], language: str, left_out: int = 0) -> str:
    """Return the heading and a line a pin, "" when there is none to tell of."""
    if not pins and not left_out:
        return ""
    lines = [HEADING[language], *(_line(pin, language) for pin in pins)]
    if left_out:
        lines.append(_LEFT_OUT[language].format(n=left_out))
    return "\n".join(lines)


def _line(pin: Pin, language: str) -> str:
    where = _TURN[language].format(n=pin.turn) if pin.message_id else _BY_HAND[language]
    return f'- "{" ".join(pin.text.split())}" [{where}]'


def _cost(pin: Pin, count: Callable[[str], int]) -> int:
    return max(count(_line(pin, language)) for language in HEADING) + 1


def _class(pin: Pin) -> int:
    if pin.by == "user":
        return 3
    return 0 if pin.kind in _FIRST_TO_GO else 2 if pin.kind in _LAST_TO_GO else 1


def _clipped(pin: Pin) -> Pin:
    if len(pin.text) <= LONG_PIN:
        return pin
    return replace(pin, text=f"{pin.text[:LONG_PIN]}… ({len(pin.text):,} characters)")
