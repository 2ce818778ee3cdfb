"""One SELECT of a query: its tables, conditions and figures, and the SQL that counts its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from longtable.checks.question import Question
from longtable.checks.vocabulary import name_words
from longtable.tools.catalog import Catalog, Column, Table, fold
from longtable.tools.cells import clip
from longtable.tools.sql.narrow import owner_of, sources_of
from longtable.tools.sql.parsing import dialect_of, written

STEPS: dict[type[exp.Expr], int] = {exp.GT: 1, exp.GTE: 0, exp.LT: -1, exp.LTE: 0}
"""The kinds of comparison by size. The number is added to a written whole number to get the first
or last whole number that fits: `x > 5` begins with 6.
"""


class Comparison(NamedTuple):
    """One comparison by size. A BETWEEN counts as two comparisons."""

    condition: exp.Expr
    side: exp.Expr
    """The expression that is compared with `value`."""
    kind: type[exp.Expr]
    value: exp.Expr


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that AND joins; the condition itself if there is no AND."""
    if isinstance(condition, exp.And):
        return list(condition.flatten())
    return [condition]


def row_key(table: Table) -> Sequence[str]:
    """Return the columns that identify a row of a table: the primary key, or all columns if there
    is none.
    """
    return table.primary_key or [column.name for column in table.columns]


@dataclass(frozen=True)
class Part:
    """One SELECT of a query, and the meaning of its columns."""

    select: exp.Select
    root: exp.Expr
    """The whole query that the SELECT belongs to."""
    question: Question
    dialect: str
    catalog: Catalog

    @cached_property
    def tables(self) -> Mapping[str, Table | None]:
        """Return the tables in FROM by their folded names or aliases. The value is None for a
        source that is not a table, such as a subquery.
        """
        return sources_of(self.select, self.catalog, self.dialect)

    def table_words(self, alias: str) -> list[str]:
        """Return the words of a table's name, for its name or alias in the query."""
        return name_words(getattr(self.tables.get(alias), "bare_name", ""))

    @cached_property
    def joins(self) -> list[exp.Join]:
        """Return the joins of this SELECT in order."""
        return self.select.args.get("joins") or []

    @cached_property
    def is_list(self) -> bool:
        """Return whether the result has one row for each row of the joined tables."""
        return (
            self.select is self.root
            and not self.select.args.get("distinct")
            and not self.select.find(exp.AggFunc, exp.Group)
        )

    @cached_property
    def conditions(self) -> list[exp.Expr]:
        """Return the conditions of WHERE, all of which must hold."""
        where = self.select.args.get("where")
        return [] if where is None else conjuncts(where.this)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Return the comparisons by size in WHERE, all of which must hold."""
        between = [each for each in self.conditions if isinstance(each, exp.Between)]
        return [
            *(
                Comparison(each, each.this, type(each), each.expression)
                for each in self.conditions
                if isinstance(each, tuple(STEPS))
            ),
            *(Comparison(each, each.this, exp.GTE, each.args["low"]) for each in between),
            *(Comparison(each, each.this, exp.LTE, each.args["high"]) for each in between),
        ]

    @cached_property
    def aggregates(self) -> list[exp.Expr]:
        """Return the sums, averages and counts of this SELECT. Those of inner queries, in windows,
        or with DISTINCT are left out.
        """
        nodes = self.select.find_all(exp.Sum, exp.Avg, exp.Count)
        return [node for node in nodes if self._is_own_aggregate(node)]

    def _is_own_aggregate(self, node: exp.Expr) -> bool:
        if node.parent_select is not self.select:
            return False
        return not node.find(exp.Distinct) and not node.find_ancestor(exp.Window)

    def owners(self, node: exp.Expr) -> set[str]:
        """Return the names or aliases of the tables that a node reads. "" stands for an unknown
        table.
        """
        return {owner_of(column, self.tables) for column in node.find_all(exp.Column)}

    def is_idle(self, join: exp.Join) -> bool:
        """Return whether nothing but the condition of the join reads the joined table."""
        readers = {fold(join.this.alias_or_name), ""}
        for node in self.select.find_all(exp.Column, exp.Star):
            if node.find_ancestor(exp.Join) is join:
                continue
            if isinstance(node, exp.Star) or self.owners(node) & readers:
                return False
        return True

    def is_used_outside_joins(self, alias: str) -> bool:
        """Return whether anything outside the conditions of joins reads a column of this table."""
        columns = self.select.find_all(exp.Column)
        return any(
            self.owners(each) == {alias} for each in columns if not each.find_ancestor(exp.Join)
        )

    def catalog_column(self, node: object) -> Column | None:
        """Return the column of the catalogue that a node names. None if it names none."""
        if not isinstance(node, exp.Column):
            return None
        table = self.tables.get(owner_of(node, self.tables))
        if table is None:
            return None
        name = fold(node.name)
        return next((column for column in table.columns if fold(column.name) == name), None)

    def may_be_null(self, node: exp.Expr) -> bool:
        """Return whether a node is a column that may contain NULL."""
        column = self.catalog_column(node)
        if column is None or not column.nullable:
            return False
        for table in self.tables.values():
            if table is None or column.name in table.primary_key:
                continue
            if any(each is column for each in table.columns):
                return True
        return False

    def column(self, alias: str, name: str) -> str:
        """Return SQL for a column of the table that has this name or alias in the query."""
        table = self.tables[alias]
        owner = table.bare_name if table and fold(table.bare_name) == alias else alias
        rules = dialect_of(self.dialect)
        return f"{rules.quoted(owner)}.{rules.quoted(name)}"

    def identity(self, *aliases: str) -> list[str]:
        """Return SQL for the columns that identify a row of these tables."""
        columns: list[str] = []
        for alias in aliases:
            table = self.tables[alias]
            if table:
                columns += [self.column(alias, name) for name in row_key(table)]
        return columns

    def text(self, node: exp.Expr) -> str:
        """Return a node as SQL."""
        return written(node, self.dialect)

    def short(self, node: exp.Expr) -> str:
        """Return the SQL of a node, shortened, for use in the template of a finding."""
        return clip(self.text(node), 80).replace("{", "{{").replace("}", "}}")

    def count(
        self,
        *conditions: str,
        without: exp.Expr | None = None,
        joins: int | None = None,
        figure: str = "COUNT(*)",
    ) -> str:
        """Return SQL that counts the rows of this SELECT before grouping, with further conditions.

        `without` is one of the SELECT's own conditions to leave out. With `joins`, only this many
        of its first joins are used.
        """
        with_ = self.root.args.get("with_")
        start = self.text(with_) if with_ else ""
        sources = [self.select.args["from_"], *self.joins[:joins]]
        source = " ".join(map(self.text, sources))
        own = [each for each in self.conditions if each is not without]
        if joins is not None:
            read = set(list(self.tables)[: joins + 1])
            own = [each for each in own if self.owners(each) <= read]
        where = " AND ".join(f"({each})" for each in [*map(self.text, own), *conditions])
        return f"{start} SELECT {figure} {source} WHERE {where}"

    def repeats(self, keys: Sequence[str]) -> str:
        """Return SQL for two figures: the number of distinct keys, counted in each group and added
        up, and the number of rows with these keys.
        """
        group = self.select.args.get("group")
        keys_of_groups = [] if group is None else group.expressions
        groups = [self._group_text(key) for key in keys_of_groups]
        rows = self.count(f"{keys[0]} IS NOT NULL", figure="COUNT(*) AS n")
        return f"SELECT COUNT(*), SUM(n) FROM ({rows} GROUP BY {', '.join([*groups, *keys])}) AS r"

    def _group_text(self, key: exp.Expr) -> str:
        """Return SQL for a key of GROUP BY. The key may be an expression, or the number or alias of
        a column of the SELECT.
        """
        items = self.select.expressions
        if key.is_int:
            return self.text(items[int(key.name) - 1].unalias())
        if self.catalog_column(key):
            return self.text(key)
        by_alias = {fold(item.alias): item.this for item in items if isinstance(item, exp.Alias)}
        return self.text(by_alias.get(fold(key.name), key))
