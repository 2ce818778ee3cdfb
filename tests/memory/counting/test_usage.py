"""The tokens of a transcript's calls are added up by day, model and voice."""

from langchain_core.messages import AIMessage, HumanMessage

from longtable.memory.counting.usage import FINEST, Spent, added, spent_of, spent_on
from longtable.memory.messages.marks import GIVEN, marked


def answer(time: str, tokens: int | None, **marks: object) -> AIMessage:
    message = AIMessage("hi", response_metadata={"model_name": "gpt-4o"})
    if tokens is not None:
        message.usage_metadata = {
            "input_tokens": tokens,
            "output_tokens": 2,
            "total_tokens": tokens + 2,
        }
    return marked(message, turn=1, time=time, **marks)


def spent(*messages: AIMessage | HumanMessage) -> list[Spent]:
    return spent_of(messages, thread="t", model="m", encoding="o200k_base")


def test_calls_of_a_day_are_one_row_and_of_two_days_two() -> None:
    morning = answer("2024-01-01T09:00:00", 10)
    again = answer("2024-01-01T09:30:00", 5)
    next_day = answer("2024-01-02T09:00:00", 7)
    first, second = spent(morning, again, next_day)
    assert (first.day, first.calls, first.input, first.output) == ("2024-01-01", 2, 15, 4)
    assert (second.day, second.month, second.input) == ("2024-01-02", "2024-01", 7)


def test_an_unreported_call_is_counted_and_said_to_be_an_estimate() -> None:
    [row] = spent(HumanMessage("How many flights left in May?"), answer("then", None))
    assert (row.estimated, row.day) == (1, "unknown")
    assert row.input > 0
    [row] = spent(HumanMessage("How many?"), answer("then", None, sent=321))
    assert row.input == 321


def test_an_answer_that_a_caller_handed_in_cost_nothing() -> None:
    assert spent(answer("2024-01-01T09:00:00", 10, **{GIVEN: True})) == []


def test_the_summarisers_calls_are_rows_of_their_own() -> None:
    call = {"model": "s", "calls": 2, "input": 30, "output": 4, "charged": 0.5}
    [row] = spent_on([{"time": "2024-01-01T09:00:00", "spent": [call]}, {}], thread="t")
    assert (row.purpose, row.model, row.calls, row.input) == ("summary", "s", 2, 30)
    assert row.charged == 0.5


def test_rows_are_added_up_by_some_fields_and_the_others_are_empty() -> None:
    rows = [
        Spent("2024-01-01", "t1", "a", calls=1, input=3, cost=0.5),
        Spent("2024-01-02", "t2", "a", calls=2, input=4),
        Spent("2024-01-02", "t2", "b", calls=1, input=1, unpriced=1),
    ]
    one, other = added(rows, ["model"])
    assert (one.model, one.day, one.thread) == ("a", "", "")
    assert (one.calls, one.input, one.cost) == (3, 7, 0.5)
    assert (other.calls, other.cost, other.unpriced) == (1, None, 1)
    assert len(added(rows, FINEST)) == 3
