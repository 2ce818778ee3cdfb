"""Hold the names that a question gives to tables and columns beside their real ones, and put queries from one into the other."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from longtable.app.offline.logic import Col, Join, Query

_Item = TypeVar("_Item")
_Places = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Names:
    """Both ways from (table, column), case-folded, to the other name; the column is empty for the table itself."""

    spelled: _Places = field(default_factory=dict)
    real: _Places = field(default_factory=dict)

    def spell(self, table: str, column: str = "") -> str:
        """Return the spelled name of a real table, or of a column of it."""
        return self.spelled.get((table.casefold(), column.casefold()), column or table)

    def real_name(self, table: str) -> str:
        """Return the real name of a spelled table."""
        return self.real.get((table.casefold(), ""), table)

    def out(self, query: Query) -> Query:
        """Return a query in spelled names."""
        return _renamed(query, self.spelled) if self.spelled else query

    def back(self, query: Query) -> Query:
        """Return a query in real names."""
        return _renamed(query, self.real) if self.real else query


def _renamed(item: _Item, names: _Places) -> _Item:
    """Rename the tables and columns in any part of a query."""
    if isinstance(item, tuple):
        return type(item)(_renamed(each, names) for each in item)
    if not is_dataclass(item) or isinstance(item, type):
        return item
    changed: dict[str, Any] = {each.name: _renamed(getattr(item, each.name), names) for each in fields(item)}
    if isinstance(item, Query):
        changed["base"] = names.get((item.base.casefold(), ""), item.base)
    elif isinstance(item, Join | Col):
        changed["table"] = names.get((item.table.casefold(), ""), item.table)
    if isinstance(item, Col):
        changed["name"] = names.get((item.table.casefold(), item.name.casefold()), item.name)
    return replace(item, **changed)
