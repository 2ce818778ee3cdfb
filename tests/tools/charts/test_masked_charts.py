"""Charts of masked columns: nothing that a model is told depends on their values; a person sees
them.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from longtable.tools.charts.chart_fields import ChartSpecError
from longtable.tools.charts.chart_tool import chart_of, chart_tool, masked_chart_of
from longtable.tools.database import QueryResult, TablePolicy
from longtable.tools.fetch import ThreadResults
from longtable.tools.results.result_store import ResultStore
from tests.tools.databases import make, open_at

PHONES = {
    "numbers": [f"{n}" for n in range(61)],
    "words": [f"a{n % 2}" for n in range(61)],
    "dates": [f"2024-01-{n % 28 + 1:02}" for n in range(61)],
    "one word": ["x"] * 61,
}
ASKED: tuple[dict[str, Any], ...] = (
    *({"wish": wish} for wish in ("", "pie", "line by month", "histogram", "bar by phone", "dots")),
    *(
        {"spec": {"mark": "bar", "encoding": {"x": channel, "y": {"aggregate": "count"}}}}
        for channel in (
            {"field": "phone"},
            {"field": "phone", "type": "quantitative"},
            {"field": "phone", "type": "temporal"},
            {"field": "phone", "bin": True},
            {"field": "phone", "timeUnit": "year"},
            {"field": "phone", "aggregate": "sum"},
        )
    ),
    {"spec": {"mark": "bar", "encoding": {"row": {"field": "phone"}, "y": {"field": "n"}}}},
)


def result_of(folder: Path, dialect: str, phones: Sequence[str]) -> QueryResult:
    rows = ", ".join(f"({n}, '{phone}')" for n, phone in enumerate(phones))
    script = f"CREATE TABLE people (n INTEGER, phone TEXT); INSERT INTO people VALUES {rows};"
    place = make(folder, dialect, script)
    policy = TablePolicy(masked_columns=frozenset({"people.phone"}))
    database = open_at(place, policy=policy)
    try:
        return database.run("SELECT n, phone FROM people")
    finally:
        database.close()


def told(store: ResultStore, handle: str, asked: dict[str, Any]) -> str:
    """Return what the tool tells the model, but for the handle."""
    args = {"handle": handle, **asked, "results": ThreadResults(store, "t")}
    call = {"name": "show_chart", "args": args, "id": "1", "type": "tool_call"}
    try:
        return str(chart_tool().invoke(call).content).replace(handle, "r")
    except ChartSpecError as error:
        return str(error)


def test_what_a_model_is_told_is_the_same_whatever_the_masked_values_are(
    tmp_path: Path, dialect: str
) -> None:
    store = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    answers = {}
    for name, phones in PHONES.items():
        folder = tmp_path / name
        folder.mkdir()
        handle = ThreadResults(store, "t").put(result_of(folder, dialect, phones))
        answers[name] = [told(store, handle, asked) for asked in ASKED]
    for name in PHONES:
        for place, asked in enumerate(ASKED):
            assert answers[name][place] == answers["numbers"][place], (name, asked)


def rows(phones: Sequence[str]) -> QueryResult:
    cells: list[tuple[object, ...]] = [(n, phone) for n, phone in enumerate(phones)]
    types = ("INTEGER", "TEXT")
    return QueryResult("", ("n", "phone"), types, cells, len(cells), 0, frozenset({1}))


def test_the_rows_of_a_long_result_are_added_up_by_what_the_model_may_see() -> None:
    spec = ASKED[6]["spec"]
    counted = [
        masked_chart_of("r1", rows([f"{n % many}" for n in range(6_000)]), spec=spec).notes
        for many in (2, 21)
    ]
    assert counted == [("6,000 rows were added up to 1 points",)] * 2


def test_a_person_sees_the_values_and_the_mask_where_they_cannot_be_drawn() -> None:
    spec = ASKED[-1]["spec"]
    few = chart_of("r1", rows(["+41 1", "+41 2"]), spec=spec)
    assert [row["phone"] for row in few.rows] == ["+41 1", "+41 2"]
    many = chart_of("r1", rows([f"+41 {n}" for n in range(61)]), spec=spec)
    assert all(row["phone"] == "•••" for row in many.rows)
    with pytest.raises(ChartSpecError, match="no column"):
        chart_of("r1", rows(["+41 1"]), spec={"mark": "bar", "encoding": {"x": {"field": "name"}}})


def test_the_spec_that_is_kept_of_counts_over_many_rows_can_be_drawn_again(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, clock=lambda: datetime.now(UTC))
    result = rows([f"{n % 21}" for n in range(6_000)])
    handle = ThreadResults(store, "t").put(result)
    answer = told(store, handle, ASKED[6])
    chart = chart_of(handle, result, spec=json.loads(answer)["spec"])
    assert len(chart.rows) == 21
    assert sum(int(str(row["rows_counted"])) for row in chart.rows) == 6_000
