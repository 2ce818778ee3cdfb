"""Ask every text of the second corpus, costly ones too, and print how many ended as they must:
`python -m evals.second`.
"""

import tempfile
from collections import Counter
from pathlib import Path

from evals.fuzz import Pair, pair
from longtable.base.errors import DatabaseError
from tests.support.mariadb import stop_mariadb_server
from tests.support.postgres import stop_postgres_server
from tests.tools.databases import DIALECTS
from tests.tools.sql.sql_texts_second import QUIET, REFUSE, RUN, STOP


def _ended_in_error(two: Pair, sql: str) -> bool:
    try:
        two.one.run(sql)
    except DatabaseError:
        return True
    return False


def _was_quiet(two: Pair, sql: str) -> bool:
    before = len(two.findings)
    two.ask(sql)
    return len(two.findings) == before


def measure(dialect: str) -> None:
    """Ask all texts of one engine; print what did not end as it must, and the counts."""
    with tempfile.TemporaryDirectory() as folder, pair(dialect, Path(folder)) as two:
        good: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for kind, group in (("refused", REFUSE), ("quiet", QUIET), ("stopped", STOP), ("ran", RUN)):
            for sql in [*group["all"], *group[dialect]]:
                as_it_must = (
                    _was_quiet(two, sql)
                    if kind == "quiet"
                    else _ended_in_error(two, sql) == (kind != "ran")
                )
                counts[kind] += 1
                good[kind] += as_it_must
                if not as_it_must:
                    print(f"  {dialect}: not {kind}: {sql!r}")
    print(f"{dialect}: " + ", ".join(f"{good[kind]} of {counts[kind]} {kind}" for kind in counts))


if __name__ == "__main__":
    try:
        for name in DIALECTS:
            measure(name)
    finally:
        stop_postgres_server()
        stop_mariadb_server()
