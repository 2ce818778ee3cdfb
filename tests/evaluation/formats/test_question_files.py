"""Questions in TOML: what is read, and mistakes with file and line."""

from pathlib import Path

import pytest

from longtable.evaluation.formats.question_files import read_questions
from longtable.evaluation.question_set import Bar, QuestionSet

FOLDER = Path("/data")
WHOLE = """\
database = "shop.db"
extra_columns = true

[bar]
questions = 0.8
interactions = 1

[[question]]
id = "orders"
ask = "How many orders?"
sql = "SELECT count(*) FROM orders;"
tags = ["count", "count"]
figures = true

[[question]]
ask = "Delete all orders."
expect = "refusal"
database = "postgresql://localhost/shop"

[[dialogue]]
id = "best"
[[dialogue.turn]]
ask = "Which customer is best?"
expect = "question"
says = "amount"
[[dialogue.turn]]
ask = "By amount."
sql = ["SELECT 1", '''
SELECT 2''']
ordered = false
extra_columns = false
"""


def read(text: str) -> QuestionSet:
    return read_questions(text, "q.toml", FOLDER)


def test_a_whole_file_is_read() -> None:
    found = read(WHOLE)
    assert not found.problems
    assert found.bar == Bar(questions=0.8, interactions=1)
    orders, delete, best = found.dialogues
    assert (orders.id, orders.database, orders.tags) == ("orders", "/data/shop.db", ["count"])
    assert orders.turns[0].gold == ["SELECT count(*) FROM orders"]
    assert (orders.turns[0].figures, orders.turns[0].extra_columns) == (True, True)
    assert (delete.id, delete.turns[0].expects) == ("Delete all orders.", "refusal")
    assert delete.database == "postgresql://localhost/shop"
    assert [turn.expects for turn in best.turns] == ["question", "result"]
    assert [turn.says for turn in best.turns] == [["amount"], []]
    assert best.turns[1].gold == ["SELECT 1", "SELECT 2"]
    assert (best.turns[1].ordered, best.turns[1].extra_columns) == (False, False)
    assert [str(turn.place) for turn in best.turns] == ["q.toml:22", "q.toml:26"]


QUESTION = '[[question]]\nask = "How many?"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "q.toml: there is no question"),
        ("a = \n", "q.toml:1: this is not TOML"),
        ("\nquestion = 1", "q.toml:2: write [[question]], with two brackets"),
        ("\nquestions = 1\n" + QUESTION, "q.toml:2: `questions` is not known; did you mean"),
        (QUESTION, "q.toml:1: the SQL that answers it is missing"),
        (QUESTION + 'sql = ""', "q.toml:3: `sql` is empty"),
        (QUESTION + "sql = 1", "q.toml:3: `sql` must be a text, or a list of texts"),
        (QUESTION + 'sqll = "x"', "q.toml:3: `sqll` is not known; did you mean `sql`?"),
        (QUESTION + 'expect = "no"', "q.toml:3: `expect` must be one of result, refusal, question"),
        (QUESTION + 'expect = "refusal"\nsql = "x"', 'q.toml:4: with expect = "refusal" there is'),
        (QUESTION + 'sql = "x"\nordered = 1', "q.toml:4: `ordered` must be true or false"),
        (QUESTION + 'sql = "x"\ntags = "x"', "q.toml:4: write tags as a list"),
        (QUESTION + 'sql = "x"\nsays = 1', "q.toml:4: `says` must be a text, or a list of texts"),
        (QUESTION + 'sql = "x"\nsays = [" "]', "q.toml:4: `says` is empty"),
        (
            QUESTION + "sql = '''\n[[question]]\nsqll = 1\n'''\n" + QUESTION + 'sqll = "x"',
            "q.toml:9: `sqll` is not known",
        ),
        (
            QUESTION + 'sql = """\\"""\\"\n[[question]]\n"""\n# it\'s\n' + QUESTION + "sqll = 1",
            "q.toml:9: `sqll` is not known",
        ),
        ('[[question]]\nask = " "\nsql = "x"', "q.toml:2: a question is missing"),
        ('[[question]]\nask = 7\nsql = "x"', "q.toml:2: `ask` must be a text, found int"),
        (f'{QUESTION}sql = "x"\n{QUESTION}sql = "y"', "q.toml:4: the id 'How many?' is already in"),
        (
            "[bar]\nquestions = 80\n" + QUESTION,
            "q.toml:2: `questions` must be a number from 0 to 1",
        ),
        ("[bar]\nquestion = 1\n" + QUESTION, "q.toml:2: `question` is not known"),
        ('[[dialogue]]\nid = "d"', "q.toml:1: a dialogue needs turns"),
        ('[[dialogue]]\n[[dialogue.turn]]\nask = "a"\nexpect = "x"', "q.toml:4: `expect` must be"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, problem: str) -> None:
    assert str(read(text).problems[0]).startswith(problem)


def test_a_wrong_question_leaves_the_others(tmp_path: Path) -> None:
    found = read(f'{QUESTION}sqll = "x"\n[[question]]\nask = "Right?"\nsql = "SELECT 1"')
    assert [dialogue.id for dialogue in found.dialogues] == ["Right?"]
    assert len(found.problems) == 1


def test_a_fingerprint_is_the_same_in_another_folder() -> None:
    here = read_questions(WHOLE, "q.toml", Path("/data"))
    there = read_questions(WHOLE, "q.toml", Path("/other"))
    other = read_questions(WHOLE.replace("shop.db", "old/shop.db"), "q.toml", Path("/data"))
    assert here.dialogues[0].database != there.dialogues[0].database
    assert here.dialogues[0].fingerprint == there.dialogues[0].fingerprint
    assert here.dialogues[0].fingerprint != other.dialogues[0].fingerprint


def test_a_fingerprint_changes_with_what_the_answer_depends_on() -> None:
    one = read(WHOLE).dialogues
    tagged = read(WHOLE.replace('"count", "count"', '"other"')).dialogues
    changed = read(WHOLE.replace("SELECT count(*)", "SELECT sum(1)")).dialogues
    assert one[0].fingerprint == tagged[0].fingerprint != changed[0].fingerprint
    assert [each.fingerprint for each in one[1:]] == [each.fingerprint for each in changed[1:]]
