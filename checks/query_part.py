"""One SELECT of a query: its tables, conditions and figures, and the SQL that counts its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from longtable.checks.question import Question
from longtable.checks.vocabulary import name_words
from longtable.tools.catalog import Catalog, Column, Table, fold, quoted
from longtable.tools.cells import clip
from longtable.tools.sql.narrow import owner_of, sources_of
from longtable.tools.sql.parsing import written

STEPS: dict[type[exp.Expr], int] = {exp.GT: 1, exp.GTE: 0, exp.LT: -1, exp.LTE: 0}
"""Comparisons by size, each with the distance from the written number to the first or last whole
number that fits.
"""


class Comparison(NamedTuple):
    """One comparison by size. A BETWEEN becomes two."""

    condition: exp.Expr
    side: exp.Expr
    """The expression that is compared with `value`."""
    kind: type[exp.Expr]
    value: exp.Expr


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that are joined by AND."""
    if isinstance(condition, exp.And):
        return list(condition.flatten())
    return [condition]


def row_key(table: Table) -> Sequence[str]:
    """Return the columns that tell one row from another: the key, or all columns."""
    return table.primary_key or [column.name for column in table.columns]


@dataclass(frozen=True)
class Part:
    """One SELECT of a query, and the meaning of its columns."""

    select: exp.Select
    root: exp.Expr
    """The whole query."""
    question: Question
    dialect: str
    catalog: Catalog

    @cached_property
    def tables(self) -> Mapping[str, Table | None]:
        """Return the tables that it reads, by their folded names in the query. The value is None
        for a subquery.
        """
        return sources_of(self.select, self.catalog, self.dialect)

    def table_words(self, alias: str) -> list[str]:
        """Return the words of a table's name."""
        return name_words(getattr(self.tables.get(alias), "bare_name", ""))

    @cached_property
    def joins(self) -> list[exp.Join]:
        """Return its joins in order."""
        return self.select.args.get("joins") or []

    @cached_property
    def is_list(self) -> bool:
        """Return whether each row of the joined tables is a row of the result."""
        return (
            self.select is self.root
            and not self.select.args.get("distinct")
            and not self.select.find(exp.AggFunc, exp.Group)
        )

    @cached_property
    def conditions(self) -> list[exp.Expr]:
        """Return the conditions that all must hold."""
        where = self.select.args.get("where")
        return [] if where is None else conjuncts(where.this)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Return the comparisons by size that must hold."""
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
        """Return its sums, averages and counts of rows. Inner queries are left out."""
        nodes = self.select.find_all(exp.Sum, exp.Avg, exp.Count)
        return [node for node in nodes if self._is_own_aggregate(node)]

    def _is_own_aggregate(self, node: exp.Expr) -> bool:
        if node.parent_select is not self.select:
            return False
        return not node.find(exp.Distinct) and not node.find_ancestor(exp.Window)

    def owners(self, node: exp.Expr) -> set[str]:
        """Return the names of the tables that a node reads, "" for an unknown one."""
        return {owner_of(column, self.tables) for column in node.find_all(exp.Column)}

    def is_idle(self, join: exp.Join) -> bool:
        """Return whether only the join's own condition reads the joined table."""
        readers = {fold(join.this.alias_or_name), ""}
        for node in self.select.find_all(exp.Column, exp.Star):
            if node.find_ancestor(exp.Join) is join:
                continue
            if isinstance(node, exp.Star) or self.owners(node) & readers:
                return False
        return True

    def is_used_outside_joins(self, alias: str) -> bool:
        """Return whether a condition, a group or a figure reads a table."""
        columns = self.select.find_all(exp.Column)
        return any(
            self.owners(each) == {alias} for each in columns if not each.find_ancestor(exp.Join)
        )

    def catalog_column(self, node: object) -> Column | None:
        """Return the catalogue's column of a column node, None for any other node."""
        if not isinstance(node, exp.Column):
            return None
        table = self.tables.get(owner_of(node, self.tables))
        if table is None:
            return None
        name = fold(node.name)
        return next((column for column in table.columns if fold(column.name) == name), None)

    def may_be_null(self, node: exp.Expr) -> bool:
        """Return whether a node is a column that may be empty."""
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
        """Return SQL for a column of a table, by the table's name in the query."""
        table = self.tables[alias]
        owner = table.bare_name if table and fold(table.bare_name) == alias else alias
        return f"{quoted(owner)}.{quoted(name)}"

    def identity(self, *aliases: str) -> list[str]:
        """Return SQL for the columns that tell one row of these tables from another."""
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
        """Return a node's text for the template of a finding."""
        return clip(self.text(node), 80).replace("{", "{{").replace("}", "}}")

    def count(
        self,
        *conditions: str,
        without: exp.Expr | None = None,
        joins: int | None = None,
        figure: str = "COUNT(*)",
    ) -> str:
        """Return SQL that counts the rows, before grouping, for which these conditions hold too.
        `without`: one of its own conditions to leave out. `joins`: use only so many of the first
        joins.
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
        """Return SQL for two counts: the distinct keys in each group, added up, and the rows that
        hold them.
        """
        group = self.select.args.get("group")
        keys_of_groups = [] if group is None else group.expressions
        groups = [self._group_text(key) for key in keys_of_groups]
        rows = self.count(f"{keys[0]} IS NOT NULL", figure="COUNT(*) AS n")
        return f"SELECT COUNT(*), SUM(n) FROM ({rows} GROUP BY {', '.join([*groups, *keys])}) AS r"

    def _group_text(self, key: exp.Expr) -> str:
        """Return SQL for a key of GROUP BY. The key may be the number or the alias of a column of
        the SELECT.
        """
        items = self.select.expressions
        if key.is_int:
            return self.text(items[int(key.name) - 1].unalias())
        if self.catalog_column(key):
            return self.text(key)
        by_alias = {fold(item.alias): item.this for item in items if isinstance(item, exp.Alias)}
        return self.text(by_alias.get(fold(key.name), key))
