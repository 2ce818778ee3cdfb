"""The database that people ask: a small shop in a SQLite file."""

import sqlite3
from contextlib import closing
from pathlib import Path

CUSTOMERS = 2_000
ORDERS = 100_000
SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, joined DATE);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER REFERENCES customers(id),
  price REAL,
  region TEXT,
  day DATE
);
"""


def make_shop(path: Path) -> None:
    """Make the shop's file."""
    customers = [
        (n, f"customer {n}", f"city {n % 40}", f"2024-{n % 12 + 1:02}-01")
        for n in range(1, CUSTOMERS + 1)
    ]
    orders = [
        (n, n % CUSTOMERS + 1, n % 997 / 4, f"region {n % 8}", f"2025-{n % 12 + 1:02}-01")
        for n in range(1, ORDERS + 1)
    ]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", customers)
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", orders)
