"""Results of tools shrink to their heads in the view, and say how the rest comes back."""

import json

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.compaction.result_heads import (
    HEAD_ROWS,
    MOST_HEAD_CHARS,
    ends_of_whole_rounds,
    head_of,
    head_text,
    is_result,
    results_id,
    shrunk,
)


def query_result(rows: int, **more: object) -> str:
    cells = [[number, f"name {number}"] for number in range(rows)]
    return json.dumps({"columns": ["id", "name"], "rows": cells, "row_count": rows, **more})


def result(text: str, id_: str = "t1") -> ToolMessage:
    return ToolMessage(text, tool_call_id="c1", id=id_)


def test_a_querys_head_has_its_first_rows_and_the_handle_that_brings_the_others_back() -> None:
    head = json.loads(head_text(query_result(40, handle="r3"), 7) or "")
    assert head["rows"] == [[0, "name 0"], [1, "name 1"], [2, "name 2"]]
    assert head["row_count"] == 40
    assert 'fetch_result("r3")' in head["shortened"]


def test_without_a_handle_the_messages_number_brings_them_back() -> None:
    head = json.loads(head_text(query_result(40), 7) or "")
    assert 'recall_history("m7")' in head["shortened"]


def test_a_result_that_is_hardly_larger_than_its_head_stays() -> None:
    small = result(query_result(HEAD_ROWS))
    assert not is_result(small)
    assert head_of(small, 7) is small


def test_a_table_of_text_keeps_its_heading_and_its_rule() -> None:
    rows = [f"| {number} | {'x' * 20} |" for number in range(30)]
    head = head_text("\n".join(["| id | name |", "|---|---|", *rows]), 7) or ""
    assert head.splitlines()[:3] == ["| id | name |", "|---|---|", rows[0]]
    assert "first 3 of 30 rows" in head


def test_rows_of_a_wide_table_give_way() -> None:
    cells = [["y" * 600] * 2 for _ in range(9)]
    text = json.dumps({"columns": ["a", "b"], "rows": cells, "row_count": 9})
    head = head_text(text, 7) or ""
    assert len(json.loads(head)["rows"]) == 1
    assert len(head) < MOST_HEAD_CHARS


def test_only_the_results_that_are_named_shrink() -> None:
    messages = [result(query_result(40), "t1"), result(query_result(40), "t2")]
    first, second = shrunk(messages, {"t1": 3})
    assert len(first.text) < len(messages[0].text)
    assert second is messages[1]


def test_a_round_without_a_result_does_not_count_as_a_whole_one() -> None:
    messages: list[BaseMessage] = []
    for number in range(3):
        messages += [
            HumanMessage(f"q{number}", id=f"h{number}"),
            AIMessage("", tool_calls=[{"name": "run_sql", "args": {}, "id": "c1"}]),
            result(query_result(40), f"t{number}"),
        ]
    messages.append(HumanMessage("thanks", id="h3"))
    assert ends_of_whole_rounds(messages) == [3, 6]
    assert ends_of_whole_rounds(messages, excluded={"t2"}) == [0, 3]


def test_other_results_make_another_compaction() -> None:
    messages = [result(query_result(40))]
    assert results_id(messages) == results_id(messages)
    assert results_id(messages) != results_id([result(query_result(41))])
    assert results_id(messages) != results_id(messages, "other")
