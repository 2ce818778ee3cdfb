"""Standard streams that do not fail, and text that is safe to print on a terminal."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any


class OutputFailedError(Exception):
    """Standard output cannot be written, for example because the disk is full or the device is
    gone.
    """


def open_streams() -> None:
    """Replace streams that the shell closed by empty streams. Also make the output streams replace
    characters that their encoding lacks, instead of failing.

    The order matters: a new file takes the lowest free descriptor. So no file that is opened later
    can become standard output.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115  # os.devnull is no path of ours, and it stays open
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def writing() -> Iterator[None]:
    """Raise `OutputFailedError` if standard output cannot be written. If nobody reads a pipe any
    more, `BrokenPipeError` is raised as usual.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailedError(error.strerror or type(error).__name__) from error


def drop_output() -> None:
    """Discard the output that is still buffered. Otherwise Python would report the error again when
    it exits.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def takes_unicode() -> bool:
    """Return whether the encoding of standard output has every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


# C0 but tab and line feed, DEL, C1 (0x9b opens an escape sequence too), marks that reorder text,
# what has no width, hidden tags, halves of surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def clean(text: str) -> str:
    """Return text in which control characters are shown as pictures, such as ␛ for escape. So
    nothing in the text can hide.
    """
    return _UNSAFE.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return "" if code == 0x0D else chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def clean_line(text: str, most: int = 500) -> str:
    """Return text as one safe line, cut to `most` characters."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def json_line(data: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return one line of JSON in which every unsafe character is escaped. With `ascii_only`, every
    character beyond ASCII is escaped.
    """
    return _UNSAFE.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(data, ensure_ascii=ascii_only)
    )


def print_json(lines: Iterable[Mapping[str, Any]]) -> None:
    """Print each object as one line of JSON."""
    with writing():
        for line in lines:
            print(json_line(line, ascii_only=not takes_unicode()), flush=True)


def language_of(text: str) -> str:
    """Return "zh" for a text with Chinese characters, otherwise "en"."""
    return "zh" if _CJK.search(text) else "en"


@contextmanager
def hidden_control_keys() -> Iterator[None]:
    """Keep the terminal from showing Ctrl-C as ^C while lines are being redrawn.

    In the last column, ^C would begin a new line. The redrawn lines would then begin one line too
    low, and the first line would appear twice.
    """
    terminal = own_terminal()
    if terminal is None:
        yield
        return
    import termios

    before = termios.tcgetattr(terminal)
    hidden = list(before)
    hidden[3] &= ~termios.ECHOCTL
    termios.tcsetattr(terminal, termios.TCSANOW, hidden)
    try:
        yield
    finally:
        with suppress(termios.error):  # it was closed
            termios.tcsetattr(terminal, termios.TCSANOW, before)


def own_terminal() -> int | None:
    """Return the descriptor of the terminal on standard input. Return None if there is none, or if
    another job has the terminal: changing the modes of the terminal would then stop this program.
    """
    try:
        number = sys.stdin.fileno()
        return number if os.tcgetpgrp(number) == os.getpgrp() else None
    except (AttributeError, OSError, ValueError):
        return None
