"""Answers are rated by people; ratings stay with the thread, and are listed over all threads."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.graph import (
    Context,
    Conversation,
    LongtableError,
    build_graph,
    import_thread,
    open_persistence,
    ratings_of_threads,
)
from longtable.graph.ratings import ratings_in
from tests.support.models import ScriptedModel


def talk(saver: Any = None, store: Any = None, thread: str = "t") -> Conversation:
    graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("an answer")))
    app = graph.compile(checkpointer=saver or InMemorySaver(), store=store)
    return Conversation(app, thread, context=Context(model_limit=16_000))


def test_the_newest_rating_of_a_turn_counts() -> None:
    conversation = talk()
    conversation.ask("one")
    conversation.ask("two")
    conversation.rate(2, -1, "不对：没有退货")
    conversation.rate(1, 1)
    conversation.rate(2, 1)
    assert [(r.turn, r.score, r.comment, r.question) for r in conversation.ratings()] == [
        (1, 1, "", "one"),
        (2, 1, "", "two"),
    ]


@pytest.mark.parametrize(
    ("turn", "score", "comment", "said"),
    [
        (2, 1, "", "turn must be from 1 to 1"),
        (0, 1, "", "turn must be from 1 to 1"),
        (True, 1, "", "turn must be from 1 to 1"),
        (1, 5, "", "a score is 1 .right. or -1 .wrong., found 5"),
        (1, 1, "x" * 2_001, "at most 2,000 characters, found 2,001 characters"),
        (1, 1, 7, "found int"),
    ],
)
def test_what_is_no_rating_is_refused_and_nothing_is_kept(
    turn: Any, score: Any, comment: Any, said: str
) -> None:
    conversation = talk()
    conversation.ask("one")
    with pytest.raises(LongtableError, match=said):
        conversation.rate(turn, score, comment)
    assert conversation.ratings() == []


def test_characters_that_cannot_be_stored_are_replaced() -> None:
    conversation = talk()
    conversation.ask("one")
    conversation.rate(1, 1, "a\0b\ud83d")
    assert conversation.ratings()[0].comment == "a b?"


def test_a_rating_changes_no_view() -> None:
    conversation = talk()
    conversation.ask("one")
    before = [message.text for message in conversation.view()]
    conversation.rate(1, -1, "no")
    assert [message.text for message in conversation.view()] == before


def test_ratings_are_exported_and_listed_over_all_threads(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'threads.db'}") as kept:
        conversation = talk(kept.checkpointer, kept.store)
        conversation.ask("one")
        conversation.rate(1, -1, "no")
        exported = conversation.export("jsonl")
        import_thread(kept, exported.splitlines(keepends=True), thread_id="copy")
        found = ratings_of_threads(kept)
        assert sorted((thread, rating.score, rating.comment) for thread, rating in found) == [
            ("copy", -1, "no"),
            ("t", -1, "no"),
        ]


def test_entries_that_are_no_ratings_are_ignored() -> None:
    made: list[Any] = [
        {"op": "rate"},
        {"op": "rate", "turn": "1", "score": 1, "comment": ""},
        {"op": "rate", "turn": 1, "score": 3, "comment": ""},
        {"op": "rate", "turn": 1, "score": 1, "comment": None},
        {"op": "pin"},
    ]
    assert ratings_in(made, {}) == []
