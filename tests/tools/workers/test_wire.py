"""A value comes back from the worker as the engine's library gives it in process: equal, and of the
same Python type.
"""

import math
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import RawIOBase
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from longtable.base.errors import QueryFailedError, QueryTimeoutError
from longtable.tools.database import Database, QueryLimits
from longtable.tools.engines.base import QueryResult, Row
from longtable.tools.workers.process import encoded_or_failed
from longtable.tools.workers.wire import (
    BLOCK_ROWS,
    Block,
    Rows,
    decode_answer,
    encode,
    encode_answer,
    write_frame,
)
from longtable.tools.workers.worker_handle import WorkerHandle
from tests.tools.databases import DIALECTS, FILE_DIALECTS, make, url

SQLITE = [
    "NULL",
    "1",
    "-9223372036854775808",
    "9223372036854775807",
    "1.5",
    "0.1 + 0.2",
    "9e999",
    "-9e999",
    "-0.0",
    "9e999 - 9e999",
    "'text'",
    "''",
    "'茶 🍵 e\u0301'",
    "CAST(x'80ff41' AS TEXT)",
    "char(0, 65, 0)",
    "char(55296)",
    "x'00ff80'",
    "x''",
    "date('2024-02-29')",
    "json_array(1, NULL, 'a')",
]
DUCKDB = [
    "NULL",
    "TRUE",
    "1::TINYINT",
    "255::UTINYINT",
    "(-32768)::SMALLINT",
    "65535::USMALLINT",
    "1::INTEGER",
    "4294967295::UINTEGER",
    "9223372036854775807::BIGINT",
    "18446744073709551615::UBIGINT",
    "170141183460469231731687303715884105727::HUGEINT",
    "(-170141183460469231731687303715884105727)::HUGEINT",
    "340282366920938463463374607431768211455::UHUGEINT",
    "99999999999999999999999999999999999999999999999999::BIGNUM",
    "1.5::FLOAT",
    "0.1::DOUBLE",
    "'nan'::DOUBLE",
    "'inf'::DOUBLE",
    "'-inf'::FLOAT",
    "-0.0::DOUBLE",
    "1.20::DECIMAL(4, 2)",
    "12345678901234567890123456789.123456789::DECIMAL(38, 9)",
    "0::DECIMAL(18, 6)",
    "'text'",
    "'茶 🍵'",
    "chr(0) || 'a'",
    "'\\x00\\xFF\\x80'::BLOB",
    "''::BLOB",
    "'10110'::BIT",
    "DATE '2024-02-29'",
    "DATE '0044-03-15 (BC)'",
    "DATE '290000-01-01'",
    "'infinity'::DATE",
    "TIME '12:34:56.789012'",
    "TIME '24:00:00'",
    "'12:34:56.789+05:30'::TIMETZ",
    "'12:34:56-15:59:59'::TIMETZ",
    "TIMESTAMP '2024-02-29 12:34:56.789012'",
    "TIMESTAMP '290000-01-01 00:00:00'",
    "'infinity'::TIMESTAMP",
    "'-infinity'::TIMESTAMP",
    "'2024-02-29 12:34:56.789012345'::TIMESTAMP_NS",
    "'2024-02-29 12:34:56'::TIMESTAMP_S",
    "'2024-02-29 12:34:56.789'::TIMESTAMP_MS",
    "'2024-02-29 12:34:56.789012+02'::TIMESTAMPTZ",
    "'290000-01-01 00:00:00+00'::TIMESTAMPTZ",
    "INTERVAL 3 DAY",
    "INTERVAL '1 year 2 months 3 days 04:05:06.789'",
    "-INTERVAL 1 MONTH",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID",
    "'b'::ENUM ('a', 'b')",
    "'{\"a\": [1, null]}'::JSON",
    "[1, NULL, 3]",
    "[]",
    "[[1], [], NULL]",
    "[1.50::DECIMAL(5, 2), NULL]",
    "[1, 2, 3]::INTEGER[3]",
    "{'a': 1, 'b': 'x', 'c': NULL}",
    "{'a': {'b': [DATE '2024-01-01']}, 'd': 1.5::DECIMAL(3, 1)}",
    "MAP {'a': 1, 'b': NULL}",
    "MAP {[1, 2]: 'x'}",
    "MAP {{'a': 1}: [2]}",
    "row(1, 'x')",
    "union_value(n := 1)",
    (
        "[{'id': 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID, 'at': TIMESTAMPTZ '2024-01-01"
        " 00:00:00+00'}]"
    ),
    "['nan'::DOUBLE, 'inf'::DOUBLE]",
    "['\\xFF'::BLOB]",
]
POSTGRES = [
    "NULL",
    "true",
    "1::int2",
    "1",
    "9223372036854775807::int8",
    "1.5::float4",
    "'NaN'::float8",
    "'-Infinity'::float8",
    "1.20::numeric(4, 2)",
    "'NaN'::numeric",
    "'Infinity'::numeric",
    "12345678901234567890123456789.123456789::numeric",
    "'text'::text",
    "'a'::char(3)",
    "'茶 🍵'::varchar",
    "'\\x00ff80'::bytea",
    "B'1011'",
    "DATE '2024-02-29'",
    "DATE '0044-03-15 BC'",
    "DATE '290000-01-01'",
    "'infinity'::date",
    "TIME '12:34:56.789012'",
    "TIME '24:00:00'",
    "'12:34:56.789+05:30'::timetz",
    "TIMESTAMP '2024-02-29 12:34:56.789012'",
    "'infinity'::timestamp",
    "'2024-02-29 12:34:56.789012+02'::timestamptz",
    "'-infinity'::timestamptz",
    "INTERVAL '1 year 2 months 3 days 04:05:06.789'",
    "INTERVAL '-3 days'",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
    "'{\"a\": [1, null]}'::json",
    "'{\"a\": [1, null]}'::jsonb",
    "ARRAY[1, NULL, 3]",
    "ARRAY[]::int[]",
    "ARRAY[[1, 2], [3, 4]]",
    "ARRAY[1.50::numeric]",
    "ARRAY['NaN'::float8]",
    "ARRAY['a,b', NULL]",
    "'192.168.0.0/16'::inet",
    "'[1,5)'::int4range",
    "'{[1,3),[5,7)}'::int4multirange",
    "point(1, 2)",
    "to_tsvector('english', 'a fat cat')",
]
MYSQL = [
    "NULL",
    "TRUE",
    "18446744073709551615",
    "-9223372036854775808",
    "1.50",
    "1e300",
    "'text 茶 🍵'",
    "''",
    "x'00ff80'",
    "CAST('a' AS BINARY)",
    "DATE '2024-02-29'",
    "CAST('2024-02-29 12:34:56.789' AS DATETIME(3))",
    "CAST('-838:59:59' AS TIME)",
    "JSON_OBJECT('a', JSON_ARRAY(1, NULL))",
]
CLICKHOUSE = [
    "NULL",
    "true",
    "toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')",
    "toInt64(-9223372036854775808)",
    "toDecimal256('1.50', 2)",
    "1e300",
    "toFloat64OrNull('nan')",
    "'text 茶 🍵'",
    "''",
    "unhex('00ff80')",
    "toDate('2024-02-29')",
    "toDateTime('2024-02-29 12:34:56')",
    "toDateTime('2024-02-29 12:34:56', 'Europe/Zurich')",
    "toDateTime64('2024-02-29 12:34:56.789', 3)",
    "toDateTime64('2024-02-29 12:34:56.123456789', 9, 'Europe/Zurich')",
    "toUUID('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
    "toIPv4('1.2.3.4')",
    "[1, NULL, 3]",
    "[toDecimal64('1.5', 2)]",
    "map('a', [1, 2])",
    "map(1, toDate('2024-02-29'))",
    "(1, 'a', toDate('2024-02-29'))",
    "CAST((1, 'a') AS Tuple(x Int8, y String))",
]
VALUES = {
    "sqlite": SQLITE,
    "duckdb": DUCKDB,
    "postgres": POSTGRES,
    "mysql": MYSQL,
    "clickhouse": CLICKHOUSE,
}


def exact(value: Any) -> Any:
    """Return what tells a value from any other: the type of it and of all within, every bit of a
    number, the order of keys.
    """
    kind = type(value).__qualname__
    if isinstance(value, dict):
        return kind, [(exact(key), exact(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return kind, [exact(inner) for inner in value]
    if isinstance(value, float):
        return kind, "nan" if math.isnan(value) else value.hex()
    if hasattr(value, "tzinfo"):
        return kind, repr(value), value.utcoffset()
    return kind, repr(value)


Pair = tuple[Database, Database]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Pair]]:
    """Each database twice: in process and by a worker."""
    folder = tmp_path_factory.mktemp("types")
    places = {dialect: url(make(folder, dialect)) for dialect in DIALECTS}
    opened = {
        dialect: (Database.open(place, isolation="none"), Database.open(place, isolation="process"))
        for dialect, place in places.items()
    }
    yield opened
    for pair in opened.values():
        for database in pair:
            database.close()


@pytest.mark.parametrize(
    ("dialect", "value"), [(dialect, value) for dialect in DIALECTS for value in VALUES[dialect]]
)
def test_a_value_is_the_same_with_and_without_a_worker(
    dialect: str, value: str, pairs: dict[str, Pair]
) -> None:
    here, there = (database.run(f"SELECT {value} AS v") for database in pairs[dialect])
    assert exact(there.rows) == exact(here.rows)
    assert (there.columns, there.types, there.sql) == (here.columns, here.types, here.sql)


def test_bytes_that_are_no_utf_8_are_the_same_with_and_without_a_worker(tmp_path: Path) -> None:
    place = url(
        make(
            tmp_path,
            "sqlite",
            "CREATE TABLE t (x TEXT); INSERT INTO t VALUES (CAST(x'41ff42' AS TEXT)), (CAST(x'' AS"
            " TEXT))",
        )
    )
    with (
        Database.open(place, isolation="none") as here,
        Database.open(place, isolation="process") as there,
    ):
        assert (
            exact(there.run("SELECT x FROM t").rows)
            == exact(here.run("SELECT x FROM t").rows)
            == exact([("A\ufffdB",), ("",)])
        )


SERIES = {
    "sqlite": (
        "WITH RECURSIVE series(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM series WHERE i < {last})"
    ),
    "duckdb": "WITH series(i) AS (SELECT range FROM range({last} + 1))",
}


@pytest.mark.parametrize("dialect", FILE_DIALECTS)
def test_long_columns_of_any_type_are_the_same_with_and_without_a_worker(
    dialect: str, tmp_path: Path
) -> None:
    """Whole columns, columns with NULL in some rows, and NULL in the first block alone."""
    values = [value for value in VALUES[dialect] if value != "NULL"]
    columns = [
        *values,
        *(f"CASE WHEN i % 3 <> 0 THEN {value} END" for value in values),
        *(f"CASE WHEN i >= {BLOCK_ROWS} THEN {value} END" for value in values),
    ]
    names = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    series = SERIES[dialect].format(last=BLOCK_ROWS + 2)
    sql = f"{series} SELECT i, {names} FROM series ORDER BY i"
    limits = QueryLimits(bytes=500_000_000, seconds=120)
    place = url(make(tmp_path, dialect))
    with (
        Database.open(place, isolation="none", limits=limits) as here,
        Database.open(place, isolation="process", limits=limits) as there,
    ):
        assert exact(there.run(sql).rows) == exact(here.run(sql).rows)


@pytest.mark.parametrize("count", [0, 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 7])
@pytest.mark.parametrize("dialect", FILE_DIALECTS)
def test_results_of_any_length_are_the_same_with_and_without_a_worker(
    dialect: str, count: int, pairs: dict[str, Pair]
) -> None:
    series = SERIES[dialect].format(last=3 * BLOCK_ROWS + 7)
    sql = f"{series} SELECT i, 'a' || i AS name, i / 7.0 AS part FROM series WHERE i < {count}"
    here, there = (database.run(sql) for database in pairs[dialect])
    assert there.row_count == len(there.rows) == count
    assert exact(there.rows) == exact(here.rows)
    read_here, read_there = (database.read(sql, seconds=20) for database in pairs[dialect])
    assert exact(read_there) == exact(read_here) == exact(here.rows)


MIXED: list[object] = [
    *(1, -1.5, "x", b"y", True, None, 2**70, [1], {"a": 1}, (1,)),
    *(Decimal("1.50"), date(2024, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
    *(timedelta(1), UUID(int=3), {1: 2}, [Decimal("0.1")]),
]


@pytest.mark.parametrize("count", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 1])
def test_blocks_of_mixed_columns_come_together_in_order(count: int) -> None:
    rows: list[Row] = [(number, MIXED[number % len(MIXED)]) for number in range(count)]
    result = QueryResult("SELECT 1", ("n", "v"), ("", ""), rows, count, 3)
    parts = list(encode_answer(result))
    assert len(parts) == -(-count // BLOCK_ROWS)
    again = decode_answer(parts)
    assert exact(again.rows) == exact(rows)
    assert again == result
    assert exact(decode_answer(encode_answer(Rows(rows)))) == exact(rows)


def test_rows_that_cannot_be_sent_after_others_that_were_fail_the_query() -> None:
    rows: list[Row] = [*((number,) for number in range(2 * BLOCK_ROWS)), (Path("x"),)]
    result = QueryResult("SELECT 1", ("v",), ("",), rows, len(rows), 3)
    parts = list(encoded_or_failed(result))
    assert len(parts) == 3
    failed = decode_answer(parts)
    assert isinstance(failed, QueryFailedError)
    assert "cannot be passed on" in str(failed)


def test_an_error_after_blocks_is_the_answer_and_a_missing_end_is_none() -> None:
    block = encode(Block([(1,), (2,)]))
    assert isinstance(decode_answer([block, encode(QueryTimeoutError(limit_s=1))]), Exception)
    with pytest.raises(ValueError, match="last part"):
        decode_answer([block, block])


def test_a_worker_that_sends_ever_more_blocks_is_stopped_at_the_bound() -> None:
    handle = WorkerHandle.__new__(WorkerHandle)
    reading, writing = os.pipe()
    block = encode(Block([(1,), (2,)]))
    with os.fdopen(writing, "wb", buffering=0) as stream:
        for _ in range(1_000):
            write_frame(cast("RawIOBase", stream), block)
    handle._answers = cast("RawIOBase", os.fdopen(reading, "rb", buffering=0))
    with handle._answers, pytest.raises(EOFError, match="are allowed"):
        handle.answer(most=10 * len(block))
