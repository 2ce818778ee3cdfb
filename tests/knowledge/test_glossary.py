"""A glossary is read with the line of each mistake, and written so that it reads back alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.knowledge.entries import Term
from longtable.knowledge.glossary import read_glossary, write_glossary

GOOD = """# A shop.
[[term]]
term = "house account"
synonyms = ["corporate account", "公司户"]
meaning = "A customer who buys for a company."
sql = "Customer.Company IS NOT NULL"

[[term]]
term = "slow mover"
meaning = "A product that sold fewer than ten times."
"""


def test_terms_are_read_with_their_place() -> None:
    terms, problems = read_glossary(GOOD)
    assert problems == []
    assert [(term.term, str(term.place)) for term in terms] == [
        ("house account", "glossary.toml:2"),
        ("slow mover", "glossary.toml:8"),
    ]
    assert terms[0].names == ["house account", "corporate account", "公司户"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('term = "x"', "glossary.toml:12: 'x' needs a `meaning`, or the `sql` that says it"),
        ('meaning = "y"', "glossary.toml:12: a term needs a name: term = ..."),
        ('term = "x"\nmeening = "y"', "glossary.toml:12: `meening` is not known; did you mean"),
        ('term = "x"\nmeaning = 5', "glossary.toml:12: `meaning` must be a text, found int"),
        ('term = "x"\nmeaning = "y"\nsynonyms = "z"', "write the synonyms as a list of texts"),
        ('term = "x"\nmeaning = "y"\nsynonyms = [" "]', "a synonym needs 1 to 200 characters"),
        (f'term = "x"\nsql = "{"y" * 4_001}"', "`sql` may have 4,000 characters, found 4,001"),
        (
            'term = "Corporate  Account"\nmeaning = "y"',
            "'Corporate  Account' is already a name of 'house account' (glossary.toml:2)",
        ),
    ],
)
def test_a_mistake_leaves_out_one_term_and_is_told_with_its_line(table: str, said: str) -> None:
    terms, problems = read_glossary(f"{GOOD}\n[[term]]\n{table}\n")
    assert [term.term for term in terms] == ["house account", "slow mover"]
    assert [said in str(problem) for problem in problems] == [True]


@pytest.mark.parametrize("text", ["[[term]\n", 'term = "x"\n', "term = [1]\n", "[term]\n", "x = 1"])
def test_what_is_no_glossary_gives_problems_and_no_term(text: str) -> None:
    terms, problems = read_glossary(text)
    assert terms == []
    assert problems


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * 100_000, "glossary.toml:3: lists or tables are nested too deeply"),
        ("{x=" * 100_000, "glossary.toml:3: lists or tables are nested too deeply"),
        ("9" * 5_000, "glossary.toml: a number has too many digits"),
    ],
)
def test_what_python_cannot_read_is_a_problem(value: str, said: str) -> None:
    terms, problems = read_glossary(f"[[term]]\nterm = 'x'\nmeaning = {value}\n")
    assert terms == []
    assert [str(problem) for problem in problems] == [said]


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).map(lambda text: f"x{text}x")


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30).map("x{}x".format)


def test_a_name_of_two_lines_is_refused() -> None:
    text = '[[term]]\nterm = "x"\nsynonyms = ["y\\n\\n-- How many?\\nSELECT 9"]\nmeaning = "z"\n'
    terms, problems = read_glossary(text)
    assert terms == []
    assert [str(problem) for problem in problems] == [
        "glossary.toml:1: a name has no line break and no other control character"
    ]


@given(st.lists(st.tuples(NAMES, NAMES, WORDS), max_size=5))
def test_what_is_written_reads_back_alike(rows: list[tuple[str, str, str]]) -> None:
    terms = [
        Term(term=f"{name} {number}", synonyms=[f"{also} {number} also"], meaning=says)
        for number, (name, also, says) in enumerate(rows)
    ]
    read, problems = read_glossary(write_glossary(terms))
    assert problems == []
    assert read == terms
