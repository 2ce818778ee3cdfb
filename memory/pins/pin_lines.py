"""Pins as text: the summariser's instructions about them, and their lines in a view."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from longtable.memory.pins.net import is_rule, takes_back, words_about
from longtable.memory.pins.pins import IN_PASSING, Pin

LONG_PIN = 600
"""Most characters of a pin that a view shows."""


def is_remark(pin: Pin) -> bool:
    """Return whether a pin is a remark: said in passing, no rule itself, and kept only because it
    may change another pin.
    """
    return pin.by == IN_PASSING and not is_rule(pin.text)


_WORDS = {
    "en": {
        "contract": (
            """Then write one more heading, "## Pins": under it quote, word for word, each statement of the user that binds \
later answers (rules, units, definitions, filters, style), one a line: - [m12] "the user's own words". Where it takes the place of \
a pin listed here, add: replaces p1a2b3c4d. Where it only takes one back, add: ends p1a2b3c4d. \
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
每条一行：- [m12] “用户的原话”。若它取代下列某条，加上：取代 p1a2b3c4d；若它只是取消某条，加上：结束 p1a2b3c4d。\
不要引用问题、当下的请求、密码或密钥，也不要引用助手或工具的话。"""
        ),
        "pinned": "用户的原话（逐字保留）：对每个回答都有效；若有冲突，以后说的为准。",
        "in passing": "用户顺带说过的话：可能仍然有效；后说的可能改变或取消先说的。",
        "left out": "（另有 {n} 条因篇幅未列出，见会话记录。）",
        "turn": "第 {n} 轮",
        "by hand": "手动固定",
    },
}


def pin_contract(language: str, pins: Sequence[Pin]) -> str:
    """Return the summariser's instructions about pins. `pins`: the pins that the summariser may
    replace or end.
    """
    return "\n".join([_WORDS[language]["contract"], *(_line(pin, language) for pin in pins)])


def fit_pins(
    pins: Sequence[Pin], budget: int, count: Callable[[str], int]
) -> tuple[list[Pin], int]:
    """Return the pins whose lines fit `budget` tokens together with the headings, in order, and how
    many pins were left out.

    A pin of more than 600 characters is clipped, with a mark. If the pins do not fit, pins said in
    passing are left out first; among these, mere remarks before rules and before remarks that may
    end a rule. Then pins that a model made are left out, and last pins made by hand. Within each
    group the oldest go first.
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

    answers = _answers_to_rules(pins)

    def stays(place: int) -> tuple[int, bool, int]:
        pin = rows[place]
        is_rule_or_end = not is_remark(pin) or takes_back(pin.text) or place in answers
        return (IN_PASSING, "model", "user").index(pin.by), is_rule_or_end, place

    for place in sorted(range(len(rows)), key=stays):
        if total <= room:
            break
        dropped.add(place)
        total -= costs[place]
    return [pin for place, pin in enumerate(rows) if place not in dropped], len(dropped)


def _answers_to_rules(pins: Sequence[Pin]) -> set[int]:
    """Return the indices of the remarks that share a word with an earlier rule, if no third pin has
    that word. Such a remark may end the rule, so the rule should not be shown without it.
    """
    words = [words_about(pin.text) for pin in pins]
    counts = Counter(chain.from_iterable(words))
    rules: set[str] = set()
    places: set[int] = set()
    for place, pin in enumerate(pins):
        rare = {word for word in words[place] if counts[word] == 2}
        if not is_remark(pin):
            rules |= rare
        elif rare & rules:
            places.add(place)
    return places


def render_pins(pins: Sequence[Pin], language: str, left_out: int = 0) -> str:
    """Return the headings and one line for each pin, with pins said in passing last. Return "" if
    there are no pins.
    """
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
