"""Token counts for people: the size of the next call, and the limit that the last turn would
need.
"""

import math
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from longtable.base.context import Context
from longtable.base.events import ContextUsage
from longtable.memory.counting.tokens import PRIMING
from longtable.memory.messages.rounds import all_calls, split_rounds
from longtable.memory.policy import CompactionPolicy
from longtable.memory.view import build_view
from longtable.nodes.arriving.input_checks import NOTE_TOKENS
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.estimate import usage_event
from longtable.nodes.state import State


def usage_now(values: State, context: Context) -> ContextUsage | None:
    """Return the count of the next call as the thread is now. Return None before the first turn."""
    if not values.get("brief"):
        return None
    call_plan = call_plan_of(values, context)
    return usage_event(build_view(call_plan), call_plan.call_config)


def limit_needed(values: State, context: Context) -> int | None:
    """Return the lowest model limit with which the tool results of the last turn are shown whole.
    Return None if they were shown whole.

    Older rounds and the memory are not counted, because they are shortened first. Calls that repeat
    an earlier call are not counted either.
    """
    if not values.get("brief"):
        return None
    call_plan = call_plan_of(values, context)
    call_config = call_plan.call_config
    rounds = split_rounds(call_plan.messages)
    if not rounds or not any(isinstance(message, ToolMessage) for message in rounds[-1]):
        return None
    around = (
        call_config.counter.message(SystemMessage(call_config.system))
        + call_config.tool_tokens
        + PRIMING
        + NOTE_TOKENS
    )
    need = around + sum(map(call_config.counter.message, _once(rounds[-1])))
    if need <= call_config.threshold_tokens:
        return None
    return limit_for(need, share=call_config.policy.threshold / call_config.factor)


def limit_for(tokens: int, *, share: float = CompactionPolicy().threshold) -> int:
    """Return the lowest model limit of which `tokens` take up less than `share`. It is rounded up
    to hundreds, so that it is easy to type.
    """
    return math.ceil((tokens + 1) / share / 100) * 100


def _once(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages of a turn without its final answer and without calls that repeat earlier
    calls.
    """
    keys: set[str] = set()
    dropped: set[str | None] = set()
    rest: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls = all_calls(message)
            key = str([(call["name"], call["args"]) for call in calls])
            if not calls:
                continue
            if key in keys:
                dropped |= {call["id"] for call in calls}
                continue
            keys.add(key)
        if isinstance(message, ToolMessage) and message.tool_call_id in dropped:
            continue
        rest.append(message)
    return rest
