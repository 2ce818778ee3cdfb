"""Carry on the rules of earlier summaries until words of the user end them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longtable.memory.pins.net import LONG, asks, is_request
from longtable.memory.pins.net import sentences as split_sentences
from longtable.memory.pins.quotes import holds_words, likeness
from longtable.memory.summary.headings import MOST_CITED
from longtable.memory.summary.sources import content_words
from longtable.memory.summary.summary_room import claim_of
from longtable.memory.summary.summary_text import (
    CONSTRAINTS,
    DECISIONS,
    PREFERENCES,
    Numbered,
    sections_of,
    without_citations,
)

RULES = (PREFERENCES, CONSTRAINTS)

SAME = 0.75
"""If another line has at least this share of a line's words, the two say the same."""

ABOUT = 0.5
"""If a newer line, or a newer sentence of the user, has at least this share of a line's words, the
two are about the same subject.
"""

_LATER = {"en": ' (later: "{quote}" [m{number}])', "zh": "（后来：“{quote}”[m{number}]）"}

_HAS_LATER = re.compile(r" \(later: \".*\" \[m\d+\]\)|（后来：“.*”\[m\d+\]）")


@dataclass(frozen=True)
class Standing:
    """The facts that decide whether a rule of the previous summary is still valid.

    `ended`: texts of ended pins. `shown`: texts of the pins that the view shows. `said`: the user's
    new messages.
    """

    ended: Sequence[str] = ()
    shown: Sequence[str] = ()
    said: Sequence[Numbered] = ()

    def allows(self, line: str) -> bool:
        """Return whether a line may stay in the summary. False if the line repeats an ended pin,
        unless it is at least as similar to a pin that the view shows.
        """
        ended = max((_nearness(line, text) for text in self.ended), default=0.0)
        shown = max((_nearness(line, text) for text in self.shown), default=0.0)
        return ended < SAME or ended <= shown

    def holds(self, line: str) -> bool:
        """Return whether a pin that the view shows says the same as a line."""
        return any(_nearness(line, text) >= SAME for text in self.shown)

    def with_later(self, line: str, language: str) -> str:
        """Return a line with the user's newest sentence on the same subject quoted after it,
        because that sentence may change or end the rule. If there is none, return the line as it
        is.
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
    """Add the preferences and constraints of the previous summary that the new summary dropped, and
    remove those that repeat an ended pin.

    An old line is not added if a pin or a new line says the same, or if a new line that cites a
    newer message is about the same subject.
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
    """Return whether the new summary repeats or changes a line of the previous summary."""
    bare = _HAS_LATER.sub("", line)
    claim = claim_of(bare)
    for section in (PREFERENCES, CONSTRAINTS, DECISIONS):
        for other in sections[section]:
            new = claim_of(other)
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
    """Return 1 if the line holds the text word for word; otherwise the share of words that the two
    have in common.
    """
    bare = without_citations(line)
    return 1.0 if holds_words(bare, text) else likeness(bare, text)


def _of_the_moment(sentence: str) -> bool:
    return asks(sentence) or is_request(sentence)
