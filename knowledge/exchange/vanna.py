"""Read questions and their SQL from an export of Vanna's training data.

Vanna hands its training data over as a DataFrame with the columns `id`, `question`, `content` and
`training_data_type` ("sql", "ddl" or "documentation"). pandas writes it as a list of rows, as
`{"data": [rows]}`, or column by column, each an object by row. Vanna's server puts the rows, as a
text, into `{"df": "..."}`. Some of Vanna's stores have `sql` for `content`, `type` for
`training_data_type`, or `natural_language_question`. Pinecone's content is the question and its SQL
as JSON.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from longtable.knowledge.entries import Place, Problem, VerifiedQuery, one_line
from longtable.knowledge.exchange.untrusted import (
    MOST_ENTRIES,
    fault_of_text,
    kind_of,
    read_json,
)
from longtable.knowledge.query_files import FreeNames, bare_sql

QUESTION = ("question", "natural_language_question")
SQL = ("sql", "content")
KIND = ("training_data_type", "type")
"""Keys of a row that mean the same: the first with a value counts."""
NO_QUERY = {"ddl": "DDL", "doc": "documentation", "documentation": "documentation"}

Row = Mapping[str, object]


def read_vanna(text: str, file: str) -> tuple[list[VerifiedQuery], list[Problem]]:
    """Return the queries of an export, and a problem for each row that is left out. A text that is
    no such export gives one problem and no query.

    Rows are counted from 1 in the messages. A question with the same SQL is read once, and nobody
    has checked it.
    """
    place = Place(file)
    rows = _rows(read_json(text, file), file)
    if isinstance(rows, Problem):
        return [], [rows]
    queries: list[VerifiedQuery] = []
    problems: list[Problem] = []
    seen: set[tuple[str, str]] = set()
    names = FreeNames()
    for number, row in enumerate(rows[:MOST_ENTRIES], 1):
        pair = _pair(row)
        if isinstance(pair, str):
            problems.append(Problem(place, f"row {number}: {pair}"))
        elif pair not in seen:
            seen.add(pair)
            question, sql = pair
            name = names.for_question(question)
            queries.append(VerifiedQuery(name=name, question=question, sql=sql, place=place))
    if len(rows) > MOST_ENTRIES:
        message = f"at most {MOST_ENTRIES:,} rows, found {len(rows):,}; the first are read"
        problems.append(Problem(place, message))
    return queries, problems


def _rows(export: object, file: str) -> Sequence[object] | Problem:
    """Return the rows of an export, whatever its shape."""
    if isinstance(export, dict) and isinstance(export.get("df"), str):
        export = read_json(export["df"], file)
        if isinstance(export, Problem):
            return Problem(Place(file), f"`df`: {export.message}")
    if isinstance(export, dict) and "data" in export:
        export = export["data"]
    if isinstance(export, Problem | list):
        return export
    if isinstance(export, dict) and any(key in export for key in QUESTION):
        return _rows_of_columns(export, file)
    message = f"rows with `question` and `content` or `sql` are needed, found {kind_of(export)}"
    return Problem(Place(file), message)


def _rows_of_columns(columns: Row, file: str) -> Sequence[Row] | Problem:
    """Return the rows of a table that was written column by column."""
    rows: dict[object, dict[str, object]] = {}
    for key in (*QUESTION, *SQL, *KIND):
        column = columns.get(key)
        if isinstance(column, list):
            column = dict(enumerate(column))
        if column is None:
            continue
        if not isinstance(column, dict):
            message = f"`{key}`: a list or an object by row is needed, found {kind_of(column)}"
            return Problem(Place(file), message)
        for label, value in column.items():
            rows.setdefault(label, {})[key] = value
    return list(rows.values())


def _pair(row: object) -> tuple[str, str] | str:
    """Return the question and the SQL of a row, or why it has none."""
    if not isinstance(row, dict):
        return f"an object is needed, found {kind_of(row)}"
    kind = _first(row, KIND)
    if isinstance(kind, str) and kind.lower() in NO_QUERY:
        return f"this is {NO_QUERY[kind.lower()]}, not a query; it is skipped"
    values = {"question": _first(row, QUESTION), "sql": _inner_sql(_first(row, SQL))}
    if values["question"] is None:
        return "there is no question, as with DDL and documentation; it is skipped"
    for key, value in values.items():
        fault = fault_of_text(value)
        if fault:
            return f"`{key}`: {fault}"
    question = one_line(str(values["question"]))
    if not question:
        return "`question`: the question is missing"
    sql = bare_sql(str(values["sql"]))
    return (question, sql) if sql else "`sql`: the SQL is missing"


def _first(row: Row, keys: Sequence[str]) -> object:
    """Return the first value that a row has under one of some keys, None if there is none."""
    values = (row.get(key) for key in keys)
    return next((value for value in values if value not in (None, "")), None)


def _inner_sql(value: object) -> object:
    """Return the SQL inside of Pinecone's JSON, any other value as it is."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError, RecursionError):
            inner = json.loads(value)
            return inner.get("sql", value)
    return value
