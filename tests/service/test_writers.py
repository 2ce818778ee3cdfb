"""Eight processes write to one thread and are killed at random: no accepted message is lost or
doubled, each refused one is told.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from longtable.graph import Conversation, open_persistence
from tests.support.forked import SERVER
from tests.support.writers import CONTEXT, LEASE_SECONDS, Log, graph_on, talk

WRITERS = [f"w{n}" for n in range(8)]
EACH = 28
KILLS = 10
REFUSED = {"w7"}
"""Who does not queue."""


class Writers:
    """The processes, and a hand that kills."""

    def __init__(self, folder: Path) -> None:
        self.url, self.logs = (
            f"sqlite:///{folder}/chat.db",
            {name: Log(folder / f"{name}.log") for name in WRITERS},
        )
        self.processes: dict[str, BaseProcess] = {}

    def start(self, name: str) -> None:
        asked = sum(what == "asked" for what, _ in self.logs[name].lines())
        busy = "reject" if name in REFUSED else "queue"
        self.processes[name] = SERVER.Process(
            target=talk, args=(self.url, name, range(asked, EACH), busy, self.logs[name].path)
        )
        self.processes[name].start()

    def finished(self, name: str) -> bool:
        assert self.processes[name].exitcode in {None, 0}, f"{name} failed"
        return ("finished", name) in self.logs[name].lines()

    def kill(self, chance: random.Random) -> bool:
        """Kill one, rather one whose model is asked at this moment; tell whether there was one to
        kill.
        """
        living = [name for name in WRITERS if not self.finished(name)]
        working = [
            name for name in living if (self.logs[name].lines() or [("", "")])[-1][0] == "model"
        ]
        if not living:
            return False
        name = chance.choice(working if working and chance.random() < 0.7 else living)
        self.processes[name].kill()
        self.processes[name].join()
        self.start(name)
        return True


@contextmanager
def writers(folder: Path) -> Iterator[Writers]:
    started = Writers(folder)
    try:
        for name in WRITERS:
            started.start(name)
        yield started
    finally:
        for process in started.processes.values():
            process.kill()
            process.join()


def test_many_processes_write_to_one_thread_and_are_killed(tmp_path: Path) -> None:
    chance, kills = random.Random(11), 0
    with writers(tmp_path) as running:
        while not all(running.finished(name) or running.logs[name].lines() for name in WRITERS):
            time.sleep(0.05)
        for _ in range(KILLS):
            kills += running.kill(chance)
            time.sleep(chance.uniform(0.0, 2 * LEASE_SECONDS))
        for process in running.processes.values():
            process.join(120)
        assert all(running.finished(name) for name in WRITERS)
        told = {
            text: what
            for log in running.logs.values()
            for what, text in log.lines()
            if what not in {"model", "finished"}
        }
        with open_persistence(running.url) as kept:
            conversation = Conversation(
                graph_on(kept.checkpointer, kept.store, Log(tmp_path / "x.log")),
                "t",
                context=CONTEXT,
            )
            transcript = conversation.history()
    assert kills >= KILLS - 2
    asked = [str(m.text) for m in transcript if m.type == "human"]
    answers = [str(m.text) for m in transcript if m.type == "ai"]
    assert len(told) == len(WRITERS) * EACH
    for text, outcome in told.items():
        # "asked" is the last a writer said of it: it was killed meanwhile, and the message is there
        # or not.
        times = {"done": {1}, "stopped": {1}, "refused": {0}, "unsure": {0, 1}, "asked": {0, 1}}[
            outcome
        ]
        assert asked.count(text) in times, (text, outcome)
        assert answers.count(f"answer to {text}") in ({1} if outcome == "done" else {0, 1}), (
            text,
            outcome,
        )
    for name in WRITERS:
        mine = [int(text.removeprefix(f"{name}-")) for text in asked if text.startswith(f"{name}-")]
        assert mine == sorted(mine), name
    assert set(asked) <= set(told)
    assert (
        sum(outcome == "done" for outcome in told.values())
        >= EACH * (len(WRITERS) - len(REFUSED)) - 2 * KILLS
    )
    assert "refused" in told.values()
