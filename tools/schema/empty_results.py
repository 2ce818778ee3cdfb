"""Explain why a query found no rows: which condition no row meets, and which values come close to
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from longtable.base.errors import DatabaseError, QueryCancelledError, QueryTimeoutError
from longtable.tools.catalog import Column, Table, fold
from longtable.tools.cells import Json, clean, clip, preview_rows
from longtable.tools.database import Cancel, Database, QueryResult
from longtable.tools.schema.sampling import TEXT, Budget
from longtable.tools.schema.values import NOTE, find_values
from longtable.tools.sql.verdict import Predicate

EMPTY_SECONDS = 2.0

MOST_CONDITIONS = 8

MOST_VALUES = 3
"""The most values of one condition that are looked up, such as the values of a long IN."""

NEAREST = 5

CONDITION_CHARS = 200

ALONE = "no rows meet this condition, whatever the others say"

TOGETHER = (
    "each condition tried alone is met by rows: it is together, or with the joins, that none is"
)


def why_empty(
    database: Database, result: QueryResult, *, cancel: Cancel | None = None
) -> dict[str, Json] | None:
    """Return a report on the conditions of a query whose result is empty, above all those that no
    row meets. Return None if the result is not empty or no condition could be tried.

    A total over no rows counts as empty too: one row with 0 or NULL in each column.
    """
    cells = chain.from_iterable(result.rows)
    if result.row_count > 1 or any(cell is not None and cell != 0 for cell in cells):
        return None
    predicates = database.predicates(result.sql)
    if result.row_count and not predicates.is_total:
        return None
    return _Trial(database, cancel, Budget(EMPTY_SECONDS)).report(predicates.predicates)


@dataclass
class _Trial:
    """The conditions of one query, tried within a time budget."""

    database: Database
    cancel: Cancel | None
    budget: Budget
    incomplete: bool = False
    faults: list[Json] = field(default_factory=list)

    def report(self, conditions: Sequence[Predicate]) -> dict[str, Json] | None:
        tried = sum(self._try(condition) for condition in conditions[:MOST_CONDITIONS])
        if not tried:
            return None
        report: dict[str, Json] = {
            "conditions_tried": tried,
            "at_fault": self.faults,
            "note": NOTE if self.faults else TOGETHER,
        }
        if self.incomplete or len(conditions) > MOST_CONDITIONS:
            report["incomplete"] = True
        return report

    def _try(self, condition: Predicate) -> bool:
        """Try one condition. Return True if its query ran, whatever the query found."""
        table = self.database.catalog().find(condition.table)
        rows = (
            self._rows(f"SELECT 1 FROM {table.sql_name} WHERE {condition.text} LIMIT 1")
            if table is not None
            else None
        )
        if table is None or rows is None:
            return False
        if not rows:
            condition_text = clip(clean(condition.text), CONDITION_CHARS)
            self.faults.append(
                {
                    "condition": condition_text,
                    "table": table.name,
                    "why": ALONE,
                    **self._help(condition, table),
                }
            )
        return True

    def _help(self, condition: Predicate, table: Table) -> dict[str, Json]:
        """Return what the column holds instead: values that are like the values asked for,
        otherwise its most frequent values or its range.
        """
        column = next(
            (each for each in table.columns if fold(each.name) == fold(condition.column)), None
        )
        if column is None:
            return {}
        name = table.sql_column(column.name)
        if TEXT.search(column.type) and condition.values is not None:
            near: list[Json] = []
            for text in condition.values[:MOST_VALUES]:
                near += self._near(text, table, column)
            if near:
                return {
                    "column": column.name,
                    "nearest": [value for i, value in enumerate(near) if value not in near[:i]][
                        :NEAREST
                    ],
                }
            sql = (
                f"SELECT {name}, count(*) FROM {table.sql_name} GROUP BY {name} ORDER BY 2 DESC, 1"
                f" LIMIT {NEAREST}"
            )
            return {"column": column.name, "frequent": [row[0] for row in self._rows(sql) or []]}
        rows = self._rows(f"SELECT min({name}), max({name}) FROM {table.sql_name}")
        return (
            {"column": column.name, "least": rows[0][0], "most": rows[0][1]}
            if rows
            else {"column": column.name}
        )

    def _near(self, text: str, table: Table, column: Column) -> list[str]:
        if not text.strip() or self.budget.left <= 0:
            return []
        answer = find_values(
            self.database,
            text,
            table.name,
            column.name,
            NEAREST,
            seconds=self.budget.left,
            cancel=self.cancel,
        )
        matches = answer["matches"]
        return (
            [str(match["value"]) for match in matches if isinstance(match, dict)]
            if isinstance(matches, list)
            else []
        )

    def _rows(self, sql: str) -> list[list[Json]] | None:
        """Run SQL behind both walls, because a part of it is the model's text. Return None if it
        fails or times out.
        """
        if self.budget.left <= 0:
            self.incomplete = True
            return None
        try:
            result = self.database.run(sql, seconds=self.budget.left, cancel=self.cancel)
        except QueryCancelledError:
            raise
        except DatabaseError as error:
            self.incomplete |= isinstance(error, QueryTimeoutError)
            return None
        return preview_rows(result.shown(result.rows))
