"""A model server on loopback: real HTTP, the OpenAI chat-completions protocol, scripted answer by
answer.

    with open_model_server() as server:
        server.script(call("run_sql", sql="SELECT 1"), say("There is one."))
        model = server.chat_model()
        ...
        assert server.requests[1].messages[-1]["role"] == "tool"

A step is a `Reply`, a `Fault`, or a function from the request to one of them. A request beyond the
script is answered with 500 and kept in `unexpected`. The client of openai asks again after 429 and
5xx: use `always`, or a model with `max_retries=0` (what `chat_model` gives).
"""

import itertools
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request as HttpRequest
from werkzeug import Response

Breaks = Literal["", "drop", "truncate", "error", "garbage"]
OverflowShape = Literal["openai", "llama_cpp", "vllm", "vllm_flat"]

# A held answer goes on by itself after this, so that no server thread lives for ever.
HOLD_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One tool call of an answer; `arguments` is the text as sent, so it may be broken JSON."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer of the model. A stream sends `text` in `pieces` parts, and each call's arguments
    too.
    """

    text: str = ""
    reasoning: str = ""
    """Sent as `reasoning_content`, before the text."""
    tool_calls: tuple[ToolCall, ...] = ()
    pieces: int = 3
    input_tokens: int = 100
    output_tokens: int = 10
    cache_read: int = 0
    """Tokens of the input that the provider read from its cache."""
    cache_written: int = 0
    """Tokens of the input that Claude wrote to its cache."""
    finish_reason: str = ""
    breaks: Breaks = ""
    """After half of the parts: `drop` the connection, end without finish (`truncate`), send an
    `error` event, or `garbage` for JSON.
    """
    hold: threading.Event | None = None
    """Wait for this after the first part; tests cancel here."""
    first_after: float = 0.0
    """Seconds from the request to the first part of a stream."""
    pace: float = 0.0
    """Seconds from a part to the next. Times count from the request, so that they do not add up."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An HTTP error with a JSON body."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What a client sent."""

    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.messages]

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    @property
    def is_for_summary(self) -> bool:
        """Whether it asks for the memory of a conversation, not for an answer."""
        return "<memory-so-far>" in str(self.messages[-1]["content"])

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))


Step = Reply | Fault | Callable[[ChatRequest], Reply | Fault]


def say(text: str, **settings: Any) -> Reply:
    """Return a plain answer."""
    return Reply(text=text, **settings)


def answer_or_summary(
    request: ChatRequest, *, answer: str = "word " * 150, heading: str = "Facts and findings"
) -> Reply:
    """Return an answer, or a summary of one line where that is asked for."""
    if request.is_for_summary:
        return say(
            f"## {heading}\n- the user asked for words [m1-m2]",
            input_tokens=5_100,
            output_tokens=600,
        )
    return say(answer)


def call(name: str, **arguments: Any) -> Reply:
    """Return an answer that calls one tool."""
    return Reply(
        tool_calls=(ToolCall(name=name, arguments=json.dumps(arguments, ensure_ascii=False)),)
    )


def calls(*tool_calls: ToolCall, **settings: Any) -> Reply:
    """Return an answer with several calls, or with arguments that are no JSON."""
    return Reply(tool_calls=tool_calls, **settings)


def empty() -> Reply:
    """Return an answer without text and without calls."""
    return Reply(text="", output_tokens=0)


def error(status: int, message: str, **fields: Any) -> Fault:
    """Return an error in OpenAI's shape."""
    return Fault(
        status=status,
        body={
            "error": {"message": message, "type": "error", "param": None, "code": None, **fields}
        },
    )


def unauthorized(key: str = "sk-wrong") -> Fault:
    """Return 401; like the real one, it repeats the key, which must reach nobody."""
    return error(
        401,
        f"Incorrect API key provided: {key}.",
        type="invalid_request_error",
        code="invalid_api_key",
    )


def rate_limited(retry_after: float | None = 7) -> Fault:
    """Return 429 with `retry-after` in seconds, or without it."""
    fault = error(
        429, "Rate limit reached for requests.", type="requests", code="rate_limit_exceeded"
    )
    return (
        fault
        if retry_after is None
        else replace(fault, headers={"retry-after": f"{retry_after:g}"})
    )


def no_credit(status: int = 429) -> Fault:
    """Return what an empty account is told: OpenAI's 429, or another's 402."""
    if status == 402:
        return error(
            402, "Insufficient Balance", type="unknown_error", code="invalid_request_error"
        )
    return error(
        429,
        "You exceeded your current quota.",
        type="insufficient_quota",
        code="insufficient_quota",
    )


def server_error(status: int = 500) -> Fault:
    """Return a 5xx."""
    return error(
        status, "The server had an error while processing your request.", type="server_error"
    )


def context_overflow(
    shape: OverflowShape = "openai", *, need: int = 9_000, limit: int = 8_192
) -> Fault:
    """Return a 400 that says the request is too long, as OpenAI, llama.cpp or vLLM word it."""
    most = f"This model's maximum context length is {limit} tokens."
    if shape == "openai":
        text = (
            f"{most} However, your messages resulted in {need} tokens. Please reduce the length of"
            " the messages."
        )
        return error(
            400,
            text,
            type="invalid_request_error",
            param="messages",
            code="context_length_exceeded",
        )
    if shape == "llama_cpp":
        text = (
            f"request ({need} tokens) exceeds the available context size ({limit} tokens), try"
            " increasing it"
        )
        sizes = {"n_prompt_tokens": need, "n_ctx": limit}
        return error(400, text, type="exceed_context_size_error", code=400, **sizes)
    text = (
        f"{most} However, you requested {need} tokens in the messages. Please reduce the length of"
        " the messages."
    )
    nested = error(400, text, type="BadRequestError", code=400)
    return (
        nested
        if shape == "vllm"
        else replace(nested, body={"object": "error", **nested.body["error"]})
    )


def client_of(base_url: str, model: str = "gpt-4o-mini", **settings: Any) -> ChatOpenAI:
    """Return a client of a server, which may run in another process: see
    `ModelServer.chat_model`.
    """
    defaults: dict[str, Any] = {
        "api_key": SecretStr("sk-test"),
        "max_retries": 0,
        "stream_usage": True,
        "timeout": 20,
    }
    return ChatOpenAI(model=model, base_url=base_url, **{**defaults, **settings})


class ModelServer:
    """The scripted server. `requests` keeps what came in, in order."""

    def __init__(self, http: HTTPServer) -> None:
        self._http = http
        self._lock = threading.Lock()
        self._steps: deque[Step] = deque()
        self._always: Step | None = None
        self._numbers = itertools.count(1)
        self.requests: list[ChatRequest] = []
        self.unexpected: list[ChatRequest] = []
        http.expect_request("/v1/chat/completions", method="POST").respond_with_handler(
            self._handle
        )

    @property
    def base_url(self) -> str:
        """The URL for `base_url=`, ending in /v1."""
        return str(self._http.url_for("/v1"))

    def script(self, *steps: Step) -> None:
        """Append these answers, one a request."""
        with self._lock:
            self._steps.extend(steps)

    def always(self, step: Step) -> None:
        """Answer every request beyond the script with this."""
        with self._lock:
            self._always = step

    def chat_model(self, model: str = "gpt-4o-mini", **settings: Any) -> ChatOpenAI:
        """Return a client of this server that asks once, streams usage, and has a placeholder for a
        key.
        """
        return client_of(self.base_url, model, **settings)

    def _next(self, request: ChatRequest) -> Reply | Fault:
        with self._lock:
            self.requests.append(request)
            step = self._steps.popleft() if self._steps else self._always
            if step is None:
                self.unexpected.append(request)
                return error(500, f"request {len(self.requests)} is beyond the script")
        return step(request) if callable(step) else step

    def _handle(self, http: HttpRequest) -> Response:
        request = ChatRequest(
            body=json.loads(http.get_data()),
            headers={name.lower(): value for name, value in http.headers.items()},
        )
        number = next(self._numbers)
        step = self._next(request)
        if isinstance(step, Fault):
            return Response(
                json.dumps(step.body), step.status, dict(step.headers), mimetype="application/json"
            )
        head = {
            "id": f"chatcmpl-{number}",
            "created": 1_700_000_000,
            "model": request.body.get("model", ""),
        }
        if not request.streams:
            if step.breaks:
                _drop(http)
            return Response(
                json.dumps({**head, **_completion(step, number)}), mimetype="application/json"
            )
        with_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
        return Response(
            _stream(head, step, number, with_usage=with_usage, http=http),
            mimetype="text/event-stream",
        )


class QuickToStop(HTTPServer):
    """The library's server looks every 0.5 s whether to stop: half a second a test."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(poll_interval=0.01)


@contextmanager
def open_model_server() -> Iterator[ModelServer]:
    """Run a server on a free port of loopback until the block ends."""
    with QuickToStop(host="127.0.0.1", port=0, threaded=True) as http:
        yield ModelServer(http)


def _usage(reply: Reply) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": reply.cache_read}}
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        **(details if reply.cache_read else {}),
    }


def _finish(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _call_id(tool_call: ToolCall, number: int, index: int) -> str:
    return tool_call.id or f"call_{number}_{index}"


def _completion(reply: Reply, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": reply.text or (None if reply.tool_calls else ""),
    }
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": _call_id(tool_call, number, i),
                "type": "function",
                "function": {"name": tool_call.name, "arguments": tool_call.arguments},
            }
            for i, tool_call in enumerate(reply.tool_calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return {"object": "chat.completion", "choices": [choice], "usage": _usage(reply)}


def parts_of(text: str, pieces: int) -> list[str]:
    """Cut a text into at most `pieces` parts of nearly equal length."""
    if not text:
        return []
    step = max(1, -(-len(text) // max(1, pieces)))
    return [text[i : i + step] for i in range(0, len(text), step)]


def _deltas(reply: Reply, number: int) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [
        {"content": None, "reasoning_content": part}
        for part in parts_of(reply.reasoning, reply.pieces)
    ]
    deltas += [{"content": part} for part in parts_of(reply.text, reply.pieces)]
    for i, tool_call in enumerate(reply.tool_calls):
        head = {"name": tool_call.name, "arguments": ""}
        deltas.append(
            {
                "tool_calls": [
                    {
                        "index": i,
                        "id": _call_id(tool_call, number, i),
                        "type": "function",
                        "function": head,
                    }
                ]
            }
        )
        deltas += [
            {"tool_calls": [{"index": i, "function": {"arguments": part}}]}
            for part in parts_of(tool_call.arguments, reply.pieces)
        ]
    return deltas


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _stream(
    head: Mapping[str, Any], reply: Reply, number: int, *, with_usage: bool, http: HttpRequest
) -> Iterator[bytes]:
    begun = time.monotonic()
    head = {**head, "object": "chat.completion.chunk"}
    deltas: Sequence[dict[str, Any]] = _deltas(reply, number)
    if reply.breaks:
        deltas = deltas[: max(2, len(deltas) // 2 + 1)]
    for i, delta in enumerate(deltas):
        due = begun + reply.first_after + reply.pace * i
        time.sleep(max(0.0, due - time.monotonic()))
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if i == 1 and reply.hold is not None:
            reply.hold.wait(HOLD_SECONDS)
    if reply.breaks == "drop":
        _drop(http)
    if reply.breaks == "error":
        yield _event(
            {"error": {"message": "The engine died.", "type": "server_error", "code": 500}}
        )
    if reply.breaks == "garbage":
        yield b"data: {half of an ev\n\n"
    if reply.breaks:
        return
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
    if with_usage:
        yield _event({**head, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def _drop(http: HttpRequest) -> None:
    """Close the connection under the answer: the client sees a body that never ended."""
    connection: socket.socket = http.environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError("dropped by the script")
