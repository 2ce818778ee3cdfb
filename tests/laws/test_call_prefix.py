"""What a call repeats of the call before it stands first: providers cache by prefix.

Real requests on the wire, one thread for each strategy and mode. A call without a compaction before
it begins with the whole of its voice's earlier call. With a whisper of the mode, it begins with
tools, system prompt and schema.
"""

import json
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from longtable.graph import (
    Context,
    Conversation,
    Database,
    FreeChat,
    Persona,
    Team,
    Workflow,
    build_graph,
)
from longtable.memory.policy import CompactionPolicy
from longtable.modes import Quiz, Werewolf
from tests.support.model_server import (
    ChatRequest,
    ModelServer,
    Reply,
    answer_or_summary,
    call,
    open_model_server,
    say,
)

TURNS = 30
MODES = {
    "free chat": FreeChat(),
    "workflow": Workflow("analyst", "checker", send_back=1),
    "quiz": Quiz(quizmaster="analyst", questions=3),
    "werewolf": Werewolf(seed=7),
}
NAMES = ("analyst", "checker", "cleo", "dan", "eve", "finn")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def wire(request: ChatRequest) -> str:
    """Return a request in the order in which providers read it, as it was sent."""
    tools = json.dumps(request.body.get("tools", []), ensure_ascii=False)
    return tools + "\n".join(json.dumps(each, ensure_ascii=False) for each in request.messages)


def first_difference(before: str, after: str) -> str:
    """Return the first place at which a call differs from all of the call before, "" if it begins
    with it.
    """
    place = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    if place is None:
        return "" if len(after) >= len(before) else f"ends at {len(after):,}"
    near = slice(max(0, place - 60), place + 60)
    return f"character {place:,}: {before[near]!r} became {after[near]!r}"


def answer(request: ChatRequest) -> Reply:
    """Answer with a query every third time."""
    if not request.body.get("tools"):
        return answer_or_summary(request)
    last = request.messages[-1]
    if last["role"] == "user" and "query" in str(last["content"]):
        return call("run_sql", sql="SELECT city FROM sales ORDER BY city LIMIT 5")
    return say("a few words " * 40)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sales (city TEXT, amount INTEGER)")
    connection.executemany("INSERT INTO sales VALUES (?, ?)", [(f"c{n}", n) for n in range(9)])
    connection.commit()
    connection.close()
    with Database.open(f"sqlite:///{path}") as database:
        yield database


def talked(server: ModelServer, database: Database, policy: CompactionPolicy) -> list[int]:
    """Hold a conversation; return before which calls a compaction was made."""
    server.always(answer)
    graph = build_graph(model=server.chat_model(), database=database, policy=policy)
    compiled = graph.compile(checkpointer=InMemorySaver())
    conversation = Conversation(compiled, "t", context=Context(model_limit=9_000))
    compacted: list[int] = []
    for n in range(TURNS):
        for event in conversation.stream(f"{'A query' if n % 3 == 0 else 'Thoughts'} {n}?"):
            if event["type"] == "context_compressed":
                compacted.append(len(answers(server)))
    return compacted


def answers(server: ModelServer) -> list[ChatRequest]:
    """Return the calls of turns: those of summarisers have no tools."""
    return [request for request in server.requests if request.body.get("tools")]


@pytest.mark.parametrize("strategy", ["rolling", "topics"])
def test_a_call_begins_with_the_call_before_it_unless_a_compaction_came_between(
    server: ModelServer, strategy: str, shop: Database
) -> None:
    compacted = talked(server, shop, CompactionPolicy(strategy=strategy))
    assert compacted
    calls = map(wire, answers(server))
    for place, (before, after) in enumerate(pairwise(calls), 1):
        if place not in compacted:
            assert first_difference(before, after) == "", f"call {place + 1}"


def test_a_window_keeps_tools_and_system_message(server: ModelServer, shop: Database) -> None:
    talked(server, shop, CompactionPolicy(strategy="window", keep_messages=4))
    heads = {json.dumps([each.body["tools"], each.messages[0]]) for each in answers(server)}
    assert len(heads) == 1


@pytest.mark.parametrize("name", MODES)
def test_calls_of_a_voice_begin_with_its_tools_and_prompt(server: ModelServer, name: str) -> None:
    server.always(say("I suspect somebody, and a few words more."))
    personas = [Persona(each, prompt=f"You are {each} of the team.") for each in NAMES]
    team = Team(*personas, mode=MODES[name])
    graph = build_graph(model=server.chat_model(), team=team)
    conversation = Conversation(
        graph.compile(checkpointer=InMemorySaver()), "t", context=Context(model_limit=60_000)
    )
    for n in range(4):
        conversation.ask(f"Let us begin, part {n}.")
    voices = conversation.graph.get_state(conversation.config).values["brief"]["voices"]
    compared = 0
    for each in NAMES:
        calls = [one for one in server.requests if f"You are {each} of" in str(one.messages[0])]
        prompt = json.dumps(voices[each]["system"], ensure_ascii=False)[1:-1]
        for before, after in pairwise(calls):
            shared = shared_length(wire(before), wire(after))
            assert shared >= wire(after).index(prompt) + len(prompt), first_difference(
                wire(before), wire(after)
            )
            compared += 1
            if name == "free chat":  # it whispers nothing
                assert first_difference(wire(before), wire(after)) == ""
    assert compared


def shared_length(one: str, other: str) -> int:
    pairs: Iterator[tuple[Any, Any]] = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
