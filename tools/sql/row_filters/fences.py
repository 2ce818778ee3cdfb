"""Put row filters where a query reads its tables.

With the filter `region = :region`, `orders` becomes

    (SELECT "id", "region" FROM "main"."orders" WHERE ("region" = ?) OFFSET 0) AS orders

The clause at the end is the dialect's fence: without it the engine may test a condition of the
query, such as `1 / (total - 42) > 0`, on rows that the filter leaves out, and its error would tell
them. Values are never in the text, only marks.

The text is parsed again before it may run. With the filters taken out it must be the text that was
checked, and each read of a filtered table must stand behind its filter.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType, exp

from longtable.tools.catalog import Catalog, Column, RowFilter, Table, fold, quoted
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.masks.masked_names import ROW_IDS
from longtable.tools.sql.narrow import without_schema
from longtable.tools.sql.parsing import (
    MAX_WRITTEN_CHARS,
    RefusedError,
    nodes_of,
    statement,
    tokens_of,
)
from longtable.tools.sql.row_filters.row_conditions import column_of, condition_of, parameter_name
from longtable.tools.sql.verdict import Mark

Resolve = Callable[[exp.Expr], Table | None]
Render = Callable[[exp.Expr], str]
Source = Mark | int
"""What is bound at a mark: a row parameter with its kind, or the number of a parameter of our own
SQL, counted from 0.
"""
HEADING_CHARS = 60
"""The most characters of the name of a result's column that is computed from a filtered table."""
_MOVED = ("joins", "laterals", "pivots")
_KEPT = {"this", "db", "catalog", "alias", "only", *_MOVED}
"""What a table in FROM may have. A sample would be drawn from hidden rows, too."""


@dataclass(frozen=True)
class Fenced:
    """A text with row filters, and what is bound at its marks, in the order of the text."""

    sql: str
    marks: tuple[Source, ...]


@dataclass(frozen=True)
class _Place:
    """A read of a filtered table."""

    node: exp.Table
    table: Table
    row_filter: RowFilter


class Fences:
    """Puts the row filters of a catalogue into trees of one dialect. `resolve` returns the table
    that a node names, `render` the text of a tree, `heading` the text of an item as it is shown.
    """

    def __init__(
        self, catalog: Catalog, dialect: str, *, resolve: Resolve, render: Render, heading: Render
    ) -> None:
        self.catalog = catalog
        self.dialect = dialect
        self.resolve = resolve
        self.render = render
        self.heading = heading

    def put(self, tree: exp.Expr, *, own: Sequence[str] = ()) -> Fenced | None:
        """Return the text of a checked tree with its row filters. Return None if the tree reads no
        filtered table. `own` are the names that stand for marks of our own SQL.

        Raises `RefusedError` if a filter cannot stand where the table is read, or if the text does
        not mean the tree.
        """
        if not self._places(tree):
            return None
        tree = tree.copy()
        tables = [place.table for place in self._places(tree)]
        for column in list(tree.find_all(exp.Column)):
            self._check_row_id(column, tables)
            without_schema(column, tables)
        _name_columns(tree, self._places(tree), self.heading)
        names = _Names(self.render(tree), own)
        for place in self._places(tree):
            place.node.replace(self._fence(place, names))
        text, marks = names.marked(self.render(tree), self.dialect)
        self._check(tree, text, names)
        return Fenced(text, marks)

    def _check_row_id(self, column: exp.Column, tables: Sequence[Table]) -> None:
        """Refuse the number of a row, which SQLite gives as NULL for a subquery. Raises
        `RefusedError`.
        """
        name = fold(column.name)
        if not dialect_of(self.dialect).row_ids or name not in ROW_IDS:
            return
        if not self.catalog.has_column(name):
            raise RefusedError(
                "rows",
                f"{column.name} of {tables[0].name!r} cannot be read, because only some of its rows"
                " are seen",
                "use a column of the table",
                node=column,
            )

    def _places(self, tree: exp.Expr) -> list[_Place]:
        places: list[_Place] = []
        for node in tree.find_all(exp.Table):
            table = self.resolve(node)
            row_filter = self.catalog.row_filter(table) if table is not None else None
            if table is not None and row_filter is not None:
                places.append(_Place(node, table, row_filter))
        return places

    def _fence(self, place: _Place, names: "_Names") -> exp.Subquery:
        node = place.node
        table = place.table
        if more := [name for name, value in node.args.items() if value and name not in _KEPT]:
            raise RefusedError(
                "rows",
                f"{more[0]} cannot stand beside {table.name!r}, of which only some rows are seen",
                f"read it in a subquery: (SELECT * FROM {table.sql_name})",
                node=node,
            )
        source = exp.Table(this=_name(table.bare_name), db=_name(table.schema))
        if node.args.get("only"):
            source.set("only", node.args["only"])
        # By their bare names: within a PIVOT of DuckDB sqlglot writes no others.
        columns = [exp.Column(this=_name(column.name)) for column in table.columns]
        select = exp.select(*columns).from_(source).where(self._condition(place, names))
        for part, value in _fence_parts(self.dialect).items():
            select.set(part, value.copy())
        alias = node.args.get("alias")
        new_alias = (
            alias.copy()
            if isinstance(alias, exp.TableAlias)
            else exp.TableAlias(this=node.this.copy())
        )
        fence = exp.Subquery(this=select, alias=new_alias)
        for part in _MOVED:
            if moved := node.args.get(part):
                fence.set(part, moved)  # moved, not copied: there may be places in them
        return fence

    def _condition(self, place: _Place, names: "_Names") -> exp.Expr:
        tree, _ = condition_of(place.row_filter.text, self.dialect)
        kinds = dict(place.row_filter.parameters)
        # Also those that the policy denies.
        columns = tuple(Column(name, "") for name in place.row_filter.columns)
        whole = replace(place.table, columns=columns)

        def put(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Placeholder):
                name = parameter_name(node)
                return exp.Var(this=names.new((name, kinds.get(name, ""))))
            if isinstance(node, exp.Column):
                column = column_of(node, whole, self.dialect)
                return exp.Column(this=_name(column.name))
            return node

        return exp.Paren(this=tree.copy().transform(put))

    def _check(self, tree: exp.Expr, text: str, names: "_Names") -> None:
        """Raise `RefusedError` unless the text, as it is parsed, is the tree."""
        again = statement(text, self.dialect)
        there = self._taken_apart(again, names)
        here = self._taken_apart(tree, names)
        if there != here:
            raise RefusedError(
                "syntax",
                "the query cannot be written with its row filters in a form that is read the same"
                " way",
                "write it another way",
            )

    def _taken_apart(self, tree: exp.Expr, names: "_Names") -> tuple[str, list[str]]:
        """Return the text of a tree without what stands behind its fences, and each of these parts.
        Raises `RefusedError` if a filtered table is read without a fence.
        """
        tree = tree.copy()
        for node in nodes_of(tree):
            if isinstance(node, exp.Placeholder | exp.Parameter) or names.is_mark(node):
                node.replace(exp.Var(this="longtable_mark"))
        inner: list[str] = []
        for place in self._places(tree):
            select = place.node.find_ancestor(exp.Select)
            above = select.parent if select is not None else None
            sources = select.args.get("from_") if select is not None else None
            is_fence = (
                isinstance(above, exp.Subquery)
                and sources is not None
                and sources.this is place.node
                and not (select is not None and select.args.get("joins"))
            )
            if not is_fence or select is None:
                raise RefusedError("rows", f"{place.table.name!r} is read without its row filter")
            inner.append(self.render(select))
            select.replace(exp.select(exp.Literal.number(len(inner))))
        return self.render(tree), inner


class _Names:
    """Names that stand for marks while a text is written, so that their order in the text is
    known.
    """

    def __init__(self, text: str, own: Sequence[str]) -> None:
        self._start = "longtable_row"
        while self._start in text:
            self._start += "_x"
        self._sources: dict[str, Source] = {name: place for place, name in enumerate(own)}

    def new(self, source: Source) -> str:
        """Return the name of a further mark."""
        name = f"{self._start}{len(self._sources)}z"
        self._sources[name] = source
        return name

    def is_mark(self, node: exp.Expr) -> bool:
        """Return whether a node is the name of a mark."""
        return isinstance(node, exp.Var | exp.Column) and node.name in self._sources

    def marked(self, text: str, dialect: str) -> tuple[str, tuple[Source, ...]]:
        """Return the text with marks in place of the names, and what is bound at each mark."""
        marks: list[Source] = []

        def mark(match: re.Match[str]) -> str:
            marks.append(self._sources[match[0]])
            return f"${len(marks)}" if dialect_of(dialect).numbered_marks else "?"

        if not self._sources:
            return text, ()
        known = "|".join(map(re.escape, sorted(self._sources, key=len, reverse=True)))
        return re.sub(rf"\b(?:{known})\b", mark, text), tuple(marks)


def _fence_parts(dialect: str) -> Mapping[str, exp.Expr]:
    tree = statement(f"SELECT 1 {dialect_of(dialect).row_fence}", dialect)
    return {part: tree.args[part] for part in ("limit", "offset") if tree.args.get(part)}


def _name_columns(tree: exp.Expr, places: Sequence[_Place], heading: Render) -> None:
    """Give each column of a result that is computed from a filtered table the name that it would
    have without the filter. An engine may name it after its text, which then shows the filter.
    The places must be looked up again afterwards, because items are replaced.
    """
    reads = {id(place.node) for place in places}
    for select in list(tree.find_all(exp.Select)):
        for item in list(select.expressions):
            if isinstance(item, exp.Alias | exp.Column | exp.Star) or item.alias:
                continue
            if any(id(node) in reads for node in nodes_of(item)):
                name = heading(item)[:HEADING_CHARS]
                item.replace(exp.alias_(item.copy(), _name(name)))


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def with_named_marks(sql: str, dialect: str) -> tuple[str, list[str]]:
    """Return our own SQL with names in place of its marks, and these names in the order of the
    parameters.
    """
    tokens = tokens_of(sql, dialect, most=MAX_WRITTEN_CHARS)
    start = "longtable_own"
    while start in sql:
        start += "_x"
    names: list[str] = []
    parts: list[str] = []
    done = 0
    for place, token in enumerate(tokens):
        number = _number_of_mark(tokens, place, len(names))
        if number is None:
            continue
        end = tokens[place + 1].end if token.token_type == TokenType.PARAMETER else token.end
        parts += [sql[done : token.start], f"{start}{number}z"]
        done = end + 1
        while len(names) <= number:
            names.append(f"{start}{len(names)}z")
    return "".join([*parts, sql[done:]]), names


def _number_of_mark(tokens: Sequence[Token], place: int, count: int) -> int | None:
    """Return the number of the parameter, from 0, whose mark begins at a token; None if none
    does.
    """
    token = tokens[place]
    if token.token_type == TokenType.PLACEHOLDER and token.text == "?":
        return count
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    if token.token_type == TokenType.PARAMETER and following is not None:
        return int(following.text) - 1 if following.text.isdecimal() else None
    return None


def closed_view_reason(catalog: Catalog, name: str) -> str | None:
    """Return why a view cannot be read, None if no row filter closes it."""
    table = catalog.closed_views.get(fold(name))
    if table is None:
        return None
    # A table that the policy hides is not named.
    read = quoted(table) if catalog.find(table) is not None else "a table"
    return f"the view {name!r} cannot be read: it reads {read}, of which only some rows are seen"
