"""Keep beside each thread what its calls took, so that a report reads no transcript.

A record is computed from the transcript when a report needs it, and holds as long as the thread
stays as it was: the record names the state of the thread that it was computed from.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from langgraph.store.base import BaseStore

from longtable.base.stored import SPENDING
from longtable.memory.counting.usage import Spent

VERSION = 1
"""Version of the record. A record of another version is computed anew."""


@dataclass(frozen=True)
class Spending:
    """What the calls of one thread took, by hour, model, purpose and voice."""

    state: str
    """A text that changes with each change of the thread."""
    usage_key: str
    """The key under which the usage is kept once the thread is deleted."""
    rows: Sequence[Spent]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Spending | None":
        """Return a stored record, None if it is of another version or cannot be read."""
        if value.get("version") != VERSION:
            return None
        with suppress(TypeError, KeyError, AttributeError):
            rows = [Spent(**row) for row in value["rows"]]
            return cls(str(value["state"]), str(value["usage_key"]), rows)
        return None

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain JSON, without the fields of rows that are empty."""
        rows: list[dict[str, Any]] = []
        for row in self.rows:
            rows.append({name: value for name, value in asdict(row).items() if value})
        return {
            "version": VERSION,
            "state": self.state,
            "usage_key": self.usage_key,
            "rows": rows,
        }

    def in_project(self, project: str) -> list[Spent]:
        """Return the rows for the project that the thread belongs to now."""
        return [
            row if row.project == project else replace(row, project=project) for row in self.rows
        ]


def keep_spending_of(store: BaseStore | None, thread_id: str, spending: Spending) -> None:
    """Write a record. A store that cannot be written to keeps no report from being made."""
    if store is not None:
        with suppress(Exception):
            store.put(SPENDING, thread_id, spending.as_json(), index=False)
