"""The prompt of the chat: lines can be edited, a paste is one message, and the history is kept."""

import json
import os
import re
import select
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from longtable.app.console.streams import own_terminal

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.output import Output


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
MOST_TYPED = 1_000_000
"""The most bytes that are read of what was typed before the prompt."""
QUIET_SECONDS = 0.1
"""The seconds without a byte after which a paste counts as ended."""
_PASTE_MARKS = re.compile("\x1b\\[20[01]~")


def typed_before() -> str:
    """Return what was typed before a prompt read it, without control characters."""
    terminal = own_terminal()
    if terminal is None:
        return ""
    import termios

    before = termios.tcgetattr(terminal)
    unbuffered = list(before)
    unbuffered[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(terminal, termios.TCSANOW, unbuffered)
    data = b""
    try:
        while len(data) < MOST_TYPED and _is_typed(terminal, QUIET_SECONDS if data else 0.0):
            part = os.read(terminal, 65_536)
            if not part:
                break
            data += part
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)
    text = data.decode(errors="surrogateescape").replace("\r", "\n")
    return _CONTROL.sub("", _PASTE_MARKS.sub("", text))


def _is_typed(terminal: int, seconds: float) -> bool:
    """Return whether a byte can be read within this many seconds."""
    return bool(select.select([terminal], [], [], seconds)[0])


MOST_HISTORY = 1_000
"""The number of messages that the prompt remembers."""
MENU_LINES = 6
"""The number of lines kept free below the prompt for the menu of commands."""


class Prompt:
    """Reads messages at a terminal. A message can be edited over several lines, earlier messages
    can be recalled, and commands are completed.

    Enter sends the message. Alt-Enter, or Esc and then Enter, begins a new line. A paste is one
    message, however many lines it has. No terminal marks a paste that came before the first prompt,
    so such a paste is shown at the prompt and not sent. prompt_toolkit takes 0.3 s to import, so it
    is imported only when a prompt is made.
    """

    def __init__(self, completions: Mapping[str, str], history: Path | None) -> None:
        """Make a prompt. `completions` are the descriptions of the commands, by the text that is
        typed. `history` is the file of earlier messages; with None, messages are remembered only
        until the chat ends.
        """
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import InMemoryHistory

        self._file = history
        self._is_first = True
        self._output = _prompt_output()
        self._session: PromptSession[str] = PromptSession(
            "> ",
            multiline=True,
            key_bindings=_prompt_keys(),
            history=InMemoryHistory(remembered(history) if history else []),
            completer=WordCompleter([*completions], meta_dict=completions, sentence=True),
            complete_while_typing=True,
            reserve_space_for_menu=MENU_LINES,
            output=self._output,
        )

    def __enter__(self) -> "Prompt":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._output.disable_bracketed_paste()
        self._output.flush()

    def read(self) -> str:
        """Return one message. Raises `EOFError` for Ctrl-D, `KeyboardInterrupt` for Ctrl-C, and
        `UnicodeDecodeError` if the typed bytes are not UTF-8.
        """
        typed = typed_before() if self._is_first else ""
        self._is_first = False
        is_message = typed.endswith("\n") and "\n" not in typed.strip()
        try:
            text = self._session.prompt(default=typed.strip("\n"), accept_default=is_message)
        finally:
            # What is pasted while an answer comes is one message, too.
            self._output.enable_bracketed_paste()
            self._output.flush()
        text = text.encode(errors="surrogateescape").decode().strip()
        if text and self._file is not None:
            remember(self._file, text)
        return text


def _prompt_keys() -> "KeyBindings":
    """Return those key bindings of the prompt that differ from the bindings of Emacs."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def send(event: "KeyPressEvent") -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("escape", "c-j")
    def break_line(event: "KeyPressEvent") -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _prompt_output() -> "Output":
    """Return where the prompt is drawn, which is the terminal even if standard output is a pipe."""
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = create_output(always_prefer_tty=True)
    if isinstance(output, Vt100_Output):
        # The terminal's answer to where the cursor is may come after the chat has ended, and would
        # be typed into the shell.
        output.enable_cpr = False
    return output


def remembered(file: Path) -> list[str]:
    """Return the newest messages in a history file, the oldest of them first. A file with more than
    twice `MOST_HISTORY` lines is shortened.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    newest = lines[-MOST_HISTORY:]
    if len(lines) > 2 * MOST_HISTORY:
        with suppress(OSError):
            file.write_text("".join(f"{line}\n" for line in newest), encoding="utf-8")
    return [text for text in map(_text_in, newest) if text]


def _text_in(line: str) -> str:
    """Return the message in a line of a history file, "" if the line holds none."""
    try:
        text = json.loads(line)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def remember(file: Path, text: str) -> None:
    """Add a message to a history file that only the user may read. If the file cannot be written,
    do nothing.
    """
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(text)}\n")
        file.chmod(0o600)  # one that another program made
