"""Read and write `queries/*.sql`: one verified query in each file, below a comment that says what
it answers.

    -- question: How many orders came in a month?
    -- also: Number of orders of a month
    -- checked by: Ann Lee
    -- checked on: 2026-11-27
    SELECT count(*) FROM orders WHERE strftime('%Y-%m', day) = :month

Of several databases, `-- database: shop` says which one it asks.
"""

import re
import unicodedata
from collections.abc import Collection
from datetime import date
from itertools import dropwhile, takewhile

from longtable.knowledge.entries import Place, Problem, VerifiedQuery, lines_of, one_line

FOLDER = "queries"
ENDING = ".sql"
MOST_QUESTION_CHARS = 1_000
MOST_WORDINGS = 50
_COMMENT = re.compile(r"--[ \t]*(?P<key>[a-z ]+?)[ \t]*:[ \t]*(?P<value>.*)", re.IGNORECASE)
_KEYS = ("question", "also", "checked by", "checked on", "database")
_NO_NAME = re.compile(r"[^\w]+")
NAME_CHARS = 60


def read_query(text: str, file: str) -> VerifiedQuery | Problem:
    """Return the query of a file, or what is wrong with it. `file`: such as
    "queries/orders_of_a_month.sql".
    """
    values: dict[str, list[str]] = {key: [] for key in _KEYS}
    head = [*takewhile(_is_above_sql, lines_of(text))]
    for line in head:
        comment = _COMMENT.fullmatch(line.strip())
        key = " ".join(comment["key"].lower().split()) if comment else ""
        if comment and key in values:
            values[key].append(one_line(comment["value"]))
    sql = bare_sql(text)
    wrong, line_number = _fault(values, sql, len(head) + 1)
    if wrong:
        return Problem(Place(file, line_number), wrong)
    return VerifiedQuery(
        name=file.rsplit("/", 1)[-1].removesuffix(ENDING),
        question=values["question"][0],
        wordings=values["also"],
        sql=sql,
        checked_by="".join(values["checked by"][:1]),
        checked_on="".join(values["checked on"][:1]),
        database="".join(values["database"][:1]),
        place=Place(file, 1),
    )


def _fault(values: dict[str, list[str]], sql: str, sql_line: int) -> tuple[str, int]:
    """Return what is wrong with a file and in which line, "" and 0 if nothing is."""
    questions = values["question"]
    if len(questions) != 1 or not questions[0]:
        return "the first comment needs one line `-- question: ...`", 1
    if len(values["also"]) > MOST_WORDINGS:
        return f"a query may have {MOST_WORDINGS} other wordings", 1
    if any(len(each) > MOST_QUESTION_CHARS for each in [*questions, *values["also"]]):
        return f"a question may have {MOST_QUESTION_CHARS:,} characters", 1
    for day in values["checked on"]:
        try:
            date.fromisoformat(day)
        except ValueError:
            return f"`checked on` needs a day such as 2026-11-27, found {day[:40]!r}", 1
    if not sql:
        return "the SQL is missing below the comment", sql_line
    return "", 0


def write_query(query: VerifiedQuery) -> str:
    """Return the text of a query's file."""
    lines = [f"-- question: {one_line(query.question)}"]
    lines += [f"-- also: {one_line(wording)}" for wording in query.wordings]
    if query.checked_by:
        lines.append(f"-- checked by: {one_line(query.checked_by)}")
    if query.checked_on:
        lines.append(f"-- checked on: {one_line(query.checked_on)}")
    if query.database:
        lines.append(f"-- database: {one_line(query.database)}")
    return "\n".join([*lines, bare_sql(query.sql)]) + "\n"


def bare_sql(sql: str) -> str:
    """Return SQL without comments and blank lines above it, and without semicolons at its end. The
    rest stays as it is, whatever characters its texts have.

    In a file, comments above the SQL say who checked it and what it answers. Those of SQL from
    elsewhere must not say these.
    """
    below = "".join(dropwhile(_is_above_sql, lines_of(sql))).lstrip()
    end = len(below)
    while end and (below[end - 1] == ";" or below[end - 1].isspace()):
        end -= 1
    return below[:end]


def _is_above_sql(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("--")


class FreeNames:
    """Gives out names for files, each once: a question's letters and digits, at most 60 characters.

    It remembers how far it has counted, so many questions that begin alike take no longer.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = {*taken}
        self._last: dict[str, int] = {}

    def for_question(self, question: str) -> str:
        """Return a name that is free, and take it."""
        folded = unicodedata.normalize("NFKC", question).lower()
        first = _NO_NAME.sub("_", folded).strip("_")[:NAME_CHARS].strip("_") or "query"
        name = first
        while name in self._taken:
            self._last[first] = self._last.get(first, 1) + 1
            name = f"{first}_{self._last[first]}"
        self._taken.add(name)
        return name


def name_for(question: str, taken: Collection[str] = ()) -> str:
    """Return a name for a question's file that no other one has."""
    return FreeNames(taken).for_question(question)
