"""Processes forked from a server that has imported and read what they need: one begins in 20 ms,
not after a second of imports.

Each is a process like any other: its own standard streams, environment, folder and exit code;
SIGKILL ends it alone. What a test says of a fresh interpreter (how it starts, in which encoding)
takes `subprocess`.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
# Before the server is started: the first process starts it.
SERVER.set_forkserver_preload(["tests.support.preloaded"])


def run(
    work: Callable[..., object],
    *args: object,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """Call `work` in a forked process and wait for its end. `environment` takes the place of the
    test's own.
    """
    with tempfile.TemporaryDirectory(prefix="longtable-forked-") as place:
        streams = tuple(Path(place) / name for name in ("in", "out", "err"))
        streams[0].write_bytes(stdin)
        process = SERVER.Process(
            target=_begin,
            args=(streams, dict(environment or os.environ), folder or Path.cwd(), work, args),
        )
        process.start()
        process.join(timeout)
        ended = process.exitcode is not None
        process.kill()
        process.join()
        said, complained = (path.read_bytes() for path in streams[1:])
        assert ended, (
            f"{work.__module__} did not end within {timeout}"
            f" s:\n{complained.decode(errors='replace')}"
        )
        assert process.exitcode is not None
        return subprocess.CompletedProcess(work.__name__, process.exitcode, said, complained)


def _begin(
    streams: Sequence[Path],
    environment: Mapping[str, str],
    folder: Path,
    work: Callable[..., object],
    args: Sequence[object],
) -> None:
    """Take streams, environment and folder, as a shell sets them up for a program, and begin."""
    for number, path in enumerate(streams):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115  # open to the end, as an interpreter's
        for number in range(3)
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # The server passes over what it cannot import, and each process would take a second to import
    # for itself.
    assert "tests.support.preloaded" in sys.modules, (
        "tests/support/preloaded.py does not import: a module it names has moved"
    )
    work(*args)
