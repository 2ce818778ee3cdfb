"""Values of a namespace: what a store reads by itself is what a search finds."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from longtable.graph import Persistence, open_persistence
from longtable.store.encryption import EncryptedStore
from longtable.store.records.item_values import KeyValue, ValueReader, newest_in, values_in
from longtable.store.records.retired import DAMAGED
from tests.support.postgres import store_url

PLACE = ("longtable", "threads")
TIMES = ["2026-11-27T08:00:00+00:00", "2026-11-27T08:00:01+00:00", "é", "", None]
KEYS = ["a", "A", "b.c", "%", "_", "鸟", "z\U0001f600", "ﬀ"]


@pytest.fixture(params=["memory", "sqlite", "encrypted", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Persistence]:
    kind: str = request.param
    url = "memory://" if kind == "memory" else store_url(kind, tmp_path)
    with open_persistence(url, key="k" * 16 if kind == "encrypted" else None) as persistence:
        yield persistence


def filled(store: BaseStore, chance: random.Random) -> list[KeyValue]:
    """Write items with chosen times, in a namespace and beside it. Return those of the
    namespace.
    """
    items: dict[str, dict[str, Any]] = {}
    for number in range(60):
        key = f"{chance.choice(KEYS)}{number}"
        value: dict[str, Any] = {"number": number, "text": chance.choice(KEYS)}
        if chance.random() < 0.9:
            value["updated"] = chance.choice(TIMES)
        items[key] = value
    elsewhere = [("longtable", "threads", "x"), ("longtable", "threads2"), ("Longtable", "threads")]
    puts = [PutOp(PLACE, key, value, False) for key, value in items.items()]
    puts += [PutOp(place, "a", {"number": -1}, False) for place in elsewhere]
    store.batch(puts)
    return list(items.items())


def newest(items: list[KeyValue]) -> list[KeyValue]:
    return sorted(items, key=lambda item: (item[1].get("updated") or "", item[0]), reverse=True)


def test_the_values_and_the_newest_are_those_of_a_search(kept: Persistence) -> None:
    items = filled(kept.store, random.Random(3))
    assert sorted(values_in(kept.store, PLACE)) == sorted(items)

    def is_even(_: str, value: dict[str, Any]) -> bool:
        return bool(value["number"] % 2 == 0)

    even = [item for item in newest(items) if item[1]["number"] % 2 == 0]
    for most in (0, 1, 7, 30, 99):
        assert newest_in(kept.store, PLACE, is_even, most) == even[:most]
    assert newest_in(kept.store, PLACE, lambda *_: True, 99) == newest(items)
    assert list(values_in(kept.store, ("longtable",))) == []


def test_each_store_that_can_order_its_values_is_asked_for_them(kept: Persistence) -> None:
    assert isinstance(kept.store, ValueReader) is not isinstance(kept.store, InMemoryStore)


def test_no_more_than_the_newest_are_decoded(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        filled(kept.store, random.Random(3))
        asked: list[str] = []

        def is_wanted(key: str, _: dict[str, Any]) -> bool:
            asked.append(key)
            return True

        assert len(newest_in(kept.store, PLACE, is_wanted, 5)) == len(asked) == 5


def test_values_that_cannot_be_read_are_damaged(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    texts = [b'{"updated": "2', b"[1]", b"\xff", b'{"half": "\\ud800"}', b'{"n": NaN}']
    with open_persistence(f"sqlite:///{file}") as kept:
        for number in range(len(texts)):
            kept.store.put(PLACE, str(number), {})
    with sqlite3.connect(file) as connection:
        for number, text in enumerate(texts):
            connection.execute("UPDATE store SET value = ? WHERE key = ?", (text, str(number)))
    with open_persistence(f"sqlite:///{file}") as kept:
        found = dict(values_in(kept.store, PLACE))
        assert [DAMAGED in found[str(number)] for number in range(5)] == [True] * 3 + [False] * 2
        assert found["3"] == {"half": "\ud800"}
        items = kept.store.search(PLACE, limit=9)
        assert {item.key for item in items if DAMAGED in item.value} == {"0", "1", "2"}
        assert [key for key, _ in newest_in(kept.store, PLACE, lambda *_: True, 9)] == [*"43210"]


def test_a_value_of_another_key_is_damaged() -> None:
    inner = InMemoryStore()
    inner.put(PLACE, "a", {"sealed": "msgpack+aes:AAAA"})
    inner.put(PLACE, "b", {"plain": 1})
    sealed = EncryptedStore(inner, _Refusing())
    assert dict(values_in(sealed, PLACE)) == {"a": {DAMAGED: True}, "b": {"plain": 1}}


class _Refusing:
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        raise AssertionError(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise ValueError(f"MAC check failed: {data[0]}")
