"""Find what each name in a query means: a masked column, an open column, or several columns that it
may be.
"""

import re
from collections.abc import Mapping
from itertools import chain

from sqlglot import exp

from longtable.tools.catalog import Table, fold
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import RefusedError
from longtable.tools.sql.scope import (
    Columns,
    Scope,
    Value,
    merged,
    name_key,
)

NUMBER_CHARS = 15
"""The most characters of a number that may be compared with a masked column. For a longer number,
DuckDB casts a DECIMAL(38, 0) column to the number's scale, and fails if a value is too large for
this scale.
"""
ROW_IDS = ("rowid", "oid", "_rowid_")
"""SQLite's names for the rowid, the whole number that identifies a row. If the primary key is a
whole number, the rowid is this key.
"""
_ALONE = (
    "by itself it can be selected, counted, grouped, sorted by, made distinct, joined to a masked"
    " column (name both with their tables), and compared by =, <>, IN or IS NULL with values"
    " written out in WHERE, ON, HAVING or FILTER"
)
_OUTERMOST = (
    "; ||, concat, upper, lower, trim, coalesce, CAST to text, min, max and string_agg of it only"
    " in the outermost SELECT list"
)
_TEXT = re.compile("CHAR|TEXT|STRING|CLOB|ENUM", re.IGNORECASE)


class MaskedNames:
    """The names of one statement: its tables and its masked columns."""

    def __init__(self, tables: Mapping[int, Table], dialect: str, *, view: bool) -> None:
        self._tables = tables
        self._dialect = dialect
        self._view = view
        self._ctes: dict[int, Columns] = {}
        self._values = 0
        self._unread = {node for node, table in tables.items() if table.has_masks}
        self._masked_names: set[str | None] = set()
        for table in tables.values():
            self._remember(self._columns(table))
            if dialect_of(dialect).row_ids and any(
                column.masked and column.name in table.primary_key for column in table.columns
            ):
                self._masked_names.update(ROW_IDS)

    def _key(self, identifier: exp.Expr | None) -> str:
        return name_key(identifier, self._dialect)

    def _remember(self, columns: Columns) -> None:
        self._masked_names.update(name for name, value in columns if name and value.masked)

    def _columns(self, table: Table) -> Columns:
        exact = dialect_of(self._dialect).exact_names
        untyped = "" if dialect_of(self._dialect).declared_types else "?"
        return [
            (
                column.name if exact else fold(column.name),
                Value(column.masked, "" if column.computed else column.type or untyped),
            )
            for column in table.columns
        ]

    def _meaning(self, column: exp.Column, scope: Scope) -> Value:
        """Return what a column name means. If it may mean several columns, their values are merged
        into one.
        """
        *parts, name = [self._key(part) for part in column.parts]
        if not parts:
            return self._named(name, scope)
        values = scope.find(name, parts[-1])
        sources = scope.sources_named(parts[-1])
        fields_of = chain.from_iterable(map(scope.find, parts))
        if not values and any(value.masked for value in fields_of):
            return Value(masked=True)  # a field of a masked value
        if (
            not values
            and dialect_of(self._dialect).field_calls
            and any(source.has_masks for source in sources)
        ):
            # `t.text` is `CAST(t AS text)` there, and `t.to_json` is `to_json(t)`.
            raise RefusedError(
                "column",
                f"{parts[-1]!r} has no column {name!r}",
                "see describe_tables for its columns",
                node=column,
            )
        return merged(
            values
            or [Value(masked=name in self._masked_names and (not sources or name in ROW_IDS))]
        )

    def _named(self, name: str, scope: Scope) -> Value:
        values = scope.find(name)
        for one in scope.chain():  # the name of a source is its whole row
            rows = [
                source for source in one.sources if source.name == name and not source.values(name)
            ]
            values += [Value(masked=True) for source in rows if source.has_masks]
        return merged(values or [Value(masked=name in self._masked_names)])

    def _alike(self, one: str, other: str) -> bool:
        """Return whether two types can be compared without casting text. In DuckDB, such a cast
        fails at the first text that is not a number, which would reveal something about the values.
        """
        return (
            dialect_of(self._dialect).text_compared_with_number
            or "NULL" in (one, other)
            or bool(_TEXT.search(one)) == bool(_TEXT.search(other))
        )

    def _side_by_side(self, values: list[Value]) -> bool:
        """Return whether a UNION ALL may put these values into one column. The cast to a common
        type must not be able to fail because of a masked value.
        """
        kinds = [value.kind for value in values if value.kind]
        return not any(value.masked for value in values) or (
            all(value.kind or value.masked for value in values)
            and all(self._alike(kinds[0], kind) for kind in kinds)
        )

    def _check_joined(self, one: Value, other: Value, node: exp.Expr) -> None:
        both = one.masked and other.masked and one.kind and other.kind
        if (one.masked or other.masked) and not (both and self._alike(one.kind, other.kind)):
            raise refused("compared with an open column or one of another type", node)


def refused(what: str, node: exp.Expr, hint: str = _ALONE + _OUTERMOST) -> RefusedError:
    return RefusedError("masked", f"a masked column cannot be {what}", hint, node=node)
