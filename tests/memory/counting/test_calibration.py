"""The ratio follows a provider's own counts, within bounds, and no odd report holds it for long."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.memory.counting.calibration import HIGHEST, LEAST_COUNTED, LOWEST, Calibration

COUNTED = 10_000
NEW = Calibration()


def usage(tokens: object, **cached: object) -> dict[str, Any]:
    """Return a report as LangChain's `UsageMetadata` holds it."""
    report: dict[str, Any] = {"input_tokens": tokens, "output_tokens": 50, "total_tokens": 0}
    return {**report, "input_token_details": cached} if cached else report


def after(*ratios: float, start: Calibration = NEW) -> Calibration:
    """Return what is known after one call a ratio."""
    for ratio in ratios:
        start = start.learn(COUNTED, usage(round(COUNTED * ratio)))
    return start


def test_one_call_teaches_the_ratio() -> None:
    known = after(1.4)
    assert (known.ratio, known.factor, known.samples) == (1.4, 1.4, 1)


def test_the_trigger_never_goes_below_the_count() -> None:
    known = after(0.7)
    assert (known.ratio, known.factor) == (0.7, 1.0)


@given(st.floats(0.6, 2.5), st.lists(st.floats(0.95, 1.05), min_size=3, max_size=30))
def test_three_calls_bring_the_ratio_within_a_tenth_and_it_stays_there(
    k: float, noise: list[float]
) -> None:
    known = NEW
    for i, each in enumerate(noise):
        known = after(k * each, start=known)
        if i >= 2:
            assert 0.9 * k <= known.ratio <= 1.1 * k
            assert 0.9 * max(1, k) <= known.factor <= 1.1 * max(1, k)


@given(
    st.floats(0.6, 2.5),
    st.floats(0.6, 2.5),
    st.lists(st.floats(0.95, 1.05), min_size=6, max_size=6),
)
def test_three_calls_after_a_change_of_model_or_matter_suffice_too(
    k: float, other: float, noise: list[float]
) -> None:
    known = after(*(k * each for each in noise[:3]), *(other * each for each in noise[3:]))
    assert 0.9 * other <= known.ratio <= 1.1 * other


@given(st.floats(0.6, 2.5), st.floats(2, 100), st.integers(0, 6))
def test_one_wild_report_raises_the_factor_by_half_at_most_and_is_gone_after_the_next_call(
    k: float, wild: float, before: int
) -> None:
    known = after(*[k] * before)
    struck = after(k * wild, start=known)
    assert struck.ratio <= HIGHEST
    if before:
        assert struck.factor <= 1.5 * known.factor + 0.001
    assert after(k, start=struck).ratio == pytest.approx(k, abs=0.001)


def test_a_rise_is_believed_at_once_where_it_is_small_and_at_the_second_reading_where_it_is_large() -> (
    None
):
    assert after(1, 1, 1, 1.4).ratio == 1.4
    assert after(1, 1, 1, 2.4).ratio == 1.5
    assert after(1, 1, 1, 2.4, 2.4).ratio == 2.4


def test_one_low_report_does_not_lower_it() -> None:
    assert after(1.5, 1.5, 1.5, 0.6).ratio == 1.5
    assert after(1.5, 1.5, 1.5, 0.9, 0.9, 0.9).ratio == 0.9


def test_a_server_that_adds_up_its_calls_is_no_longer_believed_once_the_sums_are_absurd() -> None:
    known = NEW
    for call in range(1, 20):
        known = after(float(call), start=known)
        assert known.ratio <= HIGHEST
    assert known.factor == 1.0


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        {"input_tokens": None},
        {"input_tokens": "12000"},
        {"input_tokens": 0},
        {"input_tokens": -3},
        {"input_tokens": True},
        {"input_tokens": float("nan")},
        {"input_tokens": float("inf")},
        {"output_tokens": 5},
        "usage",
        # What a server says that reports only what its cache did not hold, without saying so.
        usage(300),
    ],
)
def test_nothing_is_learned_from_a_report_that_says_nothing(broken: Any) -> None:
    for known in (NEW, after(1.5)):
        assert known.learn(COUNTED, broken) == known


@pytest.mark.parametrize(
    "details",
    [None, "x", {"cache_read": None}, {"cache_read": "9"}, {"cache_read": -5}, {"other": 3}],
)
def test_broken_details_are_passed_over(details: object) -> None:
    assert NEW.learn(COUNTED, {"input_tokens": 12_000, "input_token_details": details}).ratio == 1.2


@pytest.mark.parametrize("counted", [0, -1, 1, LEAST_COUNTED - 1])
def test_a_tiny_call_teaches_nothing(counted: int) -> None:
    assert NEW.learn(counted, usage(2 * LEAST_COUNTED)) == NEW


@given(
    st.floats(0.7, 2.4),
    st.lists(st.tuples(st.floats(0, 0.99), st.floats(0, 1)), max_size=12),
    st.booleans(),
)
def test_cached_tokens_neither_lower_nor_double_the_ratio(
    k: float, calls: list[tuple[float, float]], included: bool
) -> None:
    """`included`: the server counts cached tokens into the input (OpenAI), or leaves them out
    (Anthropic's protocol).
    """
    known = after(k)
    total = round(COUNTED * k)
    for share, read in calls:
        cached = int(total * share)
        reads = int(cached * read)
        known = known.learn(
            COUNTED,
            usage(
                total if included else total - cached,
                cache_read=reads,
                cache_creation=cached - reads,
            ),
        )
        assert known.ratio == pytest.approx(k, rel=0.001)


@given(st.floats(0.7, 2.4), st.floats(0, 0.95))
def test_cached_tokens_in_the_first_call_of_a_thread_never_double_the_ratio(
    k: float, share: float
) -> None:
    total = round(COUNTED * k)
    first = NEW.learn(COUNTED, usage(total, cache_read=int(total * share)))
    assert first.factor <= max(1.0, k) + 0.001


READINGS = st.tuples(
    st.integers(-10, 10**7),
    st.one_of(st.none(), st.text(max_size=3), st.integers(-10, 10**9), st.floats()),
    st.one_of(st.none(), st.integers(-10, 10**9), st.floats()),
)


@given(st.lists(READINGS, max_size=20))
def test_whatever_is_reported_the_ratio_stays_within_its_bounds_and_survives_json(
    reports: list[tuple[int, Any, Any]],
) -> None:
    known = NEW
    for counted, tokens, cached in reports:
        known = known.learn(counted, usage(tokens, cache_read=cached))
        assert LOWEST <= known.ratio <= HIGHEST
        assert 1 <= known.factor <= HIGHEST
        assert len(known.recent) <= 3
        assert Calibration.from_json(json.loads(json.dumps(known.as_json()))) == known


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"ratio": "x", "samples": -1, "limit": "8k", "recent": None},
        {"ratio": float("nan"), "limit": True, "recent": ["x", True]},
    ],
)
def test_what_cannot_be_read_is_as_if_nothing_were_known(value: Any) -> None:
    assert Calibration.from_json(value) == NEW


def test_what_is_out_of_bounds_is_read_within_them() -> None:
    assert Calibration.from_json({"ratio": 99, "recent": [99, 0.01, 1, 2]}) == Calibration(
        ratio=HIGHEST, recent=(LOWEST, 1, 2)
    )
