"""Read and write `glossary.toml`: one table `[[term]]` for each term."""

import difflib
import json
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from longtable.knowledge.entries import Place, Problem, Term, lines_of, unique_terms

FILE = "glossary.toml"
KEYS = ("term", "synonyms", "meaning", "sql", "database")
MOST_NAMES = 50
"""Most synonyms of a term."""
MOST_CHARS = {"term": 200, "synonyms": 200, "meaning": 2_000, "sql": 4_000, "database": 64}
"""Most characters of each value; of each synonym."""
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*term[ \t]*\]\]", re.MULTILINE)
_NESTED = re.compile(r"(?:[\[{][^\[\]{}]*){50}")
"""Lists and tables within each other. Python's reader of TOML gives up at some hundreds."""


def read_glossary(text: str, file: str = FILE) -> tuple[list[Term], list[Problem]]:
    """Return the terms of a glossary, and a problem for each term that is left out. A text that is
    not TOML gives one problem and no term.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        return [], [
            Problem(Place(file, int(found[1]) if found else 0), f"this is not TOML: {error}")
        ]
    except ValueError:
        return [], [Problem(Place(file), "a number has too many digits")]
    except RecursionError:
        nested = _NESTED.search(text)
        line = text.count("\n", 0, nested.start()) + 1 if nested else 0
        return [], [Problem(Place(file, line), "lists or tables are nested too deeply")]
    problems = [
        Problem(Place(file), f"`{key}` is not known here; each term is a table [[term]]")
        for key in data
        if key != "term"
    ]
    tables = data.get("term", [])
    if not isinstance(tables, list):
        return [], [*problems, Problem(Place(file), "write [[term]], with two brackets")]
    lines = [text.count("\n", 0, header.start()) + 1 for header in _HEADER.finditer(text)]
    terms: list[Term] = []
    for number, table in enumerate(tables):
        place = Place(file, lines[number] if number < len(lines) else 0)
        wrong = _fault(table)
        if wrong:
            problems.append(Problem(place, wrong))
        else:
            terms.append(_term(table, place))
    kept, doubles = unique_terms(terms)
    return kept, [*problems, *doubles]


def write_glossary(terms: Sequence[Term]) -> str:
    """Return the text of a glossary."""
    tables: list[str] = []
    for term in terms:
        lines = ["[[term]]", f"term = {_quoted(term.term)}"]
        if term.synonyms:
            lines.append(f"synonyms = [{', '.join(map(_quoted, term.synonyms))}]")
        if term.meaning:
            lines.append(f"meaning = {_quoted(term.meaning)}")
        if term.sql:
            lines.append(f"sql = {_quoted(term.sql)}")
        if term.database:
            lines.append(f"database = {_quoted(term.database)}")
        tables.append("\n".join(lines))
    return "\n\n".join(tables) + "\n"


def without_table(text: str, line: int) -> str:
    """Return a glossary without the table that begins in a line, counted from 1. Comments above the
    next table stay.
    """
    lines = lines_of(text)
    end = line
    while end < len(lines) and not _HEADER.match(lines[end]):
        end += 1
    while end < len(lines) and end > line and _is_aside(lines[end - 1]):
        end -= 1
    return "".join([*lines[: line - 1], *lines[end:]])


def _is_aside(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _quoted(text: str) -> str:
    # JSON's strings are TOML's, except that TOML wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _term(table: Mapping[str, Any], place: Place) -> Term:
    return Term(
        term=table["term"].strip(),
        synonyms=[name.strip() for name in table.get("synonyms", [])],
        meaning=table.get("meaning", "").strip(),
        sql=table.get("sql", "").strip(),
        database=table.get("database", "").strip(),
        place=place,
    )


def _fault(table: object) -> str:
    """Return what is wrong with one term, "" if nothing is."""
    if not isinstance(table, dict):
        return "write [[term]], with two brackets"
    for key in table:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            guess = f"; did you mean `{near[0]}`?" if near else f"; known: {', '.join(KEYS)}"
            return f"`{key}` is not known{guess}"
    for key in ("term", "meaning", "sql", "database"):
        value = table.get(key, "")
        if not isinstance(value, str):
            return f"`{key}` must be a text, found {type(value).__name__}"
        if len(value) > MOST_CHARS[key]:
            return f"`{key}` may have {MOST_CHARS[key]:,} characters, found {len(value):,}"
    synonyms = table.get("synonyms", [])
    if not isinstance(synonyms, list) or not all(isinstance(name, str) for name in synonyms):
        return 'write the synonyms as a list of texts: synonyms = ["...", "..."]'
    if len(synonyms) > MOST_NAMES:
        return f"a term may have {MOST_NAMES} synonyms, found {len(synonyms)}"
    if not all(name.strip() and len(name) <= MOST_CHARS["synonyms"] for name in synonyms):
        return f"a synonym needs 1 to {MOST_CHARS['synonyms']} characters"
    if not table.get("term", "").strip():
        return "a term needs a name: term = ..."
    names = [name.strip() for name in (table["term"], *synonyms)]
    if any(unicodedata.category(letter) == "Cc" for letter in "".join(names)):
        return "a name has no line break and no other control character"
    if not table.get("meaning", "").strip() and not table.get("sql", "").strip():
        return f"{table['term']!r} needs a `meaning`, or the `sql` that says it"
    return ""
