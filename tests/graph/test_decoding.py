"""Values that were decoded are kept by the hash of their bytes, and handed out as copies."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.graph.decoding import DecodingCache
from tests.support.models import script

BLOCKS: list[str | dict[Any, Any]] = [{"type": "text", "text": "a table", "marks": {"bold": [1, 2]}}]
CALL = {"name": "run_sql", "args": {"sql": "SELECT 1", "more": [1, {"a": 2}]}, "id": "c1"}
MESSAGES: list[BaseMessage] = [
    HumanMessage("x" * 300, id="1", additional_kwargs={"longtable": {"turn": 1}}),
    AIMessage(BLOCKS, id="2", tool_calls=[CALL], usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}),
    ToolMessage("one", id="3", tool_call_id="c1", name="run_sql", response_metadata={"a": [1]}),
]


def containers(value: Any) -> list[Any]:
    """Return every dict, list and message of a value, at any depth."""
    inner = vars(value).values() if isinstance(value, BaseMessage) else value.values() if isinstance(value, dict) else value
    if isinstance(value, BaseMessage | dict | list | tuple):
        return [*([value] if not isinstance(value, tuple) else []), *(each for part in inner for each in containers(part))]
    return []


def test_what_is_handed_out_is_equal_and_shares_no_dict_list_or_message() -> None:
    cache = DecodingCache()
    stored = cache.dumps_typed({"messages": MESSAGES, "n": [1, 2.5, None, True]})
    loaded = [cache.loads_typed(stored) for _ in range(3)]
    assert loaded[0] == loaded[1] == loaded[2] == {"messages": MESSAGES, "n": [1, 2.5, None, True]}
    assert [type(message) for message in loaded[2]["messages"]] == [HumanMessage, AIMessage, ToolMessage]
    ids = [{id(each) for each in containers(value)} for value in loaded]
    assert not ids[0] & ids[1]
    assert not ids[1] & ids[2]


def test_a_caller_who_changes_what_a_load_gave_changes_no_other() -> None:
    cache = DecodingCache()
    stored = cache.dumps_typed({"messages": MESSAGES})
    for _ in range(3):
        value = cache.loads_typed(stored)
        assert value["messages"] == MESSAGES
        value["messages"][0].content = "changed"
        value["messages"][0].additional_kwargs["longtable"]["turn"] = 9
        value["messages"][1].tool_calls[0]["args"]["more"][1]["a"] = 9
        value["messages"].clear()


def test_a_caller_who_changes_what_get_state_gave_changes_no_thread(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        model = script("An answer.")
        graph = build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store)
        conversation = Conversation(graph, "t", context=Context(model_limit=16_000))
        conversation.ask("x" * 400)
        for _ in range(2):
            values = graph.get_state(conversation.config).values
            values["messages"][0].content = "changed"
            values["messages"][0].additional_kwargs.clear()
            values["brief"]["system"] = "changed"
            values["turn"].clear()
        conversation.ask("Again?")
        assert [message.text for message in model.sent[-1] if message.type == "human"] == ["x" * 400, "Again?"]
        assert "changed" not in str(model.sent[-1])


def test_no_more_bytes_are_kept_than_allowed_and_no_value_of_another_class() -> None:
    cache = DecodingCache(kept_bytes=10_000)
    values = [cache.dumps_typed({"text": f"{n}" * 1_000}) for n in range(9)] + [cache.dumps_typed({"text": "x" * 9_000})]
    assert [cache.loads_typed(value) for value in values] == [cache.loads_typed(value) for value in values]
    assert sum(kept.size for kept in cache._values._kept.values()) <= 10_000
    dated = cache.dumps_typed({"at": datetime(2026, 1, 1, tzinfo=UTC), "text": "x" * 400})
    assert cache.loads_typed(dated)["at"] == cache.loads_typed(dated)["at"] == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_serializer_that_restores_more_classes_has_values_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    cache = DecodingCache()
    other = cache.with_msgpack_allowlist([("longtable.graph.decoding", "DecodingCache")])
    assert other is cache or (isinstance(other, DecodingCache) and other._values is not cache._values)


def test_an_encrypted_store_keeps_no_text_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("Crypto")
    with open_persistence(f"sqlite:///{tmp_path}/sealed.db", key="correct horse battery") as kept:
        serde = kept.checkpointer.serde
        assert isinstance(serde, EncryptedSerializer)
        assert not isinstance(serde.serde, DecodingCache)
