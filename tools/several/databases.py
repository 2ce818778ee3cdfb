"""The databases that a graph asks, by name.

    databases = Databases({"shop": Database.open(...), "web": Database.open(...)})
    databases.named("web").run("SELECT ...")

One database alone needs no name, and is asked as if this collection were not there. Records from
before a graph had several databases name none: they mean the first one.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from longtable.base.errors import ConfigError, DatabaseError, UnknownDatabaseError
from longtable.base.settings_base import nearest
from longtable.tools.catalog import Catalog
from longtable.tools.cells import clean, clip
from longtable.tools.database import Database
from longtable.tools.several.database_names import check_names, folded
from longtable.tools.sql.verdict import Verdict

ARGUMENT = "database"
"""The argument of a tool, the key of an answer and the key of a record that name a database."""
SLOW_SECONDS = 1.0
REST_SECONDS = 30.0
"""How long a database is left alone when turns begin, if it took more than `SLOW_SECONDS` to find
that it cannot be reached. A server that does not answer would cost ten seconds each time; a query
asks it all the same.
"""


class Databases(Mapping[str, Database]):
    """Open databases by name, in the order in which they were given. They are the caller's to
    close.

    Raises `ConfigError` for a name that is no identifier, and for two names that differ only in
    case.
    """

    def __init__(self, databases: Mapping[str, Database]) -> None:
        check_names(databases)
        for name, database in databases.items():
            if not isinstance(database, Database):
                raise ConfigError(
                    f"database {name!r} must be a Database, found {type(database).__name__}:"
                    " open it with Database.open"
                )
        self._by_name = dict(databases)
        self._name_of_only = next(iter(self._by_name)) if len(self._by_name) == 1 else ""
        self._down: dict[str, float] = {}

    @classmethod
    def of(cls, databases: "Database | Mapping[str, Database] | None") -> "Databases | None":
        """Return the databases that a caller gave, None for none. A single database may be given
        without a name.
        """
        if databases is None or isinstance(databases, cls):
            return databases
        return cls(databases) if isinstance(databases, Mapping) else cls.of_one(databases)

    @classmethod
    def of_one(cls, database: Database) -> "Databases":
        """Return a collection of one database without a name."""
        alone = cls.__new__(cls)
        alone._by_name = {"": database}
        alone._name_of_only = database.name
        alone._down = {}
        return alone

    def close(self) -> None:
        """Close all of them."""
        with ExitStack() as stack:
            for database in self._by_name.values():
                stack.callback(database.close)

    def __enter__(self) -> "Databases":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Databases {self.title}>"

    def __getitem__(self, name: str) -> Database:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def are_several(self) -> bool:
        """Return whether there is more than one, so that each query must name its own."""
        return len(self._by_name) > 1

    @property
    def title(self) -> str:
        """Return the names of the databases for a person."""
        return ", ".join(self._by_name) if self.are_several else self.first.name

    @property
    def first_name(self) -> str:
        """Return the name of the database that records without a name mean; "" if it has none."""
        return next(iter(self._by_name))

    @property
    def first(self) -> Database:
        """Return the database that records without a name mean."""
        return self._by_name[self.first_name]

    def name_of(self, name: object) -> str:
        """Return the name under which a database is known, whatever the case of `name`. Raises
        `UnknownDatabaseError` if there is none, or if the name is missing but needed.
        """
        if not self.are_several and self.is_own(str(name or "")):
            return self.first_name
        asked = name if isinstance(name, str) else ""
        for known in self._by_name:
            if folded(known) == folded(asked):
                return known
        shown = clip(clean(asked))
        close = nearest(shown, self._by_name) if shown else ""
        known_names = tuple(self._by_name) if self.are_several else ()
        raise UnknownDatabaseError(shown, known=known_names, near=close)

    def named(self, name: object) -> Database:
        """Return the database of this name. Raises the error of `name_of`."""
        return self._by_name[self.name_of(name)]

    def recorded(self, name: object) -> Database | None:
        """Return the database that a record names, the first one for a record without a name. None
        if it is not there any more.
        """
        if not name:
            return self.first
        try:
            return self.named(name)
        except UnknownDatabaseError:
            return None

    def refreshed(self, name: str) -> Catalog | None:
        """Return the catalogue of a database as it is now, None if it cannot be reached. One that
        was slow to fail a moment ago is not asked again.
        """
        begun = time.monotonic()
        if begun < self._down.get(name, 0.0):
            return None
        try:
            catalog = self._by_name[name].refresh()
        except (DatabaseError, ConfigError):  # a policy that does not fit it any more
            now = time.monotonic()
            if now - begun >= SLOW_SECONDS:
                self._down[name] = now + REST_SECONDS
            return None
        self._down.pop(name, None)
        return catalog

    def is_own(self, name: str) -> bool:
        """Return whether a record's name of a database means the only one."""
        return not name or folded(name) == folded(self._name_of_only)

    def check(self, sql: str, database: str = "") -> Verdict | None:
        """Return the wall's verdict on a query, None if its database is not known. The query does
        not run.
        """
        found = self.recorded(database)
        return found.check(sql) if found is not None else None

    def call_args(self, args: Mapping[str, object], *, decided: bool = False) -> dict[str, object]:
        """Return the arguments of a tool call of these databases as the tools take them.

        A call on which a person decided while the graph had one database gets the name of the first
        one. With one database, its own name is left out. Raises `UnknownDatabaseError` if a call
        names another one: it was made when there were several.
        """
        if self.are_several:
            missing = decided and not args.get(ARGUMENT)
            return {**args, ARGUMENT: self.first_name} if missing else dict(args)
        if ARGUMENT not in args:
            return dict(args)
        asked = args[ARGUMENT]
        if not self.is_own(str(asked or "")):
            raise UnknownDatabaseError(clip(clean(str(asked))), known=())
        return {name: value for name, value in args.items() if name != ARGUMENT}
