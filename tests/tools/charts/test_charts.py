"""Charts: what a spec may hold, what it is drawn as, and what is made of a wish."""

import json
import re
import struct
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtable.tools.charts.chart_fields import ChartSpecError
from longtable.tools.charts.chart_points import MAX_POINTS
from longtable.tools.charts.chart_spec import Checked, check_spec
from longtable.tools.charts.chart_wishes import default_spec
from longtable.tools.charts.drawing import render_text
from longtable.tools.charts.pictures import Chart

COLUMNS = ["day", "country", "revenue", "orders", "year"]
TYPES = ["DATE", "VARCHAR", "DECIMAL(18,2)", "BIGINT", "BIGINT"]
ROWS = [
    (
        f"2024-{month:02d}-{day:02d}",
        country,
        Decimal(f"{100 * month + day}.50"),
        month * day,
        2020 + month,
    )
    for month in range(1, 7)
    for day in (1, 15)
    for country in ("Germany", "美国")
]
BAR = {
    "mark": "bar",
    "encoding": {"x": {"field": "country"}, "y": {"field": "revenue", "aggregate": "sum"}},
}


def check(spec: object) -> Checked:
    return check_spec(spec, COLUMNS, TYPES, ROWS)  # type: ignore[arg-type]  # hostile specs are of any type


def drawn(checked: Checked) -> Chart:
    return Chart("r1", checked.spec, checked.rows)


GOOD = [
    BAR,
    {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", **BAR},
    {"data": {"name": "r3"}, **BAR},
    {"mark": {"type": "line", "point": True}, "encoding": {"x": {"field": "day", "timeUnit": "yearmonth"}, "y": {"field": "revenue"}}},
    {"mark": "point", "encoding": {"x": {"field": "orders"}, "y": {"field": "revenue"}, "color": {"field": "country"}}},
    {"mark": "arc", "encoding": {"theta": {"field": "orders", "aggregate": "sum"}, "color": {"field": "country"}}},
    {"mark": "bar", "encoding": {"x": {"field": "revenue", "bin": {"maxbins": 8}}, "y": {"aggregate": "count"}}},
    {"mark": "bar", "encoding": {"x": {"field": "year", "type": "ordinal"}, "y": {"field": "country", "aggregate": "distinct"}}},
    {"layer": [BAR, {"mark": "text", "encoding": {"x": {"field": "country"}, "text": {"value": "here"}}}]},
    {"hconcat": [BAR, BAR]},
    {"facet": {"field": "country"}, "spec": {"mark": "line", "encoding": {"x": {"field": "day"}, "y": {"field": "orders"}}}},
    {"mark": "line", "encoding": {"x": {"field": "day"}, "y": {"field": "orders"}, "row": {"field": "country"}}},
    {"repeat": ["orders", "revenue"], "spec": {"mark": "bar", "encoding": {"x": {"field": {"repeat": "repeat"}, "type": "quantitative"}}}},
    {"transform": [{"filter": {"field": "orders", "gt": 5}}], **BAR},
    {"transform": [{"fold": ["orders", "revenue"], "as": ["what", "n"]}], "mark": "line",
     "encoding": {"x": {"field": "day"}, "y": {"field": "n"}, "color": {"field": "what"}}},
    {"mark": "bar", "encoding": {"x": {"field": "country", "sort": {"field": "orders", "op": "sum"}}, "y": {"field": "orders"}}},
]  # fmt: skip


@pytest.mark.parametrize("spec", GOOD, ids=lambda spec: json.dumps(spec)[:60])
def test_a_good_spec_passes_and_is_drawn(spec: dict[str, object]) -> None:
    checked = check(spec)
    assert "data" not in checked.spec
    assert checked.notes == ()
    assert len(checked.rows) == len(ROWS)
    svg = drawn(checked).svg()
    assert re.search(r'<(?:path|rect)[^>]* d="M', svg), "no mark was drawn"
    assert "NaN" not in svg


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"mark": "blob", "encoding": {}}, "there is no mark 'blob'.*use one of.*bar"),
        ({"mark": "lines", "encoding": {}}, "there is no mark 'lines'.*line"),
        ({"encoding": {}}, "there is no mark"),
        (
            {"mark": "bar", "encoding": {"x": {"field": "contry"}}},
            "no column 'contry' at spec.encoding.x: its columns: country",
        ),
        ({"mark": "bar", "encoding": {"X": {"field": "country"}}}, "no channel 'X'.*nearest: x"),
        ({"mark": "bar", "encoding": {"x": {"feild": "country"}}}, "not valid Vega-Lite.*feild"),
        (
            {"mark": "bar", "encoding": {"x": {"field": "country", "type": "category"}}},
            "not valid Vega-Lite",
        ),
        (
            {"mark": "bar", "encoding": {"y": {"field": "country", "type": "quantitative"}}},
            "holds text, not numbers.*nominal",
        ),
        (
            {"mark": "line", "encoding": {"x": {"field": "year", "type": "temporal"}}},
            "holds whole numbers, not dates.*ordinal",
        ),
        (
            {"mark": "line", "encoding": {"x": {"field": "country", "type": "temporal"}}},
            "holds text, not dates.*nominal",
        ),
        (
            {"mark": "bar", "encoding": {"y": {"field": "country", "aggregate": "sum"}}},
            "sum of 'country'.*count",
        ),
        ({"mark": "bar", "encoding": {"y": {"field": "country", "bin": True}}}, "cannot be binned"),
        (
            {"mark": "bar", "encoding": {"y": {"field": "year", "timeUnit": "year"}}},
            "no timeUnit|not dates",
        ),
        ({"mark": "bar", "encoding": [1]}, "encoding is not an object"),
        ({"layer": [3]}, "not an object"),
        ({"facet": {"field": "nope"}, "spec": BAR}, "no column 'nope'"),
        ({"repeat": ["nope"], "spec": BAR}, "no column 'nope'"),
        (
            {
                "transform": [{"groupby": ["nope"], "aggregate": [{"op": "count", "as": "n"}]}],
                **BAR,
            },
            "no column 'nope'",
        ),
        ({"transform": [{"sample": 5}], **BAR}, "transform is not supported"),
        (
            {"mark": "bar", "encoding": {"x": {"field": "country", "sort": {"field": "nope"}}}},
            "no column 'nope'",
        ),
    ],
)
def test_a_fault_is_named_with_its_place_and_what_to_change(
    spec: dict[str, object], says: str
) -> None:
    with pytest.raises(ChartSpecError, match=says):
        check(spec)


def deep(levels: int) -> dict[str, object]:
    spec: dict[str, object] = dict(BAR)
    for _ in range(levels):
        spec = {"hconcat": [spec]}
    return spec


def loop() -> dict[str, object]:
    spec: dict[str, object] = dict(BAR)
    spec["title"] = [spec]
    return spec


HOSTILE: list[Callable[[], object]] = [
    lambda: {**BAR, "data": {"url": "http://127.0.0.1/x.json"}},
    lambda: {**BAR, "data": {"url": "file:///etc/passwd"}},
    lambda: {**BAR, "data": {"values": [{"country": "x"}]}},
    lambda: {**BAR, "data": {"sequence": {"start": 0, "stop": 1e9}}},
    lambda: {**BAR, "data": {"name": "r1", "url": "x"}},
    lambda: {**BAR, "data": "r1"},
    lambda: {**BAR, "datasets": {"x": [1]}},
    lambda: {"layer": [{**BAR, "data": {"url": "x.csv"}}]},
    lambda: {
        **BAR,
        "transform": [{"lookup": "country", "from": {"data": {"url": "x"}, "key": "a"}}],
    },
    lambda: {**BAR, "transform": [{"calculate": "warn('x')", "as": "y"}]},
    lambda: {**BAR, "transform": [{"filter": "datum.x > 1"}]},
    lambda: {**BAR, "transform": [{"filter": {"and": [{"field": "orders", "gt": {"expr": "1"}}]}}]},
    lambda: {**BAR, "transform": [{"filter": {"not": "datum.x"}}]},
    lambda: {
        **BAR,
        "transform": [{"impute": "orders", "key": "year", "keyvals": {"start": 0, "stop": 1e9}}],
    },
    lambda: {**BAR, "params": [{"name": "p", "expr": "1"}]},
    lambda: {**BAR, "width": {"signal": "1"}},
    lambda: {**BAR, "title": {"text": {"expr": "1"}}},
    lambda: {"mark": {"type": "bar", "href": "javascript:alert(1)"}, "encoding": {}},
    lambda: {"mark": "bar", "encoding": {"href": {"field": "country"}}},
    lambda: {"mark": {"type": "image", "url": "http://127.0.0.1/x.png"}, "encoding": {}},
    lambda: {"mark": "image", "encoding": {"url": {"value": "http://127.0.0.1/x.png"}}},
    lambda: {"mark": "geoshape", "projection": {"type": "mercator"}},
    lambda: {"mark": {"type": "bar", "fill": "url(http://127.0.0.1/x)"}, "encoding": {}},
    lambda: {"mark": {"type": "bar", "fill": "url(file:/etc/passwd)"}, "encoding": {}},
    lambda: {"mark": {"type": "point", "shape": "http://127.0.0.1/"}, "encoding": {}},
    lambda: {
        "mark": "bar",
        "encoding": {"color": {"condition": {"test": "true", "value": "red"}, "value": "blue"}},
    },
    lambda: {
        "mark": "bar",
        "encoding": {"x": {"field": "country", "axis": {"labelExpr": "datum.label"}}},
    },
    lambda: {
        "mark": "bar",
        "encoding": {
            "x": {"field": "day", "axis": {"tickCount": {"interval": "millisecond", "step": 1}}}
        },
    },
    lambda: {"mark": "bar", "encoding": {"x": {"field": "orders", "bin": {"step": 1e-9}}}},
    lambda: {"mark": "bar", "encoding": {"x": {"field": "orders", "bin": {"maxbins": 1e9}}}},
    lambda: {
        "mark": "bar",
        "encoding": {
            "x": {"field": "orders", "scale": {"bins": {"start": 0, "stop": 1e9, "step": 1}}}
        },
    },
    lambda: {**BAR, "usermeta": {"embedOptions": {"sourceHeader": "<script>"}}},
    lambda: {**BAR, "config": {"signals": [{"name": "x"}]}},
    lambda: {**BAR, "config": {"customFormatTypes": True}},
    lambda: {**BAR, "width": 1e9},
    lambda: {**BAR, "height": -5},
    lambda: {**BAR, "width": {"step": 1e7}},
    lambda: {**BAR, "padding": 1e9},
    lambda: {"mark": {"type": "text", "fontSize": 1e9}, "encoding": {}},
    lambda: {**BAR, "__proto__": {"polluted": True}},
    lambda: {"mark": "bar", "encoding": {"x": {"field": "country", "constructor": 1}}},
    lambda: {**BAR, "title": "x" * 10_000_000},
    lambda: {**BAR, "title": ["x"] * 1_000_000},
    lambda: deep(30),
    lambda: deep(100_000),
    lambda: {"hconcat": [BAR] * 17},
    lambda: json.loads('{"mark":"bar","width":1e999}'),
    lambda: {**BAR, "width": float("nan")},
    lambda: {**BAR, "title": object()},
    lambda: [BAR],
    lambda: "bar",
    lambda: None,
]


@pytest.mark.parametrize("make", HOSTILE)
def test_a_hostile_spec_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ChartSpecError):
        check(make())


def test_a_spec_that_holds_itself_is_refused() -> None:
    with pytest.raises(ChartSpecError):
        check(loop())


def test_the_spec_given_is_not_changed() -> None:
    spec = json.loads(json.dumps(BAR))
    check(spec)
    assert spec == BAR


def test_columns_that_rule_objects_are_no_fields() -> None:
    checked = check_spec(
        BAR, [*COLUMNS, "__proto__"], [*TYPES, "VARCHAR"], [(*row, "x") for row in ROWS]
    )
    assert "__proto__" not in checked.rows[0]


def test_names_with_points_and_brackets_are_columns_not_paths() -> None:
    spec = {"mark": "point", "encoding": {"x": {"field": "a.b"}, "y": {"field": "sum(x)['y']"}}}
    checked = check_spec(spec, ["a.b", "sum(x)['y']"], ["INT", "INT"], [(1, 2), (3, 40)])
    svg = drawn(checked).svg()
    assert "a.b: 3" in svg
    assert ">a.b</text>" in svg


def test_cells_become_what_a_chart_can_use() -> None:
    rows = [(date(2024, 1, 1), Decimal("2.5"), float("nan")), (None, "3", 1.0)]
    spec = {"mark": "line", "encoding": {"x": {"field": "d"}, "y": {"field": "n"}}}
    checked = check_spec(spec, ["d", "n", "x"], ["DATE", "DECIMAL", "DOUBLE"], rows)
    # Midnight where the reader is: a date alone would be midnight in Greenwich, the day before in
    # America.
    assert checked.rows[0] == {"d": "2024-01-01T00:00:00", "n": 2.5, "x": None}


# -- too many rows ---------------------------------------------------------------------------------


def test_many_rows_are_added_up_exactly_where_the_spec_adds_up() -> None:
    rows = [(f"c{number % 7}", number) for number in range(20_000)]
    spec = {
        "mark": "bar",
        "encoding": {"x": {"field": "c"}, "y": {"field": "n", "aggregate": "sum"}},
    }
    checked = check_spec(spec, ["c", "n"], ["VARCHAR", "BIGINT"], rows)
    assert {row["c"]: row["n"] for row in checked.rows} == {
        f"c{key}": sum(range(key, 20_000, 7)) for key in range(7)
    }
    assert checked.notes == ("20,000 rows were added up to 7 points",)
    assert f"{sum(range(0, 20_000, 7))}" in drawn(checked).svg().replace(",", "")


def test_many_rows_are_counted_exactly() -> None:
    spec = {"mark": "bar", "encoding": {"x": {"field": "c"}, "y": {"aggregate": "count"}}}
    checked = check_spec(
        spec, ["c"], ["VARCHAR"], [("ab"[number % 3 == 0],) for number in range(9_000)]
    )
    assert checked.spec["encoding"]["y"]["aggregate"] == "sum"  # type: ignore[index, call-overload]
    svg = drawn(checked).svg().replace(",", "")
    assert "c: a; count: 6000" in svg
    assert "c: b; count: 3000" in svg


def test_many_rows_without_sums_are_sampled_and_said_so() -> None:
    spec = {"mark": "point", "encoding": {"x": {"field": "a"}, "y": {"field": "b"}}}
    checked = check_spec(
        spec, ["a", "b"], ["BIGINT", "BIGINT"], [(number, number * 2) for number in range(100_000)]
    )
    assert len(checked.rows) <= MAX_POINTS
    assert checked.notes == ("5,000 of 100,000 rows are drawn, every 20th",)


@pytest.mark.parametrize(
    "spec",
    [
        {
            "mark": "bar",
            "encoding": {
                "x": {"field": "a", "bin": True},
                "y": {"field": "b", "aggregate": "median"},
            },
        },
        {
            "mark": "line",
            "encoding": {"x": {"field": "a"}, "y": {"field": "b", "aggregate": "sum"}},
        },
        {"layer": [{"mark": "bar", "encoding": {"y": {"field": "b", "aggregate": "sum"}}}]},
        {
            "transform": [{"filter": {"field": "a", "gt": 1}}],
            "mark": "point",
            "encoding": {"x": {"field": "a"}},
        },
    ],
)
def test_what_cannot_be_added_up_exactly_is_sent_back_to_sql(spec: dict[str, object]) -> None:
    with pytest.raises(ChartSpecError, match="aggregate in the SQL"):
        check_spec(
            spec,
            ["a", "b"],
            ["BIGINT", "BIGINT"],
            [(number, number * 2) for number in range(10_000)],
        )


def test_too_many_categories_and_small_charts_are_sent_back() -> None:
    rows = [(f"c{number}", number) for number in range(1_000)]
    with pytest.raises(ChartSpecError, match=r"1,000 different values.*LIMIT"):
        check_spec(
            {"mark": "bar", "encoding": {"x": {"field": "c"}, "y": {"field": "n"}}},
            ["c", "n"],
            [],
            rows,
        )
    with pytest.raises(ChartSpecError, match="1,000 small charts"):
        check_spec(
            {"mark": "bar", "encoding": {"row": {"field": "c"}, "y": {"field": "n"}}},
            ["c", "n"],
            [],
            rows,
        )


def test_an_empty_result_cannot_be_drawn() -> None:
    with pytest.raises(ChartSpecError, match="no rows"):
        check_spec(BAR, COLUMNS, TYPES, [])


# -- drawings --------------------------------------------------------------------------------------


def test_png_has_its_header_and_size() -> None:
    checked = check({**BAR, "width": 300, "height": 200})
    png = drawn(checked).png(scale=1)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert 300 < width < 450
    assert 200 < height < 320
    twice = struct.unpack(">II", drawn(checked).png(scale=2)[16:24])
    assert abs(twice[0] - 2 * width) <= 2


def test_svg_holds_marks_and_labels() -> None:
    checked = check(BAR)
    svg = drawn(checked).svg()
    assert svg.startswith("<svg")
    assert "Germany" in svg
    assert "美国" in svg
    assert len(re.findall(r'aria-roledescription="bar"', svg)) == 2


def test_a_drawing_too_large_is_refused_before_it_is_made_of_pixels() -> None:
    spec = {"vconcat": [{**BAR, "height": 2_000} for _ in range(5)]}
    checked = check(spec)
    with pytest.raises(ChartSpecError, match="pixels"):
        drawn(checked).png(scale=1)


def test_html_stands_alone_and_no_cell_can_end_its_script() -> None:
    checked = check_spec(
        BAR,
        COLUMNS,
        TYPES,
        [*ROWS, ("2024-01-01", "</script><script>alert(1)</script>", 1, 1, 2020)],
    )
    page = drawn(checked).html()
    assert page.count("</script") == 1
    assert "<script>alert" not in page
    assert "\\u003c/script>" in page
    assert not re.search(r'(?:src|href)="https?:', page)
    assert "default-src 'none'" in page
    assert 300_000 < len(page) < 2_000_000


@pytest.mark.parametrize("width", [40, 80, 120])
def test_text_has_the_labels_and_fits(width: int) -> None:
    checked = check({**BAR, "title": "Revenue"})
    lines = render_text(checked.spec, checked.rows, width).split("\n")
    assert lines[0] == "Revenue"
    assert any(
        line.startswith("Germany") and "█" in line and line.endswith("4,302") for line in lines
    )
    assert any(line.startswith("美国") for line in lines)
    assert all(len(line) <= width for line in lines)


def test_text_of_points_is_a_grid() -> None:
    checked = check(
        {"mark": "point", "encoding": {"x": {"field": "orders"}, "y": {"field": "revenue"}}}
    )
    text = render_text(checked.spec, checked.rows, 60)
    assert "●" in text or "█" in text
    assert "revenue against orders" in text
    assert "615.5" in text


def test_text_of_months_adds_up_and_is_in_order() -> None:
    encoding = {
        "x": {"field": "day", "timeUnit": "yearmonth"},
        "y": {"field": "orders", "aggregate": "sum"},
    }
    checked = check({"mark": "line", "encoding": encoding})
    lines = render_text(checked.spec, checked.rows, 60).split("\n")
    assert [line.split()[0] for line in lines] == [f"2024-{month:02d}" for month in range(1, 7)]
    assert [line.split()[-1] for line in lines] == [str(month * 32) for month in range(1, 7)]


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("sum", ["14", "–", "0"]),
        ("mean", ["7", "–", "0"]),
        ("count", ["3", "1", "1"]),
        ("distinct", ["2", "0", "1"]),
    ],
)
def test_text_draws_null_as_no_number(kind: str, ends: list[str]) -> None:
    spec = {
        "mark": "bar",
        "encoding": {"x": {"field": "c"}, "y": {"field": "n", "aggregate": kind}},
    }
    checked = check_spec(
        spec,
        ["c", "n"],
        ["VARCHAR", "BIGINT"],
        [("a", 10), ("a", None), ("a", 4), ("b", None), ("z", 0)],
    )
    assert [
        line.split()[-1] for line in render_text(checked.spec, checked.rows, 60).split("\n")
    ] == ends


def test_text_draws_no_sum_where_the_chart_shows_none() -> None:
    rows = [("a", 1), ("a", 2), ("a", 9), ("b", 4), ("b", 5)]
    encoding = {"x": {"field": "c"}, "y": {"field": "n"}}
    boxes = check_spec(
        {"mark": {"type": "boxplot"}, "encoding": encoding}, ["c", "n"], ["VARCHAR", "BIGINT"], rows
    )
    # medians
    assert [line.split()[-1] for line in render_text(boxes.spec, boxes.rows, 60).split("\n")] == [
        "2",
        "4.5",
    ]
    spread = {"mark": "bar", "encoding": encoding | {"y": {"field": "n", "aggregate": "stdev"}}}
    checked = check_spec(spread, ["c", "n"], ["VARCHAR", "BIGINT"], rows)
    assert render_text(checked.spec, checked.rows, 60) == "(no text form of this chart)"


def test_text_is_clean_of_control_characters() -> None:
    checked = check_spec(
        {"mark": "bar", "encoding": {"x": {"field": "c"}, "y": {"field": "n"}}},
        ["c", "n"],
        [],
        [("\x1b[2Jred\nline", 1), ("b", -2)],
    )
    text = render_text(checked.spec, checked.rows, 60)
    assert "\x1b" not in text
    assert len(text.split("\n")) == 2


# -- wishes ----------------------------------------------------------------------------------------


def shape(wish: str) -> tuple[str, dict[str, str]]:
    checked = check(default_spec(wish, COLUMNS, TYPES, ROWS))
    assert drawn(checked).svg()
    mark, encoding = checked.spec["mark"], checked.spec["encoding"]
    assert isinstance(encoding, dict)
    told = {
        name: str(one.get("field", one.get("aggregate")))
        for name, one in encoding.items()
        if isinstance(one, dict)
    }
    return str(mark["type"] if isinstance(mark, dict) else mark), told


@pytest.mark.parametrize(
    ("wish", "mark", "fields"),
    [
        ("line by month", "line", {"x": "day", "y": "revenue", "color": "country"}),
        ("plot orders over time", "line", {"x": "day", "y": "orders", "color": "country"}),
        ("bar of revenue by country", "bar", {"y": "country", "x": "revenue"}),
        ("bar chart of orders per country", "bar", {"y": "country", "x": "orders"}),
        ("饼图", "arc", {"theta": "revenue", "color": "country"}),
        ("pie of orders", "arc", {"theta": "orders", "color": "country"}),
        ("按月折线图", "line", {"x": "day", "y": "revenue", "color": "country"}),
        ("柱状图", "bar", {"x": "day", "y": "revenue", "color": "country"}),
        ("scatter of revenue and orders", "point", {"x": "revenue", "y": "orders"}),
        ("散点图", "point", {"x": "revenue", "y": "orders"}),
        ("histogram of revenue", "bar", {"x": "revenue", "y": "count"}),
        ("orders 的分布", "bar", {"x": "orders", "y": "count"}),
        (
            "line of revenue by month, one line per country",
            "line",
            {"x": "day", "y": "revenue", "color": "country"},
        ),
        ("revenue per country and month", "line", {"x": "day", "y": "revenue", "color": "country"}),
        ("area chart of orders by day", "area", {"x": "day", "y": "orders", "color": "country"}),
        ("revenue by year", "line", {"x": "year", "y": "revenue", "color": "country"}),
        ("", "line", {"x": "day", "y": "revenue", "color": "country"}),
    ],
)
def test_a_wish_becomes_a_chart_of_the_right_shape(
    wish: str, mark: str, fields: dict[str, str]
) -> None:
    found, told = shape(wish)
    assert found == mark
    assert fields.items() <= told.items()


def test_a_wish_by_month_gathers_days_into_months() -> None:
    spec = default_spec("按月折线图", COLUMNS, TYPES, ROWS)
    assert spec["encoding"]["x"]["timeUnit"] == "yearmonth"  # type: ignore[index, call-overload]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["n"], [(1,), (2,), (5,)]),
        (["name"], [("a",), ("b",), ("a",)]),
        (["customer_id", "name"], [(1, "a"), (2, "b")]),
        (["a", "b"], [(1, 2.5), (2, 3.5), (3, 1.0)]),
        (["month", "north", "south"], [("2024-01", 1, 2), ("2024-02", 3, 4), ("2024-03", 3, 4)]),
        (["when"], [(date(2024, 1, 1),), (date(2024, 1, 2),)]),
        (["ok"], [(True,), (False,)]),
        (["count(*)", "a.b"], [(1, "x"), (2, "y")]),
        (["n"], [(7,)]),
        (["x", "y"], [(None, None), (None, None)]),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize(
    "wish",
    [
        "",
        "line",
        "bar",
        "pie",
        "scatter",
        "heatmap",
        "box plot",
        "饼图",
        "histogram",
        "area by month",
    ],
)
def test_every_shape_of_result_gets_a_chart_or_a_reason(
    columns: list[str], rows: list[tuple[object, ...]], wish: str
) -> None:
    types = ["ANY"] * len(columns)
    try:
        spec = default_spec(wish, columns, types, rows)
    except ChartSpecError as error:
        # Nothing to draw: two numbers that are no numbers, or a pie without names.
        if (
            columns not in (["n"], ["a", "b"], ["x", "y"], ["customer_id", "name"])
            or not error.hint
        ):
            raise
        return
    checked = check_spec(spec, columns, types, rows)
    assert drawn(checked).svg().startswith("<svg")
    assert render_text(checked.spec, checked.rows)


@pytest.mark.parametrize(
    ("wish", "columns", "title", "axes"),
    [
        (
            "please plot the average delay per month",
            ["month", "avg(dep_delay)"],
            "average dep_delay by month",
            {"x": "month", "y": "average dep_delay"},
        ),
        (
            "bars, longest first, thank you",
            ["carrier", "count_star()"],
            "count by carrier",
            {"y": "carrier", "x": "count"},
        ),
        (
            "画成柱状图",
            ["carrier", "sum(price)"],
            "price 合计，按 carrier",
            {"y": "carrier", "x": "price 合计"},
        ),
    ],
)
def test_a_chart_is_titled_by_its_columns_not_by_the_wish_or_its_sql(
    wish: str, columns: list[str], title: str, axes: dict[str, str]
) -> None:
    key: list[object] = [1, 2, 3] if columns[0] == "month" else ["AA", "B6", "UA"]
    rows = list(zip(key, [3.5, 1.5, 2.5], strict=True))
    spec = default_spec(wish, columns, [], rows)
    assert spec["title"] == title
    encoding = spec["encoding"]
    assert isinstance(encoding, dict)
    assert {name: one["title"] for name, one in encoding.items() if isinstance(one, dict)} == axes
    assert title in drawn(check_spec(spec, columns, [], rows)).svg()


ORDERED_ROWS = [("b", 2), ("c", 3), ("a", 1)]


@pytest.mark.parametrize(
    ("side", "key", "order"),
    [
        ("x", {"type": "nominal"}, "abc"),
        ("y", {"type": "nominal"}, "abc"),
        ("y", {"type": "nominal", "sort": "-x"}, "cba"),
        ("y", {"type": "nominal", "sort": "x"}, "abc"),
        ("x", {"type": "nominal", "sort": "descending"}, "cba"),
        ("x", {"type": "nominal", "sort": None}, "bca"),
        ("x", {"type": "nominal", "sort": ["c", "a", "b"]}, "cab"),
        ("y", {"type": "nominal", "sort": {"field": "n", "order": "descending"}}, "cba"),
    ],
)
def test_bars_of_text_stand_in_the_order_of_the_picture(
    side: str, key: dict[str, Any], order: str
) -> None:
    other = "x" if side == "y" else "y"
    encoding = {side: {"field": "name", **key}, other: {"field": "n", "type": "quantitative"}}
    rows = ORDERED_ROWS
    checked = check_spec({"mark": "bar", "encoding": encoding}, ["name", "n"], [], rows)
    lines = render_text(checked.spec, checked.rows, 60).split("\n")
    assert "".join(line[0] for line in lines) == order
    assert _order_in_picture(drawn(checked).svg()) == order


def _order_in_picture(svg: str) -> str:
    """Return the labels a, b and c from the left and the top."""
    found = re.findall(r'transform="translate\(([\d.-]+),([\d.-]+)\)[^>]*>([abc])</text>', svg)
    return "".join(name for *_, name in sorted((float(x), float(y), name) for x, y, name in found))


@pytest.mark.parametrize(("side", "first"), [("x", "2024"), ("y", "2026")])
def test_years_grow_upwards_in_text_as_in_the_picture(side: str, first: str) -> None:
    rows = [(date(year, 1, 1), year) for year in (2024, 2025, 2026)]
    other = "x" if side == "y" else "y"
    encoding = {
        side: {"field": "d", "type": "temporal"},
        other: {"field": "n", "type": "quantitative", "aggregate": "sum"},
    }
    checked = check_spec(
        {"mark": "bar", "encoding": encoding}, ["d", "n"], ["DATE", "BIGINT"], rows
    )
    assert render_text(checked.spec, checked.rows, 60).startswith(first)


def test_several_measures_along_time_become_several_lines() -> None:
    rows = [("2024-01", 1, 2), ("2024-02", 3, 4), ("2024-03", 3, 4)]
    checked = check_spec(
        default_spec("trend", ["month", "north", "south"], [], rows),
        ["month", "north", "south"],
        [],
        rows,
    )
    svg = drawn(checked).svg()
    assert "north" in svg
    assert "south" in svg
    assert "2024-02-01 · south" in render_text(checked.spec, checked.rows)


WORDS = [
    "mark",
    "encoding",
    "x",
    "y",
    "field",
    "type",
    "aggregate",
    "bin",
    "layer",
    "spec",
    "facet",
    "transform",
    "filter",
    "timeUnit",
    "sort",
    "condition",
    "repeat",
    "hconcat",
    "data",
    "width",
    "title",
]
SCALARS = st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats()
JSONISH = st.recursive(
    SCALARS | st.sampled_from(["country", "day", "orders", "sum", "bar", "temporal", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=100)
@given(JSONISH)
def test_any_json_is_checked_or_refused_with_a_typed_error(spec: object) -> None:
    try:
        checked = check(spec)
    except ChartSpecError:
        return
    assert isinstance(checked.rows, list)


@given(JSONISH, JSONISH)
def test_any_encoding_is_checked_or_refused_with_a_typed_error(x: object, y: object) -> None:
    try:
        check({"mark": "bar", "encoding": {"x": x, "y": y}})
    except ChartSpecError:
        return
