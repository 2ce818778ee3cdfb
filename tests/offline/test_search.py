"""The reader that searches: each kind of link and each kind of composition, on a schema of its own."""

import pytest

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.chunks import Match
from longtable.app.offline.compose import render
from longtable.app.offline.search.lattice import paths
from longtable.app.offline.search.link_schema import schema_links, spells
from longtable.app.offline.search.link_values import more_texts, value_links
from longtable.app.offline.search.link_words import word_links
from longtable.app.offline.search.reader import readings, search
from longtable.app.offline.text import tokenize

Row = tuple[object, ...]


def table(name: str, columns: str, *rows: Row) -> Table:
    """Return a described table; `columns` are 'name TYPE [key | ->table.column]', one a comma."""
    found = []
    for place, text in enumerate(columns.split(",")):
        column, kind, *mark = text.split()
        target = mark[0].removeprefix("->") if mark and mark[0].startswith("->") else ""
        found.append(Column(name, column, kind, mark == ["key"], target, samples=tuple(row[place] for row in rows)))
    return Table(name, rows=len(rows) * 10, columns=tuple(found), described=True)


TABLES = (
    table("hangar", "hgr_id INTEGER key,hgr_nm TEXT,city TEXT,area_sqm INTEGER", (1, "North", "Bergen", 900), (2, "Quay", "Oslo", 400)),
    table(
        "glider",
        "gl_id INTEGER key,gl_nm TEXT,maker TEXT,hgr_id INTEGER ->hangar.hgr_id,acq_dt DATE,price_eur REAL,oa_flg TEXT,stat TEXT",
        (1, "Gull", "Falke", 1, "2019-04-02", 40000.0, "Y", "in repair"),
        (2, "Tern", "Aero", 2, "2021-05-06", 65000.0, "N", "active"),
    ),
    table(
        "pilot",
        "pilot_id INTEGER key,full_nm TEXT,hire_dt DATE,email TEXT",
        (1, "Ida Moe", "2015-01-01", None),
        (2, "Per Lie", "2020-03-04", "p@x"),
    ),
    table(
        "flight",
        "flt_id INTEGER key,gl_id INTEGER ->glider.gl_id,pilot_id INTEGER ->pilot.pilot_id,flt_dt DATE,minutes INTEGER,weather TEXT",
        (1, 1, 1, "2024-06-01", 35, "fog"),
        (2, 1, 2, "2024-06-03", 80, "sun"),
        (3, 2, 2, "2025-01-03", 12, "sun"),
    ),
)
CATALOG = Catalog("sqlite", {each.name: each for each in TABLES}, 1, len(TABLES))
VALUES = {"in repair": (Match("glider", "stat", "in repair", "exact"),), "ida moe": (Match("pilot", "full_nm", "Ida Moe", "exact"),)}


def sql(question: str) -> str:
    found = search(tokenize(question), CATALOG, VALUES)
    return render(found.query, "sqlite") if found is not None else ""


@pytest.mark.parametrize(
    ("words", "linked"),
    [
        ("gliders", ("table", "glider", "")),
        ("hangar", ("table", "hangar", "")),
        ("minutes", ("column", "flight", "minutes")),
        ("hire date", ("column", "pilot", "hire_dt")),
        ("open access", ("flag", "glider", "oa_flg")),
        ("in repair", ("value", "glider", "stat")),
        ("Ida Moe", ("value", "pilot", "full_nm")),
        ("foggy weather", None),
    ],
)
def test_a_span_is_linked_to_what_it_may_mean(words: str, linked: tuple[str, str, str] | None) -> None:
    tokens = tokenize(words)
    links = [*schema_links(tokens, CATALOG), *value_links(tokens, CATALOG, VALUES)]
    whole = [link for link in links if (link.start, link.end) == (0, len(tokens))]
    assert (linked in [(link.kind, link.table, link.column) for link in whole]) == (linked is not None)


@pytest.mark.parametrize(
    ("words", "parts", "fits"),
    [
        (("quantity", "on", "hand"), ("qty", "oh"), True),
        (("open", "access"), ("oa",), True),
        (("24", "hours"), ("24h",), True),
        (("open",), ("oa",), False),
        (("unit", "price"), ("qty", "oh"), False),
    ],
)
def test_letters_spell_words(words: tuple[str, ...], parts: tuple[str, ...], fits: bool) -> None:
    assert spells(words, parts) is fits


def test_the_cheapest_cut_of_a_question_comes_first_and_knows_its_tables() -> None:
    tokens = tokenize("How many gliders are in repair?")
    links = [*schema_links(tokens, CATALOG), *value_links(tokens, CATALOG, VALUES), *word_links(tokens, CATALOG)]
    found = paths(links, len(tokens), CATALOG)
    assert found[0].tables == {"glider"}
    assert [link.kind for link in found[0].links if link.kind not in ("filler", "mark")] == ["op", "table", "value"]
    assert [path.cost for path in found] == sorted(path.cost for path in found)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How many gliders are in repair?", ["SELECT COUNT(*) FROM glider WHERE stat = 'in repair'"]),
        ("How many open access gliders are there?", ["COUNT(*)", "oa_flg = 'Y'"]),
        ("What is the average price of the gliders per maker?", ["maker, AVG(price_eur)", "GROUP BY maker"]),
        ("Which three gliders are the most expensive?", ["ORDER BY price_eur DESC", "LIMIT 3"]),
        ("gliders acquired before 2020", ["acq_dt", "< 2020"]),
        ("flights between 1 June 2024 and 30 June 2024", ["flt_dt BETWEEN '2024-06-01' AND '2024-06-30'"]),
        ("Number of flights per month in 2024", ["STRFTIME('%Y-%m', flt_dt), COUNT(*)", "= 2024", "GROUP BY"]),
        ("Which pilots have made more than 4 flights?", ["pilot.full_nm", "HAVING COUNT(*) > 4"]),
        ("How many pilots have more than 4 flights?", ["SELECT COUNT(*) FROM pilot WHERE pilot_id IN", "HAVING COUNT(*) > 4"]),
        ("Which pilots have never had a flight?", ["NOT pilot_id IN (SELECT pilot_id FROM flight"]),
        ("pilots with no email", ["email IS NULL"]),
        ("Which pilot has the most flights?", ["COUNT(*)", "GROUP BY", "DESC", "LIMIT 1"]),
        ("Names of the gliders in the Quay hangar with their price", ["glider", "JOIN hangar", "hgr_nm = 'Quay'", "price_eur"]),
        ("Total minutes per pilot, highest first", ["SUM(flight.minutes)", "GROUP BY", "DESC"]),
        ("flights longer than 30 minutes", ["minutes > 30"]),
        ("the lowest and the highest price of the gliders", ["MIN(price_eur)", "MAX(price_eur)"]),
        ("When was Ida Moe hired?", ["hire_dt", "full_nm = 'Ida Moe'"]),
        ("gliders with Gu in their name", ["gl_nm LIKE '%Gu%'"]),
    ],
)
def test_a_question_becomes_its_query(question: str, parts: list[str]) -> None:
    found = sql(question)
    assert all(part in found for part in parts), found


@pytest.mark.parametrize(
    "question",
    [
        "How many purple gliders are there?",
        "How many unicorns do we have?",
        "What are their names?",
        "Which gliders like cheese?",
        "gliders before",
    ],
)
def test_what_has_no_place_is_not_answered(question: str) -> None:
    assert sql(question) == ""


def test_the_same_question_is_read_the_same_way_with_the_same_cost() -> None:
    tokens = tokenize("Total minutes per pilot in 2024")
    first, second = readings(tokens, CATALOG, VALUES), readings(tokens, CATALOG, VALUES)
    assert [(each.query, each.cost) for each in first] == [(each.query, each.cost) for each in second]


def test_states_and_families_of_words_are_looked_up_before_the_search() -> None:
    texts = more_texts(tokenize("Which failed checks were out of order?"), ())
    assert {"failed", "fail", "check"} <= set(texts)
    assert "out of order" in texts
