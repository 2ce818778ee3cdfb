"""What a call is given of the knowledge: terms that the question names, rules, verified queries."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from longtable.base.words import is_han
from longtable.knowledge.entries import Term, VerifiedQuery, one_line, sql_line
from longtable.knowledge.query_search import FoundQuery

SOURCE = "knowledge"
"""What events, metadata and messages call the source of the material."""
MOST_QUERIES = 5
"""Queries that go with a call."""
MOST_CHARS = 8_000
"""Characters of all that goes with a call, the rules included. A Chinese character counts as
`HAN_CHARS`, because it takes as many tokens.
"""
HAN_CHARS = 3
QUERIES_HEAD = (
    "Queries that the owner checked for similar questions. Use one as it is where it answers the"
    " question; fill in its parameters:"
)
SQL_LINE = "  SQL: "
"""How the line with the SQL of a term begins."""
_SIGNS = re.compile(r'[,:()"]')
_GAP = re.compile(r"\n\s*\n(?=[ \t]*--)")
LEAST_SCORE = 0.35
"""Share of the best query's score that another query needs to go with the call."""


@dataclass(frozen=True)
class Found:
    """What a question brings up."""

    terms: Sequence[Term] = ()
    rules: str = ""
    queries: Sequence[VerifiedQuery] = ()

    @property
    def cites(self) -> list[str]:
        """Return what the material quotes: `rules`, `term: NAME`, `query: NAME`."""
        rules = ["rules"] if self.rules else []
        terms = [f"term: {term.term}" for term in self.terms]
        return [*rules, *terms, *(f"query: {query.name}" for query in self.queries)]


def merged(
    by_words: Sequence[FoundQuery], by_meaning: Sequence[VerifiedQuery] = ()
) -> list[VerifiedQuery]:
    """Return queries in turns: the best by words, the nearest in meaning, the second by words and
    so on. Queries that share far fewer words than the best one are left out.
    """
    best = max((found.score for found in by_words), default=0.0)
    sharing = [found.query for found in by_words if found.score >= LEAST_SCORE * best]
    queries: dict[str, VerifiedQuery] = {}
    for pair in zip_longest(sharing, by_meaning):
        for query in filter(None, pair):
            queries.setdefault(query.name, query)
    return [*queries.values()]


def fitting(
    terms: Sequence[Term],
    rules: str,
    queries: Sequence[VerifiedQuery],
    most_chars: int = MOST_CHARS,
) -> Found:
    """Return what fits, whole entries only: the rules first, then terms, then queries."""
    room = most_chars - _size(rules)
    kept_terms: list[Term] = []
    for term in terms:
        size = _size(term_line(term))
        if size <= room:
            room -= size
            kept_terms.append(term)
    kept_queries: list[VerifiedQuery] = []
    for query in queries[:MOST_QUERIES]:
        size = _size(query_text(query))
        if size <= room:
            room -= size
            kept_queries.append(query)
    return Found(kept_terms, rules, kept_queries)


def _size(text: str) -> int:
    return len(text) + (HAN_CHARS - 1) * sum(map(is_han, text))


def material_text(found: Found) -> str:
    """Return what goes with the call, "" if nothing was found."""
    parts: list[str] = []
    if found.rules:
        parts.append(f"Rules of the data's owner:\n{found.rules}")
    if found.terms:
        lines = "\n".join(map(term_line, found.terms))
        parts.append(f"Terms of the question:\n{lines}")
    if found.queries:
        texts = "\n\n".join(map(query_text, found.queries))
        parts.append(f"{QUERIES_HEAD}\n\n{texts}")
    return "\n\n".join(parts)


def ends_in(text: str, found: Found) -> list[int]:
    """Return where in the material's text each entry ends, in the order of `Found.cites`."""
    entries = [found.rules] if found.rules else []
    entries += map(term_line, found.terms)
    entries += map(query_text, found.queries)
    ends: list[int] = []
    for entry in entries:
        start = ends[-1] if ends else 0
        ends.append(text.index(entry, start) + len(entry))
    return ends


def term_line(term: Term) -> str:
    """Return a term as the material shows it: a line, and one for its SQL."""
    also = f" (also: {', '.join(map(_shown_name, term.synonyms))})" if term.synonyms else ""
    where = f" [database {term.database}]" if term.database else ""
    sql = f"\n{SQL_LINE}{sql_line(term.sql)}" if term.sql else ""
    return f"- {_shown_name(term.term)}{also}{where}: {one_line(term.meaning)}{sql}"


def _shown_name(name: str) -> str:
    """Return a name, in quotes if it holds a sign that ends names."""
    return json.dumps(name, ensure_ascii=False) if _SIGNS.search(name) else name


def query_text(query: VerifiedQuery) -> str:
    """Return a verified query with its questions as comments."""
    # A blank line before a comment would look like the end of the query.
    sql = _GAP.sub("\n", query.sql)
    lines = [f"-- {one_line(text)}" for text in query.questions]
    if query.database:
        lines.append(f"-- database: {query.database}")
    return "\n".join([*lines, sql])
