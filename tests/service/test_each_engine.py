"""A conversation over each engine: what was built on queries works on all of them alike."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import QueryCancelledError
from longtable.graph import Context, Conversation, build_graph
from longtable.tools.database import Cancel, Database, QueryLimits, TablePolicy
from longtable.tools.results.result_store import ResultStore
from longtable.tools.sql.verdict import MASK
from tests.app.runner import make_home
from tests.support.models import ScriptedModel, call, script
from tests.tools.databases import DIALECTS, make, spelled, url

POLICY = TablePolicy(
    denied=frozenset({"vault"}),
    denied_columns=frozenset({"people.boss_id"}),
    masked_columns=frozenset({"people.name"}),
)
SALARIES = "SELECT city, SUM(salary) AS total FROM people GROUP BY city ORDER BY total DESC"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("engines")
    return {dialect: url(make(folder, dialect)) for dialect in DIALECTS}


@pytest.fixture(params=DIALECTS)
def place(request: pytest.FixtureRequest, places: dict[str, str]) -> str:
    return places[request.param]


@pytest.fixture
def database(place: str) -> Iterator[Database]:
    with Database.open(place, policy=POLICY) as opened:
        yield opened


def talk(database: Database, model: Any, folder: Path) -> Conversation:
    results = ResultStore(folder / "results", clock=lambda: datetime.now(UTC))
    graph = build_graph(model=model, database=database, results=results)
    compiled = graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    return Conversation(compiled, "t", context=Context(model_limit=16_000))


def answers(conversation: Conversation) -> list[dict[str, Any]]:
    texts = [m.text for m in conversation.history() if isinstance(m, ToolMessage)]
    return [json.loads(text) for text in texts]


def test_masks_denials_audit_and_results_over_results(database: Database, tmp_path: Path) -> None:
    model: ScriptedModel = script(
        call("run_sql", sql="SELECT id, name, city FROM people ORDER BY id"),
        call("run_sql", sql="SELECT boss_id FROM people"),
        call("run_sql", sql="SELECT * FROM vault"),
        call("run_sql", sql="DELETE FROM people"),
        call("run_sql", sql="SELECT name FROM people WHERE name LIKE 'A%'"),
        "refused",
        call("run_sql", sql=SALARIES),
        call("fetch_result", sql="SELECT city FROM r2 WHERE total > 65 ORDER BY city"),
        call("fetch_result", sql="SELECT name FROM r1 WHERE id = 1"),
        "done",
    )
    conversation = talk(database, model, tmp_path)
    assert conversation.ask("what may I not read?").text == "refused"
    assert conversation.ask("and what may I?").text == "done"
    masked, denied, vault, deletion, sought, sums, over, over_masked = answers(conversation)
    assert masked["rows"][0] == [1, MASK, "Bern"]
    assert [told["error"]["class"] for told in (denied, vault, deletion, sought)] == [
        denied["error"]["class"],
        "unknown_table",
        "query_refused",
        "query_refused",
    ]
    assert "boss_id" in json.dumps(denied)
    assert sums["rows"][0] == ["Bern", 150.5]
    assert over["rows"] == [["Bern"], ["Genf"]]
    assert over_masked["rows"] == [[MASK]]
    everything = json.dumps(answers(conversation), ensure_ascii=False)
    assert not any(secret in everything for secret in ("Ada", "Zoë", "combination"))
    audit = conversation.audit()
    assert [entry.verdict for entry in audit][:6] == [
        "run",
        audit[1].verdict,
        *["refused"] * 3,
        "run",
    ]
    assert audit[0].columns == ("people.city", "people.id", "people.name")
    assert audit[5].tables == ("people",)
    assert audit[0].asked == "SELECT id, name, city FROM people ORDER BY id"


def test_a_chart_is_drawn_of_a_result(database: Database, tmp_path: Path) -> None:
    model = script(
        call("run_sql", sql=SALARIES),
        call("show_chart", handle="r1", wish="bar of total by city"),
        "drawn",
    )
    conversation = talk(database, model, tmp_path)
    events = [dict(event) for event in conversation.stream("draw it")]
    charts = [event for event in events if event["type"] == "chart"]
    assert len(charts) == 1
    assert "bar" in json.dumps(charts[0]["spec"])
    assert answers(conversation)[1]["points"] >= 2


def test_an_empty_result_tells_which_values_there_are(database: Database, tmp_path: Path) -> None:
    model = script(call("run_sql", sql="SELECT id FROM people WHERE city = 'Berm'"), "none")
    conversation = talk(database, model, tmp_path)
    conversation.ask("who?")
    [told] = answers(conversation)
    assert told["rows"] == []
    assert "Bern" in json.dumps(told["empty"])


def test_a_running_query_is_cancelled(place: str) -> None:
    dialect_heavy = "SELECT count(*) FROM numbers a, numbers b, numbers c, numbers d"
    with Database.open(place, limits=QueryLimits(seconds=60)) as database:
        database.catalog()
        cancel = Cancel()
        threading.Timer(0.4, cancel.cancel).start()
        started = time.monotonic()
        with pytest.raises(QueryCancelledError):
            database.run(dialect_heavy, cancel=cancel)
        assert time.monotonic() - started < 10
        assert database.run("SELECT 1").rows == [(1,)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many people are there?", "4"),
        ("What is the total salary of people?", "270.5"),
        ("What is the average salary by city?", "75.25"),
        ("How many people are in Bern?", "2"),
    ],
)
def test_the_built_in_analyst_answers(
    question: str, expected: str, place: str, tmp_path: Path
) -> None:
    with Database.open(place, policy=TablePolicy(denied=frozenset({"vault"}))) as database:
        answer = talk(database, BuiltInAnalyst(), tmp_path).ask(question)
    rows = json.dumps([query.get("rows") for query in answer.queries])
    assert expected in rows + answer.text, answer.text


def test_names_that_need_quotes_are_written_in_the_engine_s_own(place: str, tmp_path: Path) -> None:
    with Database.open(place) as database:
        answer = talk(database, BuiltInAnalyst(), tmp_path).ask(
            "What is the total unit price of order details?"
        )
        assert "2.5" in json.dumps([query.get("rows") for query in answer.queries]), answer.text
        sql = str(answer.queries[-1]["sql"])
        assert spelled('"Order Details"', database.dialect) in sql


def test_the_command_line_asks_and_lists_tables(place: str, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    done = home.run(
        "chat",
        *("--database", place),
        stdin=b"How many people are there?\n/tables\n",
    )
    assert done.returncode == 0, done.stderr
    assert "There are 4 people" in done.stdout
    assert "audit" in done.stdout
    assert "客户" in done.stdout
