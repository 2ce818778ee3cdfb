"""Separate the reasoning of an answer from its text, and send it back only to models that ask for
it.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from longtable.memory.messages.marks import marks_of
from longtable.memory.messages.rounds import all_calls, split_rounds

REASONING = "reasoning_content"
"""Key of the reasoning in `additional_kwargs` of a message that is sent with its reasoning. The
protocol uses the same key.
"""
MARK = "reasoning"
"""Mark that keeps the reasoning in the transcript."""

Sent = Literal["never", "tool_rounds"]
"""When reasoning is sent back. `tool_rounds`: with every answer of a round that called tools."""

ASKED_BACK: Sequence[tuple[str, Sent]] = (
    (r"deepseek-?(r1|reasoner-?(0120|0528))", "never"),
    # V3.2 and V4; a round without tools is sent without, as the older ones want it
    (r"deepseek", "tool_rounds"),
    (r"kimi-.*thinking|kimi-k2\.[5-9]|kimi-k[3-9]", "tool_rounds"),
    (r"glm-(4\.[6-9]|[5-9])", "tool_rounds"),
)
"""When a model wants its reasoning back. The first pattern found in the model's name decides."""


def reasoning_sent(model: str) -> Sent:
    """Return when a model wants its reasoning sent back. The model's name decides."""
    return next(
        (sent for pattern, sent in ASKED_BACK if re.search(pattern, model, re.IGNORECASE)), "never"
    )


def reasoning_of(message: BaseMessage) -> str:
    """Return the stored reasoning of an answer, empty if there is none."""
    if stored := text_or_empty(marks_of(message).get(MARK)):
        return stored
    return "\n\n".join(_blocks(message))


def separate_reasoning(message: BaseMessage) -> str:
    """Return the reasoning that stands beside the content of an answer, "" if there is none."""
    return text_or_empty(message.additional_kwargs.get(REASONING))


def streamed_reasoning(message: BaseMessage) -> str:
    """Return the reasoning of an answer, or of a piece of one, as its provider sends it: beside the
    content or within it.
    """
    return separate_reasoning(message) or "".join(_blocks(message))


def without_reasoning(message: BaseMessage) -> BaseMessage:
    """Return an answer without the reasoning that stands beside its content."""
    if REASONING not in message.additional_kwargs:
        return message
    return message.model_copy(
        update={
            "additional_kwargs": {
                k: v for k, v in message.additional_kwargs.items() if k != REASONING
            }
        }
    )


def with_reasoning(messages: Sequence[BaseMessage], sent: Sent) -> list[BaseMessage]:
    """Return the messages of a call with the reasoning that the model wants sent back."""
    if sent == "never":
        return list(messages)
    result: list[BaseMessage] = []
    for group in split_rounds(messages):
        result += _with_reasoning(group)
    return result


def _with_reasoning(group: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    if not any(isinstance(message, AIMessage) and all_calls(message) for message in group):
        return group
    return [
        (
            _sent_with(message, text_or_empty(marks_of(message).get(MARK)))
            if isinstance(message, AIMessage)
            else message
        )
        for message in group
    ]


def _sent_with(message: AIMessage, reasoning: str) -> AIMessage:
    if not reasoning:
        return message
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, REASONING: reasoning}}
    )


def _blocks(message: BaseMessage) -> list[str]:
    blocks = message.content if isinstance(message.content, list) else []
    return [text for block in blocks if isinstance(block, dict) and (text := _block(block))]


def _block(block: dict[str, Any]) -> str:
    """Return the text of Anthropic's thinking and of LangChain's reasoning blocks."""
    if block.get("type") not in {"thinking", "reasoning"}:
        return ""
    return text_or_empty(block.get("thinking") or block.get("reasoning"))


def text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


BEGIN = "<think>"
END = "</think>"
_THINKERS = re.compile(
    r"deepseek|qwen|qwq|think|\br1\b|glm|kimi|minimax|nemotron|magistral", re.IGNORECASE
)
"""Models for which an unmatched `</think>` ends the reasoning. For other models it is part of the
answer.
"""


class ThinkTagParser:
    """Separate reasoning and answer in a stream, even if a tag is cut in two between pieces. Only a
    `<think>` at the beginning of the text opens reasoning.
    """

    def __init__(self) -> None:
        self._held = ""
        self._state = "begin"

    def feed(self, piece: str) -> tuple[str, str]:
        """Take a piece, and return the reasoning and the answer text that are certain so far."""
        self._held += piece
        thought = ""
        if self._state == "begin":
            begun = self._held.lstrip()
            if begun.startswith(BEGIN):
                self._state = "within"
                self._held = begun.removeprefix(BEGIN).lstrip("\n")
            elif not BEGIN.startswith(begun):
                self._state = "beyond"
        if self._state == "within":
            thought, ended, rest = self._held.partition(END)
            if ended:
                thought = thought.rstrip("\n")
                self._state = "after"
                self._held = rest
            else:
                waits = next(
                    (
                        n
                        for n in range(min(len(END), len(thought)), 0, -1)
                        if END.startswith(thought[-n:])
                    ),
                    0,
                )
                end = len(thought) - waits
                self._held = thought[end:]
                thought = thought[:end]
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "beyond" if self._held else "after"
        if self._state != "beyond":
            return thought, ""
        text = self._held
        self._held = ""
        return thought, text

    def close(self) -> tuple[str, str]:
        """Return the text held back so far, as reasoning and answer. Feed no piece after this."""
        rest = self._held
        self._held = ""
        return (
            (rest, "") if self._state == "within" else ("", rest if self._state != "after" else "")
        )


def split_reasoning(answer: BaseMessage, model: str) -> BaseMessage:
    """Return a complete answer whose reasoning is moved from the text to the place where
    `separate_reasoning` finds it.
    """
    if (
        not isinstance(answer, AIMessage)
        or not isinstance(answer.content, str)
        or END not in answer.content
    ):
        return answer
    before, _, after = answer.content.partition(END)
    begun = before.lstrip().startswith(BEGIN)
    if not begun and (BEGIN in before or not _THINKERS.search(model)):
        return answer
    thought = "\n\n".join(
        filter(None, [separate_reasoning(answer), before.strip().removeprefix(BEGIN).strip()])
    )
    changes = {
        "content": after.lstrip(),
        "additional_kwargs": {**answer.additional_kwargs, REASONING: thought},
    }
    return answer.model_copy(update=changes)
