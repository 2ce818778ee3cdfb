"""Mutated texts and a corpus kept back, asked of two databases that differ only in what the policy
denies; see `evals/fuzz.py`.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals.adversary import POLICY, TEXTS, make_secrets, recovered
from evals.fuzz import Pair, base_texts, mutated, pair
from longtable.base.errors import (
    DatabaseError,
    QueryMemoryError,
    QueryRefusedError,
    QueryTimeoutError,
    ResultTooLargeError,
    TooManyRowsError,
)
from longtable.tools.database import Database
from tests.tools.databases import DIALECTS, spelled
from tests.tools.sql.sql_texts_second import QUIET, REFUSE, RUN, STOP, UNLIKE

SAMPLE_OF_STOPPED = 4
"""Of the costly texts, as many an engine are asked here as there is time for; `evals.second` asks
them all.
"""
STEPS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 10**6), st.integers(0, 10**6)),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Pair]]:
    with ExitStack() as stack:
        yield {
            dialect: stack.enter_context(pair(dialect, tmp_path_factory.mktemp(dialect)))
            for dialect in DIALECTS
        }


@pytest.fixture
def two(dialect: str, pairs: dict[str, Pair]) -> Pair:
    return pairs[dialect]


@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(base=st.integers(0, 10**6), steps=STEPS)
def test_no_mutated_text_writes_reads_a_file_brings_out_what_is_denied_or_crashes(
    base: int, steps: list[tuple[int, int, int]], two: Pair
) -> None:
    texts = base_texts(two.dialect)
    before = two.state() if base % 20 == 0 else ""
    two.ask(mutated(texts[base % len(texts)], steps, texts, two.file))
    assert not two.findings
    assert not before or two.state() == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM other..people",
        ";SELECT nothing FROM staff",
        (
            "SELECT d FROM generate_series(timestamp '2024-01-01', timestamp '2024-02-01', '1"
            " staff.* day') AS d"
        ),
        "SELECT substr(\ufeffemail, 1, 10) AS id FROM staff",
        "SELECT q FROM (SELECT name AS \ufeffq FROM staff UNION ALL SELECT email FROM staff) AS t",
    ],
)
def test_what_the_fuzzer_once_found_is_found_no_more(sql: str, two: Pair) -> None:
    two.ask(sql)
    assert not two.findings
    with pytest.raises(DatabaseError):
        two.one.run(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM staff s JOIN (SELECT * FROM staff a CROSS JOIN staff b) AS w ON true",
        'SELECT "email:1" AS x, "email_1" AS y FROM (SELECT * FROM staff a, staff b) AS w',
    ],
)
def test_a_masked_column_that_the_engine_gives_a_number_is_masked(sql: str, two: Pair) -> None:
    two.ask(sql)
    assert not two.findings


def test_the_fuzzer_sees_a_leak(two: Pair) -> None:
    with Database.open(two.urls[0]) as one, Database.open(two.urls[1]) as other:
        open_pair = replace(two, one=one, other=other, outcomes=Counter(), findings=[])
        for sql in (
            "SELECT max(secret) FROM vault",
            "SELECT sum(salary) % 7 FROM staff",
            "SELECT email FROM staff",
            "SELECT 1 FROM staff",
        ):
            open_pair.ask(sql)
    assert [kind for kind, _ in open_pair.findings] == [
        "secret combination is",
        "difference",
        "masked value",
    ]


def test_an_adversary_who_knows_the_walls_reads_no_masked_text(
    dialect: str, tmp_path: Path
) -> None:
    place, texts = make_secrets(tmp_path, dialect)
    with Database.open(place, policy=POLICY) as masked, Database.open(place) as plain:
        assert recovered(masked, texts)[0] == 0
        assert recovered(plain, texts)[0] == TEXTS


def test_the_second_corpus_is_answered_as_it_says(two: Pair) -> None:
    before, dialect = two.state(), two.dialect
    unlike = UNLIKE.get(dialect, {})
    for sql in [*REFUSE["all"], *REFUSE[dialect]]:
        if sql in unlike:
            continue
        with pytest.raises(DatabaseError):
            two.one.run(sql)
    for sql in [*QUIET["all"], *QUIET[dialect]]:
        two.ask(sql)
    for sql in [*RUN["all"], *RUN[dialect]]:
        assert two.one.run(spelled(sql, dialect)).columns
    costly = [sql for sql in [*STOP["all"], *STOP[dialect]] if sql not in unlike]
    for sql in random.Random(7).sample(costly, SAMPLE_OF_STOPPED):
        with pytest.raises(
            (
                QueryRefusedError,
                QueryTimeoutError,
                QueryMemoryError,
                ResultTooLargeError,
                TooManyRowsError,
            )
        ):
            two.one.run(sql)
    assert not two.findings
    assert two.state() == before
