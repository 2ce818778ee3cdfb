"""How far back LangGraph has to read to load a thread."""

from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from longtable.graph import CompactionPolicy, Context, Conversation, build_graph, open_persistence
from longtable.nodes.state import REFRESH_TURNS, SELDOM, refresh_update
from tests.support.models import script

STEPS = 8
"""More checkpoints than any of these turns writes."""


def test_every_channel_of_a_long_thread_was_stored_whole_not_long_ago(tmp_path: Path) -> None:
    turns = 2 * REFRESH_TURNS + 6
    model = script(*(f"answer {n}" for n in range(turns)))
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        app = build_graph(model=model, policy=CompactionPolicy(threshold=0.4, target=0.2)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(app, "long", context=Context(model_limit=4_000))
        conversation.ask("question 0")
        pin = conversation.pin("Round to whole minutes.")
        for n in range(1, turns):
            conversation.ask(f"question {n}")
        config: RunnableConfig = {"configurable": {"thread_id": "long"}}
        newest_first = [item.checkpoint for item in kept.checkpointer.list(config)]
        written = {name for name in ("messages", *SELDOM) if name in newest_first[0]["channel_versions"]}
        assert {"messages", "brief", "edits", "compactions"} <= written
        for name in written:
            since = next(i for i, found in enumerate(newest_first) if isinstance(found["channel_values"].get(name), _DeltaSnapshot))
            assert since <= (REFRESH_TURNS + 2) * STEPS, name
        assert [each.id for each in conversation.pins()] == [pin.id]
        assert len(conversation.history()) == 2 * turns


def test_storing_again_changes_no_value_and_is_seldom() -> None:
    values = {"brief": {"limit": 9}, "compactions": [{"id": "a"}], "edits": [], "messages": ["m"]}
    assert refresh_update(values, REFRESH_TURNS) == {"brief": {"limit": 9}, "compactions": [], "edits": []}
    assert [turn for turn in range(1, 100) if "brief" in refresh_update(values, turn)] == [32, 64, 96]
    assert [refresh_update(values, turn) for turn in (1, 4)] == [{}, {"compactions": []}]
