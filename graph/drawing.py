"""Draw the charts of a transcript from the results that are kept, for its export."""

from itertools import count
from typing import TYPE_CHECKING

from longtable.memory.transcript_text import Draw, Drawing
from longtable.tools.charts.chart_render import embedded_svg
from longtable.tools.charts.chart_tool import chart_of

if TYPE_CHECKING:
    from longtable.tools.results import ResultStore


def drawn_from(results: "ResultStore | None", thread_id: str) -> Draw | None:
    """Return what draws a thread's charts as SVG, each with names of its own; None where no results are at hand."""
    if results is None:
        return None
    numbers = count(1)

    def draw(drawing: Drawing) -> str | None:
        try:
            chart = chart_of(drawing.handle, results.get(thread_id, drawing.handle), spec=drawing.spec)
            return embedded_svg(chart.svg(), f"chart{next(numbers)}")
        except Exception:  # its rows have gone, the extra is not installed, an imported spec is made up: then the spec is shown
            return None

    return draw
