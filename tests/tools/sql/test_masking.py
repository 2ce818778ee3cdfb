"""Views over masked columns: what a view computes from one may be selected, and nothing else."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from longtable.base.errors import QueryRefusedError
from longtable.tools.database import Database, TablePolicy
from longtable.tools.fetch import ThreadResults, fetched
from longtable.tools.results.result_store import ResultStore
from longtable.tools.sql.verdict import MASK
from longtable.tools.toolset import run_sql
from tests.tools.databases import DIALECTS, make, open_at

SCHEMA = """
CREATE TABLE vaults (id INTEGER, secret TEXT);
CREATE TABLE olds (id INTEGER, secret TEXT);
INSERT INTO vaults VALUES (1, 'canary one'), (2, 'dog two'), (3, 'dog two');
INSERT INTO olds VALUES (4, 'cat three');
CREATE VIEW initials AS SELECT id, substr(secret, 1, 1) AS initial, secret FROM vaults;
CREATE VIEW over_initials AS SELECT id AS number, initial AS first_letter FROM initials;
CREATE VIEW flagged AS SELECT id, CASE WHEN secret = 'dog two' THEN 1 END AS initial FROM vaults;
CREATE VIEW renamed AS SELECT id, lower(secret) AS secret FROM vaults;
CREATE VIEW inner_query AS
    SELECT id, x AS initial FROM (SELECT id, substr(secret, 2) AS x FROM vaults) AS t;
CREATE VIEW mixed AS SELECT secret AS initial FROM vaults UNION ALL SELECT 'canary one';
CREATE VIEW both_tables AS SELECT id, secret FROM vaults UNION ALL SELECT id, secret FROM olds;
CREATE VIEW joined AS SELECT v.id, v.secret FROM vaults v JOIN olds o ON o.id <> v.id;
"""
COMPUTED = (
    *(("initials", "initial"), ("over_initials", "first_letter"), ("flagged", "initial")),
    *(("renamed", "secret"), ("inner_query", "initial"), ("mixed", "initial")),
)
BARE = (("initials", "secret"), ("both_tables", "secret"), ("joined", "secret"))
USES = (
    *("SELECT count(*) FROM {v} WHERE {c} = 'c'", "SELECT count(*) FROM {v} WHERE {c} <> 'c'"),
    "SELECT count(*) FROM {v} WHERE {c} IN ('c', 'd')",
    "SELECT count(*) FROM {v} WHERE {c} IS NULL",
    "SELECT count(*) FILTER (WHERE {c} = 'c') FROM {v}",
    *("SELECT count(*) FROM {v} GROUP BY {c}", "SELECT {c}, count(*) FROM {v} GROUP BY {c}"),
    *("SELECT {c} FROM {v} ORDER BY {c}", "SELECT {c} FROM {v} ORDER BY 1"),
    *("SELECT DISTINCT {c} FROM {v}", "SELECT count(DISTINCT {c}) FROM {v}"),
    "SELECT count(*) FROM {v} a JOIN {v} b ON a.{c} = b.{c}",
    "SELECT count(*) FROM {v} JOIN {v} b USING ({c})",
    "SELECT rank() OVER (ORDER BY {c}) FROM {v}",
    "SELECT count(*) FROM (SELECT {c} AS x FROM {v}) AS t WHERE x = 'c'",
    "WITH t AS (SELECT {c} AS x FROM {v}) SELECT count(*) FROM t GROUP BY x",
    "SELECT upper({c}) FROM {v}",
    "SELECT {c} FROM {v} UNION SELECT {c} FROM {v}",
    "SELECT count(*) FROM vaults WHERE secret IN (SELECT {c} FROM {v})",
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    folder = tmp_path_factory.mktemp("views")
    policy = TablePolicy(masked_columns=frozenset({"vaults.secret", "olds.secret"}))
    opened = {
        dialect: open_at(make(folder, dialect, SCHEMA), policy=policy) for dialect in DIALECTS
    }
    yield opened
    for database in opened.values():
        database.close()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("column", COMPUTED, ids="-".join)
def test_what_a_view_computes_from_a_masked_column_has_no_place_of_its_own(
    kept: dict[str, Database], dialect: str, column: tuple[str, str], use: str
) -> None:
    view, name = column
    with pytest.raises(QueryRefusedError) as caught:
        kept[dialect].run(use.format(v=view, c=name))
    assert caught.value.rule == "masked"


@pytest.mark.parametrize("column", COMPUTED, ids="-".join)
def test_it_can_be_selected_and_is_masked(
    kept: dict[str, Database], dialect: str, column: tuple[str, str]
) -> None:
    view, name = column
    for sql in (f"SELECT {name} FROM {view}", f"SELECT * FROM {view}"):
        told, result = run_sql(kept[dialect], sql)
        assert MASK in str(told["rows"])
        assert not any(letter in str(told["rows"]) for letter in ("canary", "dog", "'c'", "'d'"))
        assert MASK not in str(result.rows)


@pytest.mark.parametrize("column", BARE, ids="-".join)
def test_a_masked_column_that_a_view_hands_on_keeps_its_places(
    kept: dict[str, Database], dialect: str, column: tuple[str, str]
) -> None:
    view, name = column
    for sql in (
        f"SELECT count(*) FROM {view} WHERE {name} = 'dog two'",
        f"SELECT {name}, count(*) FROM {view} GROUP BY {name} ORDER BY {name}",
        f"SELECT count(*) FROM {view} a JOIN vaults b ON a.{name} = b.secret",
    ):
        assert run_sql(kept[dialect], sql)[1].rows


def test_the_type_of_a_masked_value_is_not_told(tmp_path: Path, dialect: str) -> None:
    script = """
    CREATE TABLE vaults (id INTEGER, secret NUMERIC);
    INSERT INTO vaults VALUES (1, 5), (2, 2.5), (3, 9000000000000);
    """
    policy = TablePolicy(masked_columns=frozenset({"vaults.secret"}))
    results = ThreadResults(ResultStore(tmp_path / "r", clock=lambda: datetime.now(UTC)), "t")
    database = open_at(make(tmp_path, dialect, script), policy=policy)
    try:
        types = []
        for number in (1, 2, 3):
            preview, result = run_sql(
                database, f"SELECT secret, min(id) FROM vaults WHERE id = {number} GROUP BY secret"
            )
            handle = results.put(result)
            page = fetched(results, handle, 1, "")
            over = fetched(results, "", 1, f"SELECT * FROM {handle}")
            types.append([preview["types"], page["types"], over["types"]])
        assert types == types[:1] * 3
        assert MASK in str(types[0][0])
    finally:
        database.close()
