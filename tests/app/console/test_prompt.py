"""The chat in a terminal: a real process under a pty, Ctrl-C, Ctrl-D, and a killed turn."""

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.runner import PROGRAM, SECONDS, Home, make_home
from tests.support.model_server import ModelServer, call, open_model_server, say

PROMPT = "\x1b[0m>"
"""What begins each drawing of the prompt."""
STARTER = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes standard input the terminal that Ctrl-C is typed at, and becomes the program."""
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


class Terminal:
    """A chat under a pty; `seen` is all it has shown."""

    def __init__(self, home: Home, *args: str, **env: str) -> None:
        self.end, inside = pty.openpty()
        given = home.environment(TERM="xterm-256color", COLUMNS="120", LINES="40", **env)
        # A suite started in the background of a shell has SIGINT ignored, and so would its
        # children; no handler is inherited.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", STARTER, PROGRAM, "chat", *args],
                stdin=inside,
                stdout=inside,
                stderr=inside,
                env=given,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        os.close(inside)
        self.seen = ""
        self._mark = 0

    def expect(self, text: str) -> None:
        """Wait until the text is shown after what was expected before."""
        deadline = time.monotonic() + SECONDS
        while text not in self.seen[self._mark :]:
            ready, _, _ = select.select([self.end], [], [], max(0.0, deadline - time.monotonic()))
            data = b""
            if ready:
                try:
                    data = os.read(self.end, 65536)
                except OSError:  # the other side is closed
                    data = b""
            if not data:
                raise AssertionError(f"never saw {text!r} in:\n{self.seen}")
            self.seen += data.decode(errors="replace")
        self._mark = self.seen.index(text, self._mark) + len(text)

    def type(self, text: str | bytes) -> None:
        os.write(self.end, text.encode() if isinstance(text, str) else text)

    def paste(self, text: str) -> None:
        """Type a text as a terminal hands over a paste."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def leave(self) -> None:
        """Type Ctrl-D once the prompt has taken the terminal over: what comes before is no Ctrl-D
        to it.
        """
        time.sleep(0.3)
        self.type("\x04")

    def interrupt(self) -> None:
        """Type Ctrl-C, a moment later: the prompt has to have taken the terminal over."""
        time.sleep(0.3)
        self.type("\x03")

    def close(self) -> int:
        return self.process.wait(SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self.end)


def using(server: ModelServer) -> list[str]:
    return ["--model", "gpt-4o-mini", "--base-url", server.base_url]


def test_ctrl_c_cancels_an_answer_or_a_query_and_the_next_turn_works(
    home: Home, server: ModelServer
) -> None:
    hold = threading.Event()
    server.script(
        say("slow words that never end", hold=hold),
        call("run_sql", sql=ENDLESS),
        say("fine again"),
    )
    with Terminal(home, "--thread", "t", *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.type("hello\n")
        chat.expect("slow")
        chat.interrupt()
        chat.expect("Cancelled. The thread is kept")
        assert "^C" not in chat.seen, "in the last column it moves the answer down by a line"
        hold.set()
        chat.type("count for ever\n")
        chat.expect("run_sql")
        chat.interrupt()
        chat.expect("Cancelled")
        chat.type("你好\n")
        chat.expect("fine again")
        chat.expect("上下文")
        chat.expect(PROMPT)
        chat.leave()
        chat.expect("longtable chat --thread t")
        assert chat.close() == 0
    sent = server.requests[2]
    # The question without an answer has a note for one: no two messages of the user in a row.
    around = ["assistant", "user", "assistant", "tool", "user"]
    assert sent.roles == ["system", "user", *around]
    asked = [message["content"] for message in sent.messages if message["role"] == "user"]
    assert asked == ["hello", "count for ever", "你好"]


def test_ask_waits_for_the_turn_of_another_process_and_then_asks(
    home: Home, server: ModelServer
) -> None:
    hold = threading.Event()
    server.script(say("the first answer", hold=hold), say("the second answer"))

    def ask(text: str) -> subprocess.Popen[str]:
        given: list[str | Path] = [PROGRAM, "ask", text, "--thread", "t", *using(server)]
        return subprocess.Popen(
            given,
            env=home.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    with ask("one") as first, ask_later(server, lambda: ask("two")) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        said = ""
        while "has not ended yet" not in said:
            line = second.stdout.readline()
            assert line, said
            said += line
        hold.set()
        assert "the second answer" in second.stdout.read()
        assert "the first answer" in first.stdout.read()
    assert (first.returncode, second.returncode) == (0, 0)


def ask_later(
    server: ModelServer, begin: Callable[[], subprocess.Popen[str]]
) -> subprocess.Popen[str]:
    deadline = time.monotonic() + SECONDS
    while not server.requests:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return begin()


def test_every_byte_typed_is_text_in_any_locale_and_half_a_character_keeps_no_enter(
    home: Home, server: ModelServer
) -> None:
    """Readline takes bytes over 127 for keys with Meta in the locale C, unless it is told not
    to.
    """
    server.script(say("fine"), say("fine again"))
    with Terminal(home, *using(server), LC_ALL="C") as chat:
        chat.expect("Ctrl-D leaves")
        chat.expect(PROMPT)
        chat.type("有多少？\n")
        chat.expect("fine")
        chat.expect(PROMPT)
        chat.type(b"half \xf0\x9f\x98\n")
        chat.expect("第 6 字节不是有效的 UTF-8")
        chat.expect(PROMPT)
        chat.type("你好\n")
        chat.expect("fine again")
        chat.type("/quit\n")
        assert chat.close() == 0
    assert [
        message["content"] for message in server.requests[1].messages if message["role"] == "user"
    ] == ["有多少？", "你好"]


def test_a_second_ctrl_c_at_the_prompt_leaves_also_where_the_suite_ignores_it(home: Home) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        chat = Terminal(home)
    finally:
        signal.signal(signal.SIGINT, before)
    with chat:
        chat.expect("Ctrl-D leaves")
        chat.expect(PROMPT)
        chat.interrupt()
        chat.expect("Ctrl-C again")
        chat.expect(PROMPT)
        chat.interrupt()
        chat.expect("longtable chat --thread")
        assert chat.close() == 0


def test_a_killed_turn_is_finished_when_the_thread_is_opened_again(
    home: Home, server: ModelServer
) -> None:
    hold = threading.Event()
    server.script(say("half an answer", hold=hold), say("the whole answer"), say("and the next"))
    with Terminal(home, "--thread", "t", *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.type("the question\n")
        chat.expect("half")
        chat.kill()
        hold.set()
    done = home.run("ask", "next question", "--thread", "t", *using(server))
    assert "thread t, continued" in done.stdout
    told, _, rest = done.stdout.partition("The last turn has not ended yet")
    assert told
    assert "the whole answer" in rest.partition("and the next")[0]
    users = [
        message["content"] for message in server.requests[2].messages if message["role"] == "user"
    ]
    assert users == ["the question", "next question"]


def test_terminal_draws_markdown_tables_and_the_gauge_without_foreign_escapes(
    home: Home, server: ModelServer
) -> None:
    server.script(
        call("run_sql", sql="SELECT customer FROM orders WHERE id = 30"),
        say("**bold** [link](http://x/\x1b]0;t\x07) end"),
    )
    with Terminal(home, *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.type("who\n")
        chat.expect("1 row,")
        chat.expect("tokens (")
        chat.type("/quit\n")
        chat.expect("Continue with")
        assert chat.close() == 0
    assert "\x1b]" not in chat.seen
    assert "**bold**" not in chat.seen
    assert "red" in chat.seen


def test_a_paste_of_many_lines_is_one_message(home: Home, server: ModelServer) -> None:
    server.script(say("one answer"), say("another answer"))
    lines = [f"line {number} of a paste" for number in range(144)]
    with Terminal(home, *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.expect(PROMPT)
        chat.paste("\r".join(lines))
        chat.expect("line 143")
        chat.type("\r")
        chat.expect("one answer")
        chat.expect("tokens (")
        chat.expect(PROMPT)
        chat.type("a\x1b\rb\r")
        chat.expect("another answer")
        chat.expect("tokens (")
        chat.leave()
        chat.expect("Continue with")
        assert chat.close() == 0
    asked = [request.messages[-1]["content"] for request in server.requests]
    assert asked == ["\n".join(lines), "a\nb"]


def test_a_paste_while_an_answer_comes_is_one_message(home: Home, server: ModelServer) -> None:
    hold = threading.Event()
    server.script(say("slow words that never end", hold=hold), say("second answer"))
    with Terminal(home, *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.type("hello\r")
        chat.expect("slow")
        chat.paste("one\rtwo\rthree")
        time.sleep(0.2)
        hold.set()
        chat.expect("tokens (")
        chat.expect("three")
        chat.type("\r")
        chat.expect("second answer")
        chat.type("/quit\r")
        chat.expect("Continue with")
        assert chat.close() == 0
    assert [request.messages[-1]["content"] for request in server.requests] == [
        "hello",
        "one\ntwo\nthree",
    ]


def test_a_paste_before_the_first_prompt_is_one_message(home: Home, server: ModelServer) -> None:
    server.script(say("one answer"), say("another answer"))
    lines = [f"line {number} of a paste" for number in range(144)]
    with Terminal(home, *using(server)) as chat:
        chat.type("".join(f"{line}\r" for line in lines))  # no terminal marks it yet
        chat.expect("Ctrl-D leaves")
        chat.expect("line 143")
        chat.type("\r")
        chat.expect("one answer")
        chat.expect("tokens (")
        chat.leave()
        chat.expect("Continue with")
        assert chat.close() == 0
    asked = [request.messages[-1]["content"] for request in server.requests]
    assert asked == ["\n".join(lines)]


@pytest.mark.parametrize("typed", ["hello\r", "hello"])
def test_one_line_typed_before_the_first_prompt_is_sent_where_enter_was_typed(
    home: Home, server: ModelServer, typed: str
) -> None:
    server.script(say("one answer"))
    with Terminal(home, *using(server)) as chat:
        chat.type(typed)
        chat.expect("Ctrl-D leaves")
        chat.expect(PROMPT)
        if typed == "hello":
            time.sleep(0.5)
            assert not server.requests
            chat.type(" you\r")
        chat.expect("one answer")
        chat.leave()
        chat.expect("Continue with")
        assert chat.close() == 0
    asked = [request.messages[-1]["content"] for request in server.requests]
    assert asked == ["hello" if typed.endswith("\r") else "hello you"]


def test_the_prompt_remembers_what_was_typed_in_a_private_file_and_completes_commands(
    home: Home, server: ModelServer
) -> None:
    server.script(say("first answer"), say("second answer"))
    with Terminal(home, *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.expect(PROMPT)
        chat.type("how many\x1b\rorders?\r")
        chat.expect("first answer")
        chat.expect("tokens (")
        chat.leave()
        assert chat.close() == 0
    [file] = (home.folder / "data").rglob("typed.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
    with Terminal(home, *using(server)) as chat:
        chat.expect("Ctrl-D leaves")
        chat.expect(PROMPT)
        time.sleep(0.3)
        chat.type("\x1b[A")
        chat.expect("orders?")
        chat.type("\r")
        chat.expect("second answer")
        chat.expect(PROMPT)
        chat.type("/rea")
        chat.expect("/reasoning")
        chat.type("\t\r")
        chat.expect("easoning")
        chat.type("/quit\r")
        assert chat.close() == 0
    asked = [request.messages[-1]["content"] for request in server.requests]
    assert asked == ["how many\norders?", "how many\norders?"]


def test_what_is_typed_is_not_kept_beside_threads_in_memory(
    home: Home, server: ModelServer
) -> None:
    server.script(say("an answer"))
    with Terminal(home, *using(server), "--store", "memory://") as chat:
        chat.expect("Ctrl-D leaves")
        chat.type("a secret\r")
        chat.expect("an answer")
        chat.leave()
        assert chat.close() == 0
    assert not [*(home.folder / "data").rglob("typed.jsonl")]
