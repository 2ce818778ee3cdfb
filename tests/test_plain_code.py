"""How plainly the code is written: measures a thousand statements, by room, that may only fall.

Lower a ceiling with the room. `python -m benchmarks.rooms` prints them all, and the sizes, which
have no bound.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.rooms import ROOMS, fullest_folder, measure, room_measures


@dataclass(frozen=True)
class Ceilings:
    """Most of each measure in a room."""

    tuple_assignments: float
    """A thousand statements."""
    nested_comprehensions: float
    """A thousand statements."""
    one_item_loops: int
    long_statements: int
    long_functions: int
    files: int | None
    """In one folder; None: not bounded."""


CEILINGS = {
    "base": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "memory": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "store": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "tools": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "nodes": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "graph": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "app": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "analyst": Ceilings(0.0, 0.0, 0, 0, 0, None),
    "checks": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "modes": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "knowledge": Ceilings(0.0, 0.0, 0, 0, 0, 14),
    "evaluation": Ceilings(0.0, 0.0, 0, 0, 0, 14),
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_written_as_plainly_as_before(room: str) -> None:
    measures = room_measures(room)
    most = CEILINGS[room]
    assert measures.a_thousand(measures.tuple_assignments) <= most.tuple_assignments
    assert measures.a_thousand(measures.nested_comprehensions) <= most.nested_comprehensions
    assert measures.one_item_loops <= most.one_item_loops
    assert measures.long_statements <= most.long_statements
    assert measures.long_functions <= most.long_functions


@pytest.mark.parametrize("room", ROOMS)
def test_no_folder_is_fuller_than_before(room: str) -> None:
    most = CEILINGS[room].files
    if most is not None:
        assert fullest_folder(room) <= most, "give the new file, or some of these, a sub-room"


def test_each_measure_sees_what_it_is_named_after(tmp_path: Path) -> None:
    path = tmp_path / "packed.py"
    long_call = "f(\n" + "    1,\n" * 12 + ")\n"
    record = "h = Record(\n" + "".join(f"    field_{n}={n},\n" for n in range(12)) + ")\n"
    long_body = "def g():\n" + "    h()\n" * 51
    path.write_text(
        "a, b = 1, 2\n"
        "a, b = b, a\n"
        "c = [x for y in z for x in y]\n"
        "d = [[x for x in y] for y in z]\n"
        "for e in [f()]:\n    pass\n"
        f"{long_call}TABLE = {long_call}{long_body}{record}"
    )
    measures = measure(path)
    assert measures.tuple_assignments == 1
    assert measures.nested_comprehensions == 2
    assert measures.one_item_loops == 1
    assert measures.long_statements == 1
    assert measures.long_functions == 1
