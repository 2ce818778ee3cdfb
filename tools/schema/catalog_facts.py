"""Facts about a catalogue beyond its names: a search over names and sampled values, and inferred
keys.

Each fact is found when a call first asks for it, within the time that the call may spend, and is
kept until the schema changes. Threads may share these facts.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from longtable.tools.catalog import Catalog, Column, ForeignKey, Table
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.schema.sampling import (
    NESTED,
    NUMBER,
    TEXT,
    Budget,
    Reader,
    rows_in_time,
    value_samples,
)
from longtable.tools.schema.schema_index import Hit, SchemaIndex, singular, terms
from longtable.tools.workers.runner import Cancel

VALUES = 200
"""The most different values of a column that are looked up in the other table."""
ROWS = 20_000
"""The most rows that are read to find these values."""
SECONDS = 0.3
KEY_ROWS = 200_000
"""How many rows of the other table are read if its column is not declared as a key. The column
counts as a key if no value occurs twice in these rows.
"""
KEY_WORDS = frozenset({"id", "code", "key", "no", "nr", "num", "number", "编号", "号", "代码"})
_GENERAL = (
    "id name title type code date year month day hour time status note comment value number count"
    " position 编号 名称 日期"
)
COMMON = frozenset(_GENERAL.split())
"""Column names that many tables use. Two tables that share such a name need not be related."""
MOST_TRIED = 12
"""The most columns of one table that are tried as foreign keys."""


@dataclass(frozen=True)
class Candidate:
    """A foreign key that is suggested by the names of a column and a table."""

    column: Column
    table: Table
    target: Column
    declared: bool
    """Whether `target` is the declared primary key of the other table."""


class KeyNames:
    """The keys of a catalogue, by the names of columns that would point at them. Build it once for
    each catalogue.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._by_word: dict[tuple[str, str], list[tuple[Table, Column, bool]]] = {}
        self._by_name: dict[tuple[str, str], list[tuple[Table, Column, bool]]] = {}
        for table in catalog.tables:
            for target, declared in _keys(table) if table.kind == "table" else ():
                for word in _pointers(table.bare_name, target.name):
                    self._by_word.setdefault((table.schema, word), []).append(
                        (table, target, declared)
                    )
                if (name := target.name.casefold()) not in COMMON:
                    self._by_name.setdefault((table.schema, name), []).append(
                        (table, target, declared)
                    )

    def candidates(self, table: Table) -> Iterator[Candidate]:
        """Yield a possible foreign key for each column whose name points at a key of another table.
        Columns with a declared foreign key are left out.
        """
        used = set(chain.from_iterable(key.columns for key in table.foreign_keys))
        for column in table.columns if table.kind == "table" else ():
            if column.name in used or table.primary_key == (column.name,):
                continue
            called_after = self._by_word.get((table.schema, _word(column.name)), [])
            of_that_name = self._by_name.get((table.schema, column.name.casefold()), [])
            fits = (
                candidate
                for candidate in [*called_after, *of_that_name]
                if candidate[0] is not table and _same_kind(column, candidate[1])
            )
            if (best := next(fits, None)) is not None:
                yield Candidate(column, *best)


def _keys(table: Table) -> list[tuple[Column, bool]]:
    """Return the column that identifies a row, and whether it is declared as the primary key. In a
    table without a primary key it is guessed from the names. Empty if there is none.
    """
    if table.primary_key:
        return [(column, True) for column in table.columns if table.primary_key == (column.name,)]
    own = _word(table.bare_name)
    return [
        (column, False)
        for column in table.columns[:3]
        if column.name.casefold() in KEY_WORDS
        or (set(terms(column.name)) & KEY_WORDS and own in _word(column.name))
        or column is table.columns[0]
    ][:1]


def _pointers(table: str, target: str) -> list[str]:
    """Return the names that a column pointing at this key may have: `artist_id`, `ArtistId` or
    `artist` for the key `artists.id` or `artists.ArtistId`.
    """
    own = _word(table)
    key = _word(target)
    if not own:
        return []
    return [own + key, own] if key in KEY_WORDS else [key] if own in key and key != own else []


def _word(name: str) -> str:
    """Return a name as one word in the singular, so that `order_items` and `OrderItem` give the
    same word.
    """
    parts = [part for part in name.replace("_", " ").split() if part]
    return "".join(chain.from_iterable(map(_parts, parts)))


def _parts(part: str) -> list[str]:
    words = list(terms(part))
    if not part.isascii():
        return [part.casefold()]
    return words[:-1] if len(words) > 1 else [singular(part.casefold())] if words else []


def _same_kind(one: Column, other: Column) -> bool:
    if NESTED.search(one.type) or NESTED.search(other.type):
        return False
    return bool(NUMBER.search(one.type)) == bool(NUMBER.search(other.type)) and bool(
        TEXT.search(one.type)
    ) == bool(TEXT.search(other.type))


def inferred_keys(
    database: Reader, table: Table, names: KeyNames, budget: Budget, cancel: Cancel | None
) -> tuple[tuple[ForeignKey, ...], bool]:
    """Return the foreign keys that names and values suggest. The second value is False if there was
    not enough time to check all candidates.
    """
    keys: list[ForeignKey] = []
    whole = True
    for candidate in islice(names.candidates(table), MOST_TRIED):
        holds = _holds(database, table, candidate, budget, cancel)
        whole = whole and holds is not None
        if holds:
            keys.append(
                ForeignKey((candidate.column.name,), candidate.table.name, (candidate.target.name,))
            )
    return tuple(keys), whole


def _holds(
    database: Reader, table: Table, candidate: Candidate, budget: Budget, cancel: Cancel | None
) -> bool | None:
    """Return whether every sampled value of the column is found in the target column. None means
    that there was not enough time to look.
    """
    column = candidate.table.sql_column(candidate.column.name)
    target = candidate.table.sql_column(candidate.target.name)
    other = candidate.table.sql_name
    sample = (
        f"SELECT DISTINCT v FROM (SELECT {column} AS v FROM {table.sql_name} LIMIT {ROWS}) AS r"
        f" WHERE v IS NOT NULL LIMIT {VALUES}"
    )
    held = f"EXISTS (SELECT 1 FROM {other} AS o WHERE o.{target} = s.v)"
    if not dialect_of(database.dialect).correlated_aggregates:
        held = f"s.v IN (SELECT o.{target} FROM {other} AS o)"
    agree = f"SELECT count(*), count(CASE WHEN {held} THEN 1 END) FROM ({sample}) AS s"
    unique = (
        f"SELECT count(*), count(DISTINCT k) FROM (SELECT {target} AS k FROM {other} LIMIT"
        f" {KEY_ROWS}) AS o"
    )
    for sql in (agree,) if candidate.declared else (agree, unique):
        if budget.left <= 0:
            return None
        rows = rows_in_time(database, sql, seconds=min(SECONDS, budget.left), cancel=cancel)
        if rows is None:
            return None
        # No row: types that do not compare, a table that cannot be read.
        if not rows or not rows[0][0] or rows[0][0] != rows[0][1]:
            return False
    return True


SAMPLE_SECONDS = 0.4
"""The seconds that one search may spend on sampling tables not sampled yet. The next search
continues with the remaining tables.
"""
ONE_TABLE_SECONDS = 0.2


class CatalogFacts:
    """What is known about one catalogue of one database: a search over names and values, and
    keys.
    """

    def __init__(self, database: Reader, catalog: Catalog) -> None:
        self.database = database
        self.catalog = catalog
        self._lock = threading.Lock()
        self._index: SchemaIndex | None = None
        self._names: KeyNames | None = None
        # Views say again what their tables say.
        self._unsampled = [table for table in reversed(catalog.tables) if table.kind == "table"]
        self._slow: set[str] = set()
        self._keys: dict[str, tuple[ForeignKey, ...]] = {}

    @property
    def index(self) -> SchemaIndex:
        """Return the search over names, comments and the values sampled so far."""
        with self._lock:
            if self._index is None:
                self._index = SchemaIndex(self.catalog)
            return self._index

    def find_tables(self, text: str, cancel: Cancel | None = None) -> list[Table]:
        """Return the tables that match a query, the best first."""
        self._sample(cancel)
        return self.index.tables(text)

    def find_columns(
        self, text: str, limit: int, cancel: Cancel | None = None
    ) -> tuple[list[Hit], int]:
        """Return the columns that match a query, the best first, and the number of all matching
        columns.
        """
        self._sample(cancel)
        return self.index.columns(text, limit)

    @property
    def unsampled(self) -> int:
        """Return the number of tables whose values have not been sampled yet."""
        return len(self._unsampled)

    def keys(
        self, table: Table, budget: Budget, cancel: Cancel | None = None
    ) -> tuple[ForeignKey, ...]:
        """Return the foreign keys of a table that names and values suggest. If there was not enough
        time, some may be missing; the next call tries again.
        """
        if (known := self._keys.get(table.name)) is not None:
            return known
        keys, whole = inferred_keys(self.database, table, self._key_names(), budget, cancel)
        if whole:
            self._keys[table.name] = keys
        return keys

    def pointed_at(self) -> Counter[str]:
        """Return for each table how many keys point at it. Both declared keys and keys suggested by
        names alone are counted.
        """
        names = self._key_names()
        counts: Counter[str] = Counter()
        for table in self.catalog.tables:
            counts.update(key.table for key in table.foreign_keys)
        for table in self.catalog.tables:
            counts.update(candidate.table.name for candidate in names.candidates(table))
        return counts

    def _key_names(self) -> KeyNames:
        with self._lock:
            if self._names is None:
                self._names = KeyNames(self.catalog)
            return self._names

    def _sample(self, cancel: Cancel | None) -> None:
        """Sample the values of some more tables. A table that took too long twice is not tried
        again.
        """
        budget = Budget(SAMPLE_SECONDS)
        index = self.index
        while budget.left > 0:
            with self._lock:
                if not self._unsampled:
                    return
                table = self._unsampled.pop()
            samples = None
            try:
                samples = value_samples(
                    self.database, table, min(ONE_TABLE_SECONDS, budget.left), cancel
                )
            finally:
                with self._lock:
                    if samples is not None:
                        index.take_in(table, samples)
                    elif budget.left <= 0 or (cancel is not None and cancel.cancelled):
                        self._unsampled.append(table)
                    elif table.name not in self._slow:
                        self._slow.add(table.name)
                        self._unsampled.insert(0, table)
