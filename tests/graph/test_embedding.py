"""The conversation inside other graphs: as a node with its own memory, and as a tool of an
agent.
"""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, tool
from langgraph._internal._constants import CONFIG_KEY_RESUMING
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from longtable.base.errors import (
    MessageTooLongError,
    ProviderUnavailableError,
    ThreadBusyError,
    TooManyMessagesError,
    WrongRoleError,
)
from longtable.base.stored import USAGE
from longtable.graph import (
    CompactionPolicy,
    ConfigError,
    Context,
    Database,
    Limits,
    Persona,
    RequestLimits,
    ResultStore,
    Team,
    Workflow,
    build_graph,
    delete_thread,
    open_persistence,
)
from longtable.graph.embedding import RESUMING, as_agent, as_node, as_tool
from longtable.graph.wiring.build import ConversationGraph
from tests.support.models import ScriptedModel, call, script

CONTEXT = Context(model_limit=8_000)
T: RunnableConfig = {"configurable": {"thread_id": "t"}}
Parent = CompiledStateGraph[Any, Any, Any, Any]


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Form(TypedDict, total=False):
    ask: str
    told: str


def numbered(messages: Sequence[BaseMessage]) -> AIMessage:
    """Answer with the human messages in view."""
    return AIMessage(" ".join(str(m.text) for m in messages if m.type == "human"))


def parent(
    node: Any,
    saver: Any = None,
    *,
    before: Any = None,
    schema: type = Talk,
    store: Any = None,
    **options: Any,
) -> Parent:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema, **options)
    builder.add_node("before", before or (lambda state: {}))
    builder.add_node("analyst", node)
    builder.add_edge(START, "before")
    builder.add_edge("before", "analyst")
    builder.add_edge("analyst", END)
    return builder.compile(checkpointer=saver, store=store)


def say(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text, id=text)]}


def texts(values: Any) -> list[str]:
    return [str(m.text) for m in values["messages"]]


def test_a_node_remembers_turns_under_a_parent_that_has_none_of_its_keys() -> None:
    model = ScriptedModel(say=numbered)
    app = parent(as_node(build_graph(model=model)), InMemorySaver(), context_schema=Context)
    for text in ("a", "b", "c"):
        values = app.invoke(say(text), T, context=CONTEXT)
    assert texts(values) == ["a", "a", "b", "a b", "c", "a b c"]
    assert [len(sent) for sent in model.sent] == [2, 4, 6]  # its own memory, each message once
    other = app.invoke(say("x"), {"configurable": {"thread_id": "other"}}, context=CONTEXT)
    assert texts(other) == ["x", "x"]


def test_a_node_remembers_turns_when_awaited() -> None:
    async def run() -> list[str]:
        app = parent(
            as_node(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT),
            InMemorySaver(),
        )
        for text in ("a", "b"):
            values = await app.ainvoke(say(text), T)
        past = [
            s
            async for s in app.aget_state_history(T)
            if texts(s.values) == ["a", "a"] and not s.next
        ]
        back = await app.ainvoke(say("c"), past[0].config)
        return [texts(values)[-1], texts(back)[-1]]

    assert asyncio.run(run()) == ["a b", "a b c"]


def test_a_parent_that_goes_back_in_time_finds_the_memory_as_it_is() -> None:
    app = parent(
        as_node(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT), InMemorySaver()
    )
    for text in ("a", "b"):
        app.invoke(say(text), T)
    past = next(s for s in app.get_state_history(T) if texts(s.values) == ["a", "a"] and not s.next)
    assert texts(app.invoke(say("c"), past.config)) == ["a", "a", "c", "a b c"]


@pytest.mark.parametrize("question", ["a", "b", "c"])
def test_a_parent_that_runs_the_node_again_gets_the_answer_of_that_question(question: str) -> None:
    model = ScriptedModel(say=numbered)
    app = parent(as_node(build_graph(model=model), context=CONTEXT), InMemorySaver())
    answers = {text: texts(app.invoke(say(text), T))[-1] for text in ("a", "b", "c")}
    past = next(
        s
        for s in app.get_state_history(T)
        if s.next == ("analyst",) and texts(s.values)[-1] == question
    )
    assert texts(app.invoke(None, past.config))[-1] == answers[question]
    assert len(model.sent) == 3


@pytest.mark.parametrize("where", ["before", "model"])
def test_a_parent_that_failed_in_mid_turn_is_resumed_and_the_question_is_answered_once(
    where: str,
) -> None:
    failing: list[str] = []

    def fail(here: str) -> None:
        if failing == [here]:
            failing.clear()
            raise RuntimeError("down")

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        fail("model")
        return numbered(messages)

    node = as_node(build_graph(model=ScriptedModel(say=answer)), context=CONTEXT)

    class Failing:
        def __call__(self, state: Talk) -> Any:
            fail("before")
            return node.invoke(state)

    app = parent(Failing(), InMemorySaver())
    app.invoke(say("a"), T)
    failing.append(where)
    with pytest.raises(RuntimeError):
        app.invoke(say("b"), T)
    assert texts(app.invoke(None, T)) == ["a", "a", "b", "a b"]
    failing.append(where)
    with pytest.raises(RuntimeError):
        app.invoke(say("c"), T)
    # Not resumed, asked on: nothing of what was said is lost.
    assert texts(app.invoke(say("d"), T))[-1] == "a b c d"


def test_langgraphs_key_for_a_resumed_child_is_the_one_that_is_written_here() -> None:
    assert RESUMING == CONFIG_KEY_RESUMING


def test_an_interrupt_of_a_tool_inside_reaches_the_parents_caller_and_its_answer_comes_back() -> (
    None
):
    @tool
    def confirm(what: str) -> str:
        """Ask a person."""
        return str(interrupt({"please": what}))

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        return (
            AIMessage(f"they said {messages[-1].text}")
            if messages[-1].type == "tool"
            else call("confirm", what="this")
        )

    app = parent(
        as_node(build_graph(model=ScriptedModel(say=answer), tools=[confirm]), context=CONTEXT),
        InMemorySaver(),
    )
    asked = app.invoke(say("may I?"), T)
    assert [i.value for i in asked["__interrupt__"]] == [{"please": "this"}]
    assert texts(app.invoke(Command(resume="yes"), T))[-1] == "they said yes"


@pytest.mark.parametrize(
    ("options", "given", "told"),
    [
        ({}, {"ask": "a"}, "'messages' of the parent's state, found ask"),
        ({"messages": "chat"}, {"ask": "a"}, "'chat'"),
    ],
)
def test_a_parent_without_the_keys_gets_a_clear_error(
    options: dict[str, Any], given: dict[str, str], told: str
) -> None:
    app = parent(
        as_node(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT, **options),
        InMemorySaver(),
        schema=Form,
    )
    with pytest.raises(ConfigError, match=told):
        app.invoke(given, T)


def test_text_keys_that_went_are_refused_with_what_to_do_instead() -> None:
    with pytest.raises(TypeError, match="a node of your own"):
        as_node(build_graph(model=ScriptedModel(say=numbered)), question="ask", answer="told")  # type: ignore[arg-type]  # wrong on purpose


def test_what_other_agents_said_is_passed_on_and_their_calls_are_not() -> None:
    model = ScriptedModel(say=numbered)

    def plan(state: Talk) -> Any:
        asked = call("look_up", x=1)
        said = [
            asked,
            ToolMessage("secret", tool_call_id=asked.tool_calls[0]["id"]),
            AIMessage("plan: count", name="planner"),
        ]
        return {"messages": said if len(state["messages"]) == 1 else []}

    app = parent(as_node(build_graph(model=model), context=CONTEXT), InMemorySaver(), before=plan)
    app.invoke(say("how many?"), T)
    assert [(m.type, str(m.text)) for m in model.sent[0][1:]] == [
        ("human", "how many?"),
        ("human", "planner: plan: count"),
    ]
    with pytest.raises(WrongRoleError):  # nobody said anything since
        app.invoke({"messages": []}, T)


def test_two_nodes_in_one_parent_keep_apart_and_hear_each_other() -> None:
    first, second = (
        ScriptedModel(say=numbered),
        ScriptedModel(say=lambda m: AIMessage(str(len(m) - 1))),
    )
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Talk)
    builder.add_node("a", as_node(build_graph(model=first), name="a", context=CONTEXT))
    builder.add_node("b", as_node(build_graph(model=second), name="b", context=CONTEXT))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    app = builder.compile(checkpointer=InMemorySaver())
    for text in ("x", "y"):
        values = app.invoke(say(text), T)
    assert texts(values) == ["x", "x", "2", "y", "x b: 2 y", "5"]
    assert [str(m.text) for m in first.sent[1][1:]] == ["x", "x", "b: 2", "y"]


def echo(name: str) -> ScriptedModel:
    return ScriptedModel(say=lambda messages: AIMessage(f"{name} on {messages[-1].text}"))


def test_two_nodes_side_by_side_hear_each_other_in_the_next_turn() -> None:
    models = {name: echo(name) for name in "ab"}
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Talk)
    for name, model in models.items():
        builder.add_node(name, as_node(build_graph(model=model), name=name, context=CONTEXT))
        builder.add_edge(START, name)
    app = builder.compile(checkpointer=InMemorySaver())
    for text in ("x", "y", "z"):
        app.invoke(say(text), T)
    assert [str(m.text) for m in models["b"].sent[0][1:]] == ["x"]
    assert [str(m.text) for m in models["b"].sent[1][1:]] == ["x", "b on x", "a: a on x", "y"]
    assert [str(m.text) for m in models["a"].sent[2][1:]] == [
        "x",
        "a on x",
        "b: b on x",
        "y",
        "a on y",
        "b: b on y",
        "z",
    ]


def test_words_of_a_colleague_that_are_longer_than_a_message_may_be_keep_their_place() -> None:
    model = ScriptedModel(say=numbered)
    app = parent(
        as_node(build_graph(model=model), context=CONTEXT),
        InMemorySaver(),
        before=lambda state: {"messages": [AIMessage("w " * 4_500)]},
    )
    app.invoke(say("short?"), T)
    assert [str(m.text)[:6] for m in model.sent[0][1:]] == ["short?", "w w w "]


def test_what_a_colleague_says_is_no_rule_of_the_user() -> None:
    def plan(state: Talk) -> Any:
        return {
            "messages": [AIMessage("From now on always exclude cancelled orders.", name="planner")]
        }

    model = ScriptedModel(say=numbered)
    app = parent(
        as_node(build_graph(model=model, summarizer=False), context=CONTEXT),
        InMemorySaver(),
        before=plan,
    )
    app.invoke(say("Always round to euros."), T)
    app.invoke(say("How many?"), T)
    system = str(model.sent[1][0].text)
    assert "Always round to euros." in system
    assert "exclude cancelled" not in system


def test_a_thread_without_a_checkpointer_is_answered_from_the_parents_messages() -> None:
    app = parent(as_node(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT))
    assert texts(app.invoke(say("a"), T))[-1] == "a"


# -- other people's agents -------------------------------------------------------------------------


def lead(*answers: AIMessage | str) -> ScriptedModel:
    """Return the model of a supervisor, whose tools are functions of its own."""
    return Lead(say=script(*answers).say)


class Lead(ScriptedModel):
    """Takes tools of any kind."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self


def shop_agent(tmp_path: Path, sent: list[ScriptedModel]) -> tuple[Any, Database]:
    """Return an agent that counts the orders by SQL, and its database."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1), (2);"
        )

    def count(messages: Sequence[BaseMessage]) -> AIMessage:
        return (
            AIMessage("There are 2 orders.")
            if messages[-1].type == "tool"
            else call("run_sql", sql="SELECT count(*) FROM orders")
        )

    sent.append(ScriptedModel(say=count))
    database = Database.open(f"sqlite:///{tmp_path / 'shop.db'}")
    return (
        as_agent(build_graph(model=sent[0], database=database), name="analyst", context=CONTEXT),
        database,
    )


OF_SUPERVISOR = pytest.mark.filterwarnings(
    "ignore:create_react_agent has been moved:DeprecationWarning"
)
"""langgraph-supervisor 0.0.31 makes its own model's agent in a way that LangGraph has
deprecated.
"""


@OF_SUPERVISOR
@pytest.mark.parametrize("mode", ["full_history", "last_message"])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_supervisor_hands_off_to_it_twice_in_one_turn(
    mode: Any, awaited: bool, tmp_path: Path
) -> None:
    supervisor = pytest.importorskip("langgraph_supervisor")
    hand_off, sent = "transfer_to_analyst", list[ScriptedModel]()
    agent, database = shop_agent(tmp_path, sent)
    with database:
        model = lead(
            call(hand_off, "h1"), call(hand_off, "h2"), "It is 2.", call(hand_off, "h3"), "Still 2."
        )
        app = supervisor.create_supervisor([agent], model=model, output_mode=mode).compile(
            checkpointer=InMemorySaver()
        )
        for text in ("How many orders?", "And now?"):
            run = app.ainvoke(say(text), T) if awaited else None
            values = asyncio.run(run) if run else app.invoke(say(text), T)
    assert texts(values)[-1] == "Still 2."
    assert [m.name for m in values["messages"] if str(m.text) == "There are 2 orders."] == [
        "analyst"
    ] * 3
    questions = [
        [str(m.text) for m in request if m.type == "human"]
        for request in sent[0].sent
        if request[-1].type == "human"
    ]
    assert questions[0] == ["How many orders?"]
    assert questions[1] == ["How many orders?"] * 2
    assert questions[2][-1] == "supervisor: It is 2." or questions[2][-1] == "And now?"


def test_a_swarm_goes_on_with_it(tmp_path: Path) -> None:
    swarm = pytest.importorskip("langgraph_swarm")
    from langchain.agents import create_agent

    sent = list[ScriptedModel]()
    agent, database = shop_agent(tmp_path, sent)
    with database:
        model = lead(call("transfer_to_analyst", "h1"))
        host = create_agent(
            model, tools=[swarm.create_handoff_tool(agent_name="analyst")], name="host"
        )
        app = swarm.create_swarm([host, agent], default_active_agent="host").compile(
            checkpointer=InMemorySaver()
        )
        first = app.invoke(say("How many orders?"), T)
        second = app.invoke(say("And now?"), T)
    assert texts(first)[-1] == "There are 2 orders."
    assert second["active_agent"] == "analyst"
    assert [str(m.text) for m in sent[0].sent[-2] if m.type == "human"] == [
        "How many orders?",
        "And now?",
    ]


def parent_of(agents: Sequence[Any], saver: Any, *calls: str) -> Any:
    """Return a parent whose tools are these agents, in one turn called as `calls` say, all at once;
    deepagents works so.
    """
    from langchain.agents import create_agent

    def tool_of(agent: Any) -> Any:
        def ask(question: str) -> str:
            """Ask an agent."""
            return str(agent.invoke(say(question))["messages"][-1].text)

        return StructuredTool.from_function(ask, name=agent.name)

    def decide(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage("done")
        asked = [
            {
                "name": name,
                "args": {"question": f"{name} {messages[-1].text}"},
                "id": f"{messages[-1].text} {i}",
            }
            for i, name in enumerate(calls)
        ]
        return AIMessage("", tool_calls=asked)

    return create_agent(
        ScriptedModel(say=decide), tools=[*map(tool_of, agents)], checkpointer=saver
    )


def hearing(name: str) -> Any:
    """Return an agent that says which questions it has heard, after a while."""

    def heard(messages: Sequence[BaseMessage]) -> AIMessage:
        time.sleep(0.1)
        return AIMessage(" / ".join(str(m.text) for m in messages if m.type == "human"))

    return as_agent(build_graph(model=ScriptedModel(say=heard)), name=name, context=CONTEXT)


def test_two_agents_that_one_parents_tools_call_at_once_have_memories_of_their_own(
    tmp_path: Path,
) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        app = parent_of([hearing("ann"), hearing("bob")], kept.checkpointer, "ann", "bob")
        values = [app.invoke(say(text), T) for text in ("one", "two")][-1]
    assert [m.text for m in values["messages"] if m.type == "tool"] == [
        "ann one",
        "bob one",
        "ann one / ann two",
        "bob one / bob two",
    ]


def test_of_two_calls_of_one_agent_at_once_one_is_told_that_the_thread_is_busy(
    tmp_path: Path,
) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        app = parent_of([hearing("ann")], kept.checkpointer, "ann", "ann")
        with pytest.raises(ThreadBusyError):
            app.invoke(say("one"), T)


@OF_SUPERVISOR
def test_an_approval_passes_through_an_agents_supervisor(tmp_path: Path) -> None:
    supervisor = pytest.importorskip("langgraph_supervisor")
    sent = list[ScriptedModel]()
    _, database = shop_agent(tmp_path, sent)
    with database:
        agent = as_agent(
            build_graph(model=sent[0], database=database),
            name="analyst",
            context=CONTEXT.replace(approve_sql="always"),
        )
        model = lead(call("transfer_to_analyst", "h1"), "It is 2.")
        app = supervisor.create_supervisor([agent], model=model).compile(
            checkpointer=InMemorySaver()
        )
        waiting = app.invoke(say("How many orders?"), T)
        assert waiting["__interrupt__"][0].value["action_requests"][0]["name"] == "run_sql"
        done = app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), T)
    assert texts(done)[-1] == "It is 2."
    assert "There are 2 orders." in texts(done)


def test_a_deep_agent_takes_it_as_a_sub_agent(tmp_path: Path) -> None:
    deepagents = pytest.importorskip("deepagents")
    agent, database = shop_agent(tmp_path, [])
    with database:
        helper = {"name": "analyst", "description": "Knows the orders.", "runnable": agent}
        model = lead(
            call("task", "t1", description="How many orders?", subagent_type="analyst"), "It is 2."
        )
        app = deepagents.create_deep_agent(model=model, subagents=[helper])
        assert texts(app.invoke(say("How many orders?")))[-2:] == [
            "There are 2 orders.",
            "It is 2.",
        ]


def test_an_agent_without_a_checkpointer_answers_from_the_parents_messages(tmp_path: Path) -> None:
    agent, database = shop_agent(tmp_path, [])
    with database:
        assert texts(agent.invoke(say("How many orders?")))[-1] == "There are 2 orders."


@pytest.mark.parametrize(
    ("question", "told"),
    [("  ", "The message is empty"), ("down?", "The model's provider is not reachable")],
)
def test_a_tool_answers_bad_input_and_a_providers_error_as_a_message(
    question: str, told: str
) -> None:
    def fail(_: Sequence[BaseMessage]) -> AIMessage:
        raise ProviderUnavailableError("connection refused")

    asks = as_tool(
        build_graph(model=ScriptedModel(say=fail)), context=CONTEXT.replace(max_retries=0)
    )
    answer = asks.invoke(
        {"name": "ask_data", "args": {"question": question}, "id": "1", "type": "tool_call"}
    )
    assert answer.status == "error"
    assert told in answer.content


@pytest.mark.parametrize(
    ("task", "sentence"), [("  ", "The message is empty"), ("x" * 8_001, "8,000")]
)
def test_an_agent_answers_a_task_that_it_cannot_take_with_a_sentence(
    task: str, sentence: str
) -> None:
    app = parent(hearing("ann"), InMemorySaver())
    assert sentence in texts(app.invoke(say(task), T))[-1]
    assert texts(app.invoke(say("two"), T))[-1] == "two"


def team_graph() -> ConversationGraph:
    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        name = messages[0].text.partition("You are ")[2].partition(".")[0]
        heard = [str(m.text).partition("\n")[0] for m in messages if m.type == "human"]
        return AIMessage(f"{name} heard {' / '.join(heard)}")

    team = Team(Persona("ann"), Persona("bob"), mode=Workflow("ann", "bob"))
    return build_graph(model=ScriptedModel(say=answer), team=team)


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["without memory", "with memory"])
def test_a_node_gives_its_parent_every_voice_of_a_team(saver: Any) -> None:
    app = parent(as_node(team_graph(), context=CONTEXT), saver)
    first = app.invoke(say("one"), T)
    assert texts(first) == ["one", "Ann heard one", "Bob heard one / Ann: Ann heard one"]
    assert [m.name for m in first["messages"]] == [None, "Ann", "Bob"]
    if saver is not None:
        second = app.invoke(say("two"), T)
        assert [m.name for m in second["messages"]][3:] == [None, "Ann", "Bob"]
        heard = str(second["messages"][-2].text)
        assert heard == "Ann heard one / Bob: Bob heard one / Ann: Ann heard one / two"


def test_a_tool_gives_its_agent_every_voice_of_a_team() -> None:
    asks = as_tool(team_graph(), context=CONTEXT)
    assert asks.invoke({"question": "one"}).split("\n\n") == [
        "Ann: Ann heard one",
        "Bob: Bob heard one / Ann: Ann heard one",
    ]


def test_a_tool_raises_what_is_a_bug() -> None:
    def fail(_: Sequence[BaseMessage]) -> AIMessage:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        as_tool(build_graph(model=ScriptedModel(say=fail)), context=CONTEXT).invoke(
            {"question": "now?"}
        )


def test_without_a_checkpointer_a_node_reads_the_parents_messages() -> None:
    app = parent(as_node(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT))
    values = app.invoke(say("a"))
    assert texts(app.invoke({"messages": [*values["messages"], HumanMessage("b")]}))[-1] == "a b"
    many = [message for n in range(40) for message in (HumanMessage(f"{n}"), AIMessage("yes"))]
    # More than one request may hold.
    assert texts(app.invoke({"messages": [*many, HumanMessage("last")]}))[-1].endswith("38 39 last")


def test_a_question_that_was_refused_stays_in_the_parent_and_stands_in_no_later_ones_way() -> None:
    app = parent(
        as_node(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT), InMemorySaver()
    )
    with pytest.raises(MessageTooLongError):
        app.invoke(say("x" * 8_001), T)
    assert texts(app.invoke(say("short"), T))[-1] == "short"


@dataclass(frozen=True)
class Theirs:
    model_limit: int = 8_000
    tenant: str = "x"


def test_the_parents_context_gives_the_fields_it_has() -> None:
    app = parent(
        as_node(build_graph(model=ScriptedModel(say=numbered))),
        InMemorySaver(),
        context_schema=Theirs,
    )
    assert texts(app.invoke(say("a"), T, context=Theirs())) == ["a", "a"]
    made = as_node(
        build_graph(model=ScriptedModel(say=numbered)),
        context=lambda theirs: Context(model_limit=theirs.model_limit),
    )
    assert (
        texts(
            parent(made, InMemorySaver(), context_schema=Theirs).invoke(
                say("a"), T, context=Theirs()
            )
        )[-1]
        == "a"
    )


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
def test_a_node_takes_more_messages_of_its_parent_than_a_client_may_send(saver: Any) -> None:
    graph = build_graph(
        model=ScriptedModel(say=numbered), limits=Limits(request=RequestLimits(messages=3))
    )
    many: list[AnyMessage] = [HumanMessage(str(n), id=str(n)) for n in range(5)]
    assert (
        texts(
            parent(as_node(graph, context=CONTEXT), saver).invoke(
                {"messages": many}, T if saver else None
            )
        )[-1]
        == "0 1 2 3 4"
    )
    with pytest.raises(TooManyMessagesError):
        graph.compile().invoke({"messages": many}, context=CONTEXT)


def test_an_embedded_thread_compacts_and_retires_in_the_parents_store_and_is_not_listed(
    tmp_path: Path,
) -> None:
    policy = CompactionPolicy(retire_after=12, keep_rounds=2, min_messages=4)
    model = ScriptedModel(say=lambda messages: AIMessage("so it is"))
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        node = as_node(build_graph(model=model, policy=policy), context=Context(model_limit=2_500))
        app = parent(node, kept.checkpointer, store=kept.store)
        told = [app.invoke(say(f"question {n}" + " w" * 60), T) for n in range(40)]
        assert len(told[-1]["messages"]) == 80
        assert max(len(sent) for sent in model.sent) < 38
        spaces = kept.store.list_namespaces(prefix=("longtable",))
        assert ("longtable", "archive", "t", "analyst") in spaces
        assert ("longtable", "threads") not in spaces
        delete_thread(kept, "t")
        assert kept.store.list_namespaces(prefix=("longtable",)) == [USAGE]  # what it took stays


def test_deleting_a_parents_thread_takes_the_results_of_its_nodes_along(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        return (
            AIMessage("done")
            if messages[-1].type == "tool"
            else call("run_sql", sql="SELECT count(*) FROM orders")
        )

    results = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
    with (
        open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept,
        Database.open(f"sqlite:///{tmp_path}/shop.db") as database,
    ):
        node = as_node(
            build_graph(model=ScriptedModel(say=answer), database=database, results=results),
            context=CONTEXT,
        )
        parent(node, kept.checkpointer, store=kept.store).invoke(say("how many?"), T)
        assert len(list((tmp_path / "results").rglob("*.parquet"))) == 1
        delete_thread(kept, "t", results=results)
        assert not list((tmp_path / "results").rglob("*.parquet"))
        assert kept.store.list_namespaces(prefix=("longtable",)) == [USAGE]  # what it took stays


def test_a_tool_answers_an_agents_parallel_calls_each_for_itself() -> None:
    asks = as_tool(build_graph(model=ScriptedModel(say=numbered)), context=CONTEXT)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Talk)
    builder.add_node(
        "agent",
        lambda state: {"messages": [AIMessage("", tool_calls=[_ask("a", "1"), _ask("b", "2")])]},
    )
    builder.add_node("tools", ToolNode([asks]))
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "tools")
    app = builder.compile(checkpointer=InMemorySaver())
    assert texts(app.invoke(say("go"), T))[-2:] == ["a", "b"]
    assert texts(asyncio.run(app.ainvoke(say("on"), T)))[-2:] == ["a", "b"]
    assert asks.invoke({"question": "alone"}) == "alone"
    with pytest.raises(ConfigError, match=r"Context\.model_limit"):
        # By itself there is no parent whose settings it could take.
        as_tool(build_graph(model=ScriptedModel(say=numbered))).invoke({"question": "alone"})


def _ask(question: str, call_id: str) -> Any:
    return {"name": "ask_data", "args": {"question": question}, "id": call_id, "type": "tool_call"}
