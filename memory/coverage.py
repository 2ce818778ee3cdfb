"""What the writer of a memory is shown of the messages it folds, and what it is not."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from langchain_core.messages import BaseMessage, ToolMessage

Count = Callable[[str], int]
Item = TypeVar("Item")


def coverage(messages: Sequence[tuple[int, BaseMessage]], clip_tool_chars: int, count: Count) -> tuple[float, str]:
    """Return (tokens of text shown / tokens of text there are, why it is not all; "" where it is)."""
    full = seen = 0
    clipped = pictures = 0
    for _, message in messages:
        text = str(message.text)
        full += (tokens := count(text))
        if isinstance(message, ToolMessage) and len(text) > clip_tool_chars:
            tokens = min(tokens, count(text[:clip_tool_chars]))
            clipped += 1
        seen += tokens
        pictures += len(attachments(message))
    notes = []
    if clipped:
        notes.append(f"{clipped} tool results over {clip_tool_chars} characters were clipped")
    if pictures:
        notes.append(f"{pictures} images or other attachments were named, not shown")
    return (round(seen / full, 4) if full else 1.0), "; ".join(notes)


def attachments(message: BaseMessage) -> list[str]:
    """Return the kinds of a message's parts that are no text ("image_url"), in order; tool calls aside."""
    if isinstance(message.content, str):
        return []
    kinds = [str(block.get("type", "text")) for block in message.content if isinstance(block, dict)]
    return [kind for kind in kinds if kind not in _TEXT]


_TEXT = frozenset({"text", "tool_use", "function_call", "thinking", "reasoning", "redacted_thinking"})


def packed(items: Iterable[tuple[Item, int]], room: int) -> list[list[Item]]:
    """Pack items, each given with its tokens, into parts of at most `room`, in order; one that is longer has a part alone."""
    parts: list[list[Item]] = [[]]
    used = 0
    for item, tokens in items:
        if parts[-1] and used + tokens > room:
            parts.append([])
            used = 0
        parts[-1].append(item)
        used += tokens
    return parts


def pieces(text: str, room: int, count: Count) -> Iterator[str]:
    """Yield a text in parts of at most `room` tokens, in order, nothing left out; cut behind white space where there is any near."""
    if len(text) < 2 or count(text) <= room:
        yield text
        return
    middle = len(text) // 2
    near = next((at for at in range(middle, max(1, middle // 2), -1) if text[at - 1].isspace()), middle)
    yield from pieces(text[:near], room, count)
    yield from pieces(text[near:], room, count)
