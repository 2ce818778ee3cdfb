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
    names = _Names(catalog, nodes)
    for node in nodes:
        if isinstance(node, exp.Join):
            for identifier in node.args.get("using") or ():
                names.check(identifier)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            names.join(node)


class _Names:
    """The columns of a catalogue whose names have a dot, and the sources of a tree."""

    def __init__(self, catalog: Catalog, nodes: list[exp.Expr]) -> None:
        self._parts: dict[str, set[str]] = {}
        self._plain: set[str] = set()
        for _, column in each_column(catalog.tables):
            group, dot, part = fold(column.name).partition(".")
            if dot:
                self._parts.setdefault(group, set()).add(part)
            else:
                self._plain.add(group)
        self._sources = {fold(node.alias_or_name) for node in nodes if isinstance(node, exp.Table)}
        self._sources |= {
            fold(node.alias) for node in nodes if isinstance(node, exp.Subquery | exp.CTE)
        }

    def join(self, column: exp.Column) -> None:
        """Give a column with a dot in its name one part for it. Raises `RefusedError` for a name
        that can be read in two ways.
        """
        parts = column.parts
        names = [fold(part.name) for part in parts]
        for part in parts:
            self.check(part)
        for place in range(len(names) - 1):
            if names[place + 1] in self._parts.get(names[place], ()):
                self._join(column, place)
                return
        if names[-1] in self._parts and names[-1] not in self._plain:
            first = min(self._parts[names[-1]])
            raise RefusedError(
                "column",
                f"{names[-1]!r} is made of several columns",
                f"name each, such as {names[-1]}.{first}",
                node=column,
            )

    def check(self, name: exp.Expr) -> None:
        """Refuse a name with a dot that is no column's, because the engine may read it as a part of
        a column. Raises `RefusedError`.
        """
        group, dot, part = fold(name.name).partition(".")
        if dot and part not in self._parts.get(group, ()):
            raise RefusedError(
                "column",
                f"{name.name!r} in quotes can be a column or a part of one",
                "write a part of a column without quotes, as in column.part, and a text in single"
                " quotes",
                node=name,
            )

    def _join(self, column: exp.Column, place: int) -> None:
        parts = column.parts
        group = parts[place].name
        joined = f"{group}.{parts[place + 1].name}"
        if fold(group) in self._sources:
            raise RefusedError(
                "column",
                f"{joined} can be a column of {group!r} or a part of the column {group!r}",
                "give the table another alias, and write it before the name",
                node=column,
            )
        name = exp.to_identifier(joined, quoted=True)
        kept = [*parts[:place], name, *parts[place + 2 :]]
        kept.reverse()
        for key, part in zip(("this", "table", "db", "catalog"), kept, strict=False):
            column.set(key, part.copy())
        for key in ("this", "table", "db", "catalog")[len(kept) :]:
            column.set(key, None)
