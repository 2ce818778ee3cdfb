"""Read the condition of a row filter."""

import re
from functools import lru_cache

from sqlglot import exp

from longtable.tools.catalog import Column, Table, fold, nearest
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import RefusedError, statements
from longtable.tools.sql.scope import name_key, written_name

_HEAD = "SELECT 1 WHERE (\n"
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
MOST_CHARS = 4_000


@lru_cache(maxsize=1_000)
def condition_of(text: str, dialect: str) -> tuple[exp.Expr, str]:
    """Return the tree of a condition and the text that it was parsed from. Do not change the tree.
    Raises `RefusedError` if the text is anything but one condition.
    """
    if len(text) > MOST_CHARS:
        raise RefusedError("rows", f"it has {len(text):,} characters", f"at most {MOST_CHARS:,}")
    source = f"{_HEAD}{text}\n)"
    trees = statements(source, dialect)
    tree = trees[0] if len(trees) == 1 else None
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    parts = {name for name, value in tree.args.items() if value} if tree is not None else set()
    is_one = where is not None and isinstance(where.this, exp.Paren)
    if not is_one or not parts <= {"expressions", "where", "kind"}:
        raise RefusedError(
            "rows", "it is not one condition", "write what may stand after WHERE, and nothing else"
        )
    assert where is not None
    condition: exp.Expr = where.this.this
    return condition, source


def parameter_name(node: exp.Placeholder) -> str:
    """Return the name of a parameter in a condition. Raises `RefusedError` if it has none."""
    name = node.this
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RefusedError("rows", "it has a parameter without a name", "write parameters as :name")
    return name


def column_of(node: exp.Column, table: Table, dialect: str) -> Column:
    """Return the column of a table that a node of its filter names. Raises `RefusedError`."""
    owner = node.args.get("table")
    known = table.bare_name if dialect_of(dialect).exact_names else fold(table.bare_name)
    if node.args.get("db") is not None or (owner is not None and name_key(owner, dialect) != known):
        raise RefusedError(
            "rows", f"it reads another table, {node.table!r}", "write the column's name alone"
        )
    name = written_name(node.this, dialect)
    exact = dialect_of(dialect).exact_names
    for column in table.columns:
        if column.name == name or (not exact and fold(column.name) == fold(name)):
            return column
    close = nearest(name, (column.name for column in table.columns))
    hint = f"nearest columns: {', '.join(close)}" if close else "see the table's columns"
    raise RefusedError("rows", f"it names a column that is not there, {name!r}", hint)
