"""What is kept of a thread's tokens is read back as it was, or not at all."""

import pytest
from langgraph.store.memory import InMemoryStore

from longtable.base.stored import SPENDING
from longtable.memory.counting.usage import Spent
from longtable.store.records.thread_spending import Spending, keep_spending_of

ROWS = [
    Spent("2026-11-27", "t", "gpt", calls=2, input=10, hour="2026-11-27T08", month="2026-11"),
    Spent("2026-11-27", "t", "gpt", calls=1, purpose="summary", charged=0.5, project="p"),
    Spent("unknown", "t", "", calls=1, charged=0.0),
]
SPENDING_OF_T = Spending.of("state", "key", ROWS)


def test_a_record_is_read_as_it_was_written() -> None:
    store = InMemoryStore()
    keep_spending_of(store, "t", SPENDING_OF_T)
    item = store.get(SPENDING, "t")
    assert item is not None
    read = Spending.from_json(item.value)
    assert read is not None
    assert read == SPENDING_OF_T
    assert [Spent(**row) for row in read.rows] == ROWS
    assert "cost" not in item.value["rows"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 0},
        {"rows": None},
        {"rows": [{"day": "d"}]},
        {"rows": [{"day": "d", "thread": "t", "model": "m", "later": 1}]},
        {"rows": ["x"]},
    ],
)
def test_a_record_that_cannot_be_read_is_none(change: dict[str, object]) -> None:
    value = {**SPENDING_OF_T.as_json(), **change}
    assert Spending.from_json(value) is None
    missing = {name: each for name, each in value.items() if name != "state"}
    assert Spending.from_json(missing) is None
    assert Spending.from_json({}) is None


def test_rows_are_those_of_the_project_that_the_thread_is_in_now() -> None:
    rows = SPENDING_OF_T.in_project("new")
    assert [row["project"] for row in rows] == ["new"] * 3
    assert [row["calls"] for row in rows] == [2, 1, 1]


class FullStore(InMemoryStore):
    def put(self, *_: object, **__: object) -> None:
        raise OSError("no space left on device")


def test_a_store_that_cannot_be_written_ends_no_report() -> None:
    keep_spending_of(FullStore(), "t", SPENDING_OF_T)
    keep_spending_of(None, "t", SPENDING_OF_T)
