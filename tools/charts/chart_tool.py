"""show_chart: a result that is kept, drawn by a Vega-Lite spec that is checked against it; the thread keeps spec and handle."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import BaseModel, ConfigDict, Field

from longtable.base.errors import MissingExtraError
from longtable.tools.cells import Json, dumps
from longtable.tools.charts.chart_fields import ChartSpecError, Spec
from longtable.tools.database import QueryResult
from longtable.tools.result_tool import FetchRefusedError, ThreadResults

KIND = "chart"
"""Kind of a tool that is handed the thread's results, and whose artifact is a chart."""
MOST_SPEC_CHARS = 8_000


@dataclass(frozen=True)
class Chart:
    """A chart that can be drawn: the spec without data, its rows, and what was left out or added up. Notebooks show it as it is."""

    handle: str
    spec: Spec
    rows: list[dict[str, Json]]
    notes: tuple[str, ...] = ()

    def text(self, width: int = 80) -> str:
        """Return it as lines of text."""
        from longtable.tools.charts.chart_spec import render_text

        return render_text(self.spec, self.rows, width)

    def svg(self) -> str:
        """Return it as SVG."""
        from longtable.tools.charts.chart_spec import render_svg

        return render_svg(self.spec, self.rows)

    def png(self, *, scale: float = 2.0) -> bytes:
        """Return it as PNG."""
        from longtable.tools.charts.chart_spec import render_png

        return render_png(self.spec, self.rows, scale=scale)

    def html(self) -> str:
        """Return it as a page of its own that needs no network."""
        from longtable.tools.charts.chart_spec import render_html

        return render_html(self.spec, self.rows)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg(), "text/plain": self.text()}
        except MissingExtraError as error:
            return {"text/plain": f"{self.text()}\n{error}"}


class ShowChart(BaseModel):
    """Arguments of show_chart. `results` is the node's, never the model's."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    handle: str = Field(description="Handle of the result, such as r3.")
    wish: str = Field(default="", description='What to draw, in words: "line by month". Enough for most charts.')
    spec: dict[str, Any] | None = Field(default=None, description="Instead: a Vega-Lite spec without data, fields named as the columns.")
    results: Annotated[ThreadResults | None, InjectedToolArg] = None


def chart_of(handle: str, result: QueryResult, *, spec: Mapping[str, object] | None = None, wish: str = "") -> Chart:
    """Return a result as a chart: by a spec, or by a default one from its shape and a wish. Raises `ChartSpecError`."""
    from longtable.tools.charts.chart_spec import check_spec, default_spec

    drawn: Mapping[str, object] = spec or default_spec(wish, result.columns, result.types, result.rows)
    checked = check_spec(drawn, result.columns, result.types, result.rows)
    if (size := len(dumps(checked.spec))) > MOST_SPEC_CHARS:
        raise ChartSpecError(f"the spec has {size:,} characters", hint=f"at most {MOST_SPEC_CHARS:,} are kept: draw it in a simpler way")
    return Chart(handle, checked.spec, checked.rows, checked.notes)


def chart_tool() -> BaseTool:
    """Return show_chart; a call's "args" must be given `results`, a `ThreadResults`, before it is invoked. Its artifact is a `Chart`."""

    def show(handle: str, wish: str = "", spec: dict[str, Any] | None = None, results: ThreadResults | None = None) -> tuple[str, Chart]:
        if results is None:
            raise FetchRefusedError("no results are kept in this run: it has no thread, and nothing to draw")
        from longtable.tools.charts.chart_spec import draws_pictures

        if spec and not draws_pictures():  # clients may draw the spec of the event: send none that was not checked
            raise ChartSpecError("a spec of your own cannot be checked here", hint='say in `wish` what to draw, as in "line by month"')
        meta = results.store.meta(results.thread_id, handle)
        chart = chart_of(meta.handle, results.store.get(results.thread_id, meta.handle), spec=spec, wish=wish)
        told = {"shown": True, "handle": chart.handle, "points": len(chart.rows), "notes": list(chart.notes), "spec": chart.spec}
        return dumps(told), chart

    return StructuredTool.from_function(
        func=show,
        name="show_chart",
        description="Show the user a chart of a result that run_sql gave a handle.",
        args_schema=ShowChart,
        response_format="content_and_artifact",
        metadata={"kind": KIND},
    )
