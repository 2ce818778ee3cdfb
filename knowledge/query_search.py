"""Find verified queries and terms by the words of a question: SQLite's FTS5 over stems of English,
single characters and pairs of Chinese.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock

from longtable.base.words import STOP, fold, is_han, tokens_of
from longtable.knowledge.entries import Knowledge, Term, VerifiedQuery

MOST_WORDS = 200
"""Words of a question that are searched."""
_TABLE = (
    "CREATE VIRTUAL TABLE wordings USING fts5(words, query UNINDEXED, tokenize="
    "\"unicode61 remove_diacritics 0 tokenchars '_.'\")"
)
# One row a wording: the best of a query's wordings is the query's own rank.
_SEARCH = (
    "SELECT query, bm25(wordings) AS rank FROM wordings WHERE wordings MATCH ?"
    " ORDER BY rank, rowid LIMIT ?"
)


@dataclass(frozen=True)
class FoundQuery:
    """A query that shares words with a question; a higher score fits better."""

    query: VerifiedQuery
    score: float


class QuerySearch:
    """The queries and terms of a folder by their words. Safe for threads."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        # Of equals the one that was checked last comes first.
        self._queries = sorted(knowledge.queries, key=lambda query: query.checked_on, reverse=True)
        self._further = sum(len(query.wordings) for query in self._queries)
        """The top rows may all be wordings of one query, so this many more are fetched."""
        self._terms = TermFinder(knowledge.terms)
        self._lock = Lock()
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(_TABLE)
        rows: list[tuple[str, int]] = []
        for number, query in enumerate(self._queries):
            rows += [(" ".join(tokens_of(text)), number) for text in query.questions]
        self._index.executemany("INSERT INTO wordings VALUES (?, ?)", rows)

    def queries(self, question: str, limit: int = 5) -> list[FoundQuery]:
        """Return the queries whose wordings share words with a question, the best first.

        The names of a term that the question has count as words of it, too.
        """
        terms = self.terms(question)
        words = _searched_words(question, chain.from_iterable(term.names for term in terms))
        if not words:
            return []
        quoted = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            rows = self._index.execute(_SEARCH, (quoted, limit + self._further)).fetchall()
        best: dict[int, float] = {}
        for number, rank in rows:
            best.setdefault(number, -rank)
            if len(best) == limit:
                break
        return [FoundQuery(self._queries[number], score) for number, score in best.items()]

    def named(self, names: Iterable[str]) -> list[VerifiedQuery]:
        """Return the queries of these names, in this order. A name that is unknown is left out."""
        by_name = {query.name: query for query in self._queries}
        return [by_name[name] for name in dict.fromkeys(names) if name in by_name]

    def terms(self, question: str) -> list[Term]:
        """Return the terms that a question names, in their order in the glossary."""
        return self._terms.named_in(question)


def _searched_words(question: str, names: Iterable[str]) -> list[str]:
    """Return the words by which to search. Stop words count only if there are no others."""
    every = dict.fromkeys(tokens_of(question))
    content_words = [word for word in every if word not in STOP] or [*every]
    for name in names:
        content_words += [word for word in tokens_of(name) if word not in STOP]
    return [*dict.fromkeys(content_words)][:MOST_WORDS]


class TermFinder:
    """Finds which terms a text names, by whole words, whatever their case, width and number.

    A name that is an everyday word ("IT", "US"), a single letter or a sign has to stand in the text
    exactly as it is written.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        self._by_first: dict[str, list[tuple[list[str], int]]] = {}
        self._exact: list[tuple[re.Pattern[str], int]] = []
        self._folded: list[tuple[re.Pattern[str], int]] = []
        for number, term in enumerate(terms):
            for name in term.names:
                self._add(name, number)

    def _add(self, name: str, number: int) -> None:
        words = tokens_of(name)
        if any(map(is_han, name)):
            self._folded.append((_alone(fold(name)), number))
        elif all(word in STOP or len(word) == 1 for word in words):
            self._exact.append((_alone(name.strip()), number))
        else:
            self._by_first.setdefault(words[0], []).append((words, number))

    def named_in(self, text: str) -> list[Term]:
        """Return the terms that a text names, in their order in the glossary."""
        words = tokens_of(text)
        found: set[int] = set()
        for place, word in enumerate(words):
            for name, number in self._by_first.get(word, ()):
                if words[place : place + len(name)] == name:
                    found.add(number)
        folded = fold(text)
        found |= {number for pattern, number in self._exact if pattern.search(text)}
        found |= {number for pattern, number in self._folded if pattern.search(folded)}
        return [self._terms[number] for number in sorted(found)]


def _alone(name: str) -> re.Pattern[str]:
    """Return a pattern for a name that is no part of a longer word. Chinese has no blanks between
    words, so only letters and digits of other scripts bound it.
    """
    before = r"(?<![0-9A-Za-z_])" if name[0].isascii() and name[0].isalnum() else ""
    after = r"(?![0-9A-Za-z_])" if name[-1].isascii() and name[-1].isalnum() else ""
    return re.compile(f"{before}{re.escape(name)}{after}")
