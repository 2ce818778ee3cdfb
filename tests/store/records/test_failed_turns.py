"""Why a turn failed is kept until the next turn begins, and then with the thread."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.base import Op
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import EmptyMessageError, MessageTooLongError, ProviderUnavailableError
from longtable.base.events import Failed
from longtable.base.stored import thread_namespace
from longtable.graph import Conversation
from longtable.store.records.failed_turns import failure_edit, forget_failure, keep_failure
from tests.support.models import ScriptedModel
from tests.support.threads import CONTEXT, thread, values_of

EVENT = Failed(type="failed", code="provider_unavailable", text="Away.", retry_after=3.0)
PLACE = thread_namespace("failures", "t")


def failing() -> ScriptedModel:
    def say(_: object) -> AIMessage:
        raise ProviderUnavailableError("away")

    return ScriptedModel(say=say)


def asked_in_vain(conversation: Conversation) -> None:
    conversation.context = CONTEXT.replace(max_retries=0)
    with pytest.raises(ProviderUnavailableError):
        conversation.ask("Are you there?")


def test_a_failure_is_written_read_replaced_and_deleted() -> None:
    store = InMemoryStore()
    assert failure_edit(store, "t", 3) is None
    keep_failure(store, "t", 3, {**EVENT, "code": "error"})
    keep_failure(store, "t", 3, EVENT)
    edit = failure_edit(store, "t", 3)
    assert edit == {
        "id": "fail-3-provider_unavailable",
        "op": "fail",
        "turn": 3,
        "code": "provider_unavailable",
        "text": "Away.",
        "retry_after": 3.0,
    }
    assert failure_edit(store, "other", 3) is None
    forget_failure(store, "t", 3)
    assert failure_edit(store, "t", 3) is None


def test_the_next_turn_takes_it_into_the_threads_edits() -> None:
    store = InMemoryStore()
    conversation = thread(failing(), store=store)
    asked_in_vain(conversation)
    assert [item.key for item in store.search(PLACE)] == ["1"]
    assert [turn.status for turn in conversation.turns()] == ["provider_unavailable"]
    asked_in_vain(conversation)
    assert [edit["op"] for edit in values_of(conversation)["edits"]] == ["fail"]
    assert [item.key for item in store.search(PLACE)] == ["2"]
    assert [turn.status for turn in conversation.turns()] == ["provider_unavailable"] * 2


def test_a_message_that_was_refused_is_no_failed_turn() -> None:
    store = InMemoryStore()
    conversation = thread(store=store)
    conversation.ask("One")
    for text, error in ((" ", EmptyMessageError), ("x " * 9_000_000, MessageTooLongError)):
        with pytest.raises(error):
            conversation.ask(text)
    assert store.search(PLACE) == []
    assert [turn.status for turn in conversation.turns()] == ["answered"]


class FullStore(InMemoryStore):
    """Refuses to keep failures."""

    def batch(self, ops: Any) -> list[Any]:
        given: list[Op] = list(ops)
        if any(getattr(op, "namespace", ()) == PLACE for op in given):
            raise OSError("the disk is full")
        return super().batch(given)


def test_if_the_store_fails_the_turns_own_error_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    conversation = thread(failing(), store=FullStore())
    asked_in_vain(conversation)
    asked_in_vain(conversation)
    assert "failure_not_kept" in caplog.text
    assert "failure_not_read" in caplog.text
