"""The rules of compaction with everything on at once: steered messages, passed material, a schema
that changes, private threads, edits.
"""

import itertools
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.graph import (
    CompactionPolicy,
    Context,
    ContextProvider,
    Conversation,
    Database,
    build_graph,
    next_view,
)
from longtable.memory.compaction import merging
from longtable.memory.compaction.merging import merged_count, unmerged
from longtable.memory.counting.tokens import counter
from longtable.memory.materials import PASSED_ID
from longtable.memory.summary.summary_text import harmless
from longtable.store.records.retired_store import read_compactions
from tests.memory.messages.test_rounds import assert_paired
from tests.support.histories import TEXTS
from tests.support.models import ScriptedModel
from tests.support.threads import GOOD, summariser, values_of

SECRET = "Quetzal"
QUERIES = [
    "SELECT * FROM people LIMIT 1",
    "SELECT * FROM people",
    "SELECT count(*) FROM people",
    "SELECT nme FROM people",
    "SELECT name, length(name) FROM people WHERE id > 3",
]
CALLS = st.one_of(
    st.sampled_from(QUERIES).map(lambda sql: ("run_sql", {"sql": sql})),
    st.just(("describe_tables", {"names": ["people", "orders"]})),
    st.just(("list_tables", {})),
    st.just(("recall_history", {"query": "flights kilometres people"})),
    st.text("ab ", max_size=20).map(lambda text: ("steer", {"text": f"and also {text}"})),
    st.just(("no_such_tool", {})),
)


@dataclass(frozen=True)
class Turn:
    """What is said in one turn, what the model calls, and what happens after it."""

    question: str
    steps: list[list[tuple[str, dict[str, Any]]]]
    answer: str
    passed: int
    after: str


TURNS = st.builds(
    Turn,
    question=TEXTS.filter(
        lambda text: (
            any(each.isprintable() and not each.isspace() for each in text) and "\x00" not in text
        )
    ),
    steps=st.lists(st.lists(CALLS, min_size=1, max_size=3), max_size=2),
    answer=TEXTS.filter(lambda text: bool(text.strip())),
    passed=st.sampled_from([0, 0, 40, 4_000]),
    after=st.sampled_from(["", "", "", "schema", "compact", "compact", "undo", "exclude", "pin"]),
)


@dataclass
class Talk:
    """One conversation on a database of its own, and what every call of its model was told to
    be.
    """

    path: Path
    private: bool
    strategy: str
    says: str

    def __post_init__(self) -> None:
        self.path.unlink(missing_ok=True)
        self.run(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE orders (id"
            " INTEGER, total REAL);"
        )
        self.run(
            "".join(
                f"INSERT INTO people (name) VALUES ('{SECRET} {'long name ' * 30}');"
                for _ in range(12)
            )
        )
        self.material, self.queue, self.said = 0, list[AIMessage](), list[str]()
        self.usages: list[dict[str, Any]] = []
        self.calls: list[tuple[str, list[BaseMessage]]] = []
        self.ids, self.lock = itertools.count(), threading.Lock()
        self.summarizer = summariser(
            lambda sent: {"good": AIMessage(GOOD), "echo": AIMessage(sent[-1].text)}[self.says]
        )

        @tool
        def steer(text: str) -> str:
            """Say something to the turn under way."""
            with self.lock:  # parallel calls: one after the other, so that their order is known
                self.said.append(text)
                return self.conversation.steer(text, wait=False).status

        def say(sent: Any) -> AIMessage:
            self.calls.append((self.said[-1], list(sent)))
            return self.queue.pop(0)

        self.model = ScriptedModel(say=say)
        graph = build_graph(
            model=self.model,
            database=Database.open(f"sqlite:///{self.path}"),
            tools=[steer],
            summarizer=None if self.says == "nothing" else self.summarizer,
            policy=CompactionPolicy(
                strategy=self.strategy, min_messages=2, keep_rounds=2, retire_after=12
            ),
            hooks=[
                ContextProvider(
                    name="page",
                    provide=lambda _: f"PASSED {'x y ' * self.material}" if self.material else "",
                )
            ],
        ).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
        context = Context(
            model_limit=5_000,
            approve_sql="never",
            privacy="types" if self.private else "off",
            max_model_calls=20,
        )
        self.conversation = Conversation(graph, "t", context=context)

    def run(self, text: str) -> None:
        connection = sqlite3.connect(self.path)
        connection.executescript(text)
        connection.close()

    def turn(self, turn: Turn) -> None:
        self.said.append(turn.question)
        self.material = turn.passed
        for step in turn.steps:
            calls = [
                ToolCall(name=name, args=args, id=f"c{next(self.ids)}", type="tool_call")
                for name, args in step
            ]
            self.queue.append(AIMessage("", tool_calls=calls))
        self.queue.append(AIMessage(turn.answer))
        self.usages += [
            dict(event)
            for event in self.conversation.stream(turn.question)
            if event["type"] == "context_usage"
        ]
        assert self.queue == []
        self.do(turn.after)

    def do(self, what: str) -> None:
        match what:
            case "schema":
                self.run(
                    f"ALTER TABLE people ADD COLUMN more{next(self.ids)} TEXT; CREATE TABLE"
                    f" t{next(self.ids)} (id INTEGER);"
                )
            case "compact":
                self.conversation.compact()
            case "exclude":
                self.conversation.exclude(str(self.conversation.history()[0].id))
            case "pin":
                self.conversation.pin("Distances are in kilometres.")
            case "undo":
                before = self.conversation.view()
                event = self.conversation.compact()
                if event and event["type"] == "context_compressed":
                    self.conversation.undo()
                    assert self.conversation.view() == before
            case _:
                pass


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patched:  # few turns, yet compactions merge
        patched.setattr(merging, "MERGE_AT", 3)
        patched.setattr(merging, "KEEP", 1)
        yield tmp_path_factory.mktemp("laws")


@settings(deadline=None, max_examples=12)
@given(
    turns=st.lists(TURNS, min_size=2, max_size=9),
    private=st.booleans(),
    strategy=st.sampled_from(["rolling", "topics"]),
    says=st.sampled_from(["nothing", "good", "echo"]),
)
def test_all_rules_hold_with_everything_on(
    place: Path, turns: list[Turn], private: bool, strategy: str, says: str
) -> None:
    talk = Talk(place / "shop.db", private, strategy, says)
    grown: list[BaseMessage] = []
    for turn in turns:
        talk.turn(turn)
        history = [plain(message) for message in talk.conversation.history()]
        assert history[: len(grown)] == grown  # nothing lost, nothing changed
        assert [m.text for m in history if m.type == "human"] == talk.said
        grown = history
    usages = iter(talk.usages)
    for newest, sent in talk.calls:
        check(
            sent, newest, next(usage for usage in usages if usage["total"] == tokens(sent, usage))
        )
    values = values_of(talk.conversation)
    records, view = values.get("compactions", []), talk.conversation.view()
    assert len({record["id"] for record in records}) == len(records)
    assert "PASSED" not in repr(values)
    assert not private or SECRET not in repr(
        [[sent for _, sent in talk.calls], talk.summarizer.sent, records, grown]
    )
    for pin in talk.conversation.pins():
        assert harmless(" ".join(pin.text.split())) in " ".join(view[0].text.split())
    store = talk.conversation.graph.store
    assert store is not None
    whole = unmerged(read_compactions(store, "t", merged_count(records)), records)
    assert next_view({**values, "compactions": whole}, talk.conversation.context) == view


def plain(message: BaseMessage) -> BaseMessage:
    """Return a message without its marks: excluding marks it."""
    return message.model_copy(update={"additional_kwargs": {}})


def tokens(sent: list[BaseMessage], usage: dict[str, Any]) -> int:
    return counter("o200k_base").messages(sent) + int(usage["parts"]["tools"])


def check(sent: list[BaseMessage], newest: str, usage: dict[str, Any]) -> None:
    """Assert what holds of a call that was counted as `usage`: within its bounds, paired, the
    newest user message as it was said.
    """
    said = [
        message
        for message in sent
        if message.type == "human" and not str(message.id).startswith(PASSED_ID)
    ]
    assert usage["total"] <= 0.85 * usage["limit"]
    assert len(said) > 1 or usage["total"] - usage["parts"].get("passed", 0) <= 0.6 * usage["limit"]
    assert_paired(sent[1:])
    assert said[-1].text == newest
