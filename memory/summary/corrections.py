"""Mark figures of a summary that the conversation has corrected since."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longtable.memory.summary import summary_text as text
from longtable.memory.summary.sources import content_words

# At least three digits, and no year: others stand in many lines that are about something else.
_FIGURE = re.compile(
    r"(?<![\w.,])(?!(?:19|20)\d\d(?![.,]?\d))(?:\d{1,3}(?:,\d{3})+|\d{3,}|\d+(?=\.\d))(?:\.\d+)?(?![\d%]|[.,]\d)",
    re.ASCII,
)

_DENIED = re.compile(
    rf"(?:\b(?:not|instead of|rather than)|不是|而非|并非)\s*({_FIGURE.pattern})", re.I | re.A
)

_MISTAKE = re.compile(
    r"\b(?:correction|corrected|typo|misread|mistake|wrong)\b|[更纠修]正|[写说看打弄]错", re.I
)

_SENTENCES = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")

_AS_WRITTEN = r"(?<![\w.,]){}(?![\d%]|[.,]\d| \(corrected: |（更正：)"

_MARKS = {"en": " (corrected: m{number})", "zh": "（更正：m{number}）"}

_MARKED = re.compile(rf"({_FIGURE.pattern})(?: \(corrected: |（更正：)m(\d{{1,9}})[)）]", re.ASCII)


@dataclass(frozen=True)
class Correction:
    """A correction of a figure.

    `old`: the figure that was wrong. `new`: the figures given in its place. `number`: number of the
    message that corrects it. `words`: the words of the correction.
    """

    old: str
    new: frozenset[str]
    number: int
    words: frozenset[str]


def marked(line: str, corrected: Sequence[Correction], language: str) -> str:
    """Return a line with a mark after each corrected figure, such as "1,204 (corrected: m12)".

    A line with the new figure gets no mark. Nor does a line that shares no word with the
    correction, because it is about something else.
    """
    line = _MARKED.sub(r"\1", line)
    for each in corrected:
        figures = _FIGURE.findall(line)
        if (
            each.old in figures
            and not each.new.intersection(figures)
            and each.words & content_words(line)
        ):
            mark = _MARKS[language].format(number=each.number)
            line = re.sub(
                _AS_WRITTEN.format(re.escape(each.old)), rf"\g<0>{mark}", line, flags=re.A
            )
    return line


def corrections(previous: str, messages: Sequence[text.Numbered]) -> list[Correction]:
    """Return the corrections of figures in messages of the user and the model, and those marked in
    the previous memory. A figure that a later correction gives as the new figure is valid again.

    "1,310, not 1,204" names the old figure. If a user says that a figure was wrong but gives only
    the new figure, the old figure is taken from the earlier statement with the most words in
    common.
    """
    result: list[Correction] = []
    before: list[tuple[str, frozenset[str]]] = []
    for line in previous.splitlines():
        result += [
            Correction(old, frozenset(), int(n), content_words(line))
            for old, n in _MARKED.findall(line)
        ]
        before += _stated(line)
    for number, message in messages:
        if message.type not in ("human", "ai"):
            continue
        in_message: list[Correction] = []
        for sentence in _SENTENCES.split(message.text):
            olds = set(_DENIED.findall(sentence))
            new = frozenset(_FIGURE.findall(sentence)) - olds
            in_message += [
                Correction(old, new, number, content_words(sentence)) for old in sorted(olds) if new
            ]
        result += in_message
        before += _stated(message.text)
        figures = frozenset(_FIGURE.findall(message.text))
        if (
            len(figures) == 1
            and not in_message
            and message.type == "human"
            and _MISTAKE.search(message.text)
        ):
            words = content_words(message.text)
            shared = [(len(words & others), old) for old, others in before]
            (most, old), (second, _) = sorted([*shared, (0, ""), (0, "")], reverse=True)[:2]
            if most > max(1, second):
                result.append(Correction(old, figures, number, words))
    newest: dict[str, int] = {}
    for each in result:
        newest |= dict.fromkeys(each.new, each.number)
    return [each for each in result if newest.get(each.old, 0) <= each.number]


def _stated(text: str) -> list[tuple[str, frozenset[str]]]:
    """Return the figure and the words of each sentence with exactly one figure. Return nothing if
    the text is itself a correction.
    """
    parts = [] if _MISTAKE.search(text) else _SENTENCES.split(text)
    figures = [(_FIGURE.findall(part), part) for part in parts]
    return [(values[0], content_words(part)) for values, part in figures if len(values) == 1]
