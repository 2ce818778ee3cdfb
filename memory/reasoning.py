"""A model's reasoning: kept beside its answer, and sent back only where the provider asks for it.

Servers of OpenAI's protocol give it as `reasoning_content` beside `content`. DeepSeek's first reasoner answers 400 to a
request that holds it; from V3.2 on DeepSeek answers 400 where it is missing from a turn that called tools
(api-docs.deepseek.com, "Thinking Mode"), and Kimi's and GLM's thinking models lose their thread without it. Qwen, and
whoever is not named here, gets none.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.rounds import all_calls, split_rounds
from longtable.memory.stamps import marks_of

REASONING = "reasoning_content"
"""Key in `additional_kwargs` of a message that is sent with its reasoning, and in the protocol."""
MARK = "reasoning"
"""Mark that keeps it in the transcript."""

Sent = Literal["never", "tool_rounds"]
"""`tool_rounds`: with every answer of a round that called tools."""

ASKED_BACK: Sequence[tuple[str, Sent]] = (
    (r"deepseek-?(r1|reasoner-?(0120|0528))", "never"),
    (r"deepseek", "tool_rounds"),  # V3.2 and V4; a round without tools is sent without, as the older ones want it
    (r"kimi-.*thinking|kimi-k2\.[5-9]|kimi-k[3-9]", "tool_rounds"),
    (r"glm-(4\.[6-9]|[5-9])", "tool_rounds"),
)
"""The first pattern found in a model's name decides."""


def reasoning_sent(model: str) -> Sent:
    """Return when a model wants its reasoning back, by its name."""
    return next((sent for pattern, sent in ASKED_BACK if re.search(pattern, model, re.IGNORECASE)), "never")


def reasoning_of(message: BaseMessage) -> str:
    """Return the reasoning that is kept of an answer, "" where there is none."""
    if kept := _text(marks_of(message).get(MARK)):
        return kept
    return "\n\n".join(_blocks(message))


def told_reasoning(message: BaseMessage) -> str:
    """Return the reasoning an answer came with beside its content."""
    return _text(message.additional_kwargs.get(REASONING))


def reasoning_told(message: BaseMessage) -> str:
    """Return the reasoning of an answer, or of a piece of one, as it comes from its provider: beside the content or within."""
    return told_reasoning(message) or "".join(_blocks(message))


def without_reasoning(message: BaseMessage) -> BaseMessage:
    """Return an answer without the reasoning beside its content."""
    if REASONING not in message.additional_kwargs:
        return message
    return message.model_copy(update={"additional_kwargs": {k: v for k, v in message.additional_kwargs.items() if k != REASONING}})


def with_reasoning(messages: Sequence[BaseMessage], sent: Sent) -> list[BaseMessage]:
    """Return a call's messages with the reasoning its model wants back."""
    if sent == "never":
        return list(messages)
    return [message for group in split_rounds(messages) for message in _with_reasoning(group)]


def _with_reasoning(group: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    if not any(isinstance(message, AIMessage) and all_calls(message) for message in group):
        return group
    return [_sent_with(message, _text(marks_of(message).get(MARK))) if isinstance(message, AIMessage) else message for message in group]


def _sent_with(message: AIMessage, reasoning: str) -> AIMessage:
    if not reasoning:
        return message
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, REASONING: reasoning}})


def _blocks(message: BaseMessage) -> list[str]:
    blocks = message.content if isinstance(message.content, list) else []
    return [text for block in blocks if isinstance(block, dict) and (text := _block(block))]


def _block(block: dict[str, Any]) -> str:
    """Return the text of Anthropic's thinking and of LangChain's reasoning blocks."""
    if block.get("type") not in {"thinking", "reasoning"}:
        return ""
    return _text(block.get("thinking") or block.get("reasoning"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
