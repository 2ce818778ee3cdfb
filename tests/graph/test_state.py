"""The reducers: deterministic, batching-invariant, and nothing is ever overwritten by accident."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from longtable.graph.state import append_records, keep_latest, merge_messages

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
def test_merging_in_batches_equals_merging_at_once(writes: list[list[BaseMessage]], cut: int) -> None:
    at_once = merge_messages([], writes)
    in_two = merge_messages(merge_messages([], writes[:cut]), writes[cut:])
    one_by_one: list[BaseMessage] = []
    for write in writes:
        one_by_one = merge_messages(one_by_one, [write])
    assert plain(at_once) == plain(in_two) == plain(one_by_one)
    assert len({m.id for m in at_once}) == len(at_once)


@given(st.lists(st.sampled_from(["hi", "ho"]), max_size=8), st.integers(0, 7))
def test_messages_without_ids_are_never_taken_for_one_another(texts: list[str], removed: int) -> None:
    first = merge_messages([], [[("user", text) for text in texts]])
    gone = [RemoveMessage(id=str(m.id)) for m in first[removed : removed + 1]]
    again = merge_messages(first, [gone, [("user", text) for text in texts]])
    assert len(again) == 2 * len(texts) - len(gone)


def test_a_message_is_updated_in_its_place_and_the_old_list_is_left_alone() -> None:
    state: list[BaseMessage] = [HumanMessage("1", id="a"), HumanMessage("2", id="b")]
    merged = merge_messages(state, [[HumanMessage("one", id="a")], [{"role": "user", "content": "3", "id": "c"}]])
    assert [m.text for m in merged] == ["one", "2", "3"]
    assert [m.text for m in state] == ["1", "2"]


def test_chunks_become_whole_messages_and_an_unknown_removal_is_no_error() -> None:
    merged = merge_messages([], [AIMessageChunk(content="hi", id="a"), RemoveMessage(id="gone")])
    assert [type(m) for m in merged] == [AIMessage]


def test_records_are_appended_once() -> None:
    assert append_records([{"id": "1"}], [[{"id": "1"}, {"id": "2"}], {"id": "2"}]) == [{"id": "1"}, {"id": "2"}]


def test_the_brief_is_the_latest() -> None:
    assert keep_latest({"limit": 1}, [{"limit": 2}, {"limit": 3}]) == {"limit": 3}
    assert keep_latest({"limit": 1}, []) == {"limit": 1}
