"""What users say: facts, rules, revocations and corrected figures, in English and in Chinese, and
what stands around them. Facts come from a seed, rules and revocations from the blind set."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal

BLIND = Path(__file__).parents[2] / "evals" / "blind"
SEED = 16
FACTS = 40
CORRECTED = 22
FIGURE = re.compile(r"(?<!\d)(?<!\d,)\d{1,3}(?:,\d{3})+(?!\d|,\d)")
ROWS = re.compile(r"\b(\d+) rows\b")
CARRIERS = ("AA", "B6", "DL", "EV", "F9", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV")
SIZES = (8, 20, 4, 60, 12, 20, 35, 6, 90, 16)
"""Rows that the questions over tables look up, in turn: 80 to 1,500 tokens."""
Language = Literal["en", "zh"]
Kind = Literal["fact", "rule", "revocation", "correction"]
_PLACES = {
    "en": ("Lyon", "Oslo", "Porto", "Graz", "Turin", "Leeds", "Bergen", "Ghent", "Malmo", "Cork"),
    "zh": ("苏州", "大连", "厦门", "洛阳", "昆明", "兰州", "桂林", "青岛", "温州", "保定"),
}
_MONTHS = {"en": ("January", "March", "June", "October"), "zh": ("一月", "三月", "六月", "十月")}
_THINGS = {"en": ("boots", "lamps", "kettles", "tents"), "zh": ("靴子", "台灯", "水壶", "帐篷")}
_FACT = {
    "en": "For the record, {place} sold {figure} {thing} in {month}.",
    "zh": "记录一下，{place}{month}卖出{figure}件{thing}。",
}
_CORRECTIONS = {
    "en": (
        "Correction: the {month} figure for {thing} in {place} is {figure}, not {old}.",
        "I misread the {month} {thing} of {place}: it was {figure} instead of {old}.",
        "Sorry, that was wrong. {place} sold {figure} {thing} in {month} rather than {old}.",
        "{place}, {thing}, {month}: please use {figure}, the number I gave you was a typo.",
    ),
    "zh": (
        "更正：{place}{month}的{thing}是{figure}，不是{old}。",
        "{place}{month}的{thing}我看错了，应为{figure}，而非{old}。",
        "不好意思，刚才说错了，{place}{month}{thing}卖出{figure}件，而不是{old}件。",
        "{place}{month}{thing}的数字写错了，请以{figure}为准。",
    ),
}
_NOTES = {
    "fact": {
        "en": "{place}, {month}: {figure} {thing} sold",
        "zh": "{place}{month}{thing}销量为{figure}",
    },
    "correction": {
        "en": "The user corrected {thing} in {place} for {month} to {figure}",
        "zh": "用户把{place}{month}{thing}的销量改为{figure}",
    },
    "rule": {"en": 'The user wants: "{quote}"', "zh": "用户要求：“{quote}”"},
    "revocation": {"en": 'Later the user said: "{quote}"', "zh": "用户后来说：“{quote}”"},
}


@dataclass(frozen=True)
class Said:
    """One message of the user: what a view must hold of it (its figure, its rule; "" if nothing),
    and how a summariser puts that."""

    text: str
    key: str = ""
    note: str = ""


@dataclass(frozen=True)
class Item:
    """Messages about one thing, in order; the last has what counts, the first what it replaces."""

    kind: Kind
    said: tuple[Said, ...]


def items(language: Language) -> list[Item]:
    """Return all that is planted in one talk: the same at each call."""
    random_ = random.Random(f"{SEED}{language}")
    choices = product(_PLACES[language], _MONTHS[language], _THINGS[language])
    triples = random_.sample(list(choices), FACTS + CORRECTED)
    figures = iter(random_.sample(range(1_000, 100_000), FACTS + 2 * CORRECTED))
    items_made: list[Item] = []
    for n, (place, month, thing) in enumerate(triples):
        words = {"place": place, "month": month, "thing": thing}
        sayings = [
            _said("fact", language, _FACT[language], words | {"figure": f"{next(figures):,}"})
        ]
        if n >= FACTS:
            form = _CORRECTIONS[language][n % len(_CORRECTIONS[language])]
            words |= {"figure": f"{next(figures):,}", "old": sayings[0].key}
            sayings.append(_said("correction", language, form, words))
        items_made.append(Item("fact" if n < FACTS else "correction", tuple(sayings)))
    for rule in _blind("rules.jsonl", language):
        items_made.append(Item("rule", (_quoted("rule", language, rule["text"], rule["quote"]),)))
    for change in _blind("changes.jsonl", language):
        first = _quoted("rule", language, change["rule"], change["rule"])
        last = _quoted("revocation", language, change["change"], change["quote"])
        items_made.append(Item("revocation", (first, *map(Said, change["between"]), last)))
    return items_made


def _said(kind: str, language: str, form: str, words: dict[str, str]) -> Said:
    return Said(form.format(**words), words["figure"], _NOTES[kind][language].format(**words))


def _quoted(kind: str, language: str, text: str, quote: str) -> Said:
    return Said(text, quote.rstrip(".。"), _NOTES[kind][language].format(quote=quote))


def _blind(name: str, language: str) -> list[dict[str, str]]:
    lines = (BLIND / name).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["lang"] == language]


def mixed(planted: Sequence[Item]) -> list[Said]:
    """Return the messages of all items in one order, those of one item in theirs."""
    random_ = random.Random(SEED)
    placed: list[tuple[float, Said]] = []
    for item in planted:
        places = sorted(random_.random() for _ in item.said)
        placed += zip(places, item.said, strict=True)
    return [saying for _, saying in sorted(placed, key=lambda pair: pair[0])]


def over_tables(n: int) -> str:
    """Return a question that looks up a table."""
    return (
        f"Show me {SIZES[n % len(SIZES)]} rows of flights of {CARRIERS[n % 13]} in {1950 + n % 75},"
        " and say what stands out."
    )


def long_question(n: int, tokens: int, language: str = "en") -> str:
    """Return a question with some pasted text, of about so many tokens."""
    carrier = CARRIERS[n % 13]
    year = 1950 + n % 75
    if language == "zh":
        notes = (f"第{i}条记录提到天气和人手，与编号{n * i}有关。" for i in range(tokens // 19))
        return "".join([f"{carrier} 在 {year} 年的起飞延误如何变化？附上记录：", *notes])
    notes = (f"Note {i} names the weather and reason {n * i}." for i in range(tokens // 12))
    return " ".join(
        [
            f"How did the departure delay of {carrier} develop over {year}? These are the notes:",
            *notes,
        ]
    )


def table(rows: int) -> str:
    """Return rows as a tool gives them."""
    head = "carrier | flight | origin | dest | dep_delay | arr_delay"
    lines = [
        f"{CARRIERS[i % 13]} | {100 + i * 37 % 900} | JFK | LAX | {i * 13 % 120 - 9} |"
        f" {i * 29 % 140 - 20}"
        for i in range(rows)
    ]
    return "\n".join([head, *lines])


def answer(question: str) -> str:
    """Return an answer of some 60 tokens to a question, a word to anything else."""
    chinese = re.search(r"[\u3400-\u9fff]", question)
    if not re.search(r"[?？]|\brows\b", question):
        return "好的，已记下。" if chinese else "Noted."
    low = len(question) % 17 + 3
    high = len(question) % 23 + 9
    if chinese:
        return (
            f"全年平均起飞延误从 {low}.4 分钟升到 {high}.1 分钟，六月、七月和十二月最突出，平均超过"
            " 20 分钟；各月的样本都足够多，可以比较。"
        )
    return (
        f"Over the year the mean departure delay rose from {low}.4 to {high}.1 minutes; June, July"
        " and December stood out with means above 20 minutes, and the change after the named month"
        " was larger than that of the other carrier. The counts are large enough in each month to"
        " compare them."
    )
