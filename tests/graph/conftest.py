"""What several modules of these tests stand on."""

from pathlib import Path

import pytest

from tests.support.postgres import store_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a new store of threads, of each kind that lasts."""
    return store_url(request.param, tmp_path)
