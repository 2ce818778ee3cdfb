"""The tables and columns of the database that the policy lets a model see."""

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from string import ascii_uppercase
from typing import Literal, NamedTuple

NEAREST = 5


@dataclass(frozen=True)
class Column:
    """One column of a table. `type` is the type's name as the engine writes it."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    masked: bool = False
    """Whether models must not see the values of this column. `Database.read` finds only NULL in
    such a column.
    """
    computed: bool = False
    """Whether this column is computed from a masked column, by a view or as a generated column. A
    query may select a computed column, but may do nothing else with it.
    """
    generated_by: str = ""
    """The SQL that computes a generated column: its expression, or the whole CREATE TABLE
    statement.
    """


@dataclass(frozen=True)
class ForeignKey:
    """A foreign key: `columns` refer, in this order, to `referenced_columns` of the other table."""

    columns: tuple[str, ...]
    table: str
    referenced_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One table or view. `name` is the name it is shown under. If SQL must write the schema
    (`qualified`), this name is `schema.name`.
    """

    name: str
    kind: Literal["table", "view"]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    comment: str | None = None
    schema: str = "main"
    bare: str = ""
    """The name within the schema, if it differs from `name`; else empty."""
    qualified: bool = False
    rows_estimate: int | None = None
    """The number of rows by the server's statistics, None if the server keeps no statistics for it.
    """
    quote: str = field(default='"', repr=False)
    """The mark that quotes names in the engine's SQL."""

    @property
    def bare_name(self) -> str:
        """Return the table's name without the schema."""
        return self.bare or self.name

    @property
    def has_masks(self) -> bool:
        """Return whether any column is masked."""
        return any(column.masked for column in self.columns)

    @property
    def sql_name(self) -> str:
        """Return the table's name quoted for SQL, with the schema if SQL must write it."""
        name = quoted(self.bare_name, self.quote)
        return f"{quoted(self.schema, self.quote)}.{name}" if self.qualified else name

    def sql_column(self, name: str) -> str:
        """Return the name of a column quoted for SQL."""
        return quoted(name, self.quote)


@dataclass(frozen=True)
class RowFilter:
    """A condition that rows of a table must meet to exist for a query. It was checked against the
    table.
    """

    text: str
    """The condition as the operator wrote it, with parameters as `:name`."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Name and kind of each parameter. The kind is that of the column with which the parameter is
    compared: "text", "number", "boolean", "time", or "" if it is not known.
    """
    columns: tuple[str, ...] = ()
    """The columns that the condition reads."""


class Expansion(NamedTuple):
    """What a CTE or view expands to. `columns` pairs the folded name of each column with the number
    of column references that this column expands to. `sources` and `references` are totals.
    """

    sources: int = 0
    references: int = 0
    columns: Sequence[tuple[str, int]] = ()


def each_column(tables: Iterable[Table]) -> Iterator[tuple[Table, Column]]:
    """Yield each pair of a table and one of its columns."""
    for table in tables:
        for column in table.columns:
            yield table, column


@dataclass(frozen=True)
class Catalog:
    """The tables that can be read. `database_names` are the names of the database itself in SQL."""

    tables: tuple[Table, ...]
    database_names: frozenset[str] = frozenset()
    hidden_functions: frozenset[str] = field(default=frozenset(), repr=False)
    """Functions that the database defines itself. Queries may not call them, because nothing checks
    what they read.
    """
    exact_case: bool = False
    """Whether the engine treats the quoted names `Order` and `order` as different names."""
    own_types: frozenset[str] = frozenset()
    """Types that the database defines itself and that a query may cast to: enums and domains. The
    row types of tables are never among them.
    """
    types_list_hidden_values: bool = False
    """Whether the name of a type lists values of a denied or masked column, as an enum of DuckDB
    does. Queries may then not name types that list values.
    """
    hidden_columns: Mapping[tuple[str, str], frozenset[str]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """The columns that the policy denies, by schema and name of their table. A table listed here
    may itself be hidden.
    """
    row_filters: Mapping[tuple[str, str], RowFilter] = field(
        default_factory=dict, repr=False, compare=False
    )
    """The filters of rows, by schema and name of their table."""
    closed_views: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Views that cannot be read because they read a table with a row filter: by the view's folded
    name, with and without its schema, the name of the table.
    """
    view_sql: Mapping[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)
    """The SQL of all views, by schema and name. Hidden views are included, because this SQL is used
    to count the sources that a query reads.
    """
    view_expansions: dict[str, Expansion] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache: the expansion of each view, by the view's folded name."""

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Table]:
        return {
            (self._key(table.schema), self._key(table.bare_name)): table for table in self.tables
        }

    @cached_property
    def _by_bare_name(self) -> Mapping[str, Table]:
        return {self._key(table.bare_name): table for table in self.tables if not table.qualified}

    @cached_property
    def _by_shown_name(self) -> Mapping[str, Table]:
        full = {
            f"{table.schema}.{table.bare_name}".casefold(): table for table in reversed(self.tables)
        }
        return full | {table.name.casefold(): table for table in reversed(self.tables)}

    def _key(self, name: str) -> str:
        return name if self.exact_case else fold(name)

    def resolve(self, name: str, *, schema: str = "", database: str = "") -> Table | None:
        """Find the table that a name in SQL means. Return None if there is no such table, or if the
        policy hides it.
        """
        names = {self._key(known) for known in self.database_names}
        if database and self._key(database) not in names:
            return None
        if not schema:
            return self._by_bare_name.get(self._key(name))
        table = self._by_name.get((self._key(schema), self._key(name)))
        if table is None and not database and not self.exact_case and self._key(schema) in names:
            table = self._by_bare_name.get(self._key(name))
        return table

    def find(self, name: str) -> Table | None:
        """Find a table by the name under which it is shown; None if there is none. Case, quotes and
        the default schema do not matter.
        """
        plain = name.strip()
        exact = next((table for table in self.tables if table.name == plain), None)
        unquoted = re.sub(
            r'"([^"]*)"|`([^`]*)`|\[([^\]]*)\]',
            lambda match: match[1] or match[2] or match[3] or "",
            plain,
        )
        return (
            exact
            or self._by_shown_name.get(plain.casefold())
            or self._by_shown_name.get(unquoted.casefold())
        )

    def row_filter(self, table: Table) -> RowFilter | None:
        """Return the row filter of a table, None if it has none."""
        return self.row_filters.get((table.schema, table.bare_name))

    @cached_property
    def engine_hidden_columns(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the denied columns that no query may make the engine read. A row filter may read
        denied columns of its own table.
        """
        hidden: dict[tuple[str, str], frozenset[str]] = {}
        for key, names in self.hidden_columns.items():
            row_filter = self.row_filters.get(key)
            left = names.difference(row_filter.columns) if row_filter else names
            if left:
                hidden[key] = left
        return hidden

    @property
    def is_rewritten(self) -> bool:
        """Return whether the policy changes what SQL reads: denied or masked columns, row
        filters.
        """
        return bool(self.hidden_columns or self.row_filters) or self.has_masks

    @cached_property
    def has_masks(self) -> bool:
        """Return whether any column is masked."""
        return any(column.masked for _, column in each_column(self.tables))

    def has_column(self, name: str) -> bool:
        """Return whether any table has a column of this name, whatever the case."""
        return fold(name) in self._column_names

    @cached_property
    def _column_names(self) -> frozenset[str]:
        return frozenset(fold(column.name) for _, column in each_column(self.tables))

    def nearest_tables(self, name: str) -> list[str]:
        """Return the names of tables that are most like `name`."""
        return nearest(name, (table.name for table in self.tables))

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """Return a short hash of each table, by the table's name. The hash covers what a
        description shows: columns, types, keys and comments, but no numbers of rows.
        """
        return {table.name: _hash(replace(table, rows_estimate=None)) for table in self.tables}

    @cached_property
    def hash(self) -> str:
        """Return a short hash of the whole schema. The order of the tables does not matter."""
        return _hash(sorted(self.hashes.items()))


def _hash(value: object) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


_LOWER = {ord(char): char.lower() for char in ascii_uppercase}


def fold(name: str) -> str:
    """Fold case as the engines do, for A to Z only: Unicode folding would make `ſecrets` equal to
    `secrets`.
    """
    return name.lower() if name.isascii() else name.translate(_LOWER)


def quoted(name: str, mark: str = '"') -> str:
    """Quote a name for SQL, by double quotes or by another mark."""
    return mark + name.replace(mark, mark * 2) + mark


def mentions(sql: str, name: str) -> bool:
    """Return whether the SQL of a view contains `name` as a whole word. True may be wrong (the word
    may mean something else); False is always right.
    """
    # Doubled within quotes.
    spelled = {name.casefold(), *(name.casefold().replace(mark, mark * 2) for mark in '"`]')}
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", sql.casefold()) for one in spelled)


def calls(sql: str, name: str) -> bool:
    """Return whether the SQL of a view may call a function of this name, in quotes or not. True may
    be wrong, False is always right.
    """
    spelled = re.escape(name.casefold())
    return re.search(rf"(?<!\w){spelled}[`\"\]]?\s*\(", sql.casefold()) is not None


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names most like `name`, best first: first names with a similar spelling, then
    names that contain `name` and names that `name` contains.
    """
    by_fold = {candidate.casefold(): candidate for candidate in names}
    folded = name.casefold()
    close = difflib.get_close_matches(folded, by_fold, n=NEAREST, cutoff=0.6)
    if len(folded) > 2:
        close += [
            other
            for other in by_fold
            if other not in close and len(other) > 2 and (folded in other or other in folded)
        ]
    return [by_fold[key] for key in close[:NEAREST]]


@dataclass(frozen=True)
class Reflected:
    """What an engine finds in the database before the policy is applied. `view_sql` is the SQL of
    each view, by schema and name.
    """

    tables: tuple[Table, ...]
    view_sql: Mapping[tuple[str, str], str]
    database_names: frozenset[str]
    own_functions: frozenset[str] = frozenset()
    exact_case: bool = False
    own_types: frozenset[str] = frozenset()
    parts: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The tables that are read along with a table, which are its partitions and inheriting tables:
    schema and name of each, by schema and name of the table.
    """
    system_relations: frozenset[str] = frozenset()
    """The names of the engine's own tables, such as `pg_class`, which a view may read."""
    unread_views: frozenset[str] = frozenset()
    """The shown names of views whose SQL the account may not see."""


def read_by_views(reflected: Reflected, catalog: Catalog) -> frozenset[str]:
    """Return the folded bare names of all tables and views that the visible views read, directly or
    through other views.
    """
    visible = {table.name for table in catalog.tables}
    reached = {
        table.name for table in reflected.tables if table.name in visible and table.kind == "view"
    }
    names: set[str] = set()
    by_name = {table.name: table for table in reflected.tables}
    todo = list(reached)
    while todo:
        view = by_name[todo.pop()]
        text = reflected.view_sql.get((view.schema, view.bare_name), "")
        for table in reflected.tables:
            if table.name not in reached and mentions(text, table.bare_name):
                reached.add(table.name)
                names.add(fold(table.bare_name))
                if table.kind == "view":
                    todo.append(table.name)
    return frozenset(names)
