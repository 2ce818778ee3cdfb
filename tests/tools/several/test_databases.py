"""Databases by name: which names they may have, which one a call asks, and that one alone is asked
as if it had no name.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from longtable.base.errors import ConfigError, DatabaseUnavailableError, UnknownDatabaseError
from longtable.graph import build_graph
from longtable.tools.database import Database
from longtable.tools.several.databases import Databases
from tests.support.models import script
from tests.tools.several.one_database import told

GOLDEN = Path(__file__).parent / "data" / "one_database.json"
"""Written by the last version that knew one database only."""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "shop.csv").write_text("id,total\n1,2\n")
    with Database.open(str(tmp_path / "shop.csv"), isolation="none") as database:
        yield database


def test_one_database_sends_and_stores_byte_for_byte_what_it_did(tmp_path: Path) -> None:
    assert told(tmp_path) == GOLDEN.read_text("utf-8")


def test_one_database_with_a_name_is_asked_as_if_it_had_none(tmp_path: Path) -> None:
    assert told(tmp_path, lambda opened: {"web": opened}) == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ((), "no database was given"),
        (("",), "must be a word of letters"),
        (("two words",), "found 'two words'"),
        (("1st",), "begins with a letter"),
        (("a.b",), "as in shop"),
        (("x" * 65,), "at most 64"),
        (("ｓhop",), "must be a word"),
        ((7,), "found 7"),
        (("shop", "Shop"), "two databases have one name: 'shop' and 'Shop'"),
    ],
)
def test_wrong_names_are_refused(opened: Database, names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build_graph(model=script("x"), database=dict.fromkeys(names, opened))


def test_what_is_no_database_is_refused(opened: Database) -> None:
    several: dict[str, Database] = {"shop": opened, "web": "sqlite:///web.db"}  # type: ignore[dict-item]  # a URL
    with pytest.raises(ConfigError, match="database 'web' must be a Database, found str"):
        build_graph(model=script("x"), database=several)


def test_chinese_names_are_names(opened: Database) -> None:
    databases = Databases({"门店": opened, "web": opened})
    assert databases.name_of("门店") == "门店"


def test_a_call_must_name_one_that_is_there(opened: Database) -> None:
    databases = Databases({"shop": opened, "web": opened})
    assert databases.name_of(" SHOP ") == "shop"
    with pytest.raises(UnknownDatabaseError, match="must be one of shop, web"):
        databases.name_of(None)
    with pytest.raises(UnknownDatabaseError, match=r"did you mean shop\? The databases are"):
        databases.name_of("shpo")
    with pytest.raises(UnknownDatabaseError) as caught:
        databases.name_of("x\x1b[2J" * 200)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_call_that_was_decided_under_one_database_means_the_first(opened: Database) -> None:
    databases = Databases({"shop": opened, "web": opened})
    assert databases.call_args({"sql": "x"}, decided=True) == {"sql": "x", "database": "shop"}
    assert databases.call_args({"sql": "x"}) == {"sql": "x"}
    named = {"sql": "x", "database": "web"}
    assert databases.call_args(named, decided=True) == named


def test_one_database_refuses_calls_for_another(opened: Database) -> None:
    for databases in (Databases({"shop": opened}), Databases.of(opened)):
        assert databases is not None
        assert databases.call_args({"sql": "x", "database": "Shop"}) == {"sql": "x"}
        assert databases.call_args({"sql": "x", "database": ""}) == {"sql": "x"}
        with pytest.raises(UnknownDatabaseError, match="asks one database"):
            databases.call_args({"sql": "x", "database": "web"})
        assert databases.recorded("web") is None
        assert databases.recorded("") is opened


class Unreachable:
    """A database whose server does not answer."""

    name = "web"

    def __init__(self) -> None:
        self.asked = 0

    def refresh(self) -> None:
        self.asked += 1
        raise DatabaseUnavailableError("no answer")


@pytest.mark.parametrize(("slow", "asked"), [(0.0, 1), (60.0, 3)])
def test_a_server_that_is_slow_to_fail_rests_when_turns_begin(
    monkeypatch: pytest.MonkeyPatch, slow: float, asked: int
) -> None:
    monkeypatch.setattr("longtable.tools.several.databases.SLOW_SECONDS", slow)
    down = Unreachable()
    databases = Databases.of_one(cast("Database", down))
    assert [databases.refreshed("") for _ in range(3)] == [None] * 3
    assert down.asked == asked
