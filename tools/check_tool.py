"""The tool `check_sql`: test the figures of a query by further queries."""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from longtable.base.errors import DatabaseError, QueryCancelledError, UnknownDatabaseError
from longtable.tools.cells import Json, dumps, json_value
from longtable.tools.database import Cancel, Database, QueryResult
from longtable.tools.fetch import FetchRefusedError, Results
from longtable.tools.schema.sampling import Budget
from longtable.tools.tool_answers import Answer, CheckReport, cancellable_tool

CHECKS = {
    "same_rows": "run again, it gives the same rows",
    "fan_out": "no join repeats rows",
    "counted_rows": "each of what is counted stands in one row",
    "nulls_dropped": "no condition drops rows without a value",
    "rows_lost": "no join loses rows",
    "date_bounds": "the range of dates ends with whole days",
    "unit": "shares are used as shares",
    "measure": "the sum leaves out no factor",
    "other_route": "the totals agree with the sums of their lines",
}
"""The codes of the checks. The text for a code is shown if this check found nothing wrong."""


def check_query(
    database: Database,
    sql: str,
    question: str = "",
    *,
    before: QueryResult | None = None,
    cancel: Cancel | None = None,
) -> CheckReport:
    """Run a query again, then run the queries that check it, all behind both walls.

    `before` is the query's first result, to which the new one is compared. Raises the errors of
    `Database.run` if the query itself fails. A check that cannot run is listed in `not_checked`
    with its code and the reason.
    """
    budget = Budget(CHECK_SECONDS)
    queries = [database.run(sql, cancel=cancel)]
    probes = database.probes(queries[0].sql, question)
    not_checked = [f"{probe.code}: not planned" for probe in probes if not probe.text]
    runs: list[tuple[str, str, list[int]]] = []
    if before is not None:
        again = [before.row_count, (_row_counts(before) & _row_counts(queries[0])).total()]
        runs = [("same_rows", "run again, the query gives {1:,} of its {0:,} rows", again)]
    for probe in [each for each in probes if each.text]:
        try:
            queries += (
                [database.run(probe.sql, seconds=max(0.1, budget.left), cancel=cancel)]
                if probe.sql
                else []
            )
            runs.append(
                (
                    probe.code,
                    probe.text,
                    [int(str(cell or 0)) for cell in queries[-1].rows[0]] if probe.sql else [],
                )
            )
        except QueryCancelledError:
            raise
        except DatabaseError as error:
            not_checked.append(f"{probe.code}: {error.problem or error.code}")
    findings: list[dict[str, Json]] = [
        {"code": code, "text": text.format(*figures), "figures": [*figures]}
        for code, text, figures in runs
        if not figures or figures[0] != [*figures, 0][1]
    ]
    loud = {finding["code"] for finding in findings}
    quiet = dict.fromkeys(code for code, _, _ in runs if code not in loud)
    return CheckReport(findings, [CHECKS[code] for code in quiet], not_checked, queries)


def _row_counts(result: QueryResult) -> Counter[str]:
    """Count equal rows, so that results can be compared whatever the order of their rows. Numbers
    are rounded to 9 digits, because an engine may compute further digits differently each time.
    """
    return Counter(dumps(list(map(_rounded, row))) for row in result.rows)


def _rounded(cell: object) -> Json:
    return f"{cell:.9g}" if isinstance(cell, float | Decimal) else json_value(cell)


def check_tool(database: Database, is_own: Callable[[str], bool] | None = None) -> BaseTool:
    """Return the tool check_sql. So that a call can name a handle, the caller must add a
    `ThreadResults` to the call's "args" as `results`.

    `is_own`: returns whether a result's name of its database means this one. It is asked for
    results that were made while there were several databases.
    """

    def check(
        result: Annotated[
            str,
            Field(description="Handle of the result to check, such as r3. Not needed with sql."),
        ] = "",
        sql: Annotated[str, Field(description="Instead of a handle: the SELECT to check.")] = "",
        question: Annotated[
            str,
            Field(
                description="The question it answers, in full, best in the language of the schema."
            ),
        ] = "",
        results: Results = None,
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        if not sql.strip() and (results is None or not result.strip()):
            raise FetchRefusedError("give the handle of a result, or the sql to check")
        before = results.get(result) if results is not None and not sql.strip() else None
        if before is not None and is_own is not None and not is_own(before.database):
            raise UnknownDatabaseError(before.database, known=())
        done = check_query(
            database, before.sql if before else sql, question, before=before, cancel=cancel
        )
        answer: dict[str, Json] = {
            "look_at": [*done.findings],
            "ok": [*done.ok],
            "not_checked": [*done.not_checked],
        }
        return (
            dumps(
                {
                    **answer,
                    "queries": len(done.queries),
                    "total": done.queries[0].row_count,
                    "sql": done.queries[0].sql,
                }
            ),
            done,
        )

    return cancellable_tool(
        CHECK_SQL,
        "Check by code whether the figures of a query can be trusted: joins that repeat or lose"
        " rows, rows counted in place of values, missing values, ends of dates, units, factors,"
        " another way to the same figure. look_at says what is probably wrong, and why.",
        check,
        metadata={"kind": CHECK},
    )


CHECK_SQL = "check_sql"

CHECK = "check"
"""The metadata `kind` of check_sql. A tool of this kind is given the thread's results."""

CHECK_SECONDS = 30.0
"""Seconds that all queries of one check may take together."""
