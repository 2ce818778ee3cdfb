"""What a store's file may suffer from: a full disk, no right to write, damage, a lock, few open
files, another time, older code.
"""

import contextlib
import io
import multiprocessing
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.faults.talk import LEASE_SECONDS, ask_until_it_fails, whole_turns
from longtable.base.errors import LongtableError
from longtable.graph import open_persistence

THREAD = "t"
FULL_BYTES = 600_000
FEW_FILES = 96
BACK_S = 3_600
NOBODY = 65_534
WAIT_S = 120.0
FIRST_RELEASE = "cbd0e45"
"""The last commit of 0.1.0."""


@dataclass(frozen=True)
class Suffered:
    """One fault: what a person saw of it, and which of the answered turns are not there
    afterwards.
    """

    fault: str
    saw: str
    lost: list[int]
    answered: int


Told = tuple[list[int], str]
"""Questions that were answered, and what was said when the next was not."""


def url_of(folder: Path) -> str:
    """Return the URL of the store in a folder."""
    return f"sqlite:///{folder / 'chat.db'}"


def asked(folder: Path, first: int, most: int) -> Told:
    """Ask questions; return which were answered, and how the first refusal reads."""
    try:
        with open_persistence(url_of(folder), lease_seconds=LEASE_SECONDS) as persistence:
            answered, error = ask_until_it_fails(persistence, THREAD, first, most)
    except LongtableError as failed:
        answered = []
        error = failed
    return answered, f"{type(error).__name__}: {error}" if error else ""


def unchanged(_: Path) -> None:
    """Do nothing."""


def suffered(
    fault: str,
    folder: Path,
    under: Callable[[Path], Told],
    *,
    before: Callable[[Path], object] = unchanged,
    after: Callable[[Path], object] = unchanged,
) -> Suffered:
    """Ask, ask under the fault in a process of its own, mend it, ask again; compare what was
    answered with what is there.
    """
    begun, _ = asked(folder, 1, 2)
    before(folder)
    meanwhile, saw = in_child(under, folder)
    after(folder)
    again, failed = asked(folder, 9_000, 2)
    if failed:
        raise AssertionError(f"{fault}: the thread cannot be used afterwards: {failed}")
    with open_persistence(url_of(folder), lease_seconds=LEASE_SECONDS) as persistence:
        there = whole_turns(persistence, THREAD)
    answered = [*begun, *meanwhile, *again]
    lost = [number for number in answered if there.count(number) != 1]
    return Suffered(fault, saw.replace(str(folder), "..."), lost, len(answered))


def in_child(work: Callable[[Path], Told], folder: Path) -> Told:
    """Run something in a process of its own, for its limits and its user do not come back."""
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_in_child, args=(work, folder, there))
    process.start()
    there.close()
    try:
        if not here.poll(WAIT_S):
            raise AssertionError("the process under the fault did not come back")
        report: Told = here.recv()
    finally:
        process.kill()
        process.join()
    return report


def _in_child(work: Callable[[Path], Told], folder: Path, pipe: Connection) -> None:
    pipe.send(work(folder))


# -- faults ----------------------------------------------------------------------------------------


def full(folder: Path) -> Told:
    """Ask until no file may grow any more: SQLite cannot tell that from a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, FULL_BYTES))
    return asked(folder, 100, 500)


def asked_on(folder: Path) -> Told:
    """Ask until it fails."""
    return asked(folder, 100, 500)


def without_rights(folder: Path) -> Told:
    """Ask as somebody who may read the file and not write it."""
    if os.getuid() == 0:
        os.setuid(NOBODY)
    return asked(folder, 100, 1)


def locked(folder: Path) -> Told:
    """Ask while another program has the file locked."""
    with contextlib.closing(sqlite3.connect(folder / "chat.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        return asked(folder, 100, 1)


def few_files(folder: Path) -> Told:
    """Ask while the process may open no more files."""
    answered, _ = asked(folder, 90, 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, FEW_FILES))
    descriptors = []
    with contextlib.suppress(OSError):
        while True:
            descriptors.append(os.open(os.devnull, os.O_RDONLY))
    more, saw = asked(folder, 100, 1)
    for handle in descriptors:
        os.close(handle)
    return [*answered, *more], saw


def clock_back(folder: Path) -> Told:
    """Ask an hour before the last turn was asked, in a process that has made no checkpoint yet."""
    now_ns = time.time_ns
    now = time.time
    time.time_ns = lambda: now_ns() - BACK_S * 10**9
    time.time = lambda: now() - BACK_S
    return asked(folder, 100, 2)


def damage(folder: Path) -> None:
    """Overwrite the file's pages, and keep a copy of what they were."""
    file = folder / "chat.db"
    shutil.copy(file, folder / "copy")
    pages = bytearray(file.read_bytes())
    for start in range(4_096, len(pages), 4_096):
        pages[start : start + 200] = bytes(200)
    file.write_bytes(pages)


def damaged(folder: Path) -> Told:
    """Ask a file whose pages are overwritten."""
    damage(folder)
    return asked(folder, 100, 1)


def restore(folder: Path) -> None:
    """Put the copy back."""
    for name in ("chat.db-wal", "chat.db-shm"):
        (folder / name).unlink(missing_ok=True)
    (folder / "copy").replace(folder / "chat.db")


def take_rights(folder: Path) -> None:
    """Let nobody write in the folder."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)


def give_rights(folder: Path) -> None:
    """Let its owner write again."""
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)


# -- older code ------------------------------------------------------------------------------------


def older_code(folder: Path) -> Told:
    """Ask by the code of the first release."""
    root = Path(__file__).parents[2]
    packed = subprocess.run(
        ["git", "archive", FIRST_RELEASE], cwd=root, capture_output=True, timeout=WAIT_S, check=True
    ).stdout
    home = folder / "old"
    with tarfile.open(fileobj=io.BytesIO(packed)) as tree:
        tree.extractall(home / "longtable", filter="data")
    asking = f"""
from langchain_core.messages import AIMessage
from longtable.graph import Context, Conversation, build_graph, open_persistence
from tests.support.models import ScriptedModel
def say(messages):
    return AIMessage("answer to " + next(m.text for m in reversed(messages) if m.type == "human"))
with open_persistence({url_of(folder)!r}) as kept:
    graph = build_graph(model=ScriptedModel(say=say)).compile(checkpointer=kept.checkpointer, store=kept.store)
    for number in (100, 101):
        Conversation(graph, {THREAD!r}, context=Context(model_limit=16_000)).ask(f"question {{number}}")
"""
    script = home / "asking.py"
    # Only the old tree is found as longtable: this one's installation is taken out.
    found = (
        "sys.meta_path = [finder for finder in sys.meta_path if 'editable' not in getattr(finder,"
        " '__module__', '')]"
    )
    script.write_text(
        f"import sys\n{found}\nsys.path[:0] = [{str(home)!r},"
        f" {str(home / 'longtable')!r}]\n{asking}"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd=home,
    )
    return ([100, 101], "") if done.returncode == 0 else ([], done.stderr.strip().splitlines()[-1])


# -- all -------------------------------------------------------------------------------------------


def all_faults() -> Iterator[Suffered]:
    """Run each fault in a folder of its own."""
    for fault, under, before, after in (
        ("disk full (no file may grow)", full, unchanged, unchanged),
        ("file without the right to write", without_rights, take_rights, give_rights),
        ("file damaged, then restored", damaged, unchanged, restore),
        ("file locked by another program for longer than 10 s", locked, unchanged, unchanged),
        ("no more open files", few_files, unchanged, unchanged),
        ("clock set back by an hour", clock_back, unchanged, unchanged),
        ("code of 0.1.0 on the same file in between", older_code, unchanged, unchanged),
    ):
        with folder_for_all() as folder:
            yield suffered(fault, folder, under, before=before, after=after)
    if (row := small_disk()) is not None:
        yield row


def small_disk() -> Suffered | None:
    """Fill a real small disk (tmpfs), where this user may mount one."""
    with folder_for_all() as folder:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
            capture_output=True,
            timeout=WAIT_S,
            check=False,
        )
        if mounted.returncode:
            return None
        try:
            return suffered("disk full (tmpfs of 1 MiB)", folder, asked_on, after=_grow)
        finally:
            subprocess.run(["umount", folder], timeout=WAIT_S, check=True)


def _grow(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=16m", folder], timeout=WAIT_S, check=True)


@contextlib.contextmanager
def folder_for_all() -> Iterator[Path]:
    """Make a folder that every user of the machine reaches."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
