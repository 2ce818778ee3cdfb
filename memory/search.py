"""Find original messages by their words (BM25, English and Chinese), with an excerpt around the
first match.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """One message as it was said, with its place in the transcript, from 1."""

    number: int
    message: BaseMessage

    @property
    def turn(self) -> int:
        """Return the turn it was said in, 0 if no turn has accepted it."""
        return turn_number(self.message)


Hits = list[tuple[Original, float]]
Postings = Mapping[str, Sequence[int]]
"""For each term the places of the messages that hold it, and how often each does: place, times,
place, times ...
"""


@dataclass(frozen=True)
class Segment:
    """The search data of some messages: number, turn and count of tokens of each message, at the
    same place in three lists, and the postings of at least the searched terms.
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


def ranked(segments: Sequence[Segment], query: str) -> list[Match]:
    """Return the messages of all segments that share a term with the query, the best first, the
    newest first among equals.

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
    best = sorted(scores.items(), key=lambda hit: (-hit[1], -hit[0]))
    return [Match(number, turns[number], score) for number, score in best]


def _telling(query: str, segments: Sequence[Segment]) -> list[str]:
    """Return the indexed terms of the query. A single Chinese character counts only if no pair with
    it counts.
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
    """Return whether a message is searched. Excluded messages are not, nor are messages that only
    bring earlier ones back.
    """
    return kind_of(message) not in {RECALLED, EXCLUDED}


@dataclass(frozen=True)
class Index:
    """An inverted index over messages. Build once, search from any thread."""

    originals: tuple[Original, ...]
    segment: Segment

    @classmethod
    def build(cls, originals: Iterable[Original]) -> "Index":
        """Index originals in one pass. Leave out excluded messages, and messages that only bring
        earlier ones back.
        """
        return cls((), Segment((), (), (), {})).extended(originals)

    def extended(self, originals: Iterable[Original]) -> "Index":
        """Return a new index that also holds these originals, after its own. This index stays as it
        is.
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
        """Return the originals that share a term with the query, the best first, the newest first
        among equals.
        """
        by_number = {original.number: original for original in self.originals}
        best = ranked([self.segment], query)[: max(0, limit)]
        return [(by_number[match.number], match.score) for match in best]


def text_of(message: BaseMessage) -> str:
    """Return the text by which a message can be found: its own, and the names and arguments of its
    calls.
    """
    text = str(message.text)
    calls = all_calls(message) if isinstance(message, AIMessage) else []
    if not calls:
        return text
    call_lines = [f"{call['name']}: {', '.join(map(str, call['args'].values()))}" for call in calls]
    return "\n".join([text, *call_lines] if text else call_lines)
