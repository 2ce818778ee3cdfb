"""Changed copies differ from the database, keep its keys, and catch lucky answers."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from longtable.base.errors import DatabaseUnavailableError
from longtable.evaluation import mutations
from longtable.evaluation.journal import Journal
from longtable.evaluation.mutations import copy_changed, make_copies
from longtable.evaluation.turn_results import TurnResult
from tests.support.evaluated import SINGLES, Shop, SqlFor, make_shop, model_of, right, single

SCHEMA = """
CREATE TABLE "group" (id INTEGER PRIMARY KEY, "odd ""name" TEXT UNIQUE, size INT CHECK (size > id));
CREATE TABLE member (code TEXT PRIMARY KEY, group_id INT REFERENCES "group", boss TEXT REFERENCES member,
  double INT GENERATED ALWAYS AS (group_id * 2), raw BLOB);
CREATE TABLE pair (a INT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE use (a INT, b INT, note, FOREIGN KEY (a, b) REFERENCES pair);
CREATE TABLE rowid_taken (rowid TEXT, v INT);
CREATE VIEW seen AS SELECT * FROM member;
CREATE TRIGGER guard BEFORE UPDATE ON member BEGIN SELECT RAISE(ABORT, 'no'); END;
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a b?#.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        for n in range(40):
            connection.execute('INSERT INTO "group" VALUES (?, ?, ?)', [n, f"g{n}", n + 10])
            row = [f"m{n}", n % 7, f"m{n // 3}", bytes([255, n])]
            connection.execute(
                "INSERT INTO member (code, group_id, boss, raw) VALUES (?,?,?,?)", row
            )
            connection.execute("INSERT INTO pair VALUES (?, ?)", [n, n])
            connection.execute("INSERT INTO use VALUES (?, ?, CAST(x'ff' AS TEXT) || ?)", [n, n, n])
            connection.execute("INSERT INTO rowid_taken VALUES (?, ?)", [f"r{n}", n])
    return path


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        # A CHECK over two columns does not survive the shuffling of one.
        connection.execute("PRAGMA ignore_check_constraints = ON")
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("seed", range(5))
def test_keys_stay_whole_and_values_are_those_that_were_there(
    source: Path, tmp_path: Path, seed: int
) -> None:
    copy = tmp_path / "copy.db"
    copy_changed(source, copy, seed)
    assert rows(copy, "PRAGMA foreign_key_check") == []
    assert rows(copy, "PRAGMA integrity_check(1)") == [(b"ok",)]
    for table in ('"group"', "member", "use", "rowid_taken"):
        before = rows(source, f"SELECT * FROM {table}")
        after = rows(copy, f"SELECT * FROM {table}")
        assert 0 < len(after) < len(before)
        assert not set(after) <= set(before)
        for old, new in zip(zip(*before, strict=True), zip(*after, strict=True), strict=True):
            assert {*map(repr, new)} <= {*map(repr, old)}
    assert rows(copy, "SELECT * FROM pair") == rows(source, "SELECT * FROM pair")
    assert len(rows(source, "SELECT * FROM seen")) == 40


def test_the_same_seed_gives_the_same_copy_and_another_one_another(
    source: Path, tmp_path: Path
) -> None:
    before = source.read_bytes()
    copies = make_copies(source, tmp_path, seeds=[1, 2])
    again = tmp_path / "again.db"
    copy_changed(source, again, 1)
    everything = "SELECT * FROM member ORDER BY code"
    assert rows(copies[0], everything) == rows(again, everything)
    assert rows(copies[0], everything) != rows(copies[1], everything)
    assert source.read_bytes() == before


def test_what_cannot_be_copied_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.db"
    bad.write_text("no database " * 100)
    with pytest.raises(DatabaseUnavailableError, match="file is not a database"):
        make_copies(bad, tmp_path, seeds=[1])
    monkeypatch.setattr(mutations, "MOST_BYTES", 10)
    with pytest.raises(DatabaseUnavailableError, match="at most 10 bytes, found 1,200"):
        make_copies(bad, tmp_path, seeds=[1])


def test_rows_are_deleted_although_others_refer_to_them(tmp_path: Path) -> None:
    source = tmp_path / "shop.db"
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.executescript(
            "CREATE TABLE one (id INTEGER PRIMARY KEY);"
            "CREATE TABLE two (id INTEGER PRIMARY KEY, one INT REFERENCES one, UNIQUE (one));"
            "CREATE TABLE three (id INTEGER PRIMARY KEY, two INT REFERENCES two);"
            "CREATE TABLE broken (id INTEGER PRIMARY KEY, one INT REFERENCES one (gone),"
            " two INT REFERENCES two, other INT REFERENCES nowhere);"
        )
        numbers = range(25)
        connection.executemany("INSERT INTO one VALUES (?)", [[n] for n in numbers])
        connection.executemany("INSERT INTO two VALUES (?, ?)", [[n, n] for n in numbers])
        connection.executemany("INSERT INTO three VALUES (?, ?)", [[n, n % 5] for n in numbers])
        connection.executemany(
            "INSERT INTO broken VALUES (?, ?, ?, ?)", [[n, n, n + 90, n] for n in numbers]
        )
    for seed in range(5):
        copy = tmp_path / f"copy-{seed}.db"
        copy_changed(source, copy, seed)
        [(ones,)] = rows(copy, "SELECT count(*) FROM one")
        [(twos,)] = rows(copy, "SELECT count(*) FROM two")
        assert 17 <= int(str(ones)) < 25
        # A unique key cannot refer to another row: its own row goes.
        assert int(str(twos)) <= int(str(ones))
        assert rows(copy, "SELECT count(*) FROM two WHERE one NOT IN (SELECT id FROM one)") == [
            (0,)
        ]
        assert rows(copy, "SELECT count(*) FROM three WHERE two NOT IN (SELECT id FROM two)") == [
            (0,)
        ]
        [(threes,)] = rows(copy, "SELECT count(*) FROM three")
        [(broken,)] = rows(copy, "SELECT count(*) FROM broken")
        assert 17 <= int(str(threes)) < 25
        assert 17 <= int(str(broken)) < 25


def test_names_and_indexes_of_any_kind_are_no_hindrance(tmp_path: Path) -> None:
    source = tmp_path / "odd.db"
    with closing(sqlite3.connect(source)) as connection, connection:
        for name in ("moves", "old", "longtable_changed", "o"):
            connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, value TEXT, e TEXT)")
            rows_of_it = [(n, f"v{n}", f"E{n}") for n in range(30)]
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows_of_it)
        connection.execute("CREATE UNIQUE INDEX part ON moves (value) WHERE id > 3")
        connection.execute("CREATE UNIQUE INDEX form ON old (lower(e))")
        connection.execute(
            "CREATE TABLE made (id INTEGER PRIMARY KEY, a INT, b INT AS (a + 100 * id) UNIQUE)"
        )
        connection.executemany(
            "INSERT INTO made (id, a) VALUES (?, ?)", [[n, n * 50] for n in range(9)]
        )
    for seed in range(3):
        copy = tmp_path / f"copy-{seed}.db"
        copy_changed(source, copy, seed)
        for name in ("moves", "old", "longtable_changed", "o"):
            before = rows(source, f"SELECT * FROM {name}")
            after = rows(copy, f"SELECT * FROM {name}")
            assert len({row[1] for row in after}) == len(after) < 30
            assert not set(after) <= set(before)


def test_a_table_of_few_rows_loses_one(tmp_path: Path) -> None:
    source = tmp_path / "few.db"
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("CREATE TABLE few (id INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO few VALUES (?)", [[1], [2], [3]])
    copy_changed(source, tmp_path / "copy.db", 1)
    assert rows(tmp_path / "copy.db", "SELECT count(*) FROM few") == [(2,)]


def verdicts(folder: Path, sql_for: SqlFor, **settings: object) -> list[TurnResult]:
    results: list[TurnResult] = []
    file = make_shop(folder / "shop.db")
    shop = Shop(file, folder, model_of(sql_for))
    dialogues = [*SINGLES, single("Who bought for 3?", "SELECT id FROM orders WHERE amount = 3")]
    with Journal(folder / "journal.jsonl", resume=False) as journal:
        shop.evaluation(journal, dialogues, on_turn=results.append, copies=3).run()
    return results


def test_gold_in_other_words_is_right_on_each_copy(tmp_path: Path) -> None:
    def in_other_words(question: str) -> str:
        if question == "Who bought for 3?":
            return "SELECT o.id FROM orders o WHERE o.amount BETWEEN 3 AND 3"
        return f"SELECT * FROM ({right(question)}) AS x"

    results = verdicts(tmp_path, in_other_words)
    # An order in a subquery is none.
    assert [result.verdict for result in results].count("right") >= len(SINGLES)
    assert not [result for result in results if result.verdict == "wrong"]


def test_an_answer_that_is_right_by_luck_is_no_right_one(tmp_path: Path) -> None:
    lucky = {
        "How many orders are there?": "SELECT 23",
        "How many customers are there?": "SELECT count(*) FROM customers",
        "What was the total amount?": "SELECT 379.5",
        "Who is from city 1?": "SELECT name FROM customers WHERE id IN (1, 4)",
        "What did each customer buy?": "SELECT name, gone FROM customers",
        "Which three orders were the largest?": "SELECT id FROM orders WHERE id > 19 ORDER BY 1 DESC",
        "Who bought for 3?": "SELECT 2",
    }
    found = {result.dialogue: result for result in verdicts(tmp_path, lucky.__getitem__)}
    right_ones = [name for name, result in found.items() if result.verdict == "right"]
    assert right_ones == ["How many customers are there?"]
    lucky["How many customers are there?"] = "SELECT 7"
    again = tmp_path / "again"
    again.mkdir()
    found = {result.dialogue: result for result in verdicts(again, lucky.__getitem__)}
    customers = found["How many customers are there?"]
    assert (customers.verdict, customers.check) == ("lucky", "copy 1: rows")
    assert found["What did each customer buy?"].check == "no query"
    constant = found["How many orders are there?"]
    assert (constant.verdict, constant.check) == ("lucky", "copy 1: rows")
    assert constant.found == [["23"], ["23"]]
