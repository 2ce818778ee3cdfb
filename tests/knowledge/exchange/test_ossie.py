"""Semantic models of Apache Ossie become terms, and terms become metrics that read back."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.base.words import fold
from longtable.knowledge.entries import Place, Term
from longtable.knowledge.exchange.ossie import read_ossie, write_ossie
from longtable.knowledge.exchange.untrusted import MOST_CHARS, MOST_ENTRIES
from tests.support.json_values import json_values

Entry = Mapping[str, object]


def expression(sql: str, dialect: str = "ANSI_SQL") -> Entry:
    return {"dialects": [{"dialect": dialect, "expression": sql}]}


REVENUE = {
    "name": "net revenue",
    "description": "What was paid, less what was sent back.",
    "expression": {
        "dialects": [
            {"dialect": "SNOWFLAKE", "expression": "SUM(orders.paid)::NUMBER"},
            {"dialect": "ANSI_SQL", "expression": "SUM(orders.paid - orders.refunded)"},
        ]
    },
    "ai_context": {
        "instructions": "Leave out test customers.",
        "synonyms": ["净收入", "sales"],
        "examples": ["What did we earn in May?"],
    },
}
STATUS = {
    "name": "status",
    "expression": expression("order_status"),
    "description": "Where the order is.",
    "ai_context": {"synonyms": ["订单状态"]},
    "dimension": {"is_time": False},
}
ORDERS = {
    "name": "orders",
    "source": "shop.public.orders",
    "fields": [STATUS, {"name": "id", "expression": expression("id")}],
}
MODEL = {
    "name": "shop",
    "description": "All of the shop.",
    "datasets": [ORDERS],
    "relationships": [],
    "metrics": [REVENUE],
}


def wrapped(model: object) -> str:
    return json.dumps({"version": "0.1.1", "semantic_model": [model]})


def flat(model: Entry) -> str:
    return json.dumps({"version": "0.2.0.dev0", **model})


def with_metric(metric: object) -> str:
    return wrapped({"name": "shop", "datasets": [], "metrics": [metric]})


def with_fields(*fields: object) -> str:
    return wrapped({"name": "shop", "datasets": [{"name": "orders", "fields": list(fields)}]})


@pytest.mark.parametrize("text", [wrapped(MODEL), flat(MODEL)])
def test_metrics_and_described_fields_of_either_shape_become_terms(text: str) -> None:
    terms, problems = read_ossie(text, "shop.json")
    assert terms == [
        Term(
            term="net revenue",
            synonyms=["净收入", "sales"],
            meaning="What was paid, less what was sent back.\nLeave out test customers.",
            sql="SUM(orders.paid - orders.refunded)",
        ),
        Term(
            term="status",
            synonyms=["订单状态"],
            meaning="Where the order is.",
            sql="orders.order_status",
        ),
    ]
    assert problems == []
    assert terms[0].place == Place("shop.json")


def test_a_text_as_context_is_part_of_the_meaning() -> None:
    metric = {**REVENUE, "description": None, "ai_context": "In euros."}
    assert read_ossie(with_metric(metric), "a.json")[0][0].meaning == "In euros."


@pytest.mark.parametrize(
    ("dialects", "sql"),
    [
        ([("SNOWFLAKE", "a::INT"), ("BIGQUERY", "INT64(a)")], "a::INT"),
        ([("MDX", "[Measures].[a]"), ("DATABRICKS", "int(a)")], "int(a)"),
        ([("MDX", "[Measures].[a]"), ("TABLEAU", "INT([a])"), ("MAQL", "SELECT {a}")], ""),
        ([], ""),
    ],
)
def test_only_sql_is_taken_for_sql(dialects: list[tuple[str, str]], sql: str) -> None:
    listed = [{"dialect": name, "expression": text} for name, text in dialects]
    metric = {"name": "a", "description": "A thing.", "expression": {"dialects": listed}}
    terms, problems = read_ossie(with_metric(metric), "a.json")
    assert [term.sql for term in terms] == [sql]
    assert problems == []


@pytest.mark.parametrize(
    ("given_expression", "sql"),
    [
        (expression("paid"), "orders.paid"),
        (expression('"Paid at"'), 'orders."Paid at"'),
        (expression("金额"), "orders.金额"),
        (expression("orders.paid"), "orders.paid"),
        (expression("lower(email)"), "lower(email)"),
        (None, "orders.field"),
    ],
)
def test_the_sql_of_a_field_names_its_dataset_unless_it_is_computed(
    given_expression: object, sql: str
) -> None:
    each = {"name": "field", "description": "A field.", "expression": given_expression}
    assert [term.sql for term in read_ossie(with_fields(each), "a.json")[0]] == [sql]


def test_fields_of_one_name_are_told_apart_by_their_datasets() -> None:
    datasets = [{"name": name, "fields": [STATUS]} for name in ("orders", "parcels")]
    plain = {**STATUS, "description": "", "ai_context": {}}
    datasets.append({"name": "customers", "fields": [plain]})
    terms, problems = read_ossie(flat({"datasets": datasets}), "a.json")
    assert [term.term for term in terms] == ["orders.status", "parcels.status"]
    assert [term.synonyms for term in terms] == [["订单状态"], []]
    assert len(problems) == 1
    assert "'parcels.status' is kept without the synonym '订单状态'" in problems[0].message


def test_a_synonym_gives_way_to_the_name_of_another_term() -> None:
    first = {"name": "gross", "description": "All.", "ai_context": {"synonyms": ["Net", "total"]}}
    second = {"name": "net", "description": "Less.", "ai_context": {"synonyms": ["total", "net"]}}
    terms, problems = read_ossie(flat({"metrics": [first, second]}), "a.json")
    assert [term.names for term in terms] == [["gross", "total"], ["net", "net"]]
    assert len(problems) == 2


def test_a_second_metric_of_one_name_is_left_out() -> None:
    terms, problems = read_ossie(flat({"metrics": [REVENUE, REVENUE]}), "a.json")
    assert len(terms) == 1
    assert "'net revenue' is already a name" in problems[0].message


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("revenue", "$.semantic_model[0].metrics[0]: an object is needed, found a text"),
        ({**REVENUE, "name": None}, "metrics[0].name: a name is needed"),
        ({**REVENUE, "name": " "}, "metrics[0].name: a name is needed"),
        ({**REVENUE, "name": 7}, "metrics[0].name: a text is needed, found a number"),
        ({**REVENUE, "description": []}, "metrics[0].description: a text is needed, found a list"),
        ({**REVENUE, "ai_context": 1}, "metrics[0].ai_context: a text or an object is needed"),
        ({**REVENUE, "ai_context": {"synonyms": "x"}}, "ai_context.synonyms: a list is needed"),
        ({**REVENUE, "ai_context": {"synonyms": ["a", 1]}}, "ai_context.synonyms[1]: a text is"),
        ({**REVENUE, "ai_context": {"instructions": {}}}, "ai_context.instructions: a text is"),
        ({**REVENUE, "expression": "SUM(x)"}, "metrics[0].expression: an object is needed"),
        ({**REVENUE, "expression": {}}, "expression.dialects: a list is needed, found null"),
        ({**REVENUE, "expression": {"dialects": [1]}}, "expression.dialects[0]: an object is"),
        ({**REVENUE, "expression": expression("x" * 4_001)}, "dialects[0].expression: at most"),
        ({**REVENUE, "description": "x" * 4_001}, "metrics[0].description: at most 4,000"),
        ({**REVENUE, "description": "\ud800"}, "metrics[0].description: half of a surrogate"),
        ({"name": "a"}, "metrics[0]: a metric needs a description, or an expression in SQL"),
    ],
)
def test_a_wrong_shape_is_a_problem_with_its_path(metric: object, message: str) -> None:
    terms, problems = read_ossie(with_metric(metric), "a.json")
    assert terms == []
    assert len(problems) == 1
    assert message in problems[0].message
    assert str(problems[0]).startswith("a.json: $.semantic_model[0]")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "$: an object is needed, found a list"),
        (None, "$: an object is needed, found null"),
        ({}, "$: neither `semantic_model` nor"),
        ({"semantic_model": {}}, "$.semantic_model: a list is needed, found an object"),
        ({"semantic_model": [1]}, "$.semantic_model[0]: an object is needed, found a number"),
        ({"datasets": 1}, "$.datasets: a list is needed, found a number"),
        ({"datasets": [{}]}, "$.datasets[0].name: a name is needed"),
        ({"datasets": [{"name": "a", "fields": {}}]}, "$.datasets[0].fields: a list is needed"),
        ({"datasets": [{"name": "a", "fields": [{}]}]}, "$.datasets[0].fields[0].name: a name"),
    ],
)
def test_a_document_of_another_shape_is_a_problem(document: object, message: str) -> None:
    terms, problems = read_ossie(json.dumps(document), "a.json")
    assert terms == []
    assert len(problems) == 1
    assert message in problems[0].message


def test_one_wrong_entry_does_not_cost_the_others() -> None:
    terms, problems = read_ossie(flat({"metrics": [1, REVENUE], "datasets": [{}, ORDERS]}), "a")
    assert [term.term for term in terms] == ["net revenue", "status"]
    assert len(problems) == 2


def test_what_is_no_json_is_one_problem() -> None:
    for text in ("", "version: 0.1.1", "[" * 100_000, "x" * 10_000_001):
        terms, problems = read_ossie(text, "a.json")
        assert terms == []
        assert len(problems) == 1


def test_a_value_that_is_no_number_is_missing() -> None:
    text = '{"metrics": [{"name": "a", "description": "A.", "ai_context": NaN}]}'
    assert read_ossie(text, "a.json") == ([Term(term="a", synonyms=[], meaning="A.")], [])


def test_entries_beyond_the_limit_are_left_out_with_one_problem() -> None:
    metrics = [{"name": f"m{number}", "description": "A."} for number in range(MOST_ENTRIES + 5)]
    datasets = [ORDERS, ORDERS]
    terms, problems = read_ossie(flat({"metrics": metrics, "datasets": datasets}), "a.json")
    assert len(terms) == MOST_ENTRIES
    assert [problem.message for problem in problems] == [
        "at most 20,000 entries; others are left out"
    ]


def test_wrong_entries_count_against_the_limit() -> None:
    problems = read_ossie(flat({"metrics": [1] * 1_000_000}), "a.json")[1]
    assert len(problems) == MOST_ENTRIES + 1


def test_what_is_written_has_what_the_specification_asks_for() -> None:
    terms = [
        Term(term="净收入", synonyms=["net"], meaning="已付减退款", sql="SUM(paid)"),
        Term(term="b", sql="1"),
    ]
    text = write_ossie(terms, "shop")
    document = json.loads(text)
    assert document["version"] == "0.1.1"
    model = document["semantic_model"][0]
    assert model["name"] == "shop"
    assert set(model["datasets"][0]) == {"name", "source", "description"}
    assert model["metrics"] == [
        {
            "name": "净收入",
            "expression": expression("SUM(paid)"),
            "description": "已付减退款",
            "ai_context": {"synonyms": ["net"]},
        },
        {"name": "b", "expression": expression("1")},
    ]
    assert "净收入" in text


TEXTS = st.text(max_size=30).map(str.strip)
NAMES = TEXTS.filter(bool)


@st.composite
def glossaries(draw: st.DrawFn) -> list[Term]:
    """Draw terms whose names are all different, as in a glossary."""
    terms: list[Term] = []
    names = draw(st.lists(NAMES, unique_by=fold, max_size=12))
    while names:
        count = draw(st.integers(1, len(names)))
        meaning = draw(TEXTS)
        sql = draw(TEXTS if meaning else NAMES)
        terms.append(Term(term=names[0], synonyms=names[1:count], meaning=meaning, sql=sql))
        names = names[count:]
    return terms


@given(glossaries(), NAMES, st.booleans())
def test_terms_survive_being_written_and_read(terms: list[Term], name: str, flat: bool) -> None:
    assert read_ossie(write_ossie(terms, name, flat=flat), "a.json") == (terms, [])


def test_the_flat_version_is_the_model_itself() -> None:
    document = json.loads(write_ossie([Term(term="b", sql="1")], "shop", flat=True))
    assert (document["version"], document["name"]) == ("0.2.0.dev0", "shop")
    assert "semantic_model" not in document


def test_the_longest_texts_survive() -> None:
    long = "很" * MOST_CHARS
    terms = [Term(term=long, synonyms=[f"{long[1:]}x"], meaning=long, sql=long)]
    assert read_ossie(write_ossie(terms, "a"), "a.json") == (terms, [])


JSON = json_values(
    [
        "semantic_model",
        "datasets",
        "metrics",
        "fields",
        "name",
        "expression",
        "dialects",
        "dialect",
        "ai_context",
        "synonyms",
        "description",
        "instructions",
    ]
)


@given(JSON)
def test_no_document_makes_the_reader_raise(document: object) -> None:
    terms, problems = read_ossie(json.dumps(document), "a.json")
    assert terms or problems or isinstance(document, dict)
