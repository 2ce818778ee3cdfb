"""Where queries run unless a test says otherwise: in this process, for a worker takes 0.3 s of a
processor to start.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from longtable.tools.database import Database, Isolation
from longtable.tools.results.result_store import ResultStore


@contextmanager
def opened_by_default(isolation: Isolation) -> Iterator[None]:
    """Change how `Database.open` and `ResultStore` run queries where that is not said."""
    calls: list[Any] = [Database.open, ResultStore.__init__]
    both = [getattr(call, "__func__", call).__kwdefaults__ for call in calls]
    before = [defaults["isolation"] for defaults in both]
    for defaults in both:
        defaults["isolation"] = isolation
    try:
        yield
    finally:
        for defaults, value in zip(both, before, strict=True):
            defaults["isolation"] = value
