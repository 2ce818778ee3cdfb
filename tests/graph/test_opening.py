"""A conversation opened in one call, and what a notebook shows of it."""

import asyncio
import copy
import html
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import PersistenceError, ThreadNotFoundError
from longtable.graph import (
    ConfigError,
    Context,
    Conversation,
    Database,
    build_graph,
    list_threads,
    open_conversation,
    open_persistence,
    usage_of_threads,
)
from longtable.graph.thread_state import StoredThreads
from tests.support.models import call as tool_call
from tests.support.models import script

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
        connection.executemany(
            "INSERT INTO orders (note) VALUES (?)",
            [(HOSTILE,), *((f"note {n}",) for n in range(59))],
        )
    return path


@pytest.fixture
def conversation(shop: Path, tmp_path: Path) -> Iterator[Conversation]:
    opened = open_conversation(
        f"sqlite:///{shop}",
        model=BuiltInAnalyst(),
        store=f"sqlite:///{tmp_path / 'chat.db'}",
        thread="monday",
        context=Context(model_limit=16_000),
    )
    yield opened
    opened.close()


def test_a_conversation_is_opened_in_one_call_and_shows_its_parts(
    conversation: Conversation, tmp_path: Path
) -> None:
    assert "60" in conversation.ask("How many orders are there?").text
    assert conversation.thread_id == "monday"
    assert conversation.database is not None
    assert conversation.database.catalog().tables
    assert conversation.persistence is not None
    assert conversation.graph.checkpointer is conversation.persistence.checkpointer
    assert conversation.result("r1").rows == [(60,)]
    assert (tmp_path / "chat.db.results").is_dir()


def test_the_thread_goes_on_where_it_was_closed(shop: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    for turn in (1, 2):
        with open_conversation(
            f"sqlite:///{shop}", model=BuiltInAnalyst(), store=store, thread="monday"
        ) as conversation:
            assert conversation.ask("How many orders are there?").turn == turn


def test_closing_ends_what_was_opened_and_nothing_else(shop: Path) -> None:
    with Database.open(f"sqlite:///{shop}") as database:
        conversation = open_conversation(database, model=BuiltInAnalyst())
        assert conversation.ask("How many orders are there?").queries
        conversation.close()
        conversation.close()
        assert database.run("SELECT count(*) FROM orders").rows == [(60,)]


@pytest.mark.parametrize("store", ["memory://", "sqlite:///{}/chat.db"])
def test_a_closed_conversation_says_so_and_is_closed_twice_without_an_error(
    store: str, shop: Path, tmp_path: Path
) -> None:
    conversation = open_conversation(
        f"sqlite:///{shop}", model=BuiltInAnalyst(), store=store.format(tmp_path)
    )
    conversation.ask("How many orders are there?")
    conversation.close()
    conversation.close()
    asyncio.run(conversation.aclose())
    for use in (
        lambda: conversation.ask("again"),
        conversation.history,
        conversation.view,
        conversation.export,
        conversation.fork,
    ):
        with pytest.raises(
            PersistenceError, match=r"was closed: open it again with open_conversation"
        ):
            use()
    with pytest.raises(PersistenceError, match="was closed"):
        asyncio.run(conversation.aask("again"))


def test_two_conversations_share_one_store_and_one_of_them_may_be_closed(
    shop: Path, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'chat.db'}"
    first, second, other = (
        open_conversation(f"sqlite:///{shop}", model=BuiltInAnalyst(), store=store, thread=thread)
        for thread in ("monday", "monday", "x")
    )
    assert [
        each.ask("How many orders are there?").turn for each in (first, second, other, first)
    ] == [1, 2, 1, 3]
    first.close()
    assert second.ask("How many orders are there?").turn == 4
    assert other.result("r1").rows == [(60,)]
    second.close()
    other.close()


def test_an_error_leaves_nothing_open(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with pytest.raises(TypeError):
        open_conversation(
            f"sqlite:///{shop}", model=BuiltInAnalyst(), store=f"sqlite:///{path}", nonsense=1
        )
    path.unlink()
    assert not path.with_name("chat.db-wal").exists()


def test_a_database_is_no_store_and_a_file_with_tables_like_ours_is_none_either(
    shop: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="store and database are the same file"):
        open_conversation(f"sqlite:///{shop}", model=BuiltInAnalyst(), store=f"sqlite:///{shop}")
    for made in ("CREATE TABLE longtable_prices (x)", "CREATE VIEW seen AS SELECT 1"):
        theirs = tmp_path / f"{len(made)}.db"
        with closing(sqlite3.connect(theirs)) as connection:
            connection.execute(made)
        with (
            pytest.raises(PersistenceError, match="a database of its own"),
            open_persistence(f"sqlite:///{theirs}"),
        ):
            pass


def test_a_model_name_that_cannot_be_opened_says_what_is_wanted(shop: Path) -> None:
    with pytest.raises(ConfigError, match="give provider:name"):
        open_conversation(f"sqlite:///{shop}", model="nonsense")


def test_a_persistence_works_without_with(tmp_path: Path) -> None:
    kept = open_persistence(f"sqlite:///{tmp_path / 'chat.db'}")
    graph = build_graph(model=BuiltInAnalyst()).compile(
        checkpointer=kept.checkpointer, store=kept.store
    )
    assert Conversation(graph, "monday").ask("hello").text
    kept.close()
    kept.close()
    uses: list[Callable[[], object]] = [
        lambda: kept.store,
        lambda: kept.checkpointer,
        lambda: list_threads(kept),
        lambda: usage_of_threads(StoredThreads(graph)),
    ]
    uses += [
        Conversation(graph, "monday").pending,
        lambda: Conversation(graph, "monday").ask("hello"),
    ]
    for use in uses:
        with pytest.raises(
            PersistenceError, match="the conversation store was closed: open it again"
        ):
            use()
    with kept as again:
        assert again is kept
        assert kept.checkpointer.get_tuple({"configurable": {"thread_id": "monday"}}) is not None


def test_a_persistence_is_awaited_the_same_way(tmp_path: Path) -> None:
    async def use() -> None:
        kept = open_persistence(f"sqlite:///{tmp_path / 'chat.db'}")
        graph = build_graph(model=BuiltInAnalyst()).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        assert (await Conversation(graph, "monday").aask("hello")).text
        await kept.aclose()

    asyncio.run(use())


def test_printing_an_answer_prints_its_text(conversation: Conversation) -> None:
    answer = conversation.ask("How many orders are there?")
    assert str(answer) == answer.text
    assert copy.deepcopy(answer) == pickle.loads(pickle.dumps(answer)) == answer
    view = conversation.view()
    assert repr(view).startswith(f"<View of {len(view)} messages, ")
    assert " of 16,000 tokens: system " in repr(view)


def test_a_notebook_shows_the_picture_and_a_table_once(conversation: Conversation) -> None:
    answer = conversation.ask("Plot the number of orders per note")
    assert len(answer.charts) == 1
    shown = answer._repr_html_()
    assert shown.count("<svg") == 1
    assert shown.count("<table") == 1
    assert answer.queries[-1]["sql"].partition("\n")[0] in html.unescape(shown)


def test_what_a_notebook_shows_is_short_and_nothing_in_it_is_markup(
    conversation: Conversation,
) -> None:
    answer = conversation.ask("List the notes of all orders")
    rows = conversation.result("r1")
    assert rows.row_count == 60
    for shown in (rows._repr_html_(), answer._repr_html_(), conversation.view()._repr_html_()):
        assert "<img" not in shown
        assert "&lt;img" in shown
        assert len(shown) < 8_000
    assert "20 of 60 rows" in rows._repr_html_()
    for each in (rows, answer, conversation, conversation.database, conversation.view()):
        assert len(repr(each)) < 200


def test_a_view_is_a_list_of_messages_with_the_tokens_of_its_parts(
    conversation: Conversation,
) -> None:
    usage = conversation.ask("How many orders are there?").usage
    view = conversation.view()
    assert [message.type for message in view][:2] == ["system", "human"]
    assert isinstance(view[1], HumanMessage)
    kinds = [kind for kind, _, _ in view.parts()]
    assert kinds[:3] == ["system", "tools", "human"]
    assert usage is not None
    assert {kind: tokens for kind, tokens, _ in view.parts()}["tools"] == usage["parts"]["tools"]


def test_the_memory_is_a_part_of_its_own_in_a_view(conversation: Conversation) -> None:
    for number in range(12):
        conversation.ask(f"How many orders have an id over {number}?")
    conversation.compact()
    assert [kind for kind, _, _ in conversation.view().parts()][:3] == ["system", "tools", "memory"]


def test_an_argument_of_another_type_says_what_is_wanted_before_anything_runs(
    conversation: Conversation, tmp_path: Path
) -> None:
    wrong: list[tuple[str, Callable[[Any], object], Any]] = [
        (
            "model must be BaseChatModel, found",
            lambda model: build_graph(model=model),
            BuiltInAnalyst,
        ),
        (
            "each of tools must be BaseTool, found str",
            lambda tool: build_graph(model=BuiltInAnalyst(), tools=[tool]),
            "x",
        ),
        (
            "policy must be CompactionPolicy or None",
            lambda policy: build_graph(model=BuiltInAnalyst(), policy=policy),
            "topics",
        ),
        (
            "graph must be CompiledStateGraph, found",
            Conversation,
            build_graph(model=BuiltInAnalyst()),
        ),
        (
            "thread_id must be str or None, found int",
            lambda thread: Conversation(conversation.graph, thread),
            5,
        ),
        (
            "context must be Context or None, found dict",
            lambda context: Conversation(conversation.graph, context=context),
            {},
        ),
        ("the text of a message must be str, found NoneType", conversation.ask, None),
        (
            "the text of a message must be str, found bytes",
            lambda text: list(conversation.stream(text)),
            b"hi",
        ),
    ]
    for said, call, value in wrong:
        with pytest.raises(ConfigError, match=said):
            call(value)
    with pytest.raises(ThreadNotFoundError):
        conversation.history()


def test_several_databases_by_url_or_open_and_one_that_is_down(tmp_path: Path) -> None:
    make_shop = f"sqlite:///{tmp_path / 'shop.db'}"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    (tmp_path / "web.csv").write_text("n\n1\n2\n")
    model = script(
        tool_call("run_sql", "c1", database="web", sql="SELECT count(*) AS n FROM web"),
        tool_call("run_sql", "c2", database="crm", sql="SELECT 1 AS n"),
        "done",
    )
    with Database.open(str(tmp_path / "web.csv")) as web:
        places: dict[str, Database | str] = {
            "shop": make_shop,
            "web": web,
            "crm": f"sqlite:///{tmp_path / 'crm.db'}",
        }
        with open_conversation(
            places, model=model, context=Context(model_limit=16_000)
        ) as conversation:
            found, down = conversation.ask("go").queries
            assert conversation.database is not None
            assert conversation.database.name == "shop"
        assert (found["database"], found["rows"]) == ("web", [[2]])
        assert down["error"].startswith("database crm: ")
        assert web.run("SELECT count(*) FROM web").rows == [(2,)], "what was open stays open"
    with pytest.raises(ConfigError, match="must be a word of letters"):
        open_conversation({"a b": make_shop}, model=model)
    with pytest.raises(ConfigError, match="the same file"):
        open_conversation({"a": make_shop, "b": make_shop}, model=model, store=make_shop)
