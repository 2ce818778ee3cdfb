"""What a search for values reads: the columns, and the SQL that searches each of them."""

import re
from collections.abc import Iterator

from longtable.base.errors import QueryFailedError
from longtable.tools.catalog import Column, Table, each_column, nearest
from longtable.tools.database import Database
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.schema.sampling import NESTED, NUMBER, TEXT
from longtable.tools.schema.schema_index import other_numbers
from longtable.tools.schema.schema_tools import find_table

PARTIAL = 3
MOST_DISTINCT = 3_000
"""How many values of a column, the most frequent first, are compared with a text that may contain a
typing error.
"""
VALUE_CHARS = 80


def column_of(database: Database, table: str, column: str) -> tuple[str, str]:
    """If `column` has the form `table.column` and no table is given, split it into table and
    column. Otherwise return both as they are.
    """
    owner, dot, name = column.strip().rpartition(".")
    return (
        (owner, name)
        if dot and not table.strip() and database.catalog().find(owner) is not None
        else (table, column)
    )


def searched_columns(database: Database, table: str, column: str) -> Iterator[tuple[Table, Column]]:
    tables = [find_table(database, table)] if table.strip() else list(database.catalog().tables)
    name = column.strip().strip('"`[]').casefold()
    if name:
        every = list(each_column(tables))
        by_name = [(owner, item) for owner, item in every if item.name.casefold() == name]
        if not by_name:
            close = nearest(column, {item.name for _, item in every})
            hint = (
                f"nearest columns: {', '.join(close)}"
                if close
                else "see describe_tables for the columns"
            )
            raise QueryFailedError(
                f"there is no column {column!r}{f' in {tables[0].name}' if table.strip() else ''}",
                hint=hint,
            )
        yield from ((owner, item) for owner, item in by_name if not item.masked)
        return
    for owner in tables:
        # Views say again what their tables say.
        if owner.kind == "table" or table.strip():
            yield from (
                (owner, item)
                for item in owner.columns
                if not item.masked and (TEXT.search(item.type) or table.strip())
            )


def source_sql(dialect: str, table: Table, column: Column) -> str:
    name = table.sql_column(column.name)
    text = f"CAST({name} AS {dialect_of(dialect).text_type})"
    return f"(SELECT {text} AS v FROM {table.sql_name} WHERE {name} IS NOT NULL) AS t"


def distinct_sql(dialect: str, table: Table, column: Column) -> str:
    source = source_sql(dialect, table, column)
    return (
        f"SELECT v, count(*) FROM {source} WHERE length(v) <= {VALUE_CHARS} GROUP BY 1 ORDER BY 2"
        f" DESC, 1 LIMIT {MOST_DISTINCT}"
    )


def match_query(
    dialect: str, table: Table, column: Column, text: str, limit: int
) -> tuple[str, list[object]] | None:
    """Return the SQL that searches one column, and its parameters. Return None if values of this
    column cannot equal or contain the text.

    The SQL has four columns: the value, the number of rows with this value, the rank of the match,
    and the number of all matching values.
    """
    name = table.sql_column(column.name)
    if not TEXT.search(column.type):
        if NESTED.search(column.type):
            return None
        if NUMBER.search(column.type):
            number = number_in(text)
            # SQLite takes no constant in GROUP BY beside a window.
            sql = (
                f"SELECT {name}, count(*), 0, count(*) OVER () FROM {table.sql_name} WHERE {name} ="
                f" {number} GROUP BY 1 LIMIT {limit}"
            )
            return None if number is None else (sql, [])
    rules = dialect_of(dialect)
    forms = other_numbers(text)
    marks = (
        [f"${place + 3}::text" for place in range(len(forms))]
        if rules.numbered_marks
        else ["?"] * len(forms)
    )
    fold = rules.fold_function
    plural = f"{fold}(v) IN ({', '.join(marks)})" if forms else "FALSE"
    one, two = ("$1::text", "$2::text") if rules.numbered_marks else ("?", "?")
    rank = (
        f"CASE WHEN v = {rules.exact.format(one)} THEN 0 WHEN {fold}(v) = {fold}({one}) THEN 1 WHEN {plural} THEN 2"
        f" ELSE {PARTIAL} END"
    )
    sought = f"%{escaped(text)}%"
    if not rules.folds_ascii_only:
        where = f"v {rules.like} {two} ESCAPE {rules.literal(BACKSLASH)}"
    elif text.isascii():
        where = f"v LIKE ? ESCAPE {rules.literal(BACKSLASH)}"
    else:
        where = "instr(lt_fold(v), lt_fold(?)) > 0"
        sought = text
    params = (
        [text, sought, *forms] if rules.numbered_marks else [text, text, *forms, sought, *forms]
    )
    picked = (
        f"SELECT v, count(*), {rank}, count(*) OVER () FROM {source_sql(dialect, table, column)} WHERE"
        f" {where} OR {plural}"
    )
    return f"{picked} GROUP BY 1, 3 ORDER BY 3, 2 DESC, 1 LIMIT {limit}", list(params)


BACKSLASH = "\\"


def escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def number_in(text: str) -> str | None:
    plain = text.replace(",", "").replace("_", "")
    return plain if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", plain) and len(plain) <= 30 else None
