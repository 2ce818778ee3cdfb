"""Draw a chart of a conversation for a terminal: as text, and as a PNG file beside its result."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.base.errors import PersistenceError
from longtable.base.events import ChartShown
from longtable.tools.charts.chart_tool import Chart, chart_of

if TYPE_CHECKING:
    from longtable.app.session import Session


def chart_in(session: "Session", event: ChartShown) -> Chart:
    """Return the chart of an event with its rows. Raises typed errors."""
    return chart_of(event["handle"], session.results.get(session.thread_id, event["handle"]), spec=event["spec"])


def write_png(session: "Session", chart: Chart) -> Path:
    """Draw a chart into a new file beside its result. Raises typed errors, `MissingExtraError` without the extra `charts`."""
    png, folder = chart.png(), session.results.path(session.thread_id, chart.handle).parent
    for number in count(1):
        file = folder / f"chart-{number}.png"
        try:
            with file.open("xb") as target:
                target.write(png)
        except FileExistsError:
            continue
        except OSError as error:
            raise PersistenceError(f"{str(file)!r} cannot be written: {error.strerror}") from error
        return file
    raise AssertionError("numbers never end")
