"""Figures that no result gives are told below the answer, which is printed once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.runner import make_home
from tests.support.model_server import ModelServer, call, open_model_server, say


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def test_an_invented_figure_is_told_below_the_answer(tmp_path: Path, server: ModelServer) -> None:
    server.script(
        call("run_sql", sql="SELECT count(*) AS n FROM orders"),
        say("There are 30 orders, worth 918.33."),
    )
    done = make_home(tmp_path).run(
        "ask", "How many?", "--model", "gpt-4o-mini", "--base-url", server.base_url
    )
    assert done.returncode == 0
    assert done.stdout.count("There are 30 orders, worth 918.33.") == 1
    assert "not found in the results: 918.33\n" in done.stdout
    assert done.stdout.index("worth 918.33.") < done.stdout.index("not found in the results")
