"""What the check of a model's SQL costs before anything runs: python -m benchmarks.guard.

Each text is checked seven times without the cache of verdicts and its fastest time counts, in
processor time. The last column is the share that sqlglot's parser alone takes of one reading.

The texts of `guard_texts.toml`, 50 an engine, were written by somebody who had read no code of this
project, and stay as they are. Their mean is compared with a goal.
"""

import statistics
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import sqlglot
from sqlglot.errors import SqlglotError

from benchmarks.goals import HEAD, row
from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.sql.parsing import MAX_SQL_CHARS
from longtable.tools.sql.wall import VERDICTS, check
from tests.tools.databases import DIALECTS
from tests.tools.sql.sql_texts import ALLOWED, BOTH_ALLOWED, BOTH_REFUSED, REFUSED

TABLES = {
    "people": "id name city salary boss_id",
    "order": "group select from table",
    "audit": "created deleted_at updates",
    "Order Details": "Order ID|Unit Price",
    "客户": "编号 名称 城市",
    "empty_list": "id note",
    "numbers": "n",
    "bosses": "id name",
}
BLIND = Path(__file__).with_name("guard_texts.toml")
BLIND_TABLES = {
    "customers": "customer_id name email city country segment signup_date referred_by",
    "orders": "order_id customer_id store_id ordered_at status channel discount currency",
    "order_items": "order_id line product_id quantity unit_price tax_rate",
    "products": "product_id name category brand list_price cost launched_on attributes",
    "stores": "store_id name region opened_on square_meters manager_id",
    "employees": "employee_id name role store_id boss_id hired_on salary",
    "returns": "return_id order_id line returned_at reason refund",
    "page_views": "view_id customer_id session_id url viewed_at duration_ms",
    "inventory": "store_id product_id counted_on on_hand reorder_level",
    "exchange_rates": "currency day to_eur",
}
BLIND_GOAL_MS = 1.5
LONGEST = {
    "a list of 8,000 numbers": "SELECT 1 FROM numbers WHERE n IN (" + "1234," * 8_000 + "1)",
    "9,900 conditions": "SELECT 1 FROM numbers WHERE " + "n OR " * 9_900 + "n",
    "over the characters": "x," * MAX_SQL_CHARS,
    "over the words": ("SELECT " + "1," * MAX_SQL_CHARS)[:MAX_SQL_CHARS],
    "over the brackets": "SELECT " + "(" * 10_000,
}


def catalogue(described: dict[str, str]) -> Catalog:
    """Return tables, given by their names and the names of their columns."""
    tables = []
    for name, text in described.items():
        names = text.split("|") if "|" in text else text.split()
        tables.append(Table(name, "table", tuple(Column(column, "TEXT") for column in names)))
    return Catalog(tuple(tables))


def fastest(act: Callable[[str, str], object], sql: str, dialect: str, *, times: int = 7) -> float:
    """Return the milliseconds of processor time of the fastest of some runs."""
    took = []
    for _ in range(times):
        VERDICTS.clear()
        started = time.thread_time()
        with suppress(SqlglotError, RecursionError):
            act(sql, dialect)
        took.append((time.thread_time() - started) * 1_000)
    return min(took)


def read_twice(sql: str, dialect: str) -> None:
    """Do with sqlglot alone what the check does with it: read a text, write it, read it again."""
    [tree, *_] = sqlglot.parse(sql, dialect)
    if tree is not None:
        sqlglot.parse(tree.sql(dialect, copy=False, comments=False), dialect)


def blind() -> None:
    """Print what the texts that were written blind take."""
    tables = catalogue(BLIND_TABLES)

    def checked(sql: str, dialect: str) -> object:
        return check(sql, dialect=dialect, catalog=tables)

    took: list[float] = []
    alone: list[float] = []
    print(f"\n{HEAD}")
    for dialect, texts in tomllib.loads(BLIND.read_text("utf-8")).items():
        ms = [fastest(checked, sql, dialect) for sql in texts]
        took += ms
        alone += [fastest(read_twice, sql, dialect) for sql in texts]
        what = f"{len(texts)} texts written blind, {dialect}: ms of the processor, median"
        print(row(what, statistics.median(ms), None))
    what = f"all {len(took)} texts written blind: ms of the processor, mean"
    print(row(what, statistics.mean(took), BLIND_GOAL_MS))
    what = "of this sqlglot alone, to read each text, write it, and read what it wrote"
    print(row(what, statistics.mean(alone), None))


def main() -> None:
    """Print the tables."""
    tables = catalogue(TABLES)

    def checked(sql: str, dialect: str) -> object:
        return check(sql, dialect=dialect, catalog=tables)

    print("| texts | engine | number | median ms | p95 ms | worst ms | parser alone |")
    print("|---|---|---|---|---|---|---|")
    kinds = {"legal": (BOTH_ALLOWED, ALLOWED), "hostile": (BOTH_REFUSED, REFUSED)}
    for kind, (both, own) in kinds.items():
        for dialect in DIALECTS:
            texts = [*both, *own[dialect]]
            checks = [fastest(checked, sql, dialect) for sql in texts]
            share = sum(fastest(sqlglot.parse, sql, dialect) for sql in texts) / sum(checks)
            middle = statistics.median(checks)
            p95 = statistics.quantiles(checks, n=20)[18]
            figures = f"{middle:.2f} | {p95:.2f} | {max(checks):.1f} | {share:.0%}"
            print(f"| {kind} | {dialect} | {len(texts)} | {figures} |")
    blind()
    print("\n| one long text | " + " | ".join(f"{dialect} ms" for dialect in DIALECTS) + " |")
    print("|---|" + "---|" * len(DIALECTS))
    for name, sql in LONGEST.items():
        took = [fastest(checked, sql, dialect, times=3) for dialect in DIALECTS]
        print(f"| {name} | " + " | ".join(f"{ms:.0f}" for ms in took) + " |")


if __name__ == "__main__":
    main()
