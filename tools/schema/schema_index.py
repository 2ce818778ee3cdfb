"""Rank tables and columns by the terms that their names, comments and sampled values share with a
query: BM25 over weighted fields.

This is our own code, about a page long. Libraries such as bm25s and rank-bm25 score plain texts
without fields, and depend on numpy.
"""

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from longtable.base.words import HAN, is_han, pairs_of
from longtable.tools.catalog import Catalog, Column, Table, each_column

_RUNS = re.compile(rf"[{HAN}]+|(?:(?![{HAN}_])\w)+")
_PARTS = re.compile(r"[A-Z]{2,}(?=s(?![^\W\d_A-Z]))|[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_MOST_WORDS = 4
_MOST_CHARS = 2_000
"""The most characters of one text that are indexed, because the search is over names and comments,
not over long texts.
"""


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text. Case and full-width forms make no difference, and plurals become
    singulars.

    `CustomerID`, `customer_id` and `customer id` share the terms `customer` and `id`. The first two
    also share `customerid`.
    """
    for chunk in unicodedata.normalize("NFKC", text[:_MOST_CHARS]).split():
        yield from _chunk(chunk)


@lru_cache(maxsize=65_536)
def _chunk(chunk: str) -> tuple[str, ...]:
    chunks: list[str] = []
    parts: list[str] = []
    for run in _RUNS.findall(chunk):
        if is_han(run):
            chunks += pairs_of(run)
            chunks += run
        else:
            # "IDs" is cut into "ID" and a lone "s".
            parts += [
                singular(part.casefold())
                for part in _PARTS.findall(run)
                if part != "s" or run == "s"
            ]
    whole = ["".join(parts)] if len(parts) > 1 else []
    return (*chunks, *parts, *whole)


def singular(word: str) -> str:
    """Return the singular of an English word in lower case. A word that is not a plural stays as it
    is.
    """
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and word[-2] not in "sui" else word


def other_numbers(text: str) -> list[str]:
    """Return variants of a text in lower case. In each, one word is changed to its singular or
    plural.

    Variants that change the last word come first. Only the last few words of a text are changed.
    """
    folded = text.casefold().strip()
    words = list(re.finditer(r"(?<![^\W\d_])[a-z]{3,}(?![^\W\d_])", folded))[-_MOST_WORDS:]
    texts = []
    for word in reversed(words):
        one = singular(word[0])
        for form in dict.fromkeys((one, plural(one))):
            if form != word[0]:
                texts.append(folded[: word.start()] + form + folded[word.end() :])
    return texts


def plural(word: str) -> str:
    """Return the regular plural of an English word in lower case."""
    if word.endswith("y") and word[-2:-1] not in set("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


def slips(text: str, candidates: Sequence[str], most: int, limit: int) -> list[tuple[int, int]]:
    """Return the candidates that differ from `text` by at most `most` typing errors. An error is a
    missing, an additional or a wrong letter, or two swapped letters.

    Each candidate is returned as its place and its number of errors, the fewest errors first.
    """
    # Imported here: it takes 4 MB, and a conversation without a database needs none of it.
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    matches = process.extract(text, candidates, scorer=OSA.distance, score_cutoff=most, limit=limit)
    return [(place, int(distance)) for _, distance, place in matches]


K1 = 1.2
B = 0.5
"""The constants of BM25. B is lower than the usual 0.75, because a table with many columns is not
less relevant than a table with few.
"""
NEAR = 0.6
"""Weight of a term that is only similar to the wanted term: it has another ending, or a typing
error.
"""
CUT = 0.15
"""Hits whose score is less than this share of the best score are left out."""
VALUE_WEIGHT = 0.6
MOST_NEAR = 6

Scores = dict[int, float]


@dataclass(frozen=True)
class Index:
    """An index of documents by their terms. Build it once; then any thread may search it."""

    size: int
    postings: "Mapping[str, tuple[array[int], array[float]]]"
    """For each term, the places of the documents that contain the term, and how much the term adds
    to the score of each document.
    """

    @classmethod
    def build(cls, documents: Sequence[Mapping[str, float]]) -> "Index":
        """Index documents. A document is a dict of its terms with their counts, which are weighted
        by field.
        """
        sizes = [sum(document.values()) for document in documents]
        mean = sum(sizes) / max(1, len(sizes)) or 1.0
        counts = Counter(chain.from_iterable(documents))
        rare = {
            term: math.log(1 + (len(documents) - count + 0.5) / (count + 0.5))
            for term, count in counts.items()
        }
        postings: dict[str, tuple[array[int], array[float]]] = {
            term: (array("l"), array("d")) for term in counts
        }
        for place, (document, size) in enumerate(zip(documents, sizes, strict=True)):
            norm = K1 * (1 - B + B * size / mean)
            for term, times in document.items():
                places, gains = postings[term]
                places.append(place)
                gains.append(rare[term] * times * (K1 + 1) / (times + norm))
        return cls(len(documents), postings)

    def search(self, weights: Mapping[str, float]) -> Scores:
        """Return the score of each document that contains one of these terms. `weights` are the
        weights of the terms.
        """
        scores: Scores = {}
        for term, weight in weights.items():
            if term in self.postings:
                for place, gain in zip(*self.postings[term], strict=True):
                    scores[place] = scores.get(place, 0.0) + weight * gain
        return scores


@dataclass(frozen=True)
class Hit:
    """One column that matches a query. `by` says what matched: `name`, `comment` and `values`, in
    this order.
    """

    table: Table
    column: Column
    by: tuple[str, ...]


@dataclass
class SchemaIndex:
    """A search index over the names and comments of a catalogue, and over the column values that
    have been sampled so far.
    """

    catalog: Catalog
    _values: dict[str, list[int]] = field(default_factory=dict)
    _examples: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = list(each_column(self.catalog.tables))
        self._owner: list[int] = []
        for number, table in enumerate(self.catalog.tables):
            self._owner += [number] * len(table.columns)
        self._number = {
            (id(table), column.name): place for place, (table, column) in enumerate(self._places)
        }
        self._tables = Index.build([_table_terms(table) for table in self.catalog.tables])
        self._columns = Index.build(
            [_column_terms(table, column) for table, column in self._places]
        )
        self._table_names = [table.name.casefold() for table in self.catalog.tables]
        self._column_names = [column.name.casefold() for _, column in self._places]
        self._vocabulary = sorted({*self._tables.postings, *self._columns.postings})

    def take_in(self, table: Table, samples: Mapping[str, Sequence[str]]) -> None:
        """Add the sampled values of a table's columns. Only one thread at a time may call this, but
        searches may run meanwhile.
        """
        for name, texts in samples.items():
            place = self._number[id(table), name]
            self._examples[place] = tuple(texts)
            for term in set(chain.from_iterable(map(terms, texts))):
                self._values.setdefault(term, []).append(place)

    def tables(self, text: str) -> list[Table]:
        """Return the tables that match a query, the best first. Tables of equal rank are in the
        order of the catalogue.
        """
        folded = text.strip().casefold()
        called = {number for number, name in enumerate(self._table_names) if folded in name}
        owners = {
            self._owner[place] for place, name in enumerate(self._column_names) if folded in name
        }
        weights = self._wanted(text, near=not (called or owners))
        scores = self._tables.search(weights)
        for place, score in self._by_values(weights).items():
            owner = self._owner[place]
            scores[owner] = max(scores.get(owner, 0.0), score)
        for number in called | owners:
            # The text as it stands: what is called so comes before what only holds it.
            times = (
                (2.0 if self._table_names[number] == folded else 1.0) if number in called else 0.7
            )
            scores[number] = scores.get(number, 0.0) + times * math.log(2 + len(self._table_names))
        return [self.catalog.tables[number] for number in _best(scores)]

    def columns(self, text: str, limit: int) -> tuple[list[Hit], int]:
        """Return the columns that match a query, at most `limit` and the best first, and the number
        of all matching columns.
        """
        folded = text.strip().casefold()
        called = [place for place, name in enumerate(self._column_names) if folded in name]
        weights = self._wanted(text, near=not called)
        scores = self._columns.search(weights)
        by_values = self._by_values(weights)
        for place in called:
            times = 2.0 if self._column_names[place] == folded else 1.0
            scores[place] = scores.get(place, 0.0) + times * math.log(2 + len(self._places))
        for place, score in by_values.items():
            scores[place] = scores.get(place, 0.0) + score
        best = _best(scores)
        return [
            Hit(*self._places[place], by=self._why(place, weights, folded, place in by_values))
            for place in best[:limit]
        ], len(best)

    def examples(self, hit: Hit, text: str) -> list[str]:
        """Return the sampled values of a hit's column that share a term with the query."""
        weights = self._wanted(text)
        known = self._examples.get(self._number[id(hit.table), hit.column.name], ())
        return [value for value in known if not weights.keys().isdisjoint(terms(value))]

    def _why(
        self, place: int, weights: Mapping[str, float], folded: str, by_value: bool
    ) -> tuple[str, ...]:
        table, column = self._places[place]
        names = {*terms(column.name), *terms(table.name)}
        reasons = (
            ("name", folded in self._column_names[place] or not weights.keys().isdisjoint(names)),
            ("comment", not weights.keys().isdisjoint(terms(column.comment or ""))),
            ("values", by_value),
        )
        return tuple(name for name, holds in reasons if holds)

    def _by_values(self, weights: Mapping[str, float]) -> Scores:
        scores: Scores = {}
        for term, weight in weights.items():
            places = self._values.get(term, ())
            gain = VALUE_WEIGHT * weight * math.log(1 + len(self._places) / (len(places) or 1))
            for place in list(places):
                scores[place] = scores.get(place, 0.0) + gain
        return scores

    def _wanted(self, text: str, *, near: bool = True) -> dict[str, float]:
        """Return the terms of the query with their weights. With `near`, a term that no name or
        comment contains also brings the known terms most like it.
        """
        weights: dict[str, float] = {}
        for term in dict.fromkeys(terms(text)):
            weights[term] = 1.0
            if (
                near
                and len(term) > 2
                and term.isascii()
                and term not in self._tables.postings
                and term not in self._columns.postings
            ):
                weights |= {other: NEAR for other in self._near(term) if other not in weights}
        return weights

    def _near(self, term: str) -> list[str]:
        starts = [
            known
            for known in self._vocabulary
            if known.startswith(term) or (len(known) > 3 and term.startswith(known))
        ]
        near = (
            slips(term, self._vocabulary, 1 if len(term) < 8 else 2, MOST_NEAR)
            if len(term) > 3
            else []
        )
        return [
            *sorted(starts, key=len)[:MOST_NEAR],
            *(self._vocabulary[place] for place, _ in near),
        ]


def _best(scores: Scores) -> list[int]:
    least = CUT * max(scores.values(), default=0.0)
    # Rounded: what differs in the last bit only is of one rank.
    return sorted(
        (place for place, score in scores.items() if score >= least),
        key=lambda place: (-round(scores[place], 6), place),
    )


def _weighted(*fields: tuple[str, float]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for text, weight in fields:
        for term in terms(text):
            counts[term] = counts.get(term, 0.0) + weight
    return counts


def _table_terms(table: Table) -> dict[str, float]:
    columns: list[tuple[str, float]] = []
    for column in table.columns:
        columns += [(column.name, 1.0), (column.comment or "", 0.5)]
    return _weighted((table.name, 4.0), (table.comment or "", 1.5), *columns)


def _column_terms(table: Table, column: Column) -> dict[str, float]:
    return _weighted((column.name, 3.0), (column.comment or "", 1.0), (table.name, 1.0))
