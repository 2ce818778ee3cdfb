"""A model server on loopback that speaks Anthropic's Messages protocol, scripted like
`ModelServer`.

    with open_anthropic_server() as server:
        server.script(say("There is one."))
        model = server.claude()
        ...
        assert marks_of(server.requests[0].body) == ["system", "message"]
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_anthropic import ChatAnthropic
from pytest_httpserver import HTTPServer
from werkzeug import Request as HttpRequest
from werkzeug import Response

from tests.support.model_server import ChatRequest, Fault, ModelServer, QuickToStop, Reply

SIGNATURE = "c2lnbmF0dXJl"
"""Signature of every block of thinking; the client sends it back."""


def claude(base_url: str, model: str = "claude-test", **settings: Any) -> ChatAnthropic:
    """Return a client of a server, which may run in another process: see `AnthropicServer.claude`.

    `base_url`: ending in /v1.
    """
    defaults: dict[str, Any] = {
        "api_key": "sk-ant-test",
        "max_retries": 0,
        "timeout": 20,
        "base_url": base_url.removesuffix("/v1"),
    }
    return ChatAnthropic(model_name=model, **{**defaults, **settings})


class AnthropicServer(ModelServer):
    """The scripted server, under `/v1/messages` too."""

    def __init__(self, http: HTTPServer) -> None:
        super().__init__(http)
        http.expect_request("/v1/messages", method="POST").respond_with_handler(self._messages)

    def claude(self, model: str = "claude-test", **settings: Any) -> ChatAnthropic:
        """Return a client of this server that asks once, with a placeholder for a key."""
        return claude(self.base_url, model, **settings)

    def _messages(self, http: HttpRequest) -> Response:
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = ChatRequest(body=json.loads(http.get_data()), headers=headers)
        number = len(self.requests) + 1
        step = self._next(request)
        if isinstance(step, Fault):
            return Response(json.dumps(step.body), step.status, mimetype="application/json")
        model = str(request.body.get("model", ""))
        if request.streams:
            return Response(_stream(step, number, model), mimetype="text/event-stream")
        body = {**_head(step, number, model), "content": _blocks(step, number)}
        body |= {"stop_reason": _stop_reason(step), "usage": _usage(step)}
        return Response(json.dumps(body), mimetype="application/json")


@contextmanager
def open_anthropic_server() -> Iterator[AnthropicServer]:
    """Run a server on a free port of loopback until the block ends."""
    with QuickToStop(host="127.0.0.1", port=0, threaded=True) as http:
        yield AnthropicServer(http)


def marks_of(body: Mapping[str, Any]) -> list[str]:
    """Return where a request bears marks, in the order in which the provider reads it: "tool",
    "system", "message".
    """
    places = ["tool" for tool in body.get("tools") or [] if "cache_control" in tool]
    system = body.get("system")
    places += ["system" for block in _listed(system) if "cache_control" in block]
    for message in body["messages"]:
        places += ["message" for block in _listed(message["content"]) if "cache_control" in block]
    return places + ["request"] * ("cache_control" in body)


def _listed(content: object) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else []


def _head(reply: Reply, number: int, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
    }


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.input_tokens - reply.cache_read - reply.cache_written,
        "cache_read_input_tokens": reply.cache_read,
        "cache_creation_input_tokens": reply.cache_written,
        "output_tokens": reply.output_tokens,
    }


def _stop_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_use" if reply.tool_calls else "end_turn")


def _blocks(reply: Reply, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for i, tool_call in enumerate(reply.tool_calls):
        id_ = tool_call.id or f"toolu_{number}_{i}"
        arguments = json.loads(tool_call.arguments)
        blocks.append({"type": "tool_use", "id": id_, "name": tool_call.name, "input": arguments})
    return blocks


def _stream(reply: Reply, number: int, model: str) -> Iterator[bytes]:
    """Yield the events of an answer, each block whole."""
    usage = _usage(reply)
    first = {**usage, "output_tokens": 1}
    start = {**_head(reply, number, model), "content": [], "stop_reason": None, "usage": first}
    yield _event("message_start", message=start)
    for index, block in enumerate(_blocks(reply, number)):
        yield _event("content_block_start", index=index, content_block=_opened(block))
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    # The sums so far, as the real one sends them: the client reads them here alone.
    yield _event("message_delta", delta=delta, usage=usage)
    yield _event("message_stop")


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as a stream begins it, without its content."""
    if block["type"] == "tool_use":
        return {**block, "input": {}}
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


def _deltas(block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "tool_use":
        return [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    if block["type"] == "thinking":
        return [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": SIGNATURE},
        ]
    return [{"type": "text_delta", "text": block["text"]}]


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
