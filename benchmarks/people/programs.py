"""Programs that run beside the benchmark, and what they take of the machine.

Linux says it in /proc: processor time in hundredths of a second, memory as the proportional share
of each process, so that pages that processes share count once.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

ADDRESS = re.compile(r"http://[\w.]+:\d+[\w/]*")
ROOT = Path(__file__).parents[2]
START_S = 60.0
END_S = 10.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Program:
    """A program that runs, and the address that it printed."""

    pid: int
    address: str
    log: Path

    def complaints(self) -> list[str]:
        """Return what it printed after its address."""
        return self.log.read_text(errors="replace").splitlines()[1:]


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Program]:
    """Start a program, wait until it prints an address, and end it with the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + START_S
        while not (found := ADDRESS.search(log.read_text())):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text()[-3_000:]}")
            time.sleep(0.05)
        yield Program(process.pid, found.group().rstrip("/"), log)
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    parents = {int(path.name): _stat(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for child, stat in parents.items() if stat and int(stat[1]) in level]
        found += level
    return found


def own_seconds(pid: int) -> float:
    """Return the processor time of a process without that of its children."""
    stat = _stat(pid)
    return (int(stat[11]) + int(stat[12])) / TICKS if stat else 0.0


def children_seconds(pid: int) -> float:
    """Return the processor time of a process's children, also of those that have ended."""
    family = [pid, *descendants(pid)]
    ended = chain.from_iterable(_stat(each)[13:15] for each in family)
    return sum(map(int, ended)) / TICKS + sum(own_seconds(each) for each in family[1:])


def parent_of(pid: int) -> int:
    """Return the process that started a process."""
    return int(_stat(pid)[1])


def memory_mib(pids: Sequence[int]) -> float:
    """Return the memory of processes, a page that several share counted once among them all."""
    return sum(map(_shared_out_kib, pids)) / 1024


def _shared_out_kib(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended meanwhile
        return 0
    found = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, an empty list if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
