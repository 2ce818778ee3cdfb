"""A model's answer becomes a summary: headings as models write them, lines cut by line, no invented
figure, no room unused.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.counting.tokens import counter
from longtable.memory.summary.headings import read_sections, sentences
from longtable.memory.summary.sources import Sources
from longtable.memory.summary.summary_room import filled, fitted
from longtable.memory.summary.summary_text import findings_in, join_sections
from longtable.memory.view import CallPlan, build_view
from tests.memory.summary.test_sources import SOURCES, TALK
from tests.support.compacting import Talk, call_config, system_of

count = counter("o200k_base").text

# -- room ------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    "- only JFK [m3]",
                    "- 120 flights [m9]",
                    "- talk " + "and talk " * 40,
                    "- 7 [m1-m4]",
                    "- 短",
                ]
            )
        ),
        min_size=5,
        max_size=5,
    ),
    st.integers(min_value=40, max_value=600),
)
def test_what_is_cut_to_fit_keeps_its_order_and_leaves_no_room_for_another_line(
    sections: list[list[str]], budget: int
) -> None:
    kept = fitted(sections, "en", budget, count)
    assert count(join_sections(kept, "en")) <= budget
    for before, after in zip(sections, kept, strict=True):
        rest = iter(before)
        assert all(line in rest for line in after)
    spare = (
        budget
        - count(join_sections([[]] * 5, "en"))
        - sum(count(line) + 1 for section in kept for line in section)
    )
    gone = [
        line
        for before, after in zip(sections, kept, strict=True)
        for line in before
        if before.count(line) > after.count(line)
    ]
    assert all(count(line) + 1 > spare for line in gone)


def test_two_hundred_facts_over_the_budget_lose_only_as_many_as_must_go() -> None:
    facts = [f"- region {n} sold {n * 37} units [m{n}]" for n in range(1, 201)]
    sections = [facts, [], ["- only finished orders [m3]"], [], ["- a word without a figure [m4]"]]
    kept = fitted(sections, "en", 2_000, count)
    assert kept[2] == sections[2]
    assert kept[4] == []
    newest = next(
        n for n in range(200) if count(join_sections([facts[-n - 1 :], *kept[1:]], "en")) > 2_000
    )
    assert newest > 80
    assert len(kept[0]) >= newest * 0.9


def test_room_is_filled_with_the_rounds_that_no_line_cites() -> None:
    sections = [["- Canada has 1,204 orders, some 1.2k [m4]"], [], [], [], []]
    text = filled(sections, SOURCES, "en", 400, count)
    assert [finding.ids for finding in findings_in(text)] == ["m9", "m5-m6"]
    wide = filled(
        [["- much was asked [m1-m400]"], [], [], [], []],
        Sources(list(enumerate(TALK * 4, 1)), ""),
        "en",
        900,
        count,
    )
    assert len(findings_in(wide)) == 8


def facts_of(seed: int, rounds: int) -> tuple[list[BaseMessage], list[str]]:
    """Return a talk of one figure a round, half of it Chinese, and the figures."""
    draw = random.Random(seed)
    figures = [f"{draw.randrange(10_000, 10_000_000):,}" for _ in range(rounds)]
    talk: list[BaseMessage] = []
    for n, figure in enumerate(figures):
        chinese = n % 2 == 1
        asked = (
            f"第 {n} 区卖了多少？"
            if chinese
            else f"How much did region {n} sell in its best month?"
        )
        said = (
            f"第 {n} 区卖了 {figure} 件。"
            if chinese
            else f"Region {n} sold {figure} units. "
            + "That is what the table says. " * draw.randrange(4)
        )
        talk += [HumanMessage(asked, id=f"h{n}"), AIMessage(said, id=f"a{n}")]
    return talk, figures


def survival(seed: int, say: object, rounds: int, limit: int) -> float:
    """Return the share of a talk's figures that are in view at its end."""
    talk, figures = facts_of(seed, rounds)
    talking = Talk(call_config(limit, min_messages=0, window=100_000 if say else None), say=say)  # type: ignore[arg-type]  # a fake beside its use
    for _ in talking.hear(talk):
        pass
    assert all(
        outcome.record and outcome.record["method"] == ("model" if say else "fallback")
        for outcome in talking.outcomes
    )
    shown = "\n".join(
        str(message.text)
        for message in build_view(CallPlan(talking.thread, talking.call_config)).messages
    )
    assert talking.outcomes
    assert system_of(build_view(CallPlan(talking.thread, talking.call_config)).messages)
    return sum(figure in shown for figure in figures) / len(figures)


@pytest.mark.parametrize(("rounds", "limit"), [(100, 4_000), (120, 5_000), (150, 4_000)])
def test_a_summariser_that_keeps_one_line_is_no_worse_than_none(rounds: int, limit: int) -> None:
    """Over three talks together: in one, a line a little longer than the code's may cost one fact
    more than it holds.
    """

    def lazy(request: list[BaseMessage]) -> str:
        said = [
            line
            for line in str(request[-1].text).splitlines()
            if line.startswith("[m") and " ai: " in line
        ]
        mark, _, words = said[-1].partition(" ai: ")
        return f"## Facts and findings\n- {words} {mark}"

    without = sum(survival(seed, None, rounds, limit) for seed in range(3))
    assert sum(survival(seed, lazy, rounds, limit) for seed in range(3)) >= without - 1e-9


def test_a_fact_that_the_model_corrected_is_not_carried_on() -> None:
    sources = Sources(
        SOURCES.messages,
        "## Facts and findings\n- Canada has 1,100 orders [m1]\n- Chile has 12 orders [m2]",
    )
    sources = Sources(
        [(number + 10, message) for number, message in SOURCES.messages], sources.previous
    )
    text = filled([["- Canada has 1,204 orders [m14]"], [], [], [], []], sources, "en", 400, count)
    assert "1,100" not in text
    assert "- Chile has 12 orders [m2]" in text


def test_a_fact_that_the_model_writes_again_without_its_citation_stands_once() -> None:
    previous = (
        "## Facts and findings\n- Canada has 1,204 orders [m1-m8]\n- Chile has 12 orders [m1-m8]"
    )
    sources = Sources([(number + 10, message) for number, message in SOURCES.messages], previous)
    again = ["- Canada has 1,204 orders", "- Chile has 12 orders"]
    text = filled([again, [], [], [], []], sources, "en", 400, count)
    assert text.count("- Canada has 1,204") == 1
    assert text.count("- Chile has 12") == 1


PROSE = {
    "en": (
        "The user wanted to know how much the regions sold. Everything was read from the table. It"
        " is not settled who asks next."
    ),
    "zh": "用户想知道各个地区卖了多少件。数字都取自表格。接下来由谁提问还没有定下来。",
}


def prose_only(text: str, rounds: int) -> Talk:
    """Return a talk whose summariser says the same each time."""
    talking = Talk(call_config(5_000, min_messages=0, window=100_000), say=lambda _: text)
    for _ in talking.hear(facts_of(0, rounds)[0]):
        pass
    assert talking.outcomes
    return talking


@pytest.mark.parametrize("language", PROSE)
def test_prose_that_cites_nothing_is_used_at_once_and_filled_up_with_the_lines_of_code(
    language: str,
) -> None:
    talking = prose_only(PROSE[language], 80)
    said = [f"- {sentence}" for sentence in sentences(PROSE[language])]
    for requests, outcome in zip(talking.asked, talking.outcomes, strict=True):
        assert outcome.record
        assert (len(requests), outcome.record["method"]) == (1, "model")
        facts = read_sections(outcome.record["summary"])[0]
        assert [line for line in facts if line in said] == said
        assert len(findings_in(outcome.record["summary"])) > 5
    by_code = survival(0, None, 80, 5_000)
    one_fact = 1 / 80  # three sentences take its room
    assert survival(0, lambda _: PROSE[language], 80, 5_000) >= by_code - one_fact - 1e-9


def test_prose_about_nothing_that_was_said_is_asked_for_once_more_and_then_code_writes() -> None:
    talking = prose_only("I am sorry. As a language model I cannot help here.", 80)
    for requests, outcome in zip(talking.asked, talking.outcomes, strict=True):
        assert outcome.record
        assert (len(requests), outcome.record["method"]) == (2, "fallback")


def test_a_rule_under_no_heading_is_carried_on_if_the_model_forgets_it() -> None:
    before = join_sections([["- 优先用中位数", "- 电量都写成兆瓦时"], [], [], [], []], "zh")
    sources = Sources([], before)
    sections = [["- 电量都写成兆瓦时"], [], [], [], []]
    text = filled(sections, sources, "zh", 600, count)
    assert text.count("优先用中位数") == 1
    assert text.count("电量都写成兆瓦时") == 1
