"""What is put into plain words before a question is read."""

import pytest

from longtable.app.offline.phrasing import plainly


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("hired after March 1st, 2015", "hired after 2015-03-01"),
        ("opened before 1 January 2023?", "opened before 2023-01-01?"),
        ("between March 1 and May 31, 2024", "between 2024-03-01 and 2024-05-31"),
        ("between 3 and 9 June 2024", "between 2024-06-03 and 2024-06-09"),
        ("from 1 June 2022 through 15 June 2022", "between 2022-06-01 and 2022-06-15"),
        ("in the years 2018 to 2020", "between 2018 and 2020"),
        ("in 2018 and 2020", "in 2018 and 2020"),
    ],
)
def test_written_dates_and_spans_of_years_have_one_form(asked: str, plain: str) -> None:
    assert plainly(asked) == plain


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("Which plans don't have a single subscriber?", "Which plans don't have any subscriber?"),
        ("the age and height too, please", "the age and height, please"),
        ("What do all the open claims add up to?", "what is the total amount of open claims?"),
        ("teams by goals, highest total first", "teams by goals, highest first"),
        ("towns where we have at least 5 clients", "towns with at least 5 clients"),
        ("the smallest and the largest deposit", "minimum and maximum deposit"),
    ],
)
def test_asides_and_roundabout_words_are_put_plainly(asked: str, plain: str) -> None:
    assert plainly(asked) == plain


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("What is the oldest bridge, and in which year was it built?", "What is the oldest bridge and the year built?"),
        ("Which shop is the smallest, and what city is it in?", "Which shop is the smallest and the city?"),
        ("the three clerks with the earliest hire dates, and those dates", "the three clerks with the earliest hire dates"),
        ("Which clients have terms over 30 days? Show the terms too", "Which clients have terms over 30 days with their terms"),
        ("wage per job from best paid to worst paid", "wage per job descending"),
    ],
)
def test_a_second_question_about_the_same_thing_is_one_with_the_first(asked: str, plain: str) -> None:
    assert plainly(asked) == plain
