"""Refuse constructs that sqlglot and an engine read differently, as the dialect's record says."""

import re

from sqlglot import Token, exp

from longtable.tools.catalog import Catalog, fold
from longtable.tools.cells import clip
from longtable.tools.engines.dialects import Dialect
from longtable.tools.sql.parsing import RefusedError, line_and_column

_FRACTION = re.compile(r"[-+]?\d*\.\d*")


def check_trap(node: exp.Expr, rules: Dialect) -> None:
    """Raise `RefusedError` if the engine may read this node differently from what the tree says."""
    if type(node).__name__ in rules.refused_nodes:
        raise RefusedError(
            "construct",
            f"{type(node).__name__.upper()} is not allowed in a query",
            "write it another way",
            node=node,
        )
    if rules.whole_intervals and isinstance(node, exp.Interval | exp.DateAdd | exp.DateSub):
        _check_interval(node)
    if (
        not rules.schema_calls
        and isinstance(node, exp.Dot)
        and isinstance(node.expression, exp.Func)
    ):
        # A stored function, which may read anything.
        name = node.expression.name or node.expression.sql_name().lower()
        raise RefusedError(
            "function", f"the function {name!r} is not allowed", "leave the schema out", node=node
        )


def _check_interval(node: exp.Expr) -> None:
    amount = node.this if isinstance(node, exp.Interval) else node.args.get("expression")
    unit = node.args.get("unit")
    if not isinstance(amount, exp.Literal) or not _FRACTION.fullmatch(amount.name):
        return
    unit_name = unit.name.upper() if unit else ""
    if unit_name != "SECOND":
        raise RefusedError(
            "construct",
            f"the interval of {amount.name} {unit_name} can be read in two ways",
            "write it in whole units, such as INTERVAL 36 HOUR",
            node=node,
        )


def check_double_quotes(sql: str, tokens: list[Token], catalog: Catalog) -> None:
    """Refuse a text in double quotes that is the name of a column: whoever wrote it may mean the
    column, and would get the text in each row. Raises `RefusedError`.
    """
    for token in tokens:
        if sql[token.start : token.start + 1] == '"' and catalog.has_column(token.text):
            raise RefusedError(
                "syntax",
                f"{clip(token.text, 60)!r} in double quotes is a text here, not the column",
                "write a name in backticks, and a text in single quotes",
                place=line_and_column(sql, token.start),
            )


def check_relation_names(tree: exp.Expr) -> None:
    """Refuse two names of tables, CTEs or aliases that differ only in case: on one server they are
    the same, on another they are not. Raises `RefusedError`.
    """
    spellings: dict[str, str] = {}
    for node in tree.find_all(exp.Table, exp.TableAlias):
        identifier = node.this
        if not isinstance(identifier, exp.Identifier) or node.args.get("db"):
            continue
        known = spellings.setdefault(fold(identifier.name), identifier.name)
        if known != identifier.name:
            raise RefusedError(
                "construct",
                f"the names {known!r} and {identifier.name!r} differ only in case",
                "spell a name always the same, and give different things different names",
                node=identifier,
            )
