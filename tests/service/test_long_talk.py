"""The proof on real input: sixty turns over the flights data, many folds, a restart, and questions
about what was folded long ago.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.app.demo import ensure_demo
from longtable.graph import Context, Conversation, Database, build_graph, open_persistence
from longtable.memory.compaction.merging import merged_count
from tests.memory.messages.test_rounds import assert_paired
from tests.support.flights_talk import TALK, answers, figures

ROOT = Path(__file__).parents[2]
LIMIT = 12_000
HALF = 30


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ensure_demo(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/chat.db"


@pytest.fixture(scope="module")
def events(flights: Path, store: str) -> list[dict[str, Any]]:
    """Run the talk in two processes, one after the other, and return what they told."""
    told: list[dict[str, Any]] = []
    for first, last in ((1, HALF), (HALF + 1, len(TALK))):
        command = [
            sys.executable,
            "-m",
            "tests.support.talker",
            store,
            f"duckdb:///{flights}",
            str(LIMIT),
            str(first),
            str(last),
        ]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == 0, done.stderr
        told += [json.loads(line) for line in done.stdout.splitlines()]
    return told


def of_turn(events: Sequence[dict[str, Any]], number: int, kind: str) -> list[Any]:
    return [event for event in events if event["question"] == number and event["type"] == kind]


@cache
def gold(path: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("number", [n for n, turn in enumerate(TALK, start=1) if turn.sql])
def test_each_answer_holds_against_duckdb(
    number: int, events: list[dict[str, Any]], flights: Path
) -> None:
    turn = TALK[number - 1]
    assert turn.sql
    wanted = gold(flights, turn.sql)
    assert answers(of_turn(events, number, "query_finished"), wanted), turn.question
    [answer] = of_turn(events, number, "answer")
    assert answer["status"] == "answered"
    if len(wanted) == 1:
        value = wanted[0][-1]
        assert isinstance(value, int | float)
        assert any(
            abs(figure - value) <= 0.005 * max(1, abs(value)) for figure in figures(answer["text"])
        ), answer["text"]


@pytest.mark.parametrize("number", [n for n, turn in enumerate(TALK, start=1) if turn.recalls])
def test_turns_compacted_long_ago_are_answered_from_memory(
    number: int, events: list[dict[str, Any]], flights: Path
) -> None:
    earlier = TALK[TALK[number - 1].recalls - 1]
    assert earlier.sql
    [answer] = of_turn(events, number, "answer")
    assert gold(flights, earlier.sql)[0][0] in figures(answer["text"]), answer["text"]
    assert of_turn(events, number, "query_finished") == []  # from memory, not by asking again


def test_the_view_stays_under_the_threshold_at_every_call(events: list[dict[str, Any]]) -> None:
    folds = [event for event in events if event["type"] == "context_compressed"]
    assert len(folds) >= 5
    assert all(fold["compressed_tokens"] <= 0.6 * LIMIT for fold in folds)
    counted = [
        event for event in events if event["type"] in {"context_usage", "context_compressed"}
    ]
    for event, following in zip(counted, [*counted[1:], {"type": "end"}], strict=True):
        if event["type"] == "context_usage" and following["type"] != "context_compressed":
            # What was sent, not what was folded.
            assert event["total"] <= 0.6 * LIMIT


def test_what_a_compaction_took_is_read_from_the_card_and_not_listed_again(
    events: list[dict[str, Any]],
) -> None:
    """With a look at every table again after each fold there were 24 folds."""
    started = [event for event in events if event["type"] == "tool_started"]
    assert sum(event["name"] == "list_tables" for event in started) == 1
    described = [
        len(event["args"]["names"]) for event in started if event["name"] == "describe_tables"
    ]
    assert described[0] == 5
    assert max(described[1:]) <= 2
    # A target this near the threshold compacts more often.
    assert sum(event["type"] == "context_compressed" for event in events) <= 20


def test_the_transcript_is_complete_and_the_view_is_not(
    events: list[dict[str, Any]], store: str
) -> None:
    with open_persistence(store) as kept:
        app = build_graph(model=BuiltInAnalyst()).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(app, "flights")
        history = conversation.history()
        values: Mapping[str, Any] = app.get_state(conversation.config).values
        view = conversation.view()
    assert [m.text for m in history if m.type == "human"] == [turn.question for turn in TALK]
    final = [m.text for m in history if isinstance(m, AIMessage) and not m.tool_calls]
    assert final == [event["text"] for event in events if event["type"] == "answer"]
    folds = merged_count(values["compactions"]) + sum(
        "merged" not in record for record in values["compactions"]
    )
    assert folds == sum(event["type"] == "context_compressed" for event in events)
    assert len(view) < len(history) / 2
    assert_paired(view[1:])


def test_no_figure_of_the_talk_is_taken_for_an_invented_one(events: list[dict[str, Any]]) -> None:
    assert [event for event in events if event["type"] == "unsupported_numbers"] == []


def test_the_first_questions_of_the_readme_are_answered_right(flights: Path) -> None:
    """A thread's first question is also read by the second reader: it has to agree on the month."""
    questions = re.findall(r"printf '(.*)' \| make chat", (ROOT / "README.md").read_text())[
        0
    ].split("\\n")
    with Database.open(f"duckdb:///{flights}") as database:
        app = build_graph(model=BuiltInAnalyst(), database=database).compile(
            checkpointer=InMemorySaver()
        )
        conversation = Conversation(app, "new", context=Context(model_limit=LIMIT))
        for question, month in zip(filter(None, questions), (3, 4), strict=True):
            answer = conversation.ask(question)
            [left] = gold(
                flights, f"SELECT count(*) FROM flights WHERE origin = 'JFK' AND month = {month}"
            )
            assert figures(answer.text) >= {float(str(left[0]))}, answer.text
