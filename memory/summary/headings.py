"""Read a model's summary into its sections, however the model writes headings and lists."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from longtable.memory.summary.summary_text import FACTS, cited_numbers

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


def _by_language(names: Sequence[str]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Split the names of a section by language: return the English beginnings of words, and a
    pattern of the Chinese parts of words.
    """
    english = tuple(name for name in names if name.isascii())
    chinese = [name for name in names if not name.isascii()]
    return english, re.compile("|".join(chinese))


_NAMED = list(map(_by_language, NAMES))

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
"""Most lines of an answer that are read. The summary of the largest window has fewer."""

SENTENCE_ENDS = tuple('.!?。！？]”"')

MOST_HEAD = 40
"""Most characters of a heading. A heading also has at most eight words."""

MOST_CITED = 12
"""A line that cites more messages than this is not about any single message in particular."""


@dataclass
class _Block:
    """A heading and the lines under it.

    `name`: the heading, None for the lines before the first heading. `section`: which of the five
    sections the heading names, None if it names none of them.
    """

    name: str | None
    section: int | None
    lines: list[str] = field(default_factory=list)


def read_sections(text: str, asked: str = "") -> list[list[str]]:
    """Return the lines under each of the five headings, in either language, however the headings
    are marked and numbered.

    A heading is recognised by its words. A heading with unknown words is identified by its place if
    there are exactly five headings; otherwise the lines under it become facts. `asked`: a user's
    instructions, which may name other headings. Text without any known heading is read as prose,
    and its sentences become facts.
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
        read = list(chain.from_iterable(block.lines for block in blocks)) if headed else lines
        sentences_read = chain.from_iterable(sentences(_unmarked(line)) for line in read)
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
    """Return the sentences of a line. A citation after a sentence stays with the sentence."""
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
    """Return whether a line among bullets is a heading, although it names none of our sections. It
    is a heading if it is short, and is neither a bullet nor a sentence.
    """
    is_item = bool(_BULLET.match(line)) and not line.startswith(("**", "__"))
    return (
        bool(head) and not rest and not is_item and not line.rstrip("*_ ").endswith(SENTENCE_ENDS)
    )


def _head(line: str) -> tuple[str, str]:
    """Split a line into the words at its beginning that could be a heading, and the text after
    them. If these words are too long for a heading, return "" and the line.
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
    """Return the section that a heading names, None if it names none, and how much of the heading
    consists of the section's names, from 0 to 1.
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
    """Return whether a line begins with a heading that the user's instructions (`asked`) name."""
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
    """Return the lines as bullets ("- ..."), without repeated lines and without lines such as
    "none".
    """
    bare = [_unmarked(line) for line in lines]
    return [
        f"- {line}"
        for line in dict.fromkeys(bare)
        if line.strip("()（）*_.。- ").casefold() not in _NOTHING
    ]
