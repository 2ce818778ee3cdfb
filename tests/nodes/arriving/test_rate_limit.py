"""Turns of an owner are limited, across all who share the store; refused ones write nothing."""

import asyncio
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import (
    ConfigError,
    MessageTooLongError,
    ProviderRefusedError,
    ProviderUnavailableError,
    RateLimitedError,
)
from longtable.graph import (
    Context,
    Conversation,
    Limits,
    RateLimit,
    build_graph,
    delete_thread,
    open_persistence,
)
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server

CONTEXT = Context(model_limit=16_000)
PIPES: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


class Clock:
    """Seconds that pass when they are told to."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def talk(
    limit: RateLimit, thread: str, owner: str | None, *, store: Any = None, saver: Any = None
) -> Conversation:
    model = ScriptedModel(say=lambda messages: AIMessage("yes"))
    app: Any = build_graph(model=model, limits=Limits(rate=limit)).compile(
        checkpointer=saver or InMemorySaver(), store=store
    )
    return Conversation(app, thread, context=CONTEXT.replace(owner=owner))


def test_an_owner_has_so_many_turns_and_is_told_how_long_to_wait() -> None:
    clock = Clock()
    limit = RateLimit(turns=2, seconds=60, clock=clock)
    ann, other_thread, bob = (
        talk(limit, "a", "ann"),
        talk(limit, "b", "ann"),
        talk(limit, "c", "bob"),
    )
    ann.ask("one")
    clock.now += 50
    with pytest.raises(MessageTooLongError):
        ann.ask("x" * 9_000)  # refused for another reason: not counted
    asyncio.run(other_thread.aask("two"))
    with pytest.raises(RateLimitedError) as caught:
        ann.ask("three")
    assert caught.value.wait_s == 10
    assert "10 s" in caught.value.user_text("en")
    assert "2" in caught.value.user_text("zh")
    assert [message.text for message in ann.history()] == ["one", "yes"]
    bob.ask("mine")
    clock.now += 10
    assert ann.ask("three").status == "answered"
    with pytest.raises(RateLimitedError):
        ann.ask("four")


def test_long_waits_are_told_in_minutes() -> None:
    error = RateLimitedError(turns=20, seconds=3_600, wait_s=754.3)
    assert error.user_text("en") == "No more than 20 questions in 60 minutes: try again in 13 min."
    assert "60 分钟" in error.user_text("zh")
    assert "13 分钟" in error.user_text("zh")


ASK = """
import sys
from langchain_core.messages import AIMessage
from longtable.graph import Context, Conversation, Limits, RateLimit, RateLimitedError, build_graph, open_persistence
from tests.support.models import ScriptedModel

url, name = sys.argv[1:]
graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes")), limits=Limits(rate=RateLimit(turns=4, seconds=600)))
with open_persistence(url) as kept:
    app = graph.compile(checkpointer=kept.checkpointer, store=kept.store)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(4):
        try:
            Conversation(app, f"{name}-{number}", context=Context(model_limit=16_000, owner="ann")).ask("hello")
            print("answered", flush=True)
        except RateLimitedError:
            print("limited", flush=True)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_processes_that_share_a_store_count_together(kind: str, tmp_path: Path) -> None:
    url = postgres_server().create() if kind == "postgres" else f"sqlite:///{tmp_path / 'chat.db'}"
    command = [sys.executable, "-c", ASK, url]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen([*command, name], **PIPES))
            for name in ("one", "two")
        ]
        assert [process.stdout.readline() for process in processes if process.stdout] == [
            "ready\n"
        ] * 2
        for process in processes:  # both begin at once
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        said = Counter(
            " ".join(process.communicate(timeout=60)[0] for process in processes).split()
        )
    assert said["answered"] + said["limited"] == 8
    # Two that begin at the same moment may let one or two more through.
    assert 4 <= said["answered"] <= 6
    with open_persistence(url) as kept:
        later = talk(
            RateLimit(turns=4, seconds=600),
            "later",
            "ann",
            store=kept.store,
            saver=kept.checkpointer,
        )
        with pytest.raises(RateLimitedError):
            later.ask("one more")


def test_people_without_a_name_do_not_share_one_allowance() -> None:
    limit = RateLimit(turns=1, seconds=600)
    assert [talk(limit, thread, None).ask("one").status for thread in "ab"] == ["answered"] * 2
    nameless = talk(limit, "c", None)
    nameless.ask("one")
    with pytest.raises(RateLimitedError):
        nameless.ask("two")


def test_of_a_deleted_thread_no_count_is_left(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        for owner in (None, "ann"):
            thread_id = f"gone-{owner}"
            talk(
                RateLimit(turns=5, seconds=600),
                thread_id,
                owner,
                store=kept.store,
                saver=kept.checkpointer,
            ).ask("one")
            delete_thread(kept, thread_id, all_owners=True)
        assert "gone" not in str(
            [(item.key, item.value) for item in kept.store.search(("longtable",))]
        )


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_a_turn_whose_provider_is_down_is_not_counted_and_no_resume_gains_one(
    stored: bool, asynchronous: bool
) -> None:
    down: list[Exception] = [ConnectionError(), ConnectionError(), ConnectionError()]

    def say(_: Any) -> AIMessage:
        if down:
            raise down.pop()
        return AIMessage("yes")

    limit = RateLimit(turns=2, seconds=600)
    graph = build_graph(model=ScriptedModel(say=say), limits=Limits(rate=limit))
    app: Any = graph.compile(
        checkpointer=InMemorySaver(), store=InMemoryStore() if stored else None
    )
    talk = Conversation(app, "a", context=CONTEXT.replace(owner="ann"))

    def ask(text: str) -> str:
        return (asyncio.run(talk.aask(text)) if asynchronous else talk.ask(text)).status

    with pytest.raises(ProviderUnavailableError):
        ask("one")
    for _ in range(2):  # of the same turn: it was given back once
        with pytest.raises(ProviderUnavailableError):
            talk.resume()
    assert [ask("two"), ask("three")] == ["answered"] * 2
    with pytest.raises(RateLimitedError):
        ask("four")


def test_a_turn_that_the_provider_refuses_for_what_was_sent_stays_counted() -> None:
    class BadRequest(Exception):
        status_code = 400

    def say(_: Any) -> AIMessage:
        raise BadRequest

    limit = RateLimit(turns=1, seconds=600)
    app: Any = build_graph(model=ScriptedModel(say=say), limits=Limits(rate=limit)).compile(
        checkpointer=InMemorySaver()
    )
    ann = CONTEXT.replace(owner="ann")
    with pytest.raises(ProviderRefusedError):
        Conversation(app, "a", context=ann).ask("one")
    with pytest.raises(RateLimitedError):
        Conversation(app, "b", context=ann).ask("two")


def test_turns_at_once_in_one_process_share_one_allowance() -> None:
    limit, store = RateLimit(turns=5, seconds=600), InMemoryStore()

    def turn(number: int) -> bool:
        try:
            limit.check("ann", "a", str(number), store)
        except RateLimitedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(turn, range(16))) == 5


def test_a_store_that_fails_costs_nobody_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Down(InMemoryStore):
        def batch(self, ops: Any) -> Any:
            raise OSError("hunter2")

    limit = RateLimit()
    limit.check("ann", "a", "run", Down())
    limit.give_back("ann", "a", "run", Down())
    assert "OSError" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"turns": 0},
        {"seconds": 0},
        {"turns": 1.5},
        {"turns": True},
        {"turns": "5"},
        {"turns": 10_001},
    ],
)
def test_a_wrong_limit_is_refused_when_it_is_made(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=f"RateLimit.{next(iter(wrong))}"):
        RateLimit(**wrong)
