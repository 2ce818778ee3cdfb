"""First questions: what the cheapest reading of them returns."""

from pathlib import Path
from typing import Any

import pytest

from tests.analyst.conftest import Chat, chat_about, holds

Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many tracks are there?", [(4,)]),
        ("How many customers live in Wien?", [(2,)]),
        ("List all genres", [("Rock",), ("Jazz",)]),
        ("What is the longest track?", [("Overdose",)]),
        ("Which artist has the most albums?", [("AC/DC", 2)]),
        ("How many albums does each artist have?", [("AC/DC", 2), ("Accept", 1)]),
        ("Which albums are by AC/DC?", [("Let There Be Rock",), ("High Voltage",)]),
        ("How many tracks are in the genre Rock?", [(3,)]),
        ("How many Jazz tracks are there?", [(1,)]),
        ("How many invoices were issued in 2022?", [(2,)]),
        ("Number of invoices per year", [(2021, 2), (2022, 2)]),
        ("Which artists have no albums?", [("Nobody",)]),
        ("How many artists have no albums?", [(1,)]),
        ("Top 2 tracks by length", [("Overdose",), ("Go Down",)]),
        ("Artists with more than 1 album", [("AC/DC", 2)]),
        ("How many artists have more than 1 album?", [(1,)]),
        ("Average total of invoices", [(13.0,)]),
        ("Total sales by billing country", [("Chile", 15.0), ("Austria", 37.0)]),
        (
            "What is the average length of tracks per genre?",
            [("Jazz", 252051.0), ("Rock", (331180 + 369319 + 214000) / 3)],
        ),
        ("Show the email of customers from Chile", [("l@x.cl",)]),
        ("Who is the oldest employee?", [("Adams", "Andrew")]),
        ("List employees hired after 2003", [("Peacock", "Jane")]),
        ("Tracks longer than 6 minutes", [("Overdose", 369319)]),
        ("How many tracks cost more than 1?", [(1,)]),
        ("Which customer spent the most?", [("Astrid", "Gruber", 30.0)]),
        ("Tracks without a composer", [("Overdose",)]),
        ("How many different countries do customers come from?", [(2,)]),
        ("Tracks containing 'down'", [("Go Down",)]),
        ("Albums whose title starts with 'Let'", [("Let There Be Rock",)]),
        ("Invoices with a total above the average", [(4, 30.0)]),
        ("How many invoices have a total between 6 and 12?", [(2,)]),
        ("Customers from Chile or Austria", [("Luis",), ("Leonie",), ("Astrid",)]),
        ("List the tracks of the album Let There Be Rock", [("Go Down",), ("Overdose",)]),
        ("top 2 customers by revenue", [("Astrid", 30.0), ("Luis", 15.0)]),
        ("What is the highest invoice total?", [(30.0,)]),
        ("How many customers are not from Austria?", [(1,)]),
        ("What were our total sales in 2022?", [(37.0,)]),
        ("Which country has the highest average invoice?", [("Austria", 18.5)]),
        ("In which country is the average invoice the highest?", [("Austria", 18.5)]),
        ("Which countries have only one customer?", [("Chile", 1)]),
        ("Some artists don't have a single album. How many are those?", [(1,)]),
        ("Which artists are on no album?", [("Nobody",)]),
        ("How many Jazz tracks are in the shop?", [(1,)]),
        ("How many customers live in Vienna?", [(2,)]),
        ("How many tracks cost more than a dollar?", [(1,)]),
        (
            "Which genre has the longest tracks on average?",
            [("Rock", (331180 + 369319 + 214000) / 3)],
        ),
        ("What percentage of tracks are Rock?", [(75.0,)]),
        ("What share of our revenue comes from Austria?", [(100 * 37 / 52,)]),
        ("average number of tracks per album", [(4 / 3,)]),
        ("How many invoices per customer on average?", [(4 / 3,)]),
        ("Monthly revenue in 2022", [("2022-03", 7.0), ("2022-05", 30.0)]),
    ],
)
def test_a_question_about_the_shop(shop: Chat, question: str, rows: Rows) -> None:
    answer = shop.ask(question)
    assert holds(shop.rows, rows), (shop.sql, answer)


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many flights left JFK in March?", [(2,)]),
        ("How many flights per month?", [(1, 2), (3, 2), (4, 1), (7, 3)]),
        (
            "What is the average arrival delay per carrier?",
            [("DL", 15.5), ("UA", 220.0), ("B6", -20 / 3)],
        ),
        ("How many flights have no tail number?", [(2,)]),
        ("How many flights have a departure delay over 60?", [(2,)]),
        ("How many flights were longer than 2000 miles?", [(3,)]),
        ("How many planes were made by BOEING?", [(1,)]),
        ("How many planes have more than 150 seats?", [(1,)]),
        ("What is the highest altitude of an airport?", [(1026,)]),
        ("Which airport has the highest altitude?", [("Hartsfield Jackson Atlanta Intl", 1026)]),
        ("Which month has the most flights?", [(7, 3)]),
        ("top 2 destinations by number of flights", [("LAX", 3), ("BQN", 3)]),
        ("How many flights were there on July 4th?", [(1,)]),
        ("How many flights in January and from LGA?", [(1,)]),
        ("How many flights did carrier UA have in July?", [(2,)]),
        ("How many flights did not depart?", [(1,)]),
        ("How many flights never took off?", [(1,)]),
        ("What is the hottest it ever got?", [(80.0,)]),
        ("coldest month", [(1, 39.0)]),
        ("Which airline is the most delayed on average?", [("UA", 215.0)]),
        (
            "Which airlines never fly out of LaGuardia?",
            [("United Air Lines Inc.",), ("JetBlue Airways",)],
        ),
        (
            "Which airlines did not fly to Atlanta?",
            [("United Air Lines Inc.",), ("JetBlue Airways",)],
        ),
        ("How many airports are never a destination?", [(3,)]),
    ],
)
def test_a_question_about_the_flights(flights: Chat, question: str, rows: Rows) -> None:
    answer = flights.ask(question)
    assert holds(flights.rows, rows), (flights.sql, answer)


@pytest.mark.parametrize(
    "question",
    [
        "How many tracks have a purple cover?",
        "Which customers are happy?",
        "How many paid invoices are there?",
        "What percentage of Rock tracks have no composer?",
        "invoices from last month",
        "Who reports to Andrew Adams?",
        "total birth date of employees",
        "😀😀",
        "(((((",
        "Why are sales falling?",
        "Customers from Wien or tracks by AC/DC",
        "What is the name of that artist?",
        "What are their emails?",
        "customers in the US",
    ],
)
def test_what_is_not_understood_is_declined(shop: Chat, question: str) -> None:
    shop.ask(question)
    assert shop.rows is None, shop.sql


def test_a_destination_that_points_nowhere_keeps_its_rows(flights: Chat) -> None:
    """BQN is no row of airports: an inner join would drop three flights."""
    flights.ask("How many flights per destination?")
    assert holds(flights.rows, [("LAX", 3), ("BQN", 3), ("ATL", 2)]), flights.sql


def test_of_two_ways_to_be_meant_the_doubtful_is_declined(flights: Chat) -> None:
    flights.ask("Which airports have no flights and are above JFK?")
    assert flights.rows is None


def test_rows_at_one_end_of_two_are_not_called_missing(flights: Chat) -> None:
    """Two keys lead from a flight to an airport: none from there, or none to it?"""
    flights.ask("How many airports have no flights?")
    assert flights.rows is None, flights.sql


def test_a_year_of_things_is_not_the_year_of_what_they_did(flights: Chat) -> None:
    flights.ask("How many different planes flew in 2012?")
    assert flights.rows is None, flights.sql


def test_a_verb_of_selling_asks_for_the_sales(shop: Chat) -> None:
    """No table of the shop tells which tracks were sold; the number of tracks is another
    question.
    """
    shop.ask("Which artist sold the most tracks?")
    assert shop.rows is None, shop.sql


@pytest.mark.parametrize(
    "question", ["How many flights had no delay?", "How many flights took longer than 5 units?"]
)
def test_a_condition_that_no_column_tells_is_declined(flights: Chat, question: str) -> None:
    flights.ask(question)
    assert flights.rows is None, flights.sql


def test_an_hour_of_the_day_is_no_duration(flights: Chat) -> None:
    flights.ask("How many flights took longer than 5 hours?")
    assert flights.rows is None or flights.rows == [(3,)], flights.sql


def test_a_short_word_is_not_asked_back_as_a_name(shop: Chat) -> None:
    assert "Did you mean" not in shop.ask("tell me a joke about Jaz")


def test_a_value_with_a_slip_is_asked_back(shop: Chat) -> None:
    answer = shop.ask("How many customers are from Austira?")
    assert shop.rows is None
    assert "Did you mean “Austria”" in answer


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("How many flights in March and April?", [(3,)]),
        ("How many flights left in March or April?", [(3,)]),
        ("3月和4月有多少航班？", [(3,)]),
        ("How many flights in March and July?", None),
        ("How many flights in March, April and July?", None),
    ],
)
def test_two_months_are_both_counted_or_declined(
    flights: Chat, question: str, rows: Rows | None
) -> None:
    flights.ask(question)
    assert flights.rows == rows


def test_customers_by_country_are_counted_for_each_country(shop: Chat) -> None:
    shop.ask("customers by country")
    assert holds(shop.rows, [("Austria", 2), ("Chile", 1)]), shop.sql


def test_groups_without_rows_make_fewer_than_a_decline(shop: Chat) -> None:
    shop.ask("Which artists have fewer than 2 albums?")
    assert shop.rows is None, shop.sql


def test_the_busiest_day_of_the_year_is_no_day_of_a_month(flights: Chat) -> None:
    flights.ask("busiest day of the year")
    assert flights.rows is None, flights.sql


ORDERS = {"orders.csv": "customer,number,amount\n00123,1,100\n12345,2,2024\n00123,3,50\n"}
SALES = {
    "sales_2023.csv": "customer,amount\nAnna,100\nBob,2024\n",
    "sales_2024.csv": "customer,amount\nAnna,300\nCid,2024\n",
}


@pytest.mark.parametrize(
    ("files", "question", "rows"),
    [
        (SALES, "total amount in 2024", [(2324,)]),
        (SALES, "total amount 2023", [(2124,)]),
        (SALES, "total amount per year", [(2023, 2124), (2024, 2324)]),
        (ORDERS, "total amount in 2024", None),
        (ORDERS, "total amount 2024", None),
        (ORDERS, "orders with amount 50", [("00123", 3, 50)]),
        (ORDERS, "show orders of customer 00123", [("00123", 1, 100), ("00123", 3, 50)]),
        (ORDERS, "how many orders does customer 00123 have", [(2,)]),
        (ORDERS, "how many orders did 00123 place", [(2,)]),
        (ORDERS, "show orders of customer 12345", [("12345", 2, 2024)]),
        (ORDERS, "how many rows", [(3,)]),
        (ORDERS, "how many records are there?", [(3,)]),
        (ORDERS, "number of rows", [(3,)]),
        (ORDERS, "how many rows have amount 50", [(1,)]),
        (ORDERS, "how many people", None),
        (SALES | ORDERS, "how many rows", None),
    ],
)
def test_a_question_about_files_of_data(
    files: dict[str, str], question: str, rows: Rows | None, tmp_path: Path
) -> None:
    """A year is a time and never an amount, digits after a zero are a code, and the rows of the
    only table can be counted.
    """
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with chat_about(tmp_path) as chat:
        answer = chat.ask(question)
        assert chat.rows == rows or holds(chat.rows, rows or []), (chat.sql, answer)


@pytest.mark.parametrize(
    ("question", "key"),
    [("Which airport had the most arrivals?", "dest"), ("most departures by airport", "origin")],
)
def test_what_is_counted_says_which_key_leads_to_it(flights: Chat, question: str, key: str) -> None:
    flights.ask(question)
    assert f"flights.{key} = airports.faa" in flights.sql
