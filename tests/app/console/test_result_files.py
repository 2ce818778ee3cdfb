"""Charts on the command line: text in the terminal, a PNG file beside the result."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.runner import Home, make_home
from tests.support.model_server import ModelServer, call, open_model_server, say


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        sql = "SELECT customer, amount FROM orders WHERE id <= 5"
        running.script(
            call("run_sql", sql=sql),
            call("show_chart", handle="r1", wish="bar"),
            say("There it is."),
        )
        yield running


def test_a_chart_is_drawn_as_text_and_written_beside_the_result(
    home: Home, server: ModelServer
) -> None:
    done = home.run("ask", "plot", "--model", "gpt-4o-mini", "--base-url", server.base_url)
    assert done.returncode == 0, done.stderr
    assert re.search(r"customer 5\s.*█", done.stdout)
    [file] = (home.folder / "threads.db.results").glob("*/r1/chart-1.png")
    assert file.read_bytes().startswith(b"\x89PNG")
    assert f"chart of r1: {file}" in done.stdout.replace("\n", "")


def test_a_chart_of_a_thread_in_memory_is_text_alone(home: Home, server: ModelServer) -> None:
    done = home.run(
        "ask",
        "plot",
        "--model",
        "gpt-4o-mini",
        "--base-url",
        server.base_url,
        "--store",
        "memory://",
    )
    assert done.returncode == 0, done.stderr
    assert "█" in done.stdout
    assert "chart of r1" not in done.stdout


def test_json_output_has_the_spec(home: Home, server: ModelServer) -> None:
    events = home.events("ask", "plot", "--model", "gpt-4o-mini", "--base-url", server.base_url)
    [chart] = [event for event in events if event["type"] == "chart"]
    assert chart["handle"] == "r1"
    assert chart["spec"]["mark"]
