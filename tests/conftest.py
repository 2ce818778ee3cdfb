"""Settings of all tests, and what every session ends with."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.isolation import opened_by_default

# No deadline for one example: the first may load a tokenizer, and the machine may be busy. The
# whole test has a timeout. Forty examples found the faults planted to check this; a hundred take 8
# s more.
settings.register_profile("longtable", deadline=None, max_examples=40)
settings.load_profile("longtable")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going over all modules and tests again and again: a tenth of
    the processor's time.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the interpreter free what was kept from the collector: nanobind takes it for leaked, and
    prints a page when the interpreter ends.
    """
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_ones_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Read no settings file of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session", autouse=True)
def databases_in_this_process() -> Iterator[None]:
    with opened_by_default("none"):
        yield


@pytest.fixture(scope="session", autouse=True)
def end_of_the_postgres_server() -> Iterator[None]:
    yield
    if (module := sys.modules.get("tests.support.postgres")) is not None:
        # Never loaded for its end alone.
        module.stop_postgres_server()
    if module := sys.modules.get("tests.support.mariadb"):
        module.stop_mariadb_server()
    if module := sys.modules.get("tests.support.clickhouse"):
        module.stop_clickhouse_server()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a new store of threads, of each kind that lasts."""
    from tests.support.postgres import store_url

    return store_url(request.param, tmp_path)
