"""Show how far a first search or report is, which reads every thread."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from longtable.app.console.translations import say

if TYPE_CHECKING:
    from longtable.graph.listing.thread_states import OnIndexed


@contextmanager
def indexing(language: str) -> "Iterator[OnIndexed]":
    """Show on standard error how many threads were read for the index, as a bar in a terminal. The
    bar appears with the first thread, and disappears at the end of the block.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from longtable.app.console.screen import make_console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, console=make_console(stderr=True), transient=True)
    task = bar.add_task(say("indexing", language), total=None)
    with ExitStack() as shown:

        def show(done: int, total: int) -> None:
            if not bar.live.is_started:
                shown.enter_context(bar)
            bar.update(task, completed=done, total=total)

        yield show
