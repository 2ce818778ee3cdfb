"""The tools of one database, as LangChain tools. The content of each answer is compact JSON; the
artifact of run_sql is the whole result.
"""

from typing import Annotated

from langchain_core.tools import (
    BaseTool,
)
from pydantic import Field

from longtable.tools.cells import Json, dumps
from longtable.tools.database import Cancel, Database, QueryResult
from longtable.tools.previews import NAME_CHARS, SHOWN_ROWS, shown_part, shown_types, summary
from longtable.tools.schema import schema_tools, values
from longtable.tools.schema.empty_results import why_empty
from longtable.tools.tool_answers import NOTE, Answer, Described, cancellable_tool


def database_tools(database: Database) -> list[BaseTool]:
    """Return the tools list_tables, describe_tables, find_columns, find_values and run_sql of this
    database. Calls of the tools raise `DatabaseError`s.
    """
    return [
        _list_tables(database),
        _describe_tables(database),
        _find_columns(database),
        _find_values(database),
        _run_sql(database),
    ]


def _described(
    database: Database, answer: schema_tools.Entry, key: str, *, listing: bool = False
) -> Described:
    entries = answer[key]
    hashes = database.catalog().hashes
    entries_read = entries if isinstance(entries, list) else []
    names = [
        str(entry["table" if key == "columns" else "name"])
        for entry in entries_read
        if isinstance(entry, dict)
    ]
    return Described({name: hashes[name] for name in names if name in hashes}, listing)


def _list_tables(database: Database) -> BaseTool:
    def tables(
        search: Annotated[
            str,
            Field(
                description="Words of what the tables are about: names, comments and values are"
                " searched. Empty: all."
            ),
        ] = "",
        page: Annotated[int, Field(description=f"Page, {schema_tools.PAGE} tables each.")] = 1,
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        answer = schema_tools.list_tables(database, search, page, cancel=cancel)
        return dumps(answer), _described(database, answer, "tables", listing=True)

    return cancellable_tool(
        "list_tables",
        "List tables and views with columns and row counts; a search gives the best first.",
        tables,
    )


def _describe_tables(database: Database) -> BaseTool:
    def describe(
        names: Annotated[
            list[str],
            Field(
                description="Table names as list_tables gives them, at most"
                f" {schema_tools.MOST_DESCRIBED}."
            ),
        ],
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        answer = schema_tools.describe_tables(database, names, cancel=cancel)
        return dumps(answer), _described(database, answer, "tables")

    return cancellable_tool(
        "describe_tables",
        "Describe tables: column types, keys (inferred ones marked), comments, three sample"
        f" rows; for up to {schema_tools.MOST_CLOSELY} tables also ranges, distinct values and"
        " nulls.",
        describe,
    )


def _find_columns(database: Database) -> BaseTool:
    def columns(
        text: Annotated[
            str, Field(description="Words of what the column is about, or a value in it.")
        ],
        limit: Annotated[int, Field(description="Most columns to return.")] = 20,
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        answer = schema_tools.find_columns(database, text, limit, cancel=cancel)
        return dumps(answer), _described(database, answer, "columns")

    return cancellable_tool(
        "find_columns",
        "Find columns in a large schema by name, comment or value, best first.",
        columns,
    )


def _find_values(database: Database) -> BaseTool:
    def find(
        text: Annotated[
            str | list[str], Field(description="The value, or a part of it; or several.")
        ],
        table: Annotated[
            str,
            Field(description="Search this table only. Empty: the text columns of all tables."),
        ] = "",
        column: Annotated[
            str, Field(description="Search columns of this name only, or one as table.column.")
        ] = "",
        limit: Annotated[int, Field(description="Most matches to return.")] = 20,
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        where = (table, column, limit)
        if isinstance(text, str):
            return dumps(values.find_values(database, text, *where, cancel=cancel)), None
        return dumps(values.find_several(database, text, *where, cancel=cancel)), None

    return cancellable_tool(
        "find_values",
        "Find which table and column hold a value, and how it is spelled there: use it before"
        " filtering. Finds other case, plural, parts and typing errors.",
        find,
    )


def _run_sql(database: Database) -> BaseTool:
    def run(
        sql: Annotated[str, Field(description="One SELECT statement in the database's dialect.")],
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        preview, result = run_sql(database, sql, cancel=cancel)
        return dumps(preview), result

    return cancellable_tool(
        "run_sql",
        f"Run one read-only SELECT in the {database.dialect} dialect. You see the first"
        f" {SHOWN_ROWS} rows and the number of all; the user sees every row.",
        run,
        metadata={"kind": "query"},
    )


def run_sql(
    database: Database, sql: str, *, cancel: Cancel | None = None
) -> tuple[dict[str, Json], QueryResult]:
    """Run one SELECT. Return the answer that the model sees, and the whole result."""
    result = database.run(sql, cancel=cancel)
    types = shown_types(result.types, result.masked)
    part = shown_part(result.columns, types, result.shown(result.rows[:SHOWN_ROWS]))
    wide = summary(result.columns, result.rows, result.masked, chars=NAME_CHARS)
    preview: dict[str, Json] = {
        "row_count": result.row_count,
        **part,
        **wide,
        "note": NOTE,
        "sql": result.sql,
        "ms": result.ms,
    }
    if why := why_empty(database, result, cancel=cancel):
        preview["empty"] = why
    return preview, result
