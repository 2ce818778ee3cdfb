"""A summary keeps no figure that the messages it cites do not have."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.summary.headings import read_sections
from longtable.memory.summary.sources import Sources, checked, numbers_in

TALK: list[BaseMessage] = [
    HumanMessage("How many orders came from Canada and how many from Peru? 二月呢？"),
    AIMessage(
        "", tool_calls=[{"name": "run_sql", "args": {"sql": "SELECT 1 WHERE n > 250"}, "id": "1"}]
    ),
    ToolMessage(
        '{"columns": ["n", "share"], "rows": [[1204], [0.3391], [12500000]], "row_count": 3}',
        tool_call_id="1",
    ),
    AIMessage("Canada has 1,204 orders, about 1.2k; Peru has 87."),
    HumanMessage("And how many flights left in May?"),
    AIMessage("28,796 flights left in May."),
]
SOURCES = Sources(
    list(enumerate(TALK, 1)), "## Facts and findings\n- Asked: old | Answered: 4,711 bags [m9]"
)


@pytest.mark.parametrize(
    "line",
    [
        "Canada has 1204 orders [m4]",
        "Canada has 1,204 orders [m4]",
        "Canada has 1.204 orders [m4]",
        "Canada has some 1.2k orders [m4]",
        "Canada has １，２０４ orders [m1-m4]",
        "the share is 34 % [m3]",
        "33.9 % of them, as 0.339 [m1]",
        "12.5 million in all [m3]",
        "共 1250 万 [m3]",
        "only those over 250 [m2]",
        "in May 2013 28,796 flights left [m5-m6]",
        "28,796 flights and 1,204 orders",
        "no figure at all [m2]",
        "4,711 bags",
    ],
)
def test_a_line_whose_figures_stand_in_the_round_it_cites_stays(line: str) -> None:
    assert checked([[f"- {line}"], *([[]] * 3), ["- x [m1]"]], SOURCES, 6)[0] == [f"- {line}"]


@pytest.mark.parametrize(
    "line",
    [
        "Canada has 1,205 orders [m4]",
        "Canada has 1,204 orders [m6]",
        "Canada has 12,040 orders [m4]",
        "Canada has 1.3k orders [m4]",
        "the share is 35 % [m3]",
        "1260 万 [m3]",
        "31,337 flights left",
        "4,711 bags [m2]",
    ],
)
def test_a_line_with_a_figure_that_no_cited_round_has_is_cut(line: str) -> None:
    assert checked([[f"- {line}"], *([[]] * 3), ["- x [m1]"]], SOURCES, 6)[0] == []


def test_of_a_line_of_several_sentences_only_the_invented_one_goes_and_the_citation_stays() -> None:
    lines = checked([["- Canada has 1,204 orders. Peru has 88. [m4]"], *([[]] * 4)], SOURCES, 6)
    assert lines[0] == ["- Canada has 1,204 orders. [m4]"]


def test_an_answer_that_is_about_something_else_is_no_summary() -> None:
    for answer in (
        "",
        "I cannot do that.",
        "## Something else\n- x",
        '{"topics": []}',
        "Sure, happy to help!",
    ):
        assert not any(checked(read_sections(answer), SOURCES, 6))


def test_a_citation_of_a_message_that_does_not_exist_goes() -> None:
    lines = checked([["- 28,796 flights left [m7]"], *([[]] * 3), ["- x [m1]"]], SOURCES, 6)
    assert lines[0] == ["- 28,796 flights left"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234.5 or 1.234,5", {1234.5}),
        ("3,4", {3.0, 4.0, 34.0, 3.4}),
        ("１２万", {12.0, 120_000.0}),
        ("no number", set()),
    ],
)
def test_digits_stand_for_each_number_that_they_may_be(text: str, numbers: set[float]) -> None:
    assert numbers <= numbers_in(text)
    assert bool(numbers) == bool(numbers_in(text))
