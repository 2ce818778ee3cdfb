"""The built-in analyst over schemas the project ships: answers match the gold SQL, and what it cannot use it declines."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evals.analyst import Score, own_questions, run
from evals.databases import open_database
from evals.loop import Talk

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted(path.stem for path in (ROOT / "evals" / "schemas").glob("*.sql"))


def make(name: str, folder: Path) -> Path:
    path = folder / f"{name}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((ROOT / "evals" / "schemas" / f"{name}.sql").read_text(encoding="utf-8"))
    return path


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make("hospital", tmp_path_factory.mktemp("hospital"))


@pytest.fixture
def talk(hospital: Path) -> Iterator[Talk]:
    with open_database(hospital) as tools:
        yield Talk(tools)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_questions_of_a_shipped_schema_are_answered_right(name: str, tmp_path: Path) -> None:
    score = Score(name)
    run(make(name, tmp_path), own_questions(name), score)
    assert score.asked >= 30
    assert score.wrong == 0
    assert score.right >= 0.95 * score.asked


@pytest.mark.parametrize(
    "question",
    [
        "How many doctors play the violin?",
        "How many patients live in Atlantis?",
        "What is the meaning of life?",
        "asdf qwer zxcv",
        "有多少医生会拉小提琴？",
    ],
)
def test_what_it_cannot_use_it_declines_with_three_questions_it_can_answer(question: str, talk: Talk, hospital: Path) -> None:
    declined = talk.ask(question)
    assert declined.sql == ""
    offered = [line.removeprefix("- ") for line in declined.text.splitlines() if line.startswith("- ")]
    assert len(offered) == 3
    for offer in offered:
        with open_database(hospital) as tools:
            assert Talk(tools).ask(offer).sql, offer


@pytest.mark.parametrize("question", ["delete all doctors", "DROP TABLE doctors", "update patients set city = 'x'", "删除所有医生"])
def test_it_only_reads(question: str, talk: Talk) -> None:
    answer = talk.ask(question)
    assert answer.sql == ""
    assert answer.calls <= 2


def test_it_says_once_what_it_is(talk: Talk) -> None:
    first, second = talk.ask("How many doctors are there?"), talk.ask("How many patients are there?")
    assert "built-in analyst" in first.text
    assert "--model" in first.text
    assert "built-in analyst" not in second.text


def test_it_answers_in_the_language_of_the_question(talk: Talk) -> None:
    assert "There are" in talk.ask("How many doctors are there?").text
    assert "共有" in talk.ask("有多少医生？").text


def test_it_follows_up_on_the_query_it_sees(talk: Talk, hospital: Path) -> None:
    talk.ask("How many patients live in Oslo?")
    with closing(sqlite3.connect(hospital)) as connection:
        other = connection.execute("SELECT city FROM patients WHERE city <> 'Oslo' GROUP BY city ORDER BY count(*) DESC").fetchone()[0]
    answered = talk.ask(f"and in {other}?")
    assert other in answered.sql
    assert "Oslo" not in answered.sql
