"""The chat in a terminal: a real process under a pty, Ctrl-C, Ctrl-D, and a killed turn."""

import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.runner import PROGRAM, SECONDS, Home, make_home
from tests.support.model_server import ModelServer, call, open_model_server, say

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
                [PROGRAM, "chat", *args],
                stdin=inside,
                stdout=inside,
                stderr=inside,
                env=given,
                start_new_session=True,
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

    def leave(self) -> None:
        """Type Ctrl-D once the prompt has taken the terminal over: what comes before is no Ctrl-D
        to it.
        """
        time.sleep(0.3)
        self.type("\x04")

    def interrupt(self) -> None:
        """Send what Ctrl-C sends, a moment later: between showing a prompt and reading, a signal
        waits for the next key.
        """
        time.sleep(0.3)
        self.process.send_signal(signal.SIGINT)

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
        hold.set()
        chat.type("count for ever\n")
        chat.expect("run_sql")
        chat.interrupt()
        chat.expect("Cancelled")
        chat.type("你好\n")
        chat.expect("fine again")
        chat.expect("上下文")
        chat.expect("> ")
        chat.leave()
        chat.expect("longtable chat --thread t")
        assert chat.close() == 0
    sent = server.requests[2]
    assert sent.roles == ["system", "user", "user", "assistant", "tool", "user"]
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
        chat.expect("> ")
        chat.type("有多少？\n")
        chat.expect("fine")
        chat.expect("> ")
        chat.type(b"half \xf0\x9f\x98\n")
        chat.expect("not valid UTF-8 at character 6")
        chat.expect("> ")
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
        chat.expect("> ")
        chat.interrupt()
        chat.expect("Ctrl-C again")
        chat.expect("> ")
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
