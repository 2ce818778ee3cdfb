"""The parts of the next call are those that are sent, and what is missing is named."""

import json
from dataclasses import replace
from typing import Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from longtable.app.pages.context.next_call import call_parts, memory_text, sent_count
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan
from longtable.nodes.call_plans import call_plan_of
from tests.app.pages.context.panel_talk import data_of, long_talk
from tests.support.compacting import call_config
from tests.support.threads import CONTEXT, values_of


def test_the_parts_are_what_the_view_sends() -> None:
    conversation = long_talk(12)
    data = data_of(conversation)
    view = conversation.view()
    memory = next(part for part in data.parts if part.kind == "memory")
    assert memory.text in view[0].text
    assert memory.text.startswith("<memory>")
    shown = [part.text for part in data.parts if part.number]
    assert shown == [message.text for message in view if message.type != "system"]
    assert {part.state for part in data.parts} == {"whole"}
    history = conversation.history()
    assert all(history[part.number - 1].text == part.text for part in data.parts if part.number)
    assert sent_count(data.parts) == len(shown)


def test_an_excluded_message_is_named_where_it_stood() -> None:
    conversation = long_talk(3)
    message = conversation.history()[2]
    conversation.exclude(str(message.id))
    parts = {part.number: part for part in data_of(conversation).parts if part.number}
    assert list(parts) == [1, 2, 3, 4, 5, 6]
    assert parts[3].state == "excluded"
    assert parts[3].text == message.text


def rows(call: str, count: int) -> list[AIMessage | ToolMessage]:
    answer = {"columns": ["n"], "rows": [[f"value {n}"] for n in range(count)], "row_count": count}
    asked = {"name": "run_sql", "args": {"sql": "select n"}, "id": call, "type": "tool_call"}
    return [
        AIMessage("", id=f"a{call}", tool_calls=[asked]),
        ToolMessage(json.dumps(answer), id=f"t{call}", tool_call_id=call),
    ]


def test_results_that_do_not_fit_are_shortened_and_left_out() -> None:
    many = [message for n in range(12) for message in rows(str(n), 60)]
    call_plan = CallPlan(Thread([HumanMessage("q", id="q"), *many]), call_config(800))
    parts = {part.number: part for part in call_parts(call_plan) if part.number}
    assert len(parts) == 25
    states = [part.state for part in parts.values()]
    assert states.count("left_out") == call_plan.view.left_out > 0
    assert states.count("shrunk") == sum(
        "shortened" in message.text for message in call_plan.view.messages
    )
    shrunk = next(part for part in parts.values() if part.state == "shrunk")
    assert shrunk.tokens < shrunk.whole_tokens


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_the_memory_is_found_in_each_role(role: Literal["system", "user", "assistant"]) -> None:
    plan = call_plan_of(values_of(long_talk(12)), CONTEXT)
    policy = replace(plan.call_config.policy, memory_role=role)
    view = replace(plan, call_config=replace(plan.call_config, policy=policy)).view
    text = memory_text(view, role=role)
    assert text.startswith("<memory>")
    assert text.endswith("</memory>")
    empty = CallPlan(Thread([HumanMessage("q")]), call_config(2_000)).view
    assert memory_text(empty, role=role) == ""
