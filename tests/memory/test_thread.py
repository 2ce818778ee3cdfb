"""A thread as values: its live compaction, what a person changed, what a call is shown."""

from typing import Any, cast

from langchain_core.messages import HumanMessage

from longtable.memory.pins.pins import make_pin
from longtable.memory.records import Compaction
from longtable.memory.thread import Edit, Thread, covered_exclusions

MESSAGES = [HumanMessage(f"question {number}", id=str(number)) for number in range(1, 6)]


def record(id_: str, to_id: str, previous: str | None = None, **more: Any) -> Compaction:
    fields = {"id": id_, "to_id": to_id, "previous": previous, "count": int(to_id), **more}
    return cast("Compaction", fields)


def edit(op: str, **more: Any) -> Edit:
    return cast("Edit", {"id": f"e-{op}", "op": op, **more})


def exclude(number: int) -> Edit:
    return edit("exclude", message=str(number), number=number, turn=number)


FIRST = record("a", "2")
SECOND = record("b", "4", "a")


def test_the_newest_compaction_that_applies_is_live_and_continues_the_others() -> None:
    thread = Thread(MESSAGES, [FIRST, SECOND])
    assert thread.live == (SECOND, 4)
    assert thread.chain == [FIRST, SECOND]
    assert [message.id for message in thread.uncompacted] == ["5"]


def test_after_an_undo_an_older_compaction_is_live() -> None:
    thread = Thread(MESSAGES, [FIRST, SECOND], [edit("undo", record="b")])
    assert thread.live == (FIRST, 2)
    assert not thread.applies(SECOND)


def test_a_compaction_of_results_is_no_memory() -> None:
    results = record("r", "5", kind="results")
    thread = Thread(MESSAGES, [FIRST, results])
    assert thread.live == (FIRST, 2)
    assert thread.live_results == (results, 5)
    assert thread.newest is results


def test_an_excluded_message_that_is_included_again_is_shown() -> None:
    include = edit("include", message="1")
    assert Thread(MESSAGES, edits=[exclude(1), exclude(3)]).excluded == {"1": 1, "3": 3}
    thread = Thread(MESSAGES, edits=[exclude(1), exclude(3), include])
    assert [message.id for message in thread.shown] == ["1", "2", "4", "5"]
    assert thread.excluded_turns == {3}


def test_a_memory_is_stale_if_a_covered_message_was_excluded_since() -> None:
    assert Thread(MESSAGES, [FIRST], [exclude(2)]).stale
    assert not Thread(MESSAGES, [FIRST], [exclude(3)]).stale
    assert not Thread(MESSAGES, [record("a", "2", excluded=[2])], [exclude(2)]).stale
    assert covered_exclusions({"5": 5, "2": 2, "1": 1}, 4) == [1, 2]


def test_pins_go_with_their_message_and_come_back_when_made_again() -> None:
    pin = make_pin("question 1", MESSAGES[0], by="model")
    kept = record("a", "2", pins=[pin.as_json()])
    assert Thread(MESSAGES, [kept]).pins == [pin]
    assert Thread(MESSAGES, [kept], [exclude(1)]).pins == []
    unpin = edit("unpin", pins=[pin.id], turn=3)
    assert Thread(MESSAGES, [kept], [unpin]).pins == []
    again = edit("pin", pin=pin.as_json(), turn=4)
    assert Thread(MESSAGES, [kept], [unpin, again]).pins == [pin]


def test_the_users_words_end_a_pin_that_stays_listed() -> None:
    pin = make_pin("question 1", MESSAGES[0], by="model")
    end = edit("unpin", pins=[pin.id], quote="question 3", message="3", turn=3)
    [ended] = Thread(MESSAGES, [record("a", "2", pins=[pin.as_json()])], [end]).pins
    assert ended.ended == "question 3"


def test_numbers_go_on_after_retired_messages() -> None:
    thread = Thread(MESSAGES, edits=[exclude(12)], archived=10)
    assert [number for number, _ in thread.numbered(0, 9)] == [11, 12, 13, 14, 15]
    thread = Thread(MESSAGES, edits=[edit("exclude", message="2", number=12)], archived=10)
    assert [number for number, _ in thread.numbered(0, 9)] == [11, 13, 14, 15]
    assert thread.length == 15
