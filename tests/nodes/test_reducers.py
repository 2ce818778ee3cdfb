"""The reducers: deterministic, batching-invariant, and nothing is ever overwritten by accident."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from longtable.nodes.reducers import append_records, keep_latest, merge_messages

IDS = st.sampled_from(["a", "b", "c", "d"])
WRITES = st.lists(
    st.one_of(
        IDS.map(lambda i: [HumanMessage(f"text of {i}", id=i)]),
        st.tuples(IDS, st.text(max_size=3)).map(lambda pair: [AIMessage(pair[1], id=pair[0])]),
        IDS.map(lambda i: [RemoveMessage(id=i)]),
        st.just([RemoveMessage(id=REMOVE_ALL_MESSAGES)]),
        st.sampled_from(["hi", "ho"]).map(lambda text: [("user", text)]),
        st.just([HumanMessage("x", id="x1"), HumanMessage("y", id="y1")]),
    ),
    max_size=12,
)


def plain(messages: list[BaseMessage]) -> list[tuple[str, str | None, str]]:
    return [(m.type, m.id, m.text) for m in messages]


@given(WRITES, st.integers(0, 12))
def test_merging_in_batches_equals_merging_at_once(
    writes: list[list[BaseMessage]], cut: int
) -> None:
    at_once = merge_messages([], writes)
    in_two = merge_messages(merge_messages([], writes[:cut]), writes[cut:])
    one_by_one: list[BaseMessage] = []
    for write in writes:
        one_by_one = merge_messages(one_by_one, [write])
    assert plain(at_once) == plain(in_two) == plain(one_by_one)
    assert len({m.id for m in at_once}) == len(at_once)


@given(st.lists(st.sampled_from(["hi", "ho"]), max_size=8), st.integers(0, 7))
def test_messages_without_ids_are_never_taken_for_one_another(
    texts: list[str], removed: int
) -> None:
    first = merge_messages([], [[("user", text) for text in texts]])
    gone = [RemoveMessage(id=str(m.id)) for m in first[removed : removed + 1]]
    again = merge_messages(first, [gone, [("user", text) for text in texts]])
    assert len(again) == 2 * len(texts) - len(gone)


def test_a_message_is_updated_in_its_place_and_the_old_list_is_left_alone() -> None:
    state: list[BaseMessage] = [HumanMessage("1", id="a"), HumanMessage("2", id="b")]
    merged = merge_messages(
        state, [[HumanMessage("one", id="a")], [{"role": "user", "content": "3", "id": "c"}]]
    )
    assert [m.text for m in merged] == ["one", "2", "3"]
    assert [m.text for m in state] == ["1", "2"]


def test_chunks_become_whole_messages_and_an_unknown_removal_is_no_error() -> None:
    merged = merge_messages([], [AIMessageChunk(content="hi", id="a"), RemoveMessage(id="gone")])
    assert [type(m) for m in merged] == [AIMessage]


def test_records_are_appended_once() -> None:
    assert append_records([{"id": "1"}], [[{"id": "1"}, {"id": "2"}], {"id": "2"}]) == [
        {"id": "1"},
        {"id": "2"},
    ]


def test_the_brief_is_the_latest() -> None:
    assert keep_latest({"limit": 1}, [{"limit": 2}, {"limit": 3}]) == {"limit": 3}
    assert keep_latest({"limit": 1}, []) == {"limit": 1}


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2),
)
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "usage_metadata", "refusal", "数"]), JSON, max_size=3
)
CONTENTS: st.SearchStrategy[Any] = st.text(max_size=6) | st.lists(
    st.builds(dict, type=st.just("text"), text=st.text(max_size=4)), max_size=2
)
COMMON: dict[str, Any] = {
    "content": CONTENTS,
    "additional_kwargs": OBJECTS,
    "response_metadata": OBJECTS,
    "name": st.none() | st.text(max_size=4),
    "id": st.text(min_size=1, max_size=4),
}
CALLS: st.SearchStrategy[Any] = st.lists(
    st.builds(
        dict,
        name=st.just("run_sql"),
        args=st.just({"sql": "SELECT 1"}),
        id=st.just("c"),
        type=st.just("tool_call"),
    )
)
BROKEN: st.SearchStrategy[Any] = st.builds(
    dict,
    name=st.just("run_sql"),
    args=st.just("{"),
    id=st.just("b"),
    error=st.none(),
    type=st.just("invalid_tool_call"),
)
USAGE = st.builds(
    lambda i, o: {"input_tokens": i, "output_tokens": o, "total_tokens": i + o},
    st.integers(0, 9),
    st.integers(0, 9),
)
ANSWERS: dict[str, Any] = {**COMMON, "usage_metadata": st.none() | USAGE}
CHUNKS: st.SearchStrategy[Any] = st.lists(
    st.builds(
        dict,
        name=st.none(),
        args=st.just("{}"),
        id=st.just("c"),
        index=st.just(0),
        type=st.just("tool_call_chunk"),
    )
)
STATUS = st.sampled_from(["success", "error"])
MESSAGES = st.one_of(
    st.builds(HumanMessage, **COMMON),
    st.builds(SystemMessage, **COMMON),
    st.builds(AIMessage, **ANSWERS, tool_calls=CALLS, invalid_tool_calls=st.lists(BROKEN)),
    st.builds(AIMessageChunk, **ANSWERS, tool_call_chunks=CHUNKS),
    st.builds(ToolMessage, **COMMON, tool_call_id=st.just("c"), artifact=JSON, status=STATUS),
)


@given(MESSAGES)
def test_a_message_that_comes_back_as_a_dict_has_lost_no_field(message: BaseMessage) -> None:
    whole = merge_messages([], [[message]])
    as_dict = json.loads(json.dumps(message.model_dump()))
    assert merge_messages([], [[as_dict]]) == whole
    # What a server restores.
    assert merge_messages([as_dict], []) == (
        [message] if isinstance(message, AIMessageChunk) else whole
    )


@pytest.mark.parametrize(
    ("sent", "text", "extra"),
    [
        ({"type": "human", "content": "q", "foo": 1}, "q", {"foo": 1}),
        ({"role": "user", "content": "q", "foo": 1}, "q", {"foo": 1}),
        ({"type": "ai", "content": None, "usage_metadata": "many"}, "", {"usage_metadata": "many"}),
        ({"type": "ai", "content": "a", "invalid_tool_calls": 7}, "a", {"invalid_tool_calls": 7}),
    ],
)
def test_keys_of_a_client_that_are_no_field_stand_where_a_requests_size_is_counted(
    sent: dict[str, Any], text: str, extra: dict[str, Any]
) -> None:
    [message] = merge_messages([], [[sent]])
    assert (message.text, {name: message.additional_kwargs.get(name) for name in extra}) == (
        text,
        extra,
    )
    assert not message.model_extra


@pytest.mark.parametrize("item", [None, 7, 1.5, b"x"])
def test_what_is_no_message_is_a_wrong_value(item: Any) -> None:
    with pytest.raises(ValueError, match="a message must be"):
        merge_messages([item], [])
