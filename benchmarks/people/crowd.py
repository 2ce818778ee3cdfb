"""A crowd of people who talk to one web chat, and what that took."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from benchmarks.people.kept import lost
from benchmarks.people.machine import Machine, Peaks, Reading, StoreServer
from benchmarks.people.open_page import OWNER_HEADER, POLL_S, OpenPage, PageError
from benchmarks.people.person import Person, PlannedTurn, planned_turns
from benchmarks.people.programs import Program, running
from benchmarks.people.shop import make_shop
from tests.app.runner import PROGRAM, Home
from tests.support.postgres import postgres_server

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
SETTINGS = f"""
[web]
owner_header = "{OWNER_HEADER}"
proxies = ["127.0.0.1"]
"""


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
        """Count an error."""
        kind = error.kind if isinstance(error, PageError) else type(error).__name__
        self.errors[kind] += 1
        self.examples.setdefault(kind, str(error))


def run_crowd(
    home: Path, *, people: int, minutes: float, seed: int, on_postgres: bool, stretch: float = 1.0
) -> Crowd:
    """Start the programs in a folder of their own, let people talk, and return what came out.
    `stretch` is by how much the model is slower.
    """
    crowd = Crowd([], minutes, seed)
    with served(home, on_postgres=on_postgres, stretch=stretch) as (chat, store):
        scale = min(1.0, minutes / CALM_MINUTES)
        for number in range(people):
            page = OpenPage(chat.address, f"person-{number}", crowd.complain)
            crowd.people.append(Person(page, planned_turns(number, seed, scale), stretch))
        asyncio.run(_talked(crowd, Machine(chat.pid, home, store), chat.address))
    crowd.complaints += chat.complaints()
    return crowd


@contextmanager
def served(
    home: Path, *, on_postgres: bool, stretch: float
) -> Iterator[tuple[Program, StoreServer | None]]:
    """Serve the web chat over a shop, with its model and its store."""
    make_shop(home / "shop.db")
    settings = home / "longtable.toml"
    settings.write_text(SETTINGS)
    own = Home(home)
    model_command = [sys.executable, "-m", "benchmarks.people.talk_model", str(stretch)]
    with running(model_command, own.environment(), home / "model.log") as model:
        store_url = _durable_store() if on_postgres else own.store
        environment = own.environment(
            LONGTABLE_STORE=store_url,
            LONGTABLE_MODEL="openai:gpt-4o-mini",
            LONGTABLE_BASE_URL=model.address,
            OPENAI_API_KEY="unused",
        )
        command = [str(PROGRAM), "web", "--port", "0", "--config", str(settings)]
        with running(command, environment, home / "web.log") as chat:
            store = StoreServer(store_url) if on_postgres else None
            yield chat, store
            if store is not None:
                store.close()


def _durable_store() -> str:
    """Return the URL of a new store on a PostgreSQL that waits for the disk, as in earnest."""
    server = postgres_server()
    server.run(server.url("postgres"), "ALTER SYSTEM SET fsync = on")
    server.run(server.url("postgres"), "SELECT pg_reload_conf()")
    return server.create()


async def _talked(crowd: Crowd, machine: Machine, address: str) -> None:
    """Let all people talk, and compare their threads in the end."""
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
