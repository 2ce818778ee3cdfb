"""The log of the command line, through a real process."""

import json
from pathlib import Path

from tests.app.runner import make_home


def test_the_log_is_json_lines_on_standard_error_where_the_environment_asks_for_it(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path)
    done = home.run("ask", "How many orders are there?", LONGTABLE_LOG="json")
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {line["kind"] for line in told} == {"model", "query", "tool"}
    assert all(
        line["level"] == "INFO" and line["turn"] == 1 for line in told if line["kind"] == "model"
    )
    assert "orders" not in json.dumps(told)

    wrong = home.run("ask", "Which tables are there?", LONGTABLE_LOG="xml")
    assert (wrong.returncode, "LONGTABLE_LOG must be json or text" in wrong.stderr) == (1, True)
