"""Where pins come from: the user's words, found by pattern or named by a model and held against their source."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from longtable.memory.pin_matters import matter_of
from longtable.memory.pin_rules import kind_of, sentences
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

PIN_HEADINGS = {"en": "Pins", "zh": "原话"}
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
