"""Find original messages by their words, in English and Chinese. They are ranked by BM25."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.words import STOP, is_han, tokens_of
from longtable.memory.messages.marks import EXCLUDED, RECALLED, kind_of, speaker_of, turn_number
from longtable.memory.messages.rounds import all_calls

K1 = 1.2
B = 0.75
"""`K1` and `B` are BM25's usual constants (Robertson and Zaragoza 2009; Lucene's defaults)."""


@dataclass(frozen=True)
class Original:
    """One original message with its number: its place in the transcript, from 1."""

    number: int
    message: BaseMessage

    @property
    def turn(self) -> int:
        """Return the turn of the message, 0 if no turn has accepted it."""
        return turn_number(self.message)


Hits = list[tuple[Original, float]]
Postings = Mapping[str, Sequence[int]]
"""For each term, a flat list of pairs: the place of a message that holds the term, then how many
times it does (place, times, place, times, ...).
"""


@dataclass(frozen=True)
class Segment:
    """The search data of some messages.

    `numbers`, `turns` and `lengths` (in terms) have one entry for each message, in the same order.
    `postings` may be limited to the terms of the query.
    """

    numbers: Sequence[int]
    turns: Sequence[int]
    lengths: Sequence[int]
    postings: Postings = field(repr=False)


class Match(NamedTuple):
    """A message that shares a term with a query, and its score."""

    number: int
    turn: int
    score: float


def ranked(segments: Sequence[Segment], query: str) -> Iterator[Match]:
    """Yield the messages of all segments that share a term with the query, the best first. Of
    messages with the same score, the newest comes first.

    The weight of a term is computed over all segments together.
    """
    count = sum(len(segment.numbers) for segment in segments)
    tokens = sum(sum(segment.lengths) for segment in segments)
    average = tokens / max(1, count) or 1.0
    scores: dict[int, float] = {}
    turns: dict[int, int] = {}
    for term in _telling(query, segments):
        holders = [segment for segment in segments if term in segment.postings]
        holding = sum(len(segment.postings[term]) // 2 for segment in holders)
        weight = math.log(1 + (count - holding + 0.5) / (holding + 0.5))
        for segment in holders:
            postings = segment.postings[term]
            for place, times in zip(postings[::2], postings[1::2], strict=True):
                number = segment.numbers[place]
                norm = K1 * (1 - B + B * segment.lengths[place] / average)
                share = times * (K1 + 1) / (times + norm)
                scores[number] = scores.get(number, 0.0) + weight * share
                turns[number] = segment.turns[place]
    newest_first = sorted(scores, reverse=True)
    for number in sorted(newest_first, key=scores.__getitem__, reverse=True):
        yield Match(number, turns[number], scores[number])


def _telling(query: str, segments: Sequence[Segment]) -> list[str]:
    """Return the terms of the query that the segments hold, without stop words if there are others.
    A single Chinese character is left out if a pair of characters in the query contains it.
    """
    terms = set(tokens_of(query))
    known = sorted(term for term in terms if _is_indexed(term, segments))
    telling = [term for term in known if term not in STOP] or known
    pairs = [term for term in {*telling, *(terms & STOP)} if len(term) == 2 and is_han(term)]
    paired = set("".join(pairs))
    return [term for term in telling if term not in paired]


def _is_indexed(term: str, segments: Sequence[Segment]) -> bool:
    return any(term in segment.postings for segment in segments)


def is_searched(message: BaseMessage) -> bool:
    """Return whether a message can be found by search. False for excluded messages, and for
    messages that only repeat earlier ones.
    """
    return kind_of(message) not in {RECALLED, EXCLUDED}


@dataclass(frozen=True)
class Index:
    """An inverted index of messages. It never changes, so it can be searched from any OS thread."""

    originals: tuple[Original, ...]
    segment: Segment

    @classmethod
    def build(cls, originals: Iterable[Original]) -> "Index":
        """Return an index of these originals. Messages that are excluded, or that only repeat
        earlier messages, are left out.
        """
        return cls((), Segment((), (), (), {})).extended(originals)

    def extended(self, originals: Iterable[Original]) -> "Index":
        """Return a new index that holds this index's originals and, after them, the given ones.
        This index is not changed.
        """
        added = (original for original in originals if is_searched(original.message))
        new = sorted(added, key=lambda original: original.number)
        known = self.segment
        postings = {term: array("l", places) for term, places in known.postings.items()}
        lengths = array("l", known.lengths)
        for place, original in enumerate(new, len(self.originals)):
            speaker = speaker_of(original.message)
            terms = Counter(tokens_of(f"{speaker} {text_of(original.message)}"))
            lengths.append(terms.total())
            for term, times in terms.items():
                postings.setdefault(term, array("l")).extend((place, times))
        segment = Segment(
            array("l", [*known.numbers, *(original.number for original in new)]),
            array("l", [*known.turns, *(original.turn for original in new)]),
            lengths,
            postings,
        )
        return type(self)((*self.originals, *new), segment)

    def search(self, query: str, limit: int) -> Hits:
        """Return the best `limit` originals that share a term with the query, the best first, each
        with its score. Of originals with the same score, the newest comes first.
        """
        by_number = {original.number: original for original in self.originals}
        best = islice(ranked([self.segment], query), max(0, limit))
        return [(by_number[match.number], match.score) for match in best]


def text_of(message: BaseMessage) -> str:
    """Return the text by which a message can be found: the message's text, and the names and
    arguments of its tool calls.
    """
    text = str(message.text)
    calls = all_calls(message) if isinstance(message, AIMessage) else []
    if not calls:
        return text
    call_lines = [f"{call['name']}: {', '.join(map(str, call['args'].values()))}" for call in calls]
    return "\n".join([text, *call_lines] if text else call_lines)
