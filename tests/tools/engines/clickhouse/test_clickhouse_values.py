"""Values of ClickHouse are read exactly, by their types."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from longtable.base.errors import QueryFailedError
from longtable.tools.database import Database
from longtable.tools.engines.clickhouse.clickhouse_values import (
    ColumnType,
    Reader,
    Values,
    is_nullable,
    read_type,
    shown_type,
)
from tests.support import clickhouse
from tests.support.clickhouse import clickhouse_server

ZURICH = ZoneInfo("Europe/Zurich")
EXACT: list[tuple[str, object, str]] = [
    ("toInt128('-170141183460469231731687303715884105728')", -(2**127), "Int128"),
    ("toUInt256('1') + toUInt64(18446744073709551615)", 2**64, "UInt256"),
    ("toDecimal256('0.00001', 5)", Decimal("0.00001"), "Decimal(76, 5)"),
    (
        "toDecimal256('123456789012345678901234567890.12345', 5)",
        Decimal("123456789012345678901234567890.12345"),
        "Decimal(76, 5)",
    ),
    ("toDecimal64('1.50', 2)", Decimal("1.50"), "Decimal(18, 2)"),
    ("toFloat32(0.1)", 0.1, "Float32"),
    ("1 / 0", float("inf"), "Float64"),
    ("true", True, "Bool"),
    ("toDate32('1920-01-01')", date(1920, 1, 1), "Date32"),
    (
        "toDateTime('2024-07-01 12:00:00', 'Asia/Tokyo')",
        datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Asia/Tokyo")),
        "DateTime('Asia/Tokyo')",
    ),
    (
        "toDateTime64('2024-07-01 12:00:00.123456', 6, 'UTC')",
        datetime(2024, 7, 1, 12, 0, 0, 123456, tzinfo=UTC),
        "DateTime64(6, 'UTC')",
    ),
    (
        "toDateTime64('2024-07-01 12:00:00.123456789', 9, 'Europe/Zurich')",
        "2024-07-01 12:00:00.123456789+02:00",
        "DateTime64(9, 'Europe/Zurich')",
    ),
    (
        "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')",
        "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
        "UUID",
    ),
    ("toIPv6('::1')", "::1", "IPv6"),
    ("toFixedString('ab', 4)", "ab", "FixedString(4)"),
    ("unhex('ff41')", b"\xffA", "String"),
    ("concat('a', unhex('00'))", "a\0", "String"),
    ("CAST('b' AS Enum8('a' = 1, 'b' = 2))", "b", "Enum8"),
    ("toLowCardinality(toNullable('x'))", "x", "String"),
    ("[toDecimal64('1.5', 1), NULL]", [Decimal("1.5"), None], "Array(Decimal(18, 1))"),
    ("map(1, toDate('2024-01-01'))", {1: date(2024, 1, 1)}, "Map(UInt8, Date)"),
    ("(1, toDate('2024-01-01'))", (1, date(2024, 1, 1)), "Tuple(UInt8, Date)"),
    (
        "CAST((1, 2.5) AS Tuple(x Int8, `y z` Decimal(4, 2)))",
        {"x": 1, "y z": Decimal("2.50")},
        "Tuple(x Int8, `y z` Decimal(4, 2))",
    ),
    ("[[1], []]", [[1], []], "Array(Array(UInt8))"),
]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    if not (clickhouse.INSTALLED or clickhouse.NEEDED):
        pytest.skip(clickhouse.REASON)
    with Database.open(clickhouse_server().create()) as opened:
        yield opened


@pytest.mark.parametrize(("sql", "value", "kind"), EXACT)
def test_a_value_is_what_the_server_has(
    sql: str, value: object, kind: str, database: Database
) -> None:
    result = database.run(f"SELECT {sql} AS v")
    [[found]] = result.rows
    assert (found, type(found)) == (value, type(value))
    assert result.types == (kind,)


def test_a_time_without_a_zone_is_one_of_the_server_s_clock() -> None:
    instant = "2024-07-01T10:00:00Z"
    convert = Values(ZURICH).converter("DateTime", column="t")
    assert convert(instant) == datetime(2024, 7, 1, 12)
    with_zone = Values(ZURICH).converter("DateTime('UTC')", column="t")
    assert with_zone(instant) == datetime(2024, 7, 1, 10, tzinfo=UTC)


def test_types_are_read_with_their_parts() -> None:
    assert read_type("Map(String, Array(Tuple(a Int8, b Enum8('x,)' = 1))))") == ColumnType(
        "Map", ("String", "Array(Tuple(a Int8, b Enum8('x,)' = 1)))")
    )
    assert shown_type("Array(Nullable(Enum8('sad' = 1)))") == "Array(Enum8)"
    assert shown_type("LowCardinality(Nullable(String))") == "String"
    assert is_nullable("LowCardinality(Nullable(String))")
    assert not is_nullable("Array(Nullable(String))")


def test_states_of_an_aggregate_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(QueryFailedError, match=r"finalizeAggregation.*sumMerge\(total\)"):
        Reader(b'["total"]', b'["AggregateFunction(sum, Int32)"]', Values(UTC))
    simple = Reader(b'["n"]', b'["SimpleAggregateFunction(sum, UInt64)"]', Values(UTC))
    assert simple.row(b"[5]") == (5,)
