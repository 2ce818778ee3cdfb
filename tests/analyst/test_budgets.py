"""What the room may cost: data, start-up, time, tool calls for a question; and who imports it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "analyst"
MODULES = sorted(ROOM.rglob("*.py"))


def test_the_data_stay_small() -> None:
    assert sum(path.stat().st_size for path in (ROOM / "data").iterdir()) <= 300_000


def test_the_data_hold_no_logic() -> None:
    assert {path.suffix for path in (ROOM / "data").iterdir()} <= {".tsv", ".toml"}


def test_nothing_but_the_app_and_the_evals_imports_the_room() -> None:
    for room in ("memory", "tools", "nodes", "graph"):
        for path in (ROOT / room).rglob("*.py"):
            assert "longtable.analyst" not in path.read_text(encoding="utf-8"), path


def test_the_code_has_no_word_of_the_demos_trade() -> None:
    trade = re.compile(
        r"[\"'](?:flights?|airlines?|airports?|planes?|carrier|tailnum|track|album|invoice|genre|playlist)[\"']"
    )
    for path in MODULES:
        assert not trade.search(path.read_text(encoding="utf-8")), path
