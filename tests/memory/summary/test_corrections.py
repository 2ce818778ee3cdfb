"""Figures that were corrected: marked in every summary, by whom ever it was written."""

import re
from functools import partial

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.counting.tokens import counter
from longtable.memory.summary.code_summary import fallback_summary
from longtable.memory.summary.corrections import corrections, marked
from tests.support.compacting import Talk, call_config

LYON = "Lyon sold 1,204 boots in March."
SUZHOU = "苏州三月卖出4,000件靴子。"


def mark(line: str, *said: str, language: str = "en", previous: str = "") -> str:
    """Return a line of a summary of these user messages, numbered 1, 3, 5 ..."""
    messages: list[tuple[int, BaseMessage]] = [
        (2 * n + 1, HumanMessage(text)) for n, text in enumerate(said)
    ]
    return marked(line, corrections(previous, messages), language)


@pytest.mark.parametrize(
    "correction",
    [
        "Correction: the March figure is 1,310, not 1,204.",
        "It was 1,310 boots in Lyon instead of 1,204.",
        "Sorry, that was wrong. Lyon had 1,310 in March rather than 1,204.",
        "Lyon, boots, March: take 1,310, mine was a typo.",
    ],
)
def test_a_corrected_figure_is_marked_with_the_message_that_corrects_it(correction: str) -> None:
    assert (
        mark("- March in Lyon: 1,204 boots [m1]", LYON, correction)
        == "- March in Lyon: 1,204 (corrected: m3) boots [m1]"
    )


@pytest.mark.parametrize(
    "correction",
    [
        "更正：三月的数字是5,001，不是4,000。",
        "苏州三月应为5,001，而非4,000。",
        "苏州三月靴子写错了，请以5,001为准。",
    ],
)
def test_a_corrected_figure_is_marked_in_chinese(correction: str) -> None:
    line = mark("- 苏州三月靴子销量为4,000件", SUZHOU, correction, language="zh")
    assert line == "- 苏州三月靴子销量为4,000（更正：m3）件"


@pytest.mark.parametrize(
    "line",
    [
        "- March was corrected to 1,310, not 1,204",
        "- Oslo had 1,204 lamps",
        "- March in Lyon: 11,204 boots",
        "- March in Lyon: 1,204.5 boots",
    ],
)
def test_a_line_about_something_else_or_with_the_new_figure_is_not_marked(line: str) -> None:
    assert mark(line, LYON, "Correction: the March figure is 1,310, not 1,204.") == line


def test_years_small_numbers_and_figures_that_are_given_again_are_not_marked() -> None:
    asked = "Look at orders of 2013, not 2012, and at 20 rows, not 50."
    assert mark("- orders of 2012, 50 rows", asked) == "- orders of 2012, 50 rows"
    again = ("March is 1,310, not 1,204.", "No: March is 1,204 after all, not 1,310.")
    assert mark("- March: 1,204", LYON, *again) == "- March: 1,204"


def test_a_mark_stays_when_the_correction_is_no_longer_read() -> None:
    previous = "## Facts and findings\n- March in Lyon: 1,204 (corrected: m3) boots"
    assert (
        mark("- Lyon sold 1,204 boots", previous=previous)
        == "- Lyon sold 1,204 (corrected: m3) boots"
    )
    assert mark(previous.splitlines()[1], previous=previous) == previous.splitlines()[1]


@pytest.mark.parametrize("words", range(24))
def test_a_line_that_is_clipped_to_fit_never_parts_a_corrected_figure_from_its_mark(
    words: int,
) -> None:
    said = (
        f"Lyon, {'in March, ' * (words // 4)}{'w ' * (words % 4)}1,204 boots in all, and much more"
        " is to be said of it."
    )
    talk = [HumanMessage(said, id="h0"), AIMessage("Noted.", id="a0")]
    talk += [
        HumanMessage("Correction: the March figure of Lyon is 1,310, not 1,204.", id="h1"),
        AIMessage("Noted.", id="a1"),
    ]
    numbered = list(enumerate(talk, 1))
    mark = partial(marked, corrected=corrections("", numbered), language="en")
    for budget in range(60, 160, 4):
        summary = fallback_summary(
            "",
            numbered[:2],
            language="en",
            budget=budget,
            count=counter("o200k_base").text,
            mark=mark,
        )
        for line in summary.splitlines():
            assert re.search(r"1,204 \(corrected: m3\)", line) or not re.search(
                r"1(?:,\d{0,3})?…|1,204", line
            ), line


@pytest.mark.parametrize("by_code", [True, False])
def test_no_corrected_figure_stands_unmarked_in_a_summary(by_code: bool) -> None:
    others = ["And what about the others?"] * 70
    said = [*others[:16], LYON, "Correction: the March figure is 1,310, not 1,204.", *others]
    answer = "That is in the report. " * 9
    turns = [
        (HumanMessage(text, id=f"h{n}"), AIMessage(answer, id=f"a{n}"))
        for n, text in enumerate(said)
    ]

    def honest(request: list[BaseMessage]) -> str:
        assert "1,204" in request[-1].text
        return (
            "## Facts and findings\n- Lyon, March: 1,204 boots\n- The user corrected March to 1,310"
        )

    talk = Talk(
        call_config(4_000, min_messages=0, window=None if by_code else 100_000),
        say=None if by_code else honest,
    )
    for _ in talk.hear([message for turn in turns for message in turn]):
        pass
    summaries = [outcome.record["summary"] for outcome in talk.outcomes if outcome.record]
    assert len(summaries) > 1
    for line in "\n".join(summaries).splitlines():
        assert "1,204" not in line or "1,204 (corrected: m35)" in line or "1,310" in line
    assert "1,204 (corrected: m35)" in summaries[0]
