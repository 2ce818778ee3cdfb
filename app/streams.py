"""The standard streams: there whatever the shell closed, able to take any character, and told about when they fail."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class OutputFailedError(Exception):
    """Standard output cannot be written: a full disk, a device that is gone."""


def open_streams() -> None:
    """Put an empty stream where the shell closed one, and let no character fail that an encoding does not have.

    Also keeps a file that is opened later from becoming standard output. Lowest number first: a new file takes the
    lowest that is free.
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
    """Tell a failure of standard output from all others: `OutputFailedError`. A pipe without reader stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailedError(error.strerror or type(error).__name__) from error


def drop_output() -> None:
    """Send what is still buffered nowhere: or Python would complain once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def takes_unicode() -> bool:
    """Tell whether standard output can hold every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
