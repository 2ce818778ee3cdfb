"""What a review found: branches of a thread, stores that fail, odd summaries and numbers, changes
in odd orders.
"""

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ContextTooLargeError, EmptyMessageError
from longtable.graph import CompactionPolicy, Conversation
from longtable.memory.compaction.compaction import Attempts, Job
from longtable.memory.counting.tokens import counter
from tests.support.models import ScriptedModel
from tests.support.threads import CONTEXT, of_type, summariser, talk, thread, values_of

RULE = "Always answer in kilometres, not in miles."


def asked(conversation: Conversation) -> list[str]:
    return [m.text.split()[0] for m in conversation.history() if m.type == "human"]


def test_a_branch_of_time_travel_never_overwrites_what_another_retired() -> None:
    conversation = thread(policy=CompactionPolicy(retire_after=6))
    talk(conversation, 3)
    graph = conversation.graph
    fork = graph.get_state(conversation.config).config
    talk(conversation, 30, start=3)
    old = graph.get_state(conversation.config).config
    retired = values_of(conversation)["archive"]["count"]
    assert retired > 6
    given: Any = {"messages": [HumanMessage("B0 " + "w " * 82)]}
    graph.invoke(given, fork, context=CONTEXT)
    for n in range(1, 30):
        conversation.ask(f"B{n} " + "w " * 82)
    assert asked(conversation) == ["q0", "q1", "q2", *(f"B{n}" for n in range(30))]
    conversation.config = old
    assert asked(conversation) == [f"q{n}" for n in range(33)]


class Failing(InMemoryStore):
    """A store that fails at everything in one namespace, from when it is told."""

    broken = ""

    def batch(self, ops: Any) -> Any:
        ops = list(ops)
        names = [
            str(getattr(op, "namespace", "")) + str(getattr(op, "namespace_prefix", ""))
            for op in ops
        ]
        if self.broken and any(self.broken in name for name in names):
            raise OSError("disk gone")
        return super().batch(ops)


@pytest.mark.parametrize("broken", ["compactions", "archive"])
def test_a_store_that_fails_at_memory_never_fails_a_turn(broken: str) -> None:
    store = Failing()
    conversation = thread(store=store, policy=CompactionPolicy(retire_after=10))
    talk(conversation, 14)
    store.broken = broken
    events = talk(conversation, 20, start=14)
    assert {event["status"] for event in of_type(events, "answer")} == {"answered"}
    store.broken = ""
    talk(conversation, 6, start=34)
    assert asked(conversation) == [f"q{n}" for n in range(40)]


@pytest.mark.parametrize("number", ["1" * 5_000, "9" * 12])
def test_a_citation_of_any_length_harms_nothing(number: str) -> None:
    conversation = thread(
        summarizer=summariser(lambda _: AIMessage(f"## Facts and findings\n- x [m{number}]"))
    )
    assert {event["status"] for event in of_type(talk(conversation, 14), "answer")} == {"answered"}


def test_a_strategy_of_ones_own_that_raises_never_fails_a_turn() -> None:
    class Broken:
        name = "broken"

        def attempts(self, job: Job) -> Attempts:
            raise KeyError("oops")
            yield

    events = talk(thread(hooks=[Broken()], policy=CompactionPolicy(strategy="broken")), 14)
    assert {event["status"] for event in of_type(events, "answer")} == {"answered"}
    assert (
        of_type(events, "context_compaction_skipped")[0]["reasons"][0]["code"] == "strategy_failed"
    )


def test_what_is_excluded_leaves_the_memory_when_asked_or_after_the_next_answer() -> None:
    for ask in (True, False):
        conversation = thread()
        talk(conversation, 14)
        memory = conversation.view()[0].text
        asked = re.findall(r"\bq\d+\b", memory)[0]
        question = next(
            message for message in conversation.history() if message.text.startswith(f"{asked} ")
        )
        conversation.exclude(str(question.id))
        if ask:
            assert conversation.compact() is not None
        else:
            conversation.ask("short")
        assert f"{asked} w" not in conversation.view()[0].text


def test_a_rule_excluded_compacted_and_included_again_is_a_pin_again() -> None:
    conversation = thread()
    conversation.ask(RULE)
    conversation.exclude(str(conversation.history()[0].id))
    talk(conversation, 14)
    assert conversation.pins() == []
    conversation.include(str(conversation.history()[0].id))
    talk(conversation, 6, start=14)
    assert [pin.text for pin in conversation.pins()] == [RULE]


def test_a_pin_made_again_after_it_was_taken_away_stands() -> None:
    conversation = thread()
    talk(conversation, 1)
    for _ in range(2):
        pin = conversation.pin("Use euros.")
        assert [each.text for each in conversation.pins()] == ["Use euros."]
        conversation.unpin(pin.id)
        assert conversation.pins() == []
    with pytest.raises(EmptyMessageError):
        conversation.pin("  ")


def test_a_thread_without_its_compactions_compacts_again_rather_than_leave_rounds_out() -> None:
    conversation = thread(policy=CompactionPolicy(min_messages=4, retire_after=None))
    talk(conversation, 40)
    list(iter(conversation.undo, None))
    events = talk(conversation, 1, start=40)
    assert of_type(events, "context_compressed")
    assert of_type(events, "context_usage")[-1]["left_out"] == 0


@pytest.mark.parametrize("tokens", [10**400, 2**70, -5])
def test_usage_no_provider_can_mean_harms_nothing(tokens: int) -> None:
    usage: Any = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens}
    conversation = thread(
        ScriptedModel(say=lambda _: AIMessage("fine " * 300, usage_metadata=usage))
    )
    for n in range(3):
        given: Any = {"messages": [HumanMessage(f"q{n} " + "w " * 300)]}
        assert (
            conversation.graph.invoke(given, conversation.config, context=CONTEXT)["turn"]["status"]
            == "answered"
        )


def test_an_empty_stamp_in_the_input_skips_no_check() -> None:
    conversation = thread()
    given: Any = {"messages": [HumanMessage("huge " * 4_000, additional_kwargs={"longtable": {}})]}
    with pytest.raises(Exception, match=r"characters|tokens"):
        conversation.graph.invoke(given, conversation.config, context=CONTEXT)


def test_a_message_too_long_for_a_learned_limit_is_refused_before_the_provider_is_asked() -> None:
    class TooLongError(Exception):
        status_code = 400

    def say(sent: Any) -> AIMessage:
        if counter("o200k_base").messages(sent) > 1_000:
            raise TooLongError("This model's maximum context length is 1000 tokens.")
        return AIMessage("fine")

    model = ScriptedModel(say=say)
    conversation = thread(model)
    talk(conversation, 3, words=450)
    assert values_of(conversation)["learned"]["limit"] == 1_000
    before = len(model.sent)
    with pytest.raises(ContextTooLargeError):
        conversation.ask("w " * 800)
    assert len(model.sent) == before
    assert conversation.ask("short").status == "answered"
