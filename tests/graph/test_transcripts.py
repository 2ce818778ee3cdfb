"""A thread that another owner opened is not found: never shown, listed or continued."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph_api.auth.noop import UnauthenticatedUser as AgentServersNobody  # type: ignore[import-untyped]  # it has no types
from starlette.authentication import UnauthenticatedUser as StarlettesNobody
from starlette.requests import Request

from longtable.app.server.requests import OWNER_HEADER, owner_of
from longtable.base.errors import MessageTooLongError, ThreadNotFoundError
from longtable.graph import (
    ConfigError,
    Context,
    Conversation,
    MemoryTools,
    build_graph,
    list_threads,
    node_thread_id,
    open_persistence,
)
from longtable.graph.listing.thread_list import alist_threads
from longtable.graph.thread_state import Graph
from tests.support.models import script

LIMIT = 8_000


def graph_on(saver: Any = None, store: Any = None) -> Graph:
    return build_graph(model=script("fine"), memory_tools=MemoryTools(recall=False)).compile(
        checkpointer=saver or InMemorySaver(), store=store
    )


def talk_of(graph: Graph, owner: str | None, thread_id: str = "t") -> Conversation:
    return Conversation(graph, thread_id, context=Context(model_limit=LIMIT, owner=owner))


def test_a_thread_id_names_no_node_of_another_thread() -> None:
    with pytest.raises(ConfigError, match="thread id"):
        # Its results and archive files would be those of ann's node.
        talk_of(graph_on(), "bob", node_thread_id("of-ann", "analyst"))


LOOKS: list[Callable[[Conversation], Any]] = [
    lambda c: c.history(),
    lambda c: c.view(),
    lambda c: c.ask("and me?"),
    lambda c: c.compact(),
    lambda c: c.compact(preview=True),
    lambda c: c.undo(),
    lambda c: c.pins(),
    lambda c: c.pin("x"),
    lambda c: c.unpin("x"),
    lambda c: c.exclude("x"),
    lambda c: c.include("x"),
    lambda c: c.topics(),
    lambda c: c.pending(),
    lambda c: c.resume(),
]


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("other", ["bob", "Ann", None])
def test_a_thread_of_another_owner_is_not_found(
    look: Callable[[Conversation], Any], other: str | None
) -> None:
    graph = graph_on()
    talk_of(graph, "ann").ask("my salary is 7")
    before = graph.get_state({"configurable": {"thread_id": "t"}}).config
    with pytest.raises(ThreadNotFoundError) as raised:
        look(talk_of(graph, other))
    assert "ann" not in str(raised.value)
    # Nothing was written.
    assert graph.get_state({"configurable": {"thread_id": "t"}}).config == before


def test_an_owner_goes_on_with_a_thread_of_nobody_and_it_stays_nobodys() -> None:
    graph = graph_on(store=InMemoryStore())
    talk_of(graph, None).ask("open to all")
    assert talk_of(graph, "ann").ask("hello").turn == 2
    assert talk_of(graph, "bob").ask("hello").turn == 3
    assert len(talk_of(graph, None).history()) == 6


@pytest.mark.parametrize("store", [None, InMemoryStore()])
def test_the_raw_graph_refuses_another_owner_and_keeps_nothing_of_it(store: Any) -> None:
    graph = graph_on(store=store)
    talk_of(graph, "ann").ask("mine")
    config: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(ThreadNotFoundError):
        graph.invoke(
            {"messages": [HumanMessage("let me in")]},
            config,
            context=Context(model_limit=LIMIT, owner="bob"),
        )
    assert [m.text for m in talk_of(graph, "ann").history()] == ["mine", "fine"]
    assert talk_of(graph, "ann").ask("still mine").turn == 2


def test_a_refused_first_message_gives_nobody_the_thread() -> None:
    graph = graph_on()
    with pytest.raises(MessageTooLongError):
        graph.invoke(
            {"messages": [HumanMessage("x" * 9_000)]},
            {"configurable": {"thread_id": "t"}},
            context=Context(model_limit=LIMIT, owner="ann"),
        )
    assert talk_of(graph, "bob").ask("hello").turn == 1
    with pytest.raises(ThreadNotFoundError):
        talk_of(graph, "ann").ask("hello")


def test_a_first_message_that_no_node_has_seen_yet_is_its_owners() -> None:
    graph = graph_on()
    ann = talk_of(graph, "ann")
    graph.invoke(
        {"messages": [HumanMessage("my secret")]},
        ann.config,
        context=ann.context,
        interrupt_before=["ingest"],
    )
    with pytest.raises(ThreadNotFoundError):
        talk_of(graph, "bob").history()
    assert [m.text for m in ann.history()] == ["my secret"]


def test_lists_hold_what_an_owner_may_see(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        graph = graph_on(kept.checkpointer, kept.store)
        for owner in ("ann", "bob", None):
            talk_of(graph, owner, f"of-{owner}").ask(f"hello from {owner}")
        seen = {
            owner: {info.thread_id for info in list_threads(kept, owner=owner)}
            for owner in ("ann", "bob", "eve", None)
        }
        assert seen == {
            "ann": {"of-ann", "of-None"},
            "bob": {"of-bob", "of-None"},
            "eve": {"of-None"},
            None: {"of-None"},
        }
        assert len(list_threads(kept, all_owners=True)) == 3


def test_async_refuses_and_lists_alike(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
            graph = graph_on(kept.checkpointer, kept.store)
            await talk_of(graph, "ann").aask("mine")
            for look in (talk_of(graph, "bob").ahistory, talk_of(graph, None).apending):
                with pytest.raises(ThreadNotFoundError):
                    await look()
            with pytest.raises(ThreadNotFoundError):
                await talk_of(graph, "bob").aask("let me in")
            assert await alist_threads(kept, owner="bob") == []
            assert [info.owner for info in await alist_threads(kept, owner="ann")] == ["ann"]

    asyncio.run(run())


@pytest.mark.parametrize("owner", [" ann", "a\nb", "x" * 201, 7])
def test_an_owner_that_cannot_be_one_is_refused(owner: Any) -> None:
    with pytest.raises(ConfigError, match=r"Context\.owner"):
        Context(owner=owner)


def test_on_a_server_with_authentication_the_owner_is_who_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclass(frozen=True)
    class User:
        identity: str
        is_authenticated: bool = True

    graph = graph_on()

    def ask(user: User | None, claimed: str | None, thread_id: str) -> Any:
        # As Agent Server hands it over; of a client it takes no such key.
        config: Any = {"configurable": {"thread_id": thread_id, "langgraph_auth_user": user}}
        graph.invoke(
            {"messages": [HumanMessage("q")]},
            config,
            context=Context(model_limit=LIMIT, owner=claimed),
        )
        return graph.get_state(config).values["turn"].get("owner")

    assert ask(User("ann"), None, "t") == "ann"
    assert ask(User("ann"), "bob", "u") == "ann"
    with pytest.raises(ThreadNotFoundError):
        ask(User("bob"), "ann", "t")
    with pytest.raises(ThreadNotFoundError):
        ask(User(""), "ann", "t")
    without = SimpleNamespace(LANGGRAPH_AUTH=None, LANGGRAPH_AUTH_TYPE="noop")
    with monkeypatch.context() as patched:  # a scheduled run of a server without authentication
        patched.setitem(sys.modules, "langgraph_api.config", without)
        assert ask(User(""), "ann", "t") == "ann"
    assert ask(None, "bob", "v") == "bob"
    for guest in (User("ann", is_authenticated=False), User("", is_authenticated=False)):
        with pytest.raises(ThreadNotFoundError):
            ask(guest, "ann", "t")
        assert ask(guest, "ann", f"of-{guest.identity}") is None


@pytest.mark.parametrize("identity", ["ann", ""])
def test_our_routes_take_no_header_for_who_asks_where_a_server_says_that_it_is_nobody(
    identity: str,
) -> None:
    def request(user: object) -> Request:
        return Request(
            {
                "type": "http",
                "headers": [(OWNER_HEADER.encode(), b"ann")],
                **({"user": user} if user else {}),
            }
        )

    assert owner_of(request(SimpleNamespace(identity=identity, is_authenticated=False))) is None
    assert owner_of(request(StarlettesNobody())) is None  # an embedder's authentication found none
    assert owner_of(request(SimpleNamespace(identity="bob", is_authenticated=True))) == "bob"
    # No authentication: a proxy says it.
    assert owner_of(request(AgentServersNobody())) == owner_of(request(None)) == "ann"
