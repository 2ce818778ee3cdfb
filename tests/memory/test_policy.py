"""Every number of the policy is checked when it is built."""

import pytest

from longtable.base.errors import ConfigError
from longtable.memory.policy import CompactionPolicy


def test_the_defaults_are_those_of_the_design() -> None:
    policy = CompactionPolicy()
    assert (policy.threshold, policy.target, policy.keep_rounds, policy.min_messages, policy.min_new_messages) == (0.6, 0.3, 6, 10, 4)
    assert policy.clip_tool_chars == 800


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threshold", 0),
        ("threshold", 1.2),
        ("target", 0.7),
        ("keep_rounds", 0),
        ("keep_rounds", 2.5),
        ("min_messages", -1),
        ("clip_tool_chars", 3),
        ("reserve", 0.5),
        ("keep_rounds", 10**20),
        ("trigger_messages", 0),
        ("memory_role", "tool"),
        ("strategy", ""),
        ("strategy", "window"),
        ("retire_after", -1),
    ],
)
def test_a_wrong_number_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        CompactionPolicy(**{field: value})  # type: ignore[arg-type]  # wrong on purpose


def test_a_policy_survives_json_and_an_unknown_field() -> None:
    policy = CompactionPolicy(keep_rounds=3)
    assert CompactionPolicy.from_json({**policy.as_json(), "of_a_later_version": 1}) == policy
