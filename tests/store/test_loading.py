"""How a stored thread is loaded: messages are not validated again, and little is read that is not
needed.
"""

import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Overwrite, Send

from longtable.base.errors import ContextTooLargeError
from longtable.graph import CompactionPolicy, Context, Conversation, build_graph, open_persistence
from longtable.nodes.state import REFRESH_TURNS, SELDOM, refresh_update
from longtable.store.loading import LoadingSaver, MessageSerializer
from tests.support.models import script

BLOCKS: list[str | dict[Any, Any]] = [
    {"type": "text", "text": "a table", "marks": {"bold": [1, 2]}}
]
CALL = {"name": "run_sql", "args": {"sql": "SELECT 1", "more": [1, {"a": 2}]}, "id": "c1"}
MESSAGES: list[BaseMessage] = [
    HumanMessage("x" * 300, id="1", additional_kwargs={"longtable": {"turn": 1}}),
    AIMessage(
        BLOCKS,
        id="2",
        tool_calls=[CALL],
        usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
    ),
    ToolMessage("one", id="3", tool_call_id="c1", name="run_sql", response_metadata={"a": [1]}),
]


OTHERS: list[Any] = [
    SystemMessage("You are careful.", id="4", name="rules"),
    RemoveMessage(id="3"),
    AIMessageChunk(content="half", id="5"),
    ChatMessage(content="as another role", role="critic", id="6"),
    HumanMessage("with a field of its own", id="7", mood="curious"),
    ToolMessage(
        "kept whole", id="8", tool_call_id="c2", status="error", artifact={"rows": [[1, "ä"]]}
    ),
    {"at": datetime(2026, 1, 1, tzinfo=UTC), "n": [1, 2.5, None, True], 3: "a key that is no text"},
    Send("respond", {"messages": MESSAGES}),
    Overwrite(MESSAGES),
]


def parts(message: BaseMessage) -> tuple[Any, ...]:
    """Return all that pydantic keeps of a message, besides what `==` compares."""
    kept = message.__pydantic_fields_set__, message.__pydantic_extra__, message.__pydantic_private__
    return type(message), message.__dict__, *kept, message.model_dump(), message.text


@pytest.mark.parametrize("value", [*MESSAGES, *OTHERS], ids=lambda value: type(value).__name__)
def test_a_value_is_what_langgraph_decodes(value: Any) -> None:
    stored = JsonPlusSerializer().dumps_typed([value])
    ours, theirs = MessageSerializer().loads_typed(stored), JsonPlusSerializer().loads_typed(stored)
    assert ours == theirs
    if isinstance(value, BaseMessage):
        assert parts(ours[0]) == parts(theirs[0])


def test_what_a_caller_does_to_a_decoded_message_is_seen_in_no_other() -> None:
    stored = MessageSerializer().dumps_typed([AIMessage("one", id="1"), AIMessage("two", id="2")])
    changed, other = MessageSerializer().loads_typed(stored)
    changed.content, changed.mood = "mine", "curious"
    changed.additional_kwargs["mine"] = changed.response_metadata["mine"] = 1
    changed.tool_calls.append(CALL)
    assert parts(other) == parts(JsonPlusSerializer().loads_typed(stored)[1])


def test_a_message_that_was_stored_with_other_fields_is_validated() -> None:
    fields = {"content": "from an earlier version", "type": "human", "id": "1"}
    payload = ormsgpack.packb(
        (HumanMessage.__module__, "HumanMessage", fields, "model_validate_json")
    )
    stored = "msgpack", ormsgpack.packb(ormsgpack.Ext(EXT_PYDANTIC_V2, payload))
    message = MessageSerializer().loads_typed(stored)
    assert message == HumanMessage("from an earlier version", id="1")
    assert message.response_metadata == {}


def test_a_damaged_message_is_read_as_langgraph_reads_it() -> None:
    stored = "msgpack", ormsgpack.packb(ormsgpack.Ext(EXT_PYDANTIC_V2, b"\x94\xff\xff"))
    assert MessageSerializer().loads_typed(stored) == JsonPlusSerializer().loads_typed(stored)


def test_a_delta_channel_that_was_stored_whole_is_read_as_langgraph_reads_it() -> None:
    kind, stored = JsonPlusSerializer().dumps_typed(MESSAGES)
    snapshot = kind, ormsgpack.packb(ormsgpack.Ext(EXT_DELTA_SNAPSHOT, stored))
    ours, theirs = (
        MessageSerializer().loads_typed(snapshot),
        JsonPlusSerializer().loads_typed(snapshot),
    )
    assert type(ours) is type(theirs)
    assert ours == theirs == (MESSAGES,)


def test_no_stored_message_is_validated_again() -> None:
    serializer, validated = MessageSerializer(), []
    stored = serializer.dumps_typed(MESSAGES)

    def called(frame: Any, event: str, _: Any) -> None:
        if (
            event == "call"
            and frame.f_code.co_name == "__init__"
            and isinstance(frame.f_locals.get("self"), BaseMessage)
        ):
            validated.append(frame.f_locals["self"])

    sys.setprofile(called)
    try:
        serializer.loads_typed(stored)
    finally:
        sys.setprofile(None)
    assert not validated


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
        assert [message.text for message in model.sent[-1] if message.type == "human"] == [
            "x" * 400,
            "Again?",
        ]
        assert "changed" not in str(model.sent[-1])


def test_an_encrypted_store_decodes_in_the_same_way(tmp_path: Path) -> None:
    pytest.importorskip("Crypto")
    with open_persistence(f"sqlite:///{tmp_path}/sealed.db", key="correct horse battery") as kept:
        serde = kept.checkpointer.serde
        assert isinstance(serde, EncryptedSerializer)
        assert isinstance(serde.serde, MessageSerializer)
        assert serde.loads_typed(serde.dumps_typed(MESSAGES)) == MESSAGES


STEPS = 8
"""More checkpoints than any of these turns writes."""


def test_every_channel_of_a_long_thread_was_stored_whole_not_long_ago(tmp_path: Path) -> None:
    turns = 2 * REFRESH_TURNS + 6
    model = script(*(f"answer {n}" for n in range(turns)))
    with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
        app = build_graph(model=model, policy=CompactionPolicy(threshold=0.4)).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(app, "long", context=Context(model_limit=4_000))
        conversation.ask("question 0")
        pin = conversation.pin("Round to whole minutes.")
        for n in range(1, turns):
            conversation.ask(f"question {n}")
        config: RunnableConfig = {"configurable": {"thread_id": "long"}}
        newest_first = [item.checkpoint for item in kept.checkpointer.list(config)]
        written = {
            name for name in ("messages", *SELDOM) if name in newest_first[0]["channel_versions"]
        }
        assert {"messages", "brief", "edits", "compactions"} <= written
        for name in written:
            since = next(
                i
                for i, found in enumerate(newest_first)
                if isinstance(found["channel_values"].get(name), _DeltaSnapshot)
            )
            assert since <= (REFRESH_TURNS + 2) * STEPS, name
        assert [each.id for each in conversation.pins()] == [pin.id]
        assert len(conversation.history()) == 2 * turns


def test_storing_again_changes_no_value_and_is_seldom() -> None:
    values = {"brief": {"limit": 9}, "compactions": [{"id": "a"}], "edits": [], "messages": ["m"]}
    assert refresh_update(values, REFRESH_TURNS) == {
        "brief": {"limit": 9},
        "compactions": [],
        "edits": [],
    }
    assert [turn for turn in range(1, 100) if "brief" in refresh_update(values, turn)] == [
        32,
        64,
        96,
    ]
    assert [refresh_update(values, turn) for turn in (1, 4)] == [
        {},
        {"compactions": [], "edits": []},
    ]


class CountingSerializer(MessageSerializer):
    """Counts the checkpoints it decodes."""

    checkpoints = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        value = super().loads_typed(data)
        self.checkpoints += isinstance(value, dict) and "channel_versions" in value
        return value


def test_the_history_of_a_thread_is_what_langgraph_reads_and_few_checkpoints_are_decoded(
    tmp_path: Path,
) -> None:
    channels, path = ["messages", "brief", "compactions", "learned", "edits"], tmp_path / "chat.db"
    with open_persistence(f"sqlite:///{path}") as kept:
        policy = CompactionPolicy(threshold=0.4)
        app = build_graph(model=script(*(f"answer {n}" for n in range(90))), policy=policy).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        conversation = Conversation(app, "long", context=Context(model_limit=4_000))
        for n in range(60):
            conversation.ask(f"question {n}")
        conversation.pin("Round to whole minutes.")
        earlier = [*app.get_state_history(conversation.config)][40].config
        app.update_state(
            earlier, {"messages": [HumanMessage("another branch", id="branch")]}, as_node="settle"
        )
        conversation.ask("and now?")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        decoded = CountingSerializer()
        saver = LoadingSaver(connection, serde=decoded)
        ids = [
            row[0]
            for row in connection.execute(
                "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id DESC"
            )
        ]
        assert len(ids) > 200
        for checkpoint_id in [*ids[:60], *ids[60::9], ids[-1], "unknown"]:
            config: RunnableConfig = {
                "configurable": {
                    "thread_id": "long",
                    "checkpoint_ns": "",
                    "checkpoint_id": checkpoint_id,
                }
            }
            decoded.checkpoints = 0
            ours = saver.get_delta_channel_history(config=config, channels=channels)
            assert decoded.checkpoints <= 12
            assert ours == SqliteSaver.get_delta_channel_history(
                saver, config=config, channels=channels
            )


def test_a_history_is_read_from_a_store_whose_table_lacks_a_column(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with open_persistence(f"sqlite:///{path}") as kept:
        app = build_graph(model=script("An answer.")).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        Conversation(app, "t", context=Context(model_limit=16_000)).ask("A question?")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    with closing(
        sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
    ) as connection:
        saver = LoadingSaver(connection, serde=MessageSerializer())
        newest = saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert newest
        history = saver.get_delta_channel_history(config=newest.config, channels=["messages"])
        texts = [message.text for _, _, write in history["messages"]["writes"] for message in write]
        assert [*dict.fromkeys(texts)] == ["A question?", "An answer."]


def test_the_error_of_a_failed_step_is_read_as_its_words_and_needs_no_class(
    caplog: pytest.LogCaptureFixture,
) -> None:
    serializer = MessageSerializer()
    stored = serializer.dumps_typed(ContextTooLargeError(need=5, budget=3))
    assert serializer.loads_typed(stored)["code"] == "context_too_large"
    assert not caplog.records
