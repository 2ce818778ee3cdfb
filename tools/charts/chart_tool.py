"""The tool show_chart: draw a stored result from a Vega-Lite spec, or from a wish in words. The
thread keeps the spec and the handle of the result.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field as Argument

from longtable.tools.cells import dumps
from longtable.tools.charts.chart_fields import ChartSpecError
from longtable.tools.charts.chart_spec import Checked, check_spec
from longtable.tools.charts.chart_wishes import default_spec
from longtable.tools.charts.pictures import Chart, draws_pictures, embedded_svg
from longtable.tools.database import QueryResult
from longtable.tools.fetch import FetchRefusedError, Results

__all__ = [
    "KIND",
    "Chart",
    "chart_of",
    "chart_tool",
    "default_spec",
    "draws_pictures",
    "embedded_svg",
    "masked_chart_of",
]


KIND = "chart"
"""The metadata `kind` of a tool that is given the thread's results and returns a chart as its
artifact.
"""
MOST_SPEC_CHARS = 8_000


def chart_of(
    handle: str, result: QueryResult, *, spec: Mapping[str, object] | None = None, wish: str = ""
) -> Chart:
    """Return a result as a chart for a person. Without a `spec`, one is chosen from the shape of
    the result and `wish`. Raises `ChartSpecError` if the chart cannot be drawn.

    `show_chart` checked the spec against masked values. If the real values do not fit the spec, the
    chart shows the mask in their place.
    """
    try:
        return _drawable(handle, _checked(result, spec, wish))
    except ChartSpecError:
        if not result.masked:
            raise
    return masked_chart_of(handle, result, spec=spec, wish=wish)


def masked_chart_of(
    handle: str, result: QueryResult, *, spec: Mapping[str, object] | None = None, wish: str = ""
) -> Chart:
    """Return a result as a chart for a model, like `chart_of`, but with masked values replaced by
    what a model may see. Neither the chart nor a `ChartSpecError` depends on a masked value.
    """
    return _drawable(handle, _checked(_as_masked(result), spec, wish))


def _as_masked(result: QueryResult) -> QueryResult:
    return replace(result, rows=result.shown(result.rows)) if result.masked else result


def _drawable(handle: str, checked: Checked) -> Chart:
    return Chart(handle, checked.spec, checked.rows, checked.notes)


def _checked(result: QueryResult, spec: Mapping[str, object] | None, wish: str) -> Checked:
    chart_spec: Mapping[str, object] = spec or default_spec(
        wish, result.columns, result.types, result.rows
    )
    checked = check_spec(chart_spec, result.columns, result.types, result.rows)
    size = len(dumps(checked.kept))
    if size > MOST_SPEC_CHARS:
        raise ChartSpecError(
            f"the spec has {size:,} characters",
            hint=f"at most {MOST_SPEC_CHARS:,} are kept: draw it in a simpler way",
        )
    return checked


def chart_tool() -> BaseTool:
    """Return the tool show_chart. The caller must add a `ThreadResults` to the call's "args" as
    `results` before it invokes the tool. The artifact is a `Chart` of the rows as the model may see
    them.
    """

    def show(
        handle: Annotated[str, Argument(description="Handle of the result, such as r3.")],
        wish: Annotated[
            str,
            Argument(
                description='What to draw, in words: "line by month". Enough for most charts.'
            ),
        ] = "",
        spec: Annotated[
            dict[str, Any] | None,
            Argument(
                description="Instead: a Vega-Lite spec without data, fields named as the columns."
            ),
        ] = None,
        results: Results = None,
    ) -> tuple[str, Chart]:
        if results is None:
            raise FetchRefusedError(
                "no results are kept in this run: it has no thread, and nothing to draw"
            )
        if spec and not draws_pictures():
            # Clients may draw the spec of the event: send none that was not checked.
            raise ChartSpecError(
                "a spec of your own cannot be checked here",
                hint='say in `wish` what to draw, as in "line by month"',
            )
        meta = results.meta(handle)
        result = results.get(meta.handle)
        checked = _checked(_as_masked(result), spec, wish)
        answer = {
            "shown": True,
            "handle": meta.handle,
            "points": len(checked.rows),
            "notes": list(checked.notes),
            "spec": checked.kept,
        }
        return dumps(answer), Chart(meta.handle, checked.kept, checked.rows, checked.notes)

    return StructuredTool.from_function(
        func=show,
        name="show_chart",
        description="Show the user a chart of a result that run_sql gave a handle.",
        response_format="content_and_artifact",
        metadata={"kind": KIND},
    )
