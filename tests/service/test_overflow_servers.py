"""Each server's overflow over real HTTP, through openai's client and LangChain: at once, while
streaming, and in a conversation.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from longtable.base.errors import ModelContextOverflowError
from longtable.graph import Context, Conversation, build_graph
from longtable.nodes.calling.provider_errors import is_overflow, learned_limit, provider_error
from tests.support.model_server import Fault, ModelServer, open_model_server, say
from tests.support.overflow_bodies import OTHERS, OVERFLOWS, Refusal

PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def http() -> Iterator[HTTPServer]:
    """Serve raw bytes: a proxy's answer is no JSON."""
    with HTTPServer(host="127.0.0.1", port=0, threaded=True) as server:
        yield server


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def model(http: HTTPServer) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-4o-mini",
        base_url=http.url_for("/v1"),
        api_key=SecretStr("sk-test"),
        max_retries=0,
        stream_usage=True,
        timeout=20,
    )


def invoked(model: ChatOpenAI) -> None:
    model.invoke("hi")


def streamed(model: ChatOpenAI) -> None:
    list(model.stream("hi"))


def streamed_async(model: ChatOpenAI) -> None:
    async def read() -> None:
        async for _ in model.astream("hi"):
            pass

    asyncio.run(read())


def shape(refusal: Refusal) -> tuple[object, ...]:
    """Return what a client's handling of a body depends on, beside its words: status and fields."""
    inner = refusal.body.get("error") if isinstance(refusal.body, dict) else None
    return refusal.status, *(
        tuple(sorted(each)) if isinstance(each, dict) else type(each)
        for each in (refusal.body, inner)
    )


SHAPES = list({shape(each): each for each in reversed(OVERFLOWS)}.values())
"""One server for each shape of body. The words of them all are read in
`tests/nodes/calling/test_overflow.py`, and here by one way.
"""


def raised(
    http: HTTPServer,
    way: Callable[[ChatOpenAI], None],
    data: str,
    status: int,
    content_type: str = "application/json",
) -> Exception:
    http.clear()
    http.expect_request(PATH, method="POST").respond_with_data(
        data, status, content_type=content_type
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011  which class a client raises is what is being read
        way(model(http))
    assert isinstance(caught.value, Exception)
    return caught.value


def as_sent(refusal: Refusal) -> tuple[str, int, str]:
    if isinstance(refusal.body, str):
        return refusal.body, refusal.status, "text/html"
    return json.dumps(refusal.body, ensure_ascii=False), refusal.status, "application/json"


@pytest.mark.parametrize(
    ("refusal", "way"),
    [
        *((each, invoked) for each in OVERFLOWS),
        *((each, way) for each in SHAPES for way in (streamed, streamed_async)),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_an_overflow_is_recognised_and_its_limit_learned(
    http: HTTPServer, refusal: Refusal, way: Callable[[ChatOpenAI], None]
) -> None:
    error = raised(http, way, *as_sent(refusal))
    assert isinstance(provider_error(error), ModelContextOverflowError)
    assert learned_limit(error) == refusal.limit


@pytest.mark.parametrize("refusal", OTHERS, ids=str)
def test_what_merely_sounds_like_it_is_none(http: HTTPServer, refusal: Refusal) -> None:
    error = raised(http, invoked, *as_sent(refusal))
    known = provider_error(error)
    assert known is not None
    assert not isinstance(known, ModelContextOverflowError)


MIDSTREAM = [each for each in SHAPES if isinstance(each.body, dict) and each.status != 413]


@pytest.mark.parametrize("way", [streamed, streamed_async])
@pytest.mark.parametrize("refusal", MIDSTREAM, ids=str)
def test_an_overflow_that_ends_a_running_stream_is_recognised(
    http: HTTPServer, refusal: Refusal, way: Callable[[ChatOpenAI], None]
) -> None:
    """vLLM and llama.cpp send the error as an event once the stream, with status 200, has begun."""
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first = {
        **chunk,
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": "The"}, "finish_reason": None}
        ],
    }
    fault = refusal.body if "error" in refusal.body else {"error": refusal.body}
    events = "".join(
        f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in (first, fault)
    )
    error = raised(http, way, events, 200, "text/event-stream")
    assert isinstance(provider_error(error), ModelContextOverflowError), repr(error)
    assert learned_limit(error) == refusal.limit


@pytest.mark.parametrize(
    "refusal",
    [each for each in OVERFLOWS if each.server in {"openrouter", "openai", "vllm"}],
    ids=str,
)
def test_an_overflow_sent_with_status_200_is_recognised(http: HTTPServer, refusal: Refusal) -> None:
    error = raised(http, invoked, json.dumps(refusal.body), 200)
    assert is_overflow(error)
    assert learned_limit(error) == refusal.limit


def talk(server: ModelServer, limit: int = 20_000) -> Conversation:
    graph = build_graph(model=server.chat_model()).compile(checkpointer=InMemorySaver())
    conversation = Conversation(graph, "t", context=Context(model_limit=limit))
    server.script(*[say(f"Answer {i}. " + "It was a long day. " * 60) for i in range(6)])
    for i in range(6):
        conversation.ask(f"Question {i}? " + "Tell me all about it. " * 40)
    return conversation


@pytest.mark.parametrize(
    "refusal", [each for each in SHAPES if isinstance(each.body, dict)], ids=str
)
def test_a_turn_survives_each_servers_overflow_with_a_smaller_request(
    server: ModelServer, refusal: Refusal
) -> None:
    conversation = talk(server)
    server.script(Fault(status=refusal.status, body=refusal.body))
    before = len(server.requests)
    server.always(say("Done."))
    assert conversation.ask("And now?").text == "Done."
    refused, last = server.requests[before], server.requests[-1]
    assert size(last.messages) < size(refused.messages)
    assert last.messages[-1]["content"] == "And now?"
    assert len(conversation.history()) == 14


def size(messages: list[dict[str, Any]]) -> int:
    return len(json.dumps(messages))


def test_a_server_that_always_refuses_is_asked_a_bounded_number_of_times(
    server: ModelServer,
) -> None:
    conversation = talk(server)
    before = len(server.requests)
    server.always(Fault(status=OVERFLOWS[0].status, body=OVERFLOWS[0].body))
    with pytest.raises(ModelContextOverflowError):
        conversation.ask("And now?")
    assert len(server.requests) - before <= 12
