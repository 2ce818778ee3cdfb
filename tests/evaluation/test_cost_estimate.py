"""What a run will cost is estimated from the size of a first call."""

from pathlib import Path

import pytest

from longtable.evaluation.cost_estimate import (
    CALLS_A_TURN,
    OUTPUT_A_CALL,
    SilentModel,
    estimated,
    first_call_tokens,
)
from longtable.graph import Price
from tests.support.evaluated import SUBJECT, Shop, make_shop
from tests.support.model_server import open_model_server, say


def test_money_is_by_the_price_of_input_and_output() -> None:
    free = estimated([1, 1], 1_000, None)
    assert (free.turns, free.cost) == (2, None)
    assert free.input == 2 * CALLS_A_TURN * 1_000
    assert free.output == 2 * CALLS_A_TURN * OUTPUT_A_CALL
    priced = estimated([1, 1], 1_000, Price(input=1, output=2))
    assert priced.cost == pytest.approx((free.input + 2 * free.output) / 1_000_000)
    assert "no price is set" in str(free)
    assert "2 turns, about 6,000 tokens of input" in str(priced)


def test_later_turns_of_a_dialogue_cost_more() -> None:
    assert estimated([3], 1_000, None).input > estimated([1, 1, 1], 1_000, None).input


def test_the_first_call_is_counted_as_a_model_would_be_sent_it(tmp_path: Path) -> None:
    text = "How many orders are there?"
    with open_model_server() as server:
        server.always(say("No."))
        real = Shop(make_shop(tmp_path / "shop.db"), tmp_path, server.chat_model())
        events = [*real.conversation(SUBJECT, "t").stream(text)]
    first = next(event for event in events if event["type"] == "context_usage")
    silent = Shop(tmp_path / "shop.db", tmp_path, SilentModel())
    counted = first_call_tokens(silent.conversation(SUBJECT, "u"), text)
    assert counted == pytest.approx(first["total"], rel=0.05)
