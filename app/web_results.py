"""Whole results and archive files as a server gives them: where they are kept, and results as Arrow."""

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.app.session import open_results
from longtable.app.settings import key_for
from longtable.graph.archive_files import ArchiveFiles

if TYPE_CHECKING:
    from longtable.tools.results import ResultStore


@cache
def server_results() -> "ResultStore":
    """Return the results of this server: in LONGTABLE_RESULTS, else in the user's data folder."""
    if given := os.environ.get("LONGTABLE_RESULTS"):
        return open_results(Path(given))
    from platformdirs import user_data_path

    return open_results(user_data_path("longtable", appauthor=False) / "server.results")


@cache
def server_archive() -> ArchiveFiles | None:
    """Return the archive of this server: in LONGTABLE_ARCHIVE, encrypted with LONGTABLE_STORE_KEY; None where that is not set."""
    given = os.environ.get("LONGTABLE_ARCHIVE")
    return ArchiveFiles(given, key=key_for("LONGTABLE_STORE_KEY")) if given else None


def arrow_bytes(store: "ResultStore", thread_id: str, handle: str) -> bytes:
    """Return a whole result as an Arrow IPC stream. Raises what `ResultStore.arrow` raises."""
    table = store.arrow(thread_id, handle)
    from pyarrow import BufferOutputStream, ipc

    sink = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole
