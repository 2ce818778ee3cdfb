"""The settings of a run are checked when built."""

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.app.offline.model import BuiltInAnalyst
from longtable.graph import Context, build_graph
from longtable.graph.context import BOUNDS
from longtable.graph.errors import ConfigError


@pytest.mark.parametrize("name", BOUNDS)
def test_a_whole_number_is_taken_up_to_its_bounds_and_refused_beyond(name: str) -> None:
    least, most = BOUNDS[name]
    for value in (least, most):
        assert getattr(Context().replace(**{name: value}), name) == value
    for wrong in (least - 1, most + 1, 99_999_999_999_999_999_999, 10**9_000, -(10**9_000), 1.5, "7", True):
        with pytest.raises(ConfigError, match=f"Context.{name} must be a whole number from {least:,} to {most:,}, found") as caught:
            Context().replace(**{name: wrong})
        assert len(str(caught.value)) < 300


def test_the_largest_numbers_of_all_can_be_run_with() -> None:
    graph = build_graph(model=BuiltInAnalyst()).compile(checkpointer=InMemorySaver())
    context = Context().replace(**{name: most for name, (_, most) in BOUNDS.items()})
    assert (
        graph.invoke({"messages": [HumanMessage("hello")]}, {"configurable": {"thread_id": "t"}}, context=context)["turn"]["status"]
        == "answered"
    )


@pytest.mark.parametrize(("name", "value"), [("language", "fr"), ("system_prompt", "  "), ("memory_prompt", 7)])
def test_another_setting_that_cannot_be_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"Context.{name} must be"):
        Context().replace(**{name: value})
