"""Do once more what the end of a connection to PostgreSQL cut off: reads, and writes that are the same done twice."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_GONE = {"57P01", "57P02", "57P03"}
"""The server was shut down, crashed, or is starting up."""


def lost(error: Exception) -> bool:
    """Tell whether an error says that the connection broke, whether or not what was sent by it was kept."""
    classes = [cls for cls in type(error).__mro__ if cls.__name__ == "OperationalError"]
    if not any(cls.__module__.partition(".")[0] == "psycopg" for cls in classes) or type(error).__module__.startswith("psycopg_pool"):
        return False  # one who waited for a connection in vain has waited long enough
    state = getattr(error, "sqlstate", None)
    return state is None or state.startswith("08") or state in _GONE


def again(call: Callable[[], Result]) -> Result:
    """Return what a call returns, of the second time where its connection was lost. The pool waits for the server to be back."""
    try:
        return call()
    except Exception as error:
        if not lost(error):
            raise
    return call()
