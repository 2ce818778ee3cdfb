"""Constraints and preferences are carried on from summary to summary until words of the user end
them.
"""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.compaction.compaction import Request
from longtable.memory.messages.marks import marked
from longtable.memory.summary.standing_rules import Standing, carried_on
from longtable.memory.summary.summary_text import CONSTRAINTS, PREFERENCES, sections_of
from tests.support.compacting import Say, Talk, call_config

PREVIOUS = """## Facts and findings
- Canada has 1,204 orders [m2]
## User preferences
- Answers are kept short [m3]
## Constraints
- Mexico is left out [m5]
- Amounts are given in euros [m7]
## Decisions
## Open items"""


def rules(*lines: str, standing: Standing | None = None, previous: str = PREVIOUS) -> list[str]:
    """Return the rules of a new summary with these constraints, after `previous`."""
    sections = [[], [], [f"- {line}" for line in lines], [], []]
    result = carried_on(sections, previous, standing or Standing(), "en")
    return [line[2:] for line in [*result[PREFERENCES], *result[CONSTRAINTS]]]


def said(*texts: str) -> list[tuple[int, BaseMessage]]:
    return [(number, HumanMessage(text)) for number, text in enumerate(texts, 40)]


def test_a_rule_that_the_new_summary_drops_is_put_back_before_the_new_ones() -> None:
    assert rules("Only finished orders count [m30]") == [
        "Answers are kept short [m3]",
        "Mexico is left out [m5]",
        "Amounts are given in euros [m7]",
        "Only finished orders count [m30]",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Mexico is left out [m5]",
        "Mexico is left out",
        "Mexico left out of everything [m5-m6]",
        "Mexico is included again [m40]",
        'The user said: "Put Mexico back in." [m40]',
    ],
)
def test_a_rule_that_a_new_line_says_again_or_changes_stands_once(line: str) -> None:
    assert [each for each in rules(line) if "Mexico" in each] == [line]


def test_a_line_that_repeats_a_pin_which_ended_goes_whoever_wrote_it() -> None:
    ended = Standing(ended=["Leave Mexico out.", "Give amounts in euros."])
    previous = PREVIOUS.replace("Mexico is left out", "The user said: “Leave Mexico out.”")
    assert rules("Give the amounts in euros [m7]", standing=ended, previous=previous) == [
        "Answers are kept short [m3]"
    ]


def test_a_line_nearer_to_a_pin_that_holds_than_to_the_ended_one_stays() -> None:
    long = "Give all amounts of all tables and charts in {} with two decimals."
    standing = Standing(ended=[long.format("euros")], shown=[long.format("dollars")])
    line = long.format("dollars") + " [m40]"
    assert line in rules(line, standing=standing)
    assert long.format("euros") not in rules(long.format("euros"), standing=standing)


def test_what_a_shown_pin_says_is_not_carried_on_beside_it() -> None:
    previous = PREVIOUS.replace("Mexico is left out", "“Leave Mexico out.”")
    assert "Mexico" not in str(
        rules(standing=Standing(shown=["Leave Mexico out."]), previous=previous)
    )


def test_a_newer_sentence_of_the_user_about_the_same_is_quoted_beside_the_rule() -> None:
    talk = said("How many orders are from Mexico?", "Show Mexico by month.", "Put Mexico back in.")
    [_, mexico, euros] = rules(standing=Standing(said=talk))
    assert mexico == 'Mexico is left out [m5] (later: "Put Mexico back in." [m42])'
    assert euros == "Amounts are given in euros [m7]"
    again = PREVIOUS.replace("Mexico is left out [m5]", mexico)
    assert rules(standing=Standing(said=said("Mexico stays.")), previous=again)[1] == (
        'Mexico is left out [m5] (later: "Mexico stays." [m40])'
    )
    assert rules(previous=again)[1] == mexico


def forgets(_: Request) -> str:
    return "## Facts and findings\n- flights were counted [m1]"


def once_then_forgets() -> Say:
    """Return a summariser that writes the rules in its own words the first time alone."""
    asked: list[Request] = []

    def say(request: Request) -> str:
        asked.append(request)
        if len(asked) > 1:
            return forgets(request)
        return (
            "## Facts and findings\n- flights were counted [m1]\n## User preferences\n"
            "- short answers are liked [m1]\n## Constraints\n- the airport is JFK alone [m1]"
        )

    return say


def grown(say: Say, *, rounds: int = 90, **policy: int) -> Talk:
    talking = Talk(call_config(4_000, min_messages=0, window=100_000, **policy), say=say)
    messages: list[BaseMessage] = []
    for n in range(rounds):
        asked = f"How many flights left in week {n}? {'I care for JFK.' if n == 0 else ''}"
        messages += [
            marked(HumanMessage(asked, id=f"h{n}"), turn=n + 1),
            marked(AIMessage(f"{n * 37} flights left. " * 20, id=f"a{n}"), turn=n + 1),
        ]
    for _ in talking.hear(messages):
        pass
    return talking


@pytest.mark.parametrize("rebuild_every", [0, 2])
def test_rules_in_a_models_own_words_stand_after_every_later_compaction(rebuild_every: int) -> None:
    talking = grown(once_then_forgets(), rebuild_every=rebuild_every)
    records = [outcome.record for outcome in talking.outcomes if outcome.record]
    assert len(records) >= 5
    assert any(record["rebuilt"] for record in records) is bool(rebuild_every)
    for record in records:
        sections = sections_of(record["summary"])
        assert sections[PREFERENCES] == ["- short answers are liked [m1]"]
        assert sections[CONSTRAINTS] == ["- the airport is JFK alone [m1]"]
