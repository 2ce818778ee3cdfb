"""Nothing that was answered is lost when processes die and files, disks and servers fail;
`benchmarks/faults` has the whole table.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.faults.files import (
    Told,
    clock_back,
    damaged,
    few_files,
    folder_for_all,
    full,
    give_rights,
    restore,
    suffered,
    take_rights,
    without_rights,
)
from benchmarks.faults.kills import Executioner
from benchmarks.faults.servers import restarted
from benchmarks.faults.talk import Durability
from longtable.graph import open_persistence
from tests.support.forked import SERVER
from tests.support.postgres import postgres_server


@pytest.mark.parametrize(("mode", "resumed"), [("sync", True), ("async", True), ("exit", False)])
def test_a_kill_at_a_superstep_costs_no_answered_turn_in_any_durability_mode(
    mode: Durability, resumed: bool, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/chat.db"
    with open_persistence(url, lease_seconds=0.3) as kept:
        left, killed = Executioner(tmp_path, SERVER).kill(url, kept, mode, boundary=3)
    assert killed
    assert left.lost == []
    assert (left.resumed, left.stored) == (resumed, resumed)


def nothing(_: Path) -> None: ...


@pytest.mark.parametrize(
    ("under", "before", "after", "told"),
    [
        (
            full,
            nothing,
            nothing,
            "PersistenceError: the conversation store cannot be written: make room",
        ),
        (without_rights, take_rights, give_rights, "check that it can be written"),
        (damaged, nothing, restore, "damaged"),
        (few_files, nothing, nothing, "cannot be opened"),
        (clock_back, nothing, nothing, ""),
    ],
)
def test_a_fault_of_the_file_is_told_and_costs_no_answered_turn(
    under: Callable[[Path], Told],
    before: Callable[[Path], object],
    after: Callable[[Path], object],
    told: str,
) -> None:
    with folder_for_all() as folder:
        row = suffered("fault", folder, under, before=before, after=after)
    assert told in row.saw
    assert bool(told) == bool(row.saw)
    assert row.lost == []
    assert row.answered >= 4


def test_a_server_that_is_restarted_in_mid_turn_costs_no_turn() -> None:
    row = restarted(postgres_server())
    assert row.saw == ""
    assert row.lost == []
