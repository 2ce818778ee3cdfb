"""Use the prompt caches of providers: the beginning of a call that repeats the previous call is
read from the cache, at about a tenth of the price.

Claude caches a call only up to content blocks that bear a mark (`cache_control`); a call may have
at most four marks. `with_marks` sets marks on copies, so that no stored message has a mark. OpenAI
caches without marks; a key (`cache_key`) leads all calls of a thread to the same machine.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableBinding

from longtable.memory.materials import PASSED_ID
from longtable.memory.view import MEMORY_ID, View
from longtable.nodes.calling.model_clients import is_openai_protocol, server_host

Mark = dict[str, str]
MOST_MARKS = 4
"""Most marks that Anthropic accepts in one request."""
OPENAI_HOSTS = re.compile(r"(?:^|\.)api\.openai\.com$")
KEY_CHARS = 32


def cache_mark(lifetime: Literal["5m", "1h"]) -> Mark:
    """Return the mark for a cache entry that is kept for `lifetime` after it was last read."""
    mark = {"type": "ephemeral"}
    return mark if lifetime == "5m" else {**mark, "ttl": lifetime}


def with_marks(
    model: Runnable[Any, BaseMessage], view: View, messages: Sequence[BaseMessage], mark: Mark
) -> tuple[Runnable[Any, BaseMessage], list[BaseMessage]]:
    """Return a model and the messages of a call with at most four marks.

    In the order in which the provider reads a call, the marks are:

    1. on the last tool;
    2. at the end of the system prompt;
    3. at the end of the memory;
    4. on the message before the material of context providers, because the next call does not
       repeat this material;
    5. on the last message.

    If these would be five, the tools get no mark; the mark on the system prompt covers them too.

    `messages`: the view's messages in the form in which this model is sent them.
    """
    result = [*map(_in_blocks, messages)]
    for place, message in enumerate(result):
        if isinstance(message, SystemMessage):
            result[place] = _marked_system(message, view.system_ends, mark)
        elif message.id == MEMORY_ID:
            result[place] = _marked(message, mark) or message
    for end in _message_ends(result):
        _mark_last(result, end, mark)
    has_room = sum(map(_marks_in, result)) < MOST_MARKS
    return (_with_marked_tools(model, mark) if has_room else model), result


def _in_blocks(message: BaseMessage) -> BaseMessage:
    """Return a question or a result with its text as a block, as it is sent with a mark.

    A message has a mark only while it is the newest. Were its text a string again in the next call,
    the bytes would differ, and the provider would read all of it anew.
    """
    text = message.content
    if message.type not in ("human", "tool") or not isinstance(text, str) or not text.strip():
        return message
    return message.model_copy(update={"content": [{"type": "text", "text": text}]})


def _with_marked_tools(model: Runnable[Any, BaseMessage], mark: Mark) -> Runnable[Any, BaseMessage]:
    """Return a model whose last bound tool bears the mark. Return the model itself if it has no
    tools.
    """
    if not isinstance(model, RunnableBinding):
        return model
    tools = model.kwargs.get("tools") or []
    if not tools or not isinstance(tools[-1], dict):
        return model
    marked = [*tools[:-1], {**tools[-1], "cache_control": mark}]
    return model.model_copy(update={"kwargs": {**model.kwargs, "tools": marked}})


def _message_ends(messages: Sequence[BaseMessage]) -> list[int]:
    """Return the indices before which a message is marked: the end of all messages and, if there is
    material, the place of the first material.
    """
    ids = [str(message.id or "") for message in messages]
    material = next((i for i, id_ in enumerate(ids) if id_.startswith(PASSED_ID)), None)
    return [len(messages)] if material is None else [len(messages), material]


def _marked_system(message: SystemMessage, ends: Sequence[int], mark: Mark) -> SystemMessage:
    """Split the text of a system message into blocks at these ends. Each block bears a mark, except
    the text after the last end.
    """
    text = message.content
    if not isinstance(text, str):
        return message
    blocks: list[str | dict[str, Any]] = []
    start = 0
    for end in ends:
        if part := text[start:end].strip("\n"):
            blocks.append({"type": "text", "text": part, "cache_control": mark})
        start = end
    if rest := text[start:].strip("\n"):
        blocks.append({"type": "text", "text": rest})
    return message.model_copy(update={"content": blocks}) if blocks else message


def _marks_in(message: BaseMessage) -> int:
    blocks = message.content if isinstance(message.content, list) else []
    return sum(isinstance(block, dict) and "cache_control" in block for block in blocks)


def _mark_last(messages: list[BaseMessage], end: int, mark: Mark) -> None:
    """Mark the last message before `end` that can bear a mark. The list is changed in place.
    Nothing is marked if only the system message and the memory are left, which have marks already.
    """
    for place in range(end - 1, -1, -1):
        message = messages[place]
        if isinstance(message, SystemMessage) or message.id == MEMORY_ID:
            return
        marked = _marked(message, mark)
        if marked is not None:
            messages[place] = marked
            return


def _marked(message: BaseMessage, mark: Mark) -> BaseMessage | None:
    """Return the message with a mark on its last block that can bear a mark. Return None if it has
    no such block.

    Tool calls come after the content of an answer and cannot be marked, so an answer with nothing
    but tool calls has no such block.
    """
    content = message.content
    blocks: list[str | dict[Any, Any]] = [content] if isinstance(content, str) else list(content)
    for place in range(len(blocks) - 1, -1, -1):
        written = blocks[place]
        block = {"type": "text", "text": written} if isinstance(written, str) else written
        if _can_bear_mark(block, message):
            blocks[place] = {**block, "cache_control": mark}
            return message.model_copy(update={"content": blocks})
    return None


def _can_bear_mark(block: Mapping[str, Any], message: BaseMessage) -> bool:
    kind = block.get("type")
    if kind == "text":
        return bool(str(block.get("text") or "").strip())
    if isinstance(message, ToolMessage):
        return True  # the client hoists it to the result as a whole
    return kind in ("image", "file")


def sends_key(model: BaseChatModel, setting: bool | None) -> bool:
    """Return whether a model's server is sent a cache key. If `setting` is None, only OpenAI's own
    servers are; if it is True, any server that is called with OpenAI's protocol; if False, none.
    """
    if setting is None:
        return is_openai_protocol(model) and bool(OPENAI_HOSTS.search(server_host(model)))
    return setting and is_openai_protocol(model)


def cache_key(thread_id: str, voice: str) -> str:
    """Return the cache key for the calls of a thread: 32 hexadecimal digits of a hash. Each voice
    of a team has its own key, because the voices' system prompts differ.
    """
    digest = hashlib.sha256(f"{thread_id}\0{voice}".encode())
    return digest.hexdigest()[:KEY_CHARS]
