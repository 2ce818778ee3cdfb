"""Charts in a turn: a result behind a handle, a spec or a wish, an event with the checked spec; no
rows in the thread.
"""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from markdown_it import MarkdownIt

from longtable.graph import Context, Conversation, Database, ResultStore, build_graph
from longtable.tools.charts.chart_fields import ChartSpecError
from longtable.tools.charts.chart_tool import embedded_svg
from tests.support.models import ScriptedModel, call, script

CONTEXT = Context(model_limit=16_000)
SQL = "SELECT month, sum(amount) AS total FROM sales GROUP BY month ORDER BY month"
LINE = {
    "mark": "line",
    "encoding": {
        "x": {"field": "month", "type": "ordinal"},
        "y": {"field": "total", "type": "quantitative"},
    },
}

Talk = Callable[..., tuple[Conversation, ScriptedModel]]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    connection = sqlite3.connect(tmp_path / "shop.db")
    with connection:
        connection.execute("CREATE TABLE sales (month TEXT, amount REAL)")
        connection.executemany(
            "INSERT INTO sales VALUES (?, ?)",
            [(f"2025-{n % 12 + 1:02}", float(n)) for n in range(240)],
        )
    connection.close()
    store = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))

    def talk(*said: AIMessage | str, kept: bool = True) -> tuple[Conversation, ScriptedModel]:
        model, results = script(*said), store if kept else None
        graph = build_graph(
            model=model,
            database=Database.open(f"sqlite:///{tmp_path / 'shop.db'}"),
            results=results,
        )
        return (
            Conversation(
                graph.compile(checkpointer=InMemorySaver()), "t", context=CONTEXT, results=results
            ),
            model,
        )

    return talk


def charts(conversation: Conversation, *, asynchronous: bool = False) -> list[Any]:
    async def told() -> list[Any]:
        return [event async for event in conversation.astream("plot it")]

    events = asyncio.run(told()) if asynchronous else list(conversation.stream("plot it"))
    return [event for event in events if event["type"] == "chart"]


def newest(model: ScriptedModel) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        [message for message in model.sent[-1] if isinstance(message, ToolMessage)][-1].text
    )
    return answer


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("asked", [{"spec": LINE}, {"wish": "line by month"}])
def test_a_chart_is_told_by_spec_and_handle_and_drawn_from_them(
    talk: Talk, asked: dict[str, Any], asynchronous: bool
) -> None:
    conversation, model = talk(
        call("run_sql", sql=SQL), call("show_chart", "call_2", handle="r1", **asked), "There."
    )
    [event] = charts(conversation, asynchronous=asynchronous)
    assert event["handle"] == "r1"
    assert newest(model)["spec"] == event["spec"]
    assert newest(model)["points"] == 12
    assert "data" not in event["spec"]
    chart = conversation.chart(event["handle"], event["spec"])
    assert [row["total"] for row in chart.rows] == [
        row[1] for row in conversation.result("r1").rows
    ]
    assert chart.png().startswith(b"\x89PNG")
    bundle = chart._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "2,500" in bundle["text/plain"]


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ({"handle": "r9"}, "unknown_result", "r1"),
        (
            {"handle": "r1", "spec": {"mark": "line", "encoding": {"x": {"field": "mnth"}}}},
            "chart_spec",
            "month",
        ),
        (
            {
                "handle": "r1",
                "spec": {**LINE, "data": {"url": "http://127.0.0.1/x"}, "title": "t" * 9_000},
            },
            "chart_spec",
            "",
        ),
        ({"spec": LINE}, "bad_arguments", "handle"),
    ],
)
def test_a_chart_that_cannot_be_is_a_typed_answer_and_no_event(
    talk: Talk, asked: dict[str, Any], code: str, said: str
) -> None:
    conversation, model = talk(
        call("run_sql", sql=SQL), call("show_chart", "call_2", **asked), "No chart."
    )
    assert charts(conversation) == []
    assert newest(model)["error"]["class"] == code
    assert said in newest(model)["error"]["message"]


def test_without_a_store_there_is_no_chart_tool(talk: Talk) -> None:
    conversation, model = talk(
        call("run_sql", sql=SQL), call("show_chart", "call_2", handle="r1"), "No chart.", kept=False
    )
    assert charts(conversation) == []
    assert newest(model)["error"]["class"] == "unknown_tool"


def test_a_caller_draws_what_it_wishes(talk: Talk) -> None:
    conversation, _ = talk(call("run_sql", sql=SQL), "There.")
    conversation.ask("totals")
    assert conversation.chart("r1", wish="bar").rows
    assert asyncio.run(conversation.achart("r1", LINE)).spec["mark"] == "line"
    with pytest.raises(ChartSpecError, match="nope"):
        conversation.chart("r1", {"mark": "nope"})


EVIL = "</svg><script>alert(1)</script> *a* &amp; <img src=http://x onerror=1>"


def test_an_export_for_people_has_the_charts_drawn_and_nothing_in_them_is_markup(
    talk: Talk,
) -> None:
    sql = f"SELECT '{EVIL}' || char(10, 10, 8238) AS name, 3 AS n UNION ALL SELECT 'b', 5"
    bar = {
        "title": EVIL,
        "mark": "bar",
        "encoding": {"y": {"field": "name"}, "x": {"field": "n"}, "color": {"field": "n"}},
    }
    said = [
        call("run_sql", sql=sql),
        call("show_chart", "call_2", handle="r1", spec=bar),
        call("show_chart", "call_3", handle="r1", spec=bar),
    ]
    conversation, _ = talk(*said, "There.")
    conversation.ask("plot it")
    page, text = conversation.export("html"), conversation.export("markdown")
    assert asyncio.run(conversation.aexport("html")) == page
    for written in (page, MarkdownIt("commonmark", {"html": True}).enable("table").render(text)):
        assert written.count("<svg ") == 2
        assert "&lt;script&gt;" in written
        assert not re.search(
            r"<(script|img|image|a|foreignObject|em)\b|\son\w+=\"|\u202e",
            written.partition("<h1")[2],
        )
        ids = re.findall(r'\sid="([^"]+)"', written)
        assert ids
        assert len(ids) == len(set(ids))
        assert set(re.findall(r"url\(#([^)]+)\)", written)) <= set(ids)
    assert conversation.results is not None
    conversation.results.delete("t")
    assert "<svg" not in conversation.export("html")
    assert "&quot;spec&quot;" in conversation.export("html")


@pytest.mark.parametrize(
    "inner",
    [
        "<script>1</script>",
        '<image href="http://x"/>',
        '<a href="javascript:1"><text>x</text></a>',
        '<a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="http://x"/>',
        "<foreignObject><p/></foreignObject>",
        '<rect onload="1"/>',
        '<rect fill="url(http://x/#a)"/>',
        '<rect fill="URL( //x )"/>',
        '<text xmlns="http://www.w3.org/1999/xhtml">x</text>',
        "<style>@import 'x'</style>",
        "<g>",
    ],
)
def test_a_drawing_that_runs_links_or_loads_is_not_put_into_a_document(inner: str) -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><g id="a" style="background: url(http://x)"'
        ' clip-path="url(#a)">{}</g></svg>'
    )
    assert embedded_svg(svg.format(inner), "p") is None
    assert (
        embedded_svg(svg.format("<text>\n\n*b*</text>"), "p")
        == '<svg xmlns="http://www.w3.org/2000/svg"><g id="p-1" clip-path="url(#p-1)"><text> '
        " *b*</text></g></svg>"
    )
