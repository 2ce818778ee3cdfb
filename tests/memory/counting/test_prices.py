"""What calls cost by a table of prices."""

from dataclasses import replace

import pytest

from longtable.base.errors import ConfigError
from longtable.memory.counting.prices import Price, price_of, price_rows
from longtable.memory.counting.usage import Spent


def spent(model: str = "gpt-4o", *, input: int = 0) -> Spent:
    return Spent("2024-01-01", "t", model, calls=1, input=input)


def test_cached_and_reasoning_tokens_have_prices_of_their_own() -> None:
    row = replace(spent(input=1_000_000), output=1_000_000, cached=400_000, reasoning=500_000)
    assert Price(input=1, output=10).of(row) == 11
    assert Price(input=1, output=10, cached=0.5, reasoning=20).of(row) == pytest.approx(15.8)


def test_a_models_own_name_comes_before_the_longest_pattern() -> None:
    prices = {
        name: Price(input=cost, output=0)
        for cost, name in enumerate(["*", "gpt-*", "gpt-4o*", "gpt-4o"])
    }
    assert price_of("gpt-4o", prices) == prices["gpt-4o"]
    assert price_of("gpt-4o-mini", prices) == prices["gpt-4o*"]
    assert price_of("other", prices) == prices["*"]
    assert price_of("other", {"gpt-*": Price(input=1, output=1)}) is None


def test_calls_of_a_model_without_a_price_say_so() -> None:
    prices = {"gpt-4o": Price(input=2, output=0)}
    known, unknown = price_rows([spent(input=1_000_000), spent("other", input=5)], prices)
    assert (known.cost, known.unpriced) == (2.0, 0)
    assert (unknown.cost, unknown.unpriced) == (None, 1)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", True, 1e9, None])
def test_a_price_that_is_no_amount_is_refused(wrong: float) -> None:
    with pytest.raises(ConfigError, match="the price of input"):
        Price(input=wrong, output=1)


def test_tokens_written_to_the_cache_have_a_price_of_their_own() -> None:
    row = replace(spent(input=1_000_000), cached=600_000, cache_written=200_000)
    price = Price(input=3, output=15, cached=0.3, cache_write=3.75)
    assert price.of(row) == pytest.approx(0.2 * 3 + 0.6 * 0.3 + 0.2 * 3.75)
    assert Price(input=3, output=15).of(row) == pytest.approx(3.0)
