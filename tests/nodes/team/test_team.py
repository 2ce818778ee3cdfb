"""A team on one thread: who is asked, what each is shown, and what a turn leaves."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from rich.console import Console

from longtable.analyst.model import BuiltInAnalyst
from longtable.app.console.screen import ConsoleScreen
from longtable.base.errors import (
    ConfigError,
    ModelContextOverflowError,
    ProviderError,
    ProviderUnavailableError,
)
from longtable.base.events import Event
from longtable.graph import (
    CompactionPolicy,
    Context,
    ContextProvider,
    Conversation,
    Database,
    FreeChat,
    Limits,
    MemoryTools,
    Mode,
    Persona,
    Scene,
    Team,
    Workflow,
    build_graph,
    open_persistence,
)
from longtable.graph.running.answers import answer_of
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import mark_of
from longtable.modes import Werewolf
from longtable.nodes.team.mode_hook import MODE
from longtable.tools.results.result_store import ResultStore
from longtable.tools.sql.verdict import CostThresholds
from tests.memory.messages.test_rounds import assert_paired
from tests.support.models import ScriptedModel, answered_by, call, sent_of
from tests.tools.databases import make

ANALYST = Persona("analyst", "You write SQL.", aliases=("分析师",))
CHECKER = Persona("checker", "You check.", nicknames=("Chuck",))
REVIEWER = Persona("reviewer", "You judge.", tools=())
Say = Callable[[str, Sequence[BaseMessage]], AIMessage | str]


def speaker(messages: Sequence[BaseMessage]) -> str:
    """Return who a request is made as."""
    return messages[0].text.partition("You are ")[2].partition(".")[0]


def model_of(say: Say) -> ScriptedModel:
    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        said = say(speaker(messages), messages)
        return AIMessage(said) if isinstance(said, str) else said

    return ScriptedModel(say=answer)


def talk(
    say: Say,
    team: Team | None,
    *,
    saver: Any = None,
    store: Any = None,
    context: Context | None = None,
    **more: Any,
) -> Conversation:
    model = model_of(say)
    graph = build_graph(model=model, team=team, **more).compile(
        saver or InMemorySaver(), store=store or InMemoryStore()
    )
    context = context or Context(model_limit=32_000)
    return answered_by(model, Conversation(graph, "t", context=context))


def who(name: str, _: Sequence[BaseMessage]) -> str:
    return f"{name} speaks"


def of_type(events: Sequence[Event], kind: str) -> list[Any]:
    return [event for event in events if event["type"] == kind]


def test_a_workflow_asks_its_steps_in_order_and_each_hears_those_before() -> None:
    heard: dict[str, list[str]] = {}

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        heard[name] = [str(message.text) for message in messages[1:]]
        return f"{name} speaks"

    answer = talk(say, Team(ANALYST, CHECKER, REVIEWER, mode=Workflow())).ask(
        "@checker How many orders?"
    )
    assert [(each["voice"], each["text"]) for each in answer.voices] == [
        ("analyst", "Analyst speaks"),
        ("checker", "Checker speaks"),
        ("reviewer", "Reviewer speaks"),
    ]
    assert answer.text == "Analyst speaks\n\nReviewer speaks"
    assert heard["Analyst"] == ["How many orders?"]
    assert heard["Reviewer"] == [
        "How many orders?",
        "Analyst: Analyst speaks",
        "Checker: Checker speaks",
    ]


def test_the_transcript_keeps_the_message_with_its_mention_and_each_answer_with_its_speaker() -> (
    None
):
    conversation = talk(who, Team(ANALYST, CHECKER))
    conversation.ask("@Chuck hello")
    messages = list(conversation.history())
    assert [(message.text, message.name) for message in messages] == [
        ("@Chuck hello", None),
        ("Checker speaks", "Checker"),
    ]


def test_in_free_chat_the_mentioned_answer_else_all_and_none_hears_the_others_before_the_next_turn() -> (
    None
):
    heard: list[tuple[str, list[str]]] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        heard.append((name, [str(message.text) for message in messages[1:]]))
        return f"{name} speaks"

    conversation = talk(say, Team(ANALYST, CHECKER, mode=FreeChat()))
    assert [each["voice"] for each in conversation.ask("Hello").voices] == ["analyst", "checker"]
    # They are asked at once.
    assert sorted(heard) == [("Analyst", ["Hello"]), ("Checker", ["Hello"])]
    assert [each["voice"] for each in conversation.ask("@分析师 and you?").voices] == ["analyst"]
    assert heard[-1] == (
        "Analyst",
        ["Hello", "Analyst speaks", "Checker: Checker speaks", "and you?"],
    )


def test_one_that_fails_in_free_chat_leaves_the_others_and_a_visible_notice() -> None:
    def say(name: str, _: Sequence[BaseMessage]) -> str:
        if name == "Analyst":
            raise ProviderUnavailableError("the server is down")
        return "I am here"

    answer = talk(
        say, Team(ANALYST, CHECKER), context=Context(model_limit=32_000, max_retries=0)
    ).ask("Hello")
    assert [each["voice"] for each in answer.voices] == ["analyst", "checker"]
    assert answer.voices[0]["text"].startswith("Analyst could not answer: ")
    assert answer.voices[1]["text"] == "I am here"


def test_one_that_fails_in_a_workflow_ends_the_run_and_resume_asks_it_again() -> None:
    tried: list[str] = []

    def say(name: str, _: Sequence[BaseMessage]) -> str:
        tried.append(name)
        if name == "Checker" and tried.count("Checker") == 1:
            raise ProviderUnavailableError("the server is down")
        return f"{name} speaks"

    conversation = talk(say, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")))
    with pytest.raises(ProviderError):
        conversation.ask("Hello")
    assert conversation.resume().text == "Analyst speaks\n\nChecker speaks"
    assert tried == ["Analyst", "Checker", "Checker"]


def reviewing(times: int) -> Say:
    """Return what is said where the reviewer sends the work back so many times."""
    sent = iter(range(times))

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name == "Reviewer" and messages[-1].type != "tool" and next(sent, None) is not None:
            return call("send_back", reason="the year is wrong")
        return f"{name} speaks" + (
            " again" if "sent back: the year is wrong" in messages[0].text else ""
        )

    return say


def test_the_reviewer_sends_back_at_most_twice() -> None:
    team = Team(ANALYST, CHECKER, REVIEWER, mode=Workflow())
    assert len(talk(reviewing(0), team).ask("Hello").voices) == 3
    once = talk(reviewing(1), team).ask("Hello")
    assert [each["voice"] for each in once.voices] == ["analyst", "checker", "reviewer"] * 2
    assert once.voices[3]["text"] == "Analyst speaks again"
    assert len(talk(reviewing(9), team).ask("Hello").voices) == 9


def test_a_workflows_state_is_kept_with_each_answer_and_there_after_a_restart(
    tmp_path: Path,
) -> None:
    team = Team(
        ANALYST,
        CHECKER,
        mode=Workflow("coder", "tester", roles={"coder": "analyst", "tester": "checker"}),
    )
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    for text in ("Count the orders.", "And by year?"):
        with open_persistence(url) as persistence:
            conversation = talk(who, team, saver=persistence.checkpointer, store=persistence.store)
            conversation.ask(text)
            messages = list(conversation.history())
    state = mark_of(messages[-1], MODE)
    assert state == {
        "name": "workflow",
        "task": "Count the orders.",
        "follow_ups": 1,
        "current_node": "",
        "sent_back": 0,
        "artefacts": {"coder": "Analyst speaks", "tester": "Checker speaks"},
        "judged": "analyst",
    }
    assert mark_of(messages[-2], MODE)["current_node"] == "tester"


def test_a_later_message_is_a_numbered_follow_up_of_the_task() -> None:
    systems: list[str] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        systems.append(messages[0].text)
        return "done"

    conversation = talk(say, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")))
    for text in ("Count the orders.", "By year.", "By month."):
        conversation.ask(text)
    assert "follow-up" not in systems[0]
    assert "follow-up 2 of the task: Count the orders." in systems[-1]


def test_a_turn_has_a_total_of_calls_and_says_so_before_the_first() -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        return call("recall_history", query="orders")

    team = Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker"), max_calls=5)
    conversation = talk(say, team, context=Context(model_limit=32_000, max_model_calls=3))
    events = list(conversation.stream("Hello"))
    [told] = of_type(events, "team_turn")
    assert told["most_calls"] == 5
    assert set(told["tokens"]) == {"analyst", "checker"}
    assert events.index(told) < events.index(of_type(events, "voice_started")[0])
    answer = events[-1]
    assert answer["type"] == "answer"
    assert [each["voice"] for each in answer["voices"]] == ["analyst", "checker"]
    assert len(sent_of(conversation)) == 5


def test_events_name_the_voice_they_belong_to() -> None:
    events = list(
        talk(who, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker"))).stream("Hello")
    )
    assert [event["voice"] for event in of_type(events, "voice_started")] == ["analyst", "checker"]
    assert [event["voice"] for event in of_type(events, "context_usage")] == ["analyst", "checker"]


def test_unknown_mentions_stay_text_and_are_told() -> None:
    conversation = talk(who, Team(ANALYST, CHECKER))
    events = list(conversation.stream("@bob hello"))
    assert of_type(events, "unknown_mentions")[0]["words"] == ["bob"]
    assert sent_of(conversation)[0][-1].text == "@bob hello"


def test_a_persona_is_offered_its_own_tools_and_may_call_no_others() -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name == "Reviewer" and messages[-1].type != "tool":
            return call("recall_history", query="orders")
        return messages[-1].text

    answer = talk(say, Team(ANALYST, REVIEWER, mode=Workflow("analyst", "reviewer"))).ask("Hello")
    assert "there is no tool 'recall_history'" in answer.text


@pytest.mark.parametrize(
    ("question", "doubt"),
    [
        (
            "What did all orders cost?",
            "Look at this: SUM(orders.total): 2 rows of orders count 3 times",
        ),
        ("所有订单一共多少钱？", "请核对： 连接使行重复"),
    ],
)
def test_a_checker_is_offered_check_sql_by_its_name_and_the_built_in_one_finds_a_join_that_repeats_rows(
    question: str, doubt: str, tmp_path: Path
) -> None:
    path = make(
        tmp_path,
        "sqlite",
        """CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL NOT NULL);
        CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders(id));
        INSERT INTO orders VALUES (1, 5), (2, 7);
        INSERT INTO lines VALUES (1, 1), (2, 1), (3, 2)""",
    )

    def say(_: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        return call("run_sql", sql=WRONG) if messages[-1].type == "human" else "They cost 17."

    team = Team(
        ANALYST,
        Persona("checker", model=BuiltInAnalyst(), tools=("check_sql",)),
        mode=Workflow("analyst", "checker"),
    )
    with Database.open(f"sqlite:///{path}") as database:
        results = ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC))
        answer = talk(say, team, database=database, results=results).ask(question)
    assert doubt in answer.text


WRONG = "SELECT sum(orders.total) FROM orders JOIN lines ON lines.order_id = orders.id"


def test_team_and_mode_may_change_between_turns() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    talk(who, None, saver=saver, store=store).ask("Alone")
    talk(
        who, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")), saver=saver, store=store
    ).ask("Together")
    last = talk(who, Team(CHECKER, REVIEWER), saver=saver, store=store)
    assert [each["voice"] for each in last.ask("Again").voices] == ["checker", "reviewer"]
    assert [message.name for message in last.history() if message.type == "ai"] == [
        *(None, "Analyst", "Checker", "Checker", "Reviewer")
    ]
    alone = talk(who, None, saver=saver, store=store).ask("Alone again")
    assert (alone.voices, alone.status) == ([], "answered")


def test_a_persona_that_is_gone_when_its_turn_goes_on_is_told_and_the_next_is_asked() -> None:
    saver, store = InMemorySaver(), InMemoryStore()

    def fails(name: str, _: Sequence[BaseMessage]) -> str:
        raise ProviderUnavailableError(name)

    with pytest.raises(ProviderError):
        talk(
            fails,
            Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")),
            saver=saver,
            store=store,
        ).ask("Hello")
    answer = talk(who, Team(CHECKER, REVIEWER, mode=FreeChat()), saver=saver, store=store).resume()
    assert [each["text"] for each in answer.voices] == [
        "analyst has left the team and did not answer.",
        "Checker speaks",
    ]


class Silent(Mode):
    """A mode that names nobody."""

    def next(self, scene: Scene) -> str | None:
        return None


class Endless(Mode):
    """A mode that never ends."""

    def next(self, scene: Scene) -> str | None:
        return next(iter(scene.names))


class Wrong(Mode):
    """A mode that names somebody who is not there."""

    def next(self, scene: Scene) -> str | None:
        return "bob"


def test_a_mode_that_names_nobody_gives_a_notice_and_one_that_never_ends_is_ended_by_the_total() -> (
    None
):
    nobody = talk(who, Team(ANALYST, mode=Silent())).ask("Hello")
    assert (nobody.status, nobody.text) == (
        "nobody",
        "Nobody in the team was to answer this message.",
    )
    endless = talk(who, Team(ANALYST, mode=Endless(), max_calls=4)).ask("Hello")
    assert [each["voice"] for each in endless.voices] == ["analyst"] * 4 + ["narrator"]
    assert endless.status == "call_budget"
    assert endless.text.startswith("The team has made its 4 model calls of this turn, and Analyst")
    with pytest.raises(ConfigError, match="names 'bob'"):
        talk(who, Team(ANALYST, mode=Wrong())).ask("Hello")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Team(), "1 to 16 personas"),
        (lambda: Team(ANALYST, ANALYST), "have the id 'analyst'"),
        (lambda: Team(ANALYST, Persona("b", aliases=("Analyst",))), "would mention both"),
        (lambda: Team(Persona("b", aliases=("all",))), "would mention both b and everybody"),
        (
            lambda: Team(ANALYST, mode=Workflow("analyst", "checker")),
            "nobody does the workflow's checker",
        ),
        (lambda: Workflow("a", "a"), "different steps"),
        (lambda: Workflow("a", send_back=-1), "send_back is a whole number"),
        (lambda: Persona("Big Name"), "is lower case: a letter"),
        (lambda: Persona("a", aliases="alias"), "aliases is a list"),
        (lambda: Persona("a", rounds=0), "rounds is a whole number"),
        (lambda: Persona("a", model="gpt"), "model is a chat model"),  # type: ignore[arg-type]  # what a person may write
        (lambda: Team(ANALYST, max_calls=0), "max_calls is a whole number"),
        (
            lambda: build_graph(
                model=model_of(who), team=Team(Persona("a", tools=("run_python",)))
            ),
            "there is no tool run_python",
        ),
        (
            lambda: build_graph(
                model=model_of(who),
                team=Team(ANALYST, mode=FreeChat(policy=CompactionPolicy(strategy="none"))),
            ),
            "asks for strategy 'none', known are rolling",
        ),
        (lambda: Team(ANALYST, mode=FreeChat(policy="rolling")), "policy is a CompactionPolicy"),  # type: ignore[arg-type]  # as a person may
        (lambda: Team("analyst"), "1 to 16 personas"),  # type: ignore[arg-type]  # as above
        (lambda: Team(ANALYST, mode="workflow"), "mode must be"),  # type: ignore[arg-type]  # as above
    ],
)
def test_a_wrong_team_is_refused_with_what_is_wrong(make: Callable[[], object], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make()


def test_each_voice_stays_under_its_threshold_in_pairs_and_nothing_is_lost_over_a_long_talk() -> (
    None
):
    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        return f"{name} says " + "word " * 60

    team = Team(
        ANALYST, CHECKER, Persona("tester", rounds=2), mode=Workflow("analyst", "checker", "tester")
    )
    conversation = talk(
        say, team, context=Context(model_limit=4_000), memory_tools=MemoryTools(recall=False)
    )
    for turn in range(25):
        events = list(conversation.stream(f"question {turn} " + "and so on " * 20))
        assert all(event["fraction"] <= 0.6 for event in of_type(events, "context_usage")[-1:])
    for request in sent_of(conversation):
        assert_paired(request)
    texts = [message.text for message in conversation.history(limit=200)]
    assert [text.split()[1] for text in texts if text.startswith("question")] == [
        str(turn) for turn in range(25)
    ]
    assert len(texts) == 100
    assert conversation.view()


def test_recall_brings_back_nothing_that_a_colleague_says_in_this_turn() -> None:
    found: list[str] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if messages[-1].type == "tool":
            found.append(messages[-1].text)
            return "I looked"
        return (
            call("recall_history", query="zanzibar")
            if name == "Checker"
            else "the password of the island is zanzibar"
        )

    conversation = talk(say, Team(ANALYST, CHECKER))
    conversation.ask("Which island?")
    assert "the password" not in found[0]
    assert '"found":0' in found[0].replace(" ", "")


def test_a_query_of_one_voice_waits_for_approval_and_the_next_voice_is_asked_after_it(
    tmp_path: Path,
) -> None:
    costly = "SELECT count(*) FROM numbers a, numbers b"

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name == "Checker" and messages[-1].type != "tool":
            return call("run_sql", sql=costly)
        return f"{name} speaks"

    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        team = Team(ANALYST, CHECKER, REVIEWER, mode=Workflow())
        conversation = talk(
            say, team, database=database, limits=Limits(cost=CostThresholds(pairs=1_000_000))
        )
        waiting = conversation.ask("How many pairs?")
        assert (waiting.status, [each["voice"] for each in waiting.voices]) == (
            "approval_requested",
            ["analyst"],
        )
        done = conversation.resume([{"type": "approve"}])
        assert [each["voice"] for each in done.voices] == ["analyst", "checker", "reviewer"]
        assert done.queries[0]["row_count"] == 1
        last = sent_of(conversation)[-1]
        assert "Checker: Checker speaks\n[Checker ran " in last[-1].text
        assert [message.type for message in last] == ["system", "human", "human", "human"]


def test_a_message_that_joins_the_turn_is_heard_by_the_next_voice() -> None:
    conversations: list[Conversation] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        if name == "Analyst":
            other = Conversation(
                conversations[0].graph, "t", context=Context(model_limit=32_000), when_busy="steer"
            )
            other.steer("Only for 2013, please.", wait=False)
        return f"{name} speaks"

    conversations.append(talk(say, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker"))))
    conversations[0].ask("Count the orders.")
    assert "Only for 2013, please." in str(sent_of(conversations[0])[1])


def test_a_voice_whose_provider_says_the_context_is_too_long_is_asked_again_with_less() -> None:
    sizes: list[tuple[str, int]] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> str:
        size = sum(len(str(message.text)) for message in messages)
        sizes.append((name, size))
        if name == "Checker" and size > 6_000:
            raise ModelContextOverflowError("the context is too long")
        return f"{name} says " + "word " * 60

    conversation = talk(
        say,
        Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")),
        context=Context(model_limit=8_000),
        memory_tools=MemoryTools(recall=False),
    )
    for turn in range(14):
        assert [each["voice"] for each in conversation.ask(f"question {turn}").voices] == [
            "analyst",
            "checker",
        ]
    assert any(name == "Checker" and size > 6_000 for name, size in sizes)


KILLED = """
import os, signal, sys
from tests.nodes.team.test_team import ANALYST, CHECKER, REVIEWER, talk
from longtable.graph import Team, Workflow, open_persistence

def say(name, messages):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{name} speaks"

with open_persistence(sys.argv[1]) as kept:
    talk(say, Team(ANALYST, CHECKER, REVIEWER, mode=Workflow()), saver=kept.checkpointer, store=kept.store).ask("Hello")
"""


@pytest.mark.parametrize(
    ("killed", "asked"),
    [("Analyst", ["Analyst", "Checker", "Reviewer"]), ("Reviewer", ["Reviewer"])],
)
def test_a_turn_killed_between_voices_goes_on_at_the_voice_that_is_missing(
    killed: str, asked: list[str], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, url, killed],
        cwd=root,
        env={**os.environ},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    tried: list[str] = []

    def say(name: str, _: Sequence[BaseMessage]) -> str:
        tried.append(name)
        return f"{name} speaks"

    with open_persistence(url) as kept:
        conversation = talk(
            say,
            Team(ANALYST, CHECKER, REVIEWER, mode=Workflow()),
            saver=kept.checkpointer,
            store=kept.store,
        )
        assert conversation.resume().text == "Analyst speaks\n\nReviewer speaks"
        assert tried == asked
        assert [message.name for message in conversation.history()] == [
            None,
            "Analyst",
            "Checker",
            "Reviewer",
        ]


def test_a_resent_message_gets_the_last_voices_answer_again() -> None:
    conversation = talk(who, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")))
    conversation.ask("Hello", id="q1")
    assert conversation.ask("Hello", id="q1").text == "Checker speaks"
    assert len(sent_of(conversation)) == 2


def test_a_message_resent_after_a_failure_between_voices_goes_on_at_the_voice_that_is_missing() -> (
    None
):
    tried: list[str] = []

    def say(name: str, _: Sequence[BaseMessage]) -> str:
        tried.append(name)
        if tried == ["Analyst", "Checker"]:
            raise ProviderUnavailableError("the server is down")
        return f"{name} speaks"

    conversation = talk(
        say,
        Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")),
        context=Context(model_limit=32_000, max_retries=0),
    )
    with pytest.raises(ProviderError):
        conversation.ask("Hello", id="q1")
    assert conversation.ask("Hello", id="q1").text == "Analyst speaks\n\nChecker speaks"
    assert tried == ["Analyst", "Checker", "Checker"]


def test_the_view_of_each_persona_may_be_looked_at() -> None:
    conversation = talk(who, Team(ANALYST, CHECKER, mode=Workflow("analyst", "checker")))
    conversation.ask("Hello")
    assert [message.text for message in conversation.view("analyst")[1:]] == [
        "Hello",
        "Analyst speaks",
        "Checker: Checker speaks",
    ]
    assert [message.text for message in conversation.view("checker")[1:]] == [
        "Hello",
        "Analyst: Analyst speaks",
        "Checker speaks",
    ]
    with pytest.raises(ConfigError, match="no persona 'bob'"):
        conversation.view("bob")


@pytest.mark.parametrize(
    ("text", "voices", "heard", "unknown"),
    [
        ("@", ["analyst", "checker"], "@", []),
        ("@ hello", ["analyst", "checker"], "@ hello", []),
        ("@all hello", ["analyst", "checker"], "hello", []),
        ("@所有人 你好", ["analyst", "checker"], "你好", []),
        ("＠ＣＨＵＣＫ, hello", ["checker"], "hello", []),
        ("write to bob@checker.com", ["analyst", "checker"], "write to bob@checker.com", []),
        ("@bob and @Chuck", ["checker"], "@bob and Checker", ["bob"]),
    ],
)
def test_whom_a_message_mentions_and_what_they_are_sent(
    text: str, voices: list[str], heard: str, unknown: list[str]
) -> None:
    conversation = talk(who, Team(ANALYST, CHECKER))
    events: list[Any] = list(conversation.stream(text))
    assert [each["voice"] for each in events[-1]["voices"]] == voices
    assert {str(request[-1].text) for request in sent_of(conversation)} == {heard}
    assert [
        word for event in of_type(events, "unknown_mentions") for word in event["words"]
    ] == unknown


def test_work_that_was_sent_back_often_enough_is_refused_by_the_tool() -> None:
    errors: list[str] = []

    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if name != "Reviewer":
            return f"{name} speaks"
        last = messages[-1]
        if last.type == "tool":
            errors.extend([last.text] if getattr(last, "status", "") == "error" else [])
            return "Reviewer has judged"
        return call("send_back", f"b{len(messages)}", reason="the year is wrong")

    team = Team(ANALYST, CHECKER, REVIEWER, mode=Workflow(send_back=1))
    answer = talk(say, team).ask("How many orders?")
    assert [each["voice"] for each in answer.voices] == ["analyst", "checker", "reviewer"] * 2
    assert len(errors) == 1
    assert "not sent back: it was 1 times in this turn" in errors[0]


def test_the_figures_of_each_voice_are_flagged_under_its_name(tmp_path: Path) -> None:
    def say(name: str, messages: Sequence[BaseMessage]) -> AIMessage | str:
        if messages[-1].type != "tool":
            return call("run_sql", sql="SELECT 41 AS n")
        return {"Analyst": "There are 977 orders.", "Checker": "There are 41 orders."}[name]

    out = io.StringIO()
    screen = ConsoleScreen(Console(file=out, width=120))
    with Database.open(str(make(tmp_path, "sqlite"))) as database:
        team = Team(ANALYST, CHECKER, mode=FreeChat(together=False))
        events = list(talk(say, team, database=database).stream("How many orders?"))
    for event in events:
        screen.event(event)
    answer = answer_of(events)
    assert [each.get("unsupported_numbers") for each in answer.voices] == [["977"], None]
    assert answer.unsupported_numbers == ["977"]
    shown = out.getvalue()
    assert shown.index("There are 977 orders.") < shown.rindex("977") < shown.index("Checker:")


def test_the_turn_of_a_secret_mode_costs_one_number_for_the_team() -> None:
    personas = [Persona(name) for name in ("ada", "ben", "cleo")]
    conversation = talk(who, Team(*personas, mode=Werewolf(seed=1), max_calls=2))
    [told] = of_type(list(conversation.stream("Begin.")), "team_turn")
    assert list(told["tokens"]) == ["team"]


def test_in_a_secret_mode_no_count_tells_one_voice_from_another() -> None:
    personas = [Persona(name) for name in ("ada", "ben", "cleo", "dan")]
    conversation = talk(who, Team(*personas, mode=Werewolf(seed=1)))
    events = list(conversation.stream("Begin."))
    counted = of_type(events, "context_usage")
    assert {event["voice"] for event in counted} == {"ada", "ben", "cleo", "dan"}
    [told] = of_type(events, "team_turn")
    assert counted[0]["total"] == told["tokens"]["team"]
    assert all(event["of_team"] for event in counted)
    # Each count is that of the one before and of what was said since, whoever is asked.
    said = [message for message in conversation.history() if message.type == "ai"]
    tokens = [counter("o200k_base").message(message) for message in said]
    grown = [late["total"] - early["total"] for early, late in pairwise(counted)]
    assert grown == tokens[: len(grown)]
    usage = conversation.graph.get_state(conversation.config).values["usage"]
    assert usage["total"] == counted[-1]["total"]
    assert {spent.voice for spent in conversation.usage()} == {"team"}
    out = io.StringIO()
    screen = ConsoleScreen(Console(file=out, width=120))
    for event in events:
        screen.event(event)
    assert "context (team)" in out.getvalue()


def test_material_is_counted_for_the_team_in_a_secret_mode() -> None:
    material = ContextProvider(name="news", provide=lambda _: "It rains in the village.")
    personas = [Persona(name) for name in ("ada", "ben", "cleo")]
    team = Team(*personas, mode=Werewolf(seed=1))
    events = list(talk(who, team, hooks=[material]).stream("Begin."))
    passed = [event for event in of_type(events, "context_usage") if "passed" in event["parts"]]
    assert len(passed) == 6
    assert all(event["of_team"] for event in passed)


def test_the_gauge_shows_the_voice_with_the_largest_share_under_its_name() -> None:
    large = Persona("analyst", "You write SQL. " + "Be careful. " * 200)
    team = Team(large, CHECKER, mode=Workflow("analyst", "checker"))
    events = list(talk(who, team).stream("Hello"))
    usage = answer_of(events).usage
    assert usage is not None
    assert usage.get("voice") == "analyst"
    out = io.StringIO()
    screen = ConsoleScreen(Console(file=out, width=120))
    for event in events:
        screen.event(event)
    [gauge] = [line for line in out.getvalue().splitlines() if line.startswith("context")]
    assert gauge.startswith("context (Analyst) ")
    assert f" {usage['calibrated']:,} / 32,000" in gauge


class Counting(Mode):
    """A mode whose state is no JSON from the first turn on."""

    def state(self, scene: Scene) -> dict[str, Any]:
        return {"voices": {1, 2}}


def test_a_state_that_is_no_json_is_refused_before_a_call_is_paid() -> None:
    conversation = talk(who, Team(ANALYST, mode=Counting()))
    with pytest.raises(ConfigError, match="state of the mode own must be plain JSON"):
        conversation.ask("Hello")
    assert sent_of(conversation) == []


class Looping(Mode):
    """A mode whose state is no JSON once somebody has answered."""

    def state(self, scene: Scene) -> dict[str, Any]:
        voices: list[Any] = [voice for voice, _ in scene.answers]
        if voices:
            voices.append(voices)
        return {"voices": voices, "answers": len(scene.answers)}


def test_an_answer_that_is_paid_for_stays_where_the_state_after_it_is_no_json() -> None:
    conversation = talk(who, Team(ANALYST, mode=Looping()))
    assert conversation.ask("Hello").text == "Analyst speaks"
    state = mark_of(list(conversation.history())[-1], MODE)
    assert state == {"name": "own", "voices": "['analyst', [...]]", "answers": 1}


def test_a_turn_in_which_nobody_speaks_has_an_empty_list_of_voices() -> None:
    events = list(talk(who, Team(ANALYST, mode=Silent())).stream("Hello"))
    assert events[-1].get("voices") == []


def test_what_code_says_at_the_end_of_a_turn_is_no_model_call() -> None:
    conversation = talk(who, Team(ANALYST, mode=Endless(), max_calls=2))
    conversation.ask("Hello")
    assert {spent.voice for spent in conversation.usage()} == {"analyst"}


def test_a_personas_own_model_of_unknown_limit_has_that_of_the_context() -> None:
    own = model_of(who)
    own.profile = {}
    team = Team(Persona("analyst", model=own), CHECKER)
    conversation = talk(who, team, context=Context(model_limit=9_000))
    conversation.ask("Hello")
    voices = conversation.graph.get_state(conversation.config).values["brief"]["voices"]
    assert [voice["limit"] for voice in voices.values()] == [9_000, 9_000]
