"""Each person's turn reads that person's rows, whatever a client or a model says of the owner."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ConfigError, OtherRowsError
from longtable.graph import Context, Conversation, ResultStore, TablePolicy, build_graph
from longtable.graph.embedding import as_node
from longtable.graph.wiring.row_sources import reading_for
from longtable.tools.check_tool import check_tool
from longtable.tools.database import Database
from longtable.tools.results.result_store import UnknownResultError
from tests.support.models import ScriptedModel, call, script
from tests.tools.databases import url
from tests.tools.sql.row_filters.rows_database import POLICY, make_rows, open_rows

COUNT = "SELECT count(*) AS n FROM orders"


@dataclass
class Operator:
    """The operator's table of people and regions."""

    regions: dict[str | None, object] = field(
        default_factory=lambda: {"ann": "north", "bo": "south"}
    )
    asked: list[str | None] = field(default_factory=list)

    def __call__(self, owner: str | None) -> Mapping[str, object]:
        self.asked.append(owner)
        return {"region": self.regions[owner]} if owner in self.regions else {}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return url(make_rows(tmp_path_factory.mktemp("rows"), "sqlite"))


@pytest.fixture
def database(place: str) -> Iterator[Database]:
    with Database.open(place, policy=POLICY, isolation="none") as opened:
        yield opened


@pytest.fixture
def operator() -> Operator:
    return Operator()


Talk = Callable[..., Conversation]


@pytest.fixture
def talk(database: Database, operator: Operator, tmp_path: Path) -> Talk:
    """Return a function that opens a conversation of an owner with a model of these answers."""
    results = ResultStore(tmp_path / "results", isolation="none")
    saver = InMemorySaver()
    store = InMemoryStore()

    def open_talk(
        owner: str | None, *answers: AIMessage | str, thread: str = "t", **arguments: Any
    ) -> Conversation:
        model = script(*answers)
        graph = build_graph(
            model=model,
            database=database,
            results=results,
            row_parameters=operator,
            **arguments,
        ).compile(checkpointer=saver, store=store)
        context = Context(model_limit=16_000, owner=owner)
        conversation = Conversation(graph, thread, context=context, results=results)
        conversation.model = model  # type: ignore[attr-defined]  # for `sent`
        return conversation

    return open_talk


def sent(conversation: Conversation) -> str:
    """Return all that the model was sent, as one text."""
    model: ScriptedModel = conversation.model  # type: ignore[attr-defined]
    return "\n".join(str(message.content) for request in model.sent for message in request)


def told(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the answers of the tools."""
    messages = [each for each in conversation.history() if isinstance(each, ToolMessage)]
    return [json.loads(message.text) for message in messages]


def test_each_owner_reads_their_own_rows(talk: Talk) -> None:
    for owner, rows in {"ann": 30, "bo": 20}.items():
        conversation = talk(owner, call("run_sql", sql=COUNT), "done", thread=owner)
        conversation.ask("how many?")
        assert told(conversation)[0]["rows"] == [[rows]]
        assert f"orders ({rows} rows)" in sent(conversation)
        assert "50" not in sent(conversation)


@pytest.mark.parametrize("owner", ["eve", None])
def test_an_owner_without_parameters_is_refused(talk: Talk, owner: str | None) -> None:
    conversation = talk(owner, call("run_sql", sql=COUNT), "done")
    conversation.ask("how many?")
    error = told(conversation)[0]["error"]
    assert error["class"] == "row_parameter"
    assert "'region' is missing" in error["message"]
    assert "orders:" in sent(conversation)  # its columns may be known, its size not


def test_every_tool_reads_the_same_rows(talk: Talk, database: Database) -> None:
    @tool
    def own_tool() -> str:
        """Read the database in a tool of the embedder's own."""
        return json.dumps({"n": database.run(COUNT).rows[0][0]})

    answers = [
        call("list_tables"),
        call("describe_tables", names=["orders"]),
        call("find_values", text="south"),
        call("find_values", text="text", table="orders"),
        call("find_columns", text="south"),
        call("own_tool"),
        call("check_sql", sql="SELECT sum(total) FROM orders", question="total?"),
        "done",
    ]
    tools = [own_tool, check_tool(database)]
    conversation = talk("ann", *answers, tools=tools)
    conversation.ask("look around")
    found = told(conversation)
    assert found[0]["tables"][0]["rows"] == 30
    assert found[1]["tables"][0]["rows"] == 30
    assert [match["table"] for match in found[2]["matches"]] == ["regions"]
    assert found[3]["matches"] == []
    assert "orders" not in [column["table"] for column in found[4]["columns"]]
    assert found[5] == {"n": 30}
    assert found[6]["total"] == 1
    assert "south" not in sent(conversation).replace('"south"', "").replace("Bo", "")[:2_000]


def test_parameters_are_read_once_a_turn(talk: Talk, operator: Operator) -> None:
    both = AIMessage(
        "",
        tool_calls=[
            {"name": "run_sql", "args": {"sql": COUNT}, "id": "a"},
            {"name": "run_sql", "args": {"sql": f"{COUNT} WHERE id > 0"}, "id": "b"},
        ],
    )
    conversation = talk("ann", both, call("list_tables"), "done")
    conversation.ask("one")
    assert operator.asked == ["ann"]
    asyncio.run(conversation.aask("two"))
    assert operator.asked == ["ann", "ann"]


def test_a_client_s_context_names_no_owner(talk: Talk, operator: Operator) -> None:
    graph = talk("ann", call("run_sql", sql=COUNT), "done").graph
    config = {"configurable": {"thread_id": "web", "__longtable_rows": {"region": "north"}}}
    run: Any = graph.invoke  # as a server calls it, with what a client sent
    state = run(
        {"messages": [HumanMessage("how many?")]},
        config,
        context={"owner": "ann", "model_limit": 16_000},
    )
    answer = next(each for each in state["messages"] if isinstance(each, ToolMessage))
    assert json.loads(answer.text)["error"]["class"] == "row_parameter"
    assert {*operator.asked} == {None}


def test_an_embedded_graph_trusts_no_owner_of_its_parent_s_context(
    database: Database, operator: Operator
) -> None:
    model = script(call("run_sql", sql=COUNT), "done", call("run_sql", sql=COUNT), "done")
    child = build_graph(model=model, database=database, row_parameters=operator)
    context = Context(owner="ann", model_limit=16_000)
    for setting, owner in ((None, None), (lambda _: context, "ann")):
        operator.asked.clear()
        parent: Any = StateGraph(MessagesState, context_schema=Context)
        parent.add_node("analyst", as_node(child, context=setting))
        parent.add_edge(START, "analyst")
        parent.compile().invoke({"messages": [HumanMessage("how many?")]}, context=context)
        assert {*operator.asked} == {owner}


def test_parameters_never_stand_in_the_state(talk: Talk, operator: Operator) -> None:
    operator.regions["ann"] = "north' --  marker-7"
    conversation = talk("ann", call("run_sql", sql=COUNT), "done")
    conversation.ask("how many?")
    checkpoints = list(conversation.graph.get_state_history(conversation.config))
    assert len(checkpoints) > 3
    assert "marker-7" not in repr(checkpoints)
    assert "marker-7" not in conversation.export()
    assert "marker-7" not in sent(conversation)


def test_a_handle_of_other_rows_is_refused(talk: Talk, operator: Operator) -> None:
    first = talk("ann", call("run_sql", sql="SELECT id FROM orders ORDER BY id"), "done")
    first.ask("which?")
    assert first.result("r1").row_count == 30
    open_rows_of = talk("ann", call("run_sql", sql="SELECT count(*) FROM items"), "done")
    open_rows_of.ask("items?")
    operator.regions["ann"] = "south"
    with pytest.raises(OtherRowsError, match="r1"):
        first.result("r1")
    assert first.result("r2").rows == [(4,)]  # of a table without a filter
    later = talk(
        "ann",
        call("fetch_result", handle="r1"),
        call("fetch_result", sql="SELECT count(*) FROM r1"),
        call("fetch_result", sql="SELECT count(*) FROM r2"),
        call("show_chart", handle="r1"),
        call("run_sql", sql=COUNT),
        "done",
    )
    later.ask("again?")
    answers = told(later)[2:]
    classes = [(answer.get("error") or {}).get("class") for answer in answers]
    assert classes == ["other_rows", "other_rows", None, "other_rows", None]
    assert answers[-1]["rows"] == [[20]]
    past = [event for turn in first.turns() for event in turn.events]
    tables = [event for event in past if event["type"] == "query_finished"]
    assert len(tables[0]["rows"]) <= 20  # the preview of then, not the stored result
    assert "orders (20 rows)" in sent(later)  # the card is that of now
    operator.regions["ann"] = "north"
    assert first.result("r1").row_count == 30


def test_another_owner_s_handle_is_not_read_by_the_store_alone(talk: Talk) -> None:
    conversation = talk("ann", call("run_sql", sql=COUNT), "done")
    conversation.ask("how many?")
    results = conversation.results
    assert results is not None
    with pytest.raises(OtherRowsError):
        results.get("t", "r1")
    assert results.handles("t") == []
    with reading_for(conversation.graph, "bo"), pytest.raises(OtherRowsError):
        results.path("t", "r1")
    with reading_for(conversation.graph, "ann"):
        assert results.get("t", "r1").rows == [(30,)]
        assert [meta.handle for meta in results.handles("t")] == ["r1"]
    with pytest.raises(UnknownResultError):
        results.get("t", "r9")


def test_an_approved_query_reads_the_rows_of_now(talk: Talk, operator: Operator) -> None:
    conversation = talk("ann", call("run_sql", sql=COUNT), "done")
    asking = conversation.context.replace(approve_sql="always")
    conversation.context = asking
    assert conversation.ask("how many?").status == "approval_requested"
    operator.regions["ann"] = "south"
    conversation.resume([{"type": "approve"}])
    assert told(conversation)[0]["rows"] == [[20]]


def test_a_bound_database_needs_no_function(database: Database, tmp_path: Path) -> None:
    results = ResultStore(tmp_path / "results", isolation="none")
    graph = build_graph(
        model=script(call("run_sql", sql=COUNT), "done"),
        database=database.bound({"region": "south"}),
        results=results,
    ).compile(checkpointer=InMemorySaver())
    conversation = Conversation(graph, "t", context=Context(model_limit=16_000), results=results)
    conversation.ask("how many?")
    assert told(conversation)[0]["rows"] == [[20]]
    assert conversation.result("r1").rows == [(20,)]


def test_filters_without_parameters_need_no_function(place: str) -> None:
    policy = TablePolicy(row_filters={"orders": "total < 10"})
    with open_rows(Path(place.removeprefix("sqlite:///")), policy) as opened:
        graph = build_graph(model=script(call("run_sql", sql=COUNT), "done"), database=opened)
        conversation = Conversation(
            graph.compile(checkpointer=InMemorySaver()), context=Context(model_limit=16_000)
        )
        conversation.ask("how many?")
        assert told(conversation)[0]["rows"] == [[14]]


def test_a_function_that_nothing_asks_is_told(place: str, operator: Operator) -> None:
    model = script("done")
    with pytest.raises(ConfigError, match="row_parameters has no effect"):
        build_graph(model=model, row_parameters=operator)
    with (
        Database.open(place, isolation="none") as plain,
        pytest.raises(ConfigError, match="row_parameters has no effect"),
    ):
        build_graph(model=model, database=plain, row_parameters=operator)
    with Database.open(place, policy=POLICY, isolation="none") as opened:
        with pytest.raises(ConfigError, match="must be a function"):
            build_graph(model=model, database=opened, row_parameters={})  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="bound to row parameters already"):
            build_graph(
                model=model, database=opened.bound({"region": "n"}), row_parameters=operator
            )


def test_a_function_that_fails_fails_no_turn(talk: Talk, operator: Operator) -> None:
    operator.regions["ann"] = ["a", "list"]
    conversation = talk("ann", call("run_sql", sql=COUNT), "done")
    assert conversation.ask("how many?").text == "done"
    assert told(conversation)[0]["error"]["class"] == "row_parameter"
