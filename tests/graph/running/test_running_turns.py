"""Running turns that outlive their reader: several readers, late ones, leaving ones, cancel,
errors.
"""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import (
    ConfigError,
    EmptyMessageError,
    ProviderUnavailableError,
    ThreadBusyError,
    TooManyTurnsError,
)
from longtable.base.events import Event
from longtable.graph import Context, Conversation, RunningTurns, build_graph
from longtable.graph.running.past_events import MOST_ROWS
from longtable.graph.running.running_turns import _Log
from longtable.graph.thread_state import Graph
from tests.support.models import ScriptedModel

SECONDS = 20
"""The most that any wait in these tests may take."""
Numbered = list[tuple[int, Event]]


class Gate:
    """A model that answers once it is let through, and says that it has been asked."""

    def __init__(self, *answers: str) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self.answers = list(answers)
        self.model = ScriptedModel(say=self._say)

    def _say(self, _: Sequence[BaseMessage]) -> AIMessage:
        self.asked.set()
        assert self.open.wait(SECONDS)
        return AIMessage(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])

    async def was_asked(self) -> None:
        assert await asyncio.to_thread(self.asked.wait, SECONDS)


def graph_of(model: ScriptedModel) -> Graph:
    return build_graph(model=model).compile(checkpointer=InMemorySaver(), store=InMemoryStore())


def talk(model: ScriptedModel, thread_id: str = "t", **more: Any) -> Conversation:
    context = Context(model_limit=8_000, max_retries=0)
    return Conversation(graph_of(model), thread_id, context=context, **more)


async def read(turns: RunningTurns, after: int = 0, thread_id: str = "t") -> Numbered:
    async with asyncio.timeout(SECONDS):
        return [each async for each in turns.follow(thread_id, after)]


def words_of(events: Numbered) -> str:
    return "".join(event["text"] for _, event in events if event["type"] == "token")


def test_two_readers_and_a_late_one_read_the_same_words() -> None:
    gate = Gate("one two three four")

    async def work() -> None:
        turns = RunningTurns()
        await turns.start(talk(gate.model), "how many?")
        assert turns.running("t")
        readers = [asyncio.create_task(read(turns)) for _ in range(2)]
        await gate.was_asked()
        gate.open.set()
        first, second = await asyncio.gather(*readers)
        assert not turns.running("t")
        late = await read(turns)
        for events in (first, second, late):
            assert words_of(events) == "one two three four"
            assert [event["type"] for _, event in events][-1] == "answer"
        assert first[0][0] == 1
        assert first[-1][0] == second[-1][0] == late[-1][0]
        # The pieces were merged, and so a replay is small.
        assert [event["type"] for _, event in late] == ["context_usage", "token", "answer"]
        await turns.aclose()

    asyncio.run(work())


def test_a_reader_goes_on_from_any_number_without_a_word_twice_or_lost() -> None:
    gate = Gate("one two three four")
    gate.open.set()

    async def work() -> None:
        turns = RunningTurns()
        await turns.start(talk(gate.model), "how many?")
        whole = await read(turns)
        last = whole[-1][0]
        assert last == 6  # the usage, four pieces, the answer
        pieces = ["one ", "two ", "three ", "four"]
        for after in range(last + 1):
            rest = await read(turns, after)
            assert words_of(rest) == "".join(pieces[max(0, after - 1) :])
            assert all(number > after for number, _ in rest)
        assert await read(turns, last) == []
        await turns.aclose()

    asyncio.run(work())


def test_a_reader_that_goes_away_does_not_end_the_turn() -> None:
    gate = Gate("done")

    async def work() -> None:
        turns = RunningTurns()
        conversation = talk(gate.model)
        await turns.start(conversation, "how many?")
        reader = turns.follow("t")
        assert (await anext(reader))[0] == 1
        await reader.aclose()
        leaving = asyncio.create_task(read(turns))
        await gate.was_asked()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        gate.open.set()
        assert words_of(await read(turns)) == "done"
        assert [turn.status for turn in await conversation.aturns()] == ["answered"]
        await turns.aclose()

    asyncio.run(work())


def test_a_slow_reader_holds_nobody_up() -> None:
    gate = Gate("one two three four")
    gate.open.set()

    async def work() -> None:
        turns = RunningTurns()
        await turns.start(talk(gate.model), "how many?")
        slow = turns.follow("t")
        seen = [await anext(slow)]
        assert words_of(await read(turns)) == "one two three four"
        assert not turns.running("t")
        seen += [each async for each in slow]
        assert words_of(seen) == "one two three four"
        await turns.aclose()

    asyncio.run(work())


def test_stop_interrupts_the_turn_and_a_start_without_a_question_continues_it() -> None:
    gate = Gate("late words")

    async def work() -> None:
        turns = RunningTurns()
        conversation = talk(gate.model)
        await turns.start(conversation, "how many?")
        reader = asyncio.create_task(read(turns))
        await gate.was_asked()
        stopping = asyncio.create_task(turns.stop("t"))
        await asyncio.sleep(0)
        gate.open.set()  # the model's own thread cannot be interrupted
        async with asyncio.timeout(SECONDS):
            await stopping
        assert not turns.running("t")
        assert [event["type"] for _, event in await reader] == ["context_usage"]
        (turn,) = await conversation.aturns()
        assert (turn.status, turn.question) == ("running", "how many?")
        await turns.start(conversation)
        assert words_of(await read(turns)) == "late words"
        await turns.stop("t")  # nothing runs
        await turns.stop("unknown")
        await turns.aclose()

    asyncio.run(work())


def test_an_error_before_the_turn_is_accepted_is_raised_and_nothing_is_kept() -> None:
    async def work() -> None:
        turns = RunningTurns()
        with pytest.raises(EmptyMessageError):
            await turns.start(talk(Gate("x").model), " ")
        assert not turns.running("t")
        assert await read(turns) == []
        await turns.aclose()

    asyncio.run(work())


def test_an_error_in_mid_turn_is_the_last_event_of_every_reader() -> None:
    def fail(_: Sequence[BaseMessage]) -> AIMessage:
        raise ProviderUnavailableError("the provider is away")

    async def work() -> None:
        turns = RunningTurns()
        await turns.start(talk(ScriptedModel(say=fail)), "how many?")
        for _ in range(2):
            events = await read(turns)
            failed: Any = events[-1][1]
            assert failed["type"] == "failed"
            assert failed["code"] == "provider_unavailable"
        await turns.aclose()

    asyncio.run(work())


def test_one_turn_a_thread_and_a_question_may_join_it() -> None:
    gate = Gate("first words", "second words")

    async def work() -> None:
        turns = RunningTurns()
        graph = graph_of(gate.model)
        context = Context(model_limit=8_000)
        await turns.start(Conversation(graph, "t", context=context), "how many?")
        await gate.was_asked()
        with pytest.raises(ThreadBusyError):
            await turns.start(Conversation(graph, "t", context=context), "and now?")
        steering = Conversation(graph, "t", context=context, when_busy="steer")
        with pytest.raises(ThreadBusyError):
            await turns.start(steering)
        await turns.start(steering, "and now?")
        gate.open.set()
        events = await read(turns)
        assert [event["type"] for _, event in events].count("answer") == 2
        assert "steered" in [event["type"] for _, event in events]
        await turns.aclose()

    asyncio.run(work())


def test_finished_turns_are_forgotten_after_a_while_and_beyond_the_most() -> None:
    gate = Gate("words")
    gate.open.set()

    async def work() -> None:
        short = RunningTurns(keep_seconds=0)
        await short.start(talk(gate.model), "how many?")
        await read(short)
        async with asyncio.timeout(SECONDS):
            while await read(short):
                await asyncio.sleep(0.01)
        few = RunningTurns(most=2)
        for name in ("a", "b", "c"):
            await few.start(talk(gate.model, name), "how many?")
            await read(few, thread_id=name)
        kept = [name for name in ("a", "b", "c") if await read(few, thread_id=name)]
        assert kept == ["b", "c"]
        await few.aclose()

    asyncio.run(work())


def test_no_more_turns_run_than_allowed_and_closing_interrupts_them() -> None:
    gate = Gate("words")

    async def work() -> None:
        turns = RunningTurns(most=1)
        conversation = talk(gate.model)
        await turns.start(conversation, "how many?")
        await gate.was_asked()
        with pytest.raises(TooManyTurnsError):
            await turns.start(talk(gate.model, "other"), "how many?")
        closing = asyncio.create_task(turns.aclose())
        await asyncio.sleep(0)
        gate.open.set()
        async with asyncio.timeout(SECONDS):
            await closing
        assert not turns.running("t")
        assert await conversation.apending()
        with pytest.raises(ConfigError, match="closed"):
            await turns.start(conversation)

    asyncio.run(work())


@pytest.mark.parametrize("wrong", [{"keep_seconds": -1}, {"most": 0}])
def test_wrong_bounds_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="RunningTurns takes"):
        RunningTurns(**wrong)


def test_a_large_result_is_kept_with_its_first_rows_alone() -> None:
    async def work() -> None:
        log = _Log()
        rows = [[n] for n in range(1_000)]
        event: Any = {"type": "query_finished", "rows": rows, "row_count": 1_000}
        log.add(event)
        read_back: Any = await log.read(0)
        assert len(read_back[1]["rows"]) == MOST_ROWS
        assert read_back[1]["row_count"] == 1_000

    asyncio.run(work())
