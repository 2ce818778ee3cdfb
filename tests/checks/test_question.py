"""What the words of a question mean."""

import pytest

from longtable.checks.question import Question


@pytest.mark.parametrize(
    ("text", "meaning", "words"),
    [
        ("how many different big customers are there", "counted", ["customers"]),
        ("the orders of all customers", "every", ["customers"]),
        ("all customers who paid", "every", []),
        ("revenue before any discount", "gross", ["before any discount"]),
        ("有多少个不同的地区", "distinct", ["不同"]),
        ("which isn't paid", "negated", ["n't"]),
        ("the average total", "percent", []),
    ],
)
def test_words_have_a_meaning(text: str, meaning: str, words: list[str]) -> None:
    assert Question(text).says(meaning) == words


def test_a_part_of_a_name_may_be_short_for_a_word_of_the_question() -> None:
    question = Question("how late are departures from 北京")
    assert question.names("dep")
    assert question.names("departure")
    assert question.names("北京")
    assert not question.names("de")
    assert not question.names("arr")
