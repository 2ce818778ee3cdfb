"""The tool `fetch_result`: rows of a kept result, or SQL over kept results."""

from typing import TYPE_CHECKING, Annotated

from langchain_core.tools import BaseTool, InjectedToolArg
from pydantic import Field

from longtable.base.errors import DatabaseError
from longtable.tools.cells import Json, dumps
from longtable.tools.database import Cancel, QueryResult
from longtable.tools.previews import SHOWN_ROWS, shown_part, shown_types
from longtable.tools.sql.verdict import masked_rows
from longtable.tools.tool_answers import KIND, NOTE, Answer, cancellable_tool

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultMeta, ResultPage, ResultStore


class FetchRefusedError(DatabaseError):
    """A call of fetch_result names nothing that can be fetched."""


class ThreadResults:
    """The results of the running thread that the answering voice (one member of a team) may read.

    If `private` is True, only this voice may read the results that `put` stores. The class is a
    plain one, so that pydantic passes its objects through unchanged.
    """

    def __init__(
        self, store: "ResultStore", thread_id: str, *, voice: str = "", private: bool = False
    ) -> None:
        self.store = store
        self.thread_id = thread_id
        self.voice = voice
        self.private = private

    def handles(self) -> list["ResultMeta"]:
        """Return the results that the voice may read, oldest first."""
        return self.store.handles(self.thread_id, voice=self.voice)

    def meta(self, handle: str) -> "ResultMeta":
        """Return the metadata of a result. Raises `UnknownResultError` if there is no such
        result.
        """
        return self.store.meta(self.thread_id, handle, voice=self.voice)

    def get(self, handle: str) -> QueryResult:
        """Return a whole result. Raises `UnknownResultError` if there is no such result,
        `ResultGoneError` if its rows were deleted.
        """
        return self.store.get(self.thread_id, self.meta(handle).handle)

    def page(self, handle: str, *, page: int, size: int) -> "ResultPage":
        """Return one page of a result. Raises the same errors as `get`."""
        known = self.meta(handle).handle
        return self.store.page(self.thread_id, known, page=page, size=size)

    def query(self, sql: str, *, cancel: Cancel | None = None) -> QueryResult:
        """Run one SELECT whose tables are handles. Raises the same errors as `ResultStore.sql`."""
        return self.store.sql(self.thread_id, sql, voice=self.voice, cancel=cancel)

    def put(self, result: QueryResult) -> str:
        """Store a result and return its handle."""
        return self.store.put(
            self.thread_id,
            columns=result.columns,
            types=result.types,
            rows=result.rows,
            sql=result.sql,
            masked=result.masked,
            voice=self.voice if self.private else "",
            rows_key=result.rows_key,
            database=result.database,
        )


Results = Annotated[ThreadResults | None, InjectedToolArg]
"""A tool's argument that the node which runs the tool fills in. A model never sees or sets it."""


def fetch_tool() -> BaseTool:
    """Return the tool fetch_result. The caller must add a `ThreadResults` to the call's "args" as
    `results` before it invokes the tool.
    """

    def fetch(
        handle: Annotated[
            str, Field(description="Handle of a result, such as r3. Not needed with sql.")
        ] = "",
        page: Annotated[
            int, Field(description=f"Page of that result, {SHOWN_ROWS} rows each, from 1.")
        ] = 1,
        sql: Annotated[
            str,
            Field(
                description="Instead of a page: one SELECT (DuckDB) whose tables are handles, as in"
                " SELECT ... FROM r3."
            ),
        ] = "",
        results: Results = None,
        *,
        cancel: Cancel | None = None,
    ) -> Answer:
        return dumps(fetched(results, handle, page, sql, cancel=cancel)), None

    return cancellable_tool(
        "fetch_result",
        "Read more of a result that run_sql gave a handle (r1, r2 ...), or query such results by"
        " SQL; the database is not asked again.",
        fetch,
        metadata={"kind": KIND},
    )


def fetched(
    results: ThreadResults | None, handle: str, page: int, sql: str, *, cancel: Cancel | None = None
) -> dict[str, Json]:
    """Return a page of a result, or the first rows of SQL over handles, in the form that the model
    sees.

    `total` counts all rows. It is not called `row_count`, because the answer would then look like
    that of a query of the database. `handles` are the handles that the SQL reads. Raises
    `FetchRefusedError`, `UnknownResultError`, `ResultGoneError`, and the errors of
    `ResultStore.sql`.
    """
    if results is None:
        raise FetchRefusedError(
            "no results are kept in this run: it has no thread; run the query again"
        )
    if sql.strip():
        result = results.query(sql, cancel=cancel)
        types = shown_types(result.types, result.masked)
        part = shown_part(result.columns, types, result.shown(result.rows[:SHOWN_ROWS]))
        return {
            "handles": list(result.tables),
            "total": result.row_count,
            **part,
            "note": NOTE,
            "sql": result.sql,
        }
    if not handle.strip():
        known = ", ".join(meta.handle for meta in results.handles()[-10:])
        raise FetchRefusedError(
            f"give a handle ({known or 'there is none yet'}), or sql over handles"
        )
    page_found = results.page(handle, page=page, size=SHOWN_ROWS)
    head: dict[str, Json] = {
        "handle": page_found.meta.handle,
        "total": page_found.meta.row_count,
        "page": page_found.page,
        "pages": page_found.pages,
    }
    part = shown_part(
        page_found.meta.columns,
        shown_types(page_found.meta.types, page_found.meta.masked),
        masked_rows(page_found.rows, page_found.meta.masked),
    )
    return {**head, **part, "note": NOTE}
