"""nao's tests become verified queries; YAML that could do harm is refused before it is loaded."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.base.errors import MissingExtraError
from longtable.knowledge.entries import Place, Problem, VerifiedQuery
from longtable.knowledge.exchange.nao import MOST_ALIASES, read_nao
from longtable.knowledge.query_files import read_query, write_query

TEST = """\
name: total_revenue
prompt: What is the total revenue from all orders?
sql: |
  SELECT SUM(amount) as total_revenue
  FROM orders
"""


def problem_of(text: str) -> Problem:
    problem = read_nao(text, "tests/a.yml")
    assert isinstance(problem, Problem)
    assert problem.place.file == "tests/a.yml"
    return problem


def query_of(text: str) -> VerifiedQuery:
    query = read_nao(text, "tests/a.yml")
    assert isinstance(query, VerifiedQuery)
    return query


def test_a_test_is_a_verified_query() -> None:
    query = read_nao(TEST, "tests/total_revenue.yml")
    assert query == VerifiedQuery(
        name="total_revenue",
        question="What is the total revenue from all orders?",
        sql="SELECT SUM(amount) as total_revenue\nFROM orders",
    )
    assert query.place == Place("tests/total_revenue.yml", 1)


def test_a_chinese_test_survives_as_a_query_file() -> None:
    query = query_of(
        "name: 订单总数\nprompt: >\n  一共有\n  多少订单？\nsql: SELECT count(*) FROM 订单;\n"
    )
    assert query.name == "订单总数"
    assert query.question == "一共有 多少订单？"
    read = read_query(write_query(query), f"queries/{query.name}.sql")
    assert isinstance(read, VerifiedQuery)
    assert (read.question, read.sql) == (query.question, "SELECT count(*) FROM 订单")


def test_a_test_without_a_name_has_that_of_its_file() -> None:
    text = TEST.partition("\n")[2]
    query = read_nao(text, "tests/Total revenue.yaml")
    assert isinstance(query, VerifiedQuery)
    assert query.name == "total_revenue"


def test_a_name_is_made_fit_for_a_file() -> None:
    assert query_of(TEST.replace("total_revenue", "'../../etc/passwd'", 1)).name == "etc_passwd"


def test_other_keys_are_ignored() -> None:
    others = f"tags: [{'[money], ' * 50}]\nday: 2026-11-27\n"
    assert query_of(TEST + others) == query_of(TEST)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "`name`, `prompt` and `sql` are needed, found null"),
        ("- a\n- b", 0, "found a list"),
        ("name: a\nprompt: b", 0, "`sql`: a text is needed, found null"),
        ("name: a\nsql: b", 0, "`prompt`: a text is needed, found null"),
        ("prompt: yes\nsql: b", 0, "`prompt`: a text is needed, found true or false"),
        ("prompt: b\nsql: 2026-11-27", 0, "`sql`: a text is needed, found date"),
        ("name: 5\nprompt: b\nsql: c", 0, "`name`: a text is needed, found a number"),
        ("prompt: ' '\nsql: b", 0, "`prompt`: the question is missing"),
        ("prompt: a\nsql: '-- to do'", 0, "`sql`: the SQL is missing"),
        ('prompt: "\\ud800"\nsql: b', 0, "`prompt`: half of a surrogate pair"),
        (f"prompt: a\nsql: {'x' * 4_001}", 0, "`sql`: at most 4,000 characters, found 4,001"),
        ("name: a\nprompt: [b\nsql: c", 3, "this is no YAML of one document"),
        ("name: a\n---\nname: b", 2, "this is no YAML of one document"),
        ("name: a\n\tprompt: b", 2, "this is no YAML of one document"),
        ("name: \x00", 0, "this YAML cannot be read"),
        ("name: 2026-13-45", 0, "this YAML cannot be read"),
        (f"name: {'9' * 5_000}", 0, "this YAML cannot be read"),
        (f"name: 1{':1' * 300}.5", 0, "this YAML cannot be read"),
        ("? [a]\n: b", 1, "unhashable key"),
        ("name: *b", 1, "undefined alias"),
        ("x" * 1_000_001, 0, "at most 1,000,000 characters of YAML, found 1,000,001"),
        ("name: a\n" * 2_000_000, 0, "at most 1,000,000 characters"),
        ("[" * 500_000, 0, "the YAML is nested too deeply"),
        ("- " * 400_000, 0, "the YAML is nested too deeply"),
        ("{a: " * 200_000, 0, "the YAML is nested too deeply"),
        ("name: !!python/object/apply:os.system [ls]", 0, "tags such as tag:yaml.org,2002:python"),
        ("name: !!int abc", 0, "tags such as tag:yaml.org,2002:int are not read"),
        ("a: &a {b: c}\nd:\n  <<: [*a, *a]", 0, "merge keys"),
    ],
)
def test_what_cannot_be_used_is_a_problem(text: str, line: int, message: str) -> None:
    problem = problem_of(text)
    assert message in problem.message
    assert problem.place.line == line


def test_aliases_are_read_up_to_a_limit() -> None:
    few = f"{TEST}a: &a x\nb: [{'*a, ' * MOST_ALIASES}]\n"
    assert query_of(few) == query_of(TEST)
    many = f"{TEST}a: &a x\nb: [{'*a, ' * (MOST_ALIASES + 1)}]\n"
    assert problem_of(many).message == "at most 100 aliases are read"


def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "yaml", None)
        with pytest.raises(MissingExtraError, match=r"without the extra `knowledge`"):
            read_nao(TEST, "tests/a.yml")


@given(st.text(alphabet="abc:{}[]&*!|>-?#,'\"\\ \n\t0129._<%@`\x00é订", max_size=40))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    assert isinstance(read_nao(text, "tests/a.yml"), VerifiedQuery | Problem)
