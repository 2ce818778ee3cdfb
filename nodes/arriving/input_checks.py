"""Check whether a caller's input can be accepted: its roles, texts and sizes, and whether it fits
the next call.
"""

import base64
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.base.context import Context, RequestLimits
from longtable.base.errors import (
    SYSTEM_PROMPT,
    THE_MESSAGE,
    TOOLS,
    ConfigError,
    ContextTooLargeError,
    EmptyMessageError,
    HistoryMessageTooLongError,
    InvalidTextError,
    MessageTooLongError,
    RequestTooLargeError,
    RequestTooLongError,
    TooManyMessagesError,
    WrongRoleError,
    check_type,
)
from longtable.base.settings_base import shown
from longtable.memory.call_config import TALK_SHARE
from longtable.memory.counting.tokens import ROLES
from longtable.memory.messages.rounds import is_users
from longtable.memory.messages.sent_messages import with_sent_name
from longtable.memory.view import CallPlan, must_stay

ACCEPTED = (HumanMessage, AIMessage, ToolMessage)
"""Classes of messages that callers may send. System messages are not among them, not even as a
`ChatMessage`.
"""
NOTE_TOKENS = 32
"""Tokens reserved for the note that messages were left out."""

HISTORY_FACTOR = 32
"""A request that also hands in an earlier conversation may have this many times
`RequestLimits.bytes` (8 MiB by default). The bound is needed because checkpoint and store keep
several copies of a message: 20 MB became 85 MB.
"""

TOKEN_CHARS = 16
"""A message may have at most this many characters for each token of the model's limit. (Prose has 2
to 5 characters per token, one letter repeated has 8.)
"""

IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""Formats of images that models take, by their first bytes."""
LONGEST_ID = 200


@dataclass(frozen=True)
class Question:
    """What a caller asks. `id`: an id for the message, by which it is recognised if it is sent
    again. `name`: the speaker's name. `images`: URLs, or the bytes of images in the formats of
    `IMAGES`.
    """

    text: str
    id: str | None = None
    name: str | None = None
    images: Sequence[str | bytes] = ()

    def message(self) -> HumanMessage:
        """Return the question as a message. Raises `ConfigError` if a field has a wrong type or
        value.
        """
        check_type("the text of a message", self.text, str)
        for what, value in (("id", self.id), ("name", self.name)):
            if value is not None and not (
                isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable()
            ):
                shown_value = shown(value) if isinstance(value, str) else type(value).__name__
                raise ConfigError(
                    f"the {what} of a message is a text of 1 to {LONGEST_ID} printable characters,"
                    f" found {shown_value}",
                    name=what,
                    wanted=f"1 … {LONGEST_ID}",
                )
        if isinstance(self.images, str | bytes) or not all(
            isinstance(each, str | bytes) for each in self.images
        ):
            raise ConfigError(
                f"images must be a list of URLs or of bytes, found {type(self.images).__name__}:"
                " images=[...]"
            )
        urls = [each if isinstance(each, str) else _data_url(each) for each in self.images]
        parts = [
            {"type": "text", "text": self.text},
            *({"type": "image_url", "image_url": {"url": url}} for url in urls),
        ]
        return HumanMessage(
            cast("Any", parts) if urls else self.text,
            id=self.id or str(uuid.uuid4()),
            name=self.name,
        )


def _data_url(image: bytes) -> str:
    kind = next((kind for head, kind in IMAGES.items() if image.startswith(head)), None)
    if kind is None:
        raise ConfigError(
            f"an image is a URL, or the bytes of a {', '.join(IMAGES.values())} file, found"
            f" {bytes(image[:12])!r}"
        )
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


def storable(value: Any) -> Any:
    """Return the value in a form that a checkpoint (msgpack) can hold. Lone surrogates (half an
    emoji) are replaced, and integers of more than 64 bits become text.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def check_input(
    new: Sequence[BaseMessage],
    context: Context,
    call_plan: CallPlan | None,
    limits: RequestLimits | None = None,
) -> None:
    """Raise an `InputError` if an input cannot be accepted.

    Roles, texts and lengths of the messages are always checked. With `limits`, the size of the
    whole request is checked too. With a `call_plan`, a question is also refused if it could not be
    sent word for word beside system prompt, tools and pins, and so is any message that is longer
    than the model's limit could ever allow.
    """
    if not new:
        raise EmptyMessageError
    for message in new:
        if not isinstance(message, ACCEPTED):
            raise WrongRoleError(role=str(getattr(message, "role", message.type))[:40])
        if isinstance(message, HumanMessage) and is_users(message):
            _check_human(message, context)
    question = next((message for message in reversed(new) if is_users(message)), new[-1])
    if not isinstance(new[-1], HumanMessage):
        raise WrongRoleError(role=new[-1].type)
    if limits:
        _check_sizes(request_of(new), context, limits)
        if (size := _bytes(new)) > (most := HISTORY_FACTOR * _most_bytes(context, limits)):
            raise RequestTooLargeError(size=size, limit=most)
    if call_plan:
        _check_lengths(new, context, call_plan.call_config.limit)
        _check_fit(with_sent_name(question), call_plan)


def _check_lengths(new: Sequence[BaseMessage], context: Context, limit: int) -> None:
    """Refuse a message that no call could hold. This is checked before its tokens are counted."""
    most = max(TOKEN_CHARS * limit, context.max_message_chars)
    for place, message in enumerate(new, start=1):
        size = _sent_chars(message)
        if size > most:
            role = ROLES.get(message.type, message.type)
            raise HistoryMessageTooLongError(place=place, role=role, size=size, limit=most)


def _sent_chars(message: BaseMessage) -> int:
    """Return how many characters of a message are sent to a provider: those of its text, its name,
    and the arguments of its tool calls.
    """
    name = message.name or message.additional_kwargs.get("name") or ""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    arguments = (json.dumps(call["args"], ensure_ascii=False, default=str) for call in calls)
    return len(message.text) + len(str(name)) + sum(map(len, arguments))


def _check_fit(message: BaseMessage, call_plan: CallPlan) -> None:
    """Raise `ContextTooLargeError` if a message cannot be sent word for word within the limit minus
    the reserve. The error names the part that is too large: message, system prompt or tools.
    """
    call_config = call_plan.call_config
    parts = must_stay(call_plan, message)
    need = parts.total + NOTE_TOKENS
    budget = call_config.hard_tokens
    if need > budget:
        fixed = SYSTEM_PROMPT if parts.system >= parts.tools else TOOLS
        leaves_room = need - parts.messages <= budget - call_config.share(TALK_SHARE)
        raise ContextTooLargeError(
            need=need, budget=budget, what=THE_MESSAGE if leaves_room else fixed
        )


def request_of(new: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages after the last message of the model. They are the request itself; earlier
    messages are conversation that was handed in with it.
    """
    return new[
        next((i + 1 for i in range(len(new) - 1, -1, -1) if isinstance(new[i], AIMessage)), 0) :
    ]


_SENT = (
    "content",
    "name",
    "id",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "artifact",
    "additional_kwargs",
    "response_metadata",
)


def _check_sizes(new: Sequence[BaseMessage], context: Context, limits: RequestLimits) -> None:
    longest = context.max_message_chars
    for size, limit, error in (
        (len(new), limits.messages, TooManyMessagesError),
        (
            sum(len(message.text) for message in new),
            max(limits.chars, longest),
            RequestTooLongError,
        ),
        (_bytes(new), _most_bytes(context, limits), RequestTooLargeError),
    ):
        if size > limit:
            raise error(size=size, limit=limit)


def _bytes(messages: Sequence[BaseMessage]) -> int:
    """Return the size of messages as JSON in bytes. All fields that would be kept are counted, also
    images and tool calls.
    """
    total = 0
    for message in messages:
        fields = [value for name in _SENT if (value := getattr(message, name, None))]
        text = json.dumps(fields, ensure_ascii=False, default=str)
        total += len(text.encode("utf-8", "replace"))
    return total


def _most_bytes(context: Context, limits: RequestLimits) -> int:
    """Return the most bytes that a request may have. A single message of the longest length allowed
    always fits, even if each of its characters takes 4 bytes.
    """
    return max(limits.bytes, 4 * context.max_message_chars + 1_000)


def _check_human(message: HumanMessage, context: Context) -> None:
    text = message.text
    if storable(text) != text:
        raise InvalidTextError
    has_other = not isinstance(message.content, str) and any(
        isinstance(b, dict) and b.get("type") != "text" for b in message.content
    )
    if not has_other and not any(letter.isprintable() and not letter.isspace() for letter in text):
        raise EmptyMessageError
    if len(text) > context.max_message_chars:
        raise MessageTooLongError(size=len(text), limit=context.max_message_chars)
