"""Figures that no result gives are told below the answer, which is printed once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longtable.app.console.screen import ConsoleScreen
from longtable.base.errors import Reason
from longtable.base.events import ContextPassed
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


@pytest.mark.parametrize(
    ("language", "said"), [("en", "did not go with the question"), ("zh", "未随问题发送")]
)
def test_material_that_is_missing_is_told_once_in_a_chat(
    capsys: pytest.CaptureFixture[str], language: str, said: str
) -> None:
    screen = ConsoleScreen()
    screen.language = language
    for message in ("the folder is not there", "the folder is not there", "query x broke"):
        left_out = [Reason(code="no_folder", message=message)]
        screen.event(ContextPassed(type="context_passed", call=1, passed=[], left_out=left_out))
    lines = capsys.readouterr().out.splitlines()
    mark = ": " if language == "en" else "："
    assert lines == [f"{said}{mark}the folder is not there", f"{said}{mark}query x broke"]
