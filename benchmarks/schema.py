"""What finding the way costs in a catalogue of 1,000 tables with 20,000 columns: the first card, a
search, a look for drift.

python -m benchmarks.schema
"""

import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from longtable.memory.counting.tokens import counter
from longtable.tools.database import Database
from longtable.tools.schema.schema_card import schema_card
from longtable.tools.schema.schema_tools import describe_tables

TABLES = 1_000
COLUMNS = 20
BUDGET = 5_120
"""4 % of 128,000 tokens."""
SEARCHES = (
    "customer order",
    "id",
    "salary of the employees in a branch",
    "custmer adress",
    "shipped goods 2024",
    "单价",
)
_WORDS = (
    "customer order item price date status region product supplier invoice payment account branch"
    " employee salary stock ship address city country code name type amount total tax note flag"
    " score rank level batch plan route driver vehicle depot 客户 订单 单价"
)
WORDS = _WORDS.split()


def make(path: Path) -> None:
    """Write the database: names of two words and a number, a declared key in every third table, a
    few rows each.
    """
    draw = random.Random(7)
    with sqlite3.connect(path) as connection:
        for number in range(TABLES):
            columns = [
                f'"{draw.choice(WORDS)}_{draw.choice(WORDS)}_{place}"'
                f" {draw.choice(('TEXT', 'REAL', 'DATE'))}"
                for place in range(COLUMNS - 2)
            ]
            key = f" REFERENCES t0_{draw.choice(WORDS)}(id)" if number % 3 == 0 else ""
            name = f"{draw.choice(WORDS)}_{draw.choice(WORDS)}_{number}"
            connection.execute(
                f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY, parent_id INTEGER{key},'
                f" {', '.join(columns)})"
            )
            row = ", ".join(
                f"'{draw.choice(WORDS)} {draw.randrange(999)}'" for _ in range(COLUMNS - 2)
            )
            connection.execute(f'INSERT INTO "{name}" VALUES (1, 1, {row}), (2, 1, {row})')
    connection.close()


def timed(run: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of one run: on a busy machine the clock says
    little.
    """
    started = time.process_time()
    run()
    return (time.process_time() - started) * 1000


def main() -> None:
    """Print the table."""
    count = counter("o200k_base").text
    count("warm")
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / "large.db")
        with Database.open(f"sqlite:///{folder}/large.db") as database:
            rows = [("reflecting the catalogue", timed(database.catalog))]
            rows.append(
                (
                    "first card after it",
                    timed(
                        lambda: schema_card(
                            database,
                            tokens=BUDGET,
                            count=count,
                            questions=["Which customer pays most?"],
                        )
                    ),
                )
            )
            rows.append(
                (
                    "the same card again",
                    timed(
                        lambda: schema_card(
                            database,
                            tokens=BUDGET,
                            count=count,
                            questions=["Which customer pays most?"],
                        )
                    ),
                )
            )
            rows.append(
                (
                    "first search, which also looks at values",
                    timed(lambda: database.facts().find_tables("customer")),
                )
            )
            looks = 1
            while database.facts().unsampled and looks < 100:
                database.facts().find_tables("customer")
                looks += 1
            index = database.facts().index
            tables = [timed(partial(index.tables, text)) for text in SEARCHES for _ in range(5)]
            columns = [
                timed(partial(index.columns, text, 20)) for text in SEARCHES for _ in range(5)
            ]
            rows += [
                ("search for tables, median", statistics.median(tables)),
                ("search for tables, slowest", max(tables)),
                ("search for columns, median", statistics.median(columns)),
                ("search for columns, slowest", max(columns)),
                (
                    "looking for a changed schema",
                    statistics.median(timed(database.refresh) for _ in range(20)),
                ),
                (
                    "describe_tables of one table",
                    timed(lambda: describe_tables(database, [database.catalog().tables[5].name])),
                ),
            ]
            card = schema_card(database, tokens=BUDGET, count=count)
    print(
        f"schema of {TABLES:,} tables with {TABLES * COLUMNS:,} columns in SQLite, milliseconds of"
        " processor time"
    )
    for name, milliseconds in rows:
        print(f"  {name:<45} {milliseconds:9.1f}")
    print(
        f"  card: {count(card.text):,} of {BUDGET:,} tokens, {len(card.shown)} tables on it; all"
        f" values looked at after {looks} searches"
    )


if __name__ == "__main__":
    main()
