"""What the room may cost: statements, modules, data, start-up, time and tool calls for a question;
and who may import it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = ROOT / "analyst"
MODULES = sorted(ROOM.rglob("*.py"))


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module that are no docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node


def test_the_room_keeps_its_size() -> None:
    assert len(MODULES) <= 17
    # 3,200, 58 for the built-in analyst as a team's checker and reviewer, and 450 for the account
    # of words.
    assert (
        sum(len(list(statements(ast.parse(path.read_text(encoding="utf-8"))))) for path in MODULES)
        <= 3_708
    )
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
