"""What the database holds, as far as the policy lets it be seen."""

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from longtable.tools.policy import TablePolicy

NEAREST = 5


@dataclass(frozen=True)
class Column:
    """One column; `type` as the engine names it."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    masked: bool = False
    """Whether no model is shown its values; `Database.read` finds none in it."""


@dataclass(frozen=True)
class ForeignKey:
    """Columns that point at columns of another table, pairwise."""

    columns: tuple[str, ...]
    table: str
    referenced_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One table or view. `name` is what it is shown under: `schema.name` where SQL must say the schema (`qualified`)."""

    name: str
    kind: Literal["table", "view"]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    comment: str | None = None
    schema: str = "main"
    bare: str = ""
    """The name within its schema, where that is another than `name`."""
    qualified: bool = False
    rows_estimate: int | None = None
    """What the server's statistics say, where it keeps some."""

    @property
    def bare_name(self) -> str:
        """Return the name without its schema."""
        return self.bare or self.name

    @property
    def sql_name(self) -> str:
        """Return the name quoted for SQL, with its schema where that must be said."""
        return f"{quoted(self.schema)}.{quoted(self.bare_name)}" if self.qualified else quoted(self.bare_name)


@dataclass(frozen=True)
class Catalog:
    """The tables that can be read. `database_names` are the names the database itself goes by in SQL."""

    tables: tuple[Table, ...]
    database_names: frozenset[str] = frozenset()
    hidden_functions: frozenset[str] = field(default=frozenset(), repr=False)
    """Functions that the database defines itself: what they read is not checked, so they are not called."""
    exact_case: bool = False
    """Whether the engine tells `Order` from `order` once a name is quoted."""
    own_types: frozenset[str] = frozenset()
    """Types that the database defines itself and a query may cast to: enums and domains, never the row of a table."""
    hidden_columns: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict, repr=False, compare=False)
    """Columns that the policy denies, by schema and name of their table, which itself need not be shown."""

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Table]:
        return {(self._key(table.schema), self._key(table.bare_name)): table for table in self.tables}

    @cached_property
    def _by_bare_name(self) -> Mapping[str, Table]:
        return {self._key(table.bare_name): table for table in self.tables if not table.qualified}

    @cached_property
    def _by_shown_name(self) -> Mapping[str, Table]:
        full = {f"{table.schema}.{table.bare_name}".casefold(): table for table in reversed(self.tables)}
        return full | {table.name.casefold(): table for table in reversed(self.tables)}

    def _key(self, name: str) -> str:
        return name if self.exact_case else fold(name)

    def resolve(self, name: str, *, schema: str = "", database: str = "") -> Table | None:
        """Find what a table name in SQL means; None for what is not there or cannot be seen."""
        names = {self._key(known) for known in self.database_names}
        if database and self._key(database) not in names:
            return None
        if not schema:
            return self._by_bare_name.get(self._key(name))
        found = self._by_name.get((self._key(schema), self._key(name)))
        if found is None and not database and not self.exact_case and self._key(schema) in names:
            found = self._by_bare_name.get(self._key(name))
        return found

    def find(self, name: str) -> Table | None:
        """Find a table by the name it is shown under, whatever the case, quotes and the default schema set aside."""
        plain = name.strip()
        if (found := next((table for table in self.tables if table.name == plain), None)) is not None:
            return found
        if (found := self._by_shown_name.get(plain.casefold())) is not None:
            return found
        unquoted = re.sub(r'"([^"]*)"|`([^`]*)`|\[([^\]]*)\]', lambda match: match[1] or match[2] or match[3] or "", plain)
        return self._by_shown_name.get(unquoted.casefold())

    @cached_property
    def has_masks(self) -> bool:
        """Say whether any column is masked."""
        return any(column.masked for table in self.tables for column in table.columns)

    def has_column(self, name: str) -> bool:
        """Say whether any table has a column of this name, whatever the case."""
        return fold(name) in self._column_names

    @cached_property
    def _column_names(self) -> frozenset[str]:
        return frozenset(fold(column.name) for table in self.tables for column in table.columns)

    def nearest_tables(self, name: str) -> list[str]:
        """Return the names most like `name`."""
        return nearest(name, (table.name for table in self.tables))

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """Return a short hash of each table as a description shows it: columns, types, keys, comments; its rows set aside."""
        return {table.name: _hash(replace(table, rows_estimate=None)) for table in self.tables}

    @cached_property
    def hash(self) -> str:
        """Return a short hash of the whole schema, whatever the order of its tables."""
        return _hash(sorted(self.hashes.items()))


def _hash(value: object) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def fold(name: str) -> str:
    """Fold case as the engines do, A to Z only: Unicode folding would take `ſecrets` for `secrets`."""
    return "".join(chr(ord(char) + 32) if "A" <= char <= "Z" else char for char in name)


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the names most like `name`, best first: those written alike, then those that hold it or are held in it."""
    by_fold = {candidate.casefold(): candidate for candidate in names}
    wanted = name.casefold()
    close = difflib.get_close_matches(wanted, by_fold, n=NEAREST, cutoff=0.6)
    if len(wanted) > 2:
        close += [other for other in by_fold if other not in close and len(other) > 2 and (wanted in other or other in wanted)]
    return [by_fold[key] for key in close[:NEAREST]]


@dataclass(frozen=True)
class Reflected:
    """What an engine finds before the policy. `view_sql` by schema and name, the text a view was made from."""

    tables: tuple[Table, ...]
    view_sql: Mapping[tuple[str, str], str]
    database_names: frozenset[str]
    own_functions: frozenset[str] = frozenset()
    exact_case: bool = False
    own_types: frozenset[str] = frozenset()
    parts: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """What is read along with a table: its partitions and inheriting tables, by schema and name."""
    system_relations: frozenset[str] = frozenset()
    """The engine's own tables, which a view may read."""


def visible(found: Reflected, policy: TablePolicy, *, dialect: str = "") -> Catalog:
    """Leave out what the policy hides: tables, what is read along with them, views that read a denied one, keys that point at any.

    Columns likewise; a view that takes in a denied column is hidden whole. Raises `ConfigError` for a column that is not there.
    """
    open_tables = {
        table.name
        for table in found.tables
        if policy.permits(table.bare_name, table.schema)
        and not any(policy.denies(name, schema) for schema, name in found.parts.get((table.schema, table.bare_name), ()))
    }
    open_tables -= _views_over_denied(found, policy)
    hidden: dict[tuple[str, str], frozenset[str]] = {}
    masked: dict[str, frozenset[str]] = {}
    policy.check_tables((table.bare_name, table.schema) for table in found.tables)
    if policy.names_columns:
        from longtable.tools.policy_views import masked_columns, views_over

        policy.check_columns((column.name, table.bare_name, table.schema) for table in found.tables for column in table.columns)
        hidden = _hidden_columns(found, policy)
        open_tables -= views_over(found, hidden, dialect)
        masked = masked_columns(found, policy, dialect)
    columns = {table.name: _open_columns(table, hidden, masked.get(table.name, frozenset())) for table in found.tables}
    # A table of which nothing is left is not there; a view that is broken has no columns to begin with.
    open_tables -= {table.name for table in found.tables if table.columns and not columns[table.name]}
    tables = tuple(
        _without_hidden_keys(replace(table, columns=columns[table.name]), open_tables, columns)
        for table in found.tables
        if table.name in open_tables
    )
    return Catalog(
        tables,
        database_names=found.database_names,
        hidden_functions=found.own_functions,
        exact_case=found.exact_case,
        own_types=found.own_types,
        hidden_columns=hidden,
    )


def _hidden_columns(found: Reflected, policy: TablePolicy) -> dict[tuple[str, str], frozenset[str]]:
    """Return what is denied of each table; what is denied of a table is denied of its partitions, and the other way round."""
    hidden: dict[tuple[str, str], set[str]] = {}
    for table in found.tables:
        key = (table.schema, table.bare_name)
        for schema, name in (key, *found.parts.get(key, ())):
            hidden.setdefault(key, set()).update(
                column.name for column in table.columns if not policy.permits_column(column.name, name, schema)
            )
    for key, parts in found.parts.items():
        for part in parts:
            if part in hidden:
                hidden[part] |= hidden.get(key, set())
    return {key: frozenset(names) for key, names in hidden.items() if names}


def _open_columns(table: Table, hidden: Mapping[tuple[str, str], frozenset[str]], masked: frozenset[str]) -> tuple[Column, ...]:
    gone = hidden.get((table.schema, table.bare_name), frozenset())
    return tuple(replace(column, masked=True) if column.name in masked else column for column in table.columns if column.name not in gone)


def read_by_views(found: Reflected, catalog: Catalog) -> frozenset[str]:
    """Return the folded bare names of all that the visible views read, through other views too."""
    shown = {table.name for table in catalog.tables}
    reached = {table.name for table in found.tables if table.name in shown and table.kind == "view"}
    names: set[str] = set()
    by_name = {table.name: table for table in found.tables}
    todo = list(reached)
    while todo:
        view = by_name[todo.pop()]
        text = found.view_sql.get((view.schema, view.bare_name), "")
        for table in found.tables:
            if table.name not in reached and mentions(text, table.bare_name):
                reached.add(table.name)
                names.add(fold(table.bare_name))
                if table.kind == "view":
                    todo.append(table.name)
    return frozenset(names)


def mentions(sql: str, name: str) -> bool:
    """Say whether the text holds the name as a word; too often rather than too seldom."""
    spelled = {name.casefold(), *(name.casefold().replace(mark, mark * 2) for mark in '"`]')}  # as it stands within quotes
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", sql.casefold()) for one in spelled)


def _views_over_denied(found: Reflected, policy: TablePolicy) -> set[str]:
    if not policy.denied:
        return set()
    tainted = {name.rpartition(".")[2] for name in policy.denied}
    views = {table.name: table for table in found.tables if table.kind == "view"}
    hidden: set[str] = set()
    grew = True
    while grew:
        grew = False
        for name, view in views.items():
            text = found.view_sql.get((view.schema, view.bare_name), "")
            if name not in hidden and any(mentions(text, taint) for taint in tainted):
                hidden.add(name)
                tainted.add(view.bare_name.casefold())
                grew = True
    return hidden


def _without_hidden_keys(table: Table, open_tables: set[str], columns: Mapping[str, tuple[Column, ...]]) -> Table:
    """Drop keys that name a table or a column that is not shown; half of a key would say what is not so."""

    def shown(names: tuple[str, ...], owner: str) -> bool:
        return {fold(name) for name in names} <= {fold(column.name) for column in columns.get(owner, ())}

    keys = tuple(
        key
        for key in table.foreign_keys
        if key.table in open_tables and shown(key.columns, table.name) and shown(key.referenced_columns, key.table)
    )
    primary = table.primary_key if shown(table.primary_key, table.name) else ()
    return replace(table, foreign_keys=keys, primary_key=primary)
