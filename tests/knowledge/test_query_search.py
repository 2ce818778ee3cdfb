"""Queries are found by the words of a question, in either language; terms by their names."""

import pytest

from longtable.knowledge.entries import Knowledge, Term, VerifiedQuery
from longtable.knowledge.query_search import QuerySearch

TERMS = [
    Term(term="platinum client", synonyms=["VIP"], meaning="spends over 43 dollars"),
    Term(term="client", meaning="a customer"),
    Term(term="南美线", synonyms=["South America line"], meaning="orders to South America"),
]
QUERIES = [
    VerifiedQuery(name="orders", question="How many orders came in each month?", sql="SELECT 1"),
    VerifiedQuery(
        name="tracks", question="Which tracks are longest?", wordings=["最长的歌曲"], sql="SELECT 2"
    ),
    VerifiedQuery(name="vips", question="What does a VIP spend?", sql="SELECT 3"),
    VerifiedQuery(name="countries", question="各国客户数量", sql="SELECT 4"),
]
SEARCH = QuerySearch(Knowledge(TERMS, "", QUERIES))


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("monthly order counts: orders by month", "orders"),
        ("the longest track", "tracks"),
        ("哪些歌曲最长？", "tracks"),
        ("客户在各国的数量", "countries"),
        ("what do platinum clients buy", "vips"),
        ("ORDERS?", "orders"),
    ],
)
def test_the_query_that_shares_most_is_first(question: str, first: str) -> None:
    assert SEARCH.queries(question)[0].query.name == first


@pytest.mark.parametrize("question", ["", "?!", "zebra", '" OR *', "NEAR(x y)", "\x00"])
def test_what_shares_nothing_finds_nothing_and_no_text_is_an_operator(question: str) -> None:
    assert SEARCH.queries(question) == []


def test_a_query_of_many_wordings_is_found_once() -> None:
    wordings = [f"orders of month {number}" for number in range(40)]
    many = VerifiedQuery(name="many", question="orders", wordings=wordings, sql="SELECT 1")
    found = QuerySearch(Knowledge(queries=[many, *QUERIES])).queries("orders month tracks", 3)
    assert [hit.query.name for hit in found].count("many") == 1
    assert len(found) == 3


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("How many Platinum Clients?", ["platinum client", "client"]),
        ("vip or not", ["platinum client"]),
        ("the clientele", []),
        ("看看南美线的订单", ["南美线"]),
        ("south america lines", ["南美线"]),
        ("South America", []),
    ],
)
def test_terms_are_found_by_whole_words_of_any_case_and_number(
    question: str, terms: list[str]
) -> None:
    assert [term.term for term in SEARCH.terms(question)] == terms


@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        ("US", "tell us more", False),
        ("US", "sales in the US?", True),
        ("IT", "is it late", False),
        ("C++", "a C++ shop", True),
        ("C++", "vitamin c", False),
        ("%", "what % of orders", True),
        ("🛫", "🛫 today", True),
        ("VIP客户", "VIP客户有多少", True),
        ("VIP客户", "SVIP客户有多少", False),
        ("南美线", "南美 线", False),
    ],
)
def test_names_that_are_everyday_words_or_signs_stand_as_written(
    name: str, text: str, is_named: bool
) -> None:
    search = QuerySearch(Knowledge([Term(term=name, meaning="x")]))
    assert bool(search.terms(text)) is is_named
