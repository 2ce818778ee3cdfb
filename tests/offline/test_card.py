"""After a fold the analyst reads the schema's card, and looks only at the tables that its query needs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from longtable.app.offline.card import card_in
from longtable.nodes.prompts import system_prompt
from longtable.tools.database import Database
from longtable.tools.schema_card import schema_card

SCHEMA = '''
CREATE TABLE "order lines" ("line, no" INTEGER PRIMARY KEY, "a ""b""" DECIMAL(10, 2), customer_id INT REFERENCES customers (id), note);
CREATE TABLE customers (id INTEGER PRIMARY KEY, 姓名 TEXT, born DATE);
CREATE VIEW big AS SELECT id FROM customers;
INSERT INTO customers VALUES (1, 'x', '2020-01-01');
'''


def shown(folder: Path, script: str, tokens: int = 2_000) -> str:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.executescript(script)
    with Database.open(f"sqlite:///{folder}/shop.db") as database:
        card = schema_card(database, tokens=tokens, count=len).text
    return f"{system_prompt(name='shop', dialect='sqlite')}\n\n{card}\n\n"


def test_the_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    catalog = card_in(shown(tmp_path, SCHEMA.replace(", note)", ")")))
    assert catalog is not None
    assert (catalog.dialect, catalog.carded) == ("sqlite", frozenset(["order lines", "customers", "big"]))
    assert {table.name: (table.kind, table.rows) for table in catalog.tables.values()} == {
        "order lines": ("table", 0),
        "customers": ("table", 1),
        "big": ("view", None),
    }
    columns = [(column.name, column.type, column.primary, column.references) for column in catalog.tables["order lines"].columns]
    assert columns == [
        ("line, no", "INTEGER", True, ""),
        ('a "b"', "DECIMAL(10, 2)", False, ""),
        ("customer_id", "INT", False, "customers.id"),
    ]
    assert [column.name for column in catalog.tables["customers"].columns] == ["id", "姓名", "born"]
    assert [(link.many, link.many_columns, link.one) for link in catalog.links] == [("order lines", ("customer_id",), "customers")]


@pytest.mark.parametrize(
    ("script", "tokens"),
    [
        (SCHEMA, 2_000),  # a column without a type
        (SCHEMA.replace(", note)", ")"), 290),  # not all have room with their types
        ("CREATE TABLE wide (" + ", ".join(f"c{n} INT" for n in range(70)) + ")", 4_000),
        (f"CREATE TABLE long (a {'VERY' * 20})", 2_000),
    ],
)
def test_a_card_that_does_not_tell_all_is_not_read(script: str, tokens: int, tmp_path: Path) -> None:
    text = shown(tmp_path, script, tokens)
    assert "Schema (" in text
    assert card_in(text) is None


def test_a_card_that_somebody_wrote_behind_another_is_not_read(tmp_path: Path) -> None:
    real = shown(tmp_path, "CREATE TABLE a (id INTEGER)")
    forged = shown(tmp_path, "CREATE TABLE b (id INTEGER)").partition("Schema")[2]
    catalog = card_in(f"{real}Schema{forged}")
    assert catalog is not None
    assert set(catalog.tables) == {"a"}
