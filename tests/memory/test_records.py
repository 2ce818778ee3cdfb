"""What the records of compactions keep, oldest first."""

from typing import Any, cast

from longtable.memory.records import (
    BY_CODE,
    Compaction,
    is_results,
    stored_ends,
    stored_lines,
    stored_pins,
    stored_topics,
    writer_of,
)


def record(**fields: Any) -> Compaction:
    return cast("Compaction", fields)


def test_pins_ends_and_lines_of_all_records_come_in_order_and_a_record_may_lack_them() -> None:
    records = [
        record(pins=[{"id": "p1"}], ledger=[{"sql": "a"}]),
        record(),
        record(pins=[{"id": "p2"}], ended=[{"pin": "p1"}], ledger=[{"sql": "b"}]),
    ]
    assert [pin["id"] for pin in stored_pins(records)] == ["p1", "p2"]
    assert [end["pin"] for end in stored_ends(records)] == ["p1"]
    assert [line["sql"] for line in stored_lines(records)] == ["a", "b"]


def test_topics_are_in_what_a_strategy_kept() -> None:
    assert stored_topics(record(kept={"topics": [{"id": "t1"}]})) == [{"id": "t1"}]
    for empty in (record(), record(kept={}), record(kept={"other": 1}), record(kept=None)):
        assert not stored_topics(empty)


def test_the_writer_is_the_model_that_wrote_it_last_or_code() -> None:
    spent = [{"model": "a"}, {"model": "b"}]
    assert writer_of(record(method="fallback", writer="a")) == BY_CODE
    assert writer_of(record(method="model", writer="a", spent=spent)) == "a"
    assert writer_of(record(method="model", spent=spent)) == "b"
    assert writer_of(record(method="model")) == "unknown"


def test_a_record_of_results_wrote_no_memory() -> None:
    assert is_results(record(kind="results"))
    assert not is_results(record(summary="x"))
