"""Make real databases, the same in all engines, for the tests to ask."""

import sqlite3
from pathlib import Path

import duckdb

from longtable.tools.database import Database, QueryLimits, TablePolicy
from longtable.tools.engines.base import Engine
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.in_process import InProcess
from tests.support import clickhouse, mariadb
from tests.support.clickhouse import clickhouse_server
from tests.support.mariadb import mariadb_server
from tests.support.postgres import postgres_server

FILE_DIALECTS = ("sqlite", "duckdb")
DIALECTS = (
    *FILE_DIALECTS,
    "postgres",
    *(["mysql"] if mariadb.INSTALLED or mariadb.NEEDED else []),
    *(["clickhouse"] if clickhouse.INSTALLED or clickhouse.NEEDED else []),
)
"""Without MariaDB or chdb, the tests of their own say that they are skipped."""

Place = Path | str
"""A file, or the URL of a database on a server."""

SCHEMA = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, salary REAL, boss_id INTEGER REFERENCES people(id));
CREATE TABLE vault (id INTEGER PRIMARY KEY, secret TEXT);
CREATE TABLE "order" ("group" INTEGER, "select" TEXT, "from" TEXT, "table" TEXT);
CREATE TABLE audit (created DATE, deleted_at DATE, updates INTEGER);
CREATE TABLE "Order Details" ("Order ID" INTEGER, "Unit Price" REAL);
CREATE TABLE 客户 (编号 INTEGER, 名称 TEXT, 城市 TEXT);
CREATE TABLE empty_list (id INTEGER, note TEXT);
CREATE TABLE numbers (n INTEGER);
INSERT INTO people VALUES (1, 'Ada', 'Bern', 90.5, NULL);
INSERT INTO people VALUES (2, 'Bo', 'Genf', 70, 1), (3, 'Zoë', 'Bern', 60, 1);
INSERT INTO people VALUES (4, 'Cy', NULL, 50, 2);
INSERT INTO vault VALUES (1, 'the combination is 7-7-7');
INSERT INTO "order" VALUES (1, 'a', 'b', 'c');
INSERT INTO audit VALUES ('2024-01-15', NULL, 3);
INSERT INTO "Order Details" VALUES (10, 2.5);
INSERT INTO 客户 VALUES (1, '张伟', '上海'), (2, '李娜', '北京');
CREATE VIEW bosses AS SELECT id, name FROM people WHERE id IN (SELECT boss_id FROM people);
CREATE VIEW through_view AS SELECT secret FROM vault;
CREATE VIEW through_two_views AS SELECT * FROM through_view;
"""

ONLY = {
    "sqlite": (
        """
WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 2000) INSERT INTO numbers SELECT x FROM t;
CREATE TABLE generated (price REAL, quantity INTEGER, total_price REAL GENERATED ALWAYS AS (price * quantity) VIRTUAL);
INSERT INTO generated VALUES (2.5, 4);
CREATE TABLE keyed (code TEXT PRIMARY KEY, label TEXT) WITHOUT ROWID;
INSERT INTO keyed VALUES ('a', 'first');
CREATE TABLE gone (id INTEGER);
CREATE VIEW broken AS SELECT id FROM gone;
DROP TABLE gone;
"""
    ),
    "duckdb": (
        """
INSERT INTO numbers SELECT range FROM range(2000);
CREATE TABLE nested (part STRUCT(kind VARCHAR, size INTEGER), tags VARCHAR[], weights MAP(VARCHAR, DOUBLE));
INSERT INTO nested VALUES ({'kind': 'bolt', 'size': 3}, ['a', 'b'], MAP {'x': 1.5});
CREATE SCHEMA sales;
CREATE TABLE sales.items (id INTEGER, amount DECIMAL(10, 2));
INSERT INTO sales.items VALUES (1, 9.99);
CREATE TABLE gone (id INTEGER);
CREATE VIEW broken AS SELECT id FROM gone;
DROP TABLE gone;
CREATE MACRO our_macro() AS (SELECT max(secret) FROM vault);
CREATE MACRO shout(x) AS upper(x);
COMMENT ON TABLE people IS 'who works here';
COMMENT ON COLUMN people.salary IS 'thousand francs a year';
"""
    ),
    "postgres": (
        """
INSERT INTO numbers SELECT generate_series(1, 2000);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE TABLE nested (tags text[], feeling mood, mail email, doc jsonb, price numeric(10, 2), spent interval, born timestamptz);
INSERT INTO nested VALUES (ARRAY['a', 'b'], 'ok', 'ada@example.com', '{"kind": "bolt"}', 9.99, '1 day', '2024-02-29 10:00+00');
CREATE TABLE "Mixed" ("FirstName" text, plain text);
INSERT INTO "Mixed" VALUES ('Ada', 'x');
CREATE SCHEMA sales;
CREATE TABLE sales.items (id INTEGER, amount NUMERIC(10, 2));
INSERT INTO sales.items VALUES (1, 9.99);
CREATE TABLE measures (taken date, value int) PARTITION BY RANGE (taken);
CREATE TABLE measures_2023 PARTITION OF measures FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE measures_2024 PARTITION OF measures FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO measures VALUES ('2023-05-05', 1), ('2024-05-05', 2), ('2024-06-06', 3);
CREATE TABLE safe (number int);
CREATE TABLE safe_box (contents text) INHERITS (safe);
CREATE MATERIALIZED VIEW by_city AS SELECT city, count(*) AS people FROM people GROUP BY city;
CREATE VIEW broken AS SELECT 1 / (id - 1) AS x FROM people;
CREATE FUNCTION our_macro() RETURNS text LANGUAGE sql AS 'SELECT max(secret) FROM vault';
CREATE FUNCTION leak(people) RETURNS text LANGUAGE sql AS 'SELECT max(secret) FROM vault';
CREATE FUNCTION shout(x text) RETURNS text LANGUAGE sql AS 'SELECT upper(x)';
CREATE FUNCTION sales.lower(x text) RETURNS text LANGUAGE sql AS 'SELECT max(secret) FROM vault';
CREATE SEQUENCE counter;
CREATE EXTENSION dblink;
CREATE EXTENSION pg_trgm;
CREATE EXTENSION tablefunc;
COMMENT ON TABLE people IS 'who works here';
COMMENT ON COLUMN people.salary IS 'thousand francs a year';
ANALYZE;
"""
    ),
    "mysql": (
        """
INSERT INTO numbers WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t WHERE x < 999) SELECT x FROM t;
INSERT INTO numbers SELECT n + 999 FROM numbers;
INSERT INTO numbers VALUES (1999), (2000);
CREATE TABLE "generated" (price REAL, quantity INTEGER, total_price REAL GENERATED ALWAYS AS (price * quantity) VIRTUAL);
INSERT INTO "generated" (price, quantity) VALUES (2.5, 4);
CREATE TABLE nested (feeling ENUM('sad', 'ok', 'happy'), tags SET('a', 'b'), flags BIT(5), doc JSON, price DECIMAL(10, 2),
  large BIGINT UNSIGNED, spent TIME, born DATETIME, spot POINT);
INSERT INTO nested VALUES ('ok', 'a,b', b'101', '{"kind": "bolt"}', 9.99, 18446744073709551615, '25:00:00', '2024-02-29 10:00:00', POINT(1, 2));
CREATE TABLE measures (taken DATE, value INT) PARTITION BY RANGE (YEAR(taken))
  (PARTITION p2023 VALUES LESS THAN (2024), PARTITION p2024 VALUES LESS THAN (2025));
INSERT INTO measures VALUES ('2023-05-05', 1), ('2024-05-05', 2), ('2024-06-06', 3);
CREATE TABLE "Mixed" ("FirstName" TEXT, plain TEXT);
INSERT INTO "Mixed" VALUES ('Ada', 'x');
CREATE TABLE gone (id INTEGER);
CREATE VIEW broken AS SELECT id FROM gone;
DROP TABLE gone;
CREATE FUNCTION our_macro() RETURNS TEXT READS SQL DATA RETURN (SELECT max(secret) FROM vault);
CREATE FUNCTION shout(x TEXT) RETURNS TEXT DETERMINISTIC RETURN upper(x);
ALTER TABLE people COMMENT = 'who works here', MODIFY salary REAL COMMENT 'thousand francs a year';
ANALYZE TABLE people, numbers, measures;
"""
    ),
    "clickhouse": (
        """
INSERT INTO numbers SELECT number + 1 FROM numbers(2000);
CREATE TABLE generated (price Float64, quantity Int32, total_price Float64 MATERIALIZED price * quantity) ENGINE = Memory;
INSERT INTO generated (price, quantity) VALUES (2.5, 4);
CREATE TABLE nested (id Int32, lines Nested(kind String, size Int8), tags Array(String), weights Map(String, Float64),
  part Tuple(kind String, size Int32), feeling Enum8('sad' = 1, 'ok' = 2, 'happy' = 3), kind LowCardinality(String),
  price Decimal(10, 2), wide Decimal(76, 5), large UInt256, born DateTime('Asia/Tokyo'), at DateTime64(3), id2 UUID,
  ip IPv4, code FixedString(4)) ENGINE = MergeTree ORDER BY id;
INSERT INTO nested VALUES (1, ['bolt', 'nut'], [3, 4], ['a', 'b'], {'x': 1.5}, ('bolt', 3), 'ok', 'x', 9.99,
  '123456789012345678901234567890.12345', 115792089237316195423570985008687907853269984665640564039457584007913129639935,
  '2024-02-29 10:00:00', '2024-02-29 10:00:00.123', '61f0c404-5cb3-11e7-907b-a6006ad3dba0', '1.2.3.4', 'ab');
CREATE TABLE "Mixed" ("FirstName" String, plain String) ENGINE = Memory;
INSERT INTO "Mixed" VALUES ('Ada', 'x');
CREATE TABLE gone (id Int32) ENGINE = Memory;
CREATE VIEW broken AS SELECT id FROM gone;
DROP TABLE gone;
ALTER TABLE people MODIFY COMMENT 'who works here';
ALTER TABLE people COMMENT COLUMN salary 'thousand francs a year';
"""
    ),
}

DENY_VAULT = TablePolicy(denied=frozenset({"vault"}))


def engine_of(database: Database) -> Engine:
    """Return the engine behind the wall of a database that is open in this process."""
    assert isinstance(database.backend, InProcess)
    return database.backend.engine


def make(folder: Path, dialect: str, script: str | None = None, name: str = "shop") -> Place:
    """Make a database and return where it is; without a script it holds the schema above."""
    text = SCHEMA + ONLY[dialect] if script is None else script
    if dialect == "postgres":
        return postgres_server().create(text)
    if dialect == "mysql":
        return mariadb_server().create(text)
    if dialect == "clickhouse":
        return clickhouse_server().create(text)
    return make_file(folder, dialect, text, name)


def make_file(folder: Path, dialect: str, text: str | None = None, name: str = "shop") -> Path:
    """Write a database file and return its path."""
    text = SCHEMA + ONLY[dialect] if text is None else text
    path = folder / f"{name}.{'db' if dialect == 'sqlite' else 'duckdb'}"
    if dialect == "sqlite":
        connection = sqlite3.connect(path)
        connection.executescript(text)
        connection.close()
    else:
        duck = duckdb.connect(str(path))
        duck.execute(text)
        duck.close()
    return path


def spelled(sql: str, dialect: str) -> str:
    """Return a text whose names are in double quotes in the quotes of the dialect."""
    return sql.replace('"', dialect_of(dialect).quote)


def url(place: Place) -> str:
    """Return the URL of what `make` made."""
    if isinstance(place, str):
        return place
    return f"{'duckdb' if place.suffix == '.duckdb' else 'sqlite'}:///{place}"


def open_at(
    place: Place, *, limits: QueryLimits | None = None, policy: TablePolicy = DENY_VAULT
) -> Database:
    """Open it, `vault` denied."""
    return Database.open(url(place), limits=limits, policy=policy)
