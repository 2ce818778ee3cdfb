"""One file an engine for all tests that only read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.tools.database import Database
from tests.tools.databases import DIALECTS, make, open_at


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("databases")
    return {dialect: make(folder, dialect) for dialect in DIALECTS}


@pytest.fixture(scope="session")
def databases(files: dict[str, Path]) -> Iterator[dict[str, Database]]:
    opened = {dialect: open_at(path) for dialect, path in files.items()}
    yield opened
    for database in opened.values():
        database.close()


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(dialect: str, databases: dict[str, Database]) -> Database:
    return databases[dialect]
