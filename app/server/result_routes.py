"""Routes for stored results and archive files: CSV, Arrow and SVG."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse

from longtable.app.console.result_files import csv_cells
from longtable.app.server.requests import SAFE, RouteRequest, file_headers
from longtable.app.server.thread_routes import PAGE_POLICY
from longtable.app.session import server_archive, server_results
from longtable.base.errors import UnknownArchiveError
from longtable.graph.export.export_text import Drawing, parts_of
from longtable.tools.charts.chart_tool import chart_of
from longtable.tools.row_access import RowAccess, current_access, reading_as

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultMeta, ResultStore


def results(request: RouteRequest) -> Mapping[str, Any]:
    """Return the whole results of the thread, oldest first: handle, columns, types and number of
    rows of each.
    """
    return request.page("results", map(_described, server_results().handles(request.seen())))


def result_csv(request: RouteRequest) -> Response:
    """Return a whole result as CSV with a line of headings, sent in batches."""
    store = server_results()
    thread_id = request.seen()
    handle = request.http.path_params["handle"]
    store.path(thread_id, handle)  # its errors have a status; those of a stream have none
    quote = request.parameter("quote_formulas") == "1"
    access = current_access()
    return StreamingResponse(
        _csv(store, thread_id, handle, quote, access),
        media_type="text/csv; charset=utf-8",
        headers=file_headers(f"{handle}.csv"),
    )


def result_arrow(request: RouteRequest) -> Response:
    """Return a whole result as an Arrow IPC stream."""
    store = server_results()
    thread_id = request.seen()
    handle = request.http.path_params["handle"]
    body = arrow_bytes(store, thread_id, handle)
    return Response(
        body,
        media_type="application/vnd.apache.arrow.stream",
        headers=file_headers(f"{handle}.arrows"),
    )


def result_svg(request: RouteRequest) -> Response:
    """Return a result as a chart. Without `?wish=`, this is the last chart of the result in the
    transcript, if there is one.
    """
    record = request.load()
    handle = request.http.path_params["handle"]
    wish = request.parameter("wish")
    specs = [
        part.spec
        for part in parts_of(record.shown)
        if isinstance(part, Drawing) and part.handle == handle
    ]
    chart = chart_of(
        handle,
        server_results().get(record.thread_id, handle),
        spec=specs[-1] if specs and not wish else None,
        wish=wish,
    )
    return Response(
        chart.svg(),
        media_type="image/svg+xml",
        headers={**SAFE, "Content-Security-Policy": PAGE_POLICY},
    )


def archive(request: RouteRequest) -> Mapping[str, Any]:
    """Return the list of files that were written before each compaction of the thread, oldest
    first.
    """
    files = server_archive()
    thread_id = request.seen()
    return request.page("archive", map(asdict, files.files(thread_id) if files else []))


def archive_file(request: RouteRequest) -> Response:
    """Return one archive file as JSON."""
    files = server_archive()
    thread_id = request.seen()
    key = request.http.path_params["key"]
    if files is None:
        raise UnknownArchiveError(key)
    return Response(
        files.read(thread_id, key), media_type="application/json", headers=file_headers(key)
    )


def _csv(
    store: "ResultStore",
    thread_id: str,
    handle: str,
    quote_formulas: bool,
    access: RowAccess | None,
) -> Iterator[str]:
    """Yield the lines of a result, as the rows of `access`. Each piece may be made in another
    thread, after the handler has returned.
    """
    with reading_as(access):
        columns: tuple[object, ...] = store.meta(thread_id, handle).columns
        batches = store.batches(thread_id, handle)
        first = next(batches, [])
    for rows in chain([[columns], first], batches):
        buffer = io.StringIO()
        csv.writer(buffer).writerows(csv_cells(row, quote_formulas=quote_formulas) for row in rows)
        yield buffer.getvalue().encode("utf-8", "replace").decode()


def _described(meta: "ResultMeta") -> dict[str, Any]:
    return {
        "handle": meta.handle,
        "columns": meta.columns,
        "types": meta.types,
        "rows": meta.row_count,
        **({"database": meta.database} if meta.database else {}),
    }


def arrow_bytes(store: "ResultStore", thread_id: str, handle: str) -> bytes:
    """Return a whole result as an Arrow IPC stream. Raises the errors of `ResultStore.arrow`."""
    table = store.arrow(thread_id, handle)
    from pyarrow import BufferOutputStream, ipc

    sink = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole
