"""Costly queries wait for a person: what is asked, what each decision does, and that nothing is
asked, run or lost twice.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from sqlglot import Token
from sqlglot.parser import Parser

from longtable.base.errors import (
    ConfigError,
    ConnectionWaitError,
    DatabaseUnavailableError,
    EmptyMessageError,
    LongtableError,
    NothingAskedError,
    QueryCancelledError,
    QueryFailedError,
    QueryMemoryError,
    QueryTimeoutError,
    TurnPendingError,
    WorkerLostError,
    WrongDecisionError,
)
from longtable.graph import Context, Conversation, Database, Limits, build_graph, open_persistence
from longtable.nodes.approve import Gate
from longtable.tools.database import Cancel, QueryLimits
from longtable.tools.several.databases import Databases
from longtable.tools.sql.verdict import CostThresholds
from tests.support.models import ScriptedModel, call, script
from tests.support.threads import of_type
from tests.tools.databases import DIALECTS, make

CONTEXT = Context(model_limit=16_000)
COSTLY = "SELECT count(*) FROM numbers a, numbers b"
CHEAP = "SELECT count(*) FROM numbers"
LOW = CostThresholds(pairs=1_000_000)
APPROVE = {"type": "approve"}


def edit(sql: str) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "run_sql", "args": {"sql": sql}}}


def calls(*queries: str) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[
            {"name": "run_sql", "args": {"sql": sql}, "id": f"c{i}"}
            for i, sql in enumerate(queries)
        ],
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with Database.open(str(make(tmp_path_factory.mktemp("approvals"), "sqlite"))) as opened:
        yield opened


def talk(
    database: Database, model: ScriptedModel, *, context: Context = CONTEXT, **more: Any
) -> Conversation:
    graph = build_graph(model=model, database=database, limits=Limits(cost=LOW), **more).compile(
        checkpointer=InMemorySaver()
    )
    return Conversation(graph, "t", context=context)


def answers(conversation: Conversation) -> list[dict[str, Any]]:
    return [json.loads(m.text) for m in conversation.history() if isinstance(m, ToolMessage)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cross_product_waits_and_a_plain_query_does_not(dialect: str, tmp_path: Path) -> None:
    with Database.open(str(make(tmp_path, dialect))) as database:
        conversation = talk(database, script(calls(CHEAP), calls(COSTLY), "done"))
        events = [dict(event) for event in conversation.stream("how many pairs?")]
        [asked] = of_type(events, "approval_requested")
        assert (events[-1]["type"], events[-1]["status"]) == ("answer", "approval_requested")
        assert [event["sql"] for event in of_type(events, "query_started")] == [CHEAP]
        [action] = conversation.approvals()
        assert asked["action_requests"] == [action]
        assert (action["name"], action["args"]) == ("run_sql", {"sql": COSTLY})
        assert "4,000,000" in action["description"]
        assert asked["review_configs"] == [
            {"action_name": "run_sql", "allowed_decisions": ["approve", "edit", "reject"]}
        ]
        answer = conversation.resume([APPROVE])
        assert (answer.text, answer.status) == ("done", "answered")
        assert [query.get("rows") for query in answer.queries] == [[[4_000_000]]]
        assert conversation.approvals() == []


def test_parallel_calls_are_one_question_and_each_gets_its_own_decision(database: Database) -> None:
    other = "SELECT max(a.n) FROM numbers a, numbers b"
    model = script(calls(COSTLY, CHEAP, other, f"{COSTLY} WHERE a.n > 1"), "done")
    conversation = talk(database, model)
    events = list(conversation.stream("all"))
    assert not of_type([dict(e) for e in events], "query_started"), (
        "nothing runs before the decision"
    )
    assert [action["args"]["sql"] for action in conversation.approvals()] == [
        COSTLY,
        other,
        f"{COSTLY} WHERE a.n > 1",
    ]
    answer = conversation.resume(
        [APPROVE, {"type": "reject", "message": "too slow"}, edit("SELECT min(n) FROM numbers")]
    )
    assert sorted(query["status"] for query in answer.queries) == [
        "error",
        "success",
        "success",
        "success",
    ]
    first, second, rejected, edited = answers(conversation)
    assert (first["rows"], second["rows"], edited["rows"]) == ([[4_000_000]], [[2_000]], [[1]])
    assert edited["sql"] == "SELECT MIN(n) FROM numbers"
    assert "changed this query" in edited["edited"]
    assert rejected["error"]["class"] == "query_rejected"
    assert "too slow" in rejected["error"]["message"]
    assert "repairs_left" not in rejected["error"]


def test_calls_that_share_an_id_are_decided_on_one_by_one(database: Database) -> None:
    twice = AIMessage(
        "",
        tool_calls=[
            {"name": "run_sql", "args": {"sql": sql}, "id": "same"}
            for sql in (COSTLY, f"{COSTLY} WHERE a.n > 1")
        ],
    )
    conversation = talk(database, script(twice, "done"))
    conversation.ask("go")
    conversation.resume([{"type": "reject"}, APPROVE])
    rejected, run = answers(conversation)
    assert rejected["error"]["class"] == "query_rejected"
    assert "WHERE a.n > 1" in run["sql"]


def test_an_edited_query_passes_both_walls_and_is_not_asked_about_again(database: Database) -> None:
    conversation = talk(database, script(calls(COSTLY), "no", calls(COSTLY), "yes"))
    conversation.ask("one")
    conversation.resume([edit("DELETE FROM numbers")])
    [refused] = answers(conversation)
    assert refused["error"]["class"] == "query_refused"
    conversation.ask("two")
    assert conversation.resume([edit(f"{COSTLY} WHERE a.n > 0")]).status == "answered"
    assert database.run(CHEAP).rows == [(2_000,)]


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [APPROVE, APPROVE],
        ["approve"],
        [{"type": "respond", "message": "42"}],
        [{"type": "edit"}],
        [{"type": "edit", "edited_action": {"name": "list_tables", "args": {"sql": "SELECT 1"}}}],
        [edit("  ")],
        [{"type": "reject", "message": 3}],
    ],
)
def test_a_decision_that_does_not_fit_changes_nothing(wrong: list[Any], database: Database) -> None:
    conversation = talk(database, script(calls(COSTLY), "done"))
    conversation.ask("go")
    before = conversation.graph.get_state(conversation.config)
    with pytest.raises(WrongDecisionError):
        conversation.resume(wrong)
    assert conversation.graph.get_state(conversation.config).config == before.config
    with pytest.raises(WrongDecisionError):  # the bare graph, as Studio drives it
        conversation.graph.invoke(
            Command(resume={"decisions": wrong}), conversation.config, context=CONTEXT
        )
    assert len(conversation.approvals()) == 1
    assert conversation.resume([APPROVE]).text == "done"


def test_the_bare_graph_stops_with_the_interrupt_that_studio_draws(database: Database) -> None:
    graph = talk(database, script(calls(COSTLY), "done")).graph
    config: Any = {"configurable": {"thread_id": "bare"}}
    out = graph.invoke({"messages": [HumanMessage("go")]}, config, context=CONTEXT)
    [stopped] = out["__interrupt__"]
    assert set(stopped.value) == {"action_requests", "review_configs"}
    assert set(stopped.value["action_requests"][0]) == {"name", "args", "description"}
    out = graph.invoke(Command(resume={"decisions": [APPROVE]}), config, context=CONTEXT)
    assert out["messages"][-1].text == "done"


@pytest.mark.parametrize(
    ("mode", "sql", "asked"),
    [("never", COSTLY, False), ("always", CHEAP, True), ("costly", CHEAP, False)],
)
def test_the_setting_says_which_queries_wait(
    mode: str, sql: str, asked: bool, database: Database
) -> None:
    conversation = talk(
        database, script(calls(sql), "done"), context=CONTEXT.replace(approve_sql=mode)
    )
    assert (conversation.ask("go").status == "approval_requested") is asked


def test_what_a_wall_refuses_is_not_asked_about(database: Database) -> None:
    conversation = talk(
        database,
        script(calls("DROP TABLE numbers"), "no"),
        context=CONTEXT.replace(approve_sql="always"),
    )
    assert conversation.ask("go").status == "answered"


def test_a_query_that_cannot_be_planned_now_waits_all_the_same_when_every_query_does(
    tmp_path: Path,
) -> None:
    path = tmp_path / "locked.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    with Database.open(f"sqlite:///{path}", busy_seconds=0.01) as database:
        database.catalog()
        other.execute("BEGIN EXCLUSIVE")
        conversation = talk(
            database,
            script(calls("SELECT x FROM t"), "done"),
            context=CONTEXT.replace(approve_sql="always"),
        )
        assert conversation.ask("go").status == "approval_requested"
        other.close()
        conversation.resume([APPROVE])
        assert answers(conversation)[0]["rows"] == [[1]]


PLANNED_FOR_EVER = (
    "SELECT length(replace(replace(repeat('x', 9000), 'x', repeat('y', 900)), 'y', repeat('z',"
    " 900)))"
)
"""DuckDB computes it while it plans: 6 GB that no interrupt stops."""


def test_a_query_whose_plan_is_killed_waits_for_a_person(tmp_path: Path) -> None:
    limits = QueryLimits(seconds=0.5, memory_bytes=200_000_000)
    with Database.open(
        str(make(tmp_path, "duckdb")), limits=limits, isolation="process"
    ) as database:
        conversation = talk(database, script(calls(PLANNED_FOR_EVER), "done"))
        assert conversation.ask("go").status == "approval_requested"
        [action] = conversation.approvals()
        assert "made no plan" in action["description"]


class Unplanned:
    """A database that makes no plan."""

    dialect = "sqlite"
    name = "numbers"

    def __init__(self, error: LongtableError) -> None:
        self._error = error

    def check_sql(self, _sql: str, *, cancel: Cancel | None = None) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (QueryTimeoutError(limit_s=5), True),
        (WorkerLostError("killed"), True),
        (QueryMemoryError(limit=1), True),
        (ConnectionWaitError(waited_s=5, connections=8), True),
        (QueryFailedError("internal error"), True),
        (QueryFailedError("no such column: x", problem="unknown_name"), False),
        (DatabaseUnavailableError("locked"), False),
        (QueryCancelledError(), False),
    ],
    ids=repr,
)
def test_what_cannot_be_planned_counts_as_costly_and_what_cannot_run_does_not(
    error: LongtableError, asked: bool
) -> None:
    databases = Databases.of(cast("Database", Unplanned(error)))
    assert databases is not None
    gate = Gate(databases, {"": LOW})
    assert bool(gate.pending(calls(CHEAP).tool_calls, mode="costly", language="en")) is asked


def test_wrong_settings_are_config_errors() -> None:
    with pytest.raises(ConfigError, match="approve_sql"):
        Context(approve_sql="sometimes")  # type: ignore[arg-type]  # as a form may send it
    with pytest.raises(ConfigError, match="pairs"):
        CostThresholds(pairs=-1)


def test_another_message_instead_of_a_decision_rejects_and_goes_on(database: Database) -> None:
    model = script(calls(COSTLY, CHEAP), "hello to you", "done")
    conversation = talk(database, model)
    conversation.ask("go")
    with pytest.raises(TurnPendingError):
        conversation.compact()
    assert conversation.ask("never mind, hello").text == "hello to you"
    kinds = [m.type for m in conversation.history()]
    assert kinds == ["human", "ai", "tool", "tool", "human", "ai"]
    assert all(answer["error"]["class"] == "query_rejected" for answer in answers(conversation))
    assert "another message" in model.sent[-1][3].text
    with pytest.raises(NothingAskedError):
        conversation.resume([APPROVE])


def test_a_message_that_is_refused_in_place_of_a_decision_leaves_the_thread_usable(
    database: Database,
) -> None:
    conversation = talk(database, script(calls(COSTLY), "done"))
    conversation.ask("go")
    with pytest.raises(EmptyMessageError):
        conversation.ask("  ")
    assert len(conversation.approvals()) == 1, "what is no message decides nothing"
    assert conversation.resume([APPROVE]).text == "done"


def test_a_run_killed_after_the_decision_keeps_it(tmp_path: Path, database: Database) -> None:
    url = f"sqlite:///{tmp_path / 'threads.db'}"
    with open_persistence(url) as kept:
        graph = build_graph(
            model=script(calls(COSTLY, COSTLY)), database=database, limits=Limits(cost=LOW)
        )
        conversation = Conversation(
            graph.compile(checkpointer=kept.checkpointer, store=kept.store), "t", context=CONTEXT
        )
        conversation.ask("go")
        decided: Any = Command(
            resume={"decisions": [APPROVE, {"type": "reject", "message": "once is enough"}]}
        )
        conversation.graph.invoke(
            decided,
            conversation.config,
            context=CONTEXT,
            interrupt_after=["approve"],
            durability="sync",
        )
    with open_persistence(url) as kept:
        graph = build_graph(model=script("done"), database=database, limits=Limits(cost=LOW))
        conversation = Conversation(
            graph.compile(checkpointer=kept.checkpointer, store=kept.store), "t", context=CONTEXT
        )
        assert conversation.approvals() == []
        assert [dict(event) for event in conversation.stream()][-1]["text"] == "done"
        assert ["rows" in answer for answer in answers(conversation)] == [True, False]


def test_the_audit_tells_what_waits_and_what_was_decided(
    tmp_path: Path, database: Database
) -> None:
    with open_persistence("memory://") as kept:
        graph = build_graph(
            model=script(calls(COSTLY), "no", calls(COSTLY), "hello", calls(COSTLY), "yes"),
            database=database,
            limits=Limits(cost=LOW),
        )
        conversation = Conversation(
            graph.compile(checkpointer=kept.checkpointer, store=kept.store), "t", context=CONTEXT
        )
        conversation.ask("one")
        assert [entry.verdict for entry in conversation.audit()] == ["waiting"]
        conversation.resume([{"type": "reject"}])
        conversation.ask("two")
        conversation.ask("hello")
        conversation.ask("three")
        conversation.resume([edit(CHEAP)])
        told = [(entry.verdict, entry.asked, entry.ran) for entry in conversation.audit()]
        assert told == [
            ("rejected", COSTLY, ""),
            ("rejected", COSTLY, ""),
            ("run", COSTLY, "SELECT COUNT(*) FROM numbers"),
        ]


def test_the_question_outlives_the_process_and_its_decision_does_too(
    tmp_path: Path, database: Database
) -> None:
    def opened(kept: Any, model: ScriptedModel) -> Conversation:
        graph = build_graph(model=model, database=database, limits=Limits(cost=LOW)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        return Conversation(graph, "t", context=CONTEXT)

    url = f"sqlite:///{tmp_path / 'threads.db'}"
    with open_persistence(url) as kept:
        opened(kept, script(calls(COSTLY))).ask("go")
    with open_persistence(url) as kept:
        conversation = opened(kept, script("done"))
        again = [dict(event) for event in conversation.stream()]
        assert [
            action["args"]["sql"]
            for action in of_type(again, "approval_requested")[0]["action_requests"]
        ] == [COSTLY]
        assert again[-1]["status"] == "approval_requested"
    with open_persistence(url) as kept:
        assert opened(kept, script("done")).resume([APPROVE]).text == "done"


def test_it_works_asynchronously_too(database: Database) -> None:
    async def run() -> None:
        conversation = talk(database, script(calls(COSTLY, CHEAP), "done"))
        assert (await conversation.aask("go")).status == "approval_requested"
        with pytest.raises(WrongDecisionError):
            await conversation.aresume([])
        assert len(await conversation.aapprovals()) == 1
        answer = await conversation.aresume([edit(CHEAP)])
        assert [len(answer.queries), answer.text] == [2, "done"]
        assert await conversation.awaiting() == []

    asyncio.run(run())


def test_the_question_is_asked_in_the_language_of_the_conversation(database: Database) -> None:
    conversation = talk(database, script(calls(COSTLY)))
    conversation.ask("有多少对？")
    assert "4,000,000" in conversation.approvals()[0]["description"]
    assert "查询" in conversation.approvals()[0]["description"]


# -- tools that ask by themselves ------------------------------------------------------------------

RUNS: list[str] = []


@tool
def ask_person(what: str) -> str:
    """Ask the person."""
    return f"{what}: {interrupt({'question': what})}"


@tool
def note(what: str) -> str:
    """Note something."""
    RUNS.append(what)
    return f"noted {what}"


def several(*names: tuple[str, str]) -> AIMessage:
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": {"what": what}, "id": f"c{i}"}
            for i, (name, what) in enumerate(names)
        ],
    )


@pytest.mark.parametrize("asynchronous", [False, True])
def test_tools_that_interrupt_side_by_side_get_their_own_answers_and_their_siblings_run_once(
    asynchronous: bool, database: Database
) -> None:
    RUNS.clear()
    model = script(
        several(
            ("ask_person", "name"),
            ("note", "a"),
            ("ask_person", "age"),
            ("ask_person", "town"),
            ("note", "b"),
        ),
        "done",
    )
    conversation = talk(database, model, tools=[ask_person, note])

    async def go() -> Any:
        answer = await conversation.aask("go")
        for reply in ("Ada", "36"):
            assert answer.status == "input_requested"
            answer = await conversation.aresume(reply)
        [waiting] = await conversation.awaiting()
        assert waiting.value == {"question": "town"}
        return await conversation.aresume("Bern", waiting_id=waiting.id)

    def walk() -> Any:
        answer = conversation.ask("go")
        for reply in ("Ada", "36"):
            assert answer.status == "input_requested"
            answer = conversation.resume(reply)
        [waiting] = conversation.waiting()
        assert waiting.value == {"question": "town"}
        return conversation.resume("Bern", waiting_id=waiting.id)

    answer = asyncio.run(go()) if asynchronous else walk()
    assert answer.text == "done"
    told = {m.tool_call_id: m.text for m in conversation.history() if isinstance(m, ToolMessage)}
    assert told == {
        "c0": "name: Ada",
        "c1": "noted a",
        "c2": "age: 36",
        "c3": "town: Bern",
        "c4": "noted b",
    }
    assert sorted(RUNS) == ["a", "b"]
    with pytest.raises(NothingAskedError):
        conversation.resume("again")


def test_a_tool_that_asks_beside_a_costly_query_does_not_mix_the_answers(
    database: Database,
) -> None:
    both = AIMessage(
        "",
        tool_calls=[
            *several(("ask_person", "name")).tool_calls,
            *call("run_sql", "q", sql=COSTLY).tool_calls,
        ],
    )
    conversation = talk(database, script(both, "done"), tools=[ask_person])
    assert conversation.ask("go").status == "approval_requested"
    assert conversation.resume([APPROVE]).status == "input_requested"
    assert conversation.resume("Ada").text == "done"
    told = {m.tool_call_id: m.text for m in conversation.history() if isinstance(m, ToolMessage)}
    assert told["c0"] == "name: Ada"
    assert json.loads(told["q"])["rows"] == [[4_000_000]]


# -- repairs ---------------------------------------------------------------------------------------


def failing(count: int) -> AIMessage:
    return calls(*(f"SELECT nam{i} FROM people" for i in range(count)))


def test_after_three_repairs_no_query_runs_and_the_last_error_is_told(database: Database) -> None:
    model = script(
        failing(1),
        failing(1),
        failing(1),
        failing(1),
        calls(CHEAP),
        "It failed.",
        calls(CHEAP),
        "2000",
    )
    conversation = talk(database, model)
    conversation.ask("names")
    errors = [answer["error"] for answer in answers(conversation)]
    assert [error.get("repairs_left") for error in errors] == [3, 2, 1, 0, None]
    assert [error["problem"] for error in errors[:4]] == ["unknown_name"] * 4
    assert "No further try" in errors[3]["final"]
    assert errors[4]["class"] == "repairs_used_up"
    assert errors[3]["message"] in errors[4]["message"]
    assert [query["status"] for query in conversation.ask("how many?").queries] == ["success"], (
        "the next question begins anew"
    )


def test_parallel_calls_do_not_get_around_the_limit(database: Database) -> None:
    conversation = talk(database, script(failing(5), failing(2), failing(5), "It failed."))
    answer = conversation.ask("names")
    codes = [answer["error"]["class"] for answer in answers(conversation)]
    assert codes == ["query_failed"] * 8 + ["repairs_used_up"] * 4
    assert len(answer.queries) == 12


def test_a_repair_that_works_makes_room_for_the_calls_beside_it(database: Database) -> None:
    conversation = talk(
        database,
        script(failing(1), calls(*[CHEAP] * 6), "done"),
        context=CONTEXT.replace(max_repairs=1),
    )
    assert [query["status"] for query in conversation.ask("names").queries] == [
        "error",
        *["success"] * 6,
    ]


def test_the_limit_is_a_setting_and_outlives_a_restart(tmp_path: Path, database: Database) -> None:
    context = CONTEXT.replace(max_repairs=1, max_model_calls=2)
    url = f"sqlite:///{tmp_path / 'threads.db'}"

    def opened(kept: Any, model: ScriptedModel) -> Conversation:
        graph = build_graph(model=model, database=database).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        return Conversation(graph, "t", context=context)

    with open_persistence(url) as kept:
        conversation = opened(kept, script(failing(1), failing(1)))
        graph, config = conversation.graph, conversation.config
        graph.invoke(
            {"messages": [HumanMessage("names")]},
            config,
            context=context,
            interrupt_after=["run_tools"],
        )
    with open_persistence(url) as kept:
        conversation = opened(kept, script(failing(1)))
        conversation.resume()
        assert [answer["error"]["repairs_left"] for answer in answers(conversation)] == [1, 0]


def test_a_locked_database_uses_no_repair(tmp_path: Path) -> None:
    path = tmp_path / "locked.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    with Database.open(f"sqlite:///{path}", busy_seconds=0.01) as database:
        database.catalog()
        other.execute("BEGIN EXCLUSIVE")
        conversation = talk(database, script(*[calls("SELECT x FROM t")] * 6, "locked"))
        conversation.ask("x")
    other.close()
    assert [answer["error"]["class"] for answer in answers(conversation)] == [
        "database_unavailable"
    ] * 6


def test_a_query_that_waits_for_approval_is_parsed_once_for_all_its_checks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planned, run and audited: its text is parsed once, and so is the text that runs."""
    parsed: list[str] = []
    parse = Parser.parse

    def counted(self: Parser, raw_tokens: list[Token], sql: str = "") -> list[Any]:
        parsed.append(sql)
        return parse(self, raw_tokens, sql)

    monkeypatch.setattr(Parser, "parse", counted)
    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        conversation = talk(database, script(calls(COSTLY), "done"))
        assert conversation.ask("how many pairs?").status == "approval_requested"
        assert conversation.resume([APPROVE]).status == "answered"
    ran = "SELECT COUNT(*) FROM numbers AS a CROSS JOIN numbers AS b"
    # SQLite's plan names aliases: what they stand for is read from the text once more.
    assert [sql for sql in parsed if "numbers" in sql] == [COSTLY, ran, ran]
