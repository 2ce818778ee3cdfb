"""Model servers on loopback that play a conversation's assistant and bill each call."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel

from benchmarks.costs.caches import (
    Bill,
    ClaudeCache,
    Count,
    OpenAICache,
    claude_blocks,
    openai_blocks,
)
from benchmarks.memories import worst, worst_fresh
from tests.support.anthropic_server import open_anthropic_server
from tests.support.model_server import (
    ChatRequest,
    Fault,
    Reply,
    call,
    error,
    open_model_server,
)

Provider = Literal["claude", "openai"]
CALL_SECONDS = 6.0
"""Between a call and the next within a turn."""


@dataclass
class Endpoint:
    """One conversation as its provider sees it. `now`: simulated time in seconds."""

    thread: worst.Thread
    provider: Provider
    count: Count
    allowed: int
    """Tokens of a summary."""
    now: float = 0.0
    turn: worst.Turn = field(default_factory=lambda: worst.Turn("", "", ""))
    remembers: str = ""
    """Words of the user that the model pins in this turn."""
    calls: list[Bill] = field(default_factory=list)
    """Of the conversation's model."""
    summaries: list[Bill] = field(default_factory=list)
    summary_written: int = 0
    """Tokens of all summaries."""
    view: str = ""
    """What the newest call said to the model."""
    marked_summaries: int = 0
    """Summary calls that bear a mark or a key."""
    _cache: ClaudeCache | OpenAICache | None = None
    _steps: list[Reply] = field(default_factory=list)

    def begin(self, turn: worst.Turn, number: int, remembers: str = "") -> None:
        """Play this turn from now on."""
        self.turn = turn
        self._steps = [Reply(text=turn.answer)]
        if turn.result:
            self._steps.insert(0, call("look_up", number=number))
        if remembers:
            self._steps.insert(0, call("remember", quote=remembers))

    def answer(self, request: ChatRequest) -> Reply | Fault:
        """Bill a request and answer it."""
        self.now += CALL_SECONDS
        try:
            bill = self._bill(request.body)
        except ValueError as refusal:
            return error(400, str(refusal))
        if not request.body.get("tools"):
            return self._summary(request.body, bill)
        self.calls.append(bill)
        self.view = "\n".join(said(request.body))
        step = self._steps.pop(0) if self._steps else Reply(text=self.turn.answer)
        return self._with_usage(step, bill)

    def _summary(self, body: dict[str, Any], bill: Bill) -> Reply:
        prompt = "\n".join(said(body))
        number = len(self.summaries)
        text = worst_fresh.summarise(
            self.thread, "honest", prompt, self.allowed, number, self.count
        )
        self.summaries.append(bill)
        self.summary_written += self.count(text)
        self.marked_summaries += '"cache_control"' in json.dumps(body) or "prompt_cache_key" in body
        return self._with_usage(Reply(text=text), bill)

    def _with_usage(self, reply: Reply, bill: Bill) -> Reply:
        written = self.count(reply.text) + sum(self.count(c.arguments) for c in reply.tool_calls)
        return Reply(
            text=reply.text,
            tool_calls=reply.tool_calls,
            input_tokens=bill.tokens,
            output_tokens=written,
            cache_read=bill.read,
            cache_written=bill.written,
        )

    def _bill(self, body: dict[str, Any]) -> Bill:
        if self.provider == "claude":
            self._cache = self._cache or ClaudeCache(self.count)
            return self._cache.bill(claude_blocks(body), self.now)
        self._cache = self._cache or OpenAICache(self.count)
        return self._cache.bill(openai_blocks(body), self.now)


def said(body: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a request of either protocol, system prompt and results included."""
    yield from _texts(body.get("system"))
    for message in body["messages"]:
        yield from _texts(message.get("content"))


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            yield from _texts(part.get("text") or part.get("content"))


@contextmanager
def served(endpoint: Endpoint, limit: int) -> Iterator[BaseChatModel]:
    """Serve an endpoint, and give a client of it that has this input limit in tokens."""
    profile = {"max_input_tokens": limit}
    if endpoint.provider == "claude":
        with open_anthropic_server() as server:
            server.always(partial(_only_newest, server.requests, endpoint))
            yield server.claude(profile=profile)
    else:
        with open_model_server() as server:
            server.always(partial(_only_newest, server.requests, endpoint))
            yield server.chat_model(profile=profile)


def _only_newest(
    requests: list[ChatRequest], endpoint: Endpoint, request: ChatRequest
) -> Reply | Fault:
    requests.clear()  # a conversation's requests together have some hundred megabytes
    return endpoint.answer(request)
