"""The saver guard: of two runs at once one wins, the other is told, and deliberate forks go
through.
"""

import asyncio
import operator
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    empty_checkpoint,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import _CHANNEL_BRANCH_TO
from typing_extensions import TypedDict

from longtable.base.errors import LongtableError, PersistenceError, ThreadBusyError
from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.graph.thread_state import Graph
from longtable.nodes.state import Input
from longtable.store.saver_guard import MARK, QUICK, TOGETHER, GuardedSaver
from tests.support.models import ScriptedModel, script

CONTEXT = Context(model_limit=8_000)
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
Durability = Literal["sync", "async", "exit"]
Outcome = Literal["done"] | bool | None
TIMES: dict[Outcome, set[int]] = {"done": {1}, True: {1}, False: {0}, None: {0, 1}}
"""How often a message is in the thread: of a run that finished, and by what
`ThreadBusyError.stored` says of one that did not.
"""


def said(text: str) -> Input:
    return Input(messages=[HumanMessage(text)])


def echo(messages: Any) -> AIMessage:
    return AIMessage(f"answer to {next(m.text for m in reversed(messages) if m.type == 'human')}")


def graph_over(saver: BaseCheckpointSaver[Any], say: Callable[[Any], AIMessage] = echo) -> Graph:
    return build_graph(model=ScriptedModel(say=say)).compile(checkpointer=saver)


def texts(graph: Graph) -> list[str]:
    return [str(m.text) for m in graph.get_state(CONFIG).values.get("messages", [])]


@contextmanager
def savers(
    kind: str,
    folder: Path,
    inner: tuple[type[InMemorySaver], type[SqliteSaver]] = (InMemorySaver, SqliteSaver),
) -> Iterator[GuardedSaver]:
    if kind == "memory":
        yield GuardedSaver(inner[0]())
        return
    connection = sqlite3.connect(folder / "chat.db", check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    try:
        yield GuardedSaver(inner[1](connection))
    finally:
        connection.close()


class Together:
    """Holds back whoever loads a checkpoint until all have."""

    barrier: threading.Barrier | None = None

    def meet(self) -> None:
        if self.barrier is not None:
            self.barrier.wait(20)


MEETING = Together()


class MeetingMemory(InMemorySaver):
    def get_tuple(self, config: RunnableConfig) -> Any:
        found = super().get_tuple(config)
        MEETING.meet()
        return found


class MeetingSqlite(SqliteSaver):
    def get_tuple(self, config: RunnableConfig) -> Any:
        found = super().get_tuple(config)
        MEETING.meet()
        return found


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("turns_before", [0, 2])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_of_runs_that_load_the_same_checkpoint_one_wins_and_the_others_write_nothing(
    kind: str, turns_before: int, durability: Durability, tmp_path: Path
) -> None:
    with savers(kind, tmp_path, (MeetingMemory, MeetingSqlite)) as saver:
        graph = graph_over(saver)
        for n in range(turns_before):
            graph.invoke(said(f"before {n}"), CONFIG, context=CONTEXT)
        before = texts(graph)

        def run(text: str) -> str | None:
            try:
                graph.invoke(said(text), CONFIG, context=CONTEXT, durability=durability)
            except ThreadBusyError as error:
                return None if error.stored is False else "not refused as a whole"
            return text

        MEETING.barrier = threading.Barrier(3)
        try:
            with ThreadPoolExecutor(3) as pool:
                won = [text for text in pool.map(run, ["a", "b", "c"]) if text]
        finally:
            MEETING.barrier = None
        assert len(won) == 1
        assert texts(graph) == [*before, won[0], f"answer to {won[0]}"]
        graph.invoke(said("after"), CONFIG, context=CONTEXT)
        assert texts(graph) == [*before, won[0], f"answer to {won[0]}", "after", "answer to after"]
        assert texts(graph_over(saver)) == texts(graph)


def test_a_plain_saver_loses_a_turn_where_the_guard_does_not() -> None:
    """The fault the guard is there for; when this fails, LangGraph has mended it."""
    graph = graph_over(MeetingMemory())
    graph.invoke(said("before"), CONFIG, context=CONTEXT)
    MEETING.barrier = threading.Barrier(2)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(
                pool.map(lambda text: graph.invoke(said(text), CONFIG, context=CONTEXT), ["a", "b"])
            )
    finally:
        MEETING.barrier = None
    assert not {"a", "b"} <= set(texts(graph))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_every_message_of_a_run_that_finished_is_there_once(
    kind: str, durability: Durability, tmp_path: Path
) -> None:
    with savers(kind, tmp_path) as saver:
        graph = graph_over(saver)

        def run(text: str) -> tuple[str, Outcome]:
            try:
                graph.invoke(said(text), CONFIG, context=CONTEXT, durability=durability)
            except ThreadBusyError as error:
                return text, error.stored
            return text, "done"

        with ThreadPoolExecutor(4) as pool:
            told = dict(pool.map(run, [f"m{n}" for n in range(40)]))
        kept = texts(graph)
        for text, outcome in told.items():
            assert kept.count(text) in TIMES[outcome], (text, outcome)
            assert kept.count(f"answer to {text}") >= (outcome == "done"), (text, outcome)
        assert set(told.values()) != {"done"}


def test_a_run_that_another_overtook_is_told_that_its_message_stays(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        slow = graph.stream(
            said("slow"), CONFIG, context=CONTEXT, stream_mode="updates", durability="sync"
        )
        assert "ingest" in next(slow)
        graph.invoke(said("quick"), CONFIG, context=CONTEXT)
        with pytest.raises(ThreadBusyError) as caught:
            list(slow)
        assert caught.value.stored
        assert texts(graph) == ["slow", "quick", "answer to quick"]
        for language in ("en", "zh"):
            assert (
                len(
                    {
                        ThreadBusyError("t", stored=stored).user_text(language)
                        for stored in (True, False, None)
                    }
                )
                == 3
            )


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_of_two_that_resume_the_same_turn_one_answers(kind: str, tmp_path: Path) -> None:
    meet = threading.Barrier(2)

    def say(messages: Any) -> AIMessage:
        return AIMessage(f"answer {meet.wait(20)}")

    with savers(kind, tmp_path) as saver:
        graph = graph_over(saver, say)
        graph.invoke(said("question"), CONFIG, context=CONTEXT, interrupt_before=["respond"])

        def resume(_: int) -> str | None:
            try:
                return str(
                    graph.invoke(None, CONFIG, context=CONTEXT, durability="sync")["messages"][
                        -1
                    ].text
                )
            except ThreadBusyError:
                return None

        with ThreadPoolExecutor(2) as pool:
            answers = [answer for answer in pool.map(resume, range(2)) if answer]
        assert len(answers) == 1
        assert texts(graph) == ["question", answers[0]]
        assert texts(graph_over(saver)) == ["question", answers[0]]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_forks_are_let_through(kind: str, tmp_path: Path) -> None:
    with savers(kind, tmp_path) as saver:
        graph = graph_over(saver)
        for text in ("one", "two"):
            graph.invoke(said(text), CONFIG, context=CONTEXT)
        whole = texts(graph)
        rest = next(
            state
            for state in graph.get_state_history(CONFIG)
            if not state.next and len(state.values["messages"]) == 2
        )

        out = graph.invoke(said("other two"), rest.config, context=CONTEXT)
        assert [m.text for m in out["messages"]] == [*whole[:2], "other two", "answer to other two"]
        assert texts(graph) == [*whole[:2], "other two", "answer to other two"]

        before_answer = next(
            state for state in graph.get_state_history(CONFIG) if state.next == ("respond",)
        )
        again = graph.invoke(None, before_answer.config, context=CONTEXT)
        assert [m.text for m in again["messages"]] == [
            *whole[:2],
            "other two",
            "answer to other two",
        ]

        forked = graph.update_state(
            rest.config, {"messages": [HumanMessage("by hand", id="h")]}, as_node="settle"
        )
        assert [m.text for m in graph.get_state(forked).values["messages"]] == [
            *whole[:2],
            "by hand",
        ]
        graph.update_state(
            CONFIG, {"messages": [HumanMessage("and more", id="i")]}, as_node="settle"
        )
        assert texts(graph) == [*whole[:2], "by hand", "and more"]
        graph.invoke(said("goes on"), CONFIG, context=CONTEXT)
        assert texts(graph)[-2:] == ["goes on", "answer to goes on"]


def test_a_fork_is_guarded_from_its_own_first_checkpoint_on(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        head = graph.get_state(CONFIG).config
        graph.invoke(said("two"), CONFIG, context=CONTEXT)
        fork = graph.stream(
            said("fork"), head, context=CONTEXT, stream_mode="updates", durability="sync"
        )
        next(fork)
        graph.invoke(said("on top"), CONFIG, context=CONTEXT)
        with pytest.raises(ThreadBusyError):
            list(fork)
        assert texts(graph) == ["one", "answer to one", "fork", "on top", "answer to on top"]


def test_a_run_that_died_is_followed_by_another_at_once(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        died = graph.stream(
            said("died"), CONFIG, context=CONTEXT, stream_mode="updates", durability="sync"
        )
        next(died)
        del died
        graph.invoke(None, CONFIG, context=CONTEXT)
        assert texts(graph) == ["died", "answer to died"]


def test_a_clock_that_was_set_back_loses_no_turn_in_silence(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        found = saver.get_tuple(CONFIG)
        assert found is not None
        saver.put(
            found.config,
            {**found.checkpoint, "id": "ffffffff-0000-6000-8000-000000000000"},
            found.metadata,
            {},
        )
        with pytest.raises(PersistenceError, match="clock"):
            graph.invoke(said("two"), CONFIG, context=CONTEXT)
        assert issubclass(PersistenceError, LongtableError)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_turns_go_on_in_order_after_the_clock_was_set_back_by_an_hour(
    durability: Durability, tmp_path: Path
) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        found = saver.get_tuple(CONFIG)
        assert found is not None
        later = uuid6().int + (3_600 * 10**7 >> 12 << 80)
        saver.put(
            found.config, {**found.checkpoint, "id": str(UUID(int=later))}, found.metadata, {}
        )
        for text in ("two", "three"):
            graph.invoke(said(text), CONFIG, context=CONTEXT, durability=durability)
        graph.invoke(
            said("four"),
            CONFIG,
            context=CONTEXT,
            durability=durability,
            interrupt_before=["respond"],
        )
        graph.invoke(None, CONFIG, context=CONTEXT, durability=durability)
        graph.update_state(
            CONFIG, {"messages": [HumanMessage("by hand", id="h")]}, as_node="settle"
        )
        assert texts(graph) == [
            text for n in ("one", "two", "three", "four") for text in (n, f"answer to {n}")
        ] + ["by hand"]
        history = list(graph.get_state_history(CONFIG))
        assert [state.parent_config for state in history[:-1]] == [
            state.config for state in history[1:]
        ]


def test_the_mark_stays_out_of_what_is_stored(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        graph.invoke(said("two"), CONFIG, context=CONTEXT)
        assert CONFIG == {"configurable": {"thread_id": "t"}}
        for found in saver.list(CONFIG):
            assert not {key for key in found.metadata if key.startswith("__")}
            assert MARK not in found.config.get("configurable", {})


def test_a_deleted_thread_begins_anew(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        graph = graph_over(saver)
        graph.invoke(said("one"), CONFIG, context=CONTEXT)
        saver.delete_thread("t")
        assert saver.heads.writer(("t", "")) is None
        graph.invoke(said("new"), CONFIG, context=CONTEXT)
        assert texts(graph) == ["new", "answer to new"]


def test_async_runs_and_a_sync_one_from_a_thread_share_the_guard(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
            graph = graph_over(kept.checkpointer)
            await graph.ainvoke(said("before"), CONFIG, context=CONTEXT)

            async def one(text: str) -> tuple[str, Outcome]:
                try:
                    await graph.ainvoke(said(text), CONFIG, context=CONTEXT, durability="sync")
                except ThreadBusyError as error:
                    return text, error.stored
                return text, "done"

            def other(text: str) -> tuple[str, Outcome]:
                try:
                    graph.invoke(said(text), CONFIG, context=CONTEXT, durability="sync")
                except ThreadBusyError as error:
                    return text, error.stored
                return text, "done"

            told = dict(
                await asyncio.gather(
                    *(one(f"a{n}") for n in range(8)),
                    *(asyncio.to_thread(other, f"s{n}") for n in range(4)),
                )
            )
            kept_texts = [m.text for m in (await graph.aget_state(CONFIG)).values["messages"]]
            for text, outcome in told.items():
                assert kept_texts.count(text) in TIMES[outcome], (text, outcome)
            assert "done" in told.values()
            assert kept.checkpointer.get_tuple(CONFIG) is not None
            await kept.checkpointer.adelete_thread("t")
            assert await kept.checkpointer.aget_tuple(CONFIG) is None

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_it_conforms_to_what_langgraph_expects_of_a_saver(kind: str, tmp_path: Path) -> None:
    @checkpointer_test(name=kind)
    async def make() -> Any:
        with TemporaryDirectory(dir=tmp_path) as folder, savers(kind, Path(folder)) as saver:
            yield saver

    base = {"put", "put_writes", "get_tuple", "list", "delete_thread"}
    report = asyncio.run(validate(make, capabilities=base))
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert {name for name, result in report.results.items() if result.passed} == base


class Notes(TypedDict):
    notes: Annotated[list[str], operator.add]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_nodes_of_one_run_that_write_at_once_do_not_get_in_each_others_way(
    kind: str, tmp_path: Path
) -> None:
    graph = StateGraph(Notes)
    names = [f"node{n}" for n in range(8)]
    for name in names:
        graph.add_node(name, lambda state: {"notes": ["note"]})
        graph.add_edge(START, name)
    with savers(kind, tmp_path) as saver:
        compiled = graph.compile(checkpointer=saver)
        for turn in range(1, 6):
            assert len(compiled.invoke({"notes": ["go"]}, CONFIG)["notes"]) == 9 * turn


class Overtaken(GuardedSaver):
    """Lets another run go through right before this saver's write of a number."""

    def __init__(
        self, inner: BaseCheckpointSaver[Any], number: int, other: Callable[[], None]
    ) -> None:
        super().__init__(inner)
        self.number, self.other = number, other

    def _come_between(self) -> None:
        self.number -= 1
        if not self.number:
            self.other()

    def put(
        self, config: RunnableConfig, checkpoint: Any, metadata: Any, new_versions: Any
    ) -> RunnableConfig:
        self._come_between()
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        self._come_between()
        super().put_writes(config, writes, task_id, task_path)


@pytest.mark.parametrize("begun", [False, True], ids=["first turn", "later turn"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_who_is_overtaken_at_the_end_of_a_run_is_told_the_truth(
    number: int, *, begun: bool
) -> None:
    inner = InMemorySaver()

    def other() -> None:
        with suppress(ThreadBusyError):
            # What the run under test writes beside this write may be quicker.
            graph_over(saver).invoke(said("other"), CONFIG, context=CONTEXT, durability="sync")

    saver = Overtaken(inner, number if not begun else 0, other)
    graph, outcome = graph_over(saver), cast("Outcome", "done")
    if begun:
        graph.invoke(said("before"), CONFIG, context=CONTEXT)
        saver.number = number
    try:
        graph.invoke(said("mine"), CONFIG, context=CONTEXT, durability="exit")
    except ThreadBusyError as error:
        outcome = error.stored
    kept = texts(graph)
    assert kept.count("mine") in TIMES[outcome], (outcome, kept)


def test_a_run_that_lost_at_its_input_calls_no_model() -> None:
    saver = GuardedSaver(MeetingMemory())
    model = script("fine")
    graph = build_graph(model=model).compile(checkpointer=saver)
    graph.invoke(said("before"), CONFIG, context=CONTEXT)
    asked = len(model.sent)
    MEETING.barrier = threading.Barrier(2)

    def run(text: str) -> bool:
        try:
            graph.invoke(said(text), CONFIG, context=CONTEXT, durability="sync")
        except ThreadBusyError:
            return False
        return True

    try:
        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(run, ["a", "b"])) == [False, True]
    finally:
        MEETING.barrier = None
    assert len(model.sent) == asked + 1


# -- what is stored together with the next checkpoint ----------------------------------------------


def run_of(saver: GuardedSaver) -> RunnableConfig:
    """Store a first checkpoint, and return the config of a run whose tasks' writes may wait for
    the checkpoint that follows.
    """
    first: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    saver.put(first, empty_checkpoint(), {"source": "input", "step": -1, "parents": {}}, {})
    loaded = saver.get_tuple(first)
    assert loaded is not None
    return {"configurable": {**loaded.config["configurable"], TOGETHER: True}}


def writes_in(saver: GuardedSaver) -> list[tuple[str, Any]]:
    loaded = saver.inner.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    assert loaded is not None
    return [(channel, value) for _, channel, value in loaded.pending_writes or []]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_writes_of_a_task_are_stored_with_the_checkpoint_that_follows(
    kind: str, tmp_path: Path
) -> None:
    with savers(kind, tmp_path) as saver:
        config = run_of(saver)
        saver.put_writes(config, [("messages", "hi")], "task")
        assert writes_in(saver) == []
        parent = config["configurable"]["checkpoint_id"]
        following = {**empty_checkpoint(), "id": str(uuid6(clock_seq=1))}
        saver.put(config, cast("Any", following), {"source": "loop", "step": 0, "parents": {}}, {})
        at_parent: RunnableConfig = {
            "configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": parent}
        }
        stored = saver.inner.get_tuple(at_parent)
        assert stored is not None
        assert stored.pending_writes == [("task", "messages", "hi")]
        assert writes_in(saver) == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_how_a_task_stopped_is_stored_at_once_with_what_waited(kind: str, tmp_path: Path) -> None:
    with savers(kind, tmp_path) as saver:
        config = run_of(saver)
        saver.put_writes(config, [("messages", "hi")], "one")
        saver.put_writes(config, [("__interrupt__", "sure?")], "two")
        assert sorted(writes_in(saver)) == [("__interrupt__", "sure?"), ("messages", "hi")]


@pytest.mark.parametrize("node", ["respond", "run_tools", "compact"])
def test_what_a_model_or_a_tool_gave_does_not_wait(node: str, tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        config = run_of(saver)
        saver.put_writes(config, [("messages", "hi")], "task", f"~__pregel_pull, {node}")
        assert writes_in(saver) == [("messages", "hi")]


def follow(
    saver: GuardedSaver, config: RunnableConfig, *, starts: str, source: str = "loop"
) -> RunnableConfig:
    """Store a checkpoint that starts a node, as a run does. Return the config of the next one."""
    following: Any = {**empty_checkpoint(), "id": str(uuid6()), "updated_channels": [starts]}
    metadata: Any = {"source": source, "step": 0, "parents": {}}
    stored = saver.put(config, following, metadata, {})
    return {"configurable": {**config["configurable"], **stored["configurable"]}}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_checkpoint_that_starts_a_quick_node_is_stored_with_the_next(
    kind: str, tmp_path: Path
) -> None:
    with savers(kind, tmp_path) as saver:
        config = run_of(saver)
        loaded = [config["configurable"]["checkpoint_id"]]
        config = follow(saver, config, starts="branch:to:ingest")
        assert [*saver.checkpoint_ids("t")] == loaded
        saver.put_writes(config, [("messages", "hi")], "task")
        waiting = config["configurable"]["checkpoint_id"]
        config = follow(saver, config, starts="branch:to:respond")
        newest = config["configurable"]["checkpoint_id"]
        assert [*saver.checkpoint_ids("t")] == [newest, waiting, *loaded]
        chain = [*saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})]
        assert chain[0].parent_config == chain[1].config
        assert chain[1].pending_writes == [("task", "messages", "hi")]


@pytest.mark.parametrize(
    ("starts", "source"),
    [
        ("branch:to:respond", "loop"),
        ("branch:to:run_tools", "loop"),
        ("branch:to:settle", "loop"),
        ("branch:to:prepare", "loop"),
        ("turn", "loop"),
        ("__pregel_tasks", "loop"),
        ("branch:to:ingest", "input"),
    ],
)
def test_other_checkpoints_do_not_wait(starts: str, source: str, tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        config = follow(saver, run_of(saver), starts=starts, source=source)
        assert saver.checkpoint_ids("t")[0] == config["configurable"]["checkpoint_id"]


def test_a_run_that_was_overtaken_stores_no_checkpoint_that_waited(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        config = follow(saver, run_of(saver), starts="branch:to:ingest")
        other = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
        assert other is not None
        theirs = follow(saver, other.config, starts="branch:to:respond")
        with pytest.raises(ThreadBusyError):
            follow(saver, config, starts="turn")
        assert saver.checkpoint_ids("t")[0] == theirs["configurable"]["checkpoint_id"]
        assert len(saver.checkpoint_ids("t")) == 2


@pytest.mark.parametrize("node", ["ingest", "settle"])
def test_a_graph_that_stops_before_a_node_has_stored_what_came_before(
    node: str, tmp_path: Path
) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        graph = build_graph(model=script("one")).compile(
            checkpointer=kept.checkpointer, store=kept.store, interrupt_before=[node]
        )
        talk = Conversation(graph, "t", context=CONTEXT)
        with suppress(LongtableError):
            talk.ask("first")
        assert graph.get_state(talk.config).next == (node,)


class CutSaver(GuardedSaver):
    """Ends the program as a kill would while a checkpoint is to be stored."""

    before = ""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        if self.before and self.before in (checkpoint.get("updated_channels") or ()):
            self.before = ""
            raise KeyboardInterrupt
        return super().put(config, checkpoint, metadata, new_versions)


@pytest.mark.parametrize("before", ["branch:to:respond", "branch:to:settle", "turn"])
def test_a_turn_that_is_cut_off_while_a_checkpoint_waits_loses_no_message(
    before: str, tmp_path: Path
) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        assert isinstance(kept.checkpointer, GuardedSaver)
        saver = CutSaver(kept.checkpointer.inner, locks=kept.checkpointer.locks)
        model = script("one", "two", "three")
        graph = build_graph(model=model).compile(checkpointer=saver, store=kept.store)
        talk = Conversation(graph, "t", context=CONTEXT)
        talk.ask("first")
        saver.before = before
        with pytest.raises(KeyboardInterrupt):
            talk.ask("second")
        asked = len(model.sent)
        talk.ask("third")
        texts = [message.text for message in talk.history()]
        answers = [text for text in texts if text in ("one", "two", "three")]
        assert [text for text in texts if text not in answers] == ["first", "second", "third"]
        assert len(answers) == asked + 1


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_that_was_overtaken_stores_nothing_that_waited(kind: str, tmp_path: Path) -> None:
    with savers(kind, tmp_path) as saver:
        config = run_of(saver)
        saver.put_writes(config, [("messages", "mine")], "task")
        other = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
        assert other is not None
        saver.put_writes(other.config, [("messages", "theirs")], "task of another")
        with pytest.raises(ThreadBusyError):
            saver.put(config, empty_checkpoint(), {"source": "loop", "step": 0, "parents": {}}, {})
        assert writes_in(saver) == [("messages", "theirs")]


def test_the_writes_of_a_run_that_does_not_ask_for_it_are_stored_before(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        config = run_of(saver)
        plain = {name: each for name, each in config["configurable"].items() if name != TOGETHER}
        saver.put_writes({"configurable": plain}, [("messages", "hi")], "task")
        assert writes_in(saver) == [("messages", "hi")]


def test_a_turn_that_is_asked_has_fewer_transactions_and_the_same_rows(tmp_path: Path) -> None:
    rows = {}
    for name in ("asked", "streamed"):
        with open_persistence(f"sqlite:///{tmp_path}/{name}.db") as kept:
            graph = build_graph(model=script("one", "two")).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )
            talk = Conversation(graph, "t", context=CONTEXT)
            for text in ("first", "second"):
                assert [*talk.stream(text)] if name == "streamed" else talk.ask(text)
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as connection:
            (claims,) = connection.execute("SELECT writer FROM longtable_writers").fetchone()
            counted = "SELECT channel, count(*) FROM writes GROUP BY channel ORDER BY channel"
            writes = connection.execute(counted).fetchall()
            (checkpoints,) = connection.execute("SELECT count(*) FROM checkpoints").fetchone()
            rows[name] = (writes, checkpoints, int(claims.split(":")[1]))
    assert rows["asked"][:2] == rows["streamed"][:2]
    assert (rows["asked"][2], rows["streamed"][2]) == (5, 9)


# -- a task that is cancelled after its values and before its edge ---------------------------------


class Steps(TypedDict):
    done: Annotated[list[str], operator.add]


def steps_graph(saver: GuardedSaver, choose: Callable[[Steps], Any]) -> Any:
    """Return a graph of two nodes, whose edge from the first to the second is a choice."""
    builder = StateGraph(Steps)
    builder.add_node("first", lambda state: {"done": ["first"]})
    builder.add_node("second", lambda state: {"done": ["second"]})
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", choose, ["second"])
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_node_that_is_cancelled_at_its_edge_runs_again(kind: str, tmp_path: Path) -> None:
    async def cancelled_at_the_edge(saver: GuardedSaver) -> Any:
        reached = asyncio.Event()
        waits = [True]

        async def choose(_: Steps) -> str:
            if waits:
                waits.clear()
                reached.set()
                await asyncio.sleep(60)
            return "second"

        graph = steps_graph(saver, choose)

        async def read() -> None:
            modes = ["updates", "custom"]  # as a turn is read
            async for _ in graph.astream({"done": []}, CONFIG, stream_mode=modes):
                pass

        run = asyncio.create_task(read())
        await asyncio.wait_for(reached.wait(), 20)
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run
        assert (await graph.aget_state(CONFIG)).next == ("first",)
        return await graph.ainvoke(None, CONFIG)

    with savers(kind, tmp_path) as saver:
        assert asyncio.run(cancelled_at_the_edge(saver)) == {"done": ["first", "second"]}


def test_a_node_that_is_cancelled_after_its_edge_does_not_run_again(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        done = [("messages", "hi"), ("branch:to:settle", None)]
        saver.put_writes(run_of(saver), [*done, ("__error__", "CancelledError")], "task")
        assert sorted(writes_in(saver)) == sorted(done)


def test_the_channel_that_starts_a_node_is_called_as_in_langgraph() -> None:
    assert {_CHANNEL_BRANCH_TO.format("ingest")} == QUICK


def test_of_a_task_that_failed_only_what_says_so_is_stored(tmp_path: Path) -> None:
    with savers("sqlite", tmp_path) as saver:
        writes = [("messages", "hi"), ("__resume__", ["yes"]), ("__error__", "ValueError")]
        saver.put_writes(run_of(saver), writes, "task")
        assert sorted(writes_in(saver)) == [("__error__", "ValueError"), ("__resume__", ["yes"])]
