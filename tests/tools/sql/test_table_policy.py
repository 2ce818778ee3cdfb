"""A user's policy on columns: what is denied is not there, what is masked is not shown; on real
engines.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    QueryFailedError,
    QueryRefusedError,
    TooManyRowsError,
)
from longtable.tools.catalog import Column, Reflected, Table
from longtable.tools.database import Database
from longtable.tools.fetch import ThreadResults, fetched
from longtable.tools.results.result_store import ResultStore
from longtable.tools.schema.schema_tools import describe_tables, list_tables
from longtable.tools.schema.values import find_values
from longtable.tools.sql.table_policy import TablePolicy, load_policy
from longtable.tools.sql.verdict import MASK
from longtable.tools.sql.visible import visible
from longtable.tools.toolset import run_sql
from longtable.tools.workers.runner import Runner, Stop
from tests.tools.databases import DIALECTS, Place, engine_of, make, open_at, spelled
from tests.tools.sql.sql_texts_policy import (
    DENIED,
    HARMLESS,
    MASKED,
    MASKED_OPEN,
    SHOWN_WHOLE,
    SPELLED_OUT,
    UNLIKE,
)

OWN_NUMBERS = "CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (1), (2), (3);"
SCHEMA = (
    OWN_NUMBERS
    + """
CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, city TEXT, salary INTEGER, email TEXT, boss_id INTEGER REFERENCES staff(id));
CREATE TABLE badge (code INTEGER PRIMARY KEY, staff_id INTEGER REFERENCES staff(id), colour TEXT);
CREATE TABLE pay (staff_id INTEGER, salary INTEGER);
INSERT INTO staff VALUES (1, 'Ada', 'Bern', 7650417, 'canary.one@example.com', NULL);
INSERT INTO staff VALUES (2, 'Bo', 'Genf', 7650418, 'canary.two@example.com', 1);
INSERT INTO badge VALUES (7650419, 1, 'red'), (7650420, 2, 'blue');
INSERT INTO pay VALUES (1, 7650417);
CREATE VIEW clean AS SELECT id, name, city FROM staff;
CREATE VIEW over_clean AS SELECT name FROM clean;
CREATE VIEW everything AS SELECT * FROM staff;
CREATE VIEW paid AS SELECT id, salary AS amount FROM staff;
CREATE VIEW over_paid AS SELECT amount FROM paid;
CREATE VIEW contacts AS SELECT name, email AS reached_at, 'x' AS kind FROM staff;
CREATE VIEW over_contacts AS SELECT reached_at AS r, name FROM contacts;
"""
)
CANARIES = ("7650417", "7650418", "7650419", "7650420")
EMAILS = ("canary.one", "canary.two")
POLICY = TablePolicy(
    denied_columns=frozenset({"staff.SALARY", "badge.code"}),
    masked_columns=frozenset({"email"}),
    allowed_columns=frozenset({"pay.staff_id"}),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    folder = tmp_path_factory.mktemp("policy")
    opened = {
        dialect: open_at(make(folder, dialect, SCHEMA, name="staff_book"), policy=POLICY)
        for dialect in DIALECTS
    }
    yield opened
    for database in opened.values():
        database.close()


@pytest.fixture
def staff(dialect: str, kept: dict[str, Database]) -> Database:
    return kept[dialect]


def _cases(own: dict[str, list[str]]) -> list[object]:
    pairs = [
        (dialect, sql)
        for dialect in DIALECTS
        for sql in [*own["all"], *own[dialect]]
        if sql not in UNLIKE.get(dialect, ())
    ]
    return [
        pytest.param(dialect, sql, id=f"{dialect}-{index}")
        for index, (dialect, sql) in enumerate(pairs)
    ]


def _answer(ask: Callable[[], object]) -> str:
    """Return what comes of a query, be it an error."""
    try:
        return repr(ask())
    except DatabaseError as error:
        return f"{error!r} {error}"


def _shown(database: Database, sql: str) -> str:
    return _answer(lambda: run_sql(database, sql)[0])


def _leaks(text: str, canaries: tuple[str, ...] = CANARIES) -> list[str]:
    return [canary for canary in canaries if canary in text]


@pytest.mark.parametrize(("dialect", "sql"), _cases(DENIED))
def test_no_query_brings_out_a_denied_column(
    dialect: str, sql: str, kept: dict[str, Database]
) -> None:
    assert not _leaks(_answer(lambda: kept[dialect].run(sql)))


@pytest.mark.parametrize(("dialect", "sql"), _cases(HARMLESS))
def test_the_other_columns_are_there_as_before(
    dialect: str, sql: str, kept: dict[str, Database]
) -> None:
    result = kept[dialect].run(sql)
    assert result.rows
    assert "salary" not in {name.lower() for name in result.columns}


def test_a_denied_column_in_quotes_is_an_unknown_name(staff: Database) -> None:
    with pytest.raises(QueryFailedError) as caught:
        staff.run(spelled('SELECT count(*) FROM staff WHERE "salary" > 100', staff.dialect))
    assert (caught.value.problem, caught.value.line, caught.value.column) == ("unknown_name", 1, 34)


@pytest.mark.parametrize(("dialect", "sql"), _cases(MASKED))
def test_no_masked_value_is_in_what_the_model_is_shown(
    dialect: str, sql: str, kept: dict[str, Database]
) -> None:
    assert not _leaks(_shown(kept[dialect], sql), EMAILS)


@pytest.mark.parametrize(("dialect", "sql"), _cases(MASKED_OPEN))
def test_what_does_not_come_of_a_masked_column_is_shown(
    dialect: str, sql: str, kept: dict[str, Database]
) -> None:
    told, result = run_sql(kept[dialect], sql)
    assert MASK not in json.dumps(told, ensure_ascii=False)
    assert result.rows


@pytest.mark.parametrize(("dialect", "sql"), _cases(SHOWN_WHOLE))
def test_a_person_reads_names_put_together_and_a_model_reads_a_mask(
    dialect: str, sql: str, kept: dict[str, Database]
) -> None:
    shown, result = run_sql(kept[dialect], sql)
    assert MASK in json.dumps(shown, ensure_ascii=False)
    assert "canary.one@example.com" in repr(result.rows).lower()
    assert not _leaks(json.dumps(shown).lower(), EMAILS)


@pytest.mark.parametrize(("dialect", "sql"), _cases(SPELLED_OUT))
def test_no_masked_value_is_spelled_out_by_the_rows_that_come(
    dialect: str, sql: str, kept: dict[str, Database]
) -> None:
    with pytest.raises(QueryRefusedError) as caught:
        kept[dialect].run(sql)
    assert caught.value.rule in ("masked", "function", "construct", "column")
    assert caught.value.hint


def test_a_refused_use_of_a_masked_column_is_told_with_its_place(staff: Database) -> None:
    for sql, place in [
        ("SELECT name FROM staff\nWHERE city = 'Bern' AND (id = 1 OR email LIKE 'c%')", (2, 36)),
        ("SELECT name FROM staff ORDER BY\n name, upper(email)", (2, 14)),
        ("SELECT a.name FROM staff a\n JOIN staff b ON a.id = b.id AND a.email > b.email", (2, 34)),
    ]:
        with pytest.raises(QueryRefusedError) as caught:
            staff.run(sql)
        assert (caught.value.rule, caught.value.line, caught.value.column) == ("masked", *place)


def test_a_pivot_is_refused_with_the_form_that_works(kept: dict[str, Database]) -> None:
    for sql in (
        "PIVOT badge ON colour USING count(*)",
        "SELECT * FROM (PIVOT badge ON colour USING count(*)) AS p",
    ):
        with pytest.raises(QueryRefusedError) as caught:
            kept["duckdb"].run(sql)
        assert (
            "SELECT * FROM (PIVOT t ON column IN ('a', 'b') USING sum(x)) AS p" in caught.value.hint
        )
    for sql in (
        "SELECT * FROM (PIVOT badge ON colour IN ('red', 'blue') USING sum(staff_id)) AS p",
        "SELECT * FROM (UNPIVOT pay ON staff_id) AS p",
        "UNPIVOT pay ON staff_id",
    ):
        assert kept["duckdb"].run(sql).rows
    with pytest.raises(QueryRefusedError, match="a masked column cannot be pivoted"):
        kept["duckdb"].run("SELECT * FROM (PIVOT staff ON city IN ('Bern') USING count(*)) AS p")


def test_the_person_has_the_values_that_the_model_is_not_shown(staff: Database) -> None:
    told, result = run_sql(staff, "SELECT id, email, name FROM staff ORDER BY id")
    assert told["rows"] == [[1, MASK, "Ada"], [2, MASK, "Bo"]]
    assert result.rows[0] == (1, "canary.one@example.com", "Ada")
    assert staff.run("SELECT name FROM staff WHERE email = 'canary.two@example.com'").rows == [
        ("Bo",)
    ]


def test_a_denied_column_is_as_unknown_as_one_that_never_was(staff: Database) -> None:
    said: list[tuple[str, bool]] = []
    for name in ("salary", "celery"):
        try:
            staff.run(f"SELECT staff.{name} FROM staff")
        except (QueryFailedError, QueryRefusedError) as error:
            said.append((error.reason.replace(name, "NAME"), "salary" in error.hint))
    assert len(said) == 2
    assert said == [said[1], said[1]]
    assert not said[0][1]


def test_the_schema_tools_know_nothing_of_a_denied_column(staff: Database) -> None:
    names = [table.name for table in staff.catalog().tables]
    assert sorted(names) == [
        "badge",
        "clean",
        "contacts",
        "numbers",
        "over_clean",
        "over_contacts",
        "pay",
        "staff",
    ]
    told = json.dumps(
        [
            list_tables(staff),
            describe_tables(staff, names),
            find_values(staff, "7650417", table="staff"),
        ]
    )
    told += json.dumps(
        [
            find_values(staff, "canary"),
            find_values(staff, "canary", table="staff"),
            find_values(staff, "canary", column="email"),
        ]
    )
    assert not _leaks(told.replace('"salary"', "SALARY"), (*CANARIES, *EMAILS))
    tables: Any = describe_tables(staff, ["staff", "badge", "pay", "contacts"])["tables"]
    described = {table["name"]: table for table in tables}
    assert [column["name"] for column in described["staff"]["columns"]] == [
        "id",
        "name",
        "city",
        "email",
        "boss_id",
    ]
    assert [column["name"] for column in described["pay"]["columns"]] == ["staff_id"]
    assert [column.get("masked", False) for column in described["contacts"]["columns"]] == [
        False,
        True,
        False,
    ]
    assert described["staff"]["sample_rows"][0] == [1, "Ada", "Bern", MASK, None]
    badge = staff.catalog().find("badge")
    assert badge is not None
    foreign = [] if staff.dialect == "clickhouse" else [("staff_id",)]  # which has no such keys
    assert (badge.primary_key, [key.columns for key in badge.foreign_keys]) == ((), foreign)


def test_the_package_s_own_reading_is_held_to_the_policy_too(staff: Database) -> None:
    assert staff.read("SELECT * FROM staff ORDER BY id LIMIT 1", seconds=5) == [
        (1, "Ada", "Bern", None, None)
    ]
    with pytest.raises(QueryFailedError):
        staff.read("SELECT s.salary FROM staff s", seconds=5)


def test_sqlite_and_duckdb_refuse_a_denied_column_by_themselves(
    file_dialect: str, kept: dict[str, Database]
) -> None:
    database = kept[file_dialect]
    database.catalog()
    texts = [
        "SELECT salary FROM staff",
        "SELECT * FROM staff ORDER BY name",
        "SELECT name FROM staff ORDER BY salary + id",
    ]
    for sql in [*texts, "SELECT name FROM staff"]:

        def work(stop: Stop, sql: str = sql) -> object:
            with engine_of(database).session(stop, walled=True) as session:
                return session.fetch(sql, limits=database.limits, stop=stop).rows

        if sql in texts:
            with pytest.raises(QueryRefusedError):
                Runner().run(work, seconds=5)
        else:
            assert Runner().run(work, seconds=5) == [("Ada",), ("Bo",)]


def test_a_kept_result_stays_masked(staff: Database, tmp_path: Path) -> None:
    store = ResultStore(tmp_path, clock=lambda: datetime.now(UTC))
    results = ThreadResults(store, "one")
    results.put(staff.run("SELECT id, email AS e, name FROM staff ORDER BY id"))
    told = [fetched(results, "r1", 1, "")]
    told += [
        fetched(results, "", 1, sql)
        for sql in (
            "SELECT e FROM r1",
            "SELECT r1 FROM r1",
            "SELECT * FROM r1",
            "FROM r1",
        )
    ]
    results.put(staff.run("SELECT id, email AS e FROM staff UNION ALL SELECT 1, 'd'"))
    for sql in (
        *(
            "SELECT [r1] FROM r1",
            "SELECT CAST(e AS INTEGER) FROM r1",
            "SELECT upper(e) AS id FROM r1",
        ),
        *(
            "SELECT id FROM r2 ORDER BY e",
            "SELECT id, e FROM r2 ORDER BY 2",
            "SELECT a.id FROM r1 a JOIN r2 b ON a.e = b.e",
        ),
        *(
            "SELECT id FROM r2 WHERE e = 'd'",
            "SELECT count(DISTINCT e) FROM r2",
            "SELECT DISTINCT e FROM r2",
            "SELECT id FROM r2 GROUP BY id, e",
        ),
        *(
            "SELECT * FROM r2 ORDER BY ALL",
            "SELECT rank() OVER (ORDER BY e) FROM r2",
            "SELECT id FROM (SELECT * FROM r2) ORDER BY e",
        ),
    ):
        with pytest.raises(QueryRefusedError, match="a masked column cannot"):
            fetched(results, "", 1, sql)
    for sql in (
        "SELECT id, #2 FROM r1",
        "SELECT id FROM r1 ORDER BY #2",
        "SELECT * FROM (SELECT #2 AS id FROM r1)",
    ):
        with pytest.raises(QueryRefusedError, match="by its position") as refused:
            fetched(results, "", 1, sql)
        assert refused.value.hint == "write the column's name"
    assert not _leaks(json.dumps(told).lower(), EMAILS)
    assert store.get("one", "r1").rows[0][1] == "canary.one@example.com"
    assert store.get("one", "r1").shown([(1, "x", "Ada")]) == [(1, MASK, "Ada")]


def test_a_view_by_place_is_masked_for_nobody_can_say_what_it_reads(tmp_path: Path) -> None:
    script = SCHEMA + "CREATE VIEW by_place AS SELECT name, #5 AS x FROM staff;"
    with open_at(
        make(tmp_path, "duckdb", script, name="by_place"),
        policy=TablePolicy(masked_columns=frozenset({"email"})),
    ) as database:
        assert not _leaks(_shown(database, "SELECT x FROM by_place"), EMAILS)
        assert "Ada" in _shown(database, "SELECT name FROM by_place")


ENUMS = """
CREATE TYPE mood AS ENUM ('canary.one', 'it''s canary.two');
CREATE TYPE shade AS ENUM ('red', 'blue');
CREATE TABLE felt (id INTEGER, feeling mood, feelings mood[], colour shade);
INSERT INTO felt VALUES (1, 'canary.one', ['it''s canary.two'], 'red');
"""
NAMED_TYPES = [
    "SELECT NULL::mood",
    "SELECT 'x'::mood",
    "SELECT TRY_CAST('x' AS mood)",
    "SELECT CAST(NULL AS mood[])",
    "SELECT enum_range(NULL::mood)",
    "SELECT enum_first(NULL::mood)",
]
ASKING = [
    "SELECT feeling FROM felt",
    "SELECT * FROM felt",
    "SELECT felt FROM felt",
    "SELECT feelings FROM felt",
    "SELECT feeling FROM felt WHERE feeling = 'x'",
    "SELECT enum_range(feeling) FROM felt",
    "SELECT feeling + 1 FROM felt",
    "SELECT sum(feeling) FROM felt",
    "SELECT coalesce(feeling, 'x') FROM felt",
    "SELECT pg_typeof(feeling) FROM felt",
]
OF_DUCKDB = [
    "SELECT typeof(feeling) FROM felt",
    "SELECT {'a': feeling} FROM felt",
    "SELECT enum_code(feeling) FROM felt",
    """SELECT typeof(from_json('{"a": null}', '{"a": "mood"}'))""",
    """SELECT json_transform_strict('{"a": "x"}', '{"a": "mood"}')""",
]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("kind", ["masked", "denied"])
def test_no_type_tells_the_values_of_a_column_that_is_not_shown(
    kind: str, dialect: str, tmp_path: Path
) -> None:
    names = frozenset({"felt.feeling", "felt.feelings"})
    policy = (
        TablePolicy(masked_columns=names) if kind == "masked" else TablePolicy(denied_columns=names)
    )
    script = (
        ENUMS
        if dialect == "duckdb"
        else ENUMS.replace("['it''s canary.two']", "ARRAY['it''s canary.two']::mood[]")
    )
    with open_at(make(tmp_path, dialect, script, name="enums"), policy=policy) as database:
        for sql in NAMED_TYPES:
            with pytest.raises(QueryRefusedError) as caught:
                database.run(sql)
            assert caught.value.rule == "type"
        asked = [*NAMED_TYPES, *ASKING, *(OF_DUCKDB if dialect == "duckdb" else [])]
        told = [_shown(database, sql) for sql in asked]
        told += [repr(database.catalog().tables), json.dumps(describe_tables(database, ["felt"]))]
        assert not _leaks(" ".join(told), EMAILS)
        # An open column's own type is told, and can be named where it is known by name.
        assert "red" in repr(database.catalog().tables)
        if dialect == "postgres":
            assert database.run("SELECT id FROM felt WHERE colour = 'red'::shade").rows == [(1,)]


def test_a_type_of_an_open_column_can_be_named(tmp_path: Path) -> None:
    with open_at(
        make(tmp_path, "duckdb", ENUMS, name="enums"),
        policy=TablePolicy(masked_columns=frozenset({"felt.id"})),
    ) as database:
        result = database.run("SELECT feeling FROM felt WHERE feeling = 'canary.one'::mood")
        assert (result.rows, result.types) == ([("canary.one",)], ("ENUM",))


def test_what_a_query_reads_is_told(staff: Database) -> None:
    assert staff.run(
        "SELECT s.name, b.colour FROM staff s JOIN badge b ON b.staff_id = s.id"
    ).reads == (
        *("badge", "staff"),
        *("badge.colour", "badge.staff_id", "staff.id", "staff.name"),
    )
    assert staff.run("SELECT count(*) FROM staff").reads == ("staff",)
    assert "staff.email" in staff.run("SELECT * FROM staff").reads


def test_the_policy_s_rows_are_the_most_a_result_may_have(
    dialect: str, kept: dict[str, Database], files: dict[str, Place]
) -> None:
    with open_at(files[dialect], policy=TablePolicy(rows=2)) as database:
        assert len(database.run("SELECT * FROM people LIMIT 2").rows) == 2
        with pytest.raises(TooManyRowsError):
            database.run("SELECT * FROM people")


def test_a_slip_of_the_pen_is_an_error_for_it_would_protect_nothing(
    files: dict[str, Place],
) -> None:
    policy = TablePolicy(denied_columns=frozenset({"people.celery"}))
    with (
        open_at(files["sqlite"], policy=policy) as database,
        pytest.raises(ConfigError, match=r"people\.celery"),
    ):
        database.run("SELECT 1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows = 0\n", "line 1.*rows must be"),
        ("# rows\n\n[tabels]\ndenied = []\n", "line 3.*'tabels' is not known"),
        (
            "[tables]\nmasked = []\n",
            "line 2.*'masked' is not known in .tables.: use allowed, denied",
        ),
        ("[columns]\ndenied = 'x'\n", "line 2.*must be a list"),
        ("[columns]\n\ndenied = [\n  'a.b',\n  3,\n]\n", "line 3.*must hold names, found 3"),
        ("[columns]\nallowed = ['b']\n", "line 2.*lacks its table"),
        ("[columns\n", "line 1"),
        (
            "rows = 5\n[columns]\ndenied = [\n  'people.id',\n  'people.nothing',\n]\n",
            "line 5.*no column 'people.nothing'",
        ),
        ("[tables]\ndenied = ['vault', 'walt']\n", "line 2.*no table 'walt'"),
    ],
)
def test_an_error_in_a_policy_file_is_told_with_its_line(
    text: str, said: str, tmp_path: Path, files: dict[str, Place]
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    with (
        pytest.raises(ConfigError, match=f"policy.toml.*{said}"),
        open_at(files["sqlite"], policy=load_policy(path)) as database,
    ):
        database.catalog()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_policy_file_says_the_same_as_code(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        "rows = 50\ntables.denied = ['Vault']\n[columns]\ndenied = ['staff.salary']\nmasked ="
        " ['email']\nallowed = ['pay.staff_id']\n",
        encoding=encoding,
    )
    assert load_policy(path) == TablePolicy(
        rows=50,
        denied=frozenset({"vault"}),
        denied_columns=frozenset({"staff.salary"}),
        masked_columns=frozenset({"email"}),
        allowed_columns=frozenset({"pay.staff_id"}),
    )


SECRET = Table("secret", "table", (Column("s", "TEXT"),))
ORDERS = Table("orders", "table", (Column("a", "INTEGER"),))
CALLING = Table("calling", "view", (Column("x", "TEXT"),))
OUTER = Table("outer_view", "view", (Column("x", "TEXT"),))
PLAIN = Table("plain", "view", (Column("a", "INTEGER"),))


@pytest.mark.parametrize("call", ["f()", "`shop`.`f`()", '"F" ()', "upper(main.f (1))"])
@pytest.mark.parametrize(
    ("policy", "closed"),
    [
        (TablePolicy(), False),
        (TablePolicy(denied=frozenset({"secret"})), True),
        (TablePolicy(masked_columns=frozenset({"orders.a"})), True),
        (TablePolicy(allowed=frozenset({"orders", "calling", "outer_view", "plain"})), True),
    ],
)
def test_a_view_that_calls_a_function_of_the_database_is_closed_if_anything_is_hidden(
    call: str, policy: TablePolicy, closed: bool
) -> None:
    reflected = Reflected(
        (SECRET, ORDERS, CALLING, OUTER, PLAIN),
        {
            ("main", "calling"): f"CREATE VIEW calling AS SELECT {call} AS x",
            ("main", "outer_view"): "CREATE VIEW outer_view AS SELECT x FROM calling",
            ("main", "plain"): "CREATE VIEW plain AS SELECT a AS f FROM orders",
        },
        frozenset({"shop"}),
        own_functions=frozenset({"f"}),
    )
    names = {table.name for table in visible(reflected, policy, dialect="duckdb").tables}
    assert ("calling" in names, "outer_view" in names) == (not closed, not closed)
    assert {"orders", "plain"} <= names
