"""Results of queries: pages of their tables, files to keep, and charts."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from starlette.responses import HTMLResponse, Response

from longtable.app.console.result_files import save_result
from longtable.app.pages.page_site import PageRequest
from longtable.app.pages.part_html import PAGE_ROWS, Part, TurnPlace, numeric_columns
from longtable.app.pages.part_html import part as template_part
from longtable.app.pages.turn_html import partial_html
from longtable.app.server.requests import file_headers
from longtable.base.errors import ConfigError
from longtable.tools.cells import Json, json_rows
from longtable.tools.charts.chart_tool import chart_of
from longtable.tools.results.result_store import ResultStore

MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
}
PICTURES = {"svg": "image/svg+xml", "png": "image/png"}
PICTURE_POLICY = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""The policy of a picture that is opened by itself: nothing in it may run or be loaded."""


def _results(request: PageRequest) -> ResultStore:
    request.stored()
    return request.site.session.results


def result_rows(request: PageRequest) -> Response:
    """Return a page of a result: the whole table for the first page, only rows for a later one.
    `sort`: the number of the column, counted from 1; negative for falling order; 0 for the order of
    the query.
    """
    store = _results(request)
    handle = str(request.http.path_params["handle"])
    page = max(1, request.number("page", 1))
    sort = request.number("sort", 0)
    part_id = "".join(
        letter for letter in request.field("part") if letter.isalnum() or letter == "-"
    )
    meta = store.meta(request.thread_id, handle)
    if abs(sort) > len(meta.columns):
        raise ConfigError(f"sort= is at most {len(meta.columns)}, found {sort}")
    rows = page_of(store, request.thread_id, handle, page, sort)
    part = Part(TurnPlace(request.thread_id, part_id, request.language), part_id)
    numeric = numeric_columns(rows, len(meta.columns))
    if page == 1:
        return HTMLResponse(
            template_part(
                "table",
                part,
                handle=handle,
                columns=meta.columns,
                numeric=numeric,
                rows=rows,
                row_count=meta.row_count,
                sort=sort,
            )
        )
    more = template_part(
        "more", part, handle=handle, page=page, row_count=meta.row_count, sort=sort
    )
    html = template_part("table_rows", part, rows=rows, numeric=numeric)
    return HTMLResponse(html + partial_html(f"{part_id}-more", "outerHTML", more))


def page_of(
    store: ResultStore, thread_id: str, handle: str, page: int, sort: int
) -> list[list[Json]]:
    """Return the rows of one page of a result, as JSON values. Rows without a value in the column
    by which they are sorted come last.
    """
    if not sort:
        return json_rows(store.page(thread_id, handle, page=page, size=PAGE_ROWS).rows)
    place = abs(sort) - 1
    rows = list(store.get(thread_id, handle).rows)
    filled = [row for row in rows if row[place] is not None]
    empty = [row for row in rows if row[place] is None]
    try:
        filled.sort(key=lambda row: row[place], reverse=sort < 0)  # type: ignore[arg-type,return-value]  # cells of one column
    except TypeError:
        filled.sort(key=lambda row: str(row[place]), reverse=sort < 0)
    first = (page - 1) * PAGE_ROWS
    return json_rows([*filled, *empty][first : first + PAGE_ROWS])


def result_file(request: PageRequest) -> Response:
    """Return a whole result as a CSV, Excel or Parquet file. A text that a spreadsheet would read
    as a formula is marked as text.
    """
    store = _results(request)
    handle = str(request.http.path_params["handle"])
    ending = str(request.http.path_params["ending"])
    if ending not in MEDIA:
        raise ConfigError(f"a result is a file of {', '.join(MEDIA)}, found {ending[:20]!r}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{handle}.{ending}"
        save_result(store, request.thread_id, handle, file, quote_formulas=True)
        body = file.read_bytes()
    return Response(body, media_type=MEDIA[ending], headers=file_headers(f"{handle}.{ending}"))


def chart_picture(request: PageRequest) -> Response:
    """Return a chart as a picture. Its spec comes with the address and is checked again."""
    store = _results(request)
    handle = str(request.http.path_params["handle"])
    ending = str(request.http.path_params["ending"])
    if ending not in PICTURES:
        raise ConfigError(f"a chart is a picture of {', '.join(PICTURES)}, found {ending[:20]!r}")
    chart = chart_of(handle, store.get(request.thread_id, handle), spec=_spec_of(request))
    body = chart.png() if ending == "png" else chart.svg().encode()
    return Response(body, media_type=PICTURES[ending], headers=PICTURE_POLICY)


def _spec_of(request: PageRequest) -> Mapping[str, object] | None:
    text = request.field("spec")
    try:
        spec = json.loads(text) if text else None
    except (ValueError, RecursionError):
        spec = None
    if text and not isinstance(spec, dict):
        raise ConfigError("spec= must be a Vega-Lite spec without data, as JSON")
    return spec
