"""Prepare messages for a provider: names that it accepts, notes for refused turns."""

import json
import re
import unicodedata
from collections.abc import Collection, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from longtable.memory.counting.tokens import compact_json
from longtable.memory.messages.marks import is_recalled
from longtable.memory.summary.summary_text import language_of

NAME_CHARS = 64


_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{NAME_CHARS}}}")
"""Names of messages that OpenAI accepts."""


REFUSED_NOTE = {
    "en": "[What the user sent here was refused by the model's provider, and is left out.]",
    "zh": "[用户在此处发送的内容被模型服务拒绝，已略去。]",
}


BLANK = "[excluded]"
"""Text in place of the copy of a message that was recalled first and excluded later."""


NEAR = 20
"""The language of a note is read from this many messages before it."""


def with_notes(
    messages: Sequence[BaseMessage], excluded: Collection[str], refused: Collection[str]
) -> list[BaseMessage]:
    """Return the messages that are not excluded. A single note stands in place of consecutive
    messages that the provider refused.
    """
    if not refused:
        return (
            [message for message in messages if message.id not in excluded]
            if excluded
            else list(messages)
        )
    result: list[BaseMessage] = []
    noted = False
    for place, message in enumerate(messages):
        if message.id not in excluded:
            result.append(message)
            noted = False
        elif message.id in refused and not noted:
            # Of what came before alone: the note stays the same when the conversation goes on.
            language = language_of(messages[max(0, place - NEAR) : place + 1])
            result.append(HumanMessage(REFUSED_NOTE[language], id=f"{message.id}/refused"))
            noted = True
    return result


def with_sent_name(message: BaseMessage) -> BaseMessage:
    """Return the message with a name that providers accept. If this name differs from the real
    name, the message's text begins with the real name.

    A name without an ASCII letter or digit is left out. If two accepted names are the same, the
    texts still tell the speakers apart.
    """
    if message.type not in ("human", "ai"):
        return message
    extra = message.additional_kwargs
    name = message.name or extra.get("name")  # langchain-openai sends either
    if name is None or (isinstance(name, str) and _NAME.fullmatch(name)):
        return message
    real = " ".join(str(name).split())
    plain = unicodedata.normalize("NFKD", real).encode("ascii", "ignore").decode()
    short = re.sub(r"[^a-zA-Z0-9_-]+", "_", plain).strip("_")[:NAME_CHARS]
    changes = {
        "name": short or None,
        "additional_kwargs": {key: value for key, value in extra.items() if key != "name"},
    }
    return message.model_copy(update={**changes, "content": _named(message, real)})


def without_copies(message: BaseMessage, excluded: Collection[str]) -> BaseMessage:
    """Return a message that repeats earlier ones, without the words of any that have been excluded
    since. A message that repeats none is returned unchanged.
    """
    if not is_recalled(message):
        return message
    try:
        answer = json.loads(message.text)
        blanked = [copy for copy in answer["messages"] if copy["id"] in excluded]
    except (ValueError, KeyError, TypeError):  # of another version: it may hold the words
        return message.model_copy(update={"content": BLANK})
    for copy in blanked:
        copy["text"] = BLANK
    return message.model_copy(update={"content": compact_json(answer)}) if blanked else message


def _named(message: BaseMessage, name: str) -> str | list[str | dict[str, object]]:
    content = message.content
    if not name or (isinstance(message, AIMessage) and not message.text):
        # An answer that only calls tools.
        return content
    return (
        f"{name}: {content}"
        if isinstance(content, str)
        else [{"type": "text", "text": f"{name}:"}, *content]
    )
