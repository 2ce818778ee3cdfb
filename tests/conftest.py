"""Settings of all tests, and what every session ends with."""

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline for one example: the first may load a tokenizer, and the machine may be busy. The whole test has a timeout.
settings.register_profile("longtable", deadline=None)
settings.load_profile("longtable")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going over all modules and tests again and again: a tenth of the processor's time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def end_of_the_postgres_server() -> Iterator[None]:
    yield
    if (module := sys.modules.get("tests.support.postgres")) is not None:  # never loaded for its end alone
        module.stop_postgres_server()
