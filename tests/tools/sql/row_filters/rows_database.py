"""Databases in which a person may read the rows of one region only, the same in all engines."""

import random
from collections.abc import Sequence
from pathlib import Path

from longtable.tools.database import Database, TablePolicy
from tests.tools.databases import Place, make, url

VISIBLE = 30
HIDDEN = 20
POLICY = TablePolicy(row_filters={"orders": "region = :region"})
NORTH = {"region": "north"}
COSTLY = TablePolicy(
    row_filters={
        "orders": (
            "replace(replace(lower(trim(replace(region, 'x', 'y'))), 'y', 'x'), 'z', 'z') = :region"
        )
    }
)
"""The same rows by a condition that engines would like to test last: without a fence, conditions of
the query are tested on hidden rows first.
"""

VIEWS = """
CREATE INDEX orders_by_secret ON orders (secret);
CREATE TABLE items (id INTEGER, order_id INTEGER, price INTEGER);
INSERT INTO items VALUES (1, 1, 10), (2, 2, 20), (3, 1000, 30), (4, NULL, 40);
CREATE TABLE regions (region VARCHAR(20), head VARCHAR(20));
INSERT INTO regions VALUES ('north', 'Ada'), ('south', 'Bo');
CREATE VIEW all_orders AS SELECT id, region, total FROM orders;
CREATE VIEW large_orders AS SELECT id FROM all_orders WHERE total > 10;
CREATE VIEW heads AS SELECT head FROM regions;
"""


def hidden_secrets(seed: int = 1) -> list[int]:
    """Return the secret numbers of the hidden rows."""
    return random.Random(seed).sample(range(100_000, 999_999), HIDDEN)


def script(secrets: Sequence[int], *, hidden_note: str = "text") -> str:
    """Return the SQL that makes the tables: rows of the north, then hidden rows of the south."""
    north = [f"({n}, 'north', {n}, {n * 2}, '{n}')" for n in range(1, VISIBLE + 1)]
    south = [
        f"({1000 + n}, 'south', {secret}, {n}, '{hidden_note}')" for n, secret in enumerate(secrets)
    ]
    return (
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, region VARCHAR(20), secret INTEGER,"
        " total INTEGER, note VARCHAR(40));"
        f"INSERT INTO orders VALUES {', '.join([*north, *south])};" + VIEWS
    )


def make_rows(
    folder: Path, dialect: str, secrets: Sequence[int] | None = None, *, hidden_note: str = "text"
) -> Place:
    """Make the database and return where it is."""
    secrets = hidden_secrets() if secrets is None else secrets
    text = script(secrets, hidden_note=hidden_note)
    if dialect == "postgres":
        text += "ANALYZE;"
    return make(folder, dialect, text, name=f"rows{len(secrets)}")


def open_rows(place: Place, policy: TablePolicy = POLICY) -> Database:
    """Open it in this process."""
    return Database.open(url(place), policy=policy, isolation="none")
