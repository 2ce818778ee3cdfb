"""Put the words of a translated question into English order: what stands before 的 goes behind its noun, what is asked to the front."""

import re
from collections.abc import Callable, Iterator
from typing import Final

Words = list[str]
Flatten = Callable[[Words], Words]

_ADVERBS: Final = frozenset(["still", "also", "not", "without", "never"])
_MARKS: Final = frozenset(",，。.?？!！;；:：")
_TIME: Final = re.compile(
    r"(?:(?:Q[1-4]|January|February|March|April|May|June|July|August|September|October|November|December) )?(?:19|20)\d\d"
    r"|(?:19|20)\d\d-\d\d-\d\d|between (?:19|20)\d\d\S* and \S+"
)
_NUMBER: Final = re.compile(r"\d[\d.]*")
_TAILS: Final = frozenset(["what is", "what", "who", "which", "where", "when", "is", "have", "how many"])
_LISTS: Final = frozenset(["list", "show", "find", "tell"])
_COMPARED: Final = frozenset(
    """more less least most fewest highest lowest top longest shortest oldest youngest newest earliest latest cheapest largest smallest
    biggest heaviest lightest fastest slowest expensive recent between exactly equal""".split()  # noqa: SIM905 - a word list reads best as plain words
)
_LEADING: Final = frozenset(
    """in from to by via not without never before after since until still containing named about
    with at on as""".split()  # noqa: SIM905 - a word list reads best as plain words
)
_VERBS: Final = frozenset(
    "made held live work left sold bought born wrote written won lost paid spent sent cast unpaid".split()  # noqa: SIM905 - a word list reads best as plain words
)
_JOINERS: Final = frozenset(["and", "or", "、", ","])


def arrange(words: Words, flatten: Flatten) -> Words:
    """Return the words of a question in English order; `flatten` orders those of a phrase with no 的 in it."""
    out: Words = []
    for clause in _clauses(words):
        out += [clause[0]] if clause[0] in _MARKS else _clause(clause, flatten)
    return out


def _clauses(words: Words) -> Iterator[Words]:
    clause: Words = []
    for word in words:
        if word in _MARKS:
            if clause:
                yield clause
            clause = []
            yield [word]
        else:
            clause.append(word)
    if clause:
        yield clause


def _clause(words: Words, flatten: Flatten) -> Words:
    words = list(words)
    if any(word in ("order", "descending", "ascending", "sort by") for word in words):
        return _timed(words, flatten)
    if words[-1] == "how many" and "each" not in words and len(words) > 1 and not _TIME.fullmatch(words[0]):
        words = [words[-1], *words[:-1]]
        while words[-1] in ("have", "is", "in"):
            words.pop()
    if "of" not in words and not any(map(is_verb, words)) and not any(_asks(word) for word in words[1:]):
        return _timed(words, flatten)
    front: Words = []
    while words and words[0] in _LISTS:
        front.append(words.pop(0))
    tail: Words = []
    while len(words) > 1 and words[-1] in _TAILS:
        tail.insert(0, words.pop())
    if words and words[-1] == "of":
        words.pop()
    asked = next((place for place, word in enumerate(words) if _asks(word)), None)
    if asked is not None:
        return [*front, *_asking(words, asked, flatten), *tail]
    many = next((place for place, word in enumerate(words) if word.startswith("how many")), None)
    if many is not None:
        before, counted = words[:many], words[many + 1 :]
        while before and before[-1] in ("have", "is", "in"):
            before.pop()
        if not counted:
            return [*front, words[many].removesuffix(" person"), *_noun(before, flatten)]
        return [*front, words[many], *_described(_noun(counted, flatten), before, flatten)]
    if "how many" in tail:
        return [*front, "how many", *_noun(words, flatten), *(word for word in tail if word not in ("how many", "have"))]
    return [*front, *[word for word in tail if word not in ("is", "have")], *_noun(words, flatten)]


def _asks(word: str) -> bool:
    return word == "which" or word == "who" or word.startswith("which ")


def _asking(words: Words, asked: int, flatten: Flatten) -> Words:
    """Order a clause with 哪: what is asked comes first, what was said of it before comes behind."""
    before, rest = words[:asked], words[asked:]
    while before and before[-1] in ("is", "have", "in", "of", "by", "belong"):
        before.pop()
    if rest and rest[-1] == "of":
        rest.pop()
    if before and not all(_TIME.fullmatch(word) or word == "in" for word in before):
        if rest and is_verb(rest[-1]) and not is_verb(before[-1]):
            return [*flatten(rest), *_noun(before, flatten)]
        return _described(flatten(rest), before, flatten)
    if "of" in rest:  # 哪些客户的账户余额: which customers have an account balance ...
        place = rest.index("of")
        if place > 1 and place + 1 < len(rest):
            have = [] if {"have", "with", "without"} & set(rest[:place]) else ["have"]
            return [*rest[:place], *have, *_noun(rest[place + 1 :], flatten), *_ago(before)]
    return [*flatten(rest), *_ago(before)]


def _ago(before: Words) -> Words:
    times = [word for word in before if _TIME.fullmatch(word)]
    return ["in", *times] if times else []


def _noun(words: Words, flatten: Flatten) -> Words:
    """Return a noun with what describes it behind."""
    words = list(words)
    while words and words[-1] in ("of", "in", "and"):
        words.pop()
    while words and words[0] == "of":
        words.pop(0)
    place = next((place for place in range(len(words) - 1, 0, -1) if words[place] == "of"), None)
    if place is None:
        return _timed(words, flatten)
    if _TIME.fullmatch(words[0]) and words[1] != "of" and not words[1].endswith("~") and place > 1:
        return [*_noun(words[1:], flatten), "in", words[0]]
    head, described = words[place + 1 :], words[:place]
    if _is_value(described):
        return [*described, *flatten(head)]
    return _described(flatten(head), described, flatten)


def _described(head: Words, described: Words, flatten: Flatten) -> Words:
    """Put a description behind its noun, the verb that closes it first: 向X的计划提交的申请 are applications submitted to plans of X."""
    described = list(described)
    if len(described) == 1 and is_verb(described[0]) and head:
        return [*described, *head] if len(head) == 1 else [*head, *described]
    while described and described[-1] in ("of", "have", "is", "and"):
        described.pop()
    if not described:
        return head
    if described[:1] == ["have"] and len(described) == 2 and is_verb(described[1]):
        return [*head, "that", *described]
    if described[:1] == ["have"]:
        described[0] = "with"
    verb = []
    if described[0] == "with" or _ADVERBS & set(described):
        pass
    elif len(described) > 1 and is_verb(described[-1]) and not is_verb(described[0]):
        verb = [described.pop()]
        if described[0] == "by":
            described.pop(0)
            verb.append("by")
    inner = _noun(described, flatten)
    if not inner:
        return [*head, *verb]
    if "each" in inner[1:] and "with" not in inner:
        place = inner.index("each")
        inner = [*inner[place:], *(["of"] if inner[place - 1] not in ("of", "in", "from") else []), *inner[:place]]
    joined = _joiner(inner, noun="of" in described, verb=bool(verb))
    if joined == ["of"] and head and head[-1].endswith(" of"):
        joined = []
    return [*head, *verb, *joined, *inner]


def _joiner(described: Words, *, noun: bool, verb: bool) -> Words:
    """Return the word that ties a description to the noun before it."""
    first = described[0].split()[0] if described and described[0].split() else ""
    every = {part for word in described for part in word.split()}
    if first in _LEADING or (is_verb(described[0]) and not noun):
        return []
    if first == "each":
        return ["for"]
    if all(_TIME.fullmatch(word) for word in described):
        return [] if described[0].startswith("between") else ["in"]
    if verb:
        return ["by"]
    measured = first.islower() and any(_NUMBER.fullmatch(word) for word in described[1:])
    return ["with"] if (every & _COMPARED or measured) and not noun else ["of"]


def is_verb(word: str) -> bool:
    """Say whether a translated word is a participle or a verb that only joins."""
    return (word.endswith("ed") and len(word) > 4 and " " not in word) or word in _VERBS


def _is_value(words: Words) -> bool:
    """Say whether a description is a bare value in the data's own words: an adjective, or a name before its noun."""
    return len(words) == 1 and not words[0].islower() and words[0].isascii() and not _TIME.fullmatch(words[0])


def _timed(words: Words, flatten: Flatten) -> Words:
    """Move a time from the front to the back: 2024年发放的贷款 are loans granted in 2024."""
    front = 0
    while front < len(words) and words[front] in _LISTS:
        front += 1
    if len(words) > front + 1 and _TIME.fullmatch(words[front]) and not words[front + 1].endswith("~") and words[front + 1] not in _JOINERS:
        rest = words[front + 1 :]
        if rest and rest[0] in ("in", "of"):
            rest = rest[1:]
        time = words[front] if words[front].startswith("between") else f"in {words[front]}"
        if rest:
            return [*words[:front], *flatten(rest), time]
    return flatten(words)
