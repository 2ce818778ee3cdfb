"""Run the SQL that answers a question, behind the same walls as the model's SQL."""

import re
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from sqlglot import exp

from longtable.base.errors import LongtableError, QueryFailedError
from longtable.evaluation.matching import Order, Rows
from longtable.evaluation.question_set import Turn
from longtable.graph import Database
from longtable.tools.cells import json_rows
from longtable.tools.sql.parsing import RefusedError, dialect_of, statement

MOST_TEXTS = 50
"""Most texts in double quotes of one query."""
_IN_DOUBLE_QUOTES = re.compile(r'"(?:[^"]|"")*"')
MOST_FIGURES = 50
"""Most numbers of gold's rows that an answer's text can be asked for."""


@dataclass(frozen=True)
class GoldResult:
    """The rows of one gold query, or why it has none (`fault`)."""

    sql: str
    columns: Sequence[str] = ()
    rows: Rows = ()
    order: Order | None = None
    fault: str = ""


class GoldRunner:
    """Runs gold on one database, each text once. Safe for threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: dict[str, Future[GoldResult]] = {}

    def result(self, sql: str) -> GoldResult:
        """Return the result of a query. Whoever else asks for it meanwhile waits for its end."""
        with self._lock:
            known = self._known.get(sql)
            if known is None:
                mine: Future[GoldResult] = Future()
                self._known[sql] = mine
        if known is None:
            try:
                mine.set_result(_run(self._database, sql))
            except BaseException as error:
                mine.set_exception(error)
            known = mine
        return known.result()

    def results(self, turn: Turn) -> list[GoldResult]:
        """Return the results of a turn's gold, with the order that the turn asks for."""
        results: list[GoldResult] = []
        for sql in turn.gold:
            result = self.result(sql)
            order = result.order
            if turn.ordered is False:
                order = None
            elif turn.ordered:
                order = order or Order()
            results.append(GoldResult(sql, result.columns, result.rows, order, result.fault))
        return results

    def faults(self, turn: Turn) -> list[str]:
        """Return why a turn cannot be scored: each gold that fails, and too many figures."""
        results = self.results(turn)
        faults = [f"gold fails: {result.fault}" for result in results if result.fault]
        if turn.figures:
            for result in results:
                count = len(figures_of(result.rows))
                if count > MOST_FIGURES:
                    faults.append(
                        f"`figures` needs gold of at most {MOST_FIGURES} numbers, found {count:,}"
                    )
        return faults


def figures_of(rows: Rows) -> list[float]:
    """Return the numbers of all cells."""
    figures: list[float] = []
    for row in rows:
        for cell in row:
            if isinstance(cell, int | float) and not isinstance(cell, bool):
                figures.append(cell)
    return figures


def order_of(sql: str, dialect: str, columns: Sequence[str] = ()) -> Order | None:
    """Return the order that the outermost query asks for, None if it asks for none. `columns`: the
    names of its columns, which tell what a star stands for.
    """
    try:
        tree: exp.Expr = statement(sql, dialect)
    except RefusedError:
        return None  # the database says what is wrong with it
    while isinstance(tree, exp.Subquery) and not tree.args.get("order"):
        tree = tree.this
    ordered = tree.args.get("order")
    if ordered is None:
        return None
    projections = tree.selects if isinstance(tree, exp.Query) else []
    keys: list[int] = []
    for item in ordered.expressions:
        place = _place(item.this, projections, columns)
        if place is None:
            return Order()
        keys.append(place)
    return Order(tuple(keys))


def _place(key: exp.Expr, projections: Sequence[exp.Expr], columns: Sequence[str]) -> int | None:
    """Return the place of the column that a key of ORDER BY orders by, None if it is none of the
    columns, or could be several.
    """
    if isinstance(key, exp.Collate):
        key = key.this
    has_star = any(projection.is_star for projection in projections)
    if isinstance(key, exp.Literal) and not key.is_string:
        place = int(key.this) - 1
        width = len(columns) if has_star else len(projections)
        return place if 0 <= place < width else None
    if has_star:
        names = [name.lower() for name in columns]
        is_one = isinstance(key, exp.Column) and names.count(key.name.lower()) == 1
        return names.index(key.name.lower()) if is_one else None
    if isinstance(key, exp.Column) and not key.table:
        names = [projection.alias_or_name.lower() for projection in projections]
        if key.name.lower() in names:
            return names.index(key.name.lower())
    for alike in (_spelled, _without_tables):
        places = [
            place
            for place, projection in enumerate(projections)
            if alike(projection.unalias()) == alike(key)
        ]
        if len(places) == 1:
            return places[0]
    return None


def _spelled(expression: exp.Expr) -> exp.Expr:
    """Return an expression with names in lower case."""
    return expression.transform(_lower_name)


def _lower_name(node: exp.Expr) -> exp.Expr:
    return exp.to_identifier(node.name.lower()) if isinstance(node, exp.Identifier) else node


def _without_tables(expression: exp.Expr) -> exp.Expr:
    """Return an expression with names in lower case and without the tables of its columns: one
    side may write `orders.id`, and the other `id`.
    """
    bare = _spelled(expression)
    for column in bare.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)
    return bare


def _run(database: Database, sql: str) -> GoldResult:
    """Run a query. SQLite reads a name in double quotes as text if there is no such column, and the
    gold of benchmarks is full of these; a model's SQL is told to use single quotes.
    """
    text = sql
    for _ in range(MOST_TEXTS + 1):
        try:
            result = database.run(text)
        except QueryFailedError as error:
            other = (
                _with_text(text, error) if dialect_of(database.dialect).names_may_be_text else text
            )
            if other == text:
                return GoldResult(sql, fault=str(error))
            text = other
        except LongtableError as error:
            return GoldResult(sql, fault=str(error))
        else:
            order = order_of(text, database.dialect, result.columns)
            return GoldResult(text, result.columns, json_rows(result.rows), order)
    return GoldResult(sql, fault=f"more than {MOST_TEXTS} texts stand in double quotes")


def _with_text(sql: str, error: QueryFailedError) -> str:
    """Return SQL in which the unknown column that an error names is a text, if it stands in double
    quotes; otherwise the SQL as it is.
    """
    if error.problem != "unknown_name" or not error.line or not error.column:
        return sql
    lines = sql.split("\n")
    start = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    name = _IN_DOUBLE_QUOTES.match(sql, start)
    if name is None:
        return sql
    text = name[0][1:-1].replace('""', '"').replace("'", "''")
    return f"{sql[:start]}'{text}'{sql[name.end() :]}"
