"""What the database holds, as far as the policy lets it be seen."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from longtable.tools.settings import TablePolicy

NEAREST = 5


@dataclass(frozen=True)
class Column:
    """One column; `type` as the engine names it."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True)
class ForeignKey:
    """Columns that point at columns of another table, pairwise."""

    columns: tuple[str, ...]
    table: str
    referenced_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One table or view. Outside the schema `main` the name is `schema.name`."""

    name: str
    kind: Literal["table", "view"]
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    comment: str | None = None
    schema: str = "main"

    @property
    def bare_name(self) -> str:
        """Return the name without its schema."""
        return self.name if self.schema == "main" else self.name[len(self.schema) + 1 :]

    @property
    def sql_name(self) -> str:
        """Return the name quoted for SQL, with its schema where that is not `main`."""
        return quoted(self.bare_name) if self.schema == "main" else f"{quoted(self.schema)}.{quoted(self.bare_name)}"


@dataclass(frozen=True)
class Catalog:
    """The tables that can be read. `database_names` are the names the database itself goes by in SQL."""

    tables: tuple[Table, ...]
    database_names: frozenset[str] = frozenset()
    hidden_functions: frozenset[str] = field(default=frozenset(), repr=False)
    """Functions that the database defines itself: what they read is not checked, so they are not called."""

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Table]:
        return {(fold(table.schema), fold(table.bare_name)): table for table in self.tables}

    @cached_property
    def _by_shown_name(self) -> Mapping[str, Table]:
        return {table.name.casefold(): table for table in reversed(self.tables)}

    def resolve(self, name: str, *, schema: str = "", database: str = "") -> Table | None:
        """Find what a table name in SQL means; None for what is not there or cannot be seen."""
        if database and fold(database) not in self.database_names:
            return None
        found = self._by_name.get((fold(schema or "main"), fold(name)))
        if found is None and schema and not database and fold(schema) in self.database_names:
            found = self._by_name.get(("main", fold(name)))
        return found

    def find(self, name: str) -> Table | None:
        """Find a table by the name it is shown under, whatever the case, quotes and `main.` set aside."""
        plain = name.strip()
        if (found := self._by_shown_name.get(plain.casefold())) is not None:
            return found
        unquoted = re.sub(r'"([^"]*)"|`([^`]*)`|\[([^\]]*)\]', lambda match: match[1] or match[2] or match[3] or "", plain)
        return self._by_shown_name.get(unquoted.casefold().removeprefix("main."))

    def nearest_tables(self, name: str) -> list[str]:
        """Return the names most like `name`."""
        return nearest(name, (table.name for table in self.tables))


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


def visible(found: Reflected, policy: TablePolicy) -> Catalog:
    """Leave out what the policy hides: tables, views that read a denied table, and keys that point at either."""
    open_tables = {table.name for table in found.tables if policy.permits(table.bare_name, table.schema)}
    open_tables -= _views_over_denied(found, policy)
    tables = tuple(_without_hidden_keys(table, open_tables) for table in found.tables if table.name in open_tables)
    return Catalog(tables, database_names=found.database_names, hidden_functions=found.own_functions)


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
    return re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", sql.casefold()) is not None


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


def _without_hidden_keys(table: Table, open_tables: set[str]) -> Table:
    keys = tuple(key for key in table.foreign_keys if key.table in open_tables)
    if keys == table.foreign_keys:
        return table
    return Table(table.name, table.kind, table.columns, table.primary_key, keys, table.comment, table.schema)
