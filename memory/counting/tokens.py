"""Exact token counts of the parts of a chat request: text, names, tool calls, tool results, tool
definitions, images.

Text is counted by tiktoken, or by a model's own tokenizer (extra `tokenizers`). The overheads of
the chat format are those of the OpenAI cookbook ("How to count tokens with tiktoken"): 3 tokens a
message, 1 for a name, 3 that prime the answer. A tool call has no published formula: its compact
JSON counts. A tool definition counts as its compact JSON or by the cookbook's formula for gpt-4o
(section 7), whichever is more. The result is 1.0 to 1.9 times the tokens that a server reports if
it counts by the cookbook, and never fewer. DeepSeek and Qwen write tools into the prompt by a chat
template, as JSON with blanks and with text around it.
"""

import hashlib
import json
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from longtable.memory.counting.tokenizers import PACKAGES, encoder_of

Key = bytes | tuple[str, str | None, int, int]
"""Cache key of a message's content (see `_content_key`), or of a text alone, which has no role."""


MESSAGE_OVERHEAD = 3
NAME_OVERHEAD = 1
TOOL_CALL_OVERHEAD = 3
TOOL_OVERHEAD = 8
"""Tokens around one tool definition's JSON."""
TEMPLATE_TOKENS = 200
"""Tokens counted for the text of a chat template before and after the tools. Qwen 2.5's template
has 86; other templates are longer, because they show the format of a call.
"""
FUNCTION_TOKENS = 7
PROPERTIES_TOKENS = 3
PROPERTY_TOKENS = 3
ENUM_TOKENS = -3
ENUM_VALUE_TOKENS = 3
FUNCTIONS_END_TOKENS = 12
"""The six constants are the cookbook's tokens for: a function, having properties at all, each
property, each enum, each value of an enum, and the end of the functions. The end is counted here
for every function.
"""
PRIMING = 3
IMAGE_TOKENS = 1_105
"""Tokens counted for every image: those of a 2048 x 4096 image at high detail, the largest example
of OpenAI's vision guide.
"""

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
CACHE_SIZE = 65_536
LONG_CHARS = 10_000
"""The count of a single text is cached if the text has at least this many characters. The count of
a message is always cached.
"""
MOST_CHARS = 8
"""The most characters that a token of prose or data has. `TokenCounter.prefix` cuts a text with
longer tokens sooner than necessary.
"""


class TokenCounter:
    """Count tokens in one encoding. A counter is safe to share between OS threads. Counts are
    cached, so that each distinct message is counted once.
    """

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._count, self.estimated = encoder_of(encoding)
        self._cache: OrderedDict[Key, int] = OrderedDict()
        self._lock = threading.Lock()

    def text(self, text: str) -> int:
        """Return the tokens of a text. The count of a long text is cached."""
        if len(text) < LONG_CHARS:
            return self._count(text) if text else 0
        key = "", None, len(text), hash(text)
        known = self._cache.get(key)
        return self._remember(key, self._count(text)) if known is None else known

    def prefix(self, text: str, tokens: int) -> str:
        """Return a beginning of the text that has at most `tokens` tokens. It may be up to 2 %
        shorter than the longest such beginning.
        """
        # So long a text is not counted to be refused.
        low = 0
        high = min(len(text), max(0, tokens) * MOST_CHARS)
        if self.text(text[:high]) <= tokens:
            return text[:high]
        while high - low > 1 + low // 50:
            middle = (low + high) // 2
            low, high = (middle, high) if self.text(text[:middle]) <= tokens else (low, middle)
        return text[:low]

    def message(self, message: BaseMessage) -> int:
        """Return the tokens of one message with its overhead. Messages with the same content share
        one cached count.
        """
        key = _content_key(message)
        known = self._cache.get(key)  # one atomic look: no lock, or it would be a third of the cost
        if known is not None:
            return known
        return self._remember(key, self._message(message))

    def _remember(self, key: Key, tokens: int) -> int:
        with self._lock:
            self._cache[key] = tokens
            while len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return tokens

    def messages(self, messages: Sequence[BaseMessage]) -> int:
        """Return the tokens of a request's messages, including the tokens that prime the answer."""
        return sum(map(self.message, messages)) + PRIMING

    def tools(self, definitions: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of tool definitions in OpenAI's format."""
        if definitions and self.encoding in PACKAGES:
            return TEMPLATE_TOKENS + sum(
                1 + self.text(json.dumps(each, ensure_ascii=False, default=str))
                for each in definitions
            )
        return sum(
            max(TOOL_OVERHEAD + self.text(compact_json(each)), self._function(each))
            for each in definitions
        )

    def _function(self, definition: Mapping[str, Any]) -> int:
        function = definition.get("function") or definition
        head = FUNCTION_TOKENS + self.text(
            f"{function.get('name', '')}:{function.get('description', '')}"
        )
        return head + self._schema(function.get("parameters") or {}) + FUNCTIONS_END_TOKENS

    def _schema(self, schema: object) -> int:
        """Return the tokens of a schema's properties at every depth. The cookbook's formula covers
        the first depth only.
        """
        if isinstance(schema, list):
            return sum(map(self._schema, schema))
        if not isinstance(schema, Mapping):
            return 0
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        total = PROPERTIES_TOKENS if properties else 0
        for name, each in properties.items():
            fields = each if isinstance(each, Mapping) else {}
            total += PROPERTY_TOKENS + self.text(
                f"{name}:{fields.get('type', '')}:{fields.get('description', '')}"
            )
        if isinstance(values := schema.get("enum"), list):
            total += ENUM_TOKENS + sum(
                ENUM_VALUE_TOKENS + self.text(str(value)) for value in values
            )
        inner = [
            value
            for key, value in schema.items()
            if key not in {"properties", "enum", "default", "const", "examples"}
        ]
        return total + self._schema([*properties.values(), *inner])

    def _message(self, message: BaseMessage) -> int:
        total = (
            MESSAGE_OVERHEAD
            + self.text(ROLES.get(message.type, message.type))
            + self._content(message.content)
        )
        if message.name:
            total += NAME_OVERHEAD + self.text(message.name)
        if isinstance(message, ToolMessage):
            total += self.text(message.tool_call_id)
        if isinstance(message, AIMessage):
            total += self.text(_reasoning(message))
            for call in message.tool_calls:
                total += self._call(call["id"], call["name"], compact_json(call["args"]))
            for bad in message.invalid_tool_calls:
                total += self._call(bad["id"], bad["name"], bad["args"] or "")
        return total

    def _call(self, call_id: str | None, name: str | None, arguments: str) -> int:
        return (
            TOOL_CALL_OVERHEAD
            + self.text(call_id or "")
            + self.text(name or "")
            + self.text(arguments)
        )

    def _content(self, content: str | Sequence[str | Mapping[str, Any]]) -> int:
        if isinstance(content, str):
            return self.text(content)
        return sum(self._block(block) for block in content)

    def _block(self, block: str | Mapping[str, Any]) -> int:
        if isinstance(block, str):
            return self.text(block)
        kind = block.get("type", "text")
        if kind in {"image", "image_url", "input_image"}:
            return IMAGE_TOKENS
        if kind in {"tool_use", "function_call"}:
            return 0  # the same call stands in tool_calls
        text = block.get("text")
        return self.text(text) if isinstance(text, str) else self.text(compact_json(block))


def levels_that_fit(items: int, most: int, fits: Callable[[list[int]], bool]) -> list[int] | None:
    """Return how much each item is shortened, from 0 (whole) to `most`, so that all items fit
    together. Return None if they do not fit even at `most`.

    The first items are shortened first, and every item takes one step before any item takes its
    second. `fits` returns True if the items fit at these levels (one level for each item).
    """

    def levels(step: int) -> list[int]:
        return [max(0, min(most, -((item - step) // items))) for item in range(items)]

    step = bisect_left(range(most * items + 1), True, key=lambda step: fits(levels(step)))
    return levels(step) if step <= most * items else None


@lru_cache(maxsize=8)
def counter(encoding: str) -> TokenCounter:
    """Return the counter of an encoding, which the whole process shares. The encoding is loaded
    when its counter is first asked for.
    """
    return TokenCounter(encoding)


def compact_json(value: object) -> str:
    """Return the value as JSON in the form that is sent: without blanks, and with non-ASCII
    characters unescaped.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _content_key(message: BaseMessage) -> Key:
    """Return the cache key of a message's content. It is valid within this process only.

    A message of plain text has a key with Python's hash of the text, which a string computes only
    once: looking up a known message takes 0.6 us, against 2.0 us by its fingerprint. Two texts of
    the same length and 64-bit hash would share a count; that happens in 1 of 10**9 full caches.
    """
    content = message.content
    calls = (
        message.type == "ai"
        and isinstance(message, AIMessage)
        and (message.tool_calls or message.invalid_tool_calls or _reasoning(message))
    )
    if calls or message.type == "tool" or content.__class__ is not str:
        return fingerprint(message)
    return message.type, message.name, len(content), hash(content)


def _reasoning(message: BaseMessage) -> str:
    """Return the reasoning with which a message is sent, "" if there is none."""
    text = message.additional_kwargs.get("reasoning_content")
    return text if isinstance(text, str) else ""


def fingerprint(message: BaseMessage) -> bytes:
    """Return a 16-byte digest of all parts of a message that are sent to a provider. The message's
    id and metadata are not among them.
    """
    digest = hashlib.blake2b(digest_size=16)
    calls = (
        (message.tool_calls, message.invalid_tool_calls) if isinstance(message, AIMessage) else ()
    )
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    content = message.content if isinstance(message.content, str) else compact_json(message.content)
    parts = [
        message.type,
        message.name or "",
        answers,
        content,
        compact_json(calls) if any(calls) else "",
    ]
    for part in [*parts, reasoning] if (reasoning := _reasoning(message)) else parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\x00")
    return digest.digest()
