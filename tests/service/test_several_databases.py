"""One conversation over three real databases: SQLite, DuckDB and PostgreSQL. Each query asks one of
them, and everything that is kept says which.
"""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import DatabaseUnavailableError, WrongDecisionError
from longtable.graph import Context, Conversation, Limits, Persona, Team, build_graph
from longtable.knowledge.folder import KnowledgeFolder
from longtable.memory.compaction.ledger import ledger_in, ledger_lines, render_ledger
from longtable.memory.counting.tokens import counter
from longtable.nodes.call_plans import schema_text
from longtable.nodes.team.workflow import Workflow
from longtable.tools.database import Database, TablePolicy
from longtable.tools.results.result_store import ResultStore
from longtable.tools.several.late import open_or_defer
from longtable.tools.sql.verdict import MASK, CostThresholds
from tests.support.models import ScriptedModel, call, script
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.threads import of_type

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL);
INSERT INTO customers VALUES (1, 'Ada Secret', 'Bern'), (2, 'Bo Secret', 'Genf');
INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5);
"""
WEB = """
CREATE TABLE visits (customer_id INTEGER, pages INTEGER);
CREATE TABLE customers (id INTEGER, name VARCHAR);
INSERT INTO visits VALUES (1, 7), (2, 9);
INSERT INTO customers VALUES (1, 'ada@web'), (2, 'bo@web');
"""
CRM = """
CREATE TABLE tickets (customer_id INTEGER, state TEXT);
INSERT INTO tickets VALUES (1, 'open'), (2, 'closed');
"""
CONTEXT = Context(model_limit=16_000)
APPROVE = {"type": "approve"}


def make_sqlite(path: Path, script_text: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script_text)
    return f"sqlite:///{path}"


def make_duckdb(path: Path, script_text: str) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.execute(script_text)
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("several")
    return {
        "shop": make_sqlite(folder / "shop.db", SHOP),
        "web": make_duckdb(folder / "web.duckdb", WEB),
        "crm": postgres_server().create(CRM),
    }


POLICIES = {
    "shop": TablePolicy(masked_columns=frozenset({"customers.name"})),
    "web": TablePolicy(),
    "crm": TablePolicy(),
}


class Bench:
    """Opens conversations on one thread, with the same store, results and saver."""

    def __init__(self, folder: Path) -> None:
        self.saver = InMemorySaver()
        self.store = InMemoryStore()
        self.results = ResultStore(folder / "results", isolation="none")

    def talk(
        self,
        databases: "Database | Mapping[str, Database]",
        *answers: AIMessage | str,
        context: Context = CONTEXT,
        **more: Any,
    ) -> tuple[Conversation, ScriptedModel]:
        model = script(*answers)
        graph = build_graph(model=model, database=databases, results=self.results, **more)
        compiled = graph.compile(checkpointer=self.saver, store=self.store)
        return Conversation(compiled, "t", context=context, results=self.results), model


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def databases(places: dict[str, str]) -> Iterator[dict[str, Database]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Database.open(place, policy=POLICIES[name]))
            for name, place in places.items()
        }


def run(database: str, sql: str, call_id: str = "call_1") -> AIMessage:
    return call("run_sql", call_id, database=database, sql=sql)


def tool_answers(conversation: Conversation) -> list[dict[str, Any]]:
    messages = [each for each in conversation.history() if isinstance(each, ToolMessage)]
    return [json.loads(each.text) for each in messages]


def error_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", answer["error"])


def test_each_query_asks_its_database_and_all_that_is_kept_says_which(
    bench: Bench, databases: dict[str, Database]
) -> None:
    conversation, _ = bench.talk(
        databases,
        run("shop", "SELECT customer_id, sum(total) AS total FROM orders GROUP BY 1", "c1"),
        run("Web", "SELECT customer_id, pages FROM visits", "c2"),
        run("crm", "SELECT customer_id, state FROM tickets", "c3"),
        call(
            "fetch_result",
            "c4",
            sql="SELECT r1.total, r2.pages, r3.state FROM r1 JOIN r2 USING (customer_id)"
            " JOIN r3 USING (customer_id) ORDER BY 1",
        ),
        "done",
    )
    events = [dict(event) for event in conversation.stream("join them")]
    finished = of_type(events, "query_finished")
    assert [event["database"] for event in finished] == ["shop", "web", "crm"]
    assert [event["status"] for event in finished] == ["success"] * 3
    assert tool_answers(conversation)[-1]["rows"] == [[5.0, 9, "closed"], [30.0, 7, "open"]]
    assert [answer.get("database") for answer in tool_answers(conversation)] == [
        "shop",
        "web",
        "crm",
        None,
    ]
    assert [entry.database for entry in conversation.audit()] == ["shop", "web", "crm", ""]
    metas = bench.results.handles("t")
    assert [(meta.handle, meta.database) for meta in metas] == [
        ("r1", "shop"),
        ("r2", "web"),
        ("r3", "crm"),
    ]
    assert bench.results.get("t", "r2").database == "web"
    [turn] = conversation.turns()
    past = [dict(event) for event in turn.events]
    assert by_type(past) == by_type(events), (
        "with the database as the model wrote it, then its name"
    )
    assert by_type(events)["query_started"] == ["shop", "Web", "crm"]


def by_type(events: list[dict[str, Any]]) -> dict[str, list[str]]:
    kinds = ("query_started", "query_finished")
    return {kind: [event["database"] for event in of_type(events, kind)] for kind in kinds}


def test_the_audit_of_a_failed_query_says_what_it_read_of_its_database(
    bench: Bench, databases: dict[str, Database]
) -> None:
    failing = run("web", "SELECT CAST(pages || 'x' AS INTEGER) FROM visits")
    conversation, _ = bench.talk(databases, failing, "done")
    conversation.ask("go")
    [entry] = conversation.audit()
    assert (entry.verdict, entry.database, entry.tables) == ("failed", "web", ("visits",))


def test_ledger_lines_say_which_database(bench: Bench, databases: dict[str, Database]) -> None:
    one = "SELECT count(*) AS n FROM customers"
    conversation, _ = bench.talk(databases, run("shop", one, "c1"), run("web", one, "c2"), "done")
    conversation.ask("count")
    lines = ledger_lines(conversation.history())
    assert [line.database for line in lines] == ["shop", "web"], "one SQL, two databases, two lines"
    text = render_ledger(lines, "en")
    assert '- T1 in web "count" | rows 1' in text
    assert [(line.database, line.sql) for line in ledger_in(text)] == [
        (line.database, line.sql) for line in lines
    ]


def test_the_model_is_told_of_all_databases_and_how_to_join_them(
    bench: Bench, databases: dict[str, Database]
) -> None:
    conversation, model = bench.talk(databases, "hello")
    conversation.ask("hi")
    system = str(model.sent[0][0].content)
    assert "shop (sqlite dialect), web (duckdb dialect), crm (postgres dialect)" in system
    assert "Database web. Schema (2 tables" in system
    assert "fetch_result" in system
    builder: Any = conversation.graph.builder
    tools = {tool.name: convert_to_openai_tool(tool) for tool in builder.offer.tools}
    parameters = tools["run_sql"]["function"]["parameters"]
    assert sorted(parameters["required"]) == ["database", "sql"]
    assert parameters["properties"]["database"]["enum"] == ["shop", "web", "crm"]
    assert "join" in tools["run_sql"]["function"]["description"]
    assert "database" not in tools["list_tables"]["function"]["parameters"].get("required", [])


@pytest.mark.parametrize(
    ("database", "sql"),
    [
        ("shop", "SELECT * FROM visits"),
        ("shop", "SELECT * FROM web.visits"),
        ("shop", "SELECT * FROM crm.public.tickets"),
        ("shop", "ATTACH DATABASE '{web}' AS web"),
        ("web", "ATTACH '{shop}' AS shop (TYPE sqlite)"),
        ("web", "SELECT * FROM sqlite_scan('{shop}', 'customers')"),
        ("web", "SELECT * FROM '{shop}'"),
        ("web", "SELECT * FROM shop.main.customers"),
        ("web", "SELECT * FROM postgres_query('crm', 'SELECT 1')"),
        ("crm", "SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t(n int)"),
        ("crm", "SELECT pg_read_file('{shop}')"),
        ("crm", "SELECT * FROM shop.customers"),
        ("shop", "SELECT * FROM r1"),
    ],
)
def test_no_query_reads_another_database(
    bench: Bench,
    databases: dict[str, Database],
    places: dict[str, str],
    database: str,
    sql: str,
) -> None:
    text = sql.format(**{name: place.partition(":///")[2] for name, place in places.items()})
    conversation, _ = bench.talk(databases, run(database, text), "done")
    conversation.ask("go")
    error = error_of(tool_answers(conversation)[0])
    assert error["class"] in ("query_refused", "unknown_table"), error
    assert error["database"] == database
    assert error["message"].startswith(f"database {database}: ")
    assert [entry.verdict for entry in conversation.audit()] == ["refused"]


def test_a_masked_column_stays_masked_when_it_is_joined_to_another_database(
    bench: Bench, databases: dict[str, Database]
) -> None:
    join = "SELECT r1.name AS n, r2.name AS m FROM r1 JOIN r2 USING (id) ORDER BY r2.name"
    conversation, model = bench.talk(
        databases,
        run("shop", "SELECT id, name FROM customers", "c1"),
        run("web", "SELECT id, name FROM customers", "c2"),
        call("fetch_result", "c3", sql=join),
        call("fetch_result", "c4", sql="SELECT id FROM r1 WHERE name LIKE 'Ada%'"),
        call("fetch_result", "c5", sql="SELECT r2.id FROM r2 JOIN r1 ON r2.name = r1.name"),
        call("fetch_result", "c6", sql="SELECT name FROM r1 UNION SELECT name FROM r2"),
        "done",
    )
    conversation.ask("names")
    answers = tool_answers(conversation)
    assert answers[2]["rows"] == [[MASK, "ada@web"], [MASK, "bo@web"]]
    assert [error_of(answer)["class"] for answer in answers[3:5]] == ["query_refused"] * 2
    assert "Secret" not in repr(model.sent)
    assert bench.results.get("t", "r1").rows[0] == (1, "Ada Secret"), "the person sees them"


def test_tables_of_one_name_have_the_policy_of_their_own_database(
    bench: Bench, places: dict[str, str]
) -> None:
    denied = TablePolicy(denied=frozenset({"customers"}))
    with (
        Database.open(places["shop"], policy=denied) as shop,
        Database.open(places["web"]) as web,
    ):
        conversation, model = bench.talk(
            {"shop": shop, "web": web},
            call("list_tables", "c1"),
            call("describe_tables", "c2", database="shop", names=["customers"]),
            call("describe_tables", "c3", database="web", names=["customers"]),
            call("find_values", "c4", text="ada"),
            run("shop", "SELECT * FROM customers", "c5"),
            run("web", "SELECT count(*) FROM customers", "c6"),
            "done",
        )
        conversation.ask("go")
    listed, refused, described, values, forbidden, counted = tool_answers(conversation)
    names = {
        part["database"]: [table["name"] for table in part["tables"]]
        for part in listed["databases"]
    }
    assert names == {"shop": ["orders"], "web": ["customers", "visits"]}
    assert error_of(refused)["database"] == "shop"
    assert described["database"] == "web"
    assert [table["name"] for table in described["tables"]] == ["customers"]
    found = {part["database"]: part["matches"] for part in values["databases"]}
    assert found["shop"] == []
    assert [match["value"] for match in found["web"]] == ["ada@web"]
    assert error_of(forbidden)["class"] == "unknown_table"
    assert counted["rows"] == [[2]]
    assert "Secret" not in repr(model.sent)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ({"database": "wbe"}, "there is no database 'wbe'; did you mean web?"),
        ({"database": "zzz"}, "The databases are shop, web, crm"),
        ({}, "say which database to ask: `database` must be one of shop, web, crm"),
        ({"database": ""}, "must be one of shop, web, crm"),
        ({"database": 7}, "must be one of shop, web, crm"),
        ({"database": None}, "must be one of shop, web, crm"),
    ],
)
def test_a_call_for_an_unknown_database_is_answered_with_their_names(
    bench: Bench, databases: dict[str, Database], args: dict[str, Any], sentence: str
) -> None:
    wrong = call("run_sql", "c1", sql="SELECT 1", **args)
    described = call("describe_tables", "c2", names=["orders"], **args)
    conversation, _ = bench.talk(databases, wrong, described, run("shop", "SELECT 1", "c3"), "done")
    conversation.ask("go")
    for answer in tool_answers(conversation)[:2]:
        assert error_of(answer)["class"] == "unknown_database"
        assert sentence in error_of(answer)["message"]
    assert tool_answers(conversation)[2]["rows"] == [[1]]


def test_a_check_asks_the_database_of_the_result(
    bench: Bench, databases: dict[str, Database]
) -> None:
    conversation, _ = bench.talk(
        databases,
        run("web", "SELECT sum(pages) AS pages FROM visits", "c1"),
        call("check_sql", "c2", result="r1"),
        call("check_sql", "c3", sql="SELECT count(*) FROM tickets", database="crm"),
        call("check_sql", "c4", sql="SELECT count(*) FROM tickets"),
        "done",
        team=Team(Persona("analyst", prompt="Answer.", tools=("run_sql", "check_sql"))),
    )
    conversation.ask("go")
    _, by_handle, by_sql, unnamed = tool_answers(conversation)
    assert (by_handle["database"], by_handle["total"]) == ("web", 1)
    assert by_sql["database"] == "crm"
    assert error_of(unnamed)["class"] == "unknown_database"
    checked = [entry for entry in conversation.audit() if entry.tool == "check_sql"]
    assert [entry.database for entry in checked][:1] == ["web"]


def test_a_check_of_a_result_whose_database_left_is_refused(
    bench: Bench, databases: dict[str, Database]
) -> None:
    several, _ = bench.talk(databases, run("web", "SELECT count(*) AS n FROM customers"), "done")
    several.ask("count")
    team = Team(Persona("analyst", prompt="Answer.", tools=("run_sql", "check_sql")))
    checked = call("check_sql", "c2", result="r1")
    one, _ = bench.talk({"shop": databases["shop"]}, checked, "done", team=team)
    one.ask("check it")
    assert error_of(tool_answers(one)[-1])["class"] == "unknown_database"
    one, _ = bench.talk({"web": databases["web"]}, checked, "done", team=team)
    one.ask("check it")
    assert tool_answers(one)[-1]["total"] == 1


def test_a_query_is_verified_on_its_database_only(
    bench: Bench, databases: dict[str, Database], tmp_path: Path
) -> None:
    (tmp_path / "knowledge/queries").mkdir(parents=True)
    head = "-- question: how many?\n-- checked by: Ann\n-- database: web\n"
    (tmp_path / "knowledge/queries/count.sql").write_text(f"{head}{COUNTED}\n")
    conversation, model = bench.talk(
        databases,
        run("shop", COUNTED, "c1"),
        run("web", COUNTED, "c2"),
        "done",
        hooks=[KnowledgeFolder(tmp_path / "knowledge")],
    )
    shop, web = conversation.ask("how many?").queries
    assert "verified" not in shop
    assert web["verified"]["checked_by"] == "Ann"
    assert "-- database: web" in repr(model.sent[0])


def test_withheld_values_are_withheld_of_all_databases(
    bench: Bench, databases: dict[str, Database]
) -> None:
    conversation, model = bench.talk(
        databases,
        call("list_tables", "c1"),
        call("find_values", "c2", text="ada"),
        call("find_columns", "c3", text="bern"),
        run("web", "SELECT name FROM customers", "c4"),
        "done",
        context=CONTEXT.replace(privacy="types"),
    )
    conversation.ask("go")
    answers = tool_answers(conversation)
    assert answers[3]["database"] == "web"
    assert [part["database"] for part in answers[0]["databases"]] == ["shop", "web", "crm"]
    assert "ada@web" not in repr(model.sent)
    assert "Bern" not in repr(model.sent)


# -- approvals -------------------------------------------------------------------------------------

PAIRS = "SELECT count(*) AS n FROM customers a, customers b"


def test_costs_and_questions_are_of_the_database(
    bench: Bench, databases: dict[str, Database]
) -> None:
    limits = Limits(cost={"web": CostThresholds(pairs=2), "shop": CostThresholds(pairs=1_000)})
    conversation, _ = bench.talk(
        databases, run("shop", PAIRS, "c1"), run("web", PAIRS, "c2"), "done", limits=limits
    )
    conversation.ask("go")
    [action] = conversation.approvals()
    assert action["description"].startswith("Database web: This query may take long")
    assert action["args"]["database"] == "web"
    elsewhere = {"sql": "SELECT 1", "database": "shop"}
    edit = {"type": "edit", "edited_action": {"name": "run_sql", "args": elsewhere}}
    with pytest.raises(WrongDecisionError, match="cannot send it to another one"):
        conversation.resume([edit])
    edited = {"sql": "SELECT min(pages) FROM visits"}
    edit = {"type": "edit", "edited_action": {"name": "run_sql", "args": edited}}
    answer = conversation.resume([edit])
    [query] = answer.queries
    assert (query["database"], query["rows"]) == ("web", [[7]])


def test_thresholds_of_an_unknown_database_are_refused(databases: dict[str, Database]) -> None:
    with pytest.raises(Exception, match="names the database 'wbe', which is not given"):
        build_graph(
            model=script("x"), database=databases, limits=Limits(cost={"wbe": CostThresholds()})
        )


ALWAYS = CONTEXT.replace(approve_sql="always")


def test_a_query_that_waits_runs_on_the_first_when_there_are_several_since(
    bench: Bench, databases: dict[str, Database]
) -> None:
    sql = "SELECT count(*) AS n FROM orders"
    one, _ = bench.talk(databases["shop"], call("run_sql", sql=sql), "done", context=ALWAYS)
    one.ask("go")
    several, _ = bench.talk(databases, "done", context=ALWAYS)
    assert several.approvals()[0]["args"] == {"sql": sql}
    answer = several.resume([APPROVE])
    [query] = answer.queries
    assert (query["database"], query["rows"]) == ("shop", [[3]])
    assert [entry.database for entry in several.audit()] == ["shop"]
    past = [dict(event) for event in several.turns()[0].events]
    assert [e["database"] for e in of_type(past, "query_started")] == ["shop"]
    assert [e["database"] for e in of_type(past, "query_finished")] == ["shop"]


@pytest.mark.parametrize(
    ("left", "ran"), [("web", True), ("shop", False), ("", False)], ids=["own", "other", "unnamed"]
)
def test_a_query_that_waits_for_a_database_that_left_does_not_run_elsewhere(
    bench: Bench, databases: dict[str, Database], left: str, ran: bool
) -> None:
    both, _ = bench.talk(
        databases, run("web", "SELECT count(*) AS n FROM customers"), "done", context=ALWAYS
    )
    both.ask("go")
    rest: Any = {left: databases[left]} if left else databases["shop"]
    one, _ = bench.talk(rest, "done", context=ALWAYS)
    answer = one.resume([APPROVE])
    [told] = tool_answers(one)
    if ran:
        assert told["rows"] == [[2]]
        assert answer.queries[0]["status"] == "success"
    else:
        assert error_of(told)["class"] == "unknown_database"
        assert "there is no database 'web'" in error_of(told)["message"]
        assert [entry.verdict for entry in one.audit()] == ["failed"]


# -- threads that outlive a set of databases -------------------------------------------------------


def test_a_thread_goes_on_with_more_databases_and_with_fewer(
    bench: Bench, databases: dict[str, Database]
) -> None:
    one, _ = bench.talk(
        databases["shop"],
        call("describe_tables", "c1", names=["orders"]),
        call("run_sql", "c2", sql="SELECT customer_id, total FROM orders"),
        "one",
    )
    one.ask("first")
    several, model = bench.talk(
        databases,
        run("web", "SELECT customer_id, pages FROM visits", "c3"),
        call("fetch_result", "c4", sql="SELECT count(*) FROM r1 JOIN r2 USING (customer_id)"),
        call("describe_tables", "c5", database="web", names=["visits"]),
        "several",
    )
    events = [dict(event) for event in several.stream("second")]
    assert not of_type(events, "schema_changed"), "nothing changed in the database that it knew"
    assert tool_answers(several)[3]["rows"] == [[3]]
    assert '"name":"orders"' in repr(model.sent[-1]), "what was described of it still holds"
    fewer, model = bench.talk(
        databases["shop"],
        run("web", "SELECT 1", "c6"),
        call("fetch_result", "c7", sql="SELECT count(*) FROM r2"),
        "fewer",
    )
    events = [dict(event) for event in fewer.stream("third")]
    assert of_type(events, "schema_changed")[0]["gone"] == ["web:visits"]
    assert error_of(tool_answers(fewer)[-2])["class"] == "unknown_database"
    assert tool_answers(fewer)[-1]["rows"] == [[2]], "old results stay"
    stale = [json.loads(str(m.content)) for m in model.sent[-1] if isinstance(m, ToolMessage)]
    assert any("web:visits" in answer.get("stale", "") for answer in stale)
    assert [entry.database for entry in fewer.audit()] == ["", "web", "", "web", ""]


def test_a_changed_schema_is_told_with_the_name_of_its_database(
    bench: Bench, tmp_path: Path
) -> None:
    places = {
        name: make_sqlite(tmp_path / f"{name}.db", "CREATE TABLE t (a INTEGER);")
        for name in ("one", "two")
    }
    with (
        Database.open(places["one"]) as one,
        Database.open(places["two"]) as two,
    ):
        both = {"one": one, "two": two}
        talk, _ = bench.talk(
            both,
            call("describe_tables", "c1", database="one", names=["t"]),
            call("describe_tables", "c2", database="two", names=["t"]),
            "done",
        )
        talk.ask("first")
        make_sqlite(tmp_path / "two.db", "ALTER TABLE t ADD COLUMN b TEXT;")
        talk, model = bench.talk(both, "done")
        [changed] = of_type([dict(e) for e in talk.stream("second")], "schema_changed")
        assert (changed["changed"], changed["new"], changed["gone"]) == (["two:t"], [], [])
        answers = [json.loads(str(m.content)) for m in model.sent[-1] if isinstance(m, ToolMessage)]
        assert ["stale" in answer for answer in answers] == [False, True]
        system = str(model.sent[-1][0].content)
        assert "Database two. The schema changed before turn 2 (changed: t)" in system
        talk, again = bench.talk(both, "done")
        talk.ask("third")
        assert str(again.sent[-1][0].content) == system, "nothing changes without a change"


# -- a database that is down -----------------------------------------------------------------------


def test_a_database_that_is_down_at_open_fails_its_own_queries_until_it_is_up(
    bench: Bench, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtable.tools.several.late.RETRY_SECONDS", 0.0)
    late = tmp_path / "late.db"
    with (
        closing(open_or_defer(f"sqlite:///{late}")) as web,
        Database.open(places["shop"]) as shop,
    ):
        both = {"shop": shop, "web": web}
        talk, model = bench.talk(
            both,
            call("list_tables", "c1"),
            run("web", "SELECT count(*) FROM visits", "c2"),
            run("shop", "SELECT count(*) AS n FROM orders", "c3"),
            "web is down",
        )
        assert talk.ask("go").text == "web is down"
        listed, down, up = tool_answers(talk)
        parts = {part["database"]: part for part in listed["databases"]}
        assert [table["name"] for table in parts["shop"]["tables"]] == ["customers", "orders"]
        assert parts["web"]["error"]["class"] == "database_unavailable"
        assert error_of(down)["class"] == "database_unavailable"
        assert error_of(down)["message"].startswith("database web: ")
        assert up["rows"] == [[3]]
        assert "Database web." not in str(model.sent[0][0].content)
        make_sqlite(late, "CREATE TABLE visits (n INTEGER); INSERT INTO visits VALUES (1);")
        talk, model = bench.talk(both, run("web", "SELECT count(*) FROM visits", "c4"), "back")
        events = [dict(event) for event in talk.stream("again")]
        assert not of_type(events, "schema_changed")
        assert tool_answers(talk)[-1]["rows"] == [[1]]
        assert "Database web. Schema (1 table" in str(model.sent[0][0].content)


def test_a_policy_that_does_not_fit_stops_its_own_database_only(
    bench: Bench, places: dict[str, str], tmp_path: Path
) -> None:
    place = make_sqlite(tmp_path / "odd.db", "CREATE TABLE t (a INTEGER);")
    policy = TablePolicy(masked_columns=frozenset({"t.b"}))
    with Database.open(place, policy=policy) as odd, Database.open(places["shop"]) as shop:
        talk, _ = bench.talk(
            {"shop": shop, "odd": odd},
            call("list_tables", "c1"),
            run("odd", "SELECT a FROM t", "c2"),
            run("shop", "SELECT count(*) AS n FROM orders", "c3"),
            "one of them",
        )
        assert talk.ask("go").text == "one of them"
        listed, wrong, right = tool_answers(talk)
        parts = {part["database"]: part for part in listed["databases"]}
        assert "tables" in parts["shop"]
        assert "t.b" in parts["odd"]["error"]["message"]
        assert error_of(wrong)["message"].startswith("database odd: its settings do not fit it")
        assert right["rows"] == [[3]]


@pytest.fixture
def killed() -> Iterator[tuple[PostgresServer, Callable[[], None], Callable[[], None]]]:
    """A server of its own, what kills it, and what starts it again."""
    server = PostgresServer()
    inner: Any = server._server

    def kill() -> None:
        # The backends, too: they would go on serving open connections for a moment.
        backends = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
        pids = [pid for (pid,) in server.run(server.url("postgres"), backends)]
        postmaster = int((Path(inner.pgdata) / "postmaster.pid").read_text().split()[0])
        for pid in (postmaster, *pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        with suppress(Exception):
            while time.monotonic() < deadline:
                server.run(server.url("postgres"), "SELECT 1")
                time.sleep(0.1)

    def start() -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                inner.ensure_postgres_running()
                server.run(server.url("postgres"), "SELECT 1")
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    yield server, kill, start
    with suppress(Exception):
        start()
    server.stop()


def test_a_server_that_is_killed_in_a_turn_fails_its_own_queries_and_comes_back(
    bench: Bench,
    places: dict[str, str],
    killed: tuple[PostgresServer, Callable[[], None], Callable[[], None]],
) -> None:
    server, kill, start = killed
    url = server.create(CRM)
    count = "SELECT count(*) AS n FROM tickets"
    before = {2: kill, 5: start}
    answers = [
        run("crm", count, "c1"),
        run("crm", count, "c2"),
        run("shop", "SELECT count(*) AS n FROM orders", "c3"),
        call("list_tables", "c4"),
        run("crm", count, "c5"),
        AIMessage("done"),
        AIMessage("and on"),
    ]
    numbers = iter(range(1, 100))

    def say(_: Any) -> AIMessage:
        number = next(numbers)
        before.get(number, lambda: None)()
        return answers[number - 1]

    with Database.open(url) as crm, Database.open(places["shop"]) as shop:
        graph = build_graph(
            model=ScriptedModel(say=say),
            database={"shop": shop, "crm": crm},
            results=bench.results,
        )
        compiled = graph.compile(checkpointer=bench.saver, store=bench.store)
        talk = Conversation(compiled, "t", context=CONTEXT, results=bench.results)
        assert talk.ask("go").text == "done"
        first, down, other, listed, back = tool_answers(talk)
        assert first["rows"] == [[2]]
        assert error_of(down)["class"] == "database_unavailable"
        assert error_of(down)["message"].startswith("database crm: ")
        assert "repairs_left" not in error_of(down) or error_of(down)["repairs_left"] > 0
        assert other["rows"] == [[3]]
        parts = {part["database"]: part for part in listed["databases"]}
        assert "tables" in parts["shop"]
        assert back["rows"] == [[2]]
        assert [entry.verdict for entry in talk.audit()] == ["run", "failed", "run", "run"]
        assert talk.ask("more").text == "and on"


def test_a_turn_begins_while_a_server_is_down_with_the_schema_it_had(
    bench: Bench,
    places: dict[str, str],
    killed: tuple[PostgresServer, Callable[[], None], Callable[[], None]],
) -> None:
    server, kill, _ = killed
    with Database.open(server.create(CRM)) as crm, Database.open(places["shop"]) as shop:
        both = {"shop": shop, "crm": crm}
        talk, model = bench.talk(both, "hello")
        talk.ask("hi")
        system = str(model.sent[0][0].content)
        assert "Database crm. Schema (1 table" in system
        kill()
        talk, model = bench.talk(both, run("shop", "SELECT 1 AS n"), "still here")
        assert talk.ask("and now?").text == "still here"
        assert str(model.sent[0][0].content) == system
        with pytest.raises(DatabaseUnavailableError):
            crm.run("SELECT 1 AS n")


# -- rows by person, and room for the schemas ------------------------------------------------------


def test_rows_by_person_hold_in_each_database_and_for_handles(
    bench: Bench, places: dict[str, str]
) -> None:
    customers = {"ann": 1}
    own = "customer_id = :customer"
    filters = {"shop": {"orders": own}, "web": {"visits": f"{own} AND pages > 0"}}

    def parameters(owner: str | None) -> dict[str, int]:
        return {"customer": customers[owner]} if owner in customers else {}

    def talk(databases: Any, owner: str, *answers: AIMessage | str) -> Conversation:
        context = CONTEXT.replace(owner=owner)
        return bench.talk(databases, *answers, context=context, row_parameters=parameters)[0]

    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(
                Database.open(places[name], policy=TablePolicy(row_filters=filters[name]))
            )
            for name in filters
        }
        ann = talk(
            opened,
            "ann",
            run("shop", "SELECT customer_id, total FROM orders", "c1"),
            run("web", "SELECT customer_id, pages FROM visits", "c2"),
            call("fetch_result", "c3", sql="SELECT count(*) FROM r1 JOIN r2 USING (customer_id)"),
            "done",
        )
        ann.ask("mine")
        assert [answer["rows"] for answer in tool_answers(ann)] == [
            [[1, 10.0], [1, 20.0]],
            [[1, 7]],
            [[2]],
        ]


def test_a_handle_stays_readable_when_other_databases_come_and_go(
    bench: Bench, places: dict[str, str]
) -> None:
    def parameters(_: str | None) -> dict[str, int]:
        return {"customer": 1}

    shop_policy = TablePolicy(row_filters={"orders": "customer_id = :customer"})
    web_policy = TablePolicy(row_filters={"visits": "customer_id = :customer"})
    with (
        Database.open(places["shop"], policy=shop_policy) as shop,
        Database.open(places["web"], policy=web_policy) as web,
    ):
        sql = "SELECT total FROM orders"
        fetch = call("fetch_result", "c2", handle="r1")
        talk, _ = bench.talk(
            shop, call("run_sql", "c1", sql=sql), "done", row_parameters=parameters
        )
        talk.ask("one")
        both = {"shop": shop, "web": web}
        talk, _ = bench.talk(both, fetch, "done", row_parameters=parameters)
        talk.ask("two")
        assert tool_answers(talk)[-1]["rows"] == [[10.0], [20.0]]
        other, _ = bench.talk(both, fetch, "done", row_parameters=lambda _: {"customer": 2})
        other.ask("three")
        assert error_of(tool_answers(other)[-1])["class"] == "other_rows"
        bound = {
            "shop": shop.bound({"customer": 1}),
            "web": web.bound({"customer": 2}),
        }
        talk, _ = bench.talk(bound, fetch, run("web", "SELECT pages FROM visits", "c3"), "done")
        talk.ask("four")
        assert [answer["rows"] for answer in tool_answers(talk)[-2:]] == [[[10.0], [20.0]], [[9]]]
        with pytest.raises(Exception, match="bind all of them"):
            build_graph(model=script("x"), database={"shop": bound["shop"], "web": web})


def test_the_schemas_share_their_room_and_a_small_one_leaves_its_own(
    bench: Bench, tmp_path: Path
) -> None:
    columns = ", ".join(f"a_rather_long_column_name_{n} INTEGER" for n in range(10))
    many = ";".join(f"CREATE TABLE big_table_{n} ({columns})" for n in range(60)) + ";"
    places = {
        "small": make_sqlite(tmp_path / "small.db", "CREATE TABLE t (a INTEGER);"),
        "large": make_sqlite(tmp_path / "large.db", many),
        "wide": make_sqlite(tmp_path / "wide.db", many),
    }
    with ExitStack() as stack:
        opened = {name: stack.enter_context(Database.open(place)) for name, place in places.items()}
        talk, model = bench.talk(opened, "hello")
        talk.ask("hi")
    values = talk.graph.get_state({"configurable": {"thread_id": "t"}}).values
    schema = values["brief"]["schema"]
    parts = schema["databases"]
    assert schema["tables"] == 121
    room = schema["budget"]
    assert room == int(16_000 * 0.04)
    assert parts["small"]["budget"] == room // 3
    assert parts["large"]["budget"] == parts["wide"]["budget"] > room // 3
    text = schema_text(schema)
    assert text in str(model.sent[0][0].content)
    headings = 3 * 6
    assert counter("o200k_base").text(text) <= room + headings


# -- what others read of it ------------------------------------------------------------------------


def test_a_checker_runs_a_colleagues_query_on_its_database(
    bench: Bench, databases: dict[str, Database]
) -> None:
    team = Team(
        Persona("analyst", prompt="Answer.", model=script(run("web", COUNTED, "c1"), "2")),
        Persona("checker", prompt="Check.", tools=("check_sql",), model=BuiltInAnalyst()),
        mode=Workflow("analyst", "checker"),
    )
    conversation, _ = bench.talk(databases, "unused", team=team)
    events = [dict(event) for event in conversation.stream("How many customers are there?")]
    [started] = [e for e in of_type(events, "tool_started") if e["name"] == "check_sql"]
    assert started["args"]["result"] == "r1"
    assert "found nothing wrong" in str(events[-1]["text"])
    assert {(entry.tool, entry.database) for entry in conversation.audit()} == {
        ("run_sql", "web"),
        ("check_sql", "web"),
    }


def test_an_export_names_the_database_of_a_query(
    bench: Bench, databases: dict[str, Database]
) -> None:
    conversation, _ = bench.talk(databases, run("web", COUNTED), "2")
    conversation.ask("count")
    assert "run\\_sql web" in conversation.export("markdown")
    assert "run_sql web" in conversation.export("html")


COUNTED = "SELECT count(*) AS n FROM customers"
