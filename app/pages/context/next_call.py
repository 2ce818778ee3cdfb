"""The next call as a list of parts: what is sent whole, what is shortened, what is left out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.messages.marks import speaker_of, turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.memory.summary.summary_text import attachments
from longtable.memory.view import MEMORY_ID, SYSTEM_SEPARATOR, CallPlan, View

PartState = Literal["whole", "shrunk", "left_out", "excluded", "added"]


@dataclass(frozen=True)
class ToolDefinition:
    """One tool as the model is told of it. `text`: its description and parameters, as JSON."""

    name: str
    text: str


@dataclass(frozen=True)
class CallPart:
    """One part of the next call. `tokens` are as we count them: those of the message as it is sent,
    or as it stands in the transcript if it is not sent.
    """

    kind: str
    """"system", "tools", "memory", "human", "ai" or "tool"."""
    state: PartState
    """"left_out": there was no room. "excluded": a person took it out. "added": a note that stands
    in no transcript, such as an answer to a call that has none.
    """
    tokens: int
    text: str
    """What is sent, or the original words if nothing is sent. "" for tools."""
    number: int = 0
    """Place in the transcript, from 1; 0 for parts that are not in the transcript."""
    turn: int = 0
    speaker: str = ""
    whole_tokens: int = 0
    """Tokens of the original."""
    tools: tuple[ToolDefinition, ...] = ()
    """The definitions, if the part is "tools"."""


def message_text(message: BaseMessage) -> str:
    """Return a message's text, its tool calls as name and JSON, and its attachments' kinds."""
    calls = all_calls(message) if isinstance(message, AIMessage) else []
    lines = [
        f"{call['name']} {json.dumps(call['args'], ensure_ascii=False, default=str)}"
        for call in calls
    ]
    lines += [f"[{kind}]" for kind in attachments(message)]
    return "\n".join(filter(None, [str(message.text), *lines]))


def memory_text(view: View, *, role: str) -> str:
    """Return the memory as a call is sent it, "" without one. `role`: the policy's
    `memory_role`.
    """
    if role != "system":
        return next((str(each.text) for each in view.messages if each.id == MEMORY_ID), "")
    if len(view.system_ends) < 2:
        return ""
    system = str(view.messages[0].text)
    return system[view.system_ends[0] + len(SYSTEM_SEPARATOR) : view.system_ends[1]]


def call_parts(call_plan: CallPlan, tools: Sequence[Mapping[str, Any]] = ()) -> list[CallPart]:
    """Return the parts of the next call, in the order in which they are sent. Pure.

    `tools`: the definitions of the tools that go with it, in OpenAI's form.
    """
    view = call_plan.view
    call_config = call_plan.call_config
    memory = memory_text(view, role=call_config.policy.memory_role)
    system = call_config.instructions
    parts = [
        CallPart("system", "whole", view.parts.system, system),
        CallPart("tools", "whole", view.parts.tools, "", tools=tuple(map(_definition, tools))),
    ]
    if memory:
        parts.append(CallPart("memory", "whole", view.parts.memory, memory))
    return [*parts, *_message_parts(call_plan)]


def _definition(tool: Mapping[str, Any]) -> ToolDefinition:
    function = tool.get("function", tool)
    rest = {name: value for name, value in function.items() if name != "name"}
    text = json.dumps(rest, ensure_ascii=False, indent=2)
    return ToolDefinition(str(function.get("name", "")), text)


def _message_parts(call_plan: CallPlan) -> Iterator[CallPart]:
    """Yield the messages of the call, and those of the transcript that it lacks where they would
    stand.
    """
    thread = call_plan.thread
    start = thread.live[1]
    first = thread.archived + start + 1
    waiting = list(enumerate(thread.messages[start:], first))
    numbers = {message.id: number for number, message in waiting}
    sent = [each for each in call_plan.view.messages if each.type != "system"]
    for message in sent:
        if message.id == MEMORY_ID:
            continue
        number = numbers.get(message.id)
        if number is None:
            yield _part(call_plan, message, message, 0, "added")
            continue
        while waiting and waiting[0][0] < number:
            yield _absent(call_plan, *waiting.pop(0))
        if waiting and waiting[0][0] == number:
            yield _sent(call_plan, message, *waiting.pop(0))
    for number, message in waiting:
        yield _absent(call_plan, number, message)


def _sent(
    call_plan: CallPlan, message: BaseMessage, number: int, original: BaseMessage
) -> CallPart:
    shorter = len(message_text(message)) < len(message_text(original))
    # A message that the provider refused is sent as a note of the same id.
    refused = original.id in call_plan.thread.excluded
    state: PartState = "excluded" if refused else "shrunk" if shorter else "whole"
    return _part(call_plan, message, original, number, state)


def _absent(call_plan: CallPlan, number: int, original: BaseMessage) -> CallPart:
    excluded = original.id in call_plan.thread.excluded
    state: PartState = "excluded" if excluded else "left_out"
    return _part(call_plan, original, original, number, state)


def _part(
    call_plan: CallPlan,
    message: BaseMessage,
    original: BaseMessage,
    number: int,
    state: PartState,
) -> CallPart:
    count = call_plan.call_config.counter.message
    return CallPart(
        kind=message.type,
        state=state,
        tokens=count(message),
        text=message_text(message),
        number=number,
        turn=turn_number(original),
        speaker=speaker_of(original),
        whole_tokens=count(original),
    )


def sent_count(parts: Sequence[CallPart]) -> int:
    """Return how many messages of the transcript the call is sent, whole or shortened."""
    return sum(part.state in ("whole", "shrunk") and part.number > 0 for part in parts)
