"""Every number of the policy is checked when it is built."""

import dataclasses
import inspect

import pytest

from longtable.base.errors import ConfigError
from longtable.base.settings_base import SettingWarning
from longtable.memory import policy as presets
from longtable.memory.policy import CompactionPolicy


def test_the_defaults_are_those_of_the_design() -> None:
    policy = CompactionPolicy()
    assert (policy.threshold, policy.keep_rounds, policy.min_messages) == (
        0.6,
        6,
        10,
    )
    assert list(inspect.signature(CompactionPolicy).parameters) == [
        field.name for field in dataclasses.fields(policy)
    ]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("threshold", 0, "must be a number between 0 and 1, found 0"),
        ("threshold", 1.2, "must be a number between 0 and 1, found 1.2"),
        ("threshold", float("nan"), "must be a number between 0 and 1, found nan"),
        ("keep_rounds", 0, "must be a whole number from 1 to 1,000,000,000, found 0"),
        ("keep_rounds", 2.5, "must be a whole number from 1 to 1,000,000,000, found 2.5"),
        ("keep_rounds", True, "must be a whole number from 1 to 1,000,000,000, found True"),
        ("keep_rounds", "6", "must be a whole number from 1 to 1,000,000,000, found '6'"),
        ("keep_rounds", 10**20, "must be a whole number"),
        ("min_messages", -1, "must be a whole number from 0 to 1,000,000,000, found -1"),
        ("trigger_messages", 0, "must be a whole number from 1 to 1,000,000,000 or None, found 0"),
        ("retire_after", -1, "must be a whole number from 0 to 1,000,000,000 or None, found -1"),
        ("memory_role", "tool", "must be 'system', 'assistant' or 'user', found 'tool'"),
        ("strategy", "", "must be text that is not blank, found ''"),
        ("strategy", "window", "'window' needs keep_messages"),
        ("ahead", 1, "must be a valid boolean, found 1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field_and_what_is_allowed(
    field: str, value: float, allowed: str
) -> None:
    with pytest.raises(ConfigError, match=f"CompactionPolicy.{field} {allowed}"):
        CompactionPolicy(**{field: value})  # type: ignore[arg-type]  # wrong on purpose


def test_threshold_and_reserve_leave_room_for_each_other() -> None:
    with pytest.raises(ConfigError, match="together must not pass 1"):
        CompactionPolicy(reserve=0.5)


@pytest.mark.parametrize("field", CompactionPolicy.WITHOUT_EFFECT)
def test_a_field_without_effect_is_read_with_a_note(field: str) -> None:
    with pytest.warns(SettingWarning, match=f"CompactionPolicy.{field} has no effect any more"):
        policy = CompactionPolicy(**{field: 0.2})  # type: ignore[arg-type]  # of an earlier version
    assert policy == CompactionPolicy()


@pytest.mark.parametrize("field", CompactionPolicy.REPLACED)
def test_a_field_of_an_earlier_version_is_refused_with_what_replaced_it(field: str) -> None:
    with pytest.raises(
        ConfigError,
        match=(
            f"CompactionPolicy has no field '{field}' any more: {CompactionPolicy.REPLACED[field]}"
        ),
    ):
        CompactionPolicy(**{field: 1})  # type: ignore[arg-type]  # wrong on purpose


def test_a_stored_policy_is_read_whatever_fields_its_version_had() -> None:
    policy = CompactionPolicy(keep_rounds=3)
    assert (
        CompactionPolicy.from_json(
            {**policy.as_json(), "of_a_later_version": 1, "target": 0.2, "min_new_messages": 4}
        )
        == policy
    )


def test_every_preset_is_a_policy() -> None:
    made = [
        presets.analyst(),
        presets.rolling_chat(),
        presets.single_history(),
        presets.window(),
        presets.topics(),
    ]
    assert [policy.strategy for policy in made] == [
        "rolling",
        "rolling",
        "rolling",
        "window",
        "topics",
    ]
