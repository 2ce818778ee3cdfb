"""What was learned of one catalogue beyond its names: search over names and sampled values, inferred keys.

All of it is found out when asked for, within the time a call may spend, and kept until the schema changes. Safe to share
between threads.
"""

import threading
from collections import Counter

from longtable.tools.catalog import Catalog, ForeignKey, Table
from longtable.tools.query_runner import Cancel
from longtable.tools.schema.inferred_keys import KeyNames, inferred_keys
from longtable.tools.schema.sampling import Budget, Reader, value_samples
from longtable.tools.schema.schema_index import Hit, SchemaIndex

SAMPLE_SECONDS = 0.4
"""What one search may spend on looking at values of tables not looked at yet; the next one goes on from there."""
ONE_TABLE_SECONDS = 0.2


class Knowledge:
    """Look things up about one catalogue of one database."""

    def __init__(self, database: Reader, catalog: Catalog) -> None:
        self.database, self.catalog = database, catalog
        self._lock = threading.Lock()
        self._index: SchemaIndex | None = None
        self._names: KeyNames | None = None
        # Views say again what their tables say.
        self._unsampled = [table for table in reversed(catalog.tables) if table.kind == "table"]
        self._slow: set[str] = set()
        self._keys: dict[str, tuple[ForeignKey, ...]] = {}

    @property
    def index(self) -> SchemaIndex:
        """Return the search over names and comments, and the values sampled so far."""
        with self._lock:
            if self._index is None:
                self._index = SchemaIndex(self.catalog)
            return self._index

    def find_tables(self, text: str, cancel: Cancel | None = None) -> list[Table]:
        """Return the tables that answer a query, the best first."""
        self._sample(cancel)
        return self.index.tables(text)

    def find_columns(self, text: str, limit: int, cancel: Cancel | None = None) -> tuple[list[Hit], int]:
        """Return the columns that answer a query, the best first, and how many there are in all."""
        self._sample(cancel)
        return self.index.columns(text, limit)

    @property
    def unsampled(self) -> int:
        """Return how many tables' values have not been looked at yet."""
        return len(self._unsampled)

    def keys(self, table: Table, budget: Budget, cancel: Cancel | None = None) -> tuple[ForeignKey, ...]:
        """Return the foreign keys of a table that names and values speak for; fewer where the time did not suffice."""
        if (known := self._keys.get(table.name)) is not None:
            return known
        found, whole = inferred_keys(self.database, table, self._key_names(), budget, cancel)
        if whole:
            self._keys[table.name] = found
        return found

    def pointed_at(self) -> Counter[str]:
        """Return for each table how many keys point at it: declared ones, and those that names alone speak for."""
        names = self._key_names()
        declared = (key.table for table in self.catalog.tables for key in table.foreign_keys)
        named = (candidate.table.name for table in self.catalog.tables for candidate in names.candidates(table))
        return Counter([*declared, *named])

    def _key_names(self) -> KeyNames:
        with self._lock:
            if self._names is None:
                self._names = KeyNames(self.catalog)
            return self._names

    def _sample(self, cancel: Cancel | None) -> None:
        """Look at the values of some more tables; what is too slow twice is left for good."""
        budget, index = Budget(SAMPLE_SECONDS), self.index
        while budget.left > 0:
            with self._lock:
                if not self._unsampled:
                    return
                table = self._unsampled.pop()
            samples = None
            try:
                samples = value_samples(self.database, table, min(ONE_TABLE_SECONDS, budget.left), cancel)
            finally:
                with self._lock:
                    if samples is not None:
                        index.take_in(table, samples)
                    elif budget.left <= 0 or (cancel is not None and cancel.cancelled):
                        self._unsampled.append(table)
                    elif table.name not in self._slow:
                        self._slow.add(table.name)
                        self._unsampled.insert(0, table)
