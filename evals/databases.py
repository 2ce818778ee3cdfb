"""Open a database behind the tools a model calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evals.faketools import Fake
from evals.loop import RunTool


@contextmanager
def open_database(path: Path) -> Iterator[RunTool]:
    yield Fake(str(path), "duckdb" if path.suffix == ".duckdb" else "sqlite")
