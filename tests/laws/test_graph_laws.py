"""The rules of compaction through the graph: the gate on sync and async paths, once across
restarts, originals byte for byte.
"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import LongtableError, ModelContextOverflowError
from longtable.graph import (
    CompactionPolicy,
    Conversation,
    Summarizer,
    build_graph,
    open_persistence,
)
from longtable.memory import policy as presets
from longtable.memory.counting.tokens import counter
from longtable.memory.summary.summary_text import cited_numbers
from tests.memory.messages.test_rounds import assert_paired
from tests.support.compacting import system_of
from tests.support.models import ScriptedModel, call
from tests.support.threads import (
    CONTEXT,
    GOOD,
    LIMIT,
    of_type,
    summariser,
    talk,
    talker,
    thread,
    values_of,
)

RULE = "From now on report all distances in kilometres."
NEVER = threading.Event()
Say = Callable[[Any], AIMessage]


def raising(error: Exception) -> Say:
    def say(_: Any) -> AIMessage:
        raise error

    return say


def slow(_: Any) -> AIMessage:
    NEVER.wait(0.3)
    return AIMessage(GOOD)


# name: what the summariser does, who writes the memory then, what the event's reasons say
FAULTS: dict[str, tuple[Say, str, set[str]]] = {
    "raises": (raising(RuntimeError("down")), "fallback", {"summariser_failed"}),
    "cannot be reached": (raising(ConnectionError("no route")), "fallback", {"summariser_failed"}),
    "takes too long": (slow, "fallback", {"summariser_failed"}),
    "overflows itself": (
        raising(ModelContextOverflowError("too long")),
        "fallback",
        {"summariser_failed"},
    ),
    "returns nothing": (lambda _: AIMessage(""), "fallback", {"empty"}),
    "returns the messages": (
        lambda sent: AIMessage(sent[-1].text.partition("<messages>")[2]),
        "fallback",
        {"empty"},
    ),
    "returns more": (
        lambda _: AIMessage("## Constraints\n" + "- nothing of weight\n" * 3_000),
        "model",
        set(),
    ),
    "calls a tool": (lambda _: call("run_sql", sql="DROP TABLE flights"), "fallback", {"empty"}),
    "invents ids": (
        lambda _: AIMessage(f"{GOOD}\n## Decisions\n- agreed [m77777]"),
        "model",
        set(),
    ),
    "drops the pins": (lambda _: AIMessage(GOOD), "model", set()),
}


def run(conversation: Conversation, turns: int, *, run_async: bool) -> list[dict[str, Any]]:
    """Run turns that begin with a rule, by the sync or the async path."""
    questions = [RULE, *(f"q{n} " + "w " * 82 for n in range(turns))]
    if not run_async:
        return [dict(event) for question in questions for event in conversation.stream(question)]

    async def all_turns() -> list[dict[str, Any]]:
        return [
            dict(event) for question in questions async for event in conversation.astream(question)
        ]

    return asyncio.run(all_turns())


@pytest.mark.parametrize(
    ("fault", "run_async"),
    [
        *((fault, False) for fault in FAULTS),
        *(
            (fault, True)
            for fault in ("raises", "takes too long", "calls a tool", "drops the pins")
        ),
    ],
)
def test_whatever_the_summariser_does_every_turn_succeeds_and_the_event_says_what_happened(
    fault: str, run_async: bool
) -> None:
    say, method, codes = FAULTS[fault]
    seconds = 0.05 if fault == "takes too long" else 60.0
    conversation = thread(
        model := talker(), summarizer=Summarizer(model=summariser(say), seconds=seconds)
    )
    events = run(conversation, 12, run_async=run_async)
    assert [event["status"] for event in of_type(events, "answer")] == ["answered"] * 13
    folds = of_type(events, "context_compressed")
    assert folds
    assert {fold["method"] for fold in folds} == {method}
    for fold in folds:
        found = {reason["code"] for reason in fold["reasons"]}
        assert codes <= found
        assert bool(found) == bool(codes)
    assert of_type(events, "context_compaction_skipped") == []
    for sent in model.sent:
        assert counter("o200k_base").messages(sent) <= 0.6 * LIMIT
        assert any(RULE in message.text for message in sent)
    for record in values_of(conversation)["compactions"]:
        assert max(cited_numbers(record["summary"]), default=0) <= record["count"]


@pytest.mark.parametrize(
    "policy",
    [
        presets.analyst(),
        presets.rolling_chat(),
        presets.single_history(),
        presets.window(6),
        presets.topics(),
    ],
    ids=["analyst", "rolling_chat", "single_history", "window", "topics"],
)
def test_every_preset_keeps_the_transcript_whole_and_its_calls_under_the_threshold(
    policy: CompactionPolicy,
) -> None:
    conversation = thread(model := talker(), policy=policy)
    talk(conversation, 40)
    history = conversation.history()
    assert [message.text.split()[0] for message in history if message.type == "human"] == [
        f"q{n}" for n in range(40)
    ]
    assert [message.text.split()[2] for message in history if message.type == "ai"] == [
        f"q{n}" for n in range(40)
    ]
    for sent in model.sent:
        assert counter("o200k_base").messages(sent) <= 0.6 * LIMIT
        assert_paired(sent[1:])


# -- exactly once ----------------------------------------------------------------------------------


class Torn(InMemorySaver):
    """Writes nothing while it is down: what a kill between a step and its record looks like."""

    down = False

    def put(self, *args: Any, **kwargs: Any) -> Any:
        if self.down:
            raise OSError("the disk is gone")
        return super().put(*args, **kwargs)

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        if self.down:
            raise OSError("the disk is gone")
        super().put_writes(*args, **kwargs)


@pytest.mark.parametrize("ahead", [True, False])
def test_a_compaction_that_was_made_but_not_recorded_is_not_made_again(ahead: bool) -> None:
    """The summary is in the store before the checkpoint: the resumed run finds it there and asks
    nobody.
    """
    saver, store = Torn(), InMemoryStore()

    def fall(_: Any) -> AIMessage:
        saver.down = True
        return AIMessage(GOOD)

    first, second = summariser(fall), summariser()
    policy = CompactionPolicy(ahead=ahead)
    conversation = thread(saver=saver, store=store, summarizer=first, policy=policy)
    with pytest.raises((OSError, LongtableError)):
        talk(conversation, 14)
    assert len(first.sent) == 1
    saver.down = False
    assert values_of(conversation).get("compactions", []) == []
    heir = thread(saver=saver, store=store, summarizer=second, policy=policy)
    heir.graph.invoke(None, heir.config, context=CONTEXT)
    said = len([message for message in heir.history() if message.type == "human"])
    list(heir.stream("and on " + "w " * 60))
    assert second.sent == []
    assert len(values_of(heir)["compactions"]) == 1
    assert [message.type for message in heir.history()] == ["human", "ai"] * (said + 1)


def test_a_compaction_is_made_once_across_restarts_on_a_real_file_and_time_travel_there(
    tmp_path: Path,
) -> None:
    url, models = f"sqlite:///{tmp_path / 'chat.db'}", [summariser() for _ in range(3)]

    def opened(kept: Any, model: ScriptedModel) -> Conversation:
        graph = build_graph(model=talker(), summarizer=model, policy=CompactionPolicy(ahead=False))
        return Conversation(
            graph.compile(checkpointer=kept.checkpointer, store=kept.store), "t", context=CONTEXT
        )

    with open_persistence(url) as kept:
        talk(opened(kept, models[0]), 11)
    with open_persistence(url) as kept:
        conversation = opened(kept, models[1])
        records, view = values_of(conversation)["compactions"], conversation.view()
        assert len(models[0].sent) == len(records) == 1
        assert conversation.view() == view
        before = [
            state
            for state in conversation.graph.get_state_history(conversation.config)
            if state.next == ("compact",)
        ]
        assert len(before) == 1
    with open_persistence(url) as kept:
        conversation = opened(kept, models[2])
        for _ in range(2):  # the past twice over, in a process that never made the fold
            conversation.graph.invoke(None, before[0].config, context=CONTEXT)
        assert [record["id"] for record in values_of(conversation)["compactions"]] == [
            records[0]["id"]
        ]
        (again,) = values_of(conversation)["compactions"]
        # The report says how this run went, such as how long it took.
        assert {**again, "report": None} == {**records[0], "report": None}
    assert models[1].sent == models[2].sent == []


def test_two_threads_with_the_same_words_share_no_compaction() -> None:
    saver, store, summarizer = InMemorySaver(), InMemoryStore(), summariser()
    for name in ("one", "two"):
        talk(
            thread(
                saver=saver,
                store=store,
                summarizer=summarizer,
                thread_id=name,
                policy=CompactionPolicy(ahead=False),
            ),
            11,
        )
    assert len(summarizer.sent) == 2


def test_compacting_now_that_was_killed_is_finished_or_begun_again() -> None:
    """A person's wish to compact dies with the process in the middle of the summary: nothing is
    stuck after it.
    """

    def die(_: Any) -> AIMessage:
        raise KeyboardInterrupt

    saver, store = InMemorySaver(), InMemoryStore()
    first = thread(
        saver=saver, store=store, summarizer=summariser(die), policy=CompactionPolicy(ahead=False)
    )
    first.graph.invoke(
        {"messages": [HumanMessage("q0 " + "w " * 60)]}, first.config, context=CONTEXT
    )
    talk(first, 8, start=1)
    history = first.history()
    with pytest.raises(KeyboardInterrupt):
        first.compact()
    heir = thread(
        saver=saver,
        store=store,
        summarizer=(summarizer := summariser()),
        policy=CompactionPolicy(ahead=False),
    )
    assert heir.history() == history
    assert heir.ask("and on").status == "answered"
    assert len(heir.history()) == len(history) + 2
    assert heir.compact() is None or summarizer.sent


@pytest.mark.parametrize("kind", ["rolling", "topics"])
def test_undo_brings_back_each_earlier_view_in_turn(kind: str) -> None:
    conversation = thread(policy=CompactionPolicy(strategy=kind, ahead=False))
    conversation.context = CONTEXT.replace(model_limit=8_000)
    views, memories = [], []
    for n in range(3):
        talk(conversation, 9, start=9 * n, words=60)
        views.append(conversation.view())
        assert conversation.compact() is not None
        memories.append(system_of(conversation.view()))
    history = conversation.history()
    assert len(set(memories)) == 3
    assert conversation.undo() is not None
    assert conversation.view() == views[2]
    assert conversation.undo() is not None
    assert system_of(conversation.view()) == memories[0]
    assert conversation.view()[1:] == history[-len(conversation.view()) + 1 :]
    assert conversation.undo() is not None
    assert conversation.view()[1:] == history
    assert conversation.history() == history
