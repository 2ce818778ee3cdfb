"""Old compactions of results are merged into one as well: view, undo, fork and time travel go on as
if each were still in the state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import UndoTooFarError
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    MemoryTools,
    build_graph,
    next_view,
)
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.merging import KEEP, MERGE_AT, merge_of, merged_count, unmerged
from longtable.memory.records import Compaction, is_results
from longtable.memory.thread import Edit
from longtable.nodes.call_plans import call_config_of
from longtable.nodes.reducers import append_records
from longtable.nodes.state import thread_of
from longtable.store.persistence import Persistence
from longtable.store.records.retired_store import read_compactions
from tests.support.models import ScriptedModel, call
from tests.support.threads import values_of

TURNS = 34
"""Each but the first few shrinks one result more."""
ROWS = 500
POLICY = CompactionPolicy(retire_after=100_000)


@tool
def look_up(week: int) -> str:
    """Return a table."""
    rows = [f"{week * 1_000 + row} | {row}" for row in range(ROWS)]
    return "\n".join(["flight | delay", *rows])


@dataclass(frozen=True)
class Played:
    """A conversation whose results shrank turn after turn."""

    persistence: Persistence
    conversation: Conversation
    views: Sequence[Sequence[BaseMessage]]
    """After each turn."""

    @property
    def call_config(self) -> CallConfig:
        """Return what surrounds the conversation's calls."""
        return call_config_of(values_of(self.conversation), self.conversation.context)

    @property
    def records(self) -> list[Compaction]:
        """Return the compactions of the state."""
        records: list[Compaction] = values_of(self.conversation)["compactions"]
        return records

    @property
    def all_records(self) -> list[Compaction]:
        """Return the compactions that ever were, retired ones first."""
        retired = read_compactions(self.persistence.store, "t", merged_count(self.records))
        return unmerged(retired, self.records)


@pytest.fixture(scope="module")
def played() -> Played:
    persistence = Persistence(InMemorySaver(), InMemoryStore())

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        number = len(model.sent)
        if messages[-1].type == "human":
            return call("look_up", call_id=f"c{number}", week=number)
        return AIMessage("Here it is.")

    model = ScriptedModel(say=say)
    graph = build_graph(
        model=model, tools=[look_up], policy=POLICY, memory_tools=MemoryTools(recall=False)
    )
    compiled = graph.compile(checkpointer=persistence.checkpointer, store=persistence.store)
    conversation = Conversation(compiled, "t", context=Context(model_limit=16_000))
    views: list[Sequence[BaseMessage]] = []
    for n in range(TURNS):
        conversation.ask(f"Show week {n}.")
        views.append(conversation.view())
    return Played(persistence, conversation, views)


def test_the_state_holds_the_newest_and_one_for_all_older(played: Played) -> None:
    records = played.records
    assert all(map(is_results, played.all_records))
    assert len(played.all_records) >= MERGE_AT
    assert KEEP < len(records) < MERGE_AT
    assert [record.get("merged", 0) > 0 for record in records] == [
        True,
        *[False] * len(records[1:]),
    ]
    assert records[0]["folded"] == sum(
        record["folded"] for record in played.all_records[: records[0]["merged"]]
    )


def test_answer_and_event_say_that_results_shrank(played: Played) -> None:
    fork = played.conversation.fork(TURNS, thread_id="events")
    answer = fork.ask("Show one more week.")
    [event] = answer.compactions
    assert event["type"] == "context_compressed"
    assert event["kind"] == "results"
    assert event["messages"] == 1
    assert event["method"] == "fallback"


def test_the_view_is_what_it_were_with_all_of_them(played: Played) -> None:
    values = values_of(played.conversation)
    whole = {**values, "compactions": played.all_records}
    context = played.conversation.context
    assert next_view(whole, context) == next_view(values, context)


def test_no_result_shrinks_twice(played: Played) -> None:
    records = played.all_records
    assert len({record["id"] for record in records}) == len(records)
    heads = [message for message in played.views[-1] if "reads them all" in message.text]
    assert sum(record["folded"] for record in records) == len(heads)


def test_undo_goes_back_one_by_one_up_to_what_was_merged(played: Played) -> None:
    fork = played.conversation.fork(TURNS, thread_id="undone")
    fork.ask("Show one more week.")  # merges what the fork took over
    records = values_of(fork)["compactions"]
    assert records[0].get("merged")
    for place in reversed(range(1, len(records))):
        assert fork.undo() == records[place]["id"]
        values = values_of(fork)
        assert thread_of(values).live_results[0] == records[place - 1]
        never_made = {**values, "compactions": records[:place], "edits": []}
        assert next_view(values, fork.context) == next_view(never_made, fork.context)
    with pytest.raises(UndoTooFarError):
        fork.undo()


@pytest.mark.parametrize("turn", [6, 15, 25])
def test_a_fork_sees_what_was_seen_then(turn: int, played: Played) -> None:
    first_kept = played.records[1]["turn"]
    assert first_kept > 15, "the fork must go back to what was merged"
    fork = played.conversation.fork(turn, thread_id=f"fork{turn}")
    assert fork.view() == played.views[turn - 1]
    made = [record["id"] for record in played.all_records if record["turn"] <= turn]
    assert [record["id"] for record in values_of(fork)["compactions"]] == made


def test_a_merge_that_is_written_twice_changes_nothing(played: Played) -> None:
    records = played.all_records
    thread = replace(thread_of(values_of(played.conversation)), compactions=records)
    merge = merge_of(thread, played.call_config)
    assert merge is not None
    once = append_records([*map(dict, records)], [merge.record])
    assert append_records(once, [merge.record]) == once
    assert len(once) == KEEP + 1
    assert once[0]["id"] == merge.record["id"]


def test_one_that_was_undone_does_not_stand_for_the_older_ones(played: Played) -> None:
    records = played.all_records
    thread = replace(thread_of(values_of(played.conversation)), compactions=records)
    newest_old = records[-KEEP - 1]
    edits = [
        Edit(id=f"undo{n}", op="undo", record=each["id"])
        for n, each in enumerate(records[-KEEP - 1 :])
    ]
    undone = replace(thread, edits=edits)
    assert undone.live_results[0] == records[-KEEP - 2]
    merge = merge_of(undone, played.call_config)
    assert merge is not None
    assert newest_old["id"] in merge.record["replaces"]
    after = replace(undone, compactions=append_records([*records], [merge.record]))
    assert after.live_results[1] == undone.live_results[1] > 0


def test_what_is_run_again_from_before_a_merge_is_made_and_merged_alike(played: Played) -> None:
    fork = played.conversation.fork(TURNS, thread_id="again")
    fork.ask("Show one more week.")
    records = values_of(fork)["compactions"]
    assert records[0].get("merged")
    before = next(
        state
        for state in fork.graph.get_state_history(fork.config)
        if state.next == ("compact",) and state.values["turn"]["number"] == TURNS + 1
    )
    assert len(before.values["compactions"]) > len(records)
    fork.graph.invoke(None, before.config, context=fork.context)
    again = values_of(fork)["compactions"]
    assert [record["id"] for record in again] == [record["id"] for record in records]
    assert again[0]["merged"] == records[0]["merged"]
    retired = read_compactions(played.persistence.store, "again", records[0]["merged"])
    assert len({record["id"] for record in retired}) == len(retired)
