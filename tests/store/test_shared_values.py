"""Turns share what was decoded; whoever changes it, or reads outside of a turn, shares nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.store.loading import MessageSerializer
from longtable.store.saver_guard import GuardedSaver
from longtable.store.shared_values import SharedValues, sharing
from tests.support.models import ScriptedModel

CALL = {"name": "run_sql", "args": {"sql": "SELECT 1"}, "id": "c1", "type": "tool_call"}
MESSAGE = AIMessage(
    "x" * 200, id="1", tool_calls=[CALL], additional_kwargs={"longtable": {"turn": 1}}
)
RECORDS = [{"id": "r1", "summary": "y" * 200, "ledger": [{"sql": "SELECT 1", "rows": 2}]}]


def loaded(serializer: MessageSerializer, value: Any, *, shares: bool = True) -> Any:
    with sharing(shares=shares):
        return serializer.loads_typed(JsonPlusSerializer().dumps_typed(value))


@pytest.mark.parametrize("value", [MESSAGE, RECORDS], ids=["message", "records"])
def test_turns_share_what_is_stored_in_the_same_bytes_and_others_do_not(value: Any) -> None:
    serializer = MessageSerializer.with_shared()
    first = loaded(serializer, value)
    assert first == value
    assert loaded(serializer, value) is first
    own = loaded(serializer, value, shares=False)
    assert own == value
    assert own is not first


def _content(message: Any) -> None:
    message.content = "mine"


def _kwargs(message: Any) -> None:
    message.additional_kwargs["longtable"]["turn"] = 7


def _call(message: Any) -> None:
    message.tool_calls[0]["args"]["sql"] = "DROP TABLE t"


def _beside(message: Any) -> None:
    message.mood = "curious"


def _object(message: Any) -> None:
    message.response_metadata["made"] = object()


@pytest.mark.parametrize("change", [_content, _kwargs, _call, _beside, _object])
def test_a_message_that_somebody_changed_is_decoded_anew(change: Callable[[Any], None]) -> None:
    serializer = MessageSerializer.with_shared()
    change(loaded(serializer, MESSAGE))
    again = loaded(serializer, MESSAGE)
    assert again == MESSAGE
    assert again.__pydantic_extra__ == {}
    assert again.model_fields_set == set(AIMessage.model_fields)
    assert loaded(serializer, MESSAGE) is again


def test_records_that_somebody_changed_are_decoded_anew() -> None:
    serializer = MessageSerializer.with_shared()
    loaded(serializer, RECORDS)[0]["ledger"][0]["rows"] = 99
    assert loaded(serializer, RECORDS) == RECORDS


def test_no_more_is_kept_than_the_bound_and_the_oldest_goes_first() -> None:
    shared = SharedValues(most=1_000)
    texts = [f"{n}" * 300 for n in range(5)]
    for text in texts:
        shared.put(text.encode(), [text])
    assert [shared.get(text.encode()) is not None for text in texts] == [False] * 2 + [True] * 3
    assert shared.size == 900
    shared.put(texts[4].encode(), [texts[4]])
    assert shared.size == 900


def test_an_encrypted_store_keeps_no_text_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("Crypto", reason="the extra encryption is not installed")
    for key, kept in ((None, True), ("a secret key of the test", False)):
        url = f"sqlite:///{tmp_path}/{'plain' if kept else 'sealed'}.db"
        with open_persistence(url, key=key) as persistence:
            saver = persistence.checkpointer
            assert isinstance(saver, GuardedSaver)
            talk = _talk(saver, persistence.store, lambda _: AIMessage("fine"))
            for text in ("one", "two", "three"):
                talk.ask(text)
            inner: Any = saver.serde if kept else vars(saver.serde)["serde"]
            assert isinstance(inner, MessageSerializer)
            assert (inner.shared is not None and inner.shared.size > 0) == kept


def _talk(
    saver: Any, store: Any, say: Callable[[Sequence[BaseMessage]], AIMessage]
) -> Conversation:
    graph = build_graph(model=ScriptedModel(say=say)).compile(checkpointer=saver, store=store)
    return Conversation(graph, "t", context=Context(model_limit=60_000))


def test_what_a_model_or_a_caller_does_to_messages_is_seen_in_no_later_turn(tmp_path: Path) -> None:
    sent: list[list[str]] = []

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        sent.append([str(message.text) for message in messages[1:]])
        for message in messages:
            if isinstance(message, HumanMessage) and len(sent) == 3:
                message.content = "changed by the client"
        return AIMessage(f"answer {len(sent)}")

    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        talk = _talk(persistence.checkpointer, persistence.store, say)
        for n in range(1, 6):
            talk.ask(f"question {n}")
            for message in talk.history():
                message.content = "changed by the caller"
        assert [message.text for message in talk.history()][-2:] == ["question 5", "answer 5"]
    expected = [f"{word} {n}" for n in range(1, 5) for word in ("question", "answer")]
    assert sent[-1] == [*expected, "question 5"]
