"""Give each column one name in a tree.

`n.a` may be the column `a` of the source `n`, the field `a` of the column `n`, or a column whose
own name is `n.a`.
"""

from sqlglot import exp

from longtable.tools.catalog import Catalog, each_column, fold
from longtable.tools.engines.dialects import Dialect
from longtable.tools.sql.parsing import RefusedError, nodes_of


def with_plain_names(tree: exp.Expr, catalog: Catalog, rules: Dialect) -> None:
    """Change the names of a tree so that the engine and the walls read them in one way: a column
    whose name has a dot becomes one quoted name, and names that need quotes get them. Raises
    `RefusedError` for the name of a group of such columns.
    """
    nodes = nodes_of(tree)
    if rules.ascii_names:
        for node in nodes:
            if isinstance(node, exp.Identifier) and not node.name.isascii():
                node.set("quoted", True)
    if not rules.dotted_columns:
        return
    dotted: dict[str, set[str]] = {}
    plain: set[str] = set()
    for _, column in each_column(catalog.tables):
        group, dot, part = fold(column.name).partition(".")
        if dot:
            dotted.setdefault(group, set()).add(part)
        else:
            plain.add(group)
    if not dotted:
        return
    sources = {fold(node.alias_or_name) for node in nodes if isinstance(node, exp.Table)}
    sources |= {fold(node.alias) for node in nodes if isinstance(node, exp.Subquery | exp.CTE)}
    for node in nodes:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            _join_parts(node, dotted, plain, sources)


def _join_parts(
    column: exp.Column, dotted: dict[str, set[str]], plain: set[str], sources: set[str]
) -> None:
    parts = column.parts
    names = [fold(part.name) for part in parts]
    if len(parts) > 1 and names[-1] in dotted.get(names[-2], ()):
        if names[-2] in sources:
            raise RefusedError(
                "column",
                f"{names[-2]}.{names[-1]} can be a column of {names[-2]!r} or a part of the column"
                f" {names[-2]!r}",
                "give the table another alias, and write it before the name",
                node=column,
            )
        joined = f"{parts[-2].name}.{parts[-1].name}"
        outer = [part.copy() for part in parts[:-2]]
        column.set("this", exp.to_identifier(joined, quoted=True))
        for place, key in enumerate(("table", "db", "catalog")):
            column.set(key, outer[-1 - place] if place < len(outer) else None)
    elif names[-1] in dotted and names[-1] not in plain:
        first = sorted(dotted[names[-1]])[0]
        raise RefusedError(
            "column",
            f"{names[-1]!r} is made of several columns",
            f"name each, such as {names[-1]}.{first}",
            node=column,
        )
