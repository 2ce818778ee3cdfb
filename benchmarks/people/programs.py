"""Programs that run beside the benchmark."""

import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ADDRESS = re.compile(r"http://[\w.]+:\d+[\w/]*")
ROOT = Path(__file__).parents[2]
START_S = 60.0
END_S = 10.0


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
