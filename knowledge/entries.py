"""Terms, rules and verified queries: what a knowledge folder holds."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from longtable.base.words import fold


@dataclass(frozen=True)
class Place:
    """Where an entry stands. `file`: relative to the knowledge folder. `line`: from 1."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, kw_only=True)
class Term:
    """A word of the company, what it means, and the SQL that says so, such as a condition."""

    term: str
    synonyms: Sequence[str] = ()
    meaning: str = ""
    sql: str = ""
    database: str = ""
    """The database that it is about, of several; "" for the only or the first one."""
    place: Place = field(default=Place(), compare=False)

    @property
    def names(self) -> list[str]:
        """Return the term and its synonyms."""
        return [self.term, *self.synonyms]


@dataclass(frozen=True, kw_only=True)
class VerifiedQuery:
    """A question and the SQL that answers it, as somebody checked it.

    Parameters such as `:month` may stand in the SQL for values; whoever asks fills them in.
    """

    name: str
    """Name of its file without the ending; one query of a folder has it."""
    question: str
    wordings: Sequence[str] = ()
    """Other ways to ask the same."""
    sql: str
    checked_by: str = ""
    checked_on: str = ""
    """A day, as 2026-11-27."""
    database: str = ""
    """The database that it asks, of several; "" for the only or the first one."""
    place: Place = field(default=Place(), compare=False)

    @property
    def questions(self) -> list[str]:
        """Return the question and its other wordings."""
        return [self.question, *self.wordings]


@dataclass(frozen=True)
class Problem:
    """Why an entry, or a file, is left out."""

    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


@dataclass(frozen=True)
class Knowledge:
    """All that a folder teaches, and the problems of entries that are left out."""

    terms: Sequence[Term] = ()
    rules: str = ""
    queries: Sequence[VerifiedQuery] = ()
    problems: Sequence[Problem] = ()


def unique_terms(terms: Sequence[Term]) -> tuple[list[Term], list[Problem]]:
    """Return the terms whose names no earlier term of the same database has, and a problem for each
    term left out.
    """
    kept: list[Term] = []
    problems: list[Problem] = []
    owners_by_database: dict[str, dict[str, Term]] = {}
    for term in terms:
        owners = owners_by_database.setdefault(fold(term.database), {})
        taken = [name for name in term.names if fold(name) in owners]
        if taken:
            other = owners[fold(taken[0])]
            message = f"{taken[0]!r} is already a name of {other.term!r} ({other.place})"
            problems.append(Problem(term.place, f"{message}; give each term names of its own"))
            continue
        kept.append(term)
        for name in term.names:
            owners[fold(name)] = term
    return kept, problems


def one_line(text: str) -> str:
    """Return a text on one line, with single blanks."""
    return " ".join(text.split())


_QUOTED_OR_BLANK = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)|(?:--[^\n]*|/\*.*?\*/|\s+)+""", re.DOTALL
)


def sql_line(sql: str) -> str:
    """Return SQL on one line, without comments. Blanks within quotes stay as they are."""
    return _QUOTED_OR_BLANK.sub(lambda found: found["quoted"] or " ", sql).strip()


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its line feed. Only a line feed ends a line:
    `str.splitlines` also splits at characters that may stand in a value, such as U+2028.
    """
    return [line for line in re.split(r"(?<=\n)", text) if line]
