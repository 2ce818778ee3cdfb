"""What a persona does with tools in a game is its own."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    Database,
    Persona,
    Team,
)
from longtable.memory.messages.marks import mark_of
from longtable.modes import Quiz, Werewolf
from longtable.tools.results.result_store import ResultStore
from tests.modes.test_games import PLAYERS, voting
from tests.nodes.team.test_team import Say, model_of, speaker, talk
from tests.support.models import call, sent_of
from tests.tools.databases import make

ANSWER = "SELECT 6 * 7 AS solution"
NOSY: dict[str, dict[str, Any]] = {
    "fetch_result": {"handle": "r1"},
    "fetch_sql": {"sql": "SELECT * FROM r1"},
    "recall_history": {"query": "solution", "from_turn": 1},
    "show_chart": {"handle": "r1", "wish": "bar"},
}


def now() -> datetime:
    return datetime.now(UTC)


def quiz_over_data(folder: Path, *, nosy: str) -> Conversation:
    """Return a quiz whose master looks its answer up, and whose player tries to see that."""

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        tools = [message for message in messages[-4:] if message.type == "tool"]
        if name == "Ada":
            if tools:
                return "Ada says 41"
            return call(nosy.replace("fetch_sql", "fetch_result"), "a1", **NOSY[nosy])
        if not tools and "Ask the first" in messages[0].text:
            return call("run_sql", "q1", sql=ANSWER)
        if tools and tools[-1].name == "run_sql":
            return call("pose_question", "p1", question="What is six times seven?")
        return "Six times seven?"

    return talk(
        say,
        Team(Persona("quizmaster"), Persona("ada"), mode=Quiz()),
        database=Database.open(str(make(folder, "sqlite"))),
        results=ResultStore(folder / "results", clock=now),
    )


def test_a_player_of_a_quiz_over_data_reaches_the_quizmasters_query_in_no_way(
    tmp_path: Path,
) -> None:
    for nosy in NOSY:
        folder = tmp_path / nosy
        folder.mkdir()
        conversation = quiz_over_data(folder, nosy=nosy)
        conversation.ask("Let us begin.")
        conversation.ask("I say 41.")
        asked = [request for request in sent_of(conversation) if speaker(request) == "Ada"]
        assert len(asked) == 2, nosy
        seen = str([message.text for request in asked for message in request[1:]])
        assert "solution" not in seen.replace('"query": "solution"', ""), (nosy, seen)
        assert "42" not in seen, (nosy, seen)


def test_the_quizmaster_still_reads_its_own_result(tmp_path: Path) -> None:
    conversation = quiz_over_data(tmp_path, nosy="recall_history")
    conversation.ask("Let us begin.")
    own = ResultStore(tmp_path / "results", clock=now)
    assert [meta.handle for meta in own.handles("t")] == ["r1"]
    assert [meta.handle for meta in own.handles("t", voice="quizmaster")] == ["r1"]
    assert own.handles("t", voice="ada") == []


def confessing() -> Say:
    vote = voting()

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        answer = vote(name, messages)
        if isinstance(answer, AIMessage):
            return answer.model_copy(update={"content": "I am the werewolf, between us."})
        return f"{answer} {'and so on ' * 200}"

    return say


def test_what_a_player_writes_beside_a_vote_reaches_no_other_player_and_no_summary() -> None:
    conversation = talk(
        confessing(),
        Team(*PLAYERS[:4], mode=Werewolf(seed=3), max_calls=60),
        context=Context(model_limit=8_000),
        policy=CompactionPolicy(),
    )
    for _ in range(4):
        conversation.ask("The next day.")
    written = [m for m in conversation.history(limit=200) if "between us" in m.text]
    assert written
    assert all(mark_of(message, "private") for message in written)
    records = conversation.graph.get_state(conversation.config).values["compactions"]
    assert records
    assert "between us" not in str(records)
    for request in sent_of(conversation):
        others = [m for m in request if m.type != "ai" and "between us" in m.text]
        assert not others, speaker(request)


def test_a_summariser_is_not_shown_private_calls() -> None:
    read: list[str] = []

    def summarise(_: str, messages: Sequence[BaseMessage]) -> str:
        read.append(str([message.text for message in messages]))
        return "## Facts\n- They play. [m1]"

    conversation = talk(
        confessing(),
        Team(*PLAYERS[:4], mode=Werewolf(seed=3), max_calls=60),
        context=Context(model_limit=8_000),
        summarizer=model_of(summarise),
    )
    for _ in range(4):
        conversation.ask("The next day.")
    assert read
    assert "suspects somebody" in read[0]
    assert not [text for text in read if "between us" in text]
