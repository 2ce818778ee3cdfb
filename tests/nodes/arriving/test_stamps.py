"""How a message is marked as accepted."""

from langchain_core.messages import AIMessage, HumanMessage

from longtable.memory.messages.marks import marks_of
from longtable.nodes.arriving.stamps import stamp

NOON = "2026-11-21T12:00:00+00:00"


def test_a_stamp_says_turn_time_and_whose_it_is() -> None:
    turn = {"number": 4, "run": "r", "owner": "ann", "channel": "cli", "voice": "checker"}
    question = stamp(HumanMessage("How many?"), turn=turn, time=NOON)  # type: ignore[arg-type]  # a record
    answer = stamp(AIMessage("Three."), turn=turn, time=NOON, marks={"kind": "x"})  # type: ignore[arg-type]  # a record
    own = {"turn": 4, "time": NOON, "run": "r", "owner": "ann", "channel": "cli"}
    assert marks_of(question) == own
    assert marks_of(answer) == {**own, "voice": "checker", "kind": "x"}


def test_what_no_checkpoint_takes_is_replaced() -> None:
    odd = AIMessage(
        "half \ud83d an emoji",
        tool_calls=[{"name": "f", "args": {"n": 2**70}, "id": "a"}],
        usage_metadata={"input_tokens": 2**70, "output_tokens": 1, "total_tokens": 2**70},
    )
    clean = stamp(odd, turn={"number": 1}, time=NOON)
    assert clean.content == "half ? an emoji"
    assert clean.tool_calls[0]["args"] == {"n": str(2**70)}
    assert clean.usage_metadata is None


def test_a_message_that_is_fit_keeps_its_fields() -> None:
    message = AIMessage("Three.", name="Ann", response_metadata={"id": "x"})
    stamped = stamp(message, turn={"number": 1}, time=NOON)
    assert stamped.model_copy(update={"additional_kwargs": {}}) == message
