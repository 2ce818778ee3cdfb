"""Turns of an owner are limited, in one process and shared over PostgreSQL and Redis; refused ones write nothing."""

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import ConfigError, MessageTooLongError, ProviderRefusedError, ProviderUnavailableError, RateLimitedError
from longtable.graph import Context, Conversation, RateLimit, build_graph
from longtable.nodes.turns.rate_limit import QUICK
from tests.support.models import ScriptedModel
from tests.support.postgres import postgres_server

CONTEXT = Context(model_limit=16_000)


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("redis", reason="the Python package redis is not installed")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder: Path = tmp_path_factory.mktemp("redis")
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()


def storage(name: str, request: pytest.FixtureRequest) -> str:
    if name == "postgres":
        return postgres_server().create()
    return "memory://" if name == "memory" else str(request.getfixturevalue("redis_url"))


def talk(limit: RateLimit, thread: str, owner: str | None) -> Conversation:
    model = ScriptedModel(say=lambda messages: AIMessage("yes"))
    app: Any = build_graph(model=model, rate_limit=limit).compile(checkpointer=InMemorySaver())
    return Conversation(app, thread, context=CONTEXT.replace(owner=owner))


@pytest.mark.parametrize("name", ["memory", "postgres", "redis"])
def test_an_owner_has_so_many_turns_and_is_told_how_long_to_wait(name: str, request: pytest.FixtureRequest) -> None:
    limit = RateLimit(turns=2, seconds=2, storage=storage(name, request))
    ann, other_thread, bob = talk(limit, "a", "ann"), talk(limit, "b", "ann"), talk(limit, "c", "bob")
    ann.ask("one")
    with pytest.raises(MessageTooLongError):
        ann.ask("x" * 9_000)  # refused for another reason: not counted
    asyncio.run(other_thread.aask("two"))
    with pytest.raises(RateLimitedError) as caught:
        ann.ask("three")
    assert 0 < caught.value.wait_s <= 2
    assert f"{caught.value.wait_s:g} s" in caught.value.user_text("en")
    assert "2" in caught.value.user_text("zh")
    assert [message.text for message in ann.history()] == ["one", "yes"]
    bob.ask("mine")
    time.sleep(caught.value.wait_s + 0.1)
    assert ann.ask("three").status == "answered"


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", ["memory", "postgres", "redis"])
def test_a_turn_whose_provider_is_down_is_not_counted_and_no_resume_gains_one(
    name: str, asynchronous: bool, request: pytest.FixtureRequest
) -> None:
    down: list[Exception] = [ConnectionError(), ConnectionError(), ConnectionError()]

    def say(_: Any) -> AIMessage:
        if down:
            raise down.pop()
        return AIMessage("yes")

    limit = RateLimit(turns=2, seconds=600, storage=storage(name, request))
    app: Any = build_graph(model=ScriptedModel(say=say), rate_limit=limit).compile(checkpointer=InMemorySaver())
    talk = Conversation(app, "a", context=CONTEXT.replace(owner=f"ann-{asynchronous}"))

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
    app: Any = build_graph(model=ScriptedModel(say=say), rate_limit=limit).compile(checkpointer=InMemorySaver())
    with pytest.raises(ProviderRefusedError):
        Conversation(app, "a", context=CONTEXT).ask("one")
    with pytest.raises(RateLimitedError):
        Conversation(app, "b", context=CONTEXT).ask("two")


def test_workers_at_once_share_one_allowance(request: pytest.FixtureRequest) -> None:
    url = storage("postgres", request)

    def turn(_: int) -> bool:
        try:
            RateLimit(turns=5, seconds=600, storage=url).check("ann")
        except RateLimitedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(turn, range(16))) == 5


def test_a_storage_that_is_down_costs_nobody_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    limit = RateLimit(storage="postgresql://ann:hunter2@127.0.0.1:1/none")
    assert talk(limit, "a", None).ask("one").status == "answered"
    assert "OperationalError" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_redis_that_does_not_answer_holds_up_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("redis", reason="the Python package redis is not installed")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        limit = RateLimit(storage=f"redis://127.0.0.1:{silent.getsockname()[1]}/0?socket_timeout=0.2")
        assert talk(limit, "a", None).ask("one").status == "answered"
        assert "TimeoutError" in caplog.text
    assert QUICK["socket_timeout"] < 5


def test_a_wrong_limit_is_refused_when_it_is_made() -> None:
    table: list[dict[str, Any]] = [{"turns": 0}, {"seconds": 0}, {"storage": "here"}]
    for wrong in table:
        with pytest.raises(ConfigError, match="RateLimit"):
            RateLimit(**wrong)
    with pytest.raises(ConfigError, match=r"RateLimit.storage cannot be used"):
        RateLimit(storage="nowhere://").check("ann")
