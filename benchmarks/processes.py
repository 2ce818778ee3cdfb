"""What processes take of the machine.

Linux says it in /proc: processor time in hundredths of a second, memory as the proportional share
of each process, so that pages that processes share count once.
"""

import os
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


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
    """Return the processor time of the running and the ended children of a process."""
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
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] == "Z" else fields
