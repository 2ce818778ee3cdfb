"""A first search and a first report show in a terminal how far they are."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from longtable.app.console.index_progress import indexing
from tests.app.runner import PROGRAM, SECONDS, Home, make_home

BAR = "Reading threads for the index"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def shown(home: Home, *args: str) -> tuple[str, str]:
    """Run the program with standard error in a terminal. Return standard output and error."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=home.environment(TERM="xterm", COLUMNS="100"),
    )
    os.close(theirs)
    out, _ = process.communicate(timeout=SECONDS)
    told = b""
    while True:
        try:
            piece = os.read(ours, 10_000)
        except OSError:  # the other end was closed
            break
        told += piece
    os.close(ours)
    assert process.returncode == 0, told
    return out.decode(), told.decode()


def test_an_old_store_is_indexed_at_its_first_use_with_a_bar(home: Home) -> None:
    for name in ("a", "b", "c"):
        home.run("ask", "How many orders are there?", "--thread", name)
    out, told = shown(home, "usage")
    assert "built-in" in out
    assert BAR in told
    assert "/3" in told
    out, told = shown(home, "usage")
    assert "built-in" in out
    assert BAR not in told
    out, told = shown(home, "threads", "search", "orders")
    assert BAR in told
    assert out.count("orders") >= 3


def test_nothing_is_shown_where_standard_error_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with indexing("en") as on_indexed:
        on_indexed(1, 3)
    assert capsys.readouterr() == ("", "")
