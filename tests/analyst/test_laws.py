"""Laws of the search: what holds for every question."""

import pytest

from longtable.analyst.lattice import Meaning, cheapest_paths
from longtable.analyst.lexicon import abbreviates, costs, lemma, likeness, stem, tokenize
from longtable.analyst.links import Match, all_meanings
from longtable.analyst.query import read_sql, write_sql
from longtable.analyst.reading import read_question
from longtable.analyst.schema import Catalog, Column, Table, read_catalog
from tests.analyst.conftest import Chat

QUESTIONS = [
    "How many tracks are there?",
    "Which artist has the most albums?",
    "top 2 customers by revenue",
    "Tracks longer than 6 minutes",
    "Average total of invoices per year",
    "Which artists have no albums?",
    "How many customers are not from Austria?",
    "Artists with more than 1 album",
    "Invoices with a total above the average",
    "How many invoices were there between March and May 2021?",
    "Customers from Chile or Austria",
    "Tracks containing '10%_'",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_question_gets_the_same_query(shop: Chat, question: str) -> None:
    shop.ask(question)
    first = shop.sql
    shop.ask(question, again=True)
    assert shop.sql == first


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
def test_a_query_reads_back_from_its_sql(shop: Chat, question: str, dialect: str) -> None:
    shop.ask(question)
    query = read_sql(shop.sql, "sqlite")
    assert query is not None, shop.sql
    assert read_sql(write_sql(query, dialect), dialect) == query


@pytest.fixture
def catalog(shop: Chat) -> Catalog:
    listed = str(shop.run("list_tables", {}, "1").text)
    described = str(
        shop.run(
            "describe_tables",
            {"names": ["artist", "album", "genre", "track", "customer", "invoice"]},
            "2",
        ).text
    )
    found = read_catalog((("list", listed), ("describe", described)))
    assert found is not None
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_word_nobody_understands_never_makes_a_reading_cheaper(
    catalog: Catalog, question: str
) -> None:
    plain = read_question(tokenize(question), catalog, {})
    strange = read_question(tokenize(question.replace("?", " zorbled?")), catalog, {})
    assert strange.cost >= plain.cost - 1e-9
    if "?" in question:
        assert strange.query is None or strange.cost > costs.GOOD


@pytest.mark.parametrize("question", QUESTIONS)
def test_paths_cover_each_word_once_and_come_cheapest_first(
    catalog: Catalog, question: str
) -> None:
    tokens = tokenize(question)
    paths = cheapest_paths(all_meanings(tokens, catalog, {}), len(tokens), catalog)
    assert [path.cost for path in paths] == sorted(path.cost for path in paths)
    for path in paths:
        places = [place for each in path.meanings for place in range(each.start, each.end)]
        assert places == list(range(len(tokens)))


def test_an_exact_value_is_cheaper_than_a_part_of_a_longer_one() -> None:
    table = Table("planes", columns=(Column("planes", "manufacturer", "TEXT"),), described=True)
    values = {
        "airbus": (
            Match("planes", "manufacturer", "AIRBUS INDUSTRIE", "partial"),
            Match("planes", "manufacturer", "AIRBUS", "exact"),
        )
    }
    for word in ("AIRBUS", "airbus", "Airbus"):
        prices = {
            each.kind: each.cost
            for each in all_meanings(tokenize(word), Catalog("sqlite", {"planes": table}), values)
        }
        assert prices["value"] < prices["part"]


def test_one_long_span_is_cheaper_than_two_short_ones() -> None:
    table = Table("t", columns=(Column("t", "a"),), described=True)
    catalog = Catalog("sqlite", {"t": table})
    halves = [Meaning(n, n + 1, "column", costs.LINK, "a", "t", "a") for n in range(2)]
    whole = Meaning(0, 2, "column", costs.LINK, "a b", "t", "a")
    assert cheapest_paths([*halves, whole], 2, catalog)[0].meanings == (whole,)


def test_the_same_answers_give_the_same_catalogue_object(catalog: Catalog, shop: Chat) -> None:
    listed = str(shop.run("list_tables", {}, "1").text)
    assert read_catalog((("list", listed),)) is read_catalog((("list", listed),))


def test_a_way_up_and_down_again_is_no_way_to_join(catalog: Catalog) -> None:
    """Albums and customers share nothing; invoices of a customer's tracks do not exist here."""
    assert catalog.path("track", "artist") is not None
    assert catalog.path("artist", "customer") is None


@pytest.mark.parametrize(
    ("word", "name", "least"),
    [
        ("tracks", "track", 1.0),
        ("quantity", "qty", 0.95),
        ("customers", "client", 0.85),
        ("departure", "departed", 0.85),
        ("destinations", "dest", 0.9),
    ],
)
def test_a_word_is_like_a_name(word: str, name: str, least: float) -> None:
    assert likeness(word, name) >= least


@pytest.mark.parametrize(
    ("word", "name"), [("carrier", "car"), ("agency", "age"), ("store", "score")]
)
def test_a_word_is_not_like_another(word: str, name: str) -> None:
    assert likeness(word, name) < 0.78


def test_words_have_lemmas_and_stems() -> None:
    assert [lemma(word) for word in ("cities", "buses", "people", "boxes", "status")] == [
        "city",
        "bus",
        "person",
        "box",
        "status",
    ]
    assert stem("departed") == stem("departure") == stem("departing")
    assert abbreviates(("tail", "number"), "tailnum")
    assert not abbreviates(("tail", "of", "number"), "tailnum")
