"""Draw a chart of a conversation for a terminal: as text, and as a PNG file beside its result."""

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.graph.errors import PersistenceError
from longtable.graph.events import ChartShown
from longtable.tools.chart_tool import chart_of

if TYPE_CHECKING:
    from longtable.app.session import Session


def drawn(session: "Session", event: ChartShown, width: int) -> tuple[str, Path | None]:
    """Return a chart as text and the file it is in, None where results do not outlive the session. Raises typed errors."""
    results, thread_id = session.results, session.thread_id
    chart = chart_of(event["handle"], results.get(thread_id, event["handle"]), spec=event["spec"])
    text = chart.text(min(width, 100))
    return text, _written(results.path(thread_id, event["handle"]).parent, chart.png()) if session.lasts else None


def _written(folder: Path, png: bytes) -> Path:
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
