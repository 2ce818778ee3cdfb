"""One database an engine for all tests that only read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.tools.database import Database, Isolation
from tests.support.isolation import opened_by_default
from tests.tools.databases import DIALECTS, FILE_DIALECTS, Place, make, open_at


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    folder = tmp_path_factory.mktemp("databases")
    return {dialect: make(folder, dialect) for dialect in DIALECTS}


@pytest.fixture(scope="session")
def paths(files: dict[str, Place]) -> dict[str, Path]:
    return {dialect: place for dialect, place in files.items() if isinstance(place, Path)}


@pytest.fixture(params=["none", "process"])
def opened_both_ways(request: pytest.FixtureRequest) -> Iterator[Isolation]:
    """Run a test twice, for what it opens: with queries in this process, then in a worker."""
    with opened_by_default(request.param):
        yield request.param


@pytest.fixture(scope="session")
def databases(files: dict[str, Place]) -> Iterator[dict[str, Database]]:
    """Open each database with a worker, as by default; most other tests open theirs without."""
    with opened_by_default("process"):
        opened = {dialect: open_at(path) for dialect, path in files.items()}
    yield opened
    for database in opened.values():
        database.close()


@pytest.fixture(params=FILE_DIALECTS)
def file_dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(dialect: str, databases: dict[str, Database]) -> Database:
    return databases[dialect]
