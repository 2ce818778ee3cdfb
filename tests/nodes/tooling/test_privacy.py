"""`Context.privacy = "types"`: no cell in any message to any model; all rows for the person."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import NotPrivateError
from longtable.graph import ConfigError, Context, Conversation, Database, ResultStore, build_graph
from longtable.memory.policy import CompactionPolicy
from tests.support.model_server import ChatRequest, Reply, answer_or_summary, open_model_server
from tests.support.model_server import call as asked
from tests.support.model_server import say as said
from tests.support.models import ScriptedModel, call, script
from tests.tools.databases import make, url

PRIVATE = Context(model_limit=16_000, privacy="types")
SECRETS = ("Zanzibar", "Quetzal", "Xylophone", "918273", "415263", "1987-06-05", "Wombat")


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT, pay INTEGER, born"
            " DATE)"
        )
        rows = [
            ("Zanzibar", "Quetzal", 918273, "1987-06-05"),
            ("Xylophone", "Quetzal", 415263, None),
            ("Wombat", '{"a":', 1, "x"),
        ]
        connection.executemany(
            "INSERT INTO people (name, city, pay, born) VALUES (?, ?, ?, ?)", rows
        )
    connection.close()
    return f"sqlite:///{path}"


def talk(
    shop: str | Database, model: Any, folder: Path, *, context: Context = PRIVATE, **more: Any
) -> Conversation:
    from datetime import UTC, datetime

    results = ResultStore(folder / "results", clock=lambda: datetime.now(UTC))
    database = Database.open(shop) if isinstance(shop, str) else shop
    graph = build_graph(model=model, database=database, results=results, **more)
    return Conversation(
        graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore()),
        "t",
        context=context,
        results=results,
    )


def words_of(requests: list[list[BaseMessage]]) -> str:
    return json.dumps(
        [[message.model_dump(mode="json") for message in request] for request in requests],
        ensure_ascii=False,
    )


async def all_of(conversation: Conversation) -> list[Any]:
    return [event async for event in conversation.astream("who earns what?")]


NOSY = (
    call("list_tables"),
    call("describe_tables", names=["people"]),
    call("find_columns", text="quetzal"),
    call("find_columns", text="city where people live"),
    call("find_values", text="zanz"),
    call("find_values", text="Zanzibra"),
    call("find_values", text="quetzal"),
    call("run_sql", sql="SELECT * FROM people"),
    call("run_sql", sql="SELECT max(name) AS top, sum(pay) AS paid FROM people"),
    call("run_sql", sql="SELECT json(city) FROM people"),
    call("run_sql", sql="SELECT nme FROM people"),
    call("fetch_result", handle="r1"),
    call("fetch_result", sql="SELECT name, CAST(name AS INTEGER) FROM r1"),
    call("fetch_result", sql="SELECT city, pay FROM r1 ORDER BY pay"),
    call("show_chart", handle="r1", wish="bar of pay by name"),
    call("show_chart", handle="r1", spec={"mark": "bar", "encoding": {"x": {"field": "nam"}}}),
)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_cell_reaches_a_model_whatever_it_calls_and_the_person_gets_all(
    shop: str, tmp_path: Path, asynchronous: bool
) -> None:
    # Each turn calls every tool; folds bring the ledger, a summariser and recall into play.
    steps = iter(range(10**6))

    def say(_: object) -> AIMessage:
        step = next(steps) % (len(NOSY) + 2)
        if step < len(NOSY):
            return NOSY[step].model_copy(deep=True)
        return (
            call("recall_history", query="people result rows")
            if step == len(NOSY)
            else AIMessage("See r1. " + "w " * 300)
        )

    model = ScriptedModel(say=say)
    summariser = script("## Facts and findings\n- the person looked at people [m1-m2]")
    policy = CompactionPolicy(keep_rounds=1, min_messages=4, trigger_messages=30)
    context = PRIVATE.replace(max_model_calls=40)
    conversation = talk(
        shop, model, tmp_path, context=context, summarizer=summariser, policy=policy
    )
    events: list[Any] = []
    for _ in range(3):
        events += (
            asyncio.run(all_of(conversation))
            if asynchronous
            else conversation.stream("who earns what?")
        )
    kinds = {event["type"] for event in events}
    assert {"context_compressed", "recall", "chart"} <= kinds
    assert summariser.sent
    sent = words_of([*model.sent, *summariser.sent])
    assert [word for word in SECRETS if word in sent] == []
    assert "nearest" in sent  # an error that quotes no cell is told whole
    answered = [
        event
        for event in events
        if event["type"] == "query_finished" and event["status"] == "success"
    ]
    assert answered[0]["rows"][0] == [1, "Zanzibar", "Quetzal", 918273, "1987-06-05"]
    assert conversation.result("r1").rows[0][1] == "Zanzibar"
    text = words_of([model.sent[8]])
    for told in ("row_count", "INTEGER", "withheld", "primary_key"):
        assert told in text


def test_no_cell_is_in_a_request_on_the_wire(shop: str, tmp_path: Path) -> None:
    with open_model_server() as server:
        looks = (
            asked("describe_tables", names=["people"]),
            asked("run_sql", sql="SELECT * FROM people"),
            asked("fetch_result", handle="r1"),
        )
        server.script(*looks, said("See r1."))
        answer = talk(shop, server.chat_model(), tmp_path).ask("who earns what?")
        wire = json.dumps([request.body for request in server.requests], ensure_ascii=False)
    assert (answer.text, len(server.requests)) == ("See r1.", 4)
    assert [word for word in SECRETS if word in wire] == []
    assert "row_count" in wire


def test_the_conversations_own_model_is_sent_no_cell_when_it_writes_the_summary_either(
    shop: str, tmp_path: Path
) -> None:
    steps = [
        asked("run_sql", sql="SELECT * FROM people"),
        asked("fetch_result", handle="r1"),
        said("See r1. " + "w " * 300),
    ]
    turns = iter(steps * 20)

    def answer(request: ChatRequest) -> Reply:
        return answer_or_summary(request) if request.is_for_summary else next(turns)

    with open_model_server() as server:
        server.always(answer)
        conversation = talk(
            shop,
            server.chat_model(),
            tmp_path,
            policy=CompactionPolicy(keep_rounds=1, min_messages=4, trigger_messages=12),
        )
        events = [event for _ in range(4) for event in conversation.stream("who earns what?")]
        written = [request for request in server.requests if request.is_for_summary]
        wire = json.dumps([request.body for request in server.requests], ensure_ascii=False)
    assert {event["writer"] for event in events if event["type"] == "context_compressed"} == {
        "gpt-4o-mini"
    }
    assert written
    assert all("row_count" in json.dumps(request.body) for request in written)
    assert [word for word in SECRETS if word in wire] == []


def test_an_error_that_quotes_a_cell_is_withheld_also_where_another_repeats_it(
    tmp_path: Path,
) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'Zanzibar' AS name")
    casts = [
        {
            "name": "run_sql",
            "args": {"sql": f"SELECT CAST(name AS INTEGER) + {n} FROM people"},
            "id": f"c{n}",
        }
        for n in range(4)
    ]
    model = script(
        AIMessage("", tool_calls=casts[:1]),
        AIMessage("", tool_calls=casts),
        "It cannot be read as a number.",
    )
    conversation = talk(
        f"duckdb:///{tmp_path / 'shop.duckdb'}",
        model,
        tmp_path,
        context=PRIVATE.replace(max_repairs=1),
    )
    events = [dict(event) for event in conversation.stream("sum?")]
    assert any("Zanzibar" in str(event.get("error")) for event in events)  # the person may read it
    sent = words_of(model.sent)
    assert "Zanzibar" not in sent
    assert sent.count("repairs_used_up") == 3


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_values_that_stand_in_a_type_or_a_comment_are_withheld_too(
    dialect: str, tmp_path: Path
) -> None:
    made = make(
        tmp_path,
        dialect,
        """CREATE TYPE state AS ENUM ('Quetzal', 'it''s (Wombat)');
        CREATE TABLE people (id INTEGER, mood state);
        INSERT INTO people VALUES (1, 'Quetzal');
        COMMENT ON COLUMN people.id IS 'such as 918273';""",
    )
    looks = (
        call("describe_tables", names=["people"]),
        call("find_columns", text="id"),
        call("run_sql", sql="SELECT mood FROM people"),
    )
    model = script(*looks, "See r1.")
    with Database.open(url(made)) as database:
        answer = talk(database, model, tmp_path).ask("which states?")
    assert answer.queries[0]["rows"] == [["Quetzal"]]
    sent = words_of(model.sent)
    assert [word for word in SECRETS if word in sent] == []
    assert sent.count("ENUM") > 1


def test_the_built_in_analyst_answers_by_handle_and_count(shop: str, tmp_path: Path) -> None:
    conversation = talk(shop, BuiltInAnalyst(), tmp_path)
    answer = conversation.ask("How many people are there per city?")
    assert answer.queries[0]["rows"]
    assert answer.text.startswith("The query returned 2 rows with the columns")
    assert "r1" in answer.text
    assert answer.unsupported_numbers == []
    assert "结果编号 r2" in conversation.ask("people 的平均 pay 是多少？").text
    kept = words_of([conversation.history()])
    assert [word for word in SECRETS if word in kept] == []


def test_a_thread_that_showed_cells_cannot_become_private_and_its_forks_stay_as_they_are(
    shop: str, tmp_path: Path
) -> None:
    model = script(call("run_sql", sql="SELECT name FROM people"), "Zanzibar.")
    conversation = talk(shop, model, tmp_path, context=Context(model_limit=16_000))
    conversation.ask("who?")
    conversation.context = PRIVATE
    with pytest.raises(NotPrivateError):
        conversation.ask("and now?")
    assert len(conversation.history()) == 4
    conversation.context = Context(model_limit=16_000)
    assert conversation.ask("go on").text == "Zanzibar."
    private = talk(shop, script("Hello."), tmp_path)
    private.ask("hi")
    assert private.fork(1).ask("hi again").text == "Hello."


def test_a_private_turn_that_is_resumed_under_other_settings_stays_private(
    shop: str, tmp_path: Path
) -> None:
    model = script(call("run_sql", sql="SELECT name FROM people"), "Done.")
    conversation = talk(shop, model, tmp_path)
    asked: Any = {"messages": [("user", "who?")]}  # LangGraph's own shape of input
    conversation.graph.invoke(
        asked,
        conversation.config,
        context=PRIVATE,
        interrupt_before=["run_tools"],
    )
    conversation.context = Context(model_limit=16_000)
    conversation.resume()
    assert "Zanzibar" not in words_of(model.sent)


def test_a_value_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="'off' or 'types'"):
        Context(privacy="all")  # type: ignore[arg-type]  # as a form may send it
