"""What stays word for word, what the memory may take, and where there is no room: over grids of
sizes and limits.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.base.errors import SYSTEM_PROMPT, THE_MESSAGE, TOOLS, ContextTooLargeError
from longtable.memory import policy as presets
from longtable.memory.compaction.plan import When, plan_compaction
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan
from longtable.nodes.arriving.input_checks import check_input
from tests.support.compacting import ANY_LENGTH, Talk, call_config, sent
from tests.support.histories import talk

RULE = "From now on report all distances in kilometres."
GOOD = "## Facts and findings\n- numbers were asked for [m1-m2]\n## Constraints\n- none"


def of_size(rounds: int, tokens: int) -> list[BaseMessage]:
    """Return rounds of so many tokens each, to within a few."""
    return talk(rounds, words=(tokens - 26) // 2)


def kept_rounds(limit: int, tokens: int, when: When) -> int:
    history = of_size(max(3, limit // tokens), tokens)
    plan = plan_compaction(CallPlan(Thread(history), call_config(limit, min_messages=0)), when)
    assert plan is not None
    return (len(history) - plan.end) // 2


# -- what stays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["due", "ahead", "asked"])
@pytest.mark.parametrize(("limit", "step"), [(8_000, 40), (64_000, 400)])
def test_over_a_grid_of_round_sizes_the_kept_rounds_fall_by_one_a_step_at_most(
    limit: int, step: int, when: When
) -> None:
    kept = [kept_rounds(limit, tokens, when) for tokens in range(limit // 30, limit // 4, step)]
    assert kept[0] == 6
    assert kept[-1] == 1
    assert all(0 <= before - after <= 1 for before, after in pairwise(kept))


@pytest.mark.parametrize(("limit", "sizes"), [(8_000, (500, 530, 600)), (64_000, (4_000, 5_000))])
def test_the_sizes_that_fell_from_six_rounds_to_one_keep_more(
    limit: int, sizes: Sequence[int]
) -> None:
    assert all(kept_rounds(limit, tokens, "due") >= 2 for tokens in sizes)


def test_three_more_rounds_like_the_kept_ones_fit_after_a_compaction() -> None:
    for tokens in range(200, 900, 100):
        talking = Talk(call_config(8_000), say=lambda _: GOOD)
        for _ in talking.hear(of_size(60, tokens)):
            pass
        lengths = [outcome.record["length"] for outcome in talking.outcomes if outcome.record]
        assert all(later - earlier >= 6 for earlier, later in pairwise(lengths)), tokens


def test_a_large_round_that_is_not_the_newest_does_not_push_the_small_ones_out() -> None:
    history = [
        *of_size(12, 200),
        HumanMessage("word " * 3_000, id="large"),
        AIMessage("noted", id="noted"),
        *talk(5, words=20),
    ]
    history = [
        message.model_copy(update={"id": f"{place}"}) for place, message in enumerate(history)
    ]
    plan = plan_compaction(CallPlan(Thread(history), call_config(8_000)))
    assert plan is not None
    assert len(history) - plan.end == 10


# -- what the memory may take ----------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [100, 500, 1_500])
def test_a_memory_has_its_shares_whatever_the_rounds_take(tokens: int) -> None:
    plan = plan_compaction(CallPlan(Thread(of_size(6_000 // tokens, tokens)), call_config(8_000)))
    assert plan is not None
    assert plan.summary_budget == int(8_000 * 0.15)
    assert plan.ledger_budget == int(8_000 * 0.07)


def test_a_trigger_below_the_threshold_lowers_the_shares_of_the_memory() -> None:
    limits = call_config(64_000, trigger_tokens=3_500)
    plan = plan_compaction(CallPlan(Thread(of_size(60, 150)), limits))
    assert plan is not None
    assert plan.summary_budget == int(3_500 * 0.15 / 0.6)


@pytest.mark.parametrize("tokens", [100, 180, 400, 530, 900, 1_500])
def test_a_view_after_a_compaction_is_small(tokens: int) -> None:
    """At most 30 % of the limit where the kept rounds take under 15 %, at most 45 % otherwise, by
    code that fills its room.
    """
    talking = Talk(call_config(8_000))
    for _ in talking.hear(of_size(60, tokens)):
        pass
    records = [outcome.record for outcome in talking.outcomes if outcome.record]
    assert records
    for record in records:
        kept = (record["length"] - record["count"]) / 2 * tokens
        assert record["tokens_after"] <= 8_000 * (0.3 if kept < 0.15 * 8_000 else 0.45)


# -- where there is little room --------------------------------------------------------------------


@pytest.mark.parametrize("says", [None, GOOD])
@pytest.mark.parametrize("words", [20, 100])
@pytest.mark.parametrize("around", [0.5, 0.53, 0.55, 0.56, 0.57, 0.58, 0.59, 0.62, 0.7])
def test_there_is_no_dead_band(around: float, words: int, says: str | None) -> None:
    limits = call_config(8_000, tools=int(8_000 * around), window=8_000 if says else None)
    talking = Talk(limits, say=(lambda _: says) if says else None)
    for call in talking.hear(
        [HumanMessage(RULE, id="rule"), AIMessage("noted", id="noted"), *talk(40, words=words)]
    ):
        assert call.view.left_out == 0
        assert sent(call.view.messages, limits) <= min(
            limits.hard_tokens, (max(around, 0.5) + 0.15) * 8_000
        )
    assert talking.outcomes
    assert all(outcome.record for outcome in talking.outcomes)


def test_where_no_memory_fits_the_reason_is_no_room_and_nobody_is_asked() -> None:
    talking = Talk(call_config(8_000, tools=int(8_000 * 0.83), window=8_000), say=lambda _: GOOD)
    for call in talking.hear(talk(40)):
        assert sent(call.view.messages, talking.call_config) <= talking.call_config.hard_tokens
    assert {reason["code"] for outcome in talking.outcomes for reason in outcome.reasons} == {
        "no_room"
    }
    assert not any(talking.asked)


def test_what_is_too_little_to_compact_is_said_and_sets_no_breaker() -> None:
    talking = Talk(call_config(100_000, keep_rounds=1))
    for message in talk(2, words=2):
        talking.add(message)
    outcome = talking.compact("asked")
    assert outcome is not None
    assert [reason["code"] for reason in outcome.reasons] == ["too_little"]
    assert talking.breaker is None


def test_chinese_messages_of_6_300_characters_go_out_under_60_percent() -> None:
    words = "上个月每个城市的平均订单金额是多少按照地区和月份分组并且只看已经付款的订单"
    history: list[BaseMessage] = []
    for n in range(8):
        history += [
            HumanMessage(f"第{n}题：{words * 200}"[:6_300], id=f"h{n}"),
            AIMessage("好的，已经记下。", id=f"a{n}"),
        ]
    limits = call_config(16_000, tools=1_500)
    calls = [sent(call.view.messages, limits) for call in Talk(limits).hear(history)]
    assert len(calls) == 8
    assert max(calls) <= 0.6 * 16_000


# -- the preset of 12 messages or 3,500 tokens -----------------------------------------------------


@pytest.mark.parametrize("limit", [8_000, 32_000, 128_000])
@pytest.mark.parametrize(("words", "at"), [(2, 24), (8, 18), (40, 12), (200, 12), (400, 9)])
def test_the_preset_of_12_messages_keeps_its_numbers(limit: int, words: int, at: int) -> None:
    """Messages too short for a memory to be smaller wait for a few more; the first compaction came
    at message 105, or never.
    """
    talking = Talk(call_config(limit, **presets.rolling_chat().as_json()))
    for _ in talking.hear(talk(20, words=words)):
        pass
    records = [outcome.record for outcome in talking.outcomes if outcome.record]
    assert records[0]["length"] <= at
    assert 4 <= records[0]["length"] - records[0]["count"] <= 5
    assert all(outcome.record for outcome in talking.outcomes)


# -- what is refused, and what shrinks -------------------------------------------------------------


def refused(text: str, **more: Any) -> ContextTooLargeError | None:
    limits = call_config(8_000, **more)
    try:
        check_input([HumanMessage(text)], ANY_LENGTH, CallPlan(Thread([]), limits))
    except ContextTooLargeError as error:
        return error
    return None


def test_a_message_is_refused_only_past_the_limit_less_the_reserve() -> None:
    assert refused("word " * 5_654) is None
    error = refused("word " * 6_800)
    assert error is not None
    assert (error.what, error.budget) == (THE_MESSAGE, 6_800)


def test_the_error_names_the_system_prompt_or_the_tools() -> None:
    error = refused("hi", tools=6_790)
    assert error is not None
    assert error.what == TOOLS
    limits = replace(call_config(8_000), system="obey " * 6_700)
    with pytest.raises(ContextTooLargeError, match="system prompt") as caught:
        check_input([HumanMessage("hi")], ANY_LENGTH, CallPlan(Thread([]), limits))
    assert caught.value.what == SYSTEM_PROMPT
    assert "instructions" in caught.value.user_text("en")


def test_a_tool_result_shrinks_to_what_fits_and_says_how_to_read_it() -> None:
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}], id="c")
    rows = ", ".join(f"[{n}, 'city {n % 9}']" for n in range(10_000))
    history = [HumanMessage("all rows?", id="h"), call, ToolMessage(rows, tool_call_id="1", id="t")]
    view = CallPlan(Thread(history), call_config(8_000)).view
    result = view.messages[-1].text
    assert 0.95 * 4_800 <= view.parts.total <= 4_800
    assert result.startswith(rows[:5_000])
    assert 'recall_history("m3")' in result
    assert f"{len(rows):,} characters" in result
    assert view.shrunk == 1


def test_older_results_shrink_first_and_by_no_more_than_is_too_much() -> None:
    history: list[BaseMessage] = [HumanMessage("q", id="h")]
    for n in range(3):
        history.append(
            AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": f"{n}"}], id=f"a{n}")
        )
        history.append(ToolMessage("x " * 900, tool_call_id=f"{n}", id=f"t{n}"))
    view = CallPlan(Thread(history), call_config(4_000)).view
    first, *rest = [message.text for message in view.messages if isinstance(message, ToolMessage)]
    assert len(first) > 400
    assert 'recall_history("m3")' in first
    assert all(text == "x " * 900 for text in rest)
