"""fetch_result: more of a result that is kept outside the conversation, by page or by SQL over handles."""

from typing import TYPE_CHECKING, Annotated

from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import BaseModel, ConfigDict, Field

from longtable.base.errors import DatabaseError
from longtable.tools.cells import Json, dumps
from longtable.tools.database import Cancel, QueryResult
from longtable.tools.query_tools import NOTE, SHOWN_ROWS, shown_part
from longtable.tools.sql.masks import masked_rows
from longtable.tools.toolset import Answer, cancellable_tool

if TYPE_CHECKING:
    from longtable.tools.results import ResultStore

KIND = "result"
"""Kind of a tool that is handed the thread's results."""


class FetchRefusedError(DatabaseError):
    """A call of fetch_result names nothing that could be fetched."""


class ThreadResults:
    """The results of the one thread that runs; a plain class, for a tool's arguments to hold it as it is."""

    def __init__(self, store: "ResultStore", thread_id: str) -> None:
        self.store, self.thread_id = store, thread_id

    def put(self, result: QueryResult) -> str:
        """Keep a result and return its handle."""
        return self.store.put(
            self.thread_id, columns=result.columns, types=result.types, rows=result.rows, sql=result.sql, masked=result.masked
        )


class FetchResult(BaseModel):
    """Arguments of fetch_result. `results` is the node's, never the model's."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    handle: str = Field(default="", description="Handle of a result, such as r3. Not needed with sql.")
    page: int = Field(default=1, description=f"Page of that result, {SHOWN_ROWS} rows each, from 1.")
    sql: str = Field(default="", description="Instead of a page: one SELECT (DuckDB) whose tables are handles, as in SELECT ... FROM r3.")
    results: Annotated[ThreadResults | None, InjectedToolArg] = None


def fetch_tool() -> BaseTool:
    """Return fetch_result; a call's "args" must be given `results`, a `ThreadResults`, before it is invoked."""

    def fetch(
        handle: str = "", page: int = 1, sql: str = "", results: ThreadResults | None = None, *, cancel: Cancel | None = None
    ) -> Answer:
        return dumps(fetched(results, handle, page, sql, cancel=cancel)), None

    return cancellable_tool(
        "fetch_result",
        "Read more of a result that run_sql gave a handle (r1, r2 ...), or query such results by SQL; the database is not asked again.",
        fetch,
        FetchResult,
        metadata={"kind": KIND},
    )


def fetched(results: ThreadResults | None, handle: str, page: int, sql: str, *, cancel: Cancel | None = None) -> dict[str, Json]:
    """Return a page of a result, or the first rows of SQL over handles, as the model is shown it.

    `total` counts all rows: `row_count` would make a query of the database of it. `handles` are those that the SQL reads.
    Raises `FetchRefusedError`, `UnknownResultError`, `ResultGoneError`, and what running SQL raises.
    """
    if results is None:
        raise FetchRefusedError("no results are kept in this run: it has no thread; run the query again")
    if sql.strip():
        made = results.store.sql(results.thread_id, sql, cancel=cancel)
        part = shown_part(made.columns, made.types, made.shown(made.rows[:SHOWN_ROWS]))
        return {"handles": list(made.tables), "total": made.row_count, **part, "note": NOTE, "sql": made.sql}
    if not handle.strip():
        known = ", ".join(meta.handle for meta in results.store.handles(results.thread_id)[-10:])
        raise FetchRefusedError(f"give a handle ({known or 'there is none yet'}), or sql over handles")
    found = results.store.page(results.thread_id, handle, page=page, size=SHOWN_ROWS)
    head: dict[str, Json] = {"handle": found.meta.handle, "total": found.meta.row_count, "page": found.page, "pages": found.pages}
    part = shown_part(found.meta.columns, found.meta.types, masked_rows(found.rows, found.meta.masked))
    return {**head, **part, "note": NOTE}
