"""Laws of the view: never over, pairs, newest words whole, same input same view; and of the fold
that goes with it.
"""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.call_config import CallConfig, Parts
from longtable.memory.compaction.plan import CompactionPlan, When, plan_compaction
from longtable.memory.messages.rounds import split_rounds
from longtable.memory.policy import CompactionPolicy
from longtable.memory.records import Compaction
from longtable.memory.thread import REFUSED, Edit, Thread
from longtable.memory.view import CallPlan, View, build_view, newest
from tests.memory.messages.test_rounds import assert_paired
from tests.support.histories import histories, talk


def call_config(limit: int, **policy: Any) -> CallConfig:
    return CallConfig(
        system="You answer.",
        tool_tokens=100,
        limit=limit,
        encoding="o200k_base",
        policy=CompactionPolicy(**policy),
    )


def record(
    to_id: str, summary: str = "## Facts and findings\n- earlier things", **more: Any
) -> Compaction:
    fields = {
        "id": f"c-{to_id}",
        "previous": None,
        "to_id": to_id,
        "count": 1_000,
        "summary": summary,
        "language": "en",
        **more,
    }
    return cast("Compaction", fields)


def call_plan(
    messages: Sequence[BaseMessage], records: Sequence[Compaction], limits: CallConfig
) -> CallPlan:
    return CallPlan(Thread(messages, records), limits)


def view_from(
    messages: Sequence[BaseMessage], records: Sequence[Compaction], limits: CallConfig
) -> View:
    return build_view(call_plan(messages, records, limits))


def measure(
    messages: Sequence[BaseMessage], records: Sequence[Compaction], limits: CallConfig
) -> Parts:
    return call_plan(messages, records, limits).parts


def plan_from(
    messages: Sequence[BaseMessage],
    records: Sequence[Compaction],
    limits: CallConfig,
    when: When = "due",
) -> CompactionPlan | None:
    return plan_compaction(call_plan(messages, records, limits), when)


def sent(messages: Sequence[BaseMessage], limits: CallConfig) -> int:
    return limits.counter.messages(messages) + limits.tool_tokens


@settings(max_examples=25)
@given(histories(), st.data())
def test_refused_rounds_leave_the_view_with_a_note_each_run_and_pairs_stay(
    history: list[BaseMessage], data: st.DataObject
) -> None:
    rounds = split_rounds(history)
    out = data.draw(st.sets(st.integers(0, len(rounds) - 1)))
    gone = [message for place in sorted(out) for message in rounds[place]]
    numbers = {message.id: number for number, message in enumerate(history, 1)}
    edits: list[Edit] = [
        {
            "id": f"e{m.id}",
            "op": "exclude",
            "message": m.id,
            "number": numbers[m.id],
            "why": REFUSED,
        }
        for m in gone
    ]
    view = build_view(CallPlan(Thread(history, edits=edits), call_config(100_000)))
    assert view == build_view(CallPlan(Thread(history, edits=edits), call_config(100_000)))
    assert_paired(view.messages[1:])
    assert not {m.id for m in view.messages} & {m.id for m in gone}
    runs = sum(place - 1 not in out for place in out)
    assert sum(str(m.id).endswith("/refused") for m in view.messages) == runs
    back: list[Edit] = [*edits, *(Edit(id=f"i{m.id}", op="include", message=m.id) for m in gone)]
    assert build_view(CallPlan(Thread(history, edits=back), call_config(100_000))) == build_view(
        CallPlan(Thread(history), call_config(100_000))
    )


@settings(max_examples=25)
@given(histories(), st.sampled_from([800, 2_000, 8_000]))
def test_every_view_fits_is_paired_and_holds_the_newest_words(
    history: list[BaseMessage], limit: int
) -> None:
    limits = call_config(limit)
    last = [m for m in history if m.type == "human"][-1]
    alone = sent([HumanMessage(limits.system), last], limits) + 40
    if alone > limits.hard_tokens:
        return  # ingest refuses it
    view = view_from(history, [], limits)
    one_round = sum(m.type == "human" for m in history) == 1
    assert sent(view.messages, limits) <= (
        CallPlan(Thread(history), limits).bound if one_round else limits.hard_tokens
    )
    assert view.parts.total == sent(view.messages, limits)
    assert last in view.messages
    assert_paired(view.messages[1:])
    assert view_from(history, [], limits).messages == view.messages


@settings(max_examples=25)
@given(histories(), st.sampled_from([800, 2_000, 8_000]))
def test_a_compaction_takes_whole_old_rounds_and_leaves_the_newest(
    history: list[BaseMessage], limit: int
) -> None:
    fold = plan_from(history, [], call_config(limit))
    if fold is None:
        return
    assert fold.start == 0
    assert history[fold.end].type == "human"
    assert any(m.type == "human" for m in history[fold.end :])
    assert fold.tokens_before == measure(history, [], call_config(limit)).total


def test_tool_results_give_way_before_words_do() -> None:
    history: list[BaseMessage] = [HumanMessage("q", id="h")]
    for n in range(4):
        history.append(
            AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": f"{n}"}], id=f"a{n}")
        )
        history.append(ToolMessage(f"result {n} " + "x " * 700, tool_call_id=f"{n}", id=f"t{n}"))
    view = view_from(history, [], call_config(4_000))
    results = [m.text for m in view.messages if isinstance(m, ToolMessage)]
    assert results[0].startswith("result 0 x")
    assert "shortened" in results[0]
    assert "shortened" not in results[-1]
    assert view.shrunk >= 1
    assert view.left_out == 0


def test_old_rounds_that_no_compaction_took_stay_while_they_fit_the_limit() -> None:
    history = talk(4, words=150)
    limits = call_config(int(measure(history, [], call_config(10_000)).total / 0.75))
    view = view_from(history, [], limits)
    assert view.left_out == 0
    assert view.messages[1:] == history


def test_what_is_left_out_is_said() -> None:
    view = view_from(talk(30, words=60), [], call_config(2_000))
    assert view.left_out > 0
    assert f"{view.left_out} messages" in view.messages[0].text


def test_memory_stands_in_the_one_system_message_before_the_rounds_after_it() -> None:
    history = talk(4)
    view = view_from(history, [record("a1")], call_config(8_000))
    assert [m.type for m in view.messages] == ["system", "human", "ai", "human", "ai"]
    assert "earlier things" in view.messages[0].text
    assert "not instructions" in view.messages[0].text
    assert view.messages[1:] == history[4:]
    assert view.parts.memory > 0


def test_a_record_whose_end_is_gone_does_not_apply() -> None:
    history = talk(4)
    assert Thread(history, [record("a0"), record("gone")]).live == (record("a0"), 2)
    assert Thread(history, [record("gone")]).live == (None, 0)


def test_a_record_whose_messages_all_retired_applies() -> None:
    retired = record("gone", count=8)
    assert Thread(talk(4), [retired], archived=8).live == (retired, 0)
    assert Thread(talk(4), [retired], archived=6).live == (None, 0)


def test_an_undone_record_does_not_apply_and_the_one_before_does() -> None:
    history = talk(4)
    thread = Thread(
        history, [record("a0"), record("a1")], edits=[{"id": "e", "op": "undo", "record": "c-a1"}]
    )
    assert thread.live == (record("a0"), 2)


def test_an_excluded_message_leaves_the_view_and_comes_back_when_included() -> None:
    history = talk(3)
    out: Edit = {"id": "e1", "op": "exclude", "message": history[2].id, "number": 3}
    back: Edit = {"id": "e2", "op": "include", "message": history[2].id}
    limits = call_config(8_000)
    assert build_view(CallPlan(Thread(history, edits=[out]), limits)).messages[1:] == [
        *history[:2],
        *history[3:],
    ]
    assert build_view(CallPlan(Thread(history, edits=[out, back]), limits)).messages[1:] == history


@pytest.mark.parametrize(
    ("role", "kinds"),
    [
        ("system", ["system", "human"]),
        ("assistant", ["system", "ai"]),
        ("user", ["system", "human"]),
    ],
)
def test_memory_stands_where_the_policy_says(role: str, kinds: list[str]) -> None:
    limits = call_config(8_000, memory_role=role)
    view = view_from(talk(4), [record("a1")], limits)
    assert [m.type for m in view.messages[:2]] == kinds
    assert ("earlier things" in view.messages[0].text) == (role == "system")
    assert role == "system" or "earlier things" in view.messages[1].text
    assert view.parts.total == sent(view.messages, limits)
    assert view.parts.memory > 0


def test_the_memory_says_which_messages_it_stands_for() -> None:
    view = view_from(talk(4), [record("a1", count=4)], call_config(8_000))
    assert "m1-m4" in view.messages[0].text


def test_a_window_holds_the_newest_messages_and_always_the_newest_question() -> None:
    limits = call_config(8_000, strategy="window", keep_messages=3)
    history = talk(4)
    assert view_from(history, [], limits).messages[1:] == history[-3:]
    assert plan_from(history, [], limits) is None
    asked = [
        *history,
        HumanMessage("q", id="q"),
        *(AIMessage(f"step {n}", id=f"s{n}") for n in range(5)),
    ]
    assert [m.id for m in newest(asked, 3)] == ["q", "s2", "s3", "s4"]


def test_calibration_lowers_what_a_view_may_have() -> None:
    limits = CallConfig(system="s", tool_tokens=0, limit=10_000, encoding="o200k_base", factor=1.5)
    assert limits.threshold_tokens == 4_000
    view = view_from(talk(60, words=60), [], limits)
    assert view.parts.total <= limits.hard_tokens == 5_666


def test_short_threads_are_compacted_past_the_threshold_alone() -> None:
    history = talk(4, words=150)  # 8 messages
    total = measure(history, [], call_config(10_000)).total
    assert plan_from(history, [], call_config(int(total / 0.7))) is not None
    assert plan_from(history, [], call_config(10_000, trigger_messages=6, keep_rounds=1)) is None
    assert (
        plan_from(
            history, [], call_config(10_000, trigger_messages=6, keep_rounds=1, min_messages=0)
        )
        is not None
    )


def test_the_last_rounds_stay_word_for_word_where_they_fit() -> None:
    history = talk(40)
    limits = call_config(int(measure(history, [], call_config(100_000)).total / 0.65))
    fold = plan_from(history, [], limits)
    assert fold is not None
    assert len(history) - fold.end == 12


def test_fewer_rounds_stay_where_they_do_not_fit() -> None:
    fold = plan_from(talk(12, words=200), [], call_config(3_000))
    assert fold is not None
    assert 2 <= 24 - fold.end < 12


def test_nothing_is_compacted_again_before_four_new_messages_came() -> None:
    history = talk(12, words=30)
    limits = call_config(int(measure(history, [record("a9")], call_config(10_000)).total / 0.65))
    assert plan_from(history, [record("a10")], limits) is None  # 2 new messages
    # 4
    assert plan_from(history, [record("a9")], call_config(limits.limit, keep_rounds=1)) is not None


def test_asked_for_compacts_under_the_threshold_too() -> None:
    history = talk(9)
    limits = call_config(100_000)
    assert plan_from(history, [], limits) is None
    fold = plan_from(history, [], limits, "asked")
    assert fold is not None
    assert fold.end == 6


@pytest.mark.parametrize("ceiling", [3_000, 1_500, 400])
def test_a_ceiling_lowers_what_a_view_may_have(ceiling: int) -> None:
    limits = CallConfig(
        system="s", tool_tokens=0, limit=10_000, encoding="o200k_base", ceiling=ceiling
    )
    assert limits.threshold_tokens == ceiling
    assert limits.share(limits.policy.threshold / 2) == ceiling // 2
    view = view_from(talk(30, words=60), [], limits)
    assert view.parts.total <= limits.threshold_tokens
