"""Turn a model's answer into a summary: headings however they are written, no invented figure, cut
by line, no room unused.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from longtable.memory.compaction.code_summary import (
    Skip,
    fallback_summary,
    is_codes_line,
    left_out_in,
    numbered_rounds,
)
from longtable.memory.compaction.summary_text import (
    CONSTRAINTS,
    DECISIONS,
    FACTS,
    PREFERENCES,
    Numbered,
    citations,
    cited_numbers,
    facts_in,
    findings_in,
    is_finding,
    join_sections,
    known_citations,
    sections_of,
    without_citations,
)
from longtable.memory.counting import figures as reading
from longtable.memory.counting.figures import Figure
from longtable.memory.pins.net import LONG, asks, is_request
from longtable.memory.pins.net import sentences as split_sentences
from longtable.memory.pins.quotes import holds_words, likeness
from longtable.memory.search import text_of, tokens_of
from longtable.memory.topics.artifacts import Count
from longtable.memory.topics.topics import terms

# What the five sections are called, in the order of `HEADINGS`: beginnings of English words, parts
# of Chinese ones.
NAMES: tuple[tuple[str, ...], ...] = (
    ("fact", "finding", "figure", "result", "conclusion", "事实", "事實", "发现", "發現", "结论", "結論", "结果", "結果", "数据", "數據"),
    ("preference", "style", "偏好", "喜好", "习惯", "習慣"),
    ("constraint", "rule", "restriction", "limit", "filter", "约束", "約束", "限制", "规则", "規則", "条件", "條件"),
    ("decision", "decided", "choice", "agree", "决定", "決定", "决策", "決策"),
    ("open", "item", "question", "issue", "pending", "unresolved", "todo", "next", "step", "未决", "未決", "待办", "待辦",
     "待解决", "待解決", "待定", "未解决", "未解決", "事项", "事項", "问题", "問題"),
)  # fmt: skip
_NAMED = [
    (
        tuple(filter(str.isascii, names)),
        re.compile("|".join(name for name in names if not name.isascii())),
    )
    for names in NAMES
]
_WORD = re.compile("[a-z]+")
# Words of a heading that name no section.
_NEUTRAL = frozenset(
    [
        "and",
        "the",
        "of",
        "or",
        "a",
        "an",
        "s",
        "user",
        "users",
        "key",
        "main",
        "new",
        "so",
        "far",
        "made",
        "taken",
    ]
)
_NEUTRAL_CHINESE = re.compile(
    "用户|用戶|使用者|主要|关键|關鍵|当前|目前|已确定|已確定|已做|[与與和及的、]"
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_LEAD = re.compile(
    r"(?:[\W_]|\d{1,2}[.)、．）](?!\d)|[一二三四五六七八九十]{1,2}[、.．)）]|(?<=#)\s*\d{1,2}\s)*"
)
_HEAD_ENDS = re.compile(r"\*\*|__|[】\]>」》:：]|\s[-–—]+\s|\s+#+\s*$")
_BULLET = re.compile(r"(?:(?:[-*•·◦▪+]|\d{1,3}[.)、]|[（(]\d{1,3}[)）])\s+|[•·◦▪])+")
_NUMBERED = re.compile(r"[\W_]*(?:\d{1,2}[.)、．）]|[一二三四五六七八九十]{1,2}[、.．)）])")
_SENTENCE = re.compile(
    r"(?<=[.!?])\s+(?=[A-Z\d])|(?<=[。！？])\s*(?=[^\s\[”’」』）)\"])|(?<=\])\s+(?=[A-Z])"
)
_NOTHING = frozenset(
    ("", "none", "n/a", "na", "nothing", "empty", "无", "無", "没有", "沒有", "暂无", "暫無")
)
# How messages are shown to the summariser: an answer that repeats them sums up nothing.
_SHOWN = re.compile(r"\[m\d+\] (?:human|ai|tool|system)\b")
MOST_LINES = 2_000
"""Lines of an answer that are read: more than the summary of the largest window holds."""
SENTENCE_ENDS = tuple('.!?。！？]”"')
MOST_HEAD = 40
"""Characters of a heading at most, and eight words."""
MOST_CITED = 12
"""Messages that a line cites at most to stand for one of them."""


# -- headings --------------------------------------------------------------------------------------


@dataclass
class _Block:
    """A heading (None: before the first), its section (None: its name says none), and the lines
    under it.
    """

    name: str | None
    section: int | None
    lines: list[str] = field(default_factory=list)


def read_sections(text: str, asked: str = "") -> list[list[str]]:
    """Return the lines under each of the five headings, in either language, however the headings
    are marked and numbered.

    A heading is known by its words. One of other words (`asked`: a user's instructions, which may
    name some) stands for the section of its place where there are five, else for the first. Text
    without any known heading is prose: its sentences stand under the first.
    """
    lines = [
        line.strip()
        for line in text.splitlines()
        if re.search(r"\w", line) and not line.lstrip().startswith("```")
    ]
    lines = [line for line in lines if not _SHOWN.match(line)][:MOST_LINES]
    blocks = _blocks(lines, asked)
    headed = [block for block in blocks if block.name is not None]
    if headed and not headed[0].lines and headed[0].section is None:
        headed = headed[1:]  # a title
    in_place = len(headed) == len(NAMES) and (
        asked != "" or any(block.section is not None for block in headed)
    )
    sections: list[list[str]] = [[] for _ in NAMES]
    if not in_place and all(block.section is None for block in headed):
        read = [line for block in blocks for line in block.lines] if headed else lines
        sentences_read = [sentence for line in read for sentence in sentences(_unmarked(line))]
        return [_listed(sentences_read), *sections[1:]]
    for block in blocks:
        if block.name is None:
            # "Here is the summary:"
            block.lines = [
                line for line in block.lines if cited_numbers(line) or _BULLET.match(line)
            ]
    for block in blocks:
        place = headed.index(block) if in_place and block in headed else FACTS
        sections[place if block.section is None else block.section] += _listed(block.lines)
    return sections


def sentences(line: str) -> list[str]:
    """Return the sentences of a line, each with the citation after it."""
    return [part.strip() for part in _SENTENCE.split(line) if part.strip()]


def _blocks(lines: Sequence[str], asked: str) -> list[_Block]:
    # Where headings are written with "#", a bullet such as "- Decision: ..." is a line.
    plain = not any(line.startswith("#") and _section(_head(line)[0])[1] for line in lines)
    # Where lines are bullets, a short one that is none stands above the next ones.
    listed = 2 * sum(bool(_BULLET.match(line)) for line in lines) >= len(lines)
    blocks = [_Block(None, None)]
    for line in lines:
        head, rest = _head(line)
        bullet = bool(_BULLET.match(line)) and not _NUMBERED.match(line)
        marked = line.startswith(("#", "**", "__", "【", "<")) or bool(_NUMBERED.match(line))
        section, share = _section(head)
        is_heading = (
            share >= 0.5
            and (not rest or share == 1 or line.startswith("#"))
            and (marked or share == 1 or line.endswith((":", "：")))
        )
        if is_heading and (plain or not bullet):
            blocks.append(_Block(head, section))
        elif (
            (line.startswith("#") and head)
            or _is_asked(head, line, asked)
            or (listed and _is_title(head, rest, line))
        ):
            blocks.append(_Block(head, None))
        else:
            rest = line
        if rest:
            blocks[-1].lines.append(rest)
    return blocks


def _is_title(head: str, rest: str, line: str) -> bool:
    """Return whether a line among bullets is a heading of other words than ours: short, no bullet,
    no sentence.
    """
    is_item = bool(_BULLET.match(line)) and not line.startswith(("**", "__"))
    return (
        bool(head) and not rest and not is_item and not line.rstrip("*_ ").endswith(SENTENCE_ENDS)
    )


def _head(line: str) -> tuple[str, str]:
    """Return the words a line begins with that could be a heading, "" where they are too many, and
    the text after them.
    """
    lead = _LEAD.match(line)
    bare = line[lead.end() if lead else 0 :]
    end = _HEAD_ENDS.search(bare)
    head, rest = (bare[: end.start()], bare[end.end() :]) if end else (bare, "")
    head = re.sub(r"[(（][^)）]*[)）]?", "", head).strip("*_# ")
    return (
        ("", line)
        if len(head) > MOST_HEAD or len(head.split()) > 8
        else (head, rest.strip(" *_:：-–—】>"))
    )


@lru_cache(maxsize=4_096)
def _section(head: str) -> tuple[int | None, float]:
    """Return the section whose names make up most of a heading, and the share of its words and
    characters that they are.
    """
    plain = _NEUTRAL_CHINESE.sub("", unicodedata.normalize("NFKC", head).casefold())
    words = [word for word in _WORD.findall(plain) if word not in _NEUTRAL]
    size = len(words) + len(_CHINESE.findall(plain))
    best: tuple[int | None, float] = (None, 0.0)
    for place, (english, chinese) in enumerate(_NAMED if size else ()):
        known = sum(word.startswith(english) for word in words) + sum(
            map(len, chinese.findall(plain))
        )
        if known / size > best[1]:
            best = place, known / size
    return best


def _is_asked(head: str, line: str, asked: str) -> bool:
    """Return whether a line begins with a name that a user's instructions gave."""
    if len(head) < 2 or head.casefold() not in asked.casefold():
        return False
    if not re.search(
        rf"(?<!\w){re.escape(head)}(?!\w)", asked, re.IGNORECASE
    ) and not _CHINESE.match(head):
        return False
    return not line.rstrip(":：*_ ").endswith("]") or bool(_HEAD_ENDS.search(line))


def _unmarked(line: str) -> str:
    return (
        _BULLET.sub("", line.strip("#> "), count=1)
        if _BULLET.match(line.strip("#> "))
        else line.strip("#> ")
    )


def _listed(lines: Iterable[str]) -> list[str]:
    """Return lines as "- " lines, each once, without those that only say that there is nothing."""
    bare = [_unmarked(line) for line in lines]
    return [
        f"- {line}"
        for line in dict.fromkeys(bare)
        if line.strip("()（）*_.。- ").casefold() not in _NOTHING
    ]


# -- figures ---------------------------------------------------------------------------------------

_WRITTEN = re.compile(r"\d{1,3}(?: \d{3})+|\d+(?:[.,'’]\d+)*(?:[eE][+-]?\d{1,2}(?!\w))?", re.ASCII)


@lru_cache(maxsize=8_192)
def figures(line: str) -> tuple[Figure, ...]:
    """Return the figures that a line claims; its lines are looked at several times."""
    return tuple(reading.figures(line))


def numbers_in(text: str) -> set[float]:
    """Return every value that the digits of a text may stand for, whatever stands around them."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    numbers = {figure.value for figure in reading.figures(plain)}
    for match in _WRITTEN.finditer(plain):
        digits = re.sub("[ ']", "", match[0])
        # 1,234.5 and 1.234,5; "3,4" may be two numbers.
        for form in (
            digits.replace(",", ""),
            digits.replace(".", "").replace(",", "."),
            *re.findall(r"\d+", digits),
        ):
            with suppress(ValueError):
                numbers.add(float(form))
    return numbers


@dataclass(frozen=True)
class Sources:
    """What a summary is made of: the messages it reads, by number, and the summary before it."""

    messages: Sequence[Numbered]
    previous: str

    @cached_property
    def rounds(self) -> list[list[Numbered]]:
        """Return the messages by rounds."""
        return numbered_rounds(self.messages)

    @cached_property
    def _numbers(self) -> list[list[float]]:
        return [
            sorted(set().union(*(numbers_in(text_of(message)) for _, message in round_)))
            for round_ in self.rounds
        ]

    @cached_property
    def _before(self) -> list[float]:
        return sorted(numbers_in(self.previous))

    @cached_property
    def _words(self) -> frozenset[str]:
        return _words(
            " ".join([self.previous, *(str(message.text) for _, message in self.messages)])
        )

    def cited(self, line: str) -> list[int]:
        """Return the places of the rounds that a line cites."""
        numbers = cited_numbers(line)
        return [
            place
            for place, round_ in enumerate(self.rounds)
            if any(number in numbers for number, _ in round_)
        ]

    def hold(self, figure: Figure, line: str) -> bool:
        """Return whether a round that the line cites has the figure; a line that cites none, or
        older messages, may have it from all.
        """
        places = self.cited(line)
        known = {number for round_ in self.rounds for number, _ in round_}
        read = [self._numbers[place] for place in places] or self._numbers
        sources = read if places and cited_numbers(line) <= known else [*read, self._before]
        bounds = [(may.low, may.high) for may in figure.readings]
        bounds += [
            (may.low / 100, may.high / 100) for may in figure.readings if may.kind == "percent"
        ]
        return any(_in_bounds(numbers, low, high) for numbers in sources for low, high in bounds)

    def know(self, text: str) -> bool:
        """Return whether a text is about what was said: it cites a message, has a figure, or shares
        two words.
        """
        return bool(cited_numbers(text) or figures(text)) or len(self._words & _words(text)) >= 2


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text without its numbers."""
    return frozenset(term for term in terms(text) if not term.isdigit())


def _words(text: str) -> frozenset[str]:
    """Return the content words of a text, of Chinese every pair of characters: few are shared by
    two who say the same.
    """
    return frozenset(terms(text)).union(
        token for token in tokens_of(text) if token[1:] and not token.isascii()
    )


def _in_bounds(numbers: Sequence[float], low: float, high: float) -> bool:
    place = bisect_left(numbers, low)
    return place < len(numbers) and numbers[place] <= high


def supported(line: str, sources: Sources) -> str:
    """Return a line without the sentences that hold a figure no cited round has, "" where none is
    left.

    The whole sentence goes: without its figure it might say something else.
    """

    claims = sentences(line)
    backed = [
        sentence
        for sentence in claims
        if all(sources.hold(figure, line) for figure in figures(sentence))
    ]
    if len(backed) == len(claims) or not backed:
        return line if backed else ""
    cites = "".join(
        citation for citation in dict.fromkeys(citations(line)) if citation not in " ".join(backed)
    )
    return " ".join([*backed, cites]).strip()


def checked(sections: Sequence[Sequence[str]], sources: Sources, messages: int) -> list[list[str]]:
    """Return the lines without citations of unknown messages and figures that no message has.

    `messages`: how many the transcript has. An answer that stands under no heading but the first
    may be about anything ("I cannot do that."): none of it stays where it has nothing to do with
    the conversation.
    """
    lines = [[known_citations(line, messages) for line in section] for section in sections]
    lines = [
        [supported(line, sources) for line in section if not left_out_in(line)] for section in lines
    ]
    usable = any(lines[FACTS + 1 :]) or sources.know("\n".join(lines[FACTS]))
    return [[line for line in section if usable and line.strip("- ")] for section in lines]


# -- room ------------------------------------------------------------------------------------------

_WORTH = {CONSTRAINTS: 2, PREFERENCES: 1, DECISIONS: 1}
_QUOTED = re.compile(r"[\"“„].{6,}[\"”]|[「『].{4,}[」』]|‘.{4,}’")


def fitted(
    sections: Sequence[Sequence[str]], language: str, budget: int, count: Count
) -> list[list[str]]:
    """Return as many lines as fit `budget` tokens, in their order.

    The first to stay are constraints, then preferences, decisions and lines that quote somebody,
    then facts and open items; among these lines with a figure before lines without, newer ones (by
    the messages they cite) before older ones.
    """
    room = budget - count(join_sections([[]] * len(sections), language))
    lines = [
        (place, at, line)
        for place, section in enumerate(sections)
        for at, line in enumerate(section)
    ]

    def worth(item: tuple[int, int, str]) -> tuple[int, bool, int, int]:
        place, at, line = item
        section = max(_WORTH.get(place, 0), int(bool(_QUOTED.search(line))))
        return section, bool(figures(line)), max(cited_numbers(line), default=0), at

    stays: set[tuple[int, int]] = set()
    for place, at, line in sorted(lines, key=worth, reverse=True):
        if (cost := count(line) + 1) <= room:
            stays.add((place, at))
            room -= cost
    return [
        [line for at, line in enumerate(section) if (place, at) in stays]
        for place, section in enumerate(sections)
    ]


def filled(
    sections: Sequence[Sequence[str]],
    sources: Sources,
    language: str,
    budget: int,
    count: Count,
    room_for_stated: int = 0,
    mark: Callable[[str], str] = str,
    skip: Skip = lambda sentence, ids: False,  # noqa: ARG005  # what a caller may hand in
) -> str:
    """Return the summary's text, its unused room filled with the code's own lines for what its
    lines do not hold; `skip`: nor the pins; `room_for_stated`: see `fallback_summary`.

    So a lazy model is never worse than none: citing a round is not enough. Facts of the summary
    before it are carried on likewise, unless a line says the same with another figure.
    """
    claims = [_claim(line) for section in sections for line in section]

    def is_held(sentence: str, ids: str) -> bool:
        return skip(sentence, ids) or _held(_claim(f"{sentence} [{ids}]"), claims)

    before = facts_in(sources.previous)
    older = [line for line in before if is_codes_line(line) or _is_worth(line)]
    older = [line for line in older if _is_own(line) or not _held(_claim(line), claims)]
    facts = [*filter(left_out_in, before), *older, *sections[FACTS]]
    text = join_sections([facts, *sections[FACTS + 1 :]], language)
    whole = fallback_summary(
        text,
        sources.messages,
        language=language,
        budget=budget,
        count=count,
        room_for_stated=room_for_stated,
        mark=mark,
        skip=is_held,
    )
    return whole or join_sections(sections, language)


def _is_own(line: str) -> bool:
    """Return whether code wrote a line, sentence by sentence: each is looked at by itself."""
    return is_codes_line(line) and not is_finding(line)


@dataclass(frozen=True)
class _Claim:
    """What a line says: its words, its figures, all its numbers as written, the messages it
    cites.
    """

    words: frozenset[str]
    figures: frozenset[float]
    numbers: frozenset[str]
    cited: frozenset[int]


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@lru_cache(maxsize=4_096)
def _claim(line: str) -> _Claim:
    finding = next(iter(findings_in(line)), None)
    said = f"{finding.question} {finding.answer}" if finding else without_citations(line)
    asked = finding is not None and asks(finding.question)
    claimed = finding.answer if finding and asked else said
    return _Claim(
        content_words(said),
        frozenset(figure.value for figure in figures(claimed)),
        frozenset(_NUMBER.findall(said)),
        frozenset(cited_numbers(line)),
    )


def _held(claim: _Claim, others: Sequence[_Claim]) -> bool:
    """Return whether lines hold half of the figures of a claim, of one without figures half of its
    words, or say the same with one figure changed.

    Only lines count that cite a message of it, or no message at all.
    """
    near = [
        other for other in others if not other.cited or not claim.cited or other.cited & claim.cited
    ]
    if not claim.figures:
        # Words alone that a line repeats, whatever it cites, say nothing about a message.
        same = any(claim.words <= other.words for other in others)
        return same or any(2 * len(claim.words & other.words) >= len(claim.words) for other in near)
    if any(_corrects(claim, other) for other in others):
        return True
    known = [other.figures for other in near if claim.words & other.words or not claim.words]
    return 2 * len(claim.figures.intersection(*[frozenset().union(*known)])) >= len(claim.figures)


def _corrects(claim: _Claim, other: _Claim) -> bool:
    """Return whether another claim says the same with one number changed."""
    changed = len(claim.numbers - other.numbers) == 1 == len(other.numbers - claim.numbers)
    return changed and claim.words == other.words


def _is_worth(line: str) -> bool:
    """Return whether a fact is carried on: it has a figure, quotes somebody or cites a few
    messages, and is no note on what was left out.
    """
    claim = _claim(line)
    says = claim.figures or _QUOTED.search(line) or 0 < len(claim.cited) <= MOST_CITED
    return bool(says) and not left_out_in(line)


# -- rules -----------------------------------------------------------------------------------------

RULES = (PREFERENCES, CONSTRAINTS)
SAME = 0.75
"""Share of the words of a line above which another says the same."""
ABOUT = 0.5
"""Share above which a newer line, or a newer sentence of the user, is about the same."""
_LATER = {"en": ' (later: "{quote}" [m{number}])', "zh": "（后来：“{quote}”[m{number}]）"}
_HAS_LATER = re.compile(r" \(later: \".*\" \[m\d+\]\)|（后来：“.*”\[m\d+\]）")


@dataclass(frozen=True)
class Standing:
    """What decides whether a rule of the summary before still stands. `ended` and `shown`: texts of
    pins that ended, and of those that the view shows; `said`: the user's new messages.
    """

    ended: Sequence[str] = ()
    shown: Sequence[str] = ()
    said: Sequence[Numbered] = ()

    def allows(self, line: str) -> bool:
        """Return whether a line does not repeat a pin that ended, rather than one that holds."""
        ended = max((_nearness(line, text) for text in self.ended), default=0.0)
        shown = max((_nearness(line, text) for text in self.shown), default=0.0)
        return ended < SAME or ended <= shown

    def holds(self, line: str) -> bool:
        """Return whether a pin that the view shows says what a line says."""
        return any(_nearness(line, text) >= SAME for text in self.shown)

    def with_later(self, line: str, language: str) -> str:
        """Return a line with the user's newest sentence about the same, which may change or end it:
        both are quoted.
        """
        bare = _HAS_LATER.sub("", line)
        words = content_words(without_citations(bare))
        for number, message in reversed(self.said):
            for sentence in split_sentences(str(message.text)):
                about = len(words & content_words(sentence)) >= max(1, ABOUT * len(words))
                if about and len(sentence) <= LONG and not _of_the_moment(sentence):
                    return bare + _LATER[language].format(quote=sentence, number=number)
        return line


def carried_on(
    sections: Sequence[Sequence[str]], previous: str, standing: Standing, language: str
) -> list[list[str]]:
    """Return a summary with the preferences and constraints of the one before that it dropped, and
    without those that repeat a pin which ended.

    A line is not carried on if a pin or a new line says the same, or if a new line which cites a
    newer message is about the same.
    """
    result = [list(section) for section in sections]
    before = sections_of(previous) if previous else []
    for place in RULES if before else ():
        dropped = [
            standing.with_later(line, language)
            for line in before[place]
            if not standing.holds(line) and not _said_again(line, sections)
        ]
        result[place] = [line for line in [*dropped, *sections[place]] if standing.allows(line)]
    return result


def _said_again(line: str, sections: Sequence[Sequence[str]]) -> bool:
    """Return whether a line of a new summary says what a line of the one before said, or changes
    it.
    """
    bare = _HAS_LATER.sub("", line)
    claim = _claim(bare)
    for section in (PREFERENCES, CONSTRAINTS, DECISIONS):
        for other in sections[section]:
            new = _claim(other)
            share = len(claim.words & new.words) / max(1, len(claim.words))
            cites_it = bool(claim.cited) and claim.cited <= new.cited
            newer = max(new.cited, default=0) > max(claim.cited, default=0)
            least = ABOUT if newer or (cites_it and len(new.cited) <= MOST_CITED) else SAME
            if claim.words and share >= least and (newer or claim.figures == new.figures):
                return True
            if _nearness(other, bare) >= SAME:
                return True
    return False


def _nearness(line: str, text: str) -> float:
    """Return 1 if a line has a text word for word, else the share of words they have in common."""
    bare = without_citations(line)
    return 1.0 if holds_words(bare, text) else likeness(bare, text)


def _of_the_moment(sentence: str) -> bool:
    return asks(sentence) or is_request(sentence)
