"""Running turns that outlive their reader: any number of readers may follow a turn, come late, and
go away.

A turn runs in a task of its own. Its events are numbered from 1 and kept until a while after its
end; later `Conversation.turns` has them. All methods belong to one event loop.
"""

import asyncio
import bisect
from array import array
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from longtable.base.errors import ConfigError, ThreadBusyError, TooManyTurnsError
from longtable.base.events import Event
from longtable.graph.conversation import Conversation
from longtable.graph.running.past_events import MOST_ROWS
from longtable.nodes.telemetry import log_failure

PIECES = ("token", "reasoning")
"""Events that are pieces of a text. Neighbours are kept as one."""


@dataclass
class _Entry:
    """One event, or neighbouring pieces of a text as one event."""

    last: int
    """Number of the newest event that the entry holds."""
    event: Event
    ends: "array[int]" = field(default_factory=lambda: array("L"))
    """Of pieces of a text: where each ends in the text of `event`."""

    def add(self, piece: Any) -> None:
        """Append a piece to the text."""
        whole: Any = self.event
        self.event = cast("Event", {**whole, "text": whole["text"] + piece["text"]})
        self.ends.append(len(whole["text"]) + len(piece["text"]))
        self.last += 1

    def after(self, number: int) -> Event:
        """Return the event without the pieces up to `number`."""
        read = number - (self.last - len(self.ends))
        if not self.ends or read <= 0:
            return self.event
        whole: Any = self.event
        return cast("Event", {**whole, "text": whole["text"][self.ends[read - 1] :]})


class _Log:
    """The events of one turn, and a signal for those who follow it."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.is_over = False
        self.accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def add(self, event: Event) -> None:
        """Append an event, and wake all readers."""
        newest = self.entries[-1] if self.entries else None
        if newest is not None and newest.ends and _continues(newest.event, event):
            newest.add(event)
        else:
            last = newest.last + 1 if newest is not None else 1
            entry = _Entry(last, _bounded(event))
            if event["type"] in PIECES:
                entry.ends.append(len(cast("Any", event)["text"]))
            self.entries.append(entry)
        self.wake()

    def wake(self) -> None:
        """Let all readers look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, after: int) -> tuple[int, Event] | None:
        """Return the first event after a number, with its own number. Wait for it if the turn is
        not over; otherwise return None.
        """
        while True:
            place = bisect.bisect_right(self.entries, after, key=_last_of)
            if place < len(self.entries):
                entry = self.entries[place]
                return entry.last, entry.after(after)
            if self.is_over:
                return None
            await self._changed.wait()


def _last_of(entry: _Entry) -> int:
    return entry.last


def _continues(before: Event, event: Event) -> bool:
    """Return whether an event is the next piece of the same text."""
    same = event["type"] == before["type"] and event.get("voice") == before.get("voice")
    return same and event["type"] in PIECES


def _bounded(event: Event) -> Event:
    """Return an event with at most `MOST_ROWS` rows, as a past turn has them."""
    if event["type"] != "query_finished" or len(event.get("rows", ())) <= MOST_ROWS:
        return event
    return {**event, "rows": event["rows"][:MOST_ROWS]}


class RunningTurns:
    """The turns that run in this process, at most one a thread.

    A finished turn is forgotten after `keep_seconds`. At most `most` turns are kept; of finished
    ones the oldest goes first. The events of a turn take about the room of its text and of the
    first 200 rows of each result.
    """

    def __init__(self, keep_seconds: float = 60.0, most: int = 1_000) -> None:
        if keep_seconds < 0 or most < 1:
            raise ConfigError(
                "RunningTurns takes keep_seconds of at least 0 and a `most` of at least 1, found"
                f" keep_seconds={keep_seconds}, most={most}"
            )
        self.keep_seconds = keep_seconds
        self.most = most
        self._logs: dict[str, _Log] = {}
        self._closed = False

    async def start(
        self,
        conversation: Conversation,
        question: str | None = None,
        *,
        id: str | None = None,
        name: str | None = None,
        images: Sequence[str | bytes] = (),
        answer: Any = None,
        waiting_id: str | None = None,
    ) -> None:
        """Begin a turn, and return once it has been accepted, which its first event shows. The
        arguments are those of `Conversation.astream`: an `answer` continues a waiting turn, and
        without question and answer a failed or interrupted turn is run again.

        While a turn of the thread runs here, a question joins it if the conversation's `when_busy`
        is "steer". Otherwise raises `ThreadBusyError`. Raises `TooManyTurnsError` if `most` turns
        are running, `ConfigError` after `aclose`, and whatever the turn raises before it is
        accepted. A later error is the turn's last event, `failed`.
        """
        if self._closed:
            raise ConfigError("these running turns were closed: make new ones, RunningTurns()")
        thread_id = conversation.thread_id
        if self.running(thread_id):
            if question is None or conversation.when_busy != "steer":
                raise ThreadBusyError(thread_id)
            await conversation.asteer(question, wait=False)
            return
        self._make_room(thread_id)
        events = conversation.astream(
            question, id=id, name=name, images=images, answer=answer, waiting_id=waiting_id
        )
        log = _Log()
        self._logs[thread_id] = log
        log.task = asyncio.create_task(_run(events, log))
        log.task.add_done_callback(partial(self._ended, thread_id, log))
        await asyncio.shield(log.accepted)

    def running(self, thread_id: str) -> bool:
        """Return whether a turn of the thread runs here."""
        log = self._logs.get(thread_id)
        return log is not None and not log.is_over

    async def follow(
        self, thread_id: str, after: int = 0
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """Yield the events of the thread's newest turn after number `after`, each with its number,
        and go on until the turn is over. Yield nothing if no turn of the thread is kept.

        Pieces of a text that have come in the meantime are yielded as one, with the number of the
        last. Closing the generator does not stop the turn. The caller must make sure that the
        reader may see the thread.
        """
        log = self._logs.get(thread_id)
        number = after
        while log is not None and (following := await log.read(number)) is not None:
            number = following[0]
            yield following

    async def stop(self, thread_id: str) -> None:
        """Interrupt the running turn, and wait until it has ended; `start(conversation)` continues
        it. Do nothing if none runs.
        """
        log = self._logs.get(thread_id)
        await _cancelled([log] if log is not None else [])

    async def aclose(self) -> None:
        """Interrupt all running turns, wait for their end, and forget all turns."""
        self._closed = True
        await _cancelled(list(self._logs.values()))
        self._logs.clear()

    def _make_room(self, thread_id: str) -> None:
        """Forget the oldest finished turns, so that one more can be kept."""
        self._logs.pop(thread_id, None)
        over = [name for name, log in self._logs.items() if log.is_over]
        for name in over[: max(0, len(self._logs) + 1 - self.most)]:
            del self._logs[name]
        if len(self._logs) >= self.most:
            raise TooManyTurnsError(most=self.most)

    def _ended(self, thread_id: str, log: _Log, task: asyncio.Task[None]) -> None:
        log.is_over = True
        log.wake()
        error = None if task.cancelled() else task.exception()
        if log.accepted.done():
            if error is not None:  # readers were told by the event `failed`
                log_failure("turn_failed", cast("Exception", error))
        elif error is None:
            log.accepted.set_result(None)
        else:
            log.accepted.set_exception(error)
            self._forget(thread_id, log)
        asyncio.get_running_loop().call_later(self.keep_seconds, self._forget, thread_id, log)

    def _forget(self, thread_id: str, log: _Log) -> None:
        if self._logs.get(thread_id) is log:
            del self._logs[thread_id]


async def _run(events: AsyncGenerator[Event, None], log: _Log) -> None:
    """Read the events of a turn into its log."""
    async with aclosing(events):
        async for event in events:
            log.add(event)
            # What fails before anything else was not accepted: the error itself follows.
            if event["type"] != "failed" and not log.accepted.done():
                log.accepted.set_result(None)


async def _cancelled(logs: Sequence[_Log]) -> None:
    """Cancel the tasks of these turns, and wait for their end."""
    tasks = [log.task for log in logs if log.task is not None and not log.task.done()]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
