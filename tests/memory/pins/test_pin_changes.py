"""What the tools `remember` and `forget` may change of a thread's pins."""

import pytest
from langchain_core.messages import HumanMessage

from longtable.base.errors import PinRefusedError
from longtable.memory.messages.marks import marked
from longtable.memory.pins.pin_changes import MOST_A_TURN, PinChanges
from longtable.memory.pins.pins import Pin, make_pin

SAID = [
    marked(HumanMessage("Always use euros.", id="1"), turn=1),
    marked(HumanMessage("Forget the euros, use dollars from now on.", id="2"), turn=2),
    marked(HumanMessage("The password is hunter2.", id="3"), turn=3),
]
EUROS = make_pin("Always use euros.", SAID[0], by="model")


def changes(*pins: Pin, used: int = 0) -> PinChanges:
    return PinChanges(pins, SAID, used)


def test_a_quote_is_pinned_as_the_user_wrote_it() -> None:
    board = changes()
    pin_id = board.remember("always USE euros")
    [pin] = board.made
    assert (pin.id, pin.text, pin.turn, pin.by) == (pin_id, "Always use euros.", 1, "model")
    assert board.used == 1


def test_a_newer_quote_ends_a_pin_and_an_older_one_does_not() -> None:
    board = changes(EUROS)
    board.forget(EUROS.id, "forget the euros")
    [end] = board.ends
    assert (end["pin"], end["message"], end["turn"]) == (EUROS.id, "2", 2)
    with pytest.raises(PinRefusedError, match="after that pin"):
        changes(EUROS).forget(EUROS.id, "always use euros")


def test_a_pin_that_ended_in_this_step_holds_no_longer() -> None:
    board = changes(EUROS)
    board.forget(EUROS.id, "forget the euros")
    with pytest.raises(PinRefusedError, match="no pin"):
        board.forget(EUROS.id, "forget the euros")


@pytest.mark.parametrize(
    ("quote", "reason"),
    [("use Swiss francs", "holds these words"), ("The password is hunter2", "never pinned")],
)
def test_other_words_and_secrets_are_refused(quote: str, reason: str) -> None:
    board = changes()
    with pytest.raises(PinRefusedError, match=reason):
        board.remember(quote)
    assert (board.made, board.used) == ([], 0)


def test_a_turn_changes_a_few_pins_only() -> None:
    with pytest.raises(PinRefusedError, match=f"{MOST_A_TURN} pins"):
        changes(used=MOST_A_TURN).remember("always use euros")
