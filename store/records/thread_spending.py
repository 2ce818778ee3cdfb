"""Keep beside each thread what its calls took, so that a report reads no transcript.

A record is computed from the transcript when a report needs it, and holds as long as the thread
stays as it was: the record names the state of the thread that it was computed from.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from langgraph.store.base import BaseStore

from longtable.base.stored import SPENDING
from longtable.memory.counting.usage import CALL_FIGURES, By, Spent

VERSION = 1
"""Version of the record. A record of another version is computed anew."""

FIELDS = {field.name for field in fields(Spent)}
NEEDED = {"day", "thread", "model"}
"""Fields that each row has."""
SUMMED = {*CALL_FIGURES, "unpriced", "cost", "charged"}
"""Fields that are added up."""
Row = Mapping[str, Any]
"""The fields of a `Spent` that are not empty. A report adds up the rows of all threads, so none of
them is made a `Spent` before.
"""


@dataclass(frozen=True)
class Spending:
    """What the calls of one thread took, by hour, model, purpose and voice."""

    state: str
    """A text that changes with each change of the thread."""
    usage_key: str
    """The key under which the usage is kept once the thread is deleted."""
    rows: Sequence[Row]

    @classmethod
    def of(cls, state: str, usage_key: str, spent: Iterable[Spent]) -> "Spending":
        """Return what a thread took."""
        return cls(state, usage_key, [stored_row(each) for each in spent])

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Spending | None":
        """Return a stored record, None if it is of another version or cannot be read."""
        if value.get("version") != VERSION:
            return None
        with suppress(TypeError, KeyError, AttributeError):
            rows: list[dict[str, Any]] = value["rows"]
            if all(map(_is_row, rows)):
                return cls(str(value["state"]), str(value["usage_key"]), rows)
        return None

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain JSON."""
        return {
            "version": VERSION,
            "state": self.state,
            "usage_key": self.usage_key,
            "rows": list(self.rows),
        }

    def in_project(self, project: str) -> list[Row]:
        """Return the rows for the project that the thread belongs to now."""
        return [{**row, "project": project} for row in self.rows]


def _is_row(row: Row) -> bool:
    """Return whether a stored row has the fields of a `Spent`, texts and figures as they are."""
    if not NEEDED <= row.keys() <= FIELDS:
        return False
    return all(
        isinstance(value, int | float | None if name in SUMMED else str)
        for name, value in row.items()
    )


def stored_row(spent: Spent) -> Row:
    """Return the fields that are not empty, and those of `NEEDED`."""
    return {
        name: value
        for name, value in asdict(spent).items()
        if name in NEEDED or value not in ("", 0, None) or (name == "charged" and value is not None)
    }


def added_rows(rows: Iterable[Row], by: Sequence[By]) -> list[Spent]:
    """Add up the rows that agree in the fields `by`, in no order. The other text fields of the sums
    are empty.
    """
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple([str(row.get(name, "")) for name in by])
        total = sums.setdefault(key, {})
        for name in SUMMED & row.keys():
            if row[name] is not None:
                total[name] = total.get(name, 0) + row[name]
    totals: list[Spent] = []
    for key, total in sums.items():
        names: dict[str, Any] = dict.fromkeys(NEEDED, "")
        names |= zip(by, key, strict=True)
        totals.append(Spent(**names, **total))
    return totals


def keep_spending_of(store: BaseStore | None, thread_id: str, spending: Spending) -> None:
    """Write a record. A store that cannot be written to keeps no report from being made."""
    if store is not None:
        with suppress(Exception):
            store.put(SPENDING, thread_id, spending.as_json(), index=False)
