"""What is read of a provider's report, whatever is broken in it."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from longtable.memory.counting.provider_reports import (
    charged,
    money,
    reported,
    reported_model,
    token_count,
)


def answer(**usage: Any) -> AIMessage:
    message = AIMessage("hi")
    message.usage_metadata = usage  # type: ignore[assignment]  # as servers send it, checked by none
    return message


def test_cached_and_reasoning_tokens_are_never_more_than_the_whole() -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "input_token_details": {"cache_read": 400},
        "output_token_details": {"reasoning": 5},
    }
    assert reported(answer(**usage)) == {
        "input": 100,
        "output": 20,
        "cached": 100,
        "reasoning": 5,
        "cache_written": 0,
    }


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": -3, "output_tokens": 20},
        {"input_tokens": "100", "output_tokens": 20},
        {"input_tokens": 100},
    ],
)
def test_a_report_that_cannot_be_is_none(usage: dict[str, Any]) -> None:
    assert reported(answer(**usage)) is None


@pytest.mark.parametrize(
    ("value", "count"),
    [(3, 3), (3.0, 3), (0, 0), (-1, None), (3.5, None), (True, None), ("3", None), (2**60, None)],
)
def test_a_count_of_tokens_is_a_whole_number(value: object, count: int | None) -> None:
    assert token_count(value) == count


@pytest.mark.parametrize("value", [-1, True, "1", None, float("nan"), float("inf"), 1e9])
def test_what_is_no_amount_of_money_is_none(value: object) -> None:
    assert money(value) is None


def test_a_model_is_named_by_either_key() -> None:
    assert reported_model(AIMessage("", response_metadata={"model_name": "a", "model": "b"})) == "a"
    assert reported_model(AIMessage("", response_metadata={"model_name": 3, "model": "b"})) == "b"
    assert reported_model(AIMessage("")) == ""


def test_a_cost_is_read_where_providers_put_it() -> None:
    for metadata in ({"cost": 0.5}, {"token_usage": {"cost": 0.5}}, {"usage": {"cost": 0.5}}):
        assert charged(AIMessage("", response_metadata=metadata)) == 0.5
    assert charged(AIMessage("", response_metadata={"usage": {"cost": "free"}})) is None


@pytest.mark.parametrize(
    "details",
    [
        {"cache_read": 60, "cache_creation": 30},
        # langchain-anthropic, if the API tells the lifetimes apart
        {"cache_read": 60, "cache_creation": 0, "ephemeral_1h_input_tokens": 30},
    ],
)
def test_tokens_written_to_the_cache_are_told_apart_from_those_read(
    details: dict[str, int],
) -> None:
    known = reported(answer(input_tokens=100, output_tokens=20, input_token_details=details))
    assert known is not None
    assert (known["input"], known["cached"], known["cache_written"]) == (100, 60, 30)
