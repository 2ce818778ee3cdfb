"""The built-in analyst as a chat model: streaming, usage, purity, and results that came shrunk or not at all."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from evals.databases import open_database
from evals.loop import Talk
from longtable.app.offline.model import BuiltInAnalyst
from longtable.memory.rounds import pair_calls
from longtable.memory.summary import Finding, render_memory
from tests.offline.test_questions import make


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with open_database(make("library", tmp_path)) as tools:
        yield Talk(tools)


def test_a_stream_says_what_an_invoke_says(talk: Talk) -> None:
    talk.ask("How many books are there?")
    for end in range(2, len(talk.messages)):
        if isinstance(talk.messages[end], AIMessage):
            view = talk.messages[:end]
            whole = talk.model.invoke(view)
            streamed: AIMessageChunk | None = None
            chunks = 0
            for chunk in talk.model.stream(view):
                assert isinstance(chunk, AIMessageChunk)
                streamed, chunks = chunk if streamed is None else streamed + chunk, chunks + 1
            assert streamed is not None
            assert (streamed.text, streamed.tool_calls) == (whole.text, whole.tool_calls)
            assert streamed.usage_metadata == whole.usage_metadata
            assert chunks > 1 or not whole.text


def test_async_says_the_same(talk: Talk) -> None:
    question = [SystemMessage("x"), HumanMessage("How many books are there?")]
    assert asyncio.run(talk.model.ainvoke(question)).tool_calls == talk.model.invoke(question).tool_calls


def test_the_same_view_gets_the_same_answer_and_is_left_alone(talk: Talk) -> None:
    talk.ask("How many books are there?")
    view = talk.messages[:-1]
    before = [message.model_dump_json() for message in view]
    first, second = BuiltInAnalyst().invoke(view), BuiltInAnalyst().invoke(view)
    assert (first.text, first.tool_calls) == (second.text, second.tool_calls)
    assert [message.model_dump_json() for message in view] == before


def test_usage_grows_with_the_view(talk: Talk) -> None:
    talk.ask("How many books are there?")
    used = [m.usage_metadata for m in talk.messages if isinstance(m, AIMessage)]
    sizes = [usage["input_tokens"] for usage in used if usage]
    assert len(sizes) == len(used)
    assert sizes == sorted(sizes)
    assert sizes[0] > 0


def test_shrunk_and_interrupted_results_are_asked_for_again(talk: Talk) -> None:
    right = talk.ask("How many books are there?")
    shrunk: list[BaseMessage] = [
        m.model_copy(update={"content": f"{m.text[:40]}… [shortened: 9,999 characters in all]"}) if isinstance(m, ToolMessage) else m
        for m in talk.messages
    ]
    cut = pair_calls([m for m in talk.messages if not isinstance(m, ToolMessage)])
    for history in (shrunk, cut):
        again = Talk(talk.run, messages=list(history))
        assert again.ask("How many books are there?").sql == right.sql


def test_a_folded_answer_is_read_from_memory(talk: Talk) -> None:
    memory = render_memory(f"## Facts and findings\n{Finding('How many loans were late?', 'There are 4,711 loans.').line('en')}", "en")
    remembering = Talk(talk.run, messages=[SystemMessage(f"You answer.\n\n{memory}")])
    answer = remembering.ask("What was the answer when I asked about late loans?")
    assert "4,711" in answer.text
    assert answer.sql == ""
