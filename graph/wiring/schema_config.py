"""The part of a thread's call config about the schemas of its databases.

One database has one card. Several have a card each and share the room for it: what a small schema
leaves goes to the others. A database that cannot be reached keeps the card that it had.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from longtable.graph.wiring.database_schema import MOST_CHANGES, database_schema
from longtable.memory.messages.rounds import described_in
from longtable.nodes.state import Schema, SchemaChange
from longtable.tools.catalog import Catalog
from longtable.tools.several.databases import Databases
from longtable.tools.several.several_tools import SEPARATOR, qualified

Made = tuple[Schema | None, SchemaChange | None]
"""A schema, and the mark of what changed in it, None if nothing did."""


def schema_config(
    databases: Databases,
    before: Schema | None,
    *,
    budget: int,
    count: Callable[[str], int],
    messages: Sequence[BaseMessage],
    turn: int,
) -> Made:
    """Return the schema's part of a thread's call config, and the mark of what changed in the
    schema. If nothing changed, return `before` itself.

    `before` may have been made when the thread's graph had other databases.
    """
    work = _Work(databases, before or {}, described_in(messages), count, messages, turn)
    if databases.are_several:
        return work.of_several(budget)
    if "databases" in (before or {}):
        return work.of_one_left(budget)
    return work.of_one(databases.first_name, before, work.described, budget)


@dataclass(frozen=True)
class _Work:
    databases: Databases
    before: Schema
    described: Mapping[str, str]
    """The tables that tool answers have described, as they were named then."""
    count: Callable[[str], int]
    messages: Sequence[BaseMessage]
    turn: int

    def of_one(
        self, name: str, before: Schema | None, described: Mapping[str, str], budget: int
    ) -> Made:
        """Return the schema of one database."""
        return database_schema(
            self.databases[name],
            before,
            budget=budget,
            count=self.count,
            messages=self.messages,
            described=described,
            turn=self.turn,
        )

    def of_one_left(self, budget: int) -> Made:
        """Return the schema of the only database of a thread that had several."""
        parts = self.before.get("databases", {})
        own = next(filter(self.databases.is_own, parts), "")
        described = self._described_of(own, bare=True)
        schema, change = self.of_one(self.databases.first_name, parts.get(own), described, budget)
        prefixes = tuple(qualified(name, "") for name in parts if name != own)
        gone = [name for name in self.described if name.startswith(prefixes)] if prefixes else []
        changes = {own: change} if change else {}
        return schema, self._mark(changes, gone, own)

    def of_several(self, budget: int) -> Made:
        """Return the schema of several databases."""
        parts = self._parts_before()
        whole = self.before if "databases" in self.before else None
        gone = [name for name in parts if name not in self.databases]
        catalogs = {name: self.databases.refreshed(name) for name in self.databases}
        if whole is not None and not gone and self._is_as_before(parts, catalogs, budget):
            return whole, None
        up = [name for name, catalog in catalogs.items() if catalog is not None]
        made: dict[str, Made] = {name: (parts.get(name), None) for name in self.databases}
        # A database that is down keeps its schema, which takes its part of the budget.
        kept = sum(self._tokens(schema) for name, (schema, _) in made.items() if name not in up)
        made |= self._within(parts, up, max(0, budget - kept))
        schemas = {name: schema for name, (schema, _) in made.items() if schema}
        changes = {name: change for name, (_, change) in made.items() if change}
        prefixes = tuple(qualified(name, "") for name in gone)
        lost = [name for name in self.described if name.startswith(prefixes)] if prefixes else []
        schema: Schema = {
            "hash": _hash([name + each["hash"] for name, each in schemas.items()]),
            "budget": budget,
            "tables": sum(each["tables"] for each in schemas.values()),
            "databases": schemas,
        }
        return schema, self._mark(changes, lost, "")

    def _parts_before(self) -> Mapping[str, Schema]:
        """Return what the thread was told of each database. A thread that had one was told of the
        first.
        """
        if "databases" in self.before:
            return self.before["databases"]
        return {self.databases.first_name: self.before} if self.before else {}

    def _is_as_before(
        self, parts: Mapping[str, Schema], catalogs: Mapping[str, Catalog | None], budget: int
    ) -> bool:
        """Return whether nothing changed. A database that cannot be reached keeps what it had."""
        if self.before.get("budget") != budget:
            return False
        for name, catalog in catalogs.items():
            if catalog is None:
                continue
            part = parts.get(name, {})
            before = (part.get("hash"), part.get("rows", ""))
            if (catalog.hash, self.databases[name].rows_key()) != before:
                return False
        return True

    def _within(
        self, parts: Mapping[str, Schema], names: Sequence[str], budget: int
    ) -> dict[str, Made]:
        """Return the schemas of these databases within a number of tokens. Those that are not shown
        whole with an equal share get what the others leave.
        """
        share = budget // max(1, len(names))
        made: dict[str, Made] = {}
        for name in names:
            described = self._described_of(name, bare=name == self.databases.first_name)
            made[name] = self.of_one(name, parts.get(name), described, share)
        cut = [name for name, (schema, _) in made.items() if schema and not _is_whole(schema)]
        used = sum(self._tokens(schema) for name, (schema, _) in made.items() if name not in cut)
        more = (budget - used) // len(cut) if cut else 0
        for name in cut if more > share else ():
            described = self._described_of(name, bare=name == self.databases.first_name)
            schema, _ = self.of_one(name, parts.get(name), described, more)
            made[name] = (schema, made[name][1])
        return made

    def _tokens(self, schema: Schema | None) -> int:
        return self.count(schema["card"] + schema.get("note", "")) if schema else 0

    def _described_of(self, name: str, *, bare: bool) -> dict[str, str]:
        """Return the tables of one database that were described. `bare`: also those that were
        described while the thread had one database.
        """
        names = (*self.databases, *self.before.get("databases", {}))
        prefixes = tuple(qualified(each, "") for each in names if each)
        own = qualified(name, "")
        described: dict[str, str] = {}
        for table, looks in self.described.items():
            if name and table.startswith(own):
                described[table.removeprefix(own)] = looks
            elif bare and not table.startswith(prefixes or (SEPARATOR * 2,)):
                described[table] = looks
        return described

    def _mark(
        self, changes: Mapping[str, SchemaChange], gone: Sequence[str], own: str
    ) -> SchemaChange | None:
        """Return one mark of the changes of all databases. `gone`: described tables of databases
        that are not there any more. `own`: the database whose tables need no name now.
        """
        if not changes and not gone:
            return None
        mark = SchemaChange(changed=[], new=[], gone=[*gone], listing=bool(gone), all=False)
        for name, change in changes.items():
            mark["changed"] += self._names(name, change["changed"], own)
            mark["new"] += self._names(name, change["new"], own)
            mark["gone"] += self._names(name, change["gone"], own)
            mark["listing"] = mark["listing"] or change["listing"]
            mark["all"] = mark["all"] or change["all"]
        lists = (mark["changed"], mark["new"], mark["gone"])
        mark["all"] = mark["all"] or max(map(len, lists)) > 2 * MOST_CHANGES
        return mark

    def _names(self, database: str, tables: Sequence[str], own: str) -> list[str]:
        """Return the names of tables as marks have them: as they are named now, and as they were
        when a tool answer described them.
        """
        names: list[str] = []
        for table in tables:
            full = qualified(database, table)
            shown = table if database == own else full
            names.append(shown)
            names += [each for each in (full, table) if each != shown and each in self.described]
        return names


def _is_whole(schema: Schema) -> bool:
    return len(schema["shown"]) == schema["tables"]


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
