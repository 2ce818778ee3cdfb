"""The tools of one database, as LangChain tools: the content is compact JSON, the artifact of run_sql the whole result."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from longtable.tools import query_tools
from longtable.tools.cells import dumps
from longtable.tools.database import Cancel, Database, QueryResult
from longtable.tools.schema import schema_tools, values

Answer = tuple[str, "QueryResult | Described | None"]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Described:
    """The tables an answer describes, each with the hash of what it looks like; `listing`: it says which tables there are."""

    tables: Mapping[str, str]
    listing: bool = False


class ListTables(BaseModel):
    """Arguments of list_tables."""

    search: str = Field(default="", description="Words of what the tables are about: names, comments and values are searched. Empty: all.")
    page: int = Field(default=1, description=f"Page, {schema_tools.PAGE} tables each.")


class DescribeTables(BaseModel):
    """Arguments of describe_tables."""

    names: list[str] = Field(description=f"Table names as list_tables gives them, at most {schema_tools.MOST_DESCRIBED}.")


class FindColumns(BaseModel):
    """Arguments of find_columns."""

    text: str = Field(description="Words of what the column is about, or a value in it.")
    limit: int = Field(default=20, description="Most columns to return.")


class FindValues(BaseModel):
    """Arguments of find_values."""

    text: str | list[str] = Field(description="The value, or a part of it; or several.")
    table: str = Field(default="", description="Search this table only. Empty: the text columns of all tables.")
    column: str = Field(default="", description="Search columns of this name only, or one as table.column.")
    limit: int = Field(default=20, description="Most matches to return.")


class RunSql(BaseModel):
    """Arguments of run_sql."""

    sql: str = Field(description="One SELECT statement in the database's dialect.")


def database_tools(database: Database) -> list[BaseTool]:
    """Return list_tables, describe_tables, find_columns, find_values and run_sql over this database; they raise `DatabaseError`s."""

    def described(answer: schema_tools.Entry, key: str, *, listing: bool = False) -> Described:
        entries, hashes = answer[key], database.catalog().hashes
        named = entries if isinstance(entries, list) else []
        told = [str(entry["table" if key == "columns" else "name"]) for entry in named if isinstance(entry, dict)]
        return Described({name: hashes[name] for name in told if name in hashes}, listing)

    def tables(search: str = "", page: int = 1, *, cancel: Cancel | None = None) -> Answer:
        answer = schema_tools.list_tables(database, search, page, cancel=cancel)
        return dumps(answer), described(answer, "tables", listing=True)

    def describe(names: list[str], *, cancel: Cancel | None = None) -> Answer:
        answer = schema_tools.describe_tables(database, names, cancel=cancel)
        return dumps(answer), described(answer, "tables")

    def columns(text: str, limit: int = 20, *, cancel: Cancel | None = None) -> Answer:
        answer = schema_tools.find_columns(database, text, limit, cancel=cancel)
        return dumps(answer), described(answer, "columns")

    def find(text: str | list[str], table: str = "", column: str = "", limit: int = 20, *, cancel: Cancel | None = None) -> Answer:
        if not isinstance(text, str):
            return dumps(values.find_several(database, text, table, column, limit, cancel=cancel)), None
        return dumps(values.find_values(database, text, table, column, limit, cancel=cancel)), None

    def run(sql: str, *, cancel: Cancel | None = None) -> Answer:
        preview, result = query_tools.run_sql(database, sql, cancel=cancel)
        return dumps(preview), result

    return [
        cancellable_tool(
            "list_tables", "List tables and views with columns and row counts; a search gives the best first.", tables, ListTables
        ),
        cancellable_tool(
            "describe_tables",
            "Describe tables: column types, keys (inferred ones marked), comments, three sample rows; for up to"
            f" {schema_tools.MOST_CLOSELY} tables also ranges, distinct values and nulls.",
            describe,
            DescribeTables,
        ),
        cancellable_tool("find_columns", "Find columns in a large schema by name, comment or value, best first.", columns, FindColumns),
        cancellable_tool(
            "find_values",
            "Find which table and column hold a value, and how it is spelled there: use it before filtering. Finds other case,"
            " plural, parts and typing errors.",
            find,
            FindValues,
        ),
        cancellable_tool(
            "run_sql",
            f"Run one read-only SELECT in the {database.dialect} dialect. You see the first {query_tools.SHOWN_ROWS} rows"
            " and the number of all; the user sees every row.",
            run,
            RunSql,
            metadata={"kind": "query"},
        ),
    ]


def cancellable_tool(
    name: str, description: str, call: Callable[..., Answer], schema: type[BaseModel], metadata: dict[str, Any] | None = None
) -> BaseTool:
    """Return a tool over a blocking function; cancelling the run cancels what it does by its argument `cancel`."""

    async def arun(**arguments: Any) -> Answer:
        return await cancellable(call, **arguments)

    return StructuredTool.from_function(
        func=call,
        coroutine=arun,
        name=name,
        description=description,
        args_schema=schema,
        response_format="content_and_artifact",
        metadata=metadata,
    )


async def cancellable(call: Callable[..., Result], **arguments: Any) -> Result:
    """Run a blocking function in a worker thread; cancelling the task cancels what it does by its argument `cancel`."""
    cancel = Cancel()
    try:
        return await asyncio.to_thread(call, cancel=cancel, **arguments)
    except asyncio.CancelledError:
        cancel.cancel()
        raise
