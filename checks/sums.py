"""Check for figures of the wrong column: a sum without a needed factor, a sum with the price of
another table, or a figure of another column than the question names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from longtable.checks.query_part import Part
from longtable.checks.vocabulary import FACTORS, NAME_WORDS, name_words
from longtable.tools.catalog import Column, ForeignKey, Table, fold
from longtable.tools.schema.sampling import NUMBER
from longtable.tools.sql.narrow import owner_of
from longtable.tools.sql.parsing import dialect_of
from longtable.tools.sql.verdict import Probe


class _NumberColumn(NamedTuple):
    """A column of numbers in a table that the query reads. `words` are the words of the column's
    name.
    """

    alias: str
    table: Table
    column: Column
    words: list[str]


@dataclass(frozen=True)
class _Measure:
    """One sum, average, maximum or minimum in a SELECT."""

    part: Part
    node: exp.Expr

    @property
    def text(self) -> str:
        return self.part.short(self.node)

    @property
    def is_sum(self) -> bool:
        return isinstance(self.node, exp.Sum)

    @cached_property
    def columns(self) -> list[exp.Column]:
        return list(self.node.find_all(exp.Column))

    @cached_property
    def prices(self) -> dict[str, exp.Column]:
        """Return the columns of prices that the sum adds up, by the names of their tables. Empty if
        this is not a sum.
        """
        if not self.is_sum:
            return {}
        return {
            owner_of(column, self.part.tables): column
            for column in self.columns
            if NAME_WORDS["price"] & {*name_words(column.name)}
        }

    @cached_property
    def words_asked(self) -> set[str]:
        """Return the words of the question that are also in the names of the measured columns."""
        words: set[str] = set()
        for column in self.columns:
            words.update(filter(self.part.question.names, name_words(column.name)))
        return words - NAME_WORDS["general"]


def measure_faults(part: Part) -> Iterator[Probe]:
    """Find sums that lack a factor, sums that use the price of another table, and figures of
    another column than the question names.
    """
    every = list(_number_columns(part))
    read = {fold(column.name) for column in part.root.find_all(exp.Column)}
    unread = [each for each in every if fold(each.column.name) not in read]
    for node in part.select.find_all(exp.Sum, exp.Avg, exp.Max, exp.Min):
        measure = _Measure(part, node)
        for each in unread:
            yield from _missing_factor(measure, each)
        for owner in measure.prices:
            for each in every:
                yield from _other_price(measure, owner, each)
        for each in unread:
            yield from _other_column(measure, each)
        yield from _added_rates(measure)
        yield from _other_totals(measure)


def _number_columns(part: Part) -> Iterator[_NumberColumn]:
    for alias, table in part.tables.items():
        for column in table.columns if table else ():
            if table and NUMBER.search(column.type):
                yield _NumberColumn(alias, table, column, name_words(column.name))


def _missing_factor(measure: _Measure, other: _NumberColumn) -> Iterator[Probe]:
    """Find a factor that the sum leaves out: a discount or quantity in the same table as the
    price.
    """
    part = measure.part
    neutral = FACTORS.get("".join(dict.fromkeys(other.words)))
    if neutral is None or other.alias not in measure.prices:
        return
    if neutral == 0 and part.question.says("gross"):
        return
    yield Probe(
        "measure",
        f"{measure.text} leaves out {other.column.name}, not {neutral} in {{0:,}} rows",
        part.count(f"{part.column(other.alias, other.column.name)} <> {neutral}"),
    )


def _other_price(measure: _Measure, owner: str, other: _NumberColumn) -> Iterator[Probe]:
    """Find a column with the same name as the summed price, in another table that the sum also
    reads. The other column may hold the price at the time of sale.
    """
    part = measure.part
    price = measure.prices[owner]
    is_namesake = owner != other.alias and fold(price.name) == fold(other.column.name)
    if not is_namesake or other.alias not in part.owners(measure.node):
        return
    if part.question.says("list price"):
        return
    yield Probe(
        "measure",
        f"{measure.text}: {{0:,}} prices are not those of {other.alias}",
        part.count(f"{part.column(other.alias, other.column.name)} <> {part.text(price)}"),
    )


def _other_column(measure: _Measure, other: _NumberColumn) -> Iterator[Probe]:
    """Find a column that fits the question's words better than the measured column."""
    table_words = {*name_words(other.table.bare_name)}
    special = [word for word in other.words if word not in NAME_WORDS["general"] | table_words]
    if not measure.columns or not special or "id" in other.words:
        return
    if not all(map(measure.part.question.names, special)):
        return
    if measure.words_asked - table_words < {*special}:
        yield Probe(
            "measure",
            f"the question names {other.alias}.{other.column.name}, the query measures"
            f" {measure.text}",
        )


def _added_rates(measure: _Measure) -> Iterator[Probe]:
    column = measure.node.this
    if not measure.is_sum or not isinstance(column, exp.Column):
        return
    if NAME_WORDS["rate"] & {*name_words(column.name)}:
        yield Probe("measure", f"{measure.text} adds up rates, of which a sum is no figure")


def _other_totals(measure: _Measure) -> Iterator[Probe]:
    """Find columns of totals, such as the total of an order, that should equal the sums of their
    lines.
    """
    part = measure.part
    if part.question.says("gross"):
        return
    owners = part.owners(measure.node)
    for alias, table in part.tables.items():
        if table is None or {*measure.prices} != {alias} or owners != {alias}:
            continue
        for key in table.foreign_keys:
            head = part.catalog.find(key.table)
            for column in head.columns if head and len(key.columns) == 1 else ():
                if head and {*name_words(column.name)} & NAME_WORDS["total"]:
                    sums = _sums_by(measure, key, alias)
                    yield _total_probe(measure, key, head, column, sums)


def _sums_by(measure: _Measure, key: ForeignKey, alias: str) -> str:
    """Return SQL for the sums of the lines, with one sum for each row that the lines belong to,
    such as an order.
    """
    part = measure.part
    table = part.tables[alias]
    rules = dialect_of(part.dialect)
    source = table.sql_name if table else alias
    return (
        f"SELECT {rules.quoted(key.columns[0])} AS k, {part.text(measure.node)} AS s"
        f" FROM {source} AS {rules.quoted(alias)} GROUP BY 1"
    )


def _total_probe(
    measure: _Measure, key: ForeignKey, head: Table, column: Column, sums: str
) -> Probe:
    return Probe(
        "other_route",
        f"{measure.text} differs from {head.name}.{column.name} in {{0:,}} of its rows",
        f"SELECT COUNT(*) FROM {head.sql_name} AS h JOIN ({sums}) AS r"
        f" ON r.k = h.{head.sql_column(key.referenced_columns[0])}"
        f" WHERE ABS(h.{head.sql_column(column.name)} - r.s) > 0.01",
    )
