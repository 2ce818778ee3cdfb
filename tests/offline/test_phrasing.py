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


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("What are the two widest roads, and how long is each?", "What are the two widest roads and the length?"),
        ("Which dish takes the longest to cook?", "Which dish has the longest cooking time?"),
        ("Are there any clerks without a desk? Give me their names", "list the names of clerks without a desk"),
        ("Dates of the first and the last visit", "minimum and maximum visit date"),
        ("Add up the fees of all clubs by town", "sum of the fees of all clubs by town"),
        ("How often was each coupon used on an order?", "number of orders with a coupon per coupon?"),
        ("concerts in Rome in date order", "concerts in Rome sorted by date"),
        ("ships flying the flag of Malta", "ships with the flag of Malta"),
        ("jobs paying more than 500 a week", "jobs with a weekly pay more than 500"),
        ("How many claims did we reject because of late filing?", 'How many claims were rejected with reason "late filing"?'),
        ("visits per year, going by the day of arrival", "visits per year by the day of arrival"),
        ("Which tiles were returned because they were cracked?", 'Which tiles were returned with reason "cracked"?'),
        ("How many permits have a state other than granted?", "How many permits whose state is not granted?"),
        ("total quantity ordered by colour", "total quantity ordered per colour"),
        ("Repair cost by van brand, biggest first", "total Repair cost per van brand, biggest first"),
        ("cost per hour of each van", "cost per hour of each van"),
        ("How many visits in 2024, going by the arrival date?", "How many visits with arrival date in 2024?"),
        ("New members registered per year", "members registered per year"),
    ],
)
def test_roundabout_turns_are_put_plainly(asked: str, plain: str) -> None:
    assert plainly(asked).lower() == plain.lower()


def test_the_total_quantity_is_a_sum_only_where_there_is_such_a_column() -> None:
    assert plainly("total quantity of tape used", quantities=True) == "total quantity for tape used"
    assert plainly("total quantity of tape used") == "total quantity of tape used"
