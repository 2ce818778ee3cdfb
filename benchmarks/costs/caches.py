"""What a call costs with the prompt caches of Claude and OpenAI, by the rules that both publish.

Claude: https://platform.claude.com/docs/en/build-with-claude/prompt-caching. OpenAI:
https://platform.openai.com/docs/guides/prompt-caching. Prices are in plain input tokens: a token
read from a cache costs 0.1, one written to Claude's 1.25 for five minutes and 2 for an hour.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

READ = 0.1
WRITE = {"5m": 1.25, "1h": 2.0}
SECONDS = {"5m": 300.0, "1h": 3600.0}
SMALLEST = 1_024
"""Tokens of the shortest beginning that either provider caches."""
STEP = 128
"""OpenAI caches in steps of so many tokens."""
OPENAI_SECONDS = 600.0
"""OpenAI keeps what is not read for five to ten minutes."""
LOOKBACK = 20
"""Blocks before a mark at which Claude looks for an earlier mark's beginning, the mark's own
included."""
MOST_MARKS = 4
MOST_CALLS = 10
"""Newest calls of a conversation with which the next one is compared."""
Count = Callable[[str], int]


@dataclass(frozen=True)
class Block:
    """A part of a call, in the order in which the provider reads it."""

    text: str
    lifetime: str = ""
    """Of the mark on it, "5m" or "1h"; "" without one."""


@dataclass(frozen=True)
class Bill:
    """What a call costs. Sizes in tokens."""

    plain: int
    read: int = 0
    written: int = 0
    write_price: float = 0.0

    @property
    def tokens(self) -> int:
        """Return the tokens of the call."""
        return self.plain + self.read + self.written

    @property
    def billed(self) -> float:
        """Return the price in plain input tokens."""
        return self.plain + READ * self.read + self.write_price * self.written


def claude_blocks(body: Mapping[str, Any]) -> list[Block]:
    """Split a request of Anthropic's protocol: tools, system prompt, messages. A mark on the
    request as a whole counts as one on its last block.
    """
    blocks = [_block("tool", tool) for tool in body.get("tools") or []]
    blocks += [_block("system", part) for part in _parts(body.get("system"))]
    for message in body["messages"]:
        blocks += [_block(message["role"], part) for part in _parts(message["content"])]
    mark = body.get("cache_control")
    if mark and not blocks[-1].lifetime:
        blocks[-1] = Block(blocks[-1].text, mark.get("ttl", "5m"))
    return blocks


def openai_blocks(body: Mapping[str, Any]) -> list[Block]:
    """Split a request of OpenAI's protocol: tools, messages."""
    parts = [*(body.get("tools") or []), *body["messages"]]
    return [Block(json.dumps(part, ensure_ascii=False)) for part in parts]


def _parts(content: object) -> list[dict[str, Any]]:
    if not content:
        return []
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _block(role: str, part: Mapping[str, Any]) -> Block:
    bare = {key: value for key, value in part.items() if key != "cache_control"}
    mark = part.get("cache_control")
    lifetime = mark.get("ttl", "5m") if mark else ""
    return Block(f"{role} {json.dumps(bare, ensure_ascii=False)}", lifetime)


class ClaudeCache:
    """The beginnings that marks wrote, each until it was not read for its lifetime."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._ends: dict[str, float] = {}

    def bill(self, blocks: Sequence[Block], now: float) -> Bill:
        """Return what a call costs at a time in seconds, and keep what its marks write.

        Raises `ValueError` for more than four marks, as the provider refuses them.
        """
        marks = [place for place, block in enumerate(blocks) if block.lifetime]
        if len(marks) > MOST_MARKS:
            raise ValueError(f"at most {MOST_MARKS} marks, found {len(marks)}")
        keys = _keys(blocks)
        tokens = list(itertools.accumulate(self._count(block.text) for block in blocks))
        known = [
            place
            for mark in marks
            for place in range(max(0, mark - LOOKBACK + 1), mark + 1)
            if self._ends.get(keys[place], 0.0) > now
        ]
        read = tokens[max(known)] if known else 0
        for place in known:
            lifetime = max(blocks[mark].lifetime for mark in marks)
            self._ends[keys[place]] = now + SECONDS[lifetime]
        written = 0
        price = 0.0
        for mark in marks:
            if tokens[mark] >= SMALLEST:
                lifetime = blocks[mark].lifetime
                self._ends[keys[mark]] = now + SECONDS[lifetime]
                written = max(0, tokens[mark] - read)
                price = WRITE[lifetime]
        return Bill(tokens[-1] - read - written, read, written, price)


class OpenAICache:
    """The beginnings of all calls, each until it was not read for ten minutes."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._calls: list[tuple[Sequence[Block], float]] = []

    def bill(self, blocks: Sequence[Block], now: float) -> Bill:
        """Return what a call costs at a time in seconds, and keep it."""
        self._calls = [(call, end) for call, end in self._calls if end > now]
        alike = max((self._alike(call, blocks) for call, _ in self._calls), default=0)
        read = alike // STEP * STEP if alike >= SMALLEST else 0
        self._calls = [*self._calls[-MOST_CALLS:], (blocks, now + OPENAI_SECONDS)]
        tokens = sum(self._count(block.text) for block in blocks)
        return Bill(tokens - read, read)

    def _alike(self, before: Sequence[Block], after: Sequence[Block]) -> int:
        """Return the tokens that two calls begin with alike."""
        tokens = 0
        for old, new in zip(before, after, strict=False):
            if old.text != new.text:
                return tokens + self._count(common_beginning(old.text, new.text))
            tokens += self._count(new.text)
        return tokens


def common_beginning(one: str, other: str) -> str:
    """Return what both texts begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    end = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
    return one[:end]


def _keys(blocks: Sequence[Block]) -> list[str]:
    """Return for each block a hash of all up to it."""
    digest = hashlib.sha256()
    keys: list[str] = []
    for block in blocks:
        digest.update(f"{len(block.text)} {block.text}".encode())
        keys.append(digest.hexdigest())
    return keys
