"""Voices that do not hear each other are asked at once: what a person, a server and the transcript
see of it.
"""

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph._internal._constants import RETURN as LANGGRAPHS_RETURN
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt
from rich.console import Console

from longtable.app.console.screen import ConsoleScreen
from longtable.base.errors import (
    ModelContextOverflowError,
    ProviderUnavailableError,
    TurnPendingError,
)
from longtable.graph import (
    Context,
    Conversation,
    Database,
    FreeChat,
    Limits,
    MemoryTools,
    Persona,
    Scene,
    Team,
    build_graph,
    open_persistence,
)
from longtable.graph.thread_state import RETURN
from longtable.memory.messages.marks import turn_number
from longtable.tools.sql.verdict import CostThresholds
from tests.memory.messages.test_rounds import assert_paired
from tests.modes.test_games import quiz_talk
from tests.nodes.team.test_team import ANALYST, CHECKER, Say, of_type, talk, who
from tests.support import model_server
from tests.support.model_server import ChatRequest, ModelServer, Reply, open_model_server
from tests.support.models import call, sent_of
from tests.tools.databases import make

TESTER = Persona("tester")
THREE = Team(ANALYST, CHECKER, TESTER)
NAMES = ["Analyst", "Checker", "Tester"]
LIMIT = Context(model_limit=32_000)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as opened:
        yield opened


def asked_of(request: ChatRequest) -> str:
    """Return who a request is made as."""
    return str(request.messages[0]["content"]).partition("You are ")[2].partition(".")[0]


def meeting(parties: int = 3) -> Any:
    """Return a server's step whose requests are answered once so many of them are there: with a
    tool call first, then in words.
    """
    here = threading.Barrier(parties)

    def step(request: ChatRequest) -> Reply:
        here.wait(10)  # broken, and a 500, where they are asked one after the other
        if request.messages[-1]["role"] == "tool":
            return model_server.say(f"{asked_of(request)} has looked")
        return model_server.call("recall_history", query="orders")

    return step


def over_http(server: ModelServer, team: Team, **more: Any) -> Conversation:
    graph = build_graph(model=server.chat_model(), team=team, summarizer=False, **more).compile(
        InMemorySaver(), store=InMemoryStore()
    )
    return Conversation(graph, "t", context=LIMIT.replace(max_retries=0))


@pytest.mark.parametrize("on_loop", [False, True])
def test_the_calls_of_all_voices_are_at_the_server_at_the_same_time(
    server: ModelServer, on_loop: bool
) -> None:
    server.always(meeting())
    conversation = over_http(server, THREE)
    answer = asyncio.run(conversation.aask("Hello")) if on_loop else conversation.ask("Hello")
    assert [(each["voice"], each["text"]) for each in answer.voices] == [
        ("analyst", "Analyst has looked"),
        ("checker", "Checker has looked"),
        ("tester", "Tester has looked"),
    ]
    assert answer.text == "Tester has looked"
    assert [message.name for message in conversation.history() if message.type == "ai"] == [
        name for name in NAMES for _ in (1, 2)
    ]
    assert len(server.requests) == 6


def test_more_voices_than_the_machine_has_cores_are_asked_at_once(server: ModelServer) -> None:
    server.always(meeting(12))
    answer = over_http(server, Team(*(Persona(f"p{number}") for number in range(12)))).ask("Hello")
    assert [each["text"] for each in answer.voices] == [
        f"P{number} has looked" for number in range(12)
    ]


def test_a_graph_without_a_checkpointer_asks_at_once_too(server: ModelServer) -> None:
    server.always(meeting())
    graph = build_graph(model=server.chat_model(), team=THREE, summarizer=False).compile()
    out = graph.invoke({"messages": [HumanMessage("Hello")]}, context=LIMIT)
    assert [
        message.name for message in out["messages"] if message.type == "ai" and message.text
    ] == NAMES


class OneByOne(FreeChat):
    """Free chat in which nobody is asked before it is their turn, for a comparison."""

    def next(self, scene: Scene) -> str | None:
        if any(not text for _, text in scene.answers):  # as if each had answered: not here
            return None
        return super().next(scene)


def test_the_transcript_is_that_of_voices_asked_one_after_the_other() -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        return f"{name} speaks" if messages[-1].type == "tool" else call("look", f"of {name}")

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    def kept(mode: FreeChat) -> list[tuple[object, ...]]:
        conversation = talk(say, Team(ANALYST, CHECKER, TESTER, mode=mode), tools=[look])
        for text in ("Hello", "@Chuck and @tester, again", "All of you"):
            conversation.ask(text)
        return [
            (each.type, each.text, each.name, sorted(each.additional_kwargs["longtable"]))
            for each in conversation.history(limit=99)
        ]

    assert kept(FreeChat()) == kept(OneByOne())


def test_no_voice_is_sent_what_another_says_in_this_turn() -> None:
    conversation = talk(who, THREE)
    conversation.ask("Hello")
    assert [len(request) for request in sent_of(conversation)] == [2, 2, 2]
    conversation.ask("Again")
    assert [len(request) for request in sent_of(conversation)[3:]] == [6, 6, 6]


def waiting_for(shown: threading.Event) -> Say:
    """Return what is said where the analyst is at work until the tester's answer was shown."""

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        if name == "Analyst":
            assert shown.wait(10)
        return f"{name} speaks"

    return say


def test_a_voice_that_is_done_is_shown_under_its_name_while_another_is_at_work() -> None:
    shown = threading.Event()
    out = io.StringIO()
    screen = ConsoleScreen(Console(file=out, width=120))
    team = Team(ANALYST, TESTER)
    events: list[Any] = []
    for event in talk(waiting_for(shown), team).stream("Hello"):
        events.append(event)
        screen.event(event)
        if event["type"] == "token" and event["text"] == "speaks":
            shown.set()
    tokens = [(event["voice"], event["text"]) for event in of_type(events, "token")]
    assert tokens == [
        (voice, text) for voice in ("tester", "analyst") for text in (f"{voice.title()} ", "speaks")
    ]
    names = [event["voice"] for event in of_type(events, "voice_started")]
    assert names == ["analyst", "tester", "analyst"]
    assert [each["voice"] for each in events[-1]["voices"]] == ["analyst", "tester"]
    lines = [line for line in out.getvalue().splitlines() if line.split(" ")[0].strip(":") in NAMES]
    assert lines == ["Tester:", "Tester speaks", "Analyst:", "Analyst speaks"]


def test_events_of_one_voice_stand_together_and_no_text_is_cut_in_two() -> None:
    begun = threading.Event()

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        if name != "Analyst":
            assert begun.wait(10)
        return f"{name} speaks"

    events: list[Any] = []
    for event in talk(say, THREE).stream("Hello"):
        events.append(event)
        if event["type"] == "token":
            begun.set()
    tokens = [event["voice"] for event in of_type(events, "token")]
    assert tokens[:2] == ["analyst", "analyst"]
    assert {tuple(tokens[2:4]), tuple(tokens[4:6])} == {("checker",) * 2, ("tester",) * 2}
    assert {event["voice"] for event in of_type(events, "context_usage")} == {*tokens}


def test_a_figure_that_nothing_vouches_for_is_flagged_under_the_name_of_its_voice(
    tmp_path: Path,
) -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if messages[-1].type != "tool":
            return call("run_sql", sql="SELECT 41 AS n")
        return "There are 977 orders." if name == "Analyst" else "There are 41 orders."

    out = io.StringIO()
    screen = ConsoleScreen(Console(file=out, width=120))
    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        for event in talk(say, Team(ANALYST, TESTER), database=database).stream("How many?"):
            screen.event(event)
    lines = out.getvalue().splitlines()
    flagged = next(place for place, line in enumerate(lines) if "not found in" in line)
    assert [line for line in lines[:flagged] if line[:-1] in NAMES][-1] == "Analyst:"


def test_the_first_voice_streams_while_the_others_are_asked() -> None:
    streamed = threading.Event()

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        if name == "Tester":
            assert streamed.wait(10)
        return f"{name} speaks"

    for event in talk(say, THREE).stream("Hello"):
        if event["type"] == "token":
            streamed.set()
    assert streamed.is_set()


def test_one_that_fails_leaves_the_others_answers_in_the_teams_order() -> None:
    def say(name: str, _: Sequence[BaseMessage]) -> str:
        if name == "Checker":
            raise ProviderUnavailableError("the server is down")
        return f"{name} speaks"

    answer = talk(say, THREE, context=LIMIT.replace(max_retries=0)).ask("Hello")
    assert [each["voice"] for each in answer.voices] == ["analyst", "checker", "tester"]
    assert answer.voices[1]["text"].startswith("Checker could not answer: ")
    assert answer.text == "Tester speaks"


def test_a_bug_in_one_voice_ends_the_run_and_resume_asks_that_one_alone() -> None:
    tried: Counter[str] = Counter()

    def say(name: str, _: Sequence[BaseMessage]) -> str:
        tried[name] += 1
        if name == "Checker" and tried[name] == 1:
            raise RuntimeError("a bug")
        return f"{name} speaks"

    conversation = talk(say, THREE)
    with pytest.raises(RuntimeError):
        conversation.ask("Hello")
    answer = conversation.resume()
    assert [each["text"] for each in answer.voices] == [f"{name} speaks" for name in NAMES]
    assert tried == {"Analyst": 1, "Checker": 2, "Tester": 1}


def test_calls_that_voices_made_before_a_bug_count_when_the_turn_is_resumed() -> None:
    tried: Counter[str] = Counter()

    def say(name: str, _: Sequence[BaseMessage]) -> AIMessage | str:
        tried[name] += 1
        if name == "Analyst" and tried[name] == 1:
            raise RuntimeError("a bug")
        return call("recall_history", query="orders") if tried[name] < 4 else "done"

    team = Team(*THREE.personas.values(), max_calls=5)
    conversation = talk(say, team)
    with pytest.raises(RuntimeError):
        conversation.ask("Hello")
    before = tried["Checker"] + tried["Tester"]
    conversation.resume()
    answered = sum(tried.values()) - 1  # the call that failed is none of the five
    assert before == 4
    assert answered == 5


KILLED = """
import os, signal, sys, threading
from tests.nodes.team.test_at_once import THREE, talk
from longtable.graph import open_persistence

others = threading.Semaphore(0)

def say(name, messages):
    if name == sys.argv[2]:
        others.acquire(), others.acquire()
        threading.Event().wait(0.3)  # until their answers are stored
        os.kill(os.getpid(), signal.SIGKILL)
    others.release()
    return f"{name} speaks"

with open_persistence(sys.argv[1]) as kept:
    talk(say, THREE, saver=kept.checkpointer, store=kept.store).ask("Hello")
"""


def killed_while(missing: str, folder: Path) -> str:
    """Return the URL of a store whose process was killed while all but one voice were done."""
    url = f"sqlite:///{folder / 'chat.db'}"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, url, missing],
        cwd=root,
        env={**os.environ},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    return url


def told_last(missing: str) -> str:
    """Return the last in the team of those who were done."""
    return [name for name in NAMES if name != missing][-1]


@pytest.mark.parametrize("missing", ["Analyst", "Tester"])
def test_after_a_kill_only_the_voice_that_is_missing_is_asked_and_all_are_told(
    missing: str, tmp_path: Path
) -> None:
    url = killed_while(missing, tmp_path)
    tried: list[str] = []
    shown_before = threading.Event()

    def say(name: str, _: Sequence[BaseMessage]) -> str:
        tried.append(name)
        assert shown_before.wait(10)  # those who were done are told while this one is at work
        return f"{name} speaks"

    with open_persistence(url) as kept:
        conversation = talk(say, THREE, saver=kept.checkpointer, store=kept.store)
        events: list[Any] = []
        for event in conversation.stream():
            events.append(event)
            if event["type"] == "token" and event["text"] == f"{told_last(missing)} speaks":
                shown_before.set()
        assert tried == [missing]
        shown = dict.fromkeys(map(str.lower, NAMES), "")
        for event in of_type(events, "token"):
            shown[event["voice"]] += event["text"]
        assert shown == {name.lower(): f"{name} speaks" for name in NAMES}
        assert [each["text"] for each in events[-1]["voices"]] == [
            f"{name} speaks" for name in NAMES
        ]
        assert [message.name for message in conversation.history()] == [None, *NAMES]


@pytest.mark.parametrize("missing", ["Analyst", "Tester"])
@pytest.mark.parametrize("on_loop", [False, True])
def test_a_message_after_a_kill_leaves_the_answers_of_voices_that_were_done(
    missing: str, on_loop: bool, tmp_path: Path
) -> None:
    url = killed_while(missing, tmp_path)
    with open_persistence(url) as kept:
        conversation = talk(who, THREE, saver=kept.checkpointer, store=kept.store)
        ask = conversation.ask
        answer = asyncio.run(conversation.aask("Next")) if on_loop else ask("Next")
        assert [each["voice"] for each in answer.voices] == ["analyst", "checker", "tester"]
        done = [name for name in NAMES if name != missing]
        messages = list(conversation.history())
        assert [message.name for message in messages] == [None, *done, None, *NAMES]
        assert [message.text for message in messages[1:3]] == [f"{name} speaks" for name in done]
        assert [turn_number(message) for message in messages] == [1, 1, 1, 2, 2, 2, 2]
        heard = {str(message.text) for request in sent_of(conversation) for message in request}
        assert {f"{name}: {name} speaks" for name in done} <= heard


def test_what_a_task_returns_has_the_name_that_langgraph_gives_it() -> None:
    assert RETURN == LANGGRAPHS_RETURN


def test_a_change_after_a_kill_leaves_the_answers_of_voices_that_were_done(tmp_path: Path) -> None:
    url = killed_while("Checker", tmp_path)
    tried: list[str] = []

    def say(name: str, _: Sequence[BaseMessage]) -> str:
        tried.append(name)
        return f"{name} speaks"

    with open_persistence(url) as kept:
        conversation = talk(say, THREE, saver=kept.checkpointer, store=kept.store)
        with pytest.raises(TurnPendingError):
            conversation.pin("Only 2013.")
        answer = conversation.resume()
        assert tried == ["Checker"]
        assert [each["text"] for each in answer.voices] == [f"{name} speaks" for name in NAMES]


def test_approvals_of_several_voices_are_asked_one_after_the_other_and_none_is_lost(
    tmp_path: Path,
) -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name != "Checker" and messages[-1].type != "tool":
            return call("run_sql", sql="SELECT count(*) FROM numbers a, numbers b")
        return f"{name} speaks"

    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        conversation = talk(
            say, THREE, database=database, limits=Limits(cost=CostThresholds(pairs=1_000_000))
        )
        events: list[Any] = list(conversation.stream("How many pairs?"))
        assert len(of_type(events, "approval_requested")) == 1
        assert events[-1]["status"] == "approval_requested"
        second = conversation.resume([{"type": "approve"}])
        assert second.status == "approval_requested"
        assert [each["voice"] for each in second.voices] == ["analyst", "checker"]
        last = conversation.resume([{"type": "reject", "message": "too slow"}])
        assert (last.status, last.text) == ("answered", "Tester speaks")
        assert len(sent_of(conversation)) == 5
        messages = list(conversation.history(limit=99))
        assert [message.name for message in messages] == [
            None,
            "Analyst",
            "run_sql",
            "Analyst",
            "Checker",
            "Tester",
            "run_sql",
            "Tester",
        ]
        assert_paired(messages)


def test_voices_that_wait_say_who_they_are_and_each_answer_is_told_once_under_its_name(
    tmp_path: Path,
) -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name != "Checker" and messages[-1].type != "tool":
            return call("run_sql", sql="SELECT count(*) FROM numbers a, numbers b")
        return f"{name} speaks"

    out = io.StringIO()
    screen = ConsoleScreen(Console(file=out, width=120))

    def read(events: Iterator[Any]) -> list[Any]:
        told = list(events)
        for event in told:
            screen.event(event)
        return told

    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        conversation = talk(
            say, THREE, database=database, limits=Limits(cost=CostThresholds(pairs=1_000_000))
        )
        first = read(conversation.stream("How many pairs?"))
        [asked] = of_type(first, "approval_requested")
        assert asked["voice"] == "analyst"
        assert asked["action_requests"][0]["description"].startswith("Analyst: ")
        assert [each["description"][:9] for each in conversation.approvals()] == ["Analyst: "]
        [interrupted] = conversation.graph.get_state(conversation.config).interrupts
        assert interrupted.value["action_requests"] == asked["action_requests"]
        assert [each["voice"] for each in first[-1]["voices"]] == ["checker"]
        second = read(conversation.stream(answer=[{"type": "approve"}]))
        assert of_type(second, "approval_requested")[0]["voice"] == "tester"
        last = read(conversation.stream(answer=[{"type": "approve"}]))
    assert [each["voice"] for each in last[-1]["voices"]] == ["analyst", "checker", "tester"]
    lines = out.getvalue().splitlines()
    said = [line for line in lines if line.endswith(" speaks") or line[:-1] in NAMES]
    assert said == [
        "Checker:",
        "Checker speaks",
        "Analyst:",
        "Analyst:",
        "Analyst speaks",
        "Tester:",
        "Tester:",
        "Tester speaks",
    ]


def test_a_tool_that_asks_a_person_asks_when_it_is_its_voices_turn() -> None:
    asked: list[str] = []

    @tool
    def confirm(what: str) -> str:
        """Ask the person."""
        asked.append(what)
        return str(interrupt(what))

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        return (
            f"{name} heard {messages[-1].text}"
            if messages[-1].type == "tool"
            else call("confirm", what=f"{name}?")
        )

    conversation = talk(say, Team(ANALYST, CHECKER), tools=[confirm])
    assert conversation.ask("Hello").status == "input_requested"
    assert conversation.resume("yes").status == "input_requested"
    assert [each["text"] for each in conversation.resume("no").voices] == [
        "Analyst heard yes",
        "Checker heard no",
    ]
    assert [
        message.text for message in conversation.history() if message.type == "ai" and message.text
    ] == [
        "Analyst heard yes",
        "Checker heard no",
    ]
    assert len(sent_of(conversation)) == 4


def test_the_calls_of_a_turn_are_counted_over_all_voices_and_for_each() -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        return call("recall_history", query="orders")

    conversation = talk(
        say, Team(ANALYST, CHECKER, TESTER, max_calls=7), context=LIMIT.replace(max_model_calls=3)
    )
    answer = conversation.ask("Hello")
    assert [each["voice"] for each in answer.voices] == ["analyst", "checker", "tester"]
    calls = Counter(
        request[0].text.partition("You are ")[2].partition(".")[0]
        for request in sent_of(conversation)
    )
    assert calls.total() == 7
    assert max(calls.values()) <= 3
    few = talk(say, Team(ANALYST, CHECKER, TESTER, max_calls=2))
    assert [each["voice"] for each in few.ask("Hello").voices] == [
        "analyst",
        "checker",
        "narrator",
    ]
    assert len(sent_of(few)) == 2


def test_a_voice_whose_context_is_too_long_is_asked_again_with_less_when_it_is_its_turn() -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        if name == "Checker" and sum(len(str(message.text)) for message in messages) > 6_000:
            raise ModelContextOverflowError("the context is too long")
        return f"{name} says " + "word " * 60

    conversation = talk(
        say, THREE, context=Context(model_limit=8_000), memory_tools=MemoryTools(recall=False)
    )
    events: list[Any] = []
    for turn in range(10):
        events += conversation.stream(f"question {turn}")
        assert [each["voice"] for each in events[-1]["voices"]] == ["analyst", "checker", "tester"]
        assert all("could not answer" not in each["text"] for each in events[-1]["voices"])
    assert of_type(events, "context_compressed")


def test_a_round_of_a_quiz_asks_its_players_at_once_and_then_the_quizmaster() -> None:
    conversation = quiz_talk(3)
    conversation.ask("Let us begin.")
    events: list[Any] = list(conversation.stream("I say 41."))
    started = of_type(events, "voice_started")
    asked = {event["voice"]: event.get("at_once", False) for event in reversed(started)}
    assert asked == {"ada": True, "ben": True, "quizmaster": False, "narrator": False}
    assert [event["voice"] for event in started][-2:] == ["quizmaster", "narrator"]


def test_a_cancelled_turn_leaves_no_call_running_and_goes_on_with_resume(
    server: ModelServer,
) -> None:
    hold = threading.Event()
    server.always(lambda request: model_server.say(f"{asked_of(request)} speaks", hold=hold))
    conversation = over_http(server, THREE)

    async def cancelled() -> None:
        turn = asyncio.create_task(conversation.aask("Hello"))
        while len(server.requests) < 3:
            await asyncio.sleep(0.01)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        async with asyncio.timeout(5):
            while len(asyncio.all_tasks()) > 1:  # LangGraph closes what it has open
                await asyncio.sleep(0.01)

    asyncio.run(cancelled())
    hold.set()
    assert [each["text"] for each in conversation.resume().voices] == [
        f"{name} speaks" for name in NAMES
    ]


def test_what_voices_made_ahead_stays_when_another_message_takes_the_place_of_an_approval(
    tmp_path: Path,
) -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name == "Analyst" and "wait" in messages[1].text and len(messages) == 2:
            return call("run_sql", sql="SELECT count(*) FROM numbers a, numbers b")
        return f"{name} speaks {len(messages)}"

    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        conversation = talk(
            say,
            Team(ANALYST, CHECKER),
            database=database,
            limits=Limits(cost=CostThresholds(pairs=1_000_000)),
        )
        assert conversation.ask("wait").status == "approval_requested"
        answer = conversation.ask("Go on")
        assert [each["voice"] for each in answer.voices] == ["analyst", "checker"]
        messages = list(conversation.history())
        assert [(message.name, message.text) for message in messages[3:5]] == [
            ("Checker", "Checker speaks 2"),
            (None, "Go on"),
        ]
        assert_paired(messages)


def test_a_message_that_comes_while_voices_answer_at_once_is_the_next_turn() -> None:
    conversations: list[Conversation] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        if name == "Checker" and len(messages) == 2:
            other = Conversation(conversations[0].graph, "t", context=LIMIT, when_busy="steer")
            other.steer("Only for 2013, please.", wait=False)
        return f"{name} speaks"

    conversations.append(talk(say, THREE))
    conversations[0].ask("Count the orders.")
    spoken = [(message.name, message.text) for message in conversations[0].history()]
    answers = [(name, f"{name} speaks") for name in NAMES]
    assert spoken == [
        (None, "Count the orders."),
        *answers,
        (None, "Only for 2013, please."),
        *answers,
    ]
