"""Read the rules of the user out of a summary, and find each in the user's own messages.

A model writes the rules under any heading, with any bullets and quotation marks. A rule is compared
with the messages word by word. The user's own sentence is kept, not the model's.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from langchain_core.messages import BaseMessage

from longtable.memory.pins.net import LONG, asks, is_request, is_rule, sentences

ALIKE = 0.75
"""A line without quotation marks counts as a repetition of a sentence if the two have at least this
share of words in common (see `likeness`).
"""

# -- words -----------------------------------------------------------------------------------------

_WORD = re.compile(
    r"[\u3400-\u9fff\u3040-\u30ff]|[^\W_\u3400-\u9fff\u3040-\u30ff](?:_*[^\W_\u3400-\u9fff\u3040-\u30ff])*"
)
_ARTICLES = frozenset(("a", "an", "the"))


@lru_cache(maxsize=1_024)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, case-folded and without articles. Each Chinese or Japanese
    character is a word.
    """
    return tuple(word for word, _ in _words_with_places(text))


def _words_with_places(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for match in _WORD.finditer(text):
        word = unicodedata.normalize("NFKC", match[0]).casefold()
        if word not in _ARTICLES:
            yield "".join(word.split()), match.span()


def likeness(one: str, other: str) -> float:
    """Return the share of words that two texts have in common, from 0 to 1. Return 0 if the texts
    do not hold the same numbers.
    """
    words = frozenset(words_of(one))
    others = frozenset(words_of(other))
    if not words or not others or _numbers(words) != _numbers(others):
        return 0.0
    return 2 * len(words & others) / (len(words) + len(others))


def holds_words(text: str, part: str) -> bool:
    """Return whether a text holds the words of `part` next to each other and in the same order."""
    words = words_of(part)
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(words_of(text))} "


def _numbers(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.isdigit())


def find_quote(quote: str, messages: Sequence[BaseMessage]) -> tuple[BaseMessage | None, str]:
    """Return the last of these messages that holds the words of a quote, and the whole sentences
    around the quote, as the user wrote them. Return None and "" if no message holds the quote.

    Case, punctuation, marks and articles do not matter. A quote matches whole words only. The
    sentences are returned whole, because a quote that begins after a "not" would say the contrary.
    Of a very long sentence only the quote is returned. A single character is no quote.
    """
    words = words_of(quote)
    wanted = f" {' '.join(words)} "
    for message in reversed(messages) if len("".join(words)) > 1 else ():
        text = str(message.text)
        spoken = words_of(text)
        at = f" {' '.join(spoken)} ".find(wanted)
        if at >= 0:
            before = len(f" {' '.join(spoken)} "[:at].split())
            return message, _whole_sentences(text, before, before + len(words))
    return None, ""


def find_repeated(line: str, messages: Sequence[BaseMessage]) -> tuple[BaseMessage | None, str]:
    """Return the sentence that shares the most words with a line, and its message. If several share
    as many, the last message counts. Return None and "" if they share too few (see `ALIKE`).
    """
    best: tuple[float, BaseMessage | None, str] = (0.0, None, "")
    for message in reversed(messages):
        for sentence in sentences(str(message.text)):
            share = likeness(line, sentence) if len(sentence) <= LONG else 0.0
            if share > best[0]:
                best = share, message, sentence
    share, source, sentence = best
    return (source, sentence) if share >= ALIKE else (None, "")


def _whole_sentences(text: str, first: int, end: int) -> str:
    """Return the whole sentences of a text that hold its words number `first` up to `end`."""
    places = [place for _, place in _words_with_places(text)]
    start = places[first][0]
    stop = places[end - 1][1]
    place = 0
    low = start
    high = stop
    for sentence in sentences(text):
        at = text.index(sentence, place)
        place = at + len(sentence)
        if at < stop and place > start and len(sentence) <= LONG:
            low = min(low, at)
            high = max(high, place)
    return text[low:high]


# -- lines of a summary ----------------------------------------------------------------------------

Kind = Literal["pins", "rules", "other", ""]
"""Kind of the lines under a heading: "pins" (quotes of the user), "rules", "other" (something
else), or "" if it is not known.
"""

_HEADS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("pins", re.compile(r"\bpin(?:s|ned)?\b|\bverbatim\b|\bquot(?:es?|ed|ations?)\b|\buser'?s?'? (?:own )?(?:words|statements)\b|原话|原文|引[用述]|固定")),
    (
        "rules",
        re.compile(
            r"\b(?:constraints?|rules?|preferences?|instructions?|restrictions?|requirements?|conventions?|style|units?|"
            r"definitions?|filters?|limits?|policies)\b|约束|約束|规则|規則|偏好|要求|限制|约定|習慣|习惯|规定|条件"
        ),
    ),
    (
        "other",
        re.compile(
            r"\b(?:facts?|findings?|figures?|results?|decisions?|decided|open|questions?|todo|pending|next|data|"
            r"summary|context|conclusions?|tasks?|requests?)\b|事实|發現|发现|结论|结果|决定|未决|待办|问题|事项|数据"
        ),
    ),
)  # fmt: skip
_MARKUP = re.compile(r"^[\s>#*_\-•·◦▪+|【<(（]*(?:\d{1,2}[.)、）]\s*)?[\s*_#【]*")
_BULLET = re.compile(r"^\s*(?:[-*•·◦▪+]|\d{1,3}[.)、）]|[（(]\d{1,3}[)）])\s+")
_HEAD = re.compile(r"([^:：\"“”「『«\[\]［【】]{1,48}?)[*_】>)）\s]*(?:[:：][*_\s]*|$)")
_MARKED = re.compile(r"^\s*(?:#|\*\*|__|【|<)")
_JSON = re.compile(r"^\s*(?:[{}]|\[\s*(?:$|[{\"])|\"\w+\"\s*:|`)")
_CITED = re.compile(
    r"[\[［【(（]\s*m\d[^\]］】)）]*[\]］】)）]|^m\d+\s*[:：]|\s—\s*m\d+\s*$|\bm\d+(?:-m?\d+)?\s*$"
)
_PAIRS = (('"“”„', '"“”'), ("„«「『", "”“»」』"), ("‘'`", "’'`"))
_ENDS = r"ends?|ended|ending|revokes?|cancels?|lifts?|takes? back|结束|取消|终止|撤销"
_REPLACES = r"replac\w+|instead of|supersed\w+|overrid\w+|in place of|取代|替代|代替|替换|覆盖"
_NAMES_PIN = re.compile(
    rf"(?:(?P<ends>{_ENDS})|{_REPLACES})[^\"“”]{{0,16}}?\b(?P<pin>p[0-9a-f]{{8}})\b", re.I
)
_MARK_OF_RULE = re.compile(
    r"\b(?:rules?|constraints?|preferences?|instruct\w*|requir\w*|must|wants?|prefers?|insists?|units?|definitions?|"
    r"filters?)\b|规则|约束|偏好|要求|规定|约定|希望",
    re.I,
)


@dataclass(frozen=True)
class Line:
    """A line of a summary, with the kind of the heading above it. `heading`: True if the line
    itself is a heading without further text.
    """

    text: str
    kind: Kind
    heading: bool = False


@dataclass(frozen=True)
class Rule:
    """A sentence of the user that a summary repeats as a rule.

    `pin`: id of the pin that the sentence ends or replaces, "" if there is none. `only_ends`: True
    if the sentence ends that pin without becoming a pin itself.
    """

    source: BaseMessage
    quote: str
    pin: str = ""
    only_ends: bool = False


def lines_of(summary: str) -> Iterator[Line]:
    """Yield the lines of a summary, each with the kind that its heading announces. A line of JSON
    has the kind "" and ends the section of the heading above it.
    """
    kind: Kind = ""
    for text in summary.splitlines():
        if _JSON.match(text):
            kind = ""
            yield Line(text, "")
            continue
        head, rest = _head(text)
        if head is None:
            yield Line(text, kind)
        elif rest and not _MARKED.match(_BULLET.sub("", text)):
            # "The user wants: ..." says something of its own line alone.
            yield Line(text, head or kind)
        else:
            kind = head
            yield Line(text, kind, heading=not rest)


def _head(text: str) -> tuple[Kind | None, str]:
    """Return the kind that a heading announces, and the text that follows the heading on its line.
    If the line is no heading, return None and the line.
    """
    bare = _MARKUP.sub("", text, count=1)
    match = _HEAD.match(bare)
    if not match or len(match[1].split()) > 6:
        return None, text
    rest = bare[match.end() :].strip(" *_#>】")
    name = re.sub(r"[(（].*", "", match[1]).casefold() or match[1].casefold()
    lowered = match[1].casefold()
    kind: Kind | None = next((kind for kind, words in _HEADS if words.search(lowered)), None)
    marked = bool(_MARKED.match(text)) or bare[match.end(1) :].lstrip("*_】 ")[:1] in (":", "：")
    if text.lstrip().startswith("#"):
        return kind or "", rest
    alone = len(name.split()) <= 4 and not re.search(r"[.。!?！？,，;；]$", bare.strip())
    if kind and (marked or (not rest and alone and not _BULLET.match(text))):
        return kind, rest
    return ("", rest) if marked and not rest else (None, text)


def without_quotes_section(summary: str) -> str:
    """Return a summary without its section of quotes."""
    return "\n".join(line.text for line in lines_of(summary) if line.kind != "pins").strip()


def rules_of(summary: str, messages: Sequence[BaseMessage]) -> Iterator[Rule]:
    """Yield the user's sentences that a summary repeats as rules. `messages`: the user's messages,
    oldest first.

    Under a heading for quotes or rules, a line is a rule unless it is a question. Under another
    heading, a line is a rule only if it holds a lasting word ("always"), names a pin, or is called
    a rule ("the user wants"). A line that repeats no message of the user is left out.
    """
    for line in lines_of(summary):
        if line.heading or not line.text.strip():
            continue
        text = _BULLET.sub("", line.text)
        spans = list(_quoted(text))
        outside = text
        for span in spans[:1]:
            outside = outside.replace(span, " ")
        named = _NAMES_PIN.search(outside)
        for source, quote in _sources(line, text, spans, messages):
            if named or _binds(quote, line.kind, outside, alone=bool(spans)):
                yield Rule(
                    source, quote, named["pin"] if named else "", bool(named and named["ends"])
                )


def _sources(
    line: Line, text: str, spans: Sequence[str], messages: Sequence[BaseMessage]
) -> list[tuple[BaseMessage, str]]:
    """Return the user's sentences that a line repeats, each with its message. The text in the
    line's quotation marks is compared first; if none matches, the whole line.
    """
    found: list[tuple[BaseMessage, str]] = []
    for span in spans:
        source, quote = find_quote(span, messages)
        is_word = len(words_of(span)) == 1 < len(words_of(quote))
        if source is not None and not is_word and all(quote not in other for _, other in found):
            found.append((source, quote))
    if found or line.kind not in ("pins", "rules"):
        return found
    bare = _CITED.sub("", _NAMES_PIN.sub("", text.strip())).strip()
    _, colon, rest = bare.replace("：", ":").partition(":")
    for part in [bare, *([rest] if colon else [])]:
        source, quote = find_quote(part, messages)
        if source is not None and 2 * len(words_of(part)) >= len(words_of(quote)):
            return [(source, quote)]
        source, quote = find_repeated(part, messages)
        if source is not None:
            return [(source, quote)]
    return []


def _binds(quote: str, kind: Kind, outside: str, *, alone: bool) -> bool:
    """Return whether a sentence of the user that a summary repeats is a rule. `kind`: the kind of
    the heading. `outside`: the words of the line outside the quotation marks. `alone`: whether the
    sentence was in quotation marks.
    """
    if is_rule(quote):
        return True
    if asks(quote):
        return False
    if kind in ("pins", "rules"):
        return True
    if is_request(quote):
        return False
    if _MARK_OF_RULE.search(outside):
        return True
    return kind == "" and alone and not words_of(_CITED.sub("", outside))


def _quoted(text: str) -> Iterator[str]:
    """Yield the quotations in a line: first all text between the first and the last quotation mark,
    then the text in each pair of marks.
    """
    for opening, closing in _PAIRS:
        around = rf"(?:^|(?<=[\s\]］】)）:：*_]))[{opening}]"
        after = rf"[{closing}](?=$|[\s\[［【(（.。,，;；*_])"
        if whole := re.search(f"{around}(.+){after}", text):
            yield whole[1]
            for part in re.finditer(f"{around}(.+?){after}", text):
                if part[1] != whole[1]:
                    yield part[1]
            return
