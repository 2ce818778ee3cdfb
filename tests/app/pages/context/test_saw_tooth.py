"""The curve rises with each call and falls at each compaction."""

from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.app.pages.context.saw_tooth import BASE, MOST_CALLS, TOP, SawTooth, saw_tooth_of
from longtable.app.pages.context.transcript_facts import MessageFacts, facts_of
from longtable.memory.messages.marks import mark_of, marked
from longtable.memory.records import Compaction
from tests.app.pages.context.panel_talk import data_of, long_talk


def turns(sizes: list[int | None]) -> list[MessageFacts]:
    messages: list[BaseMessage] = []
    for turn, size in enumerate(sizes, 1):
        marks: dict[str, Any] = {} if size is None else {"sent": size}
        messages.append(marked(HumanMessage("q"), turn=turn))
        messages.append(marked(AIMessage("a"), turn=turn, **marks))
    return list(map(facts_of, messages))


def record(length: int, before: int, after: int, **more: Any) -> Compaction:
    fields = {"id": f"c{length}", "turn": length // 2, "length": length, "folded": 4}
    sizes = {"tokens_before": before, "tokens_after": after, "method": "model", "writer": "m-1"}
    return cast("Compaction", {**fields, **sizes, **more})


def curve(sizes: list[int | None], *records: Compaction, undone: str = "") -> SawTooth:
    return saw_tooth_of(turns(sizes), records, {undone}, next_tokens=50, threshold_tokens=600)


def test_a_conversation_falls_at_each_of_its_compactions() -> None:
    conversation = long_talk()
    data = data_of(conversation)
    falls = data.curve.falls
    assert len(falls) >= 3
    assert {fall.by_code for fall in falls} == {True, False}
    assert all(fall.after < fall.before and fall.top.y < fall.bottom.y for fall in falls)
    sent = [mark_of(message, "sent") for message in conversation.history()]
    counted = [size for size in sent if size]
    assert data.curve.calls == len(counted) == 24
    assert data.curve.largest >= max(counted)
    assert data.curve.next_tokens == data.gauge.total
    assert len(data.curve.lines) == len(falls) + 1


def test_a_fall_stands_before_the_call_that_it_made_smaller() -> None:
    drawn = curve([100, 500, 200], record(4, 560, 150))
    assert [fall.number for fall in drawn.falls] == [1]
    before, after = (line.split() for line in drawn.lines)
    assert len(before) == 3
    assert before[-1] == f"{drawn.falls[0].top.x},{drawn.falls[0].top.y}"
    assert after[0] == f"{drawn.falls[0].bottom.x},{drawn.falls[0].bottom.y}"
    assert after[-1] == f"{drawn.next_call.x},{drawn.next_call.y}"


def test_each_fall_says_what_by_whom_and_whether_it_stands() -> None:
    rows = record(2, 500, 300, kind="results", method="fallback")
    drawn = curve([100, 500], rows, record(4, 560, 150), undone="c4")
    assert [(fall.kind, fall.by_code, fall.undone) for fall in drawn.falls] == [
        ("rows", True, False),
        ("summary", False, True),
    ]
    assert drawn.falls[1].writer == "m-1"


def test_calls_without_a_size_are_counted_and_not_drawn() -> None:
    reported = AIMessage(
        "a", usage_metadata={"input_tokens": 70, "output_tokens": 1, "total_tokens": 71}
    )
    messages = [*turns([100, None]), facts_of(HumanMessage("q")), facts_of(reported)]
    drawn = saw_tooth_of(messages, [], (), next_tokens=120, threshold_tokens=130)
    assert (drawn.calls, drawn.unknown, drawn.largest) == (2, 1, 120)


def test_a_far_threshold_does_not_press_the_curve_flat() -> None:
    near = curve([100, 500])
    assert near.threshold_y is not None
    assert TOP < near.threshold_y < BASE
    far = saw_tooth_of(turns([100]), [], (), next_tokens=100, threshold_tokens=76_800)
    assert far.threshold_y is None


def test_of_very_many_calls_the_largest_of_each_group_is_drawn() -> None:
    sizes: list[int | None] = [100] * 3_000
    sizes[1_777] = 900
    drawn = curve(sizes)
    points = drawn.lines[0].split()
    assert len(points) <= MOST_CALLS + 1
    assert drawn.largest == 900
    assert sum(float(point.split(",")[1]) < BASE / 2 for point in points) == 1
    assert len(drawn.ticks) <= 5


def test_a_thread_without_calls_is_one_point() -> None:
    drawn = saw_tooth_of([], [], (), next_tokens=0, threshold_tokens=600)
    assert (drawn.calls, drawn.lines, drawn.falls) == (0, (), ())
