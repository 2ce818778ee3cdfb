"""Jobs on SQL texts, by name. Such a job only parses and needs no engine or driver, so a worker can
do it for a server.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from longtable.base.errors import DatabaseError
from longtable.tools.catalog import Catalog
from longtable.tools.sql.hints import explained
from longtable.tools.sql.narrow import predicates_of
from longtable.tools.sql.verdict import OwnSql, Predicates, Verdict
from longtable.tools.sql.wall import check, own_sql
from longtable.tools.workers.worker_requests import (
    CHECK,
    EXPLAINED,
    OWN_SQL,
    PREDICATES,
    PROBES,
    Answer,
    Arguments,
    ExplainedArguments,
    Job,
    SqlText,
)

GUEST_JOBS = {PROBES.name: ("longtable.checks.query_checks", "probes_of")}
"""Jobs whose functions are in other packages. They are imported by name, so that this package does
not depend on the other packages.
"""


def do_text_job(job: str, arguments: Mapping[str, Any], dialect: str, catalog: Catalog) -> object:
    """Run a job and return its answer. Raises `KeyError` if the job is not registered."""
    if job in GUEST_JOBS:
        module, function = GUEST_JOBS[job]
        guest: Callable[..., object] = getattr(import_module(module), function)
        return guest(**arguments, dialect=dialect, catalog=catalog)
    return _JOBS[job](arguments, dialect, catalog)


def _check(arguments: SqlText, dialect: str, catalog: Catalog) -> Verdict:
    return check(arguments["sql"], dialect=dialect, catalog=catalog)


def _explained(arguments: ExplainedArguments, dialect: str, catalog: Catalog) -> DatabaseError:
    return explained(**arguments, dialect=dialect, catalog=catalog)


def _own_sql(arguments: SqlText, dialect: str, catalog: Catalog) -> OwnSql:
    return own_sql(arguments["sql"], dialect=dialect, catalog=catalog)


def _predicates(arguments: SqlText, dialect: str, catalog: Catalog) -> Predicates:
    return predicates_of(arguments["sql"], dialect=dialect, catalog=catalog)


_JOBS: dict[str, Callable[[Any, str, Catalog], object]] = {}


def _register(
    job: Job[Arguments, Answer], act: Callable[[Arguments, str, Catalog], Answer]
) -> None:
    _JOBS[job.name] = act


_register(CHECK, _check)
_register(EXPLAINED, _explained)
_register(OWN_SQL, _own_sql)
_register(PREDICATES, _predicates)
