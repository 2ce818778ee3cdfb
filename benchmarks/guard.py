"""What the check of a model's SQL costs before anything runs: python -m benchmarks.guard.

Each text is checked seven times without the cache of verdicts and its fastest time counts, in
processor time. The last column is the share that sqlglot's parser alone takes of one reading.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import suppress

import sqlglot
from sqlglot.errors import SqlglotError

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
LONGEST = {
    "a list of 8,000 numbers": "SELECT 1 FROM numbers WHERE n IN (" + "1234," * 8_000 + "1)",
    "9,900 conditions": "SELECT 1 FROM numbers WHERE " + "n OR " * 9_900 + "n",
    "over the characters": "x," * MAX_SQL_CHARS,
    "over the words": ("SELECT " + "1," * MAX_SQL_CHARS)[:MAX_SQL_CHARS],
    "over the brackets": "SELECT " + "(" * 10_000,
}


def catalogue() -> Catalog:
    """Return the tables of the tests' databases."""
    tables = []
    for name, text in TABLES.items():
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


def main() -> None:
    """Print the tables."""
    tables = catalogue()

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
            row = f"{len(texts)} | {middle:.2f} | {p95:.2f} | {max(checks):.1f} | {share:.0%}"
            print(f"| {kind} | {dialect} | {row} |")
    print("\n| one long text | " + " | ".join(f"{dialect} ms" for dialect in DIALECTS) + " |")
    print("|---|" + "---|" * len(DIALECTS))
    for name, sql in LONGEST.items():
        took = [fastest(checked, sql, dialect, times=3) for dialect in DIALECTS]
        print(f"| {name} | " + " | ".join(f"{ms:.0f}" for ms in took) + " |")


if __name__ == "__main__":
    main()
