"""The policy on tables: which tables and columns a model may read, which values it never sees, and
how many rows it may have. The policy comes from code or from a TOML file:

    rows = 1000

    [tables]
    denied = ["audit_log"]

    [columns]
    masked = ["people.email"]

    [row_filters]
    orders = "region = :region"

For a query, a denied table or column does not exist. In a masked column, the person sees the values
and the model sees `•••`. But by comparing with a whole value, a model can confirm a guess. If that
matters, deny the column. A row that a row filter leaves out does not exist for a query either.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from longtable.base.errors import ConfigError

NAMES = ("allowed", "denied", "allowed_columns", "denied_columns", "masked_columns")
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "tables": {"allowed": "allowed", "denied": "denied"},
    "columns": {
        "allowed": "allowed_columns",
        "denied": "denied_columns",
        "masked": "masked_columns",
    },
}
"""The sections and keys of a policy file, each with the field of `TablePolicy` that it sets."""
FILTERS = "row_filters"
"""The section of a policy file that has a condition for each table."""


@dataclass(frozen=True, kw_only=True)
class TablePolicy:
    """Which tables and columns can be read. Names match in any case. A table or column that cannot
    be read is invisible.

    The bare name of a table applies in every schema, `schema.name` only in this schema. A column is
    `table.column` or `schema.table.column`; `column` alone applies in every table. If
    `allowed_columns` names columns of a table, no other columns of this table can be read.

    A view named in `allowed` may read tables that `allowed` does not name, but nothing may read a
    denied table. A view that reads a denied column is invisible.
    """

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    allowed_columns: frozenset[str] = frozenset()
    denied_columns: frozenset[str] = frozenset()
    masked_columns: frozenset[str] = frozenset()
    """Columns whose values the person sees but no model sees."""
    row_filters: Mapping[str, str] = field(default_factory=dict)
    """For each table, by `table` or `schema.table`, the condition that its rows must meet: SQL
    over columns of this table alone. `:name` stands for a row parameter, whose value comes from
    `row_parameters` of `build_graph` or from `Database.bound`.
    """
    rows: int | None = None
    """The most rows of a result, if this is lower than `QueryLimits.rows`."""
    places: Mapping[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)
    """Where each entry was written, by field and folded name, such as `policy.toml, line 4`."""

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if value is None and name == "allowed":
                continue
            kind = "column" if name.endswith("columns") else "table"
            if (
                isinstance(value, str)
                or not isinstance(value, Iterable)
                or not all(isinstance(item, str) and item.strip() for item in value)
            ):
                raise ConfigError(
                    f"TablePolicy.{name} must be a set of {kind} names, found {value!r}"
                )
            object.__setattr__(self, name, frozenset(item.casefold() for item in value))
        object.__setattr__(self, "row_filters", _checked_filters(self.row_filters))
        if bare := sorted(item for item in self.allowed_columns if "." not in item):
            raise ConfigError(
                f"TablePolicy.allowed_columns names {bare[0]!r} without its table: write"
                " table.column"
            )
        if self.rows is not None and (
            isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1
        ):
            raise ConfigError(
                f"TablePolicy.rows must be a whole number of at least 1, found {self.rows!r}"
            )

    def row_filter(self, name: str, schema: str = "main") -> str | None:
        """Return the row filter of a table, None if it has none. `schema.table` comes before
        `table`.
        """
        own = self.row_filters.get(f"{schema}.{name}".casefold())
        return own if own is not None else self.row_filters.get(name.casefold())

    def place_of_filter(self, entry: str) -> str:
        """Return where the row filter of this entry was written, for messages."""
        default = f"TablePolicy.row_filters[{entry!r}]"
        return self.places.get(("row_filters", entry), default)

    def denies(self, name: str, schema: str = "main") -> bool:
        """Return whether `denied` names the table."""
        return not self.denied.isdisjoint((name.casefold(), f"{schema}.{name}".casefold()))

    def permits(self, name: str, schema: str = "main") -> bool:
        """Return whether the table itself can be read. What a view reads is not checked."""
        if self.denies(name, schema):
            return False
        return self.allowed is None or not self.allowed.isdisjoint(
            (name.casefold(), f"{schema}.{name}".casefold())
        )

    @property
    def names_columns(self) -> bool:
        """Return whether the policy says anything about columns."""
        return bool(self.allowed_columns or self.denied_columns or self.masked_columns)

    def permits_column(self, column: str, table: str, schema: str = "main") -> bool:
        """Return whether this column can be read."""
        names = _spellings(column, table, schema)
        if not self.denied_columns.isdisjoint(names):
            return False
        starts = (f"{table}.".casefold(), f"{schema}.{table}.".casefold())
        listed = any(item.startswith(starts) for item in self.allowed_columns)
        return not listed or not self.allowed_columns.isdisjoint(names[1:])

    def masks(self, column: str, table: str, schema: str = "main") -> bool:
        """Return whether models must not see the values of this column."""
        return not self.masked_columns.isdisjoint(_spellings(column, table, schema))

    def check_columns(self, known: Iterable[tuple[str, str, str]]) -> None:
        """Raise `ConfigError` for an entry that matches none of these columns (column, table,
        schema). An entry with a typing error would protect nothing.
        """
        spelled = set(chain.from_iterable(_spellings(*column) for column in known))
        for kind in ("denied_columns", "masked_columns", "allowed_columns"):
            for entry in sorted(getattr(self, kind) - spelled):
                place = self.places.get((kind, entry), f"TablePolicy.{kind}")
                raise ConfigError(
                    f"{place}: the database has no column {entry!r}: write table.column as the"
                    " database has it, or take it out"
                )

    def check_tables(self, known: Iterable[tuple[str, str]]) -> None:
        """Raise `ConfigError` if the policy file names a table that is not one of these (name,
        schema).
        """
        spelled: set[str] = set()
        for table, schema in known:
            spelled |= {table.casefold(), f"{schema}.{table}".casefold()}
        for entry in self.row_filters:
            # Everywhere, not in a file only: a filter with a typing error would show all rows.
            if entry not in spelled:
                raise ConfigError(
                    f"{self.place_of_filter(entry)}: the database has no table {entry!r}: write it as"
                    " the database has it, or take it out"
                )
        for (kind, entry), place in self.places.items():
            if kind in ("allowed", "denied") and entry not in spelled:
                raise ConfigError(
                    f"{place}: the database has no table {entry!r}: write it as the database has"
                    " it, or take it out"
                )


def _checked_filters(filters: object) -> dict[str, str]:
    parts = [*filters.keys(), *filters.values()] if isinstance(filters, Mapping) else [None]
    if not isinstance(filters, Mapping) or not all(
        isinstance(part, str) and part.strip() for part in parts
    ):
        raise ConfigError(
            "TablePolicy.row_filters must be a mapping of table names to conditions, found"
            f" {filters!r}"
        )
    folded = {str(table).strip().casefold(): str(text).strip() for table, text in filters.items()}
    if len(folded) < len(filters):
        raise ConfigError("TablePolicy.row_filters names a table twice: names match in any case")
    return folded


def _spellings(column: str, table: str, schema: str) -> tuple[str, str, str]:
    return (
        column.casefold(),
        f"{table}.{column}".casefold(),
        f"{schema}.{table}.{column}".casefold(),
    )


def load_policy(path: Path) -> TablePolicy:
    """Read a policy from a TOML file. Raises `ConfigError` with file and line if there is a mistake
    in it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the policy file {str(path)!r} cannot be read: {_why(error)}") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name}: {error}") from error
    lines = _Lines(path.name, text)
    values: dict[str, Any] = {}
    places: dict[tuple[str, str], str] = {}
    for key, value in tables.items():
        if key == "rows":
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(
                    f"{lines.place('', 'rows')}: rows must be a whole number of at least 1, found"
                    f" {value!r}"
                )
            values["rows"] = value
        elif key == FILTERS and isinstance(value, dict):
            _take_filters(lines, value, values, places)
        elif key in SECTIONS and isinstance(value, dict):
            for name, entries in value.items():
                _take(lines, key, name, entries, values, places)
        else:
            raise ConfigError(
                f"{lines.place('', key)}: {key!r} is not known: use rows, [tables], [columns] or"
                " [row_filters]"
            )
    return TablePolicy(**values, places=places)


def _take(
    lines: "_Lines",
    section: str,
    name: str,
    entries: object,
    values: dict[str, Any],
    places: dict[tuple[str, str], str],
) -> None:
    known = SECTIONS[section]
    if name not in known:
        raise ConfigError(
            f"{lines.place(section, name)}: {name!r} is not known in [{section}]: use"
            f" {', '.join(known)}"
        )
    if not isinstance(entries, list):
        raise ConfigError(
            f"{lines.place(section, name)}: {name} must be a list of names, found {entries!r}"
        )
    for entry in entries:
        place = lines.place(section, name, entry if isinstance(entry, str) else None)
        if not isinstance(entry, str) or not entry.strip():
            raise ConfigError(f"{place}: {name} must hold names, found {entry!r}")
        if known[name] == "allowed_columns" and "." not in entry:
            raise ConfigError(f"{place}: {entry!r} lacks its table: write table.column")
        places[known[name], entry.casefold()] = place
    values[known[name]] = frozenset(entries)


def _take_filters(
    lines: "_Lines",
    filters: Mapping[str, object],
    values: dict[str, Any],
    places: dict[tuple[str, str], str],
) -> None:
    conditions: dict[str, str] = {}
    for table, text in filters.items():
        place = lines.place(FILTERS, table)
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(
                f"{place}: the filter of {table!r} must be a condition in SQL, found {text!r}:"
                ' write a name with a dot in quotes, as in "schema.table"'
            )
        conditions[table] = text
        places[FILTERS, table.casefold()] = place
    values[FILTERS] = conditions


class _Lines:
    """Finds the line of a key or of an entry in a policy file, because tomllib does not report
    lines.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._lines = text.splitlines()

    def place(self, section: str, key: str, entry: str | None = None) -> str:
        within = ""
        at_key = False
        line_found = 0
        for number, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[+\s*([^\]\s]+)\s*\]+", line):
                within = header[1].strip("\"'")
                at_key = False
                if not section and within == key:
                    return f"{self._name}, line {number}"
            elif begins := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
                at_key = (within, begins[1]) == (section, key) or (
                    not within and begins[1] == f"{section}.{key}"
                )
                line_found = number if at_key and not line_found else line_found
            if at_key and entry is not None and re.search(rf"""["']{re.escape(entry)}["']""", line):
                return f"{self._name}, line {number}"
        return f"{self._name}, line {line_found}" if line_found else self._name


def _why(error: OSError | UnicodeDecodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
