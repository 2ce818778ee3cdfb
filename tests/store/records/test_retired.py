"""Originals come back from a store exactly as they went in, whole, in order, from their own thread
only.
"""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolMessage,
)
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from longtable.base.concurrency import in_thread
from longtable.base.errors import ArchiveFormatError, ArchiveGapError
from longtable.base.stored import thread_namespace
from longtable.base.words import tokens_of
from longtable.memory.messages.marks import marked
from longtable.memory.search import Original
from longtable.store.persistence import open_persistence
from longtable.store.records.retired import BATCH, from_item, page, put_all, to_item
from longtable.store.records.retired_store import StoreArchive
from tests.support.histories import histories, talk

ODD = '\x00 <|endoftext|> 🛫 naïve "quoted" \\ \u2028 \ud800 \ud83d\ude00'
"""NUL, a special token, a line separator, a lone surrogate, and two that JSON would join to one
character.
"""

TEXTS = st.text(alphabet=st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    [ODD, "二月的航班", "%", ""]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXTS,
    st.binary(max_size=8),
    st.decimals(allow_nan=False),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),
    st.dates(),
    st.times().map(lambda moment: moment.replace(fold=0)),
    st.uuids(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=3),
        st.dictionaries(st.integers() | st.tuples(TEXTS), inner, max_size=2),
        st.dictionaries(st.sampled_from(["%", "value"]), inner, max_size=2),
    ),
    max_leaves=6,
)
KEPT = st.dictionaries(TEXTS, VALUES, max_size=3)
BLOCKS = st.lists(
    st.one_of(
        TEXTS,
        st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
        st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, TEXTS),
        st.builds(
            lambda text, sign: {
                "type": "reasoning",
                "reasoning": text,
                "extras": {"signature": sign},
            },
            TEXTS,
            st.binary(max_size=4),
        ),
    ),
    max_size=3,
)
CONTENT = TEXTS | BLOCKS
USAGE = {
    "input_tokens": 7,
    "output_tokens": 2,
    "total_tokens": 9,
    "input_token_details": {"cache_read": 4},
}


KINDS: list[type[BaseMessage]] = [
    HumanMessage,
    AIMessage,
    SystemMessage,
    ToolMessage,
    FunctionMessage,
    ChatMessage,
    AIMessageChunk,
]


@st.composite
def messages(draw: st.DrawFn) -> BaseMessage:
    """Draw a message of any kind, its fields as strange as a provider may make them."""
    common: dict[str, Any] = {
        "content": draw(CONTENT),
        "id": draw(TEXTS),
        "name": draw(st.none() | TEXTS),
        "additional_kwargs": draw(KEPT),
        "response_metadata": draw(KEPT),
    }
    kind: type[BaseMessage] = draw(st.sampled_from(KINDS))
    more: dict[str, Any] = {}
    if kind in (AIMessage, AIMessageChunk):
        args = draw(st.dictionaries(TEXTS, VALUES, max_size=2))
        more = {
            "tool_calls": [
                {"name": "run_sql", "args": args, "id": draw(TEXTS), "type": "tool_call"}
            ],
            "invalid_tool_calls": [
                InvalidToolCall(name="f", args="{", id=None, error="no", type="invalid_tool_call")
            ],
            "usage_metadata": draw(st.sampled_from([None, USAGE])),
        }
    elif kind is ToolMessage:
        more = {
            "tool_call_id": draw(TEXTS),
            "status": draw(st.sampled_from(["success", "error"])),
            "artifact": draw(VALUES),
        }
    elif kind is FunctionMessage:
        common["name"] = "f"
    elif kind is ChatMessage:
        more = {"role": draw(TEXTS)}
    return kind.model_construct(**common, **more)


def same(a: object, b: object) -> bool:
    """Tell whether two values are the same in type and value, NaN and the bits of a float
    included.
    """
    if type(a) is not type(b):
        return False
    if isinstance(a, BaseMessage) and isinstance(b, BaseMessage):
        return same(a.__dict__, b.__dict__) and same(a.__pydantic_extra__, b.__pydantic_extra__)
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(
            same(x, y)
            for pair in zip(a.items(), b.items(), strict=True)
            for x, y in zip(*pair, strict=True)
        )
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return repr(a) == repr(b)


def originals(history: Sequence[BaseMessage], first: int = 1) -> list[Original]:
    return [Original(number, message) for number, message in enumerate(history, first)]


@pytest.fixture(scope="module")
def file_shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreArchive]:
    with open_persistence(
        f"sqlite:///{tmp_path_factory.mktemp('archive') / 'threads.db'}"
    ) as persistence:
        yield StoreArchive(persistence.store)


@pytest.fixture(params=["memory", "sqlite"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreArchive]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'threads.db'}"
    with open_persistence(url) as persistence:
        yield StoreArchive(persistence.store)


@given(message=messages(), number=st.integers(min_value=1, max_value=10**9 - 1))
def test_a_message_of_any_kind_round_trips_exactly_through_a_real_file(
    file_shelf: StoreArchive, message: BaseMessage, number: int
) -> None:
    put_all(file_shelf, "t", [Original(number, message)], embed=False)
    (back,) = page(file_shelf, "t", number, number)
    assert back.number == number
    assert same(back.message, message)


@given(history=histories(most_rounds=5))
def test_histories_round_trip_in_order(
    file_shelf: StoreArchive, history: list[BaseMessage]
) -> None:
    put_all(file_shelf, "history", originals(history), embed=False)
    assert page(file_shelf, "history", 1, len(history)) == originals(history)


@pytest.mark.parametrize(
    "value",
    [
        ODD,
        float("nan"),
        -0.0,
        2**80,
        b"\x00\xff",
        (1, ("a",)),
        {1: "a", (2, 3): None},
        {"%": "dict", "value": []},
        {"%": "nothing known"},
        {ODD: ODD},
        {frozenset({1}), frozenset()},
        Decimal("1.10"),
        date(2013, 5, 1),
        datetime(2013, 5, 1, 12, tzinfo=UTC),
        UUID(int=7),
    ],
    ids=repr,
)
def test_values_that_json_lacks_are_kept(archive: StoreArchive, value: object) -> None:
    message = ToolMessage(
        "x", tool_call_id="c", id="t", artifact=value, additional_kwargs={"v": [value]}
    )
    put_all(archive, "t", [Original(1, message)], embed=False)
    assert same(page(archive, "t", 1, 1)[0].message, message)


def test_a_call_hidden_in_additional_kwargs_is_not_parsed_again() -> None:
    raw = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    message = AIMessage("", additional_kwargs={"tool_calls": raw}, id="a").model_copy(
        update={"tool_calls": []}
    )
    back = from_item(to_item(Original(1, message))).message
    assert isinstance(back, AIMessage)
    assert back.tool_calls == []
    assert back == message


def test_a_message_of_ones_own_class_comes_back_as_the_class_it_extends() -> None:
    class Mine(HumanMessage):
        """A class that another process may not have."""

    back = from_item(
        to_item(Original(1, Mine.model_construct(content="hi", id="m", mood="good")))
    ).message
    assert type(back) is HumanMessage
    assert (back.content, back.id, getattr(back, "mood", None)) == ("hi", "m", "good")


def test_an_item_says_where_its_message_stood() -> None:
    message = marked(
        AIMessage("6,200 flights", id="a", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c"}]),
        turn=3,
        time="2026-01-01",
    )
    item = to_item(Original(12, message))
    assert {key: item[key] for key in ("number", "id", "turn", "time", "text")} == {
        "number": 12,
        "id": "a",
        "turn": 3,
        "time": "2026-01-01",
        "text": "6,200 flights\nf: 1",
    }


@pytest.mark.parametrize(
    "value", [object(), sqlite3.Row, lambda: None], ids=["object", "class", "function"]
)
def test_what_is_no_data_is_refused_before_anything_is_written(
    archive: StoreArchive, value: object
) -> None:
    bad = HumanMessage("x", id="bad", additional_kwargs={"v": [value]})
    with pytest.raises(ArchiveFormatError, match=r"message bad holds .* in additional_kwargs"):
        put_all(archive, "t", originals([HumanMessage("ok", id="ok"), bad]), embed=False)
    with pytest.raises(ArchiveGapError):
        page(archive, "t", 1, 1)


@pytest.mark.parametrize(
    "damage",
    [
        {"message": "{"},
        {"message": '{"class":"Nobody","fields":{}}'},
        {"message": '{"class":"HumanMessage","fields":{"content":{"%":"uuid9","value":1}}}'},
        {"message": "[]"},
        {"message": None},
        {"number": "12"},
    ],
    ids=str,
)
def test_a_damaged_item_is_an_error_that_says_so(damage: dict[str, object]) -> None:
    with pytest.raises(ArchiveFormatError, match=r"archived (message|item)"):
        from_item({**to_item(Original(1, HumanMessage("x", id="x"))), **damage})


def test_putting_again_changes_nothing(archive: StoreArchive) -> None:
    told = originals(talk(3))
    for _ in range(2):
        put_all(archive, "t", told, embed=False)
    put_all(archive, "t", told[2:4], embed=False)
    assert page(archive, "t", 1, 6) == told
    assert page(archive, "t", 3, 4) == told[2:4]
    assert page(archive, "t", 5, 4) == []


def test_missing_messages_are_named(archive: StoreArchive) -> None:
    told = originals(talk(5))
    put_all(archive, "t", [o for o in told if o.number not in {2, 3, 7}], embed=False)
    with pytest.raises(
        ArchiveGapError, match="lacks messages 2 to 3, 7, 11 to 12: give the store"
    ) as caught:
        page(archive, "t", 1, 12)
    assert caught.value.missing == [(2, 3), (7, 7), (11, 12)]


@pytest.mark.parametrize("thread_id", ["", ".", "%", "a.b@c.d", "t*", "a%2Eb", "线程"])
def test_threads_never_mix_whatever_their_ids(archive: StoreArchive, thread_id: str) -> None:
    others = ["", "%", "t", "t1", "a", "a.b", "a%2Eb", "."]
    for other in {*others, thread_id}:
        put_all(
            archive, other, [Original(1, HumanMessage(f"said in {other}", id="m"))], embed=False
        )
    assert page(archive, thread_id, 1, 1)[0].message.content == f"said in {thread_id}"


def test_more_than_a_batch_is_paged_whole(archive: StoreArchive) -> None:
    told = originals([HumanMessage(f"message {n}", id=str(n)) for n in range(2 * BATCH + 1)])
    put_all(archive, "t", told, embed=False)
    assert page(archive, "t", 1, len(told)) == told


@contextmanager
def commits(connection: sqlite3.Connection) -> Iterator[list[str]]:
    seen: list[str] = []
    connection.set_trace_callback(
        lambda statement: seen.append(statement) if statement == "COMMIT" else None
    )
    yield seen
    connection.set_trace_callback(None)


def test_a_thousand_puts_are_two_transactions_ids_then_messages(tmp_path: Path) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "a.db")) as store:
        store.setup()
        with commits(store.conn) as seen:
            put_all(StoreArchive(store), "t", originals(talk(500)), embed=False)
        assert seen == ["COMMIT", "COMMIT"]
        with commits(store.conn) as seen:
            page(StoreArchive(store), "t", 1, 1_000)
        assert seen == ["COMMIT"]


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Embed by words: each word one of 64 directions. Refuses an empty text, as servers do."""
    assert all(text.strip() for text in texts)
    return [
        [1.0 + sum(hash_of(token) == i for token in tokens_of(text)) * 50 for i in range(64)]
        for text in texts
    ]


def hash_of(token: str) -> int:
    return sum(ord(character) * (i + 1) for i, character in enumerate(token)) % 64


needs_extensions = pytest.mark.skipif(
    not hasattr(sqlite3.Connection, "enable_load_extension"),
    reason="this Python's SQLite loads no extensions: no embedding index",
)
INDEX: Any = {"dims": 64, "embed": embed, "fields": ["nothing"]}


@contextmanager
def indexed(kind: str, folder: Path) -> Iterator[BaseStore]:
    if kind == "memory":
        yield InMemoryStore(index=INDEX)
    else:
        with SqliteStore.from_conn_string(str(folder / "a.db"), index=INDEX) as store:
            store.setup()
            yield store


@pytest.mark.parametrize("kind", ["memory", pytest.param("sqlite", marks=needs_extensions)])
def test_the_nearest_in_meaning_are_found_in_their_own_thread_only(
    kind: str, tmp_path: Path
) -> None:
    with indexed(kind, tmp_path) as store:
        archive = StoreArchive(store)
        said = [
            HumanMessage("tailnum of the plane", id="1"),
            AIMessage("", id="2"),
            HumanMessage("weather in May", id="3"),
        ]
        said.append(HumanMessage("weather in May", id="said twice"))
        put_all(archive, "t", originals(said), embed=True)
        put_all(
            archive, "t.x", [Original(1, HumanMessage("tailnum plane", id="other"))], embed=True
        )
        put_all(
            archive, "t", [Original(5, HumanMessage("plane tailnum tailnum", id="5"))], embed=False
        )
        mine = thread_namespace("archive", "t")
        assert [id_ for id_, _ in archive.near(mine, "tailnum plane", 1)] == ["1"]
        found = [id_ for id_, _ in archive.near(mine, "weather may", 5)]
        assert (sorted(found[:2]), found[2:]) == (["3", "said twice"], ["1"])
        assert archive.near(thread_namespace("archive", "nobody"), "weather", 5) == []
        assert len(page(archive, "t", 1, 5)) == 5


def test_a_store_without_an_index_finds_nothing_by_meaning(archive: StoreArchive) -> None:
    put_all(archive, "t", originals(talk(2)), embed=True)
    assert archive.near(thread_namespace("archive", "t"), "question", 5) == []


def test_a_store_that_is_awaited_takes_the_same_calls_from_a_thread(tmp_path: Path) -> None:
    told = originals(talk(600))

    async def run() -> None:
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "a.db")) as store:
            await store.setup()
            archive = StoreArchive(store)
            await in_thread(put_all, archive, "t", told, embed=True)
            assert await in_thread(page, archive, "t", 1, len(told)) == told
            assert (
                await in_thread(archive.near, thread_namespace("archive", "t"), "question", 2) == []
            )

    asyncio.run(run())
