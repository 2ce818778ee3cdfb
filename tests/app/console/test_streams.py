"""The command line where a shell closed its streams, where they take few characters, and where they
cannot be written.

Each case starts a fresh interpreter, which takes two seconds: one case for each way the program
writes.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.runner import PROGRAM, SECONDS, Home, make_home

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
QUESTION = "How many orders are there?"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def shell(home: Home, line: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of shell in which `longtable` is the program."""
    text = line.replace("longtable", shlex.quote(str(PROGRAM)))
    command = ["/bin/sh", "-c", text]
    done = subprocess.run(
        command, env=home.environment(**env), capture_output=True, timeout=SECONDS, check=False
    )
    assert b"Traceback" not in done.stdout + done.stderr, done.stderr.decode()
    assert b"went wrong" not in done.stdout + done.stderr, done.stderr.decode()
    assert b"Exception ignored" not in done.stderr, done.stderr.decode()
    return done


@pytest.mark.parametrize(
    "line",
    [
        "longtable chat <&- >&-",
        f"longtable ask '{QUESTION}' 2>&-",
        f"longtable ask '{QUESTION}' --json <&- >&- 2>&-",
    ],
)
def test_a_closed_stream_is_an_empty_one(home: Home, line: str) -> None:
    before = (home.folder / "shop.db").read_bytes()
    done = shell(home, line)
    assert done.returncode == 0
    assert done.stderr == b""
    assert (home.folder / "shop.db").read_bytes() == before
    store = (home.folder / "threads.db").read_bytes()
    assert store.startswith(b"SQLite format 3\0")  # not what was meant for the screen


def test_a_character_that_the_encoding_lacks_is_replaced(home: Home) -> None:
    done = shell(home, "longtable ask '有多少 orders？ 🙂'", PYTHONIOENCODING="gbk")
    assert done.returncode == 0
    assert "30" in done.stdout.decode("gbk")
    assert "有多少 orders" in done.stdout.decode("gbk")


def test_an_error_is_shown_in_an_encoding_of_few_characters(home: Home) -> None:
    done = shell(home, "longtable ask '有多少？' --model-limit 0", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert b"--model-limit" in done.stderr


def test_json_loses_no_character_in_any_encoding(home: Home) -> None:
    done = shell(home, "longtable ask '有多少 orders？ 🙂' --json", PYTHONIOENCODING="ascii")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["text"] for event in events if event["type"] == "question"] == [
        "有多少 orders？ 🙂"
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "line",
    [
        f"longtable ask '{QUESTION}'",
        f"echo '{QUESTION}' | longtable chat --json",
        "longtable --help",
        "longtable ask --help",
    ],
)
def test_output_that_cannot_be_written_is_one_line_and_a_failure(home: Home, line: str) -> None:
    done = shell(home, f"{line} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "Error: The output cannot be written: No space left on device."
    ]


@pytest.mark.parametrize(
    "line",
    [
        f"longtable ask '{QUESTION}' --json | head -1",
        f"yes '{QUESTION}' | head -20 | longtable chat | head -1",
        "longtable ask --help | head -1",
    ],
)
def test_a_reader_that_goes_away_ends_it_quietly(home: Home, line: str) -> None:
    done = shell(home, line)
    assert done.stderr == b""
    assert len(done.stdout.splitlines()) == 1
