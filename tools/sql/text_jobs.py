"""Jobs on SQL texts, by name: each parses, and none knows an engine or a driver."""

from collections.abc import Callable
from importlib import import_module

from longtable.tools.sql.hints import explained
from longtable.tools.sql.narrow import predicates_of
from longtable.tools.sql.wall import check, own_sql

TEXT_JOBS: dict[str, Callable[..., object]] = {
    "check": check,
    "explained": explained,
    "own_sql": own_sql,
    "predicates": predicates_of,
}
"""What is done with SQL texts. Each parses, and none knows an engine or a driver, so that a worker
may do them for a server.
"""

GUEST_JOBS = {"probes": ("longtable.checks.query_checks", "probes_of")}
"""Jobs of guests, found by their name so that this room does not depend on them."""


def text_job(job: str) -> Callable[..., object]:
    """Return what does a job on a text; raises `KeyError` for one that is not registered."""
    if job not in GUEST_JOBS:
        return TEXT_JOBS[job]
    module, function = GUEST_JOBS[job]
    found: Callable[..., object] = getattr(import_module(module), function)
    return found
