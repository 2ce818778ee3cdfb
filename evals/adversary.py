"""Read masked texts through questions whose answers a model may see: `python -m evals.adversary`.

The adversary knows the walls and the tables, has 200 queries for each engine, and no dictionary:
the texts are random. It tries each question with probes whose answer it knows, and searches by
halves with the first one that answers for what is masked.
"""

import argparse
import random
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from longtable.base.errors import DatabaseError
from longtable.tools.database import Database
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.toolset import run_sql
from tests.support.clickhouse import stop_clickhouse_server
from tests.support.mariadb import stop_mariadb_server
from tests.support.postgres import stop_postgres_server
from tests.tools.databases import DIALECTS, make, url

TEXTS, CHARS, QUERIES = 20, 12, 200
POLICY = TablePolicy(masked_columns=frozenset({"secrets.secret"}))

_PAIRS = "secrets s JOIN p ON p.id = s.id"
_BOTH = "(SELECT id, secret AS v, 0 AS f FROM secrets UNION ALL SELECT id, c, 1 FROM p)"
QUESTIONS = {
    "all": [
        f"SELECT s.id FROM {_PAIRS} WHERE s.secret < p.c",
        f"SELECT s.id FROM {_PAIRS} WHERE s.secret BETWEEN '' AND p.c AND s.secret <> p.c",
        f"SELECT s.id FROM {_PAIRS} WHERE NOT (s.secret >= p.c OR s.secret = 'x')",
        "SELECT s.id FROM secrets s JOIN p ON p.id = s.id AND s.secret < p.c",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id AND substr(s.secret, 1, LENGTH) = q.c",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE s.secret LIKE q.c || '%'",
        f"SELECT s.id, CASE WHEN s.secret < p.c THEN 1 ELSE 0 END FROM {_PAIRS}",
        f"SELECT s.id, count(CASE WHEN s.secret < p.c THEN 1 END) FROM {_PAIRS} GROUP BY s.id",
        (
            "SELECT s.id, sum(CASE WHEN s.secret < p.c THEN 1 ELSE 0 END) OVER (PARTITION BY s.id)"
            f" FROM {_PAIRS}"
        ),
        f"SELECT s.id, count(*) FILTER (WHERE s.secret < p.c) FROM {_PAIRS} GROUP BY s.id",
        f"SELECT s.id FROM {_PAIRS} GROUP BY s.id HAVING min(s.secret) < max(p.c)",
        (
            f"SELECT id, count(*) - 1 FROM (SELECT DISTINCT s.id, s.secret < z.c FROM {_PAIRS} JOIN"
            " z ON z.id = s.id) AS g GROUP BY id"
        ),
        (
            f"SELECT id, count(*) - 1 FROM (SELECT s.id FROM {_PAIRS} JOIN z ON z.id = s.id GROUP"
            " BY s.id, s.secret < z.c) AS g GROUP BY id"
        ),
        (
            "SELECT id FROM (SELECT id, substr(secret, 1, LENGTH) AS c FROM secrets INTERSECT"
            " SELECT id, c FROM q) AS t"
        ),
        (
            "SELECT id, 1 - f FROM (SELECT id, f, row_number() OVER (PARTITION BY id ORDER BY v)"
            f" AS r FROM {_BOTH} AS u) AS w WHERE r = 1"
        ),
        "SELECT p.id, (SELECT count(*) FROM secrets s WHERE s.id = p.id AND s.secret < p.c) FROM p",
        (
            "SELECT p.id FROM p WHERE EXISTS (SELECT 1 FROM secrets s WHERE s.id = p.id AND"
            " s.secret < p.c)"
        ),
        "SELECT p.id FROM p WHERE p.c > (SELECT s.secret FROM secrets s WHERE s.id = p.id)",
        (
            "SELECT t.id FROM (SELECT id, secret AS v FROM secrets) AS t JOIN p ON p.id = t.id"
            " WHERE t.v < p.c"
        ),
        "SELECT t.id FROM view_of_secrets t JOIN p ON p.id = t.id WHERE t.value < p.c",
    ],
    "sqlite": [
        f"SELECT s.id, min(s.secret, p.c) = s.secret AND s.secret <> p.c FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE iif(s.secret < p.c, 1, 0)",
        f"SELECT s.id, typeof(iif(s.secret < p.c, 1, 'x')) = 'integer' FROM {_PAIRS}",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE s.secret GLOB q.c || '*'",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE instr(s.secret, q.c) = 1",
    ],
    "duckdb": [
        f"SELECT s.id, least(s.secret, p.c) = s.secret AND s.secret <> p.c FROM {_PAIRS}",
        f"SELECT id, arg_min(1 - f, v) FROM {_BOTH} AS u GROUP BY id",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE starts_with(s.secret, q.c)",
        (
            "SELECT id FROM (SELECT DISTINCT ON (s.id, s.secret < p.c) s.id, s.secret < p.c AS b"
            f" FROM {_PAIRS}) AS g WHERE b"
        ),
        (
            "SELECT l.id FROM p, LATERAL (SELECT s.id FROM secrets s WHERE s.id = p.id AND s.secret"
            " < p.c) AS l"
        ),
        "SELECT s.id FROM p ASOF JOIN secrets s ON p.id = s.id AND p.c > s.secret",
        f"SELECT s.id, list_contains([x < p.c for x in [s.secret]], true) FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE to_json(s) ->> 'secret' < p.c",
    ],
    "postgres": [
        f"SELECT s.id, (least(s.secret, p.c) = s.secret AND s.secret <> p.c)::int FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE s < ROW(s.id, p.c)",
        f"SELECT s.id FROM {_PAIRS} WHERE to_jsonb(s) ->> 'secret' < p.c",
        f"SELECT s.id FROM {_PAIRS} WHERE split_part(btrim(s.text, '()'), ',', 2) < p.c",
        (
            "SELECT id FROM (SELECT DISTINCT ON (s.id, s.secret < p.c) s.id, s.secret < p.c AS b"
            f" FROM {_PAIRS}) AS g WHERE b"
        ),
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE s.secret ^@ q.c",
        (
            "SELECT l.id FROM p, LATERAL (SELECT s.id FROM secrets s WHERE s.id = p.id AND s.secret"
            " < p.c) AS l"
        ),
        "SELECT id, (array_agg(1 - f ORDER BY v))[1] FROM " + _BOTH + " AS u GROUP BY id",
        (
            "SELECT s.id FROM secrets s JOIN p ON p.id = s.id WHERE width_bucket(s.secret,"
            " ARRAY[p.c]) = 0"
        ),
    ],
    "mysql": [
        f"SELECT s.id, LEAST(s.secret, p.c) = s.secret AND s.secret <> p.c FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE IF(s.secret < p.c, 1, 0)",
        f"SELECT s.id, STRCMP(s.secret, p.c) = -1 FROM {_PAIRS}",
        f"SELECT s.id, FIELD(1, s.secret < p.c) FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE BINARY s.secret < p.c",
        f"SELECT s.id FROM {_PAIRS} WHERE s.secret COLLATE utf8mb4_bin < p.c",
        f"SELECT s.id FROM {_PAIRS} WHERE NOT s.secret <=> p.c AND s.secret < p.c",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE s.secret REGEXP CONCAT('^', q.c)",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE LOCATE(q.c, s.secret) = 1",
        f"SELECT s.id, ELT(1 + (s.secret < p.c), 0, 1) FROM {_PAIRS}",
    ],
    "clickhouse": [
        f"SELECT s.id, if(s.secret < p.c, 1, 0) FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE multiIf(s.secret < p.c, 1, 0)",
        f"SELECT s.id, least(s.secret, p.c) = s.secret AND s.secret <> p.c FROM {_PAIRS}",
        f"SELECT s.id FROM {_PAIRS} WHERE (s.secret, 1) < (p.c, 1)",
        f"SELECT s.id FROM {_PAIRS} WHERE arrayExists(x -> x < p.c, [s.secret])",
        f"SELECT s.id FROM {_PAIRS} WHERE arraySort([s.secret, p.c])[1] <> p.c",
        f"SELECT s.id, countIf(s.secret < p.c) FROM {_PAIRS} GROUP BY s.id",
        f"SELECT s.id, max(x) FROM (SELECT s.id AS id, s.secret < p.c AS x FROM {_PAIRS}) AS s GROUP BY s.id",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE startsWith(s.secret, q.c)",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE match(s.secret, concat('^', q.c))",
        "SELECT s.id FROM secrets s JOIN q ON q.id = s.id WHERE position(s.secret, q.c) = 1",
        "SELECT s.id FROM secrets s ASOF JOIN p ON p.id = s.id AND s.secret < p.c",
        "SELECT id, argMax(1 - f, v) FROM " + _BOTH + " AS u GROUP BY id",
    ],
}
"""Each returns the rows whose text sorts before `p.c`: the letters known so far, and one more. `q`
holds the known letters with each letter before that one; `z` the probes and empty texts. A second
column, if there is one, is 1 for those rows and else 0.
"""


def make_secrets(folder: Path, dialect: str, *, seed: int = 1) -> tuple[str, list[str]]:
    """Make a database of random texts; return its URL and the texts."""
    rng = random.Random(seed)
    texts = ["".join(rng.choices(ascii_lowercase, k=CHARS)) for _ in range(TEXTS)]
    rows = ", ".join(f"({number}, '{text}')" for number, text in enumerate(texts))
    collation = ' COLLATE "C"' if dialect == "postgres" else ""
    script = (
        f"CREATE TABLE secrets (id INTEGER, secret TEXT{collation}); INSERT INTO secrets VALUES"
        f" {rows};"
    )
    script += "CREATE VIEW view_of_secrets AS SELECT id, secret AS value FROM secrets;"
    return url(make(folder, dialect, script, name="secrets")), texts


def _row(row: tuple[int, str]) -> str:
    return f"({row[0]}, '{row[1]}')"


class Adversary:
    """Sees what a model is shown, and what it is told of an error."""

    def __init__(
        self, database: Database, questions: Sequence[str] = (), *, queries: int = QUERIES
    ) -> None:
        self.database, self.left = database, queries
        self.questions = questions or [*QUESTIONS["all"], *QUESTIONS[database.dialect]]
        self.answered: list[str] = []
        """Questions that ran, whatever they told."""

    def _ask(
        self, question: str, known: Mapping[int, str], letters: Mapping[int, str]
    ) -> dict[int, bool] | None:
        """Return for each row whether its text is below the known letters and this one; None for no
        answer.
        """
        if self.left <= 0:
            return None
        self.left -= 1
        length = len(next(iter(known.values()))) + 1
        probes = {row: known[row] + letters[row] for row in known}
        below = [
            (row, known[row] + one)
            for row in known
            for one in ascii_lowercase
            if one < letters[row]
        ] or [(-1, "")]
        tables = {
            "p": probes.items(),
            "q": below,
            "z": [*probes.items(), *((row, "") for row in probes)],
        }
        ctes = [
            f"{name}(id, c) AS ({self._rows(rows)})"
            for name, rows in tables.items()
            if f" {name} " in question + " "
        ]
        try:
            answer, _ = run_sql(
                self.database, f"WITH {', '.join(ctes)} {question.replace('LENGTH', str(length))}"
            )
        except DatabaseError:
            return None
        rows = answer["rows"]
        assert isinstance(rows, list)
        columns_of = {row[0]: row[1:] for row in rows if isinstance(row, list)}
        return {
            row: row in columns_of and columns_of[row] in ([], [1], [True], ["1"]) for row in known
        }

    def _rows(self, rows: Iterable[tuple[int, str]]) -> str:
        if not dialect_of(self.database.dialect).lists_values:
            return " UNION ALL ".join(f"SELECT {number}, '{text}'" for number, text in rows)
        return f"VALUES {', '.join(map(_row, rows))}"

    def texts(self) -> list[str]:
        """Return what is believed of each text."""
        known = dict.fromkeys(range(TEXTS), "")
        for question in self.questions:
            low = self._ask(question, known, dict.fromkeys(known, "!"))
            if low is None:
                continue
            self.answered.append(question)
            high = self._ask(question, known, dict.fromkeys(known, "~"))
            if not any(low.values()) and high is not None and all(high.values()):
                return self._searched(question, known)
        return list(known.values())

    def _searched(self, question: str, known: dict[int, str]) -> list[str]:
        for _ in range(CHARS):
            ranges = dict.fromkeys(known, (0, len(ascii_lowercase)))
            while any(high - low > 1 for low, high in ranges.values()):
                middles = {row: (low + high) // 2 for row, (low, high) in ranges.items()}
                below = self._ask(
                    question,
                    known,
                    {row: ascii_lowercase[middle] for row, middle in middles.items()},
                )
                if below is None:
                    return list(known.values())
                ranges = {
                    row: (low, max(middles[row], low + 1)) if below[row] else (middles[row], high)
                    for row, (low, high) in ranges.items()
                }
            known = {row: text + ascii_lowercase[ranges[row][0]] for row, text in known.items()}
        return list(known.values())


def recovered(database: Database, texts: list[str]) -> tuple[int, Adversary]:
    """Return how many texts an adversary reads, and the adversary."""
    adversary = Adversary(database)
    return sum(one == other for one, other in zip(adversary.texts(), texts, strict=True)), adversary


def main() -> None:
    """Try many seeds on each engine, masked and, to see that the adversary can read, open."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    total = 0
    try:
        for dialect in DIALECTS:
            for seed in range(seeds):
                with tempfile.TemporaryDirectory() as folder:
                    place, texts = make_secrets(Path(folder), dialect, seed=seed)
                    with (
                        Database.open(place, policy=POLICY) as masked,
                        Database.open(place) as plain,
                    ):
                        (read, adversary), (able, _) = (
                            recovered(masked, texts),
                            recovered(plain, texts),
                        )
                total += read
                used = QUERIES - adversary.left
                print(
                    f"{dialect} {seed}: {read} of {TEXTS} read in {used} queries, {able} where"
                    f" nothing is masked; ran: {adversary.answered}"
                )
    finally:
        stop_postgres_server()
        stop_clickhouse_server()
        stop_mariadb_server()
    raise SystemExit(1 if total else 0)


if __name__ == "__main__":
    main()
