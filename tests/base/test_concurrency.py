"""Awaited twins: what a cancelled caller began comes to its end first, and forked processes have
threads of their own.
"""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from longtable.base.concurrency import (
    ASYNC,
    SYNC,
    WORKERS,
    Execution,
    a_from,
    complete,
    file_lock,
    in_daemon,
    in_thread,
)


class Counter:
    def __init__(self) -> None:
        self.number = 0

    def add(self, number: int, *, times: int = 1) -> int:
        """Add to the number."""
        self.number += number * times
        return self.number

    aadd = a_from(add)


def test_a_twin_takes_the_same_arguments_and_bears_the_same_docstring() -> None:
    counter = Counter()
    assert asyncio.run(counter.aadd(2, times=3)) == 6
    assert counter.number == 6
    assert Counter.aadd.__doc__ == Counter.add.__doc__


def test_a_cancelled_caller_goes_on_when_its_call_has_ended() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait(10)
        ended.set()

    async def run() -> None:
        task = asyncio.create_task(in_thread(slow))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(run())


def test_a_call_that_still_waits_for_a_thread_never_begins_once_it_is_cancelled() -> None:
    go_on, calls = threading.Event(), list[int]()

    async def run() -> None:
        busy = [asyncio.create_task(in_thread(go_on.wait, 10)) for _ in range(WORKERS)]
        await asyncio.sleep(0.05)
        late = asyncio.create_task(in_thread(calls.append, 1))
        await asyncio.sleep(0.05)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(late, 1)
        go_on.set()
        await asyncio.gather(*busy)

    asyncio.run(run())
    assert calls == []


def _in_child(answers: Connection) -> None:
    answers.send(asyncio.run(in_thread(max, 1, 2)))


def test_work_in_a_daemon_raises_where_its_result_is_waited_for_and_may_be_given_up() -> None:
    def fails() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        in_daemon(fails, "fails").result(5)
    go_on = threading.Event()
    hangs = in_daemon(lambda: go_on.wait(5), "hangs")
    with pytest.raises(TimeoutError):
        hangs.result(0.01)
    assert not hangs.cancel(), "the thread cannot be stopped"
    go_on.set()
    assert hangs.result(5)


def test_a_forked_process_has_threads_of_its_own() -> None:
    asyncio.run(in_thread(max, 1, 2))
    answers, end = get_context("fork").Pipe(duplex=False)
    child = get_context("fork").Process(target=_in_child, args=(end,))
    child.start()
    try:
        assert answers.poll(20)
        assert answers.recv() == 2
    finally:
        child.join(5)
        child.kill()


def test_work_that_is_written_once_runs_without_an_event_loop_and_on_one() -> None:
    async def work(how: Execution) -> list[str]:
        async def awaited() -> str:
            return "awaited"

        return [
            await how.call(lambda: "blocking", awaited),
            await how.call(lambda: threading.current_thread().name),
        ]

    assert complete(work(SYNC)) == ["blocking", threading.current_thread().name]
    first, thread = asyncio.run(work(ASYNC))
    assert first == "awaited"
    assert thread != threading.current_thread().name


def test_work_that_waits_past_its_execution_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"Execution\.call"):
        complete(asyncio.sleep(0))


def test_a_file_lock_is_held_by_one_at_a_time_and_released_after_an_error(tmp_path: Path) -> None:
    inside: list[int] = []

    def work(number: int) -> None:
        with suppress(ValueError), file_lock(tmp_path / "lock"):
            inside.append(number)
            time.sleep(0.005)
            assert inside == [number]
            inside.clear()
            raise ValueError

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert inside == []
