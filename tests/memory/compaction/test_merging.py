"""Old compactions are merged into one and retire to the store: the state stays small, and nothing
rests on less than before.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ArchiveGapError, UndoTooFarError
from longtable.base.stored import USAGE
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    MemoryTools,
    build_graph,
    next_view,
)
from longtable.graph.changes import topic_histories
from longtable.graph.thread_state import StoredThreads
from longtable.graph.threads import delete_thread, import_thread
from longtable.graph.transcripts import load_thread
from longtable.memory.compaction.merging import KEEP, MERGE_AT, merge_of, merged_count, unmerged
from longtable.memory.records import Compaction
from longtable.nodes.call_plans import call_config_of
from longtable.nodes.reducers import append_records
from longtable.nodes.state import thread_of
from longtable.store.persistence import Persistence
from longtable.store.records.retired_store import read_compactions, retire_compactions
from tests.support.models import ScriptedModel, call
from tests.support.threads import values_of

TIGHT = CompactionPolicy(retire_after=100_000, keep_rounds=1, min_messages=2, ahead=False)
SUBJECTS = ("flights", "weather", "airlines", "planes")


def kept() -> Persistence:
    return Persistence(InMemorySaver(), InMemoryStore())


@tool
def count(subject: str) -> str:
    """Count."""
    return f"{len(subject)}"


def talk(
    persistence: Persistence, turns: int, policy: CompactionPolicy = TIGHT, thread_id: str = "t"
) -> Conversation:
    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        question = next(m.text for m in reversed(messages) if m.type == "human")
        if messages[-1].type == "human" and "How many" in question:
            return call("count", call_id=f"c{len(model.sent)}", subject=question.split()[2])
        return AIMessage(f"There were {len(model.sent)} of them. " + "and so on " * 80)

    model = ScriptedModel(say=say)
    graph = build_graph(
        model=model, tools=[count], policy=policy, memory_tools=MemoryTools(recall=False)
    )
    conversation = Conversation(
        graph.compile(checkpointer=persistence.checkpointer, store=persistence.store),
        thread_id,
        context=Context(model_limit=4_000),
    )
    for n in range(turns):
        rule = (
            f"Always round the {SUBJECTS[n % 4]} to {n} digits."
            if n % 5 == 0
            else f"How many {SUBJECTS[n % 4]} in week {n}?"
        )
        conversation.ask(rule)
        conversation.compact()
    return conversation


@pytest.fixture(scope="module")
def long() -> tuple[Persistence, Conversation]:
    persistence = kept()
    return persistence, talk(persistence, 44)


def test_the_state_holds_few_compactions_and_the_store_the_others(
    long: tuple[Persistence, Conversation],
) -> None:
    persistence, conversation = long
    records = values_of(conversation)["compactions"]
    gone = merged_count(records)
    assert gone > 0
    assert KEEP < len(records) < MERGE_AT + 2
    assert read_compactions(persistence.store, "t", gone)[-1]["id"] == records[0]["id"]
    with pytest.raises(ArchiveGapError, match="compactions"):
        read_compactions(persistence.store, "t", gone + 1)


@pytest.mark.parametrize("strategy", ["rolling", "topics"])
def test_the_view_is_what_it_were_with_all_compactions(
    strategy: str, long: tuple[Persistence, Conversation]
) -> None:
    persistence, conversation = long
    if strategy == "topics":
        persistence = kept()
        conversation = talk(persistence, 44, replace(TIGHT, strategy="topics", retire_after=12))
    values = values_of(conversation)
    gone = merged_count(values["compactions"])
    assert gone > 0
    whole = unmerged(read_compactions(persistence.store, "t", gone), values["compactions"])
    assert len(whole) == gone + len(values["compactions"]) - 1
    assert next_view({**values, "compactions": whole}, conversation.context) == next_view(
        values, conversation.context
    )
    assert [pin.id for pin in thread_of({**values, "compactions": whole}).pins] == [
        pin.id for pin in thread_of(values).pins
    ]
    for topic in conversation.topics():
        assert [version.version for version in topic.versions] == list(range(1, topic.version + 1))
    assert bool(conversation.topics()) == (strategy == "topics")
    record, _ = load_thread(StoredThreads(conversation.graph), "t", None)
    # As the web route gives them.
    assert topic_histories(record.thread, record.retired) == conversation.topics()


def test_an_export_and_a_fork_have_the_retired_ones_too(
    long: tuple[Persistence, Conversation],
) -> None:
    _, conversation = long
    whole = conversation.export()
    other = kept()
    import_thread(other, whole.splitlines())
    graph = conversation.graph.builder.compile(checkpointer=other.checkpointer, store=other.store)
    again = Conversation(graph, "t", context=conversation.context)
    assert again.export() == whole
    assert again.ask("How many planes in week 99?").status == "answered"
    first = next(
        json.loads(line)["record"] for line in whole.splitlines() if "retired_compaction" in line
    )
    fork = conversation.fork(first["turn"], thread_id="fork")
    assert [record["id"] for record in values_of(fork)["compactions"]] == [first["id"]]
    assert any(first["summary"] in str(message.content) for message in fork.view())
    delete_thread(other, "t")
    # What it took stays.
    assert {item.namespace for item in other.store.search(("longtable",), limit=1_000)} <= {USAGE}


def test_undo_goes_back_to_what_was_merged(long: tuple[Persistence, Conversation]) -> None:
    _, conversation = long
    again = conversation.fork(44, thread_id="undone")
    again.ask("How many planes in week 99?")
    undone = thread_of(values_of(again))
    assert undone.compactions[0]["merged"] > 0
    for record in reversed(undone.compactions[1:]):
        assert again.undo() == record["id"]
    with pytest.raises(UndoTooFarError):
        again.undo()
    assert undone.compactions[0]["summary"] in str(again.view()[0].content)


def test_merging_is_idempotent_and_leaves_another_branch_alone(
    long: tuple[Persistence, Conversation],
) -> None:
    _, conversation = long
    values = values_of(conversation)
    thread, call_config = thread_of(values), call_config_of(values, conversation.context)
    newest = thread.compactions[-1]
    more: list[Compaction] = [
        {**newest, "id": f"x{n}", "previous": f"x{n - 1}" if n else newest["id"]}
        for n in range(MERGE_AT)
    ]
    merge = merge_of(replace(thread, compactions=[*thread.compactions, *more]), call_config)
    assert merge is not None
    assert merge.first == merged_count(thread.compactions) + 1
    once = append_records([*map(dict, thread.compactions), *map(dict, more)], [merge.record])
    assert append_records(once, [merge.record]) == once
    assert [record["id"] for record in once[:2]] == [merge.record["id"], more[-KEEP]["id"]]
    store = InMemoryStore()
    assert retire_compactions(store, "t", merge)
    assert retire_compactions(store, "t", merge)
    assert not retire_compactions(
        store,
        "t",
        replace(
            merge, retired=[*merge.retired[1:], cast("Compaction", {"id": "of another branch"})]
        ),
    )
