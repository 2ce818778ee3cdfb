"""Mutate hostile and legal SQL for as long as asked, and look whether anything gets through:
`python -m evals.fuzz --seconds 600`.

Every text is asked of two databases that differ only in what the policy denies. What comes back
must be the same, word for word, errors too: a difference is a leak, however it was dressed up.
Beside that: no denied value and no file in what comes back, no masked value in what a model is
shown, nothing but the typed errors raised, and both databases left as they were.
"""

import argparse
import hashlib
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from longtable.base.errors import DatabaseError
from longtable.tools.database import Database, QueryLimits
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.toolset import run_sql
from tests.support.clickhouse import clickhouse_server, stop_clickhouse_server
from tests.support.mariadb import mariadb_server, stop_mariadb_server
from tests.support.postgres import postgres_server, stop_postgres_server
from tests.tools.databases import DIALECTS, ONLY, SCHEMA, make_file, url
from tests.tools.sql import sql_texts, sql_texts_policy
from tests.tools.sql.test_table_policy import EMAILS, OWN_NUMBERS
from tests.tools.sql.test_table_policy import SCHEMA as STAFF

Step = tuple[int, int, int]
"""Which mutation, and two numbers for it to choose by."""

POLICY = TablePolicy(
    denied=frozenset({"vault"}),
    denied_columns=frozenset({"staff.salary", "badge.code"}),
    masked_columns=frozenset({"email"}),
    allowed_columns=frozenset({"pay.staff_id"}),
)
SECRETS = ("7650417", "7650418", "7650419", "7650420", "combination is", "file-canary")
TWIN = {
    "7650417": "91",
    "7650418": "123456789",
    "7650419": "55",
    "7650420": "777777",
    "the combination is 7-7-7": "another, longer text: 1-2-3-4-5-6",
    "canary.one@example.com": "dame.a@xy.org",
    "canary.two@example.com": "dame.b@xy.org",
}
"""The masked values stand in the same order: a query may tell which of them comes first, but
nothing else of them.
"""
LIMITS = QueryLimits(seconds=0.7, memory_bytes=200_000_000, rows=2_000)

_WORDS = """
vault secret staff salary email badge code pay staff_id everything paid amount contacts people bosses through_view
our_macro leak rowid oid sqlite_master sqlite_schema pg_class pg_catalog information_schema.columns duckdb_tables()
read_text read_csv read_blob glob pg_read_file pg_ls_dir lo_import dblink query query_table getenv current_setting
set_config load_extension writefile eval system * s.* staff.* (s).* s t NULL DISTINCT LATERAL NATURAL USING RECURSIVE
UNION EXCEPT INTERSECT VALUES EXISTS IN ANY ALL OVER FILTER CAST COLUMNS(*) PIVOT UNPIVOT SUMMARIZE DESCRIBE TABLE FROM
SELECT WITH AS JOIN ON row_to_json to_json json_agg unnest list max count string_agg struct_extract INTO DELETE UPDATE
INSERT DROP CREATE ATTACH COPY PRAGMA SET CALL EXECUTE EXPLAIN BEGIN 0 1 -1 1e9 99999999999 '' '%' 'salary' "salary"
ctid xmin tableoid
"""
WORDS = (
    *_WORDS.split(),
    *(
        "email < 'd'",
        "upper(email)",
        "email || name",
        "substr(email, 1, 1)",
        "count(CASE WHEN email < 'd' THEN 1 END)",
        "email = 'd'",
    ),
    *(
        "ORDER BY 1",
        "ORDER BY 2",
        "GROUP BY 1",
        "ORDER BY e",
        "DISTINCT ON (email)",
        "COLLATE NOCASE",
        "UNION ALL",
        "INTERSECT",
        "PARTITION BY email",
    ),
)
WRAPPINGS = (
    "SELECT * FROM ({0}) AS w",
    "WITH w AS ({0}) SELECT * FROM w",
    "WITH staff AS ({0}) SELECT * FROM staff",
    "{0} UNION ALL {0}",
    "SELECT ({0})",
    "SELECT name FROM staff WHERE EXISTS ({0})",
    "SELECT s FROM ({0}) AS s",
    "SELECT s.* FROM staff s, LATERAL ({0}) AS l",
    "SELECT to_json(w) FROM ({0}) AS w",
    "SELECT row_to_json(w) FROM ({0}) AS w",
    "EXPLAIN {0}",
    "EXPLAIN ANALYZE {0}",
    "{0}; {0}",
    "CREATE TABLE z AS {0}",
    "INSERT INTO people (id) {0}",
    "COPY ({0}) TO 'FILE'",
    "DECLARE c CURSOR FOR {0}",
    "/*/* */ {0} */ DELETE FROM people",
    "SELECT * FROM staff s JOIN ({0}) AS w ON true",
    "SELECT count(*) FROM ({0}) AS w GROUP BY ALL",
    "({0})",
    "FROM ({0})",
    "{0} INTERSECT {0}",
    "{0} EXCEPT SELECT 'd'",
    "{0} UNION SELECT 'd'",
    "{0} UNION ALL SELECT 'd' ORDER BY 1",
    "{0} ORDER BY 1",
    "{0} GROUP BY 1",
    "SELECT count(CASE WHEN w.email <= 'd' THEN 1 END) FROM ({0}) AS w",
    "SELECT CASE WHEN email < 'd' THEN 1 / 0 END FROM ({0}) AS w",
    "SELECT lower(email) AS e FROM ({0}) AS w ORDER BY e",
    "SELECT DISTINCT upper(email) FROM ({0}) AS w",
    "SELECT count(*) FROM ({0}) AS w GROUP BY substr(email, 1, 1)",
    "SELECT email, name FROM ({0}) AS w ORDER BY email",
    "SELECT email || '!' AS e FROM ({0}) AS w",
)
COMMENTS = ("/**/", "-- x\n", "/*/**/*/", "/*", "*/", "--", "#\n", "/*!50000 x*/", ";", "\\")
BLANKS = ("\t", "\v", "\f", "\n", "\r", "\xa0", "\u2003", "\ufeff", "\x00", "", "\u200b")
QUOTES = (
    '"{}"',
    "`{}`",
    "[{}]",
    "'{}'",
    'U&"{}"',
    "E'{}'",
    "$${}$$",
    '"{}',
    "{}.{}",
    "main.{}",
    "public.{}",
    "({}).*",
    "{}.*",
)
ODD = {"s": "ſ", "k": "\u212a", "i": "ı", "a": "\u0430", "S": "ſ"}


def base_texts(dialect: str) -> list[str]:
    """Return what is mutated: every text of the tests for one engine, but those of 3,000
    brackets.
    """
    own = [
        *sql_texts.BOTH_REFUSED,
        *sql_texts.REFUSED[dialect],
        *sql_texts.BOTH_ALLOWED,
        *sql_texts.ALLOWED[dialect],
    ]
    texts = sql_texts_policy
    for group in (
        texts.DENIED,
        texts.HARMLESS,
        texts.MASKED,
        texts.MASKED_OPEN,
        texts.SHOWN_WHOLE,
        texts.SPELLED_OUT,
    ):
        own += [*group["all"], *group[dialect]]
    return [text for text in own if len(text) < 1_000]


def mutated(text: str, steps: Sequence[Step], others: Sequence[str], file: str) -> str:
    """Return the text after these mutations."""
    for kind, one, other in steps:
        text = _mutate(text, kind, one, other, others)[:4_000]
    return text.replace("FILE", file)


def _mutate(text: str, kind: int, one: int, other: int, others: Sequence[str]) -> str:
    pieces = re.findall(r"\w+|\s+|[^\w\s]", text) or [" "]
    here, there = one % len(pieces), other % len(pieces)
    match kind % 12:
        case 0:
            pieces[here] = WORDS[other % len(WORDS)]
        case 1:
            del pieces[here]
        case 2:
            pieces.insert(there, pieces[here])
        case 3:
            pieces[here], pieces[there] = pieces[there], pieces[here]
        case 4:
            tail = re.findall(r"\w+|\s+|[^\w\s]", others[other % len(others)])
            pieces = [*pieces[:here], *tail[one % (len(tail) or 1) :]]
        case 5:
            return WRAPPINGS[one % len(WRAPPINGS)].format(text)
        case 6:
            pieces.insert(here, COMMENTS[other % len(COMMENTS)])
        case 7:
            pieces[here] = pieces[here].swapcase()
        case 8:
            pieces[here] = QUOTES[other % len(QUOTES)].replace("{}", pieces[here])
        case 9:
            pieces.insert(here, BLANKS[other % len(BLANKS)])
        case 10:
            pieces.insert(here, f" {WORDS[other % len(WORDS)]} ")
        case _:
            word = pieces[here]
            pieces[here] = (
                word[: other % 5]
                + (ODD[odd] if (odd := word[other % 5 : other % 5 + 1]) in ODD else odd)
                + word[other % 5 + 1 :]
            )
    return "".join(pieces)


@dataclass
class Pair:
    """Two databases that differ in what is denied only, with what was found out about them."""

    dialect: str
    one: Database
    other: Database
    folder: Path
    places: tuple[str, str]
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, str]] = field(default_factory=list)
    urls: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Return a file that no query may read."""
        return str(self.folder / "canary.csv")

    def ask(self, sql: str) -> None:
        """Ask both, and take note of what must not be."""
        answer, kind = self._answer(self.one, sql)
        self.outcomes[kind] += 1
        if kind == "crash":
            self.findings.append(("crash", sql))
        elif leaks := [secret for secret in SECRETS if secret in answer and secret not in sql]:
            self.findings.append((f"secret {leaks[0]}", sql))
        elif any(email in answer.lower() and email not in sql.lower() for email in EMAILS):
            self.findings.append(("masked value", sql))
        elif any(email in sql.lower() for email in EMAILS):
            return  # who guesses a value may be told that it is one
        elif kind not in ("QueryTimeoutError", "DatabaseUnavailableError") and self._differs(sql):
            self.findings.append(("difference", sql))

    def _differs(self, sql: str) -> bool:
        """Say whether the two give another answer, each always the same; what gives now this, now
        that tells nothing.
        """
        one, other = self._answer(self.one, sql), self._answer(self.other, sql)
        if one[0] == other[0]:
            return False
        ones, others = (
            {one, *(self._answer(self.one, sql) for _ in range(5))},
            {other, *(self._answer(self.other, sql) for _ in range(5))},
        )
        if any(kind == "QueryTimeoutError" for _, kind in ones | others):
            return False
        return len(ones) == 1 and len(others) == 1

    def _answer(self, database: Database, sql: str) -> tuple[str, str]:
        name = self.places[database is self.other]
        try:
            fields, result = run_sql(database, sql)
        except DatabaseError as error:
            return f"{error}".replace(name, "DATABASE"), type(error).__name__
        except Exception as error:
            return repr(error), "crash"
        fields["ms"] = 0
        first_rows = fields.pop("rows")  # in no order, where none was asked for
        texts = sorted(map(repr, first_rows)) if isinstance(first_rows, list) else []
        rows = [
            [cell for place, cell in enumerate(row) if place not in result.masked]
            for row in result.rows
        ]
        return (
            json.dumps([fields, texts], ensure_ascii=False) + repr(sorted(map(repr, rows)))
        ).replace(name, "DATABASE"), "ran"

    def state(self) -> str:
        """Return a mark of all that the databases hold."""
        if self.dialect == "postgres":
            return repr([postgres_server().run(str(place), _HELD) for place in self.urls])
        if self.dialect == "mysql":
            names = (self.one.name, self.other.name)
            return repr([mariadb_server().run(_HELD_BY_MARIADB, database=name) for name in names])
        if self.dialect == "clickhouse":
            names = (self.one.name, self.other.name)
            ask = clickhouse_server().run
            return repr([ask(_HELD_BY_CLICKHOUSE, database=name) for name in names])
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return repr([(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files])


_HELD = """
SELECT (SELECT json_agg(p ORDER BY id)::text FROM people p), (SELECT json_agg(v)::text FROM vault v),
       (SELECT json_agg(s)::text FROM staff s),
       (SELECT last_value FROM counter), (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc),
       (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'),
       (SELECT count(*) FROM pg_db_role_setting)
"""


_HELD_BY_MARIADB = """
SELECT (SELECT JSON_ARRAYAGG(CONCAT_WS('|', id, name, city, salary)) FROM people), (SELECT JSON_ARRAYAGG(secret) FROM vault),
       (SELECT JSON_ARRAYAGG(CONCAT_WS('|', id, name, salary, email)) FROM staff),
       (SELECT COUNT(*) FROM information_schema.tables), (SELECT COUNT(*) FROM information_schema.routines),
       (SELECT COUNT(*) FROM mysql.global_priv), (SELECT COUNT(*) FROM information_schema.global_variables)
"""
_HELD_BY_CLICKHOUSE = """
SELECT (SELECT groupArray(tuple(*)) FROM people), (SELECT groupArray(secret) FROM vault),
       (SELECT groupArray((id, name, salary, email)) FROM staff), (SELECT count() FROM system.tables),
       (SELECT count() FROM system.functions)
"""
_SERVERS = ("postgres", "mysql", "clickhouse")


@contextmanager
def pair(dialect: str, folder: Path) -> Iterator[Pair]:
    """Make the two databases and open them behind both walls."""
    script = SCHEMA + ONLY[dialect] + STAFF.replace(OWN_NUMBERS, "")
    twin = script
    for secret, instead in TWIN.items():
        twin = twin.replace(secret, instead)
    (folder / "canary.csv").write_text("a,b\n1,file-canary\n", encoding="utf-8")
    urls = []
    for number, text in enumerate((script, twin)):
        if dialect == "postgres":
            urls.append(postgres_server().create(text))
        elif dialect == "mysql":
            urls.append(mariadb_server().create(text))
        elif dialect == "clickhouse":
            urls.append(clickhouse_server().create(text))
        else:
            home = folder / f"{number}"
            home.mkdir()
            urls.append(url(make_file(home, dialect, text)))
    with (
        Database.open(urls[0], limits=LIMITS, policy=POLICY) as one,
        Database.open(urls[1], limits=LIMITS, policy=POLICY) as other,
    ):
        yield Pair(
            dialect,
            one,
            other,
            folder,
            (one.name, other.name) if dialect in _SERVERS else ("\0", "\0"),
            urls=tuple(urls),
        )


def fuzz(dialect: str, seconds: float, seed: int) -> Pair:
    """Ask mutated texts for so long; print what was found."""
    rng = random.Random(seed)
    texts = base_texts(dialect)
    with tempfile.TemporaryDirectory() as folder, pair(dialect, Path(folder)) as two:
        for text in texts:  # so that what opens something at first use has opened it
            two.ask(text)
        two.outcomes.clear()
        before, until = two.state(), time.monotonic() + seconds
        while time.monotonic() < until:
            steps = [
                (rng.randrange(12), rng.randrange(10**6), rng.randrange(10**6))
                for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5)))
            ]
            two.ask(mutated(rng.choice(texts), steps, texts, two.file))
        if two.state() != before:
            two.findings.append(("write", "one of these texts changed a database"))
    total = sum(two.outcomes.values())
    print(
        f"{dialect}: {total:,} texts, {two.outcomes['ran']:,} ran, {len(two.findings)} findings;"
        f" {dict(two.outcomes.most_common())}"
    )
    for kind, sql in two.findings[:20]:
        print(f"  {kind}: {sql!r}")
    return two


def main() -> None:
    """Fuzz the engines named, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for each engine")
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        findings = [
            fuzz(dialect, options.seconds, options.seed) for dialect in options.dialect or DIALECTS
        ]
    finally:
        stop_postgres_server()
        stop_clickhouse_server()
        stop_mariadb_server()
    raise SystemExit(1 if any(two.findings for two in findings) else 0)


if __name__ == "__main__":
    main()
