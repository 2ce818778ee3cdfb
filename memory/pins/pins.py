"""Pins: what the user laid down, quoted word for word. How a quote is checked, what ends one, how a
view shows them.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from longtable.base.errors import PinRefusedError
from longtable.base.redaction import redacted
from longtable.memory.messages.marks import COLLEAGUE, RECALLED, kind_of, speaker_of, turn_number
from longtable.memory.pins.net import is_rule, rules_in, takes_back
from longtable.memory.pins.quotes import (
    find_quote,
    holds_words,
    lines_of,
    rules_of,
    without_quotes_section,
)

IN_PASSING = "heuristic"
"""Maker of the pins that the net found; stored so since 0.1.0."""
MOST_A_TURN = 5
"""Calls of `remember` and `forget` that take effect in one turn."""
LONG_PIN = 600
"""Characters of a pin that a view shows."""


@dataclass(frozen=True)
class Pin:
    """A statement of the user, word for word. `ended`: the user's words that ended it, "" while it
    holds.

    `by`: "model" (a tool call or the summariser), "heuristic" (said in passing, found by code) or
    "user" (made by hand, with no message). `speaker`: the name that the message bears.
    """

    id: str
    text: str
    message_id: str
    turn: int
    by: str
    speaker: str = ""
    ended: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON. What ended it is stored apart."""
        return {name: value for name, value in asdict(self).items() if name != "ended"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Pin":
        """Read what `as_json` wrote, or an older version, whose `kind` and `matter` are no longer
        used.
        """
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


class PinEnd(TypedDict):
    """What ended a pin: the user's quote, with the id and turn of its message."""

    pin: str
    quote: str
    message: str
    turn: int


def make_pin(
    text: str, message: BaseMessage | None = None, *, turn: int = 0, by: str = "user"
) -> Pin:
    """Return a pin of a quote from a message, or one made by hand in a turn."""
    digest = hashlib.sha256(
        f"{(message and message.id) or ''}\n{' '.join(text.split())}".encode(
            "utf-8", "surrogatepass"
        )
    ).hexdigest()[:8]
    if message is None:
        return Pin(f"p{digest}", text, "", turn, by)
    return Pin(f"p{digest}", text, message.id or "", turn_number(message), by, speaker_of(message))


def pins_in_passing(messages: Sequence[BaseMessage], known: Sequence[Pin] = ()) -> list[Pin]:
    """Return what the net finds in the user's messages; `known`: pins that a later sentence may
    change.
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


def _is_remark(pin: Pin) -> bool:
    """Return whether a pin was found in passing only since it may change another."""
    return pin.by == IN_PASSING and not is_rule(pin.text)


def repeated_as_rule(summary: str, rule: str) -> bool:
    """Return whether a summary has a sentence of the user word for word under constraints or
    preferences.
    """
    return any(line.kind == "rules" and holds_words(line.text, rule) for line in lines_of(summary))


def said_by_user(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return the user's own messages: nothing that a tool, the assistant or a colleague said,
    nothing that recall repeats.
    """
    return [
        message
        for message in messages
        if message.type == "human" and kind_of(message) not in (RECALLED, COLLEAGUE)
    ]


# What a secret is called. After a sure name any word may be one; after another a word with a digit.
_SURE = (
    "pass ?(?:word|wd|code|phrase)|pwd|credentials?|secret|token|密码|口令|密钥|令牌|私钥|授权码|激活码|"
    "(?:api|access|private|secret|encryption|signing) ?(?:key|code|token)"
)
_PERHAPS = (
    "pin|wi-?fi|login|log ?in|user ?name|licen[cs]e|otp|验证码|门禁码?|账号|帐号|用户名|"
    "(?:licen[cs]e|activation|recovery|backup|master) ?(?:key|code)|product key|"
    "(?:door|gate|entry|alarm|security|safe|lock|unlock|verification|confirmation|auth\\w*) ?code|"
    "(?:my|our|the|use) (?:key|code)"
)
_ACCOUNT = r"\b(?:login|log ?in|user(?: ?name)?|account)\b|账号|帐号|用户名"
_LINK = r"(?:\s+(?:for|of|to) [\w ]{1,30}?)?\s*(?:\b(?:is|are|was)\b|都?用|[=:：为是])[\s:：=]*"
_NO_VALUE = r"(?!(?:an?|the|not|to|in|never|secret|stored|kept|hidden|columns?|fields?|and|or)\b)"
_VALUE = r"[\w'\"“`]"
_WITH_DIGIT = r"(?=[^\s,，。;；]*\d)[\w'\"“`#!$@-]{3,}"
_MIXED = r"(?=\S*\d)(?=\S*[a-z])\w{5,}"
_SECRETS = (
    rf"(?:{_SURE}){_LINK}{_NO_VALUE}{_VALUE}",
    rf"(?<![a-z])(?:{_PERHAPS}){_LINK}{_NO_VALUE}{_WITH_DIGIT}",
    # "passcode 4711", "use key ABCD-1234", 门禁密码4711
    rf"(?<![a-z])(?:{_SURE}|{_PERHAPS})(?:\W{{1,4}}|(?<=[码令钥牌])){_WITH_DIGIT}",
    # "hunter2 as the password", "4711 is our door code", 用 abc123 作为密码
    rf"\b\S*\d\S* (?:as|is) (?:the|my|our|your|a) (?:{_SURE}|{_PERHAPS})",
    rf"\w*\d\w*\s*[作当做](?:为|成)?(?:{_SURE})",
    # "login: anna / sonne123", "log in with anna and sonne123", "username anna, password sonne"
    rf"(?:{_ACCOUNT})[^.。]{{0,30}}?\s(?:/|and|with|as)\s+{_MIXED}",
    rf"(?:{_ACCOUNT})[:：\s是为]*\S+?\s*/\s*{_MIXED}",
    rf"(?:{_ACCOUNT})[:：\s是为]+[^\s,，、/]+[,，、/\s]+(?:{_SURE})[:：\s是为]+{_NO_VALUE}\w{{3,}}",
)
_SECRET = re.compile("|".join(_SECRETS), re.IGNORECASE)


def holds_secret(text: str) -> bool:
    """Return whether a text holds a password or a key itself; a rule about one ("never show the
    password") does not.
    """
    return redacted(text) != text or bool(_SECRET.search(text))


_WORDS = {
    "en": {
        "contract": (
            """Then write one more heading, "## Pins": under it quote, word for word, each statement of the user that binds \
later answers (rules, units, definitions, filters, style), one a line: - [m12] "the user's own words". Where it takes the place of \
a pin listed here, add: replaces p1a2b3c4. Where it only takes one back, add: ends p1a2b3c4. \
Quote no question, no request of the moment, no password or key, and nothing the assistant or a tool said."""
        ),
        "pinned": (
            "Pinned words of the user, verbatim: they hold for every answer; where two disagree,"
            " the later one."
        ),
        "in passing": (
            "Said by the user in passing: each may still hold; a later one may change or end an"
            " earlier one."
        ),
        "left out": "({n} more pins did not fit here; they are in the transcript.)",
        "turn": "turn {n}",
        "by hand": "pinned by hand",
    },
    "zh": {
        "contract": (
            """最后再写一个标题“## 原话”：其下逐字引用用户说过的、对以后的回答仍有约束的每句话（规则、单位、定义、筛选、风格），\
每条一行：- [m12] “用户的原话”。若它取代下列某条，加上：取代 p1a2b3c4；若它只是取消某条，加上：结束 p1a2b3c4。\
不要引用问题、当下的请求、密码或密钥，也不要引用助手或工具的话。"""
        ),
        "pinned": "用户的原话（逐字保留）：对每个回答都有效；若有冲突，以后说的为准。",
        "in passing": "用户顺带说过的话：可能仍然有效；后说的可能改变或取消先说的。",
        "left out": "（另有 {n} 条因篇幅未列出，见会话记录。）",
        "turn": "第 {n} 轮",
        "by hand": "手动固定",
    },
}

# -- what a model proposes -------------------------------------------------------------------------


def pin_contract(language: str, pins: Sequence[Pin]) -> str:
    """Return what the summariser is told about pins; `pins`: those that it may replace or end."""
    return "\n".join([_WORDS[language]["contract"], *(_line(pin, language) for pin in pins)])


def without_pins(text: str) -> str:
    """Return a summary without its section on pins."""
    return without_quotes_section(text)


def pins_in(
    summary: str, messages: Iterable[BaseMessage], pins: Sequence[Pin]
) -> tuple[list[Pin], list[PinEnd]]:
    """Return the new pins that a summary names, and what ends with them; a quote that no message of
    the user holds is left out.
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
    """Return the messages of the user that came after the one a pin quotes."""
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


@dataclass
class PinChanges:
    """What the tools change of a thread's pins in one step. Calls of one answer run side by
    side.
    """

    pins: Sequence[Pin]
    said: Sequence[BaseMessage]
    """The user's messages, oldest first."""
    used: int
    """Calls of this turn that took effect."""
    made: list[Pin] = field(default_factory=list)
    ends: list[PinEnd] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def remember(self, quote: str, replaces: str | None = None) -> str:
        """Pin a quote, in the place of another pin where one is named, and return its id. Raises
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


# -- which hold ------------------------------------------------------------------------------------


def with_ends(
    pins: Iterable[Pin], ends: Iterable[PinEnd], restored: Mapping[str, int]
) -> list[Pin]:
    """Return the pins as they were stated, each with the first quote that ended it since it was
    last restored (id to turn).
    """
    by_pin: dict[str, str] = {}
    for end in ends:
        if end["turn"] > restored.get(end["pin"], -1):
            by_pin.setdefault(end["pin"], end["quote"])
    return [
        replace(pin, ended=by_pin.get(pin.id, "")) for pin in sorted(pins, key=lambda pin: pin.turn)
    ]


def current_pins(pins: Sequence[Pin], *, ended: bool = False) -> list[Pin]:
    """Return the pins that hold (`ended`: and those that ended), in order; not what another pin of
    its message holds or held.
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


# -- in a view -------------------------------------------------------------------------------------


def fit_pins(
    pins: Sequence[Pin], budget: int, count: Callable[[str], int]
) -> tuple[list[Pin], int]:
    """Return the pins whose lines fit `budget` tokens with their headings, in order, and how many
    gave way.

    A pin past 600 characters is clipped, with a mark. Of too many in passing go first, remarks on
    others before rules; those made by hand go last; the oldest first within each.
    """
    rows = [
        (
            pin
            if len(pin.text) <= LONG_PIN
            else replace(pin, text=f"{pin.text[:LONG_PIN]}… ({len(pin.text):,} characters)")
        )
        for pin in pins
    ]

    def cost(pin: Pin) -> int:
        return max(count(_line(pin, language)) for language in _WORDS) + 1

    costs = list(map(cost, rows))
    total = sum(costs)
    room = budget - max(
        count(each["pinned"]) + count(each["in passing"]) + 2 for each in _WORDS.values()
    )
    if total > room:
        room -= max(count(each["left out"].format(n=len(rows))) + 1 for each in _WORDS.values())
    dropped: set[int] = set()

    def stays(place: int) -> tuple[int, bool, int]:
        pin = rows[place]
        is_rule_or_end = not _is_remark(pin) or takes_back(pin.text)
        return (IN_PASSING, "model", "user").index(pin.by), is_rule_or_end, place

    for place in sorted(range(len(rows)), key=stays):
        if total <= room:
            break
        dropped.add(place)
        total -= costs[place]
    return [pin for place, pin in enumerate(rows) if place not in dropped], len(dropped)


def render_pins(pins: Sequence[Pin], language: str, left_out: int = 0) -> str:
    """Return the headings and a line a pin, those said in passing last; "" when there is none."""
    lines: list[str] = []
    for heading, passing in (("pinned", False), ("in passing", True)):
        rows = [_line(pin, language) for pin in pins if (pin.by == IN_PASSING) is passing]
        lines += [_WORDS[language][heading], *rows] if rows else []
    return "\n".join(
        [*lines, *([_WORDS[language]["left out"].format(n=left_out)] if left_out else [])]
    )


def _line(pin: Pin, language: str) -> str:
    words = _WORDS[language]
    where = words["turn"].format(n=pin.turn) if pin.message_id else words["by hand"]
    return (
        f'- "{" ".join(pin.text.split())}"'
        f" [{', '.join(filter(None, [pin.id, pin.speaker, where]))}]"
    )
