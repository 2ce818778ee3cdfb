"""kill -9 at every superstep and at random moments, in each durability mode, on each saver."""

import multiprocessing
import random
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

from benchmarks.faults.talk import Durability, Left, Log, inherit, talk
from longtable.graph import Persistence, open_persistence

MODES: tuple[Durability, ...] = ("sync", "async", "exit")
STEPS = 7
"""Supersteps of the doomed turn: ingest, estimate, respond, run_tools, estimate, respond,
settle.
"""
WAIT_S = 60.0
MOST_TRIES = 3
"""Processes that answered before they were killed are looked at, but not counted as kills: up to so
many for each are tried.
"""


@dataclass(frozen=True)
class Kills:
    """What kills of one kind left."""

    saver: str
    mode: Durability
    where: str
    kills: int
    lost: list[str]
    resumed: int
    unstored: int
    """Turns whose question was not there yet: the process had not been told that it was."""


class Executioner:
    """Starts processes that talk, and kills them."""

    def __init__(self, folder: Path, server: ForkServerContext | None = None) -> None:
        self.folder = folder
        self.context = server or multiprocessing.get_context("forkserver")
        if server is None:
            self.context.set_forkserver_preload(["benchmarks.faults.talk"])
        self.threads = 0

    def kill(
        self,
        url: str,
        persistence: Persistence,
        mode: Durability,
        *,
        boundary: int | None,
        after_s: float = 0.0,
    ) -> tuple[Left, bool]:
        """Kill one process in its second turn, at a superstep or after a time; return what is left,
        and whether it was killed in time.
        """
        self.threads += 1
        thread = f"k{self.threads}"
        log = Log(self.folder / f"{thread}.log")
        process = self.context.Process(target=talk, args=(url, thread, mode, boundary, log.path))
        process.start()
        deadline = time.monotonic() + WAIT_S
        while "asked 2" not in log.lines() and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        if boundary is None:
            time.sleep(after_s)
            process.kill()
        process.join(WAIT_S)
        lines = log.lines()
        return inherit(persistence, thread, lines), "answered 2" not in lines

    def span(self, url: str, mode: Durability) -> float:
        """Return how long the second turn takes when nobody kills it."""
        log = Log(self.folder / "span.log")
        log.path.unlink(missing_ok=True)
        process = self.context.Process(
            target=talk, args=(url, f"span-{mode}", mode, None, log.path)
        )
        process.start()
        begun = 0.0
        while process.is_alive():
            if not begun and "asked 2" in log.lines():
                begun = time.monotonic()
            if "answered 2" in log.lines():
                break
            time.sleep(0.001)
        ended = time.monotonic()
        process.join(WAIT_S)
        return ended - begun


def kills(saver: str, url: str, folder: Path, *, random_kills: int, seed: int = 7) -> list[Kills]:
    """Kill at every superstep, and at so many random moments, in each mode."""
    chance = random.Random(seed)
    executioner = Executioner(folder)
    rows = []
    with open_persistence(url, lease_seconds=0.3) as persistence:
        for mode in MODES:
            ends = [
                executioner.kill(url, persistence, mode, boundary=step) for step in range(STEPS)
            ]
            rows.append(_row(saver, mode, "each superstep", ends))
            span = executioner.span(url, mode)
            ends = []
            while (
                sum(killed for _, killed in ends) < random_kills
                and len(ends) < MOST_TRIES * random_kills
            ):
                ends.append(
                    executioner.kill(
                        url, persistence, mode, boundary=None, after_s=chance.uniform(0, span)
                    )
                )
            rows.append(_row(saver, mode, "random moments", ends))
    return rows


def _row(saver: str, mode: Durability, where: str, ends: list[tuple[Left, bool]]) -> Kills:
    count = Counter(killed for _, killed in ends)
    lefts = [left for left, _ in ends]
    lost = [text for left in lefts for text in left.lost]
    return Kills(
        saver,
        mode,
        where,
        count[True],
        lost,
        sum(left.resumed for left in lefts),
        sum(not left.stored for left in lefts),
    )
