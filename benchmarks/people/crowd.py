"""A crowd of people who talk to the web chat, and what that took."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from benchmarks.people.chat_servers import served
from benchmarks.people.comparison import lost
from benchmarks.people.machine import Machine, Peaks, Reading
from benchmarks.people.open_page import POLL_S, OpenPage, PageError
from benchmarks.people.person import Person, PlannedTurn, planned_turns

ARRIVALS = 0.85
"""The share of the time in which people arrive."""
CALM_MINUTES = 10.0
"""With less time than this people think faster."""
GRACE_S = 300.0
"""Whoever has not ended so long after the time is cut off."""
IDLE_PAGES = 100
IDLE_S = 30.0
AT_ONCE = 8
"""Threads that are compared at once in the end."""


@dataclass
class Crowd:
    """The people, and what came out."""

    people: list[Person]
    minutes: float
    seed: int
    errors: Counter[str] = field(default_factory=Counter[str])
    """By kind."""
    examples: dict[str, str] = field(default_factory=dict[str, str])
    lost: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])
    """What the web chat printed."""
    used: Reading = field(default_factory=Reading)
    """From the first arrival to the end of the last turn, which is `seconds`."""
    seconds: float = 1.0
    idle: Reading = field(default_factory=Reading)
    """By pages that are open while nobody asks anything."""
    idle_polls: int = 0
    at_rest: Peaks = field(default_factory=Peaks)
    """After the first two turns of one person."""
    peaks: Peaks = field(default_factory=Peaks)

    def complain(self, error: Exception) -> None:
        """Count an error, and say it at once."""
        kind = error.kind if isinstance(error, PageError) else type(error).__name__
        self.errors[kind] += 1
        self.examples.setdefault(kind, str(error))
        print(f"{kind}: {error}", file=sys.stderr, flush=True)


def run_crowd(
    home: Path,
    *,
    people: int,
    minutes: float,
    seed: int,
    on_postgres: bool,
    instances: int = 1,
    stretch: float = 1.0,
) -> Crowd:
    """Start the programs in a folder of their own, let people talk, and return what came out. Each
    person stays with one instance. `stretch` is by how much the model is slower.
    """
    crowd = Crowd([], minutes, seed)
    programs = served(home, on_postgres=on_postgres, instances=instances, stretch=stretch)
    with programs as (chats, store):
        scale = min(1.0, minutes / CALM_MINUTES)
        for number in range(people):
            address = chats[number % instances].address
            page = OpenPage(address, f"person-{number}", crowd.complain)
            crowd.people.append(Person(page, planned_turns(number, seed, scale), stretch))
        machine = Machine([chat.pid for chat in chats], home, store)
        asyncio.run(_talked(crowd, machine, [chat.address for chat in chats]))
    for chat in chats:
        crowd.complaints += chat.complaints()
    return crowd


async def _talked(crowd: Crowd, machine: Machine, addresses: Sequence[str]) -> None:
    """Let all people talk, and compare their threads in the end."""
    for address in addresses:
        await _warmed_up(crowd, address)
    machine.look(0)
    crowd.at_rest = replace(machine.peaks)
    before = machine.read()
    begun = time.monotonic()
    watches = [
        asyncio.create_task(machine.watch(lambda: sum(each.is_talking for each in crowd.people))),
        asyncio.create_task(_progress(crowd)),
    ]
    await _all_talked(crowd)
    crowd.seconds = time.monotonic() - begun
    for watch in watches:
        watch.cancel()
    await asyncio.gather(*watches, return_exceptions=True)
    crowd.used = machine.read().since(before)
    crowd.peaks = machine.peaks
    if crowd.minutes * 60 >= IDLE_S:
        await _idled(crowd, machine)
    gate = asyncio.Semaphore(AT_ONCE)
    await asyncio.gather(*(_compared(crowd, person, gate) for person in crowd.people))


async def _all_talked(crowd: Crowd) -> None:
    """Let people arrive one after the other, and wait until the last has left."""
    seconds = crowd.minutes * 60
    step = ARRIVALS * seconds / len(crowd.people)
    talks = [each.talk(step * place, crowd.complain) for place, each in enumerate(crowd.people)]
    try:
        async with asyncio.timeout(seconds + GRACE_S):
            await asyncio.gather(*talks)
    except TimeoutError as error:
        crowd.complain(error)


async def _progress(crowd: Crowd) -> None:
    """Say once a minute how far they are."""
    minute = 0
    while True:
        await asyncio.sleep(60)
        minute += 1
        turns = sum(len(each.taken) for each in crowd.people)
        errors = crowd.errors.total()
        print(f"minute {minute}: {turns:,} turns, {errors} errors", file=sys.stderr, flush=True)


async def _warmed_up(crowd: Crowd, address: str) -> None:
    """Take two turns before anything is measured, so that all is loaded."""
    page = OpenPage(address, "first-of-all", crowd.complain)
    turns = [
        PlannedTurn("first-a", "talk", "read", 0.0, 0.0, True),
        PlannedTurn("first-b", "query", "read", 0.0, 0.0, True),
    ]
    await Person(page, turns, 1.0).talk(0.0, crowd.complain)
    await page.http.aclose()


async def _idled(crowd: Crowd, machine: Machine) -> None:
    """Measure pages that are open while nobody asks."""
    pages = [person.page for person in crowd.people[:IDLE_PAGES] if person.taken]
    await asyncio.gather(*(page.open() for page in pages))
    await asyncio.sleep(1.5 * POLL_S)  # the first look of a page reads more than the others
    before = machine.read()
    polls = sum(page.polls for page in pages)
    await asyncio.sleep(IDLE_S)
    crowd.idle = machine.read().since(before)
    crowd.idle_polls = sum(page.polls for page in pages) - polls
    await asyncio.gather(*(page.close() for page in pages))


async def _compared(crowd: Crowd, person: Person, gate: asyncio.Semaphore) -> None:
    """Compare a person's thread with what the person sent and saw."""
    async with gate:
        try:
            if person.taken:
                faults = lost(person.taken, await person.page.export())
                crowd.lost += [f"{person.page.thread}: {fault}" for fault in faults]
        except (PageError, httpx.HTTPError) as error:
            crowd.complain(error)
        finally:
            await person.page.http.aclose()
