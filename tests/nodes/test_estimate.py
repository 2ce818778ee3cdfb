"""The call plan: built once for the same values, and never another run's."""

from typing import cast

import pytest
from langchain_core.messages import HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime

from longtable.base.context import Context
from longtable.memory.policy import CompactionPolicy
from longtable.nodes.call_plans import Readings
from longtable.nodes.estimate import KEPT_PLANS, CallPlans
from longtable.nodes.state import Learned, Now, State, StoredConfig


def run(thread_id: str | None = "t", context: Context | None = None) -> Runtime[Context]:
    info = ExecutionInfo(
        checkpoint_id="c", checkpoint_ns="", task_id="x", thread_id=thread_id, run_id=None
    )
    return Runtime(context=context or Context(), execution_info=info)


def now(state: State, thread_id: str | None = "t", context: Context | None = None) -> Now:
    return Now.of(state, run(thread_id, context))


def values(text: str = "How many?") -> State:
    brief: StoredConfig = {
        "system": "You answer.",
        "limit": 8_000,
        "encoding": "o200k_base",
        "policy": CompactionPolicy().as_json(),
    }
    return {"messages": [HumanMessage(text, id="1")], "brief": brief, "turn": {"status": "running"}}


def test_the_next_node_gets_the_plan_that_was_built() -> None:
    plans, state = CallPlans(), values()
    plan = plans.of(now(state))
    assert plans.of(now({**state, "turn": {"status": "running", "calls": 1}})) is plan
    # A node that counts made its own list.
    assert plans.of(now({**state, "messages": [*state["messages"]]})) is plan
    assert plan.view is plan.view


@pytest.mark.parametrize(
    "changed", ["messages", "compactions", "edits", "archive", "brief", "learned"]
)
def test_a_channel_that_was_written_makes_a_new_plan(changed: str) -> None:
    plans, state = CallPlans(), values()
    plan = plans.of(now(state))
    written: dict[str, object] = {
        "messages": [state["messages"][0].model_copy()],
        "brief": {**state["brief"]},
        "compactions": [],
        "edits": [],
    }
    again = plans.of(now(cast("State", {**state, changed: written.get(changed, {})})))
    assert again is not plan
    assert again.view.messages == plan.view.messages


def test_another_ceiling_or_context_makes_a_new_plan() -> None:
    plans, state = CallPlans(), values()
    plan = plans.of(now(state))
    assert (
        plans.of(now({**state, "turn": {"status": "overflow", "ceiling": 500}})).call_config.ceiling
        == 500
    )
    assert (
        plans.of(now(state, context=Context(system_prompt="Other."))).call_config.system == "Other."
    )
    assert plan.call_config.ceiling is None


def test_two_runs_at_once_on_one_thread_never_get_each_others_plan() -> None:
    plans, one, other = CallPlans(), values("one"), values("other")
    for state in (one, other, one):
        assert plans.of(now(state)).view.messages[-1].text == state["messages"][0].text


def test_plans_of_turns_that_are_over_or_were_cancelled_are_not_kept() -> None:
    plans, state = CallPlans(), values()
    plan = plans.of(now(state))
    plans.drop("t")
    assert plans.of(now(state)) is not plan
    kept = plans.of(now(state))
    for n in range(KEPT_PLANS):
        plans.of(now(state, f"cancelled-{n}"))
    assert plans.of(now(state)) is not kept


def test_a_run_without_a_thread_keeps_no_plan() -> None:
    plans, state = CallPlans(), values()
    assert plans.of(now(state, None)) is not plans.of(now(state, None))


def test_a_stored_policy_and_calibration_are_read_once_a_value() -> None:
    readings = Readings()
    config: StoredConfig = {"policy": CompactionPolicy(threshold=0.5).as_json()}
    policy = readings.policy(config)
    assert policy.threshold == 0.5
    assert readings.policy({"policy": dict(config["policy"])}) is policy
    assert readings.policy({"policy": CompactionPolicy(threshold=0.7).as_json()}).threshold == 0.7
    learned: Learned = {"ratio": 1.5, "samples": 3, "limit": None, "recent": [1.5]}
    calibration = readings.calibration(learned)
    assert calibration.ratio == 1.5
    assert readings.calibration(Learned(**learned)) is calibration
    assert readings.calibration({**learned, "ratio": 2.0}).ratio == 2.0
