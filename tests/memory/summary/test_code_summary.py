"""Whatever a summariser writes, what code alone would hold still stands after five compactions."""

import random
import re

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.compaction.compaction import Request
from longtable.memory.counting.tokens import counter
from longtable.memory.summary.code_summary import fallback_summary
from longtable.memory.summary.summary_text import join_sections
from longtable.memory.view import CallPlan, build_view
from tests.support.compacting import Say, Talk, call_config

count = counter("o200k_base").text
CITIES = ("Lyon", "Oslo", "Porto", "Ghent", "Turin", "Malmo", "Basel", "Graz", "Split", "Varna")
NAMES = ("Anna", "Bela", "Cleo", "Dario", "Edda", "Fynn", "Gita", "Hugo", "Ines", "Jann")
FILLER = "The rest of the report shows nothing that is out of the ordinary for this time of year. "


def talk_of(seed: int, rounds: int = 120) -> tuple[list[BaseMessage], list[str]]:
    """Return a talk with a figure of the assistant in each round, a statement in words of the user
    in every third, and what is to be held.
    """
    draw = random.Random(seed)
    messages: list[BaseMessage] = []
    facts: list[str] = []
    for n in range(rounds):
        figure = f"{draw.randrange(10_000, 1_000_000):,}"
        asked = f"How much did region {n} sell?"
        said = f"Region {n} sold {figure} units. {FILLER * draw.randrange(2, 8)}"
        facts.append(figure)
        if n % 3 == 2:
            person = f"{draw.choice(NAMES)} runs the {draw.choice(CITIES)} {n}th store"
            asked = f"{person}."
            said = f"Noted, thank you. {FILLER * 4}"
            facts[-1] = person
        messages += [HumanMessage(asked, id=f"h{n}"), AIMessage(said, id=f"a{n}")]
    return messages, facts


def numbers_of(request: Request) -> list[int]:
    return [int(number) for number in re.findall(r"^\[m(\d+)\]", request[-1].text, re.MULTILINE)]


def citing_all(request: Request) -> str:
    numbers = numbers_of(request)
    return (
        f"## Facts and findings\n- Sales of regions were discussed [m{numbers[0]}-m{numbers[-1]}]"
    )


def citing_few(request: Request) -> str:
    numbers = numbers_of(request)
    return f"## Facts and findings\n- The sales were looked at [m{numbers[0]}-m{numbers[3]}]"


LAZY: dict[str, Say] = {
    "one line of prose": lambda _: "The user asked about the sales of regions and was answered.",
    "one line under a heading": lambda _: "## Facts\n- Sales of many regions were asked for.",
    "one line citing everything": citing_all,
    "one line citing a few rounds": citing_few,
    "two sentences in bold": lambda _: (
        "**Sales of the regions** were asked for. The regions were answered one by one."
    ),
    "a title and nothing else": lambda _: "# Memory\n\nSales by region, see the talk of the user.",
}


def view_after_five(say: Say | None, messages: list[BaseMessage]) -> tuple[str, int]:
    """Return the view at the end of a talk as one text, and how many compactions there were."""
    talking = Talk(call_config(5_000, min_messages=0, window=100_000 if say else None), say=say)
    for _ in talking.hear(messages):
        pass
    view = build_view(CallPlan(talking.thread, talking.call_config))
    return "\n".join(message.text for message in view.messages), len(talking.outcomes)


@pytest.mark.parametrize("kind", LAZY)
def test_a_lazy_summariser_is_no_worse_than_code_alone(kind: str) -> None:
    """Over three talks; its own line may take the room of one fact in each."""
    held_by_code = 0
    held = 0
    for seed in range(3):
        messages, facts = talk_of(seed)
        by_code, _ = view_after_five(None, messages)
        lazy, compactions = view_after_five(LAZY[kind], messages)
        assert compactions >= 5
        held_by_code += sum(fact in by_code for fact in facts)
        held += sum(fact in lazy for fact in facts)
    assert held >= held_by_code - 3


def test_what_a_user_states_in_words_is_held_as_well_as_the_figures_of_answers() -> None:
    messages, facts = talk_of(0)
    by_code, _ = view_after_five(None, messages)
    stated = [fact for fact in facts if "runs" in fact]
    figures = [fact for fact in facts if "runs" not in fact]
    share_of_stated = sum(fact in by_code for fact in stated) / len(stated)
    assert share_of_stated >= sum(fact in by_code for fact in figures) / len(figures)


def test_a_statement_beside_a_long_question_and_a_figure_late_in_an_answer_outlive_the_rest() -> (
    None
):
    asked = f"How many orders are there in the whole of the country {'and its neighbours ' * 9}?"
    messages: list[BaseMessage] = [
        HumanMessage(f"{asked} Anna runs the Lyon store.", id="h"),
        AIMessage(f"{FILLER * 4}There are 12,345 orders.", id="a"),
    ]
    summary = fallback_summary(
        "", list(enumerate(messages, 1)), language="en", budget=110, count=count
    )
    assert "Anna runs the Lyon store." in summary
    assert "12,345" in summary


@pytest.mark.parametrize("kind", LAZY)
def test_no_corrected_figure_stands_unmarked_in_what_is_filled_up(kind: str) -> None:
    messages, _ = talk_of(2)
    wrong = AIMessage("Peru sold 77,123 boots in May.", id="w")
    right = HumanMessage("Correction: Peru sold 78,555 boots in May, not 77,123.", id="r")
    asked = HumanMessage("How many boots did Peru sell in May?", id="q")
    noted = AIMessage("Noted.", id="n")
    early = [asked, wrong, *messages[:20], right, noted, *messages[20:]]
    talking = Talk(call_config(5_000, min_messages=0, window=100_000), say=LAZY[kind])
    for _ in talking.hear(early):
        pass
    summaries = [outcome.record["summary"] for outcome in talking.outcomes if outcome.record]
    assert "77,123" in summaries[0]
    for line in "\n".join(summaries).splitlines():
        assert "77,123" not in line or "77,123 (corrected" in line or "78,555" in line


def test_lines_that_only_repeat_a_pin_go_before_anything_else() -> None:
    pinned = "- Amounts are always in euros"
    facts = [f"- Depot {n} has {n},100 pallets" for n in range(1, 9)]
    before = join_sections([[*facts, pinned], [], [], [], []], "en")
    budget = count(before) + 8  # the note on lines left out needs more
    text = fallback_summary(
        before, [], language="en", budget=budget, count=count, is_pinned=pinned.__eq__
    )
    assert pinned not in text
    assert all(fact in text for fact in facts)
    whole = fallback_summary(
        before, [], language="en", budget=10_000, count=count, is_pinned=pinned.__eq__
    )
    assert pinned in whole
