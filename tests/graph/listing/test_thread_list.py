"""Lists of threads: a page is the part of the list of all threads that it should be."""

import random
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from longtable.base.stored import THREADS
from longtable.graph import list_threads, open_persistence
from longtable.graph.listing.thread_list import ThreadInfo, is_visible
from tests.support.postgres import store_url

TITLES = ["Flights of June", "flights", "STRASSE", "straße", "航班", ""]
OWNERS = ["ann", "bob", None, 7]


def entry(chance: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"title": chance.choice(TITLES), "turns": chance.randint(1, 9)}
    if chance.random() < 0.9:
        fields["updated"] = f"2026-11-27T08:00:0{chance.randint(0, 9)}+00:00"
    if chance.random() < 0.8:
        fields["owner"] = chance.choice(OWNERS)
    if chance.random() < 0.5:
        fields["project"] = chance.choice(["north", "south", ""])
    return fields


def key_of(info: ThreadInfo) -> tuple[str, str]:
    return info.updated, info.thread_id


@pytest.mark.parametrize("kind", ["memory", "sqlite", "encrypted", "postgres"])
def test_a_page_is_a_part_of_the_list_of_all(tmp_path: Path, kind: str) -> None:
    chance = random.Random(5)
    url = "memory://" if kind == "memory" else store_url(kind, tmp_path)
    with open_persistence(url, key="k" * 16 if kind == "encrypted" else None) as kept:
        for number in range(120):
            kept.store.put(THREADS, f"t{number}", entry(chance), index=False)
        every = list_threads(kept, limit=999, all_owners=True)
        assert len(every) == 120
        assert every == sorted(every, key=key_of, reverse=True)
        for _ in range(40):
            owner = chance.choice(["ann", "bob", None])
            project = chance.choice(["north", "", None])
            text = chance.choice(["FLIGHTS", "strasse", "june of", "航", ""])
            narrow: dict[str, Any] = {"owner": owner, "project": project, "text": text}
            wanted = [
                info
                for info in every
                if info.owner in (None, owner)
                and project in (None, info.project)
                and all(word in info.title.casefold() for word in text.casefold().split())
            ]
            start = chance.randint(0, 9)
            most = chance.randint(0, 9)
            page = list_threads(kept, limit=most, offset=start, **narrow)
            assert page == wanted[start : start + most]
        assert list_threads(kept, limit=sys.maxsize, offset=1, all_owners=True) == every[1:]


def test_a_damaged_entry_is_listed_for_operators_and_where_threads_have_no_owners(
    tmp_path: Path,
) -> None:
    file = tmp_path / "chat.db"
    with open_persistence(f"sqlite:///{file}") as kept:
        for name in ("a", "b"):
            kept.store.put(THREADS, name, {"owner": "ann", "updated": "2026"}, index=False)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE store SET value = '{' WHERE key = 'b'")
    with open_persistence(f"sqlite:///{file}") as kept:
        lines = [(info.thread_id, info.damaged) for info in list_threads(kept, all_owners=True)]
        assert lines == [("a", False), ("b", True)]
        assert [info.thread_id for info in list_threads(kept)] == ["b"]
        assert [info.thread_id for info in list_threads(kept, owner="ann")] == ["a"]


def test_an_entry_whose_owner_is_no_name_belongs_to_nobody() -> None:
    assert is_visible({"owner": 7}, "ann", all_owners=False)
    assert not is_visible({"owner": "bob"}, "ann", all_owners=False)
    assert is_visible({"owner": "bob"}, "ann", all_owners=True)
