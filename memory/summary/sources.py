"""Check a summary's figures against the messages that it was written from."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from operator import itemgetter

from longtable.base.words import tokens_of
from longtable.memory.counting import figures as reading
from longtable.memory.counting.figures import Figure
from longtable.memory.search import text_of
from longtable.memory.summary.code_summary import left_out_in, numbered_rounds
from longtable.memory.summary.headings import sentences
from longtable.memory.summary.summary_text import (
    FACTS,
    Numbered,
    citations,
    cited_numbers,
    known_citations,
)
from longtable.memory.topics.subjects import terms

_WRITTEN = re.compile(r"\d{1,3}(?: \d{3})+|\d+(?:[.,'’]\d+)*(?:[eE][+-]?\d{1,2}(?!\w))?", re.ASCII)


@lru_cache(maxsize=8_192)
def figures(line: str) -> tuple[Figure, ...]:
    """Return the figures that a line claims. The result is cached, because each line is read
    several times.
    """
    return tuple(reading.figures(line))


def numbers_in(text: str) -> set[float]:
    """Return all values that the digits in a text may stand for. Unlike `figures`, this counts
    digits of dates, names and the like as well.
    """
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
    """The sources of a summary: the messages it was written from, with their numbers, and the
    previous summary.
    """

    messages: Sequence[Numbered]
    previous: str

    @cached_property
    def rounds(self) -> list[list[Numbered]]:
        """Return the messages, grouped by round."""
        return numbered_rounds(self.messages)

    @cached_property
    def _numbers(self) -> list[list[float]]:
        return list(map(_numbers_of, self.rounds))

    @cached_property
    def _message_numbers(self) -> list[set[int]]:
        """Return the numbers of the messages of each round."""
        return [set(map(itemgetter(0), round_)) for round_ in self.rounds]

    @cached_property
    def _before(self) -> list[float]:
        return sorted(numbers_in(self.previous))

    @cached_property
    def _words(self) -> frozenset[str]:
        texts = [str(message.text) for _, message in self.messages]
        return _words(" ".join([self.previous, *texts]))

    def cited(self, line: str) -> list[int]:
        """Return the indices of the rounds that a line cites."""
        numbers = cited_numbers(line)
        return [place for place, known in enumerate(self._message_numbers) if known & numbers]

    def hold(self, figure: Figure, line: str) -> bool:
        """Return whether a source holds the figure.

        If the line cites only messages in `messages`, one of the rounds cited must hold it. If the
        line also cites older messages, the previous summary may hold it instead. If the line cites
        none of the messages, any source may hold it.
        """
        places = self.cited(line)
        known = set[int]().union(*self._message_numbers)
        read = [self._numbers[place] for place in places] or self._numbers
        sources = read if places and cited_numbers(line) <= known else [*read, self._before]
        bounds = [(may.low, may.high) for may in figure.readings]
        bounds += [
            (may.low / 100, may.high / 100) for may in figure.readings if may.kind == "percent"
        ]
        return any(_in_bounds(numbers, *each) for numbers, each in product(sources, bounds))

    def know(self, text: str) -> bool:
        """Return whether a text is about the conversation. It is if it cites a message, has a
        figure, or shares two words with the sources.
        """
        return bool(cited_numbers(text) or figures(text)) or len(self._words & _words(text)) >= 2


def _numbers_of(round_: Sequence[Numbered]) -> list[float]:
    """Return the numbers of a round's messages, sorted."""
    numbers: set[float] = set()
    for _, message in round_:
        numbers |= numbers_in(text_of(message))
    return sorted(numbers)


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text without its numbers."""
    return frozenset(term for term in terms(text) if not term.isdigit())


@lru_cache(maxsize=4)
def _words(text: str) -> frozenset[str]:
    """Return the content words of a text. For Chinese they are all pairs of neighbouring
    characters, also the pairs that `terms` leaves out, because two texts about the same thing share
    few pairs. The newest results are kept: each try of a compaction has the same sources.
    """
    return frozenset(terms(text)).union(
        token for token in tokens_of(text) if token[1:] and not token.isascii()
    )


def _in_bounds(numbers: Sequence[float], low: float, high: float) -> bool:
    place = bisect_left(numbers, low)
    return place < len(numbers) and numbers[place] <= high


def supported(line: str, sources: Sources) -> str:
    """Return a line without the sentences whose figures the sources do not hold (see
    `Sources.hold`). Return "" if no sentence is left.

    The whole sentence is removed, because without its figure it might say something else.
    """

    def is_backed(sentence: str) -> bool:
        return all(sources.hold(figure, line) for figure in figures(sentence))

    claims = sentences(line)
    backed = list(filter(is_backed, claims))
    if len(backed) == len(claims) or not backed:
        return line if backed else ""
    text = " ".join(backed)
    cites = [citation for citation in dict.fromkeys(citations(line)) if citation not in text]
    return f"{text} {''.join(cites)}".strip()


def checked(sections: Sequence[Sequence[str]], sources: Sources, messages: int) -> list[list[str]]:
    """Return the lines of each section without citations of unknown messages, and without sentences
    whose figures no source holds.

    `messages`: the number of messages in the transcript. An answer that has lines only under the
    first heading may be about anything ("I cannot do that."). It is dropped as a whole if it has
    nothing to do with the conversation.
    """

    def checked_lines(section: Sequence[str]) -> list[str]:
        lines = [known_citations(line, messages) for line in section]
        return [supported(line, sources) for line in lines if not left_out_in(line)]

    lines = list(map(checked_lines, sections))
    if not any(lines[FACTS + 1 :]) and not sources.know("\n".join(lines[FACTS])):
        return [[] for _ in lines]
    return list(map(_with_words, lines))


def _with_words(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip("- ")]
