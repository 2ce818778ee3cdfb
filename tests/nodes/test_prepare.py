"""Whether there is anything to prepare after a turn: found out without planning a call where the
count already says no.
"""

from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime

from longtable.base.context import Context
from longtable.memory.policy import CompactionPolicy
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.compact import plan_ahead
from longtable.nodes.estimate import CallPlans, usage_figures
from longtable.nodes.prepare import worth_preparing
from longtable.nodes.state import Now, State, StoredConfig

INFO = ExecutionInfo(checkpoint_id="c", checkpoint_ns="", task_id="x", thread_id="t", run_id=None)
RUN = Runtime(context=Context(), execution_info=INFO)


def after_an_answer(sizes: list[int], limit: int, **policy: Any) -> State:
    """Return the state that `settle` sees: rounds of these sizes in words, counted before the
    newest answer.
    """
    messages: list[AnyMessage] = []
    for n, size in enumerate(sizes):
        messages += [
            HumanMessage(f"{n} " + "north " * size, id=f"q{n}"),
            AIMessage(f"{n} " + "south " * size, id=f"a{n}"),
        ]
    config = CompactionPolicy(min_messages=0, **policy).as_json()
    brief: StoredConfig = {
        "system": "You answer.",
        "limit": limit,
        "encoding": "o200k_base",
        "policy": config,
    }
    state: State = {"messages": messages, "brief": brief, "turn": {"status": "running"}}
    before = call_plan_of({**state, "messages": messages[:-1]}, Context())
    return cast(
        "State",
        {**state, "usage": {"due": False, **usage_figures(before.view, before.call_config)}},
    )


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=14),
    limit=st.integers(500, 20_000),
    trigger=st.none() | st.integers(1, 5_000),
    many=st.none() | st.integers(1, 20),
)
def test_a_compaction_ahead_is_never_missed_by_looking_at_the_count_alone(
    sizes: list[int], limit: int, trigger: int | None, many: int | None
) -> None:
    state = after_an_answer(sizes, limit, trigger_tokens=trigger, trigger_messages=many)
    due = plan_ahead(call_plan_of(state, Context()), None) is not None
    assert worth_preparing(Now.of(state, RUN), CallPlans()) == due


def test_far_below_the_threshold_no_message_is_looked_at_again_after_the_answer() -> None:
    plans, state = CallPlans(), after_an_answer([50] * 20, 100_000)
    now = Now.of(state, RUN)
    assert not worth_preparing(now, plans)
    assert "messages" not in vars(plans.of(now))
