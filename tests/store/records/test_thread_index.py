"""The thread list: paged, filtered, newest first, from the index alone."""

import dataclasses
from pathlib import Path

import pytest
from langgraph.store.base import PutOp

from longtable.base.stored import THREADS
from longtable.graph import (
    ConfigError,
    Context,
    Conversation,
    MemoryTools,
    build_graph,
    list_threads,
    open_persistence,
)
from longtable.graph.listing.thread_list import ThreadInfo, info_of
from longtable.store.records.thread_index import title_of
from tests.support.models import script


def test_an_entry_says_title_turns_messages_and_model(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        graph = build_graph(model=script("fine"), memory_tools=MemoryTools(recall=False)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        talk = Conversation(graph, "t", context=Context(model_limit=8_000, owner="ann"))
        talk.ask("How many\n flights?")
        talk.ask("And in May?")
        (info,) = list_threads(kept, owner="ann")
        assert dataclasses.replace(info, created="", updated="") == ThreadInfo(
            "t", "How many flights?", "", "", 2, 4, "", "ann"
        )
        assert info.created <= info.updated


def test_ten_thousand_threads_come_in_pages_newest_first_and_each_once(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        for start in range(0, 10_000, 1_000):
            puts = [
                PutOp(
                    THREADS,
                    f"t{n}",
                    {
                        "title": f"Talk {n % 10} of {n}",
                        "created": "",
                        "updated": f"2026-01-01T{n:08}",
                        "turns": 1,
                    },
                    False,
                )
                for n in range(start, start + 1_000)
            ]
            kept.store.batch(puts)
        pages = [
            info.thread_id
            for page in range(0, 10_000, 2_500)
            for info in list_threads(kept, limit=2_500, offset=page)
        ]
        assert pages == [f"t{n}" for n in range(9_999, -1, -1)]
        assert list_threads(kept, offset=10_000) == []
        found = list_threads(kept, text="tALK of 777", limit=99)
        assert [info.thread_id for info in found] == [
            f"t{n}" for n in range(9_999, -1, -1) if "777" in str(n)
        ]


@pytest.mark.parametrize("page", [{"limit": -1}, {"offset": -1}])
def test_a_page_cannot_begin_before_the_first(page: dict[str, int]) -> None:
    with open_persistence("memory://") as kept, pytest.raises(ConfigError, match="negative"):
        list_threads(kept, **page)  # type: ignore[arg-type]  # only limit and offset


def test_an_entry_of_an_earlier_version_or_a_damaged_one_is_still_listed() -> None:
    assert info_of("t", {"title": "a", "created": "c", "updated": "u", "turns": 3}) == ThreadInfo(
        "t", "a", "c", "u", 3
    )
    assert info_of("t", {"turns": "x", "owner": 7, "messages": None}) == ThreadInfo(
        "t", "", "", "", 0
    )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("a\n\t b ", "a b"),
        ("x" * 99, "x" * 80),
        ("half \ud83d", "half ?"),
        ("a\0b", "ab"),
        ("", ""),
    ],
)
def test_a_title_is_one_line_that_a_store_takes(text: str, title: str) -> None:
    assert title_of(text) == title
