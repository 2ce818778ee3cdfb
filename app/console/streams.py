"""Standard streams that never fail, and text that is safe to print on a terminal."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any


class OutputFailedError(Exception):
    """Standard output cannot be written: a full disk, a device that is gone."""


def open_streams() -> None:
    """Replace streams that the shell closed by empty ones, and never fail on a character that the
    encoding lacks.

    Also keeps a file that is opened later from becoming standard output. Lowest number first: a new
    file takes the lowest that is free.
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
    """Raise `OutputFailedError` when standard output cannot be written; a pipe without reader stays
    a BrokenPipeError.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailedError(error.strerror or type(error).__name__) from error


def drop_output() -> None:
    """Discard buffered output; otherwise Python reports the error again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def takes_unicode() -> bool:
    """Return whether standard output can hold every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


# C0 but tab and line feed, DEL, C1 (0x9b opens an escape sequence too), marks that reorder text,
# what has no width, hidden tags, halves of surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def clean(text: str) -> str:
    """Return text without control characters: each is shown as its picture (␛ for escape), so
    nothing hides.
    """
    return _UNSAFE.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return "" if code == 0x0D else chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def clean_line(text: str, most: int = 500) -> str:
    """Return text as one safe line of at most `most` characters."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def json_line(data: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return one line of JSON in which every unsafe character is escaped, with `ascii_only` every
    one beyond ASCII.
    """
    return _UNSAFE.sub(
        lambda match: f"\\u{ord(match.group()):04x}", json.dumps(data, ensure_ascii=ascii_only)
    )


def print_json(lines: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object a line."""
    with writing():
        for line in lines:
            print(json_line(line, ascii_only=not takes_unicode()), flush=True)


def language_of(text: str) -> str:
    """Return "zh" for text with Chinese characters, else "en"."""
    return "zh" if _CJK.search(text) else "en"


@contextmanager
def hidden_control_keys() -> Iterator[None]:
    """Keep the terminal from showing Ctrl-C as ^C while lines are drawn anew.

    In the last column ^C begins another line, and what is drawn over the lines above would miss the
    first of them: it stood twice.
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
    """Return the descriptor of the terminal on standard input, None if there is none or another
    job has it: to set its modes would stop this one.
    """
    try:
        number = sys.stdin.fileno()
        return number if os.tcgetpgrp(number) == os.getpgrp() else None
    except (AttributeError, OSError, ValueError):
        return None
