"""Requests that a worker answers: for each job its name, its arguments and the type of its answer.

    answer = workers.call(RUN.request({"version": 3, "sql": sql, "seconds": 5.0}), seconds=5.0)

`mypy` knows that `answer` is a `QueryResult`, and rejects a key or value that the job does not
have. To add a job, add a `TypedDict` and a `Job` here, and a function in `workers.process`. If the
job only parses SQL texts, add its function in `sql.text_jobs` instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar

from longtable.base.errors import DatabaseError, QueryFailedError, QueryRefusedError
from longtable.tools.catalog import Catalog, Reflected
from longtable.tools.engines.base import FileLimits, LoadNote, QueryLimits, QueryResult, Row
from longtable.tools.row_access import RowParameters
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.sql.verdict import OwnSql, Plan, Predicates, Probe, Verdict

Arguments = TypeVar("Arguments", bound=Mapping[str, Any])
Answer = TypeVar("Answer")

INTERRUPT = "interrupt"
"""The name of a request that is not a job but stops the running job."""


@dataclass(frozen=True)
class Request(Generic[Answer]):
    """A job by its name, with its arguments."""

    job: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Job(Generic[Arguments, Answer]):
    """The name of a job. Its type parameters are the types of its arguments and of its answer."""

    name: str

    def request(self, arguments: Arguments) -> Request[Answer]:
        """Return a request for this job."""
        return Request(self.name, arguments)


# Jobs on SQL texts. The dialect and the catalogue are those of the database.


class SqlText(TypedDict):
    """One SQL text."""

    sql: str


class ProbesArguments(TypedDict):
    """A query that ran, and the question that it answers."""

    sql: str
    question: str


class ExplainedArguments(TypedDict):
    """The error of a query, the text that the model wrote, and the verdict that allowed it."""

    error: QueryFailedError | QueryRefusedError
    sql: str
    verdict: Verdict


CHECK: Job[SqlText, Verdict] = Job("check")
PREDICATES: Job[SqlText, Predicates] = Job("predicates")
OWN_SQL: Job[SqlText, OwnSql] = Job("own_sql")
PROBES: Job[ProbesArguments, list[Probe]] = Job("probes")
EXPLAINED: Job[ExplainedArguments, DatabaseError] = Job("explained")


# Jobs of a worker that holds a database. `version` is that of the caller's catalogue.


class RefreshArguments(TypedDict):
    """The version of the schema that the caller knows, None if it knows no version."""

    version: object


class CheckSqlArguments(TypedDict):
    """A query to plan. `rows` are the row parameters, None if the query is not to run."""

    version: object
    sql: str
    rows: RowParameters | None


class RunArguments(TypedDict):
    """A query to run, the row parameters, and its time limit."""

    version: object
    sql: str
    rows: RowParameters
    seconds: float


class ReadArguments(TypedDict):
    """SQL that this package wrote, its parameters, the row parameters and its time limit."""

    version: object
    sql: str
    params: list[object]
    rows: RowParameters
    seconds: float


class TextArguments(TypedDict):
    """A job on a SQL text: the name of the job and its arguments."""

    version: object
    job: str
    arguments: Mapping[str, Any]


REFRESH: Job[RefreshArguments, tuple[object, Catalog | None]] = Job("refresh")
"""Job: return the schema version and, if the caller has another version, the catalogue."""
CHECK_SQL: Job[CheckSqlArguments, Plan] = Job("check_sql")
RUN: Job[RunArguments, QueryResult] = Job("run")
READ: Job[ReadArguments, list[Row]] = Job("read")
TEXT: Job[TextArguments, object] = Job("text")
"""Job: run a job on a SQL text, and return its answer."""


# Jobs of a worker that holds no database.


class ParseArguments(TypedDict):
    """A job on a SQL text for a server. `number` is the number of the catalogue. `catalog` is None
    if the worker may already have the catalogue with this number.
    """

    job: str
    number: int
    catalog: Catalog | None
    dialect: str
    arguments: Mapping[str, Any]


class VisibleArguments(TypedDict):
    """A server's whole catalogue, and the policy on it."""

    reflected: Reflected
    policy: TablePolicy
    dialect: str


class LoadArguments(TypedDict):
    """Data files, and the DuckDB file to load them into."""

    path: str
    target: str
    files: FileLimits


class OverHandlesArguments(TypedDict):
    """A query over stored results. `files` are the files of the tables in `catalog`, by handle."""

    sql: str
    catalog: Catalog
    files: Mapping[str, str]
    limits: QueryLimits


PARSE: Job[ParseArguments, list[object] | None] = Job("parse")
"""Job: return a list that holds only the answer of a job on a SQL text, or None if the worker does
not have the catalogue.
"""
VISIBLE: Job[VisibleArguments, Catalog] = Job("visible")
LOAD: Job[LoadArguments, tuple[LoadNote, ...]] = Job("load")
OVER_HANDLES: Job[OverHandlesArguments, QueryResult | str] = Job("over_handles")
"""Job: run a query over stored results. If the file of a handle is gone, return the handle instead
of a result.
"""
