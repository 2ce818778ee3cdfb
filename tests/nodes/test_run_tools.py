"""Turns over a real database: the model sees a preview, the person all rows, the thread neither
more than the model saw.
"""

import sqlite3
from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.graph import Context, Conversation, Database, build_graph
from tests.support.models import ScriptedModel, call, script

CONTEXT = Context(model_limit=16_000)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            'CREATE TABLE "Order Details" (id INTEGER PRIMARY KEY, 商品 TEXT, price REAL)'
        )
        connection.executemany(
            'INSERT INTO "Order Details" (商品, price) VALUES (?, ?)',
            [(f"茶 {n}", n / 4) for n in range(500)],
        )
    connection.close()
    return f"sqlite:///{path}"


def talk(url: str, model: ScriptedModel) -> Conversation:
    graph = build_graph(model=model, database=Database.open(url)).compile(
        checkpointer=InMemorySaver()
    )
    return Conversation(graph, "t", context=CONTEXT)


def test_the_person_gets_all_rows_and_the_model_a_preview(shop: str) -> None:
    model = script(call("run_sql", sql='SELECT * FROM "Order Details"'), "Here they are.")
    conversation = talk(shop, model)
    answer = conversation.ask("show all")
    [query] = answer.queries
    assert "rows" in query
    assert "row_count" in query
    assert query["row_count"] == len(query["rows"]) == 500
    assert query["rows"][1] == [2, "茶 1", 0.25]
    shown = next(m.text for m in model.sent[1] if isinstance(m, ToolMessage))
    assert '"row_count":500' in shown
    assert "茶 19" in shown
    assert "茶 20" not in shown
    assert all("茶 400" not in m.text for m in conversation.history())


def test_a_write_is_refused_told_to_the_model_and_does_nothing(shop: str) -> None:
    model = script(call("run_sql", sql='DELETE FROM "Order Details"'), "I may only read.")
    conversation = talk(shop, model)
    [query] = conversation.ask("delete all").queries
    assert query["status"] == "error"
    assert "query_refused" in next(m.text for m in model.sent[1] if isinstance(m, ToolMessage))
    with Database.open(shop) as database:
        assert database.run('SELECT count(*) FROM "Order Details"').rows == [(500,)]


def test_a_wrong_name_comes_back_with_the_nearest(shop: str) -> None:
    model = script(call("run_sql", sql='SELECT prise FROM "Order Details"'), "Let me see.")
    conversation = talk(shop, model)
    conversation.ask("prices")
    assert "price" in next(m.text for m in model.sent[1] if isinstance(m, ToolMessage))


def test_an_empty_result_tells_the_model_why_and_its_figures_are_vouched_for(shop: str) -> None:
    sql = 'SELECT * FROM "Order Details" WHERE price > 1000'
    model = script(call("run_sql", sql=sql), "Nothing costs that much: the dearest is 124.75.")
    answer = talk(shop, model).ask("what costs more than a thousand?")
    assert '"most":124.75' in next(m.text for m in model.sent[1] if isinstance(m, ToolMessage))
    assert answer.unsupported_numbers == []


def test_the_prompt_names_the_database_and_its_dialect(shop: str) -> None:
    model = script("fine")
    talk(shop, model).ask("hello")
    assert "shop (sqlite dialect)" in model.sent[0][0].text
