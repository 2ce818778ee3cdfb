"""The tools of several databases: those of one database, with an argument that names it.

A call of run_sql or describe_tables asks one database. The tools that search ask all of them if no
database is named; one that is down is then part of the answer, and hides nothing of the others.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field, create_model, model_validator

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailableError,
    QueryCancelledError,
)
from longtable.tools.cells import clean, clip, dumps
from longtable.tools.check_tool import CHECK_SQL, check_tool
from longtable.tools.database import Cancel, Database, QueryResult
from longtable.tools.several.databases import ARGUMENT, Databases
from longtable.tools.tool_answers import Answer, CheckReport, Described, cancellable_tool
from longtable.tools.toolset import database_tools

SEARCHES = ("list_tables", "find_columns", "find_values")
"""Tools that ask all databases if a call names none."""
TOOL_NAMES = ("list_tables", "describe_tables", "find_columns", "find_values", "run_sql", CHECK_SQL)
"""The tools that ask a database."""
MOST_ERROR_CHARS = 500
SEPARATOR = ":"
"""It stands between database and table where a name of both is kept: no name of a database has it.
"""
RUN_SQL = (
    "Run one read-only SELECT in one of the databases, in its dialect: {dialects}. You see the"
    " first 20 rows and the number of all; the user sees every row. No query reads two databases:"
    " to join them, run a query in each, and join their results."
)
"""The description of run_sql without a store of results."""
JOINED = " For this, fetch_result takes SQL over the handles, as in SELECT ... FROM r1 JOIN r2 ..."


def tools_of(databases: Databases, *, keeps_results: bool = True) -> list[BaseTool]:
    """Return the tools that ask the databases. `keeps_results`: whether results get handles, so
    that they can be joined.
    """
    if not databases.are_several:
        return database_tools(databases.first)
    tools = _by_tool(databases, database_tools)
    dialects = ", ".join(f"{name} ({each.dialect})" for name, each in databases.items())
    run_sql = RUN_SQL.format(dialects=dialects) + (JOINED if keeps_results else "")
    return [_tool(databases, name, each, run_sql) for name, each in tools.items()]


def check_tool_of(databases: Databases) -> BaseTool:
    """Return the tool check_sql. A check by a handle asks the database that the result is of."""
    if not databases.are_several:
        return check_tool(databases.first, databases.is_own)
    tools = _by_tool(databases, lambda database: [check_tool(database)])
    return _tool(databases, CHECK_SQL, tools[CHECK_SQL], "")


def qualified(database: str, table: str) -> str:
    """Return the name of a table of one of several databases, as marks and events have it."""
    return f"{database}{SEPARATOR}{table}"


Tools = Mapping[str, StructuredTool]
"""One tool of each database, by the database's name."""


def _by_tool(
    databases: Databases, make: Callable[[Database], list[BaseTool]]
) -> dict[str, dict[str, StructuredTool]]:
    """Return the tools of each database by the tool's name."""
    by_tool: dict[str, dict[str, StructuredTool]] = {}
    for name, database in databases.items():
        for tool in make(database):
            by_tool.setdefault(tool.name, {})[name] = cast("StructuredTool", tool)
    return by_tool


def _tool(databases: Databases, name: str, tools: Tools, run_sql: str) -> BaseTool:
    """Return a tool that takes the name of a database besides the arguments of its own tools."""
    one = tools[databases.first_name]

    def call(*, cancel: Cancel | None = None, **arguments: Any) -> Answer:
        asked = arguments.pop(ARGUMENT, "")
        if name == CHECK_SQL and not str(arguments.get("sql") or "").strip():
            asked = _database_of_result(databases, arguments) or databases.first_name
        elif name in SEARCHES and not asked:
            return _asked_all(tools, arguments, cancel)
        return _asked_one(databases.name_of(asked), tools, arguments, cancel)

    text = run_sql if name == "run_sql" else one.description
    return cancellable_tool(name, text, call, one.metadata, _schema(databases, name, one))


def _schema(databases: Databases, name: str, tool: StructuredTool) -> type[BaseModel]:
    """Return the arguments of a tool with the name of the database."""
    needed = name not in (*SEARCHES, CHECK_SQL)
    text = "The database to ask."
    if name in SEARCHES:
        text = "The database to search. Empty: all."
    elif name == CHECK_SQL:
        text = "With sql: the database to ask."

    def named(data: Any) -> Any:
        # An error that names the databases, in place of pydantic's.
        asked = data.get(ARGUMENT) if isinstance(data, Mapping) else ""
        if asked or needed:
            return {**data, ARGUMENT: databases.name_of(asked)}
        return data

    known: Any = Literal[tuple(databases) if needed else ("", *databases)]
    field = Annotated[known, Field(description=text)]
    fields: dict[str, Any] = {ARGUMENT: (field, ... if needed else "")}
    validators: dict[str, Any] = {"named": model_validator(mode="before")(named)}
    base = cast("type[BaseModel]", tool.args_schema)
    return create_model(f"{name}_of", __base__=base, __validators__=validators, **fields)


def _asked_one(
    name: str, tools: Tools, arguments: Mapping[str, Any], cancel: Cancel | None
) -> Answer:
    with errors_named(name):
        text, artifact = _call(tools[name], arguments, cancel)
    return f'{{"{ARGUMENT}":{dumps(name)},{text[1:]}', _of_database(name, artifact)


def _asked_all(tools: Tools, arguments: Mapping[str, Any], cancel: Cancel | None) -> Answer:
    """Ask all databases. Raises the first error if all of them fail."""
    texts: list[str] = []
    errors: list[DatabaseError] = []
    described: dict[str, str] = {}
    listing = False
    for name in tools:
        try:
            text, artifact = _asked_one(name, tools, arguments, cancel)
        except QueryCancelledError:
            raise
        except DatabaseError as error:
            errors.append(error)
            message = clip(clean(str(error)), MOST_ERROR_CHARS)
            failed = {"class": error.code, "problem": error.problem, "message": message}
            texts.append(dumps({ARGUMENT: name, "error": failed}))
            continue
        texts.append(text)
        if isinstance(artifact, Described):
            described |= artifact.tables
            listing = listing or artifact.listing
    if len(errors) == len(tools):
        raise errors[0]
    found = Described(described, listing) if described or listing else None
    return f'{{"databases":[{",".join(texts)}]}}', found


def _call(tool: StructuredTool, arguments: Mapping[str, Any], cancel: Cancel | None) -> Answer:
    """Call the function of a tool as the tool does, with something that can stop it."""
    if tool.func is None:
        raise TypeError(f"{tool.name} has no function")
    return cast("Answer", tool.func(**arguments, cancel=cancel))


def _of_database(name: str, artifact: object) -> Any:
    """Return what a tool keeps for the person, which says from which database it is."""
    if isinstance(artifact, QueryResult):
        return replace(artifact, database=name)
    if isinstance(artifact, Described):
        tables = {qualified(name, table): looks for table, looks in artifact.tables.items()}
        return replace(artifact, tables=tables)
    if isinstance(artifact, CheckReport):
        queries = [replace(each, database=name) for each in artifact.queries]
        return replace(artifact, queries=queries)
    return artifact


def _database_of_result(databases: Databases, arguments: Mapping[str, Any]) -> str:
    """Return the database of the result that a call of check_sql names, "" if it names none or the
    result does not say. Raises `UnknownDatabaseError` if the database is not there any more.
    """
    results = arguments.get("results")
    handle = str(arguments.get("result") or "")
    if results is None or not handle.strip():
        return ""
    name = results.meta(handle).database
    return databases.name_of(name) if name else ""


@contextmanager
def errors_named(database: str) -> Iterator[None]:
    """Have the errors within the block say which database they are about. A policy that does not
    fit its database any more makes this one unavailable, and none of the others.
    """
    try:
        yield
    except DatabaseError as error:
        error.database = error.database or database
        raise
    except ConfigError as error:
        if not database:
            raise
        unavailable = DatabaseUnavailableError(f"its settings do not fit it: {error}")
        unavailable.database = database
        raise unavailable from error
