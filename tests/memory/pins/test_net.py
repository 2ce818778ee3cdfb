"""A side constraint of the user, wherever it is said, still stands in the view after three
compactions, word for word.
"""

from functools import cache

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.compaction.compaction import Request
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import marked
from longtable.memory.pins.net import is_rule
from longtable.memory.view import CallPlan, build_view
from tests.support.compacting import Say, Talk, call_config

LIMIT = 9_000
PLACES = 12
EARLY_TOKENS = 9_000
"""The constraints are said within so many tokens from the start."""

CONSTRAINTS = {
    "style": "Keep every answer under fifty words.",
    "units": "All distances should be in kilometres, not miles.",
    "forbidden column": "Never show the tailnum column.",
    "rounding": "Round all averages to one decimal.",
    "language": "Please answer in German from now on.",
    "definition": "By late I mean more than 30 minutes after schedule.",
    "filter": "Only consider flights that left from JFK.",
    "exclusion": "Ignore cancelled flights in all counts.",
    "date format": "Write dates as YYYY-MM-DD.",
    "time zone": "All times are to be in UTC.",
    "row limit": "Lists must not have more than five rows.",
    "currency": "Report revenue in Swiss francs.",
    "privacy": "You must not reveal passenger names.",
    "no writing": "Don't ever modify the data, it is production.",
    "source": "Use the planes table for seat counts, not the one in flights.",
}
CHINESE = {
    "单位": "以后距离都用公里表示。",
    "列": "不要显示 tailnum 这一列。",
    "取整": "平均值一律保留一位小数。",
    "定义": "我说的晚点是指晚了三十分钟以上。",
    "筛选": "只看从 JFK 出发的航班。",
}


def quotes(request: Request) -> str:
    """Quote what the user lays down, as models do: under constraints, with no heading for pins."""
    said = [text for text in ALL.values() if text in request[-1].text]
    lines = [f'- The user asks: "{text}"' for text in said]
    return "\n".join(
        ["## Facts and findings", "- flights were counted [m1]", "## Constraints", *lines]
    )


ALL = CONSTRAINTS | CHINESE
LASTING = [kind for kind, text in ALL.items() if is_rule(text)]
"""Held by a word of lasting: code finds them alone."""
SUMMARISERS: dict[str, Say | None] = {
    "no summariser": None,
    "one that forgets": lambda _: "## Facts and findings\n- flights were counted [m1]",
    "one that quotes": quotes,
}


def answer(number: int, chinese: bool) -> str:
    if chinese:
        return (
            f"第 {number} 周共有 {number * 37} 个航班。"
            + "其中大部分来自同一家航空公司，延误情况与前一周相近。" * 8
        )
    return (
        f"Week {number} had {number * 37} flights. "
        + "Most of them were flown by one carrier, with delays like the week before. " * 11
    )


@cache
def rounds(count: int, chinese: bool) -> list[tuple[str, str]]:
    """Return plain questions with their answers, none of which states a rule."""
    asked = "第 {n} 周有多少航班？" if chinese else "How many flights were there in week {n}?"
    return [(asked.format(n=n), answer(n, chinese)) for n in range(count)]


@cache
def early_rounds(chinese: bool) -> int:
    """Return how many rounds the first `EARLY_TOKENS` tokens hold."""
    total = 0
    for number, (question, told) in enumerate(rounds(130, chinese)):
        total += counter("o200k_base").messages([HumanMessage(question), AIMessage(told)])
        if total > EARLY_TOKENS:
            return number
    raise AssertionError("the talk is too short")


def spoken(constraint: str, place: int, chinese: bool) -> list[BaseMessage]:
    """Return a long talk with the constraint at one of `PLACES` places, beside a question, before
    or behind it.
    """
    at = round(place * (early_rounds(chinese) - 1) / (PLACES - 1))
    messages: list[BaseMessage] = []
    for number, (question, told) in enumerate(rounds(130, chinese)):
        if number == at:
            question = f"{question} {constraint}" if place % 2 else f"{constraint} {question}"
        messages += [
            marked(HumanMessage(question, id=f"h{number}"), turn=number + 1),
            marked(AIMessage(told, id=f"a{number}"), turn=number + 1),
        ]
    return messages


def after_compactions(history: list[BaseMessage], constraint: str, say: Say | None) -> list[str]:
    """Return the view as one text after each of three compactions that were made since the
    constraint was folded.
    """
    talking = Talk(call_config(LIMIT, window=100_000 if say else None, ahead=False), say=say)
    said = next(i for i, message in enumerate(history) if constraint in message.text)
    shown: list[str] = []
    for message in history:
        talking.add(message)
        if message.type == "human" and (outcome := talking.compact("due")):
            assert outcome.record is not None
            if outcome.record["count"] > said:
                view = build_view(CallPlan(talking.thread, talking.call_config))
                assert view.parts.total <= talking.call_config.threshold_tokens
                shown.append("\n".join(message.text for message in view.messages))
        if len(shown) == 3:
            return shown
    raise AssertionError("three compactions were not made")


def test_code_finds_most_of_them_alone() -> None:
    assert len(LASTING) >= 13


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        *((kind, says) for kind in LASTING for says in ("no summariser", "one that forgets")),
        *((kind, "one that quotes") for kind in ALL),
    ],
)
def test_a_side_constraint_stands_in_the_view_after_three_compactions_wherever_it_was_said(
    kind: str, says: str
) -> None:
    """Each is said before a question and behind one; together they stand at all places."""
    number = list(ALL).index(kind)
    constraint = ALL[kind]
    chinese = kind in CHINESE
    lost = []
    for place in {number % PLACES, (number + 5) % PLACES}:
        views = after_compactions(spoken(constraint, place, chinese), constraint, SUMMARISERS[says])
        lost += [(place, nth) for nth, view in enumerate(views, 1) if constraint not in view]
    assert lost == []


@pytest.mark.parametrize("chinese", [False, True])
def test_many_constraints_stand_beside_each_other(chinese: bool) -> None:
    """All of them in one talk, each at another place: none pushes another out."""
    constraints = list((CHINESE if chinese else CONSTRAINTS).values())
    messages = spoken("", 0, chinese)
    step = early_rounds(chinese) // len(constraints)
    for number, constraint in enumerate(constraints):
        place = 2 * number * step
        messages[place] = messages[place].model_copy(
            update={"content": f"{messages[place].text} {constraint}"}
        )
    [*_, last] = after_compactions(messages, constraints[-1], quotes)
    assert [constraint for constraint in constraints if constraint not in last] == []


def test_plain_questions_leave_no_pins_that_would_crowd_the_constraints_out() -> None:
    talking = Talk(call_config(LIMIT, ahead=False))
    for message in spoken("", 0, chinese=False):
        talking.add(message)
    outcome = talking.compact("asked")
    assert outcome is not None
    assert outcome.record is not None
    assert outcome.record["pins"] == []
