"""Hold the chunks of a question while the rules of the parser take them up one by one."""

from abc import ABC, abstractmethod

from longtable.app.offline.chunks import Chunk
from longtable.app.offline.draft import Draft
from longtable.app.offline.lexicon_measures import DIMENSIONS
from longtable.app.offline.text import lemma, split_name


class Reading(ABC):
    """The chunks, and what lies before and after each."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self.all = chunks
        self.cs = [each for each in chunks if each.kind != "filler"]
        self.draft = Draft(mentions=[each for each in chunks if each.kind == "mention"], words=tuple(each.word for each in chunks))

    @abstractmethod
    def read(self) -> Draft:
        """Run all rules; the last class of the chain has them."""

    def after(self, index: int, *kinds: str, skip: tuple[str, ...] = ("prep",), ops: tuple[str, ...] = ()) -> int | None:
        """Return the place of the next unused chunk of `kinds`, passing only over `skip` kinds and `ops`."""
        for place in range(index + 1, len(self.cs)):
            each = self.cs[place]
            if each.kind in kinds and not each.used:
                return place
            if each.kind not in skip and not each.is_op(*ops) and not (each.used and "used" in skip):
                return None
        return None

    def before(self, index: int, *kinds: str, skip: tuple[str, ...] = ("prep",), ops: tuple[str, ...] = ("wh",)) -> int | None:
        """Return the place of the chunk of `kinds` just before, passing only over `skip` kinds and `ops`."""
        for place in range(index - 1, -1, -1):
            each = self.cs[place]
            if each.kind in kinds:
                return place
            if each.kind not in skip and not each.is_op(*ops):
                return None
        return None

    def verbs(self, index: int, reach: int = 3) -> tuple[str, ...]:
        """Return the verbs and prepositions just before the chunk at `index`."""
        place = self.cs[index].place
        words: list[str] = []
        for each in reversed(self.all):
            if each.place < place:
                if each.kind in ("filler", "prep") or (each.kind == "word"):
                    words.append(each.word)
                elif each.kind == "mention":
                    words.extend(each.text.lower().split())
                    break
                elif each.kind not in ("time", "comma") and not each.is_op("time", "cmp", "between"):
                    break
                if len(words) >= reach + 2:
                    break
        return tuple(words)

    def _take(self, place: int) -> Chunk:
        self.cs[place].used = True
        return self.cs[place]

    def _near(self, index: int) -> tuple[Chunk, ...]:
        return tuple(each for each in self.cs[max(0, index - 3) : index + 5] if each.kind == "mention")


def measurable(chunk: Chunk) -> bool:
    """Say whether a mention may be a number that is measured."""
    best = chunk.best
    return any(hit.numeric and hit.score >= best - 0.15 for hit in chunk.hits)


def of_dimension(chunk: Chunk, dimension: str) -> bool:
    """Say whether a mention names a column of that dimension."""
    words = {word.lstrip("-") for word in DIMENSIONS[dimension]}
    return any(words & set(map(lemma, split_name(hit.column))) for hit in chunk.hits if hit.column)


def is_column(chunk: Chunk) -> bool:
    """Say whether a mention is a column first."""
    return not chunk.hits[0].is_table


def is_participle(word: str) -> bool:
    """Say whether a word may be a past participle."""
    return word.endswith("ed") and len(word) > 4


def names_key(chunk: Chunk) -> bool:
    """Say whether a mention ends like a key: id, number, code."""
    return lemma(chunk.word) in ("id", "number", "no", "code")


def year_like(chunk: Chunk) -> bool:
    """Say whether a number may be a year."""
    return isinstance(chunk.number, int) and 1400 <= chunk.number <= 2100 and len(chunk.word) == 4


def same_kind(chunks: list[Chunk], place: int) -> bool:
    """Say whether a joiner stands between two chunks of one kind (values, numbers), and so does not end a scope."""
    if not 0 < place < len(chunks) - 1:
        return False
    left, right = chunks[place - 1], chunks[place + 1]
    return left.kind == right.kind and left.kind in ("value", "number", "time", "mention") and chunks[place].word != "for"
