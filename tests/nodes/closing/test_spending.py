"""Tokens by day, thread and model: as reported or estimated and marked; and the sums add up."""

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.base.errors import ThreadNotFoundError
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    MemoryTools,
    Persistence,
    build_graph,
    import_thread,
    open_persistence,
)
from longtable.graph.reports import ausage_of_threads, usage_of_threads
from longtable.memory.compaction.merging import MERGE_AT
from longtable.memory.counting.provider_reports import reported
from longtable.memory.counting.tokens import counter
from longtable.memory.counting.usage import Spent, added, spent_of
from longtable.memory.messages.marks import marked
from tests.support.models import ScriptedModel, script

FIELDS = ("calls", "input", "output", "cached", "reasoning", "estimated")


def told(
    given: Any, made: Any, *, cached: Any = 0, reasoning: Any = 0, model: str = "m1"
) -> AIMessage:
    """Return an answer with what its provider reported, unchecked."""
    usage = {"input_tokens": given, "output_tokens": made, "total_tokens": 0}
    details = {
        "input_token_details": {"cache_read": cached},
        "output_token_details": {"reasoning": reasoning},
    }
    return AIMessage("fine", response_metadata={"model_name": model}).model_copy(
        update={"usage_metadata": {**usage, **details}}
    )


def on(
    kept: Persistence, thread_id: str, model: ScriptedModel, owner: str | None = None
) -> Conversation:
    graph = build_graph(model=model, memory_tools=MemoryTools(recall=False)).compile(
        checkpointer=kept.checkpointer, store=kept.store
    )
    return Conversation(graph, thread_id, context=Context(model_limit=8_000, owner=owner))


def test_the_sums_are_those_added_by_hand(tmp_path: Path) -> None:
    days = ["2026-01-01T23:59:59+00:00", "2026-01-02T00:00:00+00:00"]
    answers = [
        marked(told(100, 10, cached=40, reasoning=4, model="big"), turn=1, time=days[0]),
        marked(told(200, 20, model="small"), turn=2, time=days[0]),
        marked(told(300, 30, cached=50, reasoning=5, model="big"), turn=3, time=days[1]),
    ]
    spent = spent_of(answers, thread="t", model="", encoding="o200k_base")
    assert [(row.hour, row.month) for row in spent] == [("2026-01-01T23", "2026-01")] * 2 + [
        ("2026-01-02T00", "2026-01")
    ]
    rows = added(spent, ["day", "thread", "model"])
    assert rows == [
        Spent("2026-01-01", "t", "big", 1, 100, 10, 40, 4, 0),
        Spent("2026-01-01", "t", "small", 1, 200, 20, 0, 0, 0),
        Spent("2026-01-02", "t", "big", 1, 300, 30, 50, 5, 0),
    ]
    assert added(rows, ["model"]) == [
        Spent("", "", "big", 2, 400, 40, 90, 9, 0),
        Spent("", "", "small", 1, 200, 20),
    ]
    assert added(rows, ["day"]) == [
        Spent("2026-01-01", "", "", 2, 300, 30, 40, 4),
        Spent("2026-01-02", "", "", 1, 300, 30, 50, 5),
    ]
    assert added(rows, []) == [Spent("", "", "", 3, 600, 60, 90, 9)]
    assert added([], ["day"]) == []


ROWS = st.builds(
    Spent,
    st.sampled_from(["a", "b"]),
    st.sampled_from("tu"),
    st.sampled_from("mn"),
    *[st.integers(0, 1_000) for _ in FIELDS],
)


@given(st.lists(ROWS))
def test_every_way_of_adding_up_has_the_same_total(rows: list[Spent]) -> None:
    wanted = [sum(getattr(row, name) for row in rows) for name in FIELDS]
    for count in range(4):
        for by in itertools.combinations(["day", "thread", "model"], count):
            sums = added(rows, by)  # type: ignore[arg-type]  # three of the three names there are
            assert [sum(getattr(row, name) for row in sums) for name in FIELDS] == wanted


@pytest.mark.parametrize(
    "broken",
    [
        told(-1, 5),
        told("100", 5),
        told(None, 5),
        told(100, float("nan")),
        told(True, 5),
        told(0, 0),
        told(2**60, 1),
        AIMessage("fine"),
        AIMessage("fine").model_copy(update={"usage_metadata": "lots"}),
        AIMessage("fine").model_copy(update={"usage_metadata": {}}),
    ],
)
def test_broken_metadata_is_an_estimate_and_marked(broken: AIMessage) -> None:
    assert reported(broken) is None
    question = HumanMessage("How many flights?")
    (row,) = spent_of([question, broken], thread="t", model="m", encoding="o200k_base")
    count = counter("o200k_base")
    assert (row.estimated, row.input, row.output) == (
        1,
        count.message(question),
        count.message(broken),
    )


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (
            told(100.0, 5),
            {"input": 100, "output": 5, "cached": 0, "reasoning": 0, "cache_written": 0},
        ),
        (
            told(100, 5, cached=900, reasoning=900),
            {"input": 100, "output": 5, "cached": 100, "reasoning": 5, "cache_written": 0},
        ),
        (
            told(100, 5, cached=-1, reasoning="x"),
            {"input": 100, "output": 5, "cached": 0, "reasoning": 0, "cache_written": 0},
        ),
        (
            told(100, 0),
            {"input": 100, "output": 0, "cached": 0, "reasoning": 0, "cache_written": 0},
        ),
        (
            AIMessage(
                "a", usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
            ),
            {"input": 3, "output": 2, "cached": 0, "reasoning": 0, "cache_written": 0},
        ),
    ],
)
def test_what_can_be_read_of_metadata_is_read(answer: AIMessage, wanted: dict[str, int]) -> None:
    assert reported(answer) == wanted


def test_a_message_without_time_or_model_is_of_an_unknown_one() -> None:
    odd = told(1, 1).model_copy(
        update={
            "response_metadata": {"model_name": 7},
            "additional_kwargs": {"longtable": {"time": "soon"}},
        }
    )
    assert [
        (row.day, row.model) for row in spent_of([odd], thread="t", model="", encoding="o200k_base")
    ] == [("unknown", "unknown")]


def test_stored_threads_tell_what_they_took_and_only_to_their_owner(tmp_path: Path) -> None:
    def say(sent: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage(
            "fine", usage_metadata={"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
        )

    class Reporting(ScriptedModel):
        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        def _should_stream(self, **kwargs: Any) -> bool:
            return False

    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        reporting, silent = (
            on(kept, "a", Reporting(say=say), "ann"),
            on(kept, "b", script("well then")),
        )
        for _ in range(3):
            reporting.ask("how many?")
        silent.ask("how many?")
        sent = silent.graph.get_state(silent.config).values["usage"]["total"]
        assert [(row.calls, row.input, row.output, row.estimated) for row in reporting.usage()] == [
            (3, 300, 21, 0)
        ]
        (row,) = silent.usage()
        assert (row.calls, row.input, row.estimated) == (1, sent, 1)
        assert {row.thread for row in usage_of_threads(kept, by=["thread"], owner="ann")} == {
            "a",
            "b",
        }
        assert usage_of_threads(kept, by=["thread"], owner="bob") == added([row], ["thread"])
        (total,) = usage_of_threads(kept, by=[], all_owners=True)
        assert (total.calls, total.input, total.output) == (4, 300 + sent, 21 + row.output)
        with pytest.raises(ThreadNotFoundError):
            on(kept, "a", script("x")).usage()


def test_a_notice_is_no_call(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        conversation = on(kept, "t", script(AIMessage("")))
        assert conversation.ask("hello").status == "empty_answer"
        assert len(conversation.history()) == 2
        assert conversation.usage() == []


def test_async_tells_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
            conversation = on(kept, "t", script("well then"))
            await conversation.aask("how many?")
            assert await ausage_of_threads(kept) == await conversation.ausage()

    asyncio.run(work())


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_summarisers_calls_are_added_once_also_when_compactions_have_merged(
    tmp_path: Path, asynchronous: bool
) -> None:
    class Summariser(ScriptedModel):
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            made = super()._generate(*args, **kwargs)
            made.generations[0].message = told(1_000, 50, cached=10, model="small")
            return made

    summarizer = Summariser(say=lambda _: AIMessage(""))
    policy = CompactionPolicy(keep_rounds=1, min_messages=2, ahead=False)
    model = script("and so on " * 60)
    graph = build_graph(
        model=model, summarizer=summarizer, policy=policy, memory_tools=MemoryTools(recall=False)
    )

    def wanted(rows: list[Spent]) -> list[tuple[int, ...]]:
        small = added([row for row in rows if row.model == "small"], [])
        return [(row.calls, row.input, row.output, row.cached, row.estimated) for row in small]

    def calls() -> list[tuple[int, ...]]:
        n = len(summarizer.sent)
        return [(n, 1_000 * n, 50 * n, 10 * n, 0)]

    async def run() -> None:
        async with open_persistence("memory://") as kept:
            talk = Conversation(
                graph.compile(checkpointer=kept.checkpointer, store=kept.store),
                "t",
                context=Context(model_limit=4_000),
            )
            for n in range(3):
                await talk.aask(f"question {n}")
                await talk.acompact()
            assert wanted(await talk.ausage()) == calls()

    if asynchronous:
        asyncio.run(run())
        return
    with open_persistence("memory://") as kept:
        talk = Conversation(
            graph.compile(checkpointer=kept.checkpointer, store=kept.store),
            "t",
            context=Context(model_limit=4_000),
        )
        for n in range(MERGE_AT + 4):
            talk.ask(f"question {n}")
            talk.compact()
        assert any(
            "merged" in record for record in talk.graph.get_state(talk.config).values["compactions"]
        )
        assert wanted(talk.usage()) == wanted(usage_of_threads(kept)) == calls()
        assert len(summarizer.sent) > MERGE_AT
        again = import_thread(kept, talk.export().splitlines(keepends=True), thread_id="copy")
        copy = Conversation(talk.graph, again, context=talk.context)
        assert wanted(copy.usage()) == calls()
