"""Files of Spider, BIRD, SParC and CoSQL, with their databases."""

import json
from pathlib import Path

import pytest

from longtable.evaluation.formats.benchmark_files import database_folders, read_benchmark
from longtable.evaluation.question_set import QuestionSet
from tests.support.evaluated import make_shop

SPIDER = {"db_id": "shop", "question": "How many?", "query": "SELECT count(*) FROM orders ;"}
BIRD = {
    "question_id": 7,
    "db_id": "shop",
    "question": "How many large?",
    "evidence": "large means amount > 30",
    "SQL": "SELECT count(*) FROM orders WHERE amount > 30",
    "difficulty": "simple",
}
COSQL = {
    "database_id": "shop",
    "interaction": [
        {"utterance": "How many? | Orders? | Yes.", "query": "SELECT count(*) FROM orders"},
        {"utterance": "Which?", "query": "SELECT id FROM orders"},
    ],
    "final": {"utterance": "Which?", "query": "SELECT id FROM orders"},
}


def read(folder: Path, *entries: object) -> QuestionSet:
    return read_benchmark(json.dumps(entries, indent=1), "dev.json", database_folders(folder / "x"))


@pytest.fixture(params=["database/shop/shop.sqlite", "dev_databases/shop.db"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    path.parent.mkdir(parents=True)
    make_shop(path)
    return tmp_path


def test_each_benchmark_is_known_by_its_keys(folder: Path) -> None:
    found = read(folder, SPIDER, BIRD, COSQL)
    assert not found.problems
    spider, bird, cosql = found.dialogues
    assert Path(spider.database).is_file()
    assert spider.turns[0].gold == ["SELECT count(*) FROM orders"]
    assert (bird.id, bird.tags) == ("shop-7", ["shop", "simple"])
    assert bird.turns[0].text == "How many large?\nlarge means amount > 30"
    assert [turn.text for turn in cosql.turns] == ["How many?\nOrders?\nYes.", "Which?"]
    assert [each.place.line for each in found.dialogues] == [2, 7, 15]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (7, "dev.json:2: an object is needed, found a number"),
        ({**SPIDER, "query": None}, "dev.json:2: `query`: a text is needed, found null"),
        ({**SPIDER, "question": " "}, "dev.json:2: `question`: it is empty"),
        ({**SPIDER, "db_id": "../shop"}, "dev.json:2: '../shop' is no name of a database"),
        ({**SPIDER, "db_id": ".."}, "dev.json:2: '..' is no name of a database"),
        ({**SPIDER, "db_id": "gone"}, "dev.json:2: there is no database 'gone': name the folder"),
        ({**COSQL, "interaction": []}, "dev.json:2: `interaction` must be a list of turns"),
        ({**COSQL, "interaction": [1]}, "dev.json:2: turn 1: an object is needed"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_leaves_the_others(
    folder: Path, entry: object, problem: str
) -> None:
    found = read(folder, entry, SPIDER)
    assert len(found.dialogues) == 1
    assert str(found.problems[0]).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "dev.json:1: this is no JSON list: a list is needed"),
        ("{}", "dev.json:1: this is no JSON list: a list is needed"),
        ('[\n{"a": 1},\n{"b": }]', "dev.json:3: this is no JSON list: Expecting value"),
        ("[" * 100_000, "dev.json: the JSON is nested too deeply"),
        ("[\n", "dev.json:2: this is no JSON list"),
    ],
)
def test_what_is_no_list_is_told(text: str, problem: str) -> None:
    assert str(read_benchmark(text, "dev.json", []).problems[-1]).startswith(problem)
