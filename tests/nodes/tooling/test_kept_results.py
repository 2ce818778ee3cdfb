"""Whole results behind handles: kept, told, fetched, fork and delete included; a store that fails
costs no answer.
"""

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.graph import (
    ConfigError,
    Context,
    Conversation,
    Database,
    ResultStore,
    build_graph,
    open_persistence,
)
from longtable.graph.pruning import prune_threads
from longtable.graph.threads import delete_thread
from longtable.memory.compaction.ledger import ledger_lines
from longtable.tools.engines.base import QueryLimits
from longtable.tools.previews import summary
from longtable.tools.results.result_store import ResultGoneError, UnknownResultError
from tests.support.models import ScriptedModel, call, script

CONTEXT = Context(model_limit=16_000)
ROWS = 500
ALL = "SELECT id, name FROM teas"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE teas (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        connection.executemany(
            "INSERT INTO teas (name, price) VALUES (?, ?)",
            [(f"茶 {n}", n / 4) for n in range(ROWS)],
        )
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))


def talk(
    url: str, model: ScriptedModel, store: ResultStore | None, thread_id: str = "t"
) -> Conversation:
    graph = build_graph(model=model, database=Database.open(url), results=store)
    return Conversation(
        graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore()),
        thread_id,
        context=CONTEXT,
        results=store,
    )


def told(model: ScriptedModel, request: int = -1) -> list[dict[str, Any]]:
    """Return the tool answers of one request, in order."""
    return [
        json.loads(message.text)
        for message in model.sent[request]
        if isinstance(message, ToolMessage)
    ]


def test_a_query_gets_a_handle_that_the_model_the_event_and_the_ledger_name(
    shop: str, store: ResultStore
) -> None:
    model = script(
        call("run_sql", sql=ALL),
        call("run_sql", "call_2", sql="SELECT count(*) FROM teas"),
        "There.",
    )
    conversation = talk(shop, model, store)
    answer = conversation.ask("show all")
    first, second = told(model)
    assert [first["handle"], second["handle"]] == ["r1", "r2"]
    assert list(first).index("handle") < list(first).index("rows")
    assert {name: first[name] for name in ("row_count", "shown", "columns")} == {
        "row_count": ROWS,
        "shown": 20,
        "columns": ["id", "name"],
    }
    assert [query.get("handle") for query in answer.queries] == ["r1", "r2"]
    lines = ledger_lines(conversation.history())
    assert [(line.handle, line.tables) for line in lines] == [("r1", ("teas",)), ("r2", ("teas",))]
    assert conversation.result("r1").rows == [(n + 1, f"茶 {n}") for n in range(ROWS)]
    assert asyncio.run(conversation.aresult("R2")).rows == [(ROWS,)]


def test_without_a_store_the_answer_is_as_before_and_there_is_nothing_to_fetch(shop: str) -> None:
    model = script(call("run_sql", sql=ALL), call("fetch_result", "call_2", handle="r1"), "There.")
    conversation = talk(shop, model, None)
    answer = conversation.ask("show all")
    assert list(told(model)[0]) == [
        "row_count",
        "columns",
        "types",
        "shown",
        "rows",
        "note",
        "sql",
        "ms",
    ]
    assert "handle" not in answer.queries[0]
    assert told(model)[1]["error"]["class"] == "unknown_tool"
    with pytest.raises(ConfigError, match="no result store"):
        conversation.result("r1")


def test_the_model_reads_on_by_page_and_by_sql_over_handles(shop: str, store: ResultStore) -> None:
    calls = (
        call("run_sql", sql=ALL),
        call("fetch_result", "call_2", handle="r1", page=3),
        call(
            "fetch_result",
            "call_3",
            sql="SELECT max(id) AS top, count(*) AS n FROM r1 WHERE name LIKE '%9'",
        ),
    )
    model = script(*calls, "There.")
    conversation = talk(shop, model, store)
    events = list(conversation.stream("show all"))
    _, page, made = told(model)
    assert (page["handle"], page["page"], page["pages"], page["total"], page["shown"]) == (
        "r1",
        3,
        25,
        ROWS,
        20,
    )
    assert page["rows"][0] == [41, "茶 40"]
    assert (made["columns"], made["rows"]) == (["top", "n"], [[500, 50]])
    assert [event["name"] for event in events if event["type"] == "tool_finished"] == [
        "fetch_result",
        "fetch_result",
    ]
    assert [meta.handle for meta in store.handles("t")] == ["r1"]
    # Handles are no tables of the database.
    assert [line.sql for line in ledger_lines(conversation.history())] == [told(model)[0]["sql"]]


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({}, "fetch_refused", "r1"),
        ({"handle": "r7"}, "unknown_result", "there are r1"),
        ({"handle": "../t"}, "unknown_result", "there are r1"),
        ({"sql": "SELECT * FROM teas"}, "unknown_table", "r1"),
        ({"sql": "DROP TABLE r1"}, "query_refused", ""),
        ({"sql": "SELECT * FROM read_csv('/etc/passwd')"}, "query_refused", ""),
        ({"handle": "r1", "page": "x"}, "bad_arguments", "page"),
        ({"handle": "r1", "results": "mine"}, "", "r1"),
    ],
)
def test_a_fetch_that_cannot_be_is_a_typed_answer(
    shop: str, store: ResultStore, given: dict[str, Any], code: str, said: str
) -> None:
    model = script(call("run_sql", sql=ALL), call("fetch_result", "call_2", **given), "There.")
    assert talk(shop, model, store).ask("show all").status == "answered"
    answer = told(model)[1]
    assert answer.get("error", {}).get("class", "") == code
    assert said in json.dumps(answer)


def test_a_gone_result_offers_its_sql(shop: str, store: ResultStore) -> None:
    model = script(call("run_sql", sql=ALL), "There.", call("fetch_result", handle="r1"), "Gone.")
    conversation = talk(shop, model, store)
    conversation.ask("show all")
    store.path("t", "r1").unlink()
    conversation.ask("more")
    error = told(model)[-1]["error"]
    assert error["class"] == "result_gone"
    assert "SELECT" in error["message"]
    with pytest.raises(ResultGoneError):
        conversation.result("r1")


class FullDisk(ResultStore):
    """A store whose disk is full."""

    def put(self, thread_id: str, **_: object) -> str:
        raise OSError(28, f"No space left on device for {thread_id}")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_store_that_fails_costs_the_handle_and_nothing_else(
    shop: str, tmp_path: Path, asynchronous: bool
) -> None:
    model = script(call("run_sql", sql=ALL), "There.")
    conversation = talk(shop, model, FullDisk(tmp_path / "full", clock=lambda: datetime.now(UTC)))
    answer = (
        asyncio.run(conversation.aask("show all")) if asynchronous else conversation.ask("show all")
    )
    assert answer.text == "There."
    [query] = answer.queries
    assert query["status"] == "success"
    assert "handle" not in query
    assert "No space left" in query.get("not_kept", "")
    assert "handle" not in told(model)[0]
    assert told(model)[0]["row_count"] == ROWS


def test_a_result_over_the_quota_is_said_not_to_be_kept(shop: str, tmp_path: Path) -> None:
    small = ResultStore(
        tmp_path / "small", clock=lambda: datetime.now(UTC), quota_bytes_per_thread=100
    )
    [query] = talk(shop, script(call("run_sql", sql=ALL), "There."), small).ask("show all").queries
    assert "100" in query.get("not_kept", "")


def test_parallel_queries_each_get_a_handle_of_their_own(shop: str, store: ResultStore) -> None:
    asked = [
        {"name": "run_sql", "args": {"sql": f"SELECT {n} AS n"}, "id": f"c{n}", "type": "tool_call"}
        for n in range(6)
    ]
    model = script(AIMessage("", tool_calls=asked), "There.")
    conversation = talk(shop, model, store)
    answer = asyncio.run(conversation.aask("six"))
    handles = [query.get("handle", "") for query in answer.queries]
    assert sorted(handles) == [f"r{n}" for n in range(1, 7)]
    for query in answer.queries:
        assert conversation.result(query.get("handle", "")).rows == [
            tuple(row) for row in query.get("rows", [])
        ]


def test_a_run_without_a_thread_keeps_nothing_and_says_so(shop: str, store: ResultStore) -> None:
    model = script(call("run_sql", sql=ALL), call("fetch_result", "call_2", handle="r1"), "There.")
    graph = build_graph(model=model, database=Database.open(shop), results=store).compile()
    out = graph.invoke({"messages": [HumanMessage("show all")]}, context=CONTEXT)
    assert out["messages"][-1].text == "There."
    assert "handle" not in told(model)[0]
    assert told(model)[1]["error"]["class"] == "fetch_refused"


def test_a_thread_sees_its_own_results_only(shop: str, store: ResultStore) -> None:
    talk(shop, script(call("run_sql", sql=ALL), "There."), store, "one").ask("show all")
    model = script(call("fetch_result", handle="r1"), "None.")
    talk(shop, model, store, "two").ask("show theirs")
    assert told(model)[0]["error"]["class"] == "unknown_result"


def test_a_fork_has_the_results_its_history_names_and_goes_on_counting(
    shop: str, store: ResultStore
) -> None:
    model = script(
        call("run_sql", sql=ALL), "There.", call("run_sql", sql="SELECT 7 AS n"), "Seven."
    )
    conversation = talk(shop, model, store)
    conversation.ask("show all")
    fork = conversation.fork(1, thread_id="fork")
    assert fork.result("r1").row_count == ROWS
    assert fork.ask("seven").queries[0].get("handle") == "r2"
    with pytest.raises(UnknownResultError):
        conversation.result("r2")
    conversation.delete()
    assert fork.result("r1").row_count == ROWS


def kept_talk(
    persistence: Any, url: str, store: ResultStore, threads: Sequence[str]
) -> list[Conversation]:
    made = []
    for name in threads:
        graph = build_graph(
            model=script(call("run_sql", sql=ALL), "There."),
            database=Database.open(url),
            results=store,
        )
        compiled = graph.compile(checkpointer=persistence.checkpointer, store=persistence.store)
        made.append(Conversation(compiled, name, context=CONTEXT, results=store))
        made[-1].ask("show all")
    return made


def test_a_deleted_thread_leaves_no_results(shop: str, store: ResultStore) -> None:
    with open_persistence("memory://") as kept:
        one, _, _ = kept_talk(kept, shop, store, ["one", "two", "three"])
        one.delete()
        delete_thread(kept, "two", results=store)
        assert [len(store.handles(name)) for name in ("one", "two", "three")] == [0, 0, 1]
        later = datetime(2100, 1, 1, tzinfo=UTC)
        gone = prune_threads(kept, older_than=later - later, now=later, results=store)
        assert [info.thread_id for info in gone] == ["three"]
        assert store.handles("three") == []


def test_the_results_of_another_owners_thread_are_not_given(shop: str, store: ResultStore) -> None:
    conversation = talk(shop, script(call("run_sql", sql=ALL), "There."), store)
    conversation.context = CONTEXT.replace(owner="ann")
    conversation.ask("show all")
    other = Conversation(
        conversation.graph, "t", context=CONTEXT.replace(owner="bob"), results=store
    )
    with pytest.raises(Exception, match="t") as caught:
        other.result("r1")
    assert getattr(caught.value, "code", "") == "thread_not_found"


def test_a_result_of_ten_thousand_rows_adds_no_more_to_the_thread_than_one_of_twenty(
    tmp_path: Path, store: ResultStore
) -> None:
    sizes = []
    for name, rows in (("few", 20), ("many", 9_999)):
        path = tmp_path / f"{name}.db"
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("CREATE TABLE n (v INTEGER)")
            connection.executemany(
                "INSERT INTO n VALUES (?)", ((v % 10 + 10,) for v in range(rows))
            )
        connection.close()
        conversation = talk(
            f"sqlite:///{path}",
            script(call("run_sql", sql="SELECT v FROM n"), "There."),
            store,
            name,
        )
        conversation.ask("all")
        assert conversation.result("r1").row_count == rows
        sizes.append(sum(len(message.text) for message in conversation.history()))
    assert sizes[1] - sizes[0] < 10


def test_a_result_comes_back_as_a_table_of_arrow_and_of_pandas(
    shop: str, store: ResultStore
) -> None:
    conversation = talk(
        shop, script(call("run_sql", sql="SELECT id, name, price FROM teas"), "There."), store
    )
    conversation.ask("show all")
    table, call_config = (
        conversation.result("r1", "arrow"),
        asyncio.run(conversation.aresult("r1", "pandas")),
    )
    assert (table.num_rows, table.column_names, str(table.schema.field("price").type)) == (
        ROWS,
        ["id", "name", "price"],
        "double",
    )
    assert (len(call_config), call_config["price"].sum(), call_config["name"][499]) == (
        ROWS,
        sum(n / 4 for n in range(ROWS)),
        "茶 499",
    )
    with pytest.raises(ConfigError, match="rows, arrow, pandas"):
        conversation.result("r1", "polars")  # type: ignore[call-overload]  # what an untyped caller may write


def test_of_a_wide_result_the_model_is_told_the_figures_of_the_columns_it_is_not_shown(
    shop: str, store: ResultStore
) -> None:
    wide = ", ".join(f"id * {n} AS c{n}" for n in range(100))
    sql = f"SELECT {wide}, CASE WHEN id > 100 THEN price END AS late, name AS word FROM teas"
    model = script(
        call("run_sql", sql=sql),
        "The mean of c30 is 7,515, c99 goes up to 49,500; there are 87,654,321 in all.",
    )
    answer = talk(shop, model, store).ask("how wide?")
    [told_once] = told(model)
    assert (told_once["column_count"], len(told_once["columns"]), len(told_once["rows"][0])) == (
        102,
        102,
        30,
    )
    assert list(told_once["summary"]) == [f"c{n}" for n in range(30, 70)]  # bounded
    assert told_once["summary"]["c30"] == {"min": 30, "max": 15_000, "mean": 7515.0, "nulls": 0}
    assert len(answer.queries[0]["rows"][0]) == 102
    assert answer.unsupported_numbers == ["87,654,321"]


def test_the_summary_counts_nulls_leaves_text_out_and_tells_nothing_of_a_masked_column() -> None:
    columns = [f"c{n}" for n in range(34)]
    rows = [(*range(30), 1.5, None if n else 4, "x", 5) for n in range(4)]
    assert summary(columns, rows, {33}, chars=50) == {
        "summary": {
            "c30": {"min": 1.5, "max": 1.5, "mean": 1.5, "nulls": 0},
            "c31": {"min": 4, "max": 4, "mean": 4.0, "nulls": 3},
        }
    }


def test_a_checkpoint_grows_by_the_same_bytes_whatever_the_rows(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "big.duckdb")).close()
    sizes = []
    limits = QueryLimits(rows=3_000_000, bytes=2_000_000_000)
    results = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    with Database.open(f"duckdb:///{tmp_path / 'big.duckdb'}", limits=limits) as database:
        for rows in (100, 200_000):
            model = script(call("run_sql", sql=f"SELECT 123456 AS n FROM range({rows})"), "There.")
            file = tmp_path / f"{rows}.db"
            with open_persistence(f"sqlite:///{file}") as kept:
                app = build_graph(model=model, database=database, results=results).compile(
                    checkpointer=kept.checkpointer, store=kept.store
                )
                conversation = Conversation(app, f"t{rows}", context=CONTEXT, results=results)
                for event in conversation.stream("all"):
                    if event["type"] == "query_finished":
                        assert event["row_count"] == rows
            with closing(sqlite3.connect(file)) as connection:
                tables = [
                    name
                    for (name,) in connection.execute(
                        "SELECT name FROM sqlite_master WHERE type = 'table'"
                    )
                ]
                columns = {
                    table: [row[1] for row in connection.execute(f"PRAGMA table_info('{table}')")]
                    for table in tables
                }
                sums = [
                    f"SELECT sum(length({column})) FROM '{table}'"
                    for table, names in columns.items()
                    for column in names
                ]
                sizes.append(sum(connection.execute(sql).fetchone()[0] or 0 for sql in sums))
    assert abs(sizes[1] - sizes[0]) < 400
