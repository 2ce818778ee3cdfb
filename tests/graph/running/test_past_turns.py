"""Pages of past turns: which turns, how they ended, and how little is read for them."""

from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.store.base import GetOp, Op
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ConfigError, ThreadNotFoundError
from longtable.base.stored import thread_namespace
from longtable.graph import CompactionPolicy
from longtable.graph.running.past_turns import turn_range
from tests.support.threads import talk, thread, values_of


class CountingStore(InMemoryStore):
    """Counts the archived messages that are read."""

    read = 0

    def batch(self, ops: Any) -> list[Any]:
        ops = list(ops)
        self.read += archived_in(ops)
        return super().batch(ops)


def archived_in(ops: Sequence[Op]) -> int:
    place = thread_namespace("archive", "t")
    return sum(isinstance(op, GetOp) and op.namespace == place for op in ops)


def test_a_page_is_read_from_the_front_and_from_the_end() -> None:
    conversation = thread()
    talk(conversation, 5, words=2)
    turns = conversation.turns()
    assert [turn.number for turn in turns] == [1, 2, 3, 4, 5]
    assert [turn.question for turn in turns] == [f"q{n} w w " for n in range(5)]
    assert {turn.status for turn in turns} == {"answered"}
    assert turns[0].id == conversation.history()[0].id
    assert turns[0].time.startswith("20")
    assert [turn.number for turn in conversation.turns(start=2, limit=2)] == [2, 3]
    assert [turn.number for turn in conversation.turns(start=-2)] == [4, 5]
    assert conversation.turns(start=-2) == turns[-2:]
    assert [turn.number for turn in conversation.turns(start=-99, limit=1)] == [1]
    assert conversation.turns(start=6) == []
    assert conversation.turns(limit=0) == []


@pytest.mark.parametrize(("start", "limit"), [(0, None), (1, -1)])
def test_a_wrong_page_is_refused(start: int, limit: int | None) -> None:
    with pytest.raises(ConfigError, match="turns count from 1"):
        turn_range(9, start, limit)


def test_an_unknown_thread_is_not_found() -> None:
    with pytest.raises(ThreadNotFoundError):
        thread().turns()


def test_a_turn_has_the_newest_rating_of_its_answer() -> None:
    conversation = thread()
    talk(conversation, 2)
    conversation.rate(2, 1)
    conversation.rate(2, -1, "the year is missing")
    assert [turn.rating for turn in conversation.turns()] == [0, -1]


def test_the_last_turns_of_a_long_thread_cost_few_archived_messages() -> None:
    store = CountingStore()
    conversation = thread(store=store, policy=CompactionPolicy(retire_after=24))
    talk(conversation, 80)
    assert values_of(conversation)["archive"]["count"] > 100
    whole = conversation.turns()
    assert [turn.number for turn in whole] == list(range(1, 81))
    store.read = 0
    assert conversation.turns(start=-2) == whole[-2:]
    assert store.read <= 20
    assert conversation.turns(start=20, limit=3) == whole[19:22]
    assert store.read <= 60
