"""A turn whose events are read only at its end gives what a streamed turn gives."""

import asyncio
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from longtable.graph import Context, Conversation, Database, build_graph
from longtable.graph.running.answers import Answer, answer_of
from tests.support.models import ScriptedModel, call, script

ROOMY = Context(model_limit=60_000)
MILLISECONDS = re.compile(r'"ms":\d+')


class NotesThreads(ScriptedModel):
    """Notes the OS thread of each request, and streams only."""

    threads: list[int] = Field(default_factory=list)

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the answer was not streamed")

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.threads.append(threading.get_ident())
        return super()._stream(messages, stop, run_manager, **kwargs)


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@pytest.fixture
def sales(tmp_path: Path) -> Iterator[Database]:
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute("CREATE TABLE sales (revenue INTEGER)")
        connection.execute("INSERT INTO sales VALUES (512)")
    with Database.open(f"sqlite:///{tmp_path}/s.db") as database:
        yield database


def conversation(
    model: ScriptedModel, *tools: BaseTool, database: Database | None = None
) -> Conversation:
    graph = build_graph(model=model, tools=tools, database=database)
    saved = graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    return Conversation(saved, "t", context=ROOMY)


def asked(talk: Conversation, text: str) -> Answer:
    return talk.ask(text)


def streamed(talk: Conversation, text: str) -> Answer:
    return answer_of(list(talk.stream(text)))


def awaited(talk: Conversation, text: str) -> Answer:
    return asyncio.run(talk.aask(text))


@pytest.mark.parametrize("ask", [asked, awaited])
def test_the_answer_and_the_thread_are_those_of_a_streamed_turn(ask: Any, sales: Database) -> None:
    made = []
    for each in (ask, streamed):
        sql = call("run_sql", sql="SELECT revenue FROM sales")
        model = script(sql, "It is 512, not 8,765.", call("add", a=2, b=3), "Yes.")
        talk = conversation(model, add, database=sales)
        answers = [each(talk, "How much was it?"), each(talk, "Sure?")]
        texts = [MILLISECONDS.sub("", str(message.text)) for message in talk.history()]
        made.append((list(map(without_times, answers)), texts))
    assert made[0] == made[1]
    first = made[0][0][0]
    assert first.usage is not None
    assert [query["row_count"] for query in first.queries] == [1]
    assert first.unsupported_numbers == ["8,765"]


def without_times(answer: Answer) -> Answer:
    queries: Any = [{**query, "ms": 0} for query in answer.queries]
    return replace(answer, queries=queries)


def test_the_model_streams_and_each_node_runs_in_the_callers_thread() -> None:
    model = NotesThreads(say=lambda _: script("fine").say([]))
    assert conversation(model).ask("Well?").text == "fine"
    assert model.threads == [threading.get_ident()]


def test_in_a_running_event_loop_no_node_runs_in_its_thread() -> None:
    model = NotesThreads(say=lambda _: script("fine").say([]))
    talk = conversation(model)

    async def ask() -> str:
        return talk.ask("Well?").text

    assert asyncio.run(ask()) == "fine"
    assert threading.get_ident() not in model.threads


def test_a_run_within_a_tool_adds_no_event_to_the_turn(sales: Database) -> None:
    within = script(call("run_sql", sql="SELECT revenue FROM sales"), "It was 512.")
    inner = build_graph(model=within, database=sales).compile()

    @tool
    def look(what: str) -> str:
        """Look a figure up."""
        result = inner.invoke({"messages": [HumanMessage(what)]}, context=ROOMY)
        return str(result["messages"][-1].text)

    talk = conversation(script(call("look", what="revenue"), "It was 512."), look)
    answer = talk.ask("How much was it?")
    assert answer.text == "It was 512."
    assert [message.text for message in talk.history()][2] == "It was 512."
    assert answer.queries == []
