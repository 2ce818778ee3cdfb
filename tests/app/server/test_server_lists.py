"""Many threads of a server are asked for at once."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import httpx
import pytest
from langgraph_sdk.errors import UnprocessableEntityError

from longtable.app.server.server_lists import (
    AHEAD,
    NEWEST,
    PAGE,
    KnownThreads,
    ThreadsAhead,
    all_threads,
)

IDS = [str(UUID(int=number)) for number in range(2 * PAGE + 7)]


class Server:
    """A server's search, with what it was asked for."""

    def __init__(self, thread_ids: Sequence[str], *, selects: bool = True) -> None:
        self.threads: dict[str, dict[str, Any]] = {
            each: {"thread_id": each, "status": "idle"} for each in thread_ids
        }
        self.selects = selects
        self.asked: list[dict[str, Any]] = []

    def __call__(self, **options: Any) -> list[dict[str, Any]]:
        self.asked.append(options)
        if "select" in options and not self.selects:
            answer = httpx.Response(422, request=httpx.Request("POST", "http://server"))
            raise UnprocessableEntityError("no select", response=answer, body=None)
        start = options.get("offset", 0)
        wanted = options.get("ids") or [*self.threads]
        found = [self.threads[each] for each in wanted if each in self.threads]
        return found[start : start + options["limit"]]


@pytest.mark.parametrize("count", [0, 1, PAGE, 2 * PAGE + 7])
def test_all_pages_are_read(count: int) -> None:
    server = Server(IDS[:count])
    assert list(all_threads(server, select=["thread_id"])) == IDS[:count]
    assert len(server.asked) == count // PAGE + 1


@pytest.mark.parametrize("deleted", [IDS[:1], IDS[3:9], IDS[: 2 * PAGE]])
def test_threads_that_are_deleted_between_two_pages_hide_no_other(deleted: list[str]) -> None:
    server = Server(IDS)

    def search(**options: Any) -> list[dict[str, Any]]:
        page = server(**options)
        for thread_id in deleted:
            server.threads.pop(thread_id, None)
        return page

    assert set(all_threads(search)) == set(IDS) - set(deleted)


def test_values_are_asked_for_many_at_a_time_and_each_once() -> None:
    server = Server(IDS)
    ahead = ThreadsAhead(server, IDS[:120])
    for thread_id in IDS[:120]:
        thread = ahead.take(thread_id)
        assert thread is not None
        assert thread["thread_id"] == thread_id
    assert [len(asked["ids"]) for asked in server.asked] == [AHEAD, AHEAD, 20]
    assert ahead.take(IDS[0]) is None
    assert ahead.take(IDS[200]) is None
    assert len(server.asked) == 3


def test_threads_that_are_read_in_another_order_are_loaded_too() -> None:
    server = Server(IDS)
    ahead = ThreadsAhead(server, IDS[:120])
    for thread_id in reversed(IDS[:120]):
        assert ahead.take(thread_id) is not None or thread_id not in server.asked[-1]["ids"]
    assert len(server.asked) < 120


def test_a_thread_that_is_gone_or_at_work_is_none() -> None:
    server = Server(IDS[:3])
    server.threads[IDS[1]]["status"] = "busy"
    ahead = ThreadsAhead(server, IDS[:5])
    assert [ahead.take(each) is not None for each in IDS[:5]] == [True, False, True, False, False]
    assert len(server.asked) == 1


def test_a_server_that_cannot_select_is_asked_once() -> None:
    server = Server(IDS, selects=False)
    ahead = ThreadsAhead(server, IDS[:120])
    assert [ahead.take(each) for each in IDS[:120]] == [None] * 120
    assert len(server.asked) == 1


def test_an_id_that_no_server_gives_is_not_asked_for() -> None:
    server = Server(IDS)
    ahead = ThreadsAhead(server, ["monday", IDS[0], IDS[1].upper() + "x", f"{IDS[2]}\x1fnode"])
    assert ahead.take("monday") is None
    assert ahead.take(IDS[0]) is not None
    assert server.asked[0]["ids"] == [IDS[0]]


class ChangingServer(Server):
    """A server whose threads are sorted by their last change, newest first."""

    def __init__(self, count: int) -> None:
        super().__init__([])
        self.clock = 0
        for thread_id in IDS[:count]:
            self.change(thread_id)

    def change(self, thread_id: str) -> None:
        self.clock += 1
        others = {each: self.threads[each] for each in self.threads if each != thread_id}
        changed = {"thread_id": thread_id, "metadata": {}, "updated_at": f"{self.clock:09}"}
        self.threads = {thread_id: changed, **others}

    def delete(self, thread_id: str) -> None:
        del self.threads[thread_id]

    def count(self) -> int:
        return len(self.threads)


def few_changed(server: ChangingServer) -> None:
    for thread_id in (*IDS[5:9], *IDS[2_005:2_007]):
        server.change(thread_id)


def many_changed(server: ChangingServer) -> None:
    for thread_id in IDS[: NEWEST + 5]:
        server.change(thread_id)


def old_one_deleted(server: ChangingServer) -> None:
    server.delete(IDS[0])


def one_deleted_and_one_created(server: ChangingServer) -> None:
    server.delete(IDS[0])
    server.change(IDS[2_005])


@pytest.mark.parametrize(
    "happens", [few_changed, many_changed, old_one_deleted, one_deleted_and_one_created]
)
@pytest.mark.parametrize("count", [3, NEWEST, 2_000])
def test_known_threads_are_those_of_the_server_whatever_happened(
    count: int, happens: Callable[[ChangingServer], None]
) -> None:
    server = ChangingServer(count)
    known = KnownThreads()
    assert known.current(server, server.count) == server.threads
    happens(server)
    assert known.current(server, server.count) == server.threads
    assert known.current(server, server.count) == server.threads


def test_of_many_known_threads_only_the_newest_are_asked_for() -> None:
    server = ChangingServer(2_000)
    known = KnownThreads()
    known.current(server, server.count)
    server.asked.clear()
    few_changed(server)
    known.current(server, server.count)
    assert [asked["limit"] for asked in server.asked] == [NEWEST]
    assert server.asked[0]["sort_by"] == "updated_at"
