"""Write DESCRIBE, SHOW TABLES, SUMMARIZE, PIVOT and UNPIVOT as a SELECT that gives the same rows.

The SELECT goes through the walls like any other. So DESCRIBE and SHOW tell what the catalogue tells
a model, denied columns are missing from SUMMARIZE, and of a masked column it tells the type alone.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from longtable.tools.catalog import Catalog, Column, fold, quoted
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.narrow import sources_of
from longtable.tools.sql.parsing import MAX_SQL_CHARS, RefusedError, statements, tokens_of, written
from longtable.tools.sql.scope import missing_table, resolved_table

MOST_COLUMNS = 300
"""The most columns that SUMMARIZE or DESCRIBE reports; each becomes a SELECT of its own."""
_NUMBER = re.compile(r"(?:U?(?:TINY|SMALL|BIG|HUGE)?INT|INTEGER|DECIMAL|NUMERIC|DOUBLE|FLOAT|REAL)")
_BEFORE = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
"""Blanks and comments. Each begins in a way of its own, so that there is one way to match them."""
_STATEMENT_START = re.compile(
    rf"{_BEFORE}(?:(?:DESC|DESCRIBE|SHOW|SUMMARIZE|PIVOT|UNPIVOT)\b|WITH\b.*\b(?:UN)?PIVOT\b)",
    re.IGNORECASE | re.DOTALL,
)
_FIGURES = ("min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75", "count")


@dataclass(frozen=True)
class _Output:
    """One column of the described table or query. `column`: None for a column of a query."""

    name: str
    column: Column | None = None


def as_select(sql: str, dialect: str, catalog: Catalog) -> str:
    """Return a SELECT with the rows of a statement that only reads. Return any other text as it is.

    Raises `RefusedError` if a table is missing, or if the columns of a query have no names of their
    own.
    """
    if len(sql) > MAX_SQL_CHARS or not _STATEMENT_START.match(sql):
        return sql
    trees = statements(sql, dialect, tokens=tokens_of(sql, dialect))
    if len(trees) != 1:
        return sql
    [tree] = trees
    write = _WRITERS.get(type(tree))
    return sql if write is None else write(tree, dialect, catalog) or sql


def _pivoted(tree: exp.Expr, dialect: str, _: Catalog) -> str:
    """Return a SELECT of all columns of a PIVOT or UNPIVOT."""
    ctes = tree.args.get("with_")
    bare = tree.copy()
    bare.set("with_", None)
    before = f"{written(ctes, dialect)} " if ctes else ""
    return f"{before}SELECT * FROM ({written(bare, dialect)}) AS pivoted"


def _listed(tree: exp.Expr, dialect: str, catalog: Catalog) -> str:
    """Return a SELECT of the names of all tables, "" if something else is asked for."""
    if str(tree.this or tree.name).upper() not in ("TABLES", "ALL TABLES"):
        return ""
    return _listing(["name"], ([table.name] for table in catalog.tables), dialect)


def _described(tree: exp.Expr, dialect: str, catalog: Catalog) -> str:
    """Return a SELECT of the names and types of the columns of a table or a query, "" for a query
    whose types this dialect does not tell.
    """
    is_table = isinstance(tree.this, exp.Table)
    if not is_table and not dialect_of(dialect).tells_types:
        return ""
    outputs = _outputs(tree, dialect, catalog)
    if is_table:
        columns = [output.column for output in outputs if output.column]
        rows = (
            [column.name, column.type, "YES" if column.nullable else "NO"] for column in columns
        )
        return _listing(["column_name", "column_type", "nullable"], rows, dialect)
    parts: list[str] = []
    for output in outputs:
        kind = f"typeof((SELECT {quoted(output.name)} FROM described LIMIT 1))"
        parts.append(f"SELECT {_text(output.name)} AS column_name, {kind} AS column_type")
    return _with_query("described", tree.this, dialect) + " UNION ALL ".join(parts)


def _summarized(tree: exp.Expr, dialect: str, catalog: Catalog) -> str:
    """Return a SELECT of the figures of each column of a table or a query, "" for a dialect that
    does not know SUMMARIZE.
    """
    if not dialect_of(dialect).tells_types:
        return ""
    parts = [_figures(output) for output in _outputs(tree, dialect, catalog)]
    if isinstance(tree.this, exp.Table):
        source = written(tree.this, dialect)
        return " UNION ALL ".join(f"{part} FROM {source}" for part in parts)
    before = _with_query("summarized", tree.this, dialect)
    return before + " UNION ALL ".join(f"{part} FROM summarized" for part in parts)


_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr, str, Catalog], str]] = {
    exp.Pivot: _pivoted,
    exp.Show: _listed,
    exp.Describe: _described,
    exp.Summarize: _summarized,
}


def _figures(output: _Output) -> str:
    """Return the items of the SELECT for one column, with the names that DuckDB gives them."""
    name = quoted(output.name)
    column = output.column
    kind = f"max(typeof({name}))" if column is None else _text(column.type)
    values = dict.fromkeys(_FIGURES, "NULL")
    values["count"] = "count(*)"
    share = "NULL"
    if column is None or not (column.masked or column.computed):
        values["min"] = f"CAST(min({name}) AS VARCHAR)"
        values["max"] = f"CAST(max({name}) AS VARCHAR)"
        values["approx_unique"] = f"approx_count_distinct({name})"
        share = f"round(100.0 * (count(*) - count({name})) / nullif(count(*), 0), 2)"
        if column is None or _NUMBER.match(column.type.upper()):
            number = f"TRY_CAST({name} AS DOUBLE)"
            values["avg"] = f"avg({number})"
            values["std"] = f"stddev({number})"
            for place in (25, 50, 75):
                values[f"q{place}"] = f"approx_quantile({number}, 0.{place})"
    items = [f"{_text(output.name)} AS column_name", f"{kind} AS column_type"]
    items += [f'{value} AS "{figure}"' for figure, value in values.items()]
    return f"SELECT {', '.join(items)}, {share} AS null_percentage"


def _outputs(tree: exp.Expr, dialect: str, catalog: Catalog) -> list[_Output]:
    """Return the columns of the table or query that a statement tells about."""
    source = tree.this
    if isinstance(source, exp.Table):
        return _of_table(source, dialect, catalog)
    query = source.unnest() if isinstance(source, exp.Subquery) else source
    if not isinstance(query, exp.Query):
        raise _unknown(tree)
    outputs: list[_Output] = []
    for item in query.selects:
        outputs += _of_item(item, query, dialect, catalog)
    names = [fold(output.name) for output in outputs]
    if not all(names) or len({*names}) < len(names):
        raise _unknown(tree)
    if len(outputs) > MOST_COLUMNS:
        raise RefusedError(
            "statement",
            f"the query has {len(outputs):,} columns, at most {MOST_COLUMNS} are told",
            "select fewer columns",
        )
    return outputs


def _of_table(node: exp.Table, dialect: str, catalog: Catalog) -> list[_Output]:
    is_name = isinstance(node.this, exp.Identifier)
    table = resolved_table(node, catalog, dialect) if is_name else None
    if table is None:
        raise missing_table(node, dialect, catalog)
    return [_Output(column.name, column) for column in table.columns]


def _of_item(item: exp.Expr, query: exp.Query, dialect: str, catalog: Catalog) -> Iterator[_Output]:
    """Yield the columns that an item of a SELECT list stands for. A star stands for the columns of
    the tables in FROM.
    """
    if not item.is_star:
        yield _Output(item.alias_or_name)
        return
    if not isinstance(query, exp.Select) or type(item) not in (exp.Star, exp.Column):
        raise _unknown(query)
    star = item.find(exp.Star)
    if star is None or any(star.args.values()) or _merges_columns(query):
        raise _unknown(query)
    for name, table in sources_of(query, catalog, dialect).items():
        if isinstance(item, exp.Column) and fold(item.table) != name:
            continue
        if table is None:
            raise _unknown(query)
        for column in table.columns:
            yield _Output(column.name)


def _merges_columns(query: exp.Select) -> bool:
    """Return whether a join makes one column of two."""
    joins = query.args.get("joins") or []
    return any(join.args.get("using") or join.method == "NATURAL" for join in joins)


def _unknown(tree: exp.Expr) -> RefusedError:
    return RefusedError(
        "statement",
        f"the columns of the query after {type(tree).__name__.upper()} are not known by name",
        "name each column of its SELECT list once",
    )


def _with_query(name: str, query: exp.Expr, dialect: str) -> str:
    bare = query.unnest() if isinstance(query, exp.Subquery) else query
    return f"WITH {name} AS ({written(bare, dialect)}) "


def _listing(names: Sequence[str], rows: Iterator[Sequence[str]], dialect: str) -> str:
    """Return a SELECT of texts. `names`: those of its columns. Raises `RefusedError` for a dialect
    without lists of values if there are too many rows.
    """
    rules = dialect_of(dialect)
    lines = [[*map(rules.literal, row)] for row in rows]
    if lines and rules.lists_values:
        body = ", ".join(f"({', '.join(line)})" for line in lines)
        return f"WITH listing({', '.join(names)}) AS (VALUES {body}) SELECT * FROM listing"
    if len(lines) > MOST_COLUMNS:
        reason = f"the answer has {len(lines):,} rows, at most {MOST_COLUMNS} are told this way"
        raise RefusedError("statement", reason, "see list_tables and describe_table")
    if not lines:
        return f"SELECT {', '.join(f'NULL AS {name}' for name in names)} LIMIT 0"
    parts: list[str] = []
    for place, line in enumerate(lines):
        items = [f"{cell} AS {name}" for cell, name in zip(line, names, strict=True)]
        parts.append(f"SELECT {place} AS place, {', '.join(items)}")
    # An engine may answer the parts of a union in any order.
    union = " UNION ALL ".join(parts)
    return f"SELECT {', '.join(names)} FROM ({union}) AS listing ORDER BY place"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
