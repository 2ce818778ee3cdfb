"""What goes with a call is whole entries within a size, and names what it quotes."""

import pytest

from longtable.knowledge.entries import Term, VerifiedQuery
from longtable.knowledge.material import Found, ends_in, fitting, material_text, merged, term_line
from longtable.knowledge.query_search import FoundQuery

TERM = Term(term="mover", synonyms=["seller"], meaning="sells\nwell", sql="sold > 10")


def query(name: str, size: int = 10) -> VerifiedQuery:
    return VerifiedQuery(name=name, question=f"{name}?", sql="x" * size)


def test_the_material_has_rules_terms_and_queries_and_cites_them() -> None:
    found = fitting([TERM], "Euros.", [query("orders")])
    assert material_text(found) == (
        "Rules of the data's owner:\nEuros.\n\n"
        "Terms of the question:\n- mover (also: seller): sells well\n  SQL: sold > 10\n\n"
        "Queries that the owner checked for similar questions. Use one as it is where it answers"
        " the question; fill in its parameters:\n\n-- orders?\nxxxxxxxxxx"
    )
    assert found.cites == ["rules", "term: mover", "query: orders"]


def test_nothing_found_is_no_material() -> None:
    assert material_text(Found()) == ""
    assert Found().cites == []


def test_queries_that_fit_far_worse_than_the_best_are_left_out() -> None:
    scores = {"best": 10.0, "near": 4.0, "far": 3.0}
    found = [FoundQuery(query(name), score) for name, score in scores.items()]
    assert [each.name for each in merged(found)] == ["best", "near"]


def test_queries_by_words_and_by_meaning_take_turns() -> None:
    by_words = [FoundQuery(query("a"), 10.0), FoundQuery(query("b"), 9.0)]
    by_meaning = [query("c"), query("a"), query("d")]
    assert [each.name for each in merged(by_words, by_meaning)] == ["a", "c", "b", "d"]
    assert [each.name for each in merged([], by_meaning)] == ["c", "a", "d"]


def test_an_entry_that_does_not_fit_is_left_out_whole() -> None:
    found = fitting([TERM], "", [query("long", 500), query("short")], most_chars=200)
    assert [each.name for each in found.queries] == ["short"]
    assert [term.term for term in found.terms] == ["mover"]
    assert len(material_text(found)) < 400


def test_an_entry_that_is_too_long_leaves_room_for_those_after_it() -> None:
    long = Term(term="long", meaning="x" * 300)
    found = fitting([long, TERM], "", [query("orders")], most_chars=200)
    assert [term.term for term in found.terms] == ["mover"]
    assert [each.name for each in found.queries] == ["orders"]


def test_chinese_takes_more_of_the_room() -> None:
    assert fitting([Term(term="x", meaning="字" * 100)], "", [], most_chars=200).terms == []
    assert fitting([Term(term="x", meaning="w" * 100)], "", [], most_chars=200).terms


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("a > 5 -- big ones\nAND b = 'x'", "a > 5 AND b = 'x'"),
        ("a LIKE '%  %'", "a LIKE '%  %'"),
        ("a = 'it''s -- no /* comment */'  AND\n  b", "a = 'it''s -- no /* comment */' AND b"),
        ('"odd  name" > /* why\n */ 3', '"odd  name" > 3'),
    ],
)
def test_the_sql_of_a_term_stands_on_one_line_and_says_the_same(sql: str, line: str) -> None:
    assert term_line(Term(term="x", sql=sql)) == f"- x: \n  SQL: {line}"


def test_each_entry_ends_where_the_text_says() -> None:
    found = Found([TERM, Term(term="y", meaning="z")], "Euros.", [query("a"), query("b")])
    text = material_text(found)
    ends = ends_in(text, found)
    assert len(ends) == len(found.cites)
    assert [text[:end].rsplit("\n", 1)[-1] for end in ends] == [
        "Euros.",
        "  SQL: sold > 10",
        "- y: z",
        "xxxxxxxxxx",
        "xxxxxxxxxx",
    ]
