"""Pins: statements of the user that hold until replaced. Where they come from, how they are checked, how a view shows them."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage

from longtable.memory.pin_rules import EVERYTHING, REPLACES, SEPARATOR, kind_of, matter_of, sentences, words_about
from longtable.memory.stamps import is_recalled, turn_number


@dataclass(frozen=True)
class Pin:
    """A statement of the user, verbatim. Pins of the same `matter` supersede each other, the later wins.

    `by`: "model", "heuristic" or "user"; `message_id` is "" for a pin that a person made by hand.
    """

    id: str
    text: str
    message_id: str
    turn: int
    kind: str
    matter: str
    by: str

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Pin":
        """Read what `as_json` wrote."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__})


def make_pin(text: str, *, message_id: str = "", turn: int = 0, kind: str = "", by: str = "user") -> Pin:
    """Return a pin; its kind is read from the text where none is given, its matter always."""
    read = kind_of(text)
    name = kind or read or "rule"
    seed = f"{message_id}\n{' '.join(text.split())}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    # A model's word for the kind is shown; what a rule is about is read from the text alone, the same for all three makers.
    return Pin(f"p{digest}", text, message_id, turn, name, matter_of(text, read or name), by)


def heuristic_pins(messages: Sequence[BaseMessage]) -> list[Pin]:
    """Return the sentences of the user's messages that state a standing rule, in order; no model is asked."""
    return [pin for message in messages if message.type == "human" and not is_recalled(message) for pin in _pins_of(message)]


def _pins_of(message: BaseMessage) -> list[Pin]:
    found: dict[str, Pin] = {}
    for sentence in sentences(str(message.text)):
        if kind := kind_of(sentence):
            pin = make_pin(sentence, message_id=message.id or "", turn=turn_number(message), kind=kind, by="heuristic")
            found.setdefault(pin.id, pin)
    return list(found.values())


# -- what a model proposes ------------------------------------------------------------------------------------------

PIN_CONTRACT: dict[str, str] = {
    "en": """Then write one more heading, "## Pins": under it quote, word for word, each statement of the user that binds later answers \
(rules, preferences, definitions, constraints, units, filters, decisions), one a line: - [m12] (unit) "the user's own words". \
Copy exactly from that one user message, leave nothing out in the middle; quote no question and nothing the assistant or a tool said.""",
    "zh": """最后再写一个标题“## 原话”：其下逐字引用用户说过的、对以后的回答仍有约束的每句话\
（规则、偏好、定义、约束、单位、筛选、决定），每条一行：- [m12] (单位) “用户的原话”。\
必须从那一条用户消息中原样照抄，中间不得省略；不要引用问题，也不要引用助手或工具的话。""",
}
_KINDS_ZH = {
    "规则": "rule",
    "偏好": "preference",
    "定义": "definition",
    "约束": "constraint",
    "单位": "unit",
    "筛选": "filter",
    "过滤": "filter",
    "决定": "decision",
    "语言": "language",
    "格式": "format",
    "风格": "style",
    "取整": "rounding",
    "排除": "exclusion",
}
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*\s*[:：]?\s*$)")
_OURS = re.compile(r"^\s*(?:#{1,6}\s*)?(?:\*\*)?(?:pins|原话)(?:\*\*)?\s*[:：]?\s*(?:\*\*)?\s*$", re.IGNORECASE)
_CITED = re.compile(r"[\[［【(（]\s*m\d+(?:\s*[-–,，、]\s*m?\d+)*\s*[\]］】)）]|^\s*m\d+\b", re.IGNORECASE)
_KIND = re.compile(r"^\s*[(（\[［]\s*([^\W\d_][\w /-]{0,30}?)\s*[)）\]］]|[(（]\s*([^\W\d_][\w /-]{0,30}?)\s*[)）]\s*$")
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"), ("«", "»"), ("‘", "’"), ("'", "'"), ("”", "”"), ("„", "“"), ("`", "`"))


@dataclass(frozen=True)
class Proposal:
    """A quote that a model names, with the messages it cites for it."""

    numbers: tuple[int, ...]
    kind: str
    text: str


def proposals_in(text: str) -> list[Proposal]:
    """Read the lines of the section on pins (`PIN_CONTRACT`), tolerant of quote marks, order and a missing kind."""
    ours, _ = _split(text)
    return [proposal for line in ours if (proposal := _proposal(line))]


def without_proposals(text: str) -> str:
    """Return a summary without its section on pins."""
    ours, rest = _split(text)
    return "\n".join(rest).strip() if ours is not None and len(rest) != len(text.splitlines()) else text


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of the section, and all others; the section ends at the next heading."""
    ours: list[str] = []
    rest: list[str] = []
    inside = False
    for line in text.splitlines():
        if _OURS.match(line):
            inside = True
        elif inside and not _HEADING.match(line):
            ours.append(line)
        else:
            inside = False
            rest.append(line)
    return ours, rest


def _proposal(line: str) -> Proposal | None:
    body = re.sub(r"(?<=[\]］】]) ?[.。]$", "", line.strip().lstrip("-*•· ").strip())
    # The citation and the kind stand at either end, outside the quote; brackets inside the quote are the user's.
    cited = _CITED.match(body) or next(
        (m for m in reversed(list(_CITED.finditer(body))) if not body[m.end() :].strip(" .。") or _KIND.fullmatch(body[m.end() :])), None
    )
    if not cited:
        return None
    numbers = tuple(int(number) for number in re.findall(r"\d{1,9}", cited[0]))
    body = (body[: cited.start()] + body[cited.end() :]).strip().lstrip(":：-– ").strip()
    kind = ""
    if match := _KIND.search(body):
        kind = (match[1] or match[2] or "").strip().casefold()
        body = (body[: match.start()] + body[match.end() :]).strip().lstrip(":：-– ").strip()
    for opening, closing in _QUOTES:
        if len(body) > 1 and body.startswith(opening) and body.rstrip(".。,，").endswith(closing):
            body = body.rstrip(".。,，") if not body.endswith(closing) else body
            body = body[len(opening) : -len(closing)]
            break
    return Proposal(numbers, _KINDS_ZH.get(kind, kind), body.strip()) if body.strip() else None


_NEGATION = re.compile(
    r"\b(?:not|never|no|don't|dont|cannot|can't|without|except|unless|stop|avoid|neither|nor|hardly)\b|n't\b|不|别|勿|禁止|避免|除非|没",
    re.IGNORECASE,
)


def verify(proposals: Sequence[Proposal], sources: Mapping[int, BaseMessage]) -> tuple[list[Pin], list[str]]:
    """Return the pins whose quotes stand in the user message they cite, and why each of the others was refused.

    White space is folded, nothing else. The pin keeps the slice of the source, not the model's copy. A quote that begins
    behind a "not" of its sentence is widened to that sentence: cut so, it would say the contrary.
    """
    pins: dict[str, Pin] = {}
    reasons: list[str] = []
    for proposal in proposals:
        why: list[str] = []
        for number in proposal.numbers:
            source = sources.get(number)
            found, reason = _slice(proposal.text, source)
            if source is None or not found:
                why.append(f"[m{number}] {reason}")
                continue
            pin = make_pin(found, message_id=source.id or "", turn=turn_number(source), kind=proposal.kind, by="model")
            pins.setdefault(pin.id, pin)
            why.clear()
            break
        if why:
            reasons.append(f'quote "{proposal.text[:80]}" refused: {"; ".join(why)}')
    return list(pins.values()), reasons


def _slice(quote: str, source: BaseMessage | None) -> tuple[str, str]:
    """Return the part of the source that a quote names, or "" and the reason."""
    if source is None:
        return "", "is not among the messages shown"
    if source.type != "human":
        return "", f"is a message of type {source.type}, not the user's"
    if is_recalled(source):
        return "", "only repeats earlier messages"
    words = quote.split()
    if len(re.findall(r"\w", quote)) < 2:
        return "", "the quote holds no words"
    text = str(source.text)
    # No word of the source may be cut in two: "now USD" does not stand in "know USD".
    pattern = r"\s+".join(re.escape(word) for word in words)
    edge = r"(?<![A-Za-z0-9_])" if re.match(r"[A-Za-z0-9_]", words[0]) else ""
    end = r"(?![A-Za-z0-9_])" if re.search(r"[A-Za-z0-9_]$", words[-1]) else ""
    match = re.search(f"{edge}{pattern}{end}", text)
    if not match:
        return "", "does not hold these words"
    return _widened(text, match.start(), match.end()), ""


def _widened(text: str, start: int, end: int) -> str:
    place = 0
    for sentence in sentences(text):
        at = text.index(sentence, place)
        place = at + len(sentence)
        if at < start < place and _NEGATION.search(text[at:start]):
            return text[at : max(place, end)]
    return text[start:end]


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
