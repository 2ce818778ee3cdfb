"""A server that answers, but does not speak the OpenAI protocol: over real HTTP, sync and async,
streaming and not.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Response

from longtable.base.errors import (
    ProviderError,
    ProviderProtocolError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.graph import Context, Conversation, build_graph

PAGE = "<!doctype html><html><body>Welcome</body></html>"
JSON, EVENTS, HTML = "application/json", "text/event-stream", "text/html"
DONE = "data: [DONE]\n\n"
CONTEXT = Context(model_limit=8_000)


@pytest.fixture(scope="module")
def http() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.1", port=0, threaded=True) as running:
        yield running


def conversation(http: HTTPServer, *, streaming: bool) -> Conversation:
    model = ChatOpenAI(
        model="gpt-4o-mini",
        base_url=http.url_for("/v1"),
        api_key=SecretStr("sk-test"),
        max_retries=0,
        timeout=20,
        disable_streaming=not streaming,
    )
    return Conversation(
        build_graph(model=model).compile(checkpointer=InMemorySaver()), "t", context=CONTEXT
    )


def ask(talk: Conversation) -> None:
    talk.ask("hello")


def aask(talk: Conversation) -> None:
    asyncio.run(talk.aask("hello"))


def answering(http: HTTPServer, body: str | bytes, kind: str, status: int = 200) -> None:
    http.clear()
    http.expect_request("/v1/chat/completions").respond_with_handler(
        lambda _: Response(body, status, content_type=kind)
    )


WHOLE: list[tuple[str | bytes, str]] = [
    (PAGE, HTML),
    (PAGE, JSON),
    ("", JSON),
    ("{}", JSON),
    ("null", JSON),
    ("[1, 2]", JSON),
    ('"hello"', JSON),
    (b'{"choices": "\xff\xfe"}', JSON),
    ('{"choices": null}', JSON),
    ('{"choices": []}', JSON),
    ('{"choices": "no"}', JSON),
    ('{"choices": [1]}', JSON),
    ('{"choices": [{"index": 0}]}', JSON),
    ('{"choices": [{"index": 0, "message": null}]}', JSON),
    ('{"choices": [{"index": 0, "message": {"role": "assistant", "content": 5}}]}', JSON),
    ('{"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [5]}}]}', JSON),
    (
        (
            '{"usage": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content":'
            ' "hi"}}]}'
        ),
        JSON,
    ),
    ('{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}', JSON),
]
STREAMED: list[tuple[str | bytes, str]] = [
    (PAGE, HTML),
    (PAGE, EVENTS),
    ("", EVENTS),
    ("{}", JSON),
    (DONE, EVENTS),
    ('data: {"choices": [{"delta"\n\n', EVENTS),
    (b'data: {"choices": "\xff\xfe"}\n\n', EVENTS),
    (f"data: 5\n\n{DONE}", EVENTS),
    (f"data: null\n\n{DONE}", EVENTS),
    (f'data: {{"choices": [5]}}\n\n{DONE}', EVENTS),
    (f'data: {{"choices": [{{"index": 0, "delta": "hi"}}]}}\n\n{DONE}', EVENTS),
    (
        (
            'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content":'
            f" 5}}}}]}}\n\n{DONE}"
        ),
        EVENTS,
    ),
    (
        (
            'data: {"usage": "x", "choices": [{"index": 0, "delta": {"content":'
            f' "hi"}}}}]}}\n\n{DONE}'
        ),
        EVENTS,
    ),
]


# Of the client, before it gives up.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("run", [ask, aask])
@pytest.mark.parametrize(
    ("streaming", "body", "kind"),
    [*((False, *answer) for answer in WHOLE), *((True, *answer) for answer in STREAMED)],
)
def test_an_answer_of_another_protocol_is_a_providers_error(
    http: HTTPServer,
    run: Callable[[Conversation], None],
    streaming: bool,
    body: str | bytes,
    kind: str,
) -> None:
    answering(http, body, kind)
    talk = conversation(http, streaming=streaming)
    with pytest.raises(
        ProviderProtocolError, match=r"not of the OpenAI protocol .* is /v1 missing"
    ):
        run(talk)


def test_the_turn_waits_and_can_be_resumed_once_the_server_is_right(http: HTTPServer) -> None:
    answering(http, PAGE, HTML)
    talk = conversation(http, streaming=True)
    with pytest.raises(ProviderProtocolError) as caught:
        talk.ask("hello")
    assert caught.value.user_text("en") != caught.value.user_text("zh")
    assert talk.pending()
    answering(
        http,
        'data: {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'
        + DONE,
        EVENTS,
    )
    assert [event["text"] for event in talk.stream() if event["type"] == "answer"] == ["hi"]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_page_that_says_not_found_asks_for_the_url(http: HTTPServer, streaming: bool) -> None:
    answering(http, PAGE, HTML, status=404)
    with pytest.raises(ProviderRefusedError, match=r"HTTP 404\): .*is /v1 missing") as caught:
        conversation(http, streaming=streaming).ask("hello")
    assert "<" not in str(caught.value)


@pytest.mark.parametrize(
    "error", ['"there is no such model"', '{"message": "there is no such model"}']
)
def test_an_error_sent_with_status_200_is_told_in_the_providers_words(
    http: HTTPServer, error: str
) -> None:
    answering(http, f'{{"error": {error}}}', JSON)
    with pytest.raises(ProviderRefusedError, match="there is no such model"):
        conversation(http, streaming=False).ask("hello")


@pytest.mark.parametrize("run", [ask, aask])
@pytest.mark.parametrize(
    "url", ["http://[bad", "http://127.0.0.1:99999", "http://256.1.1.1/v1", "http://a..b/v1"]
)
def test_a_url_that_no_client_can_use_is_a_providers_error_too(
    run: Callable[[Conversation], None], url: str
) -> None:
    settings: dict[str, Any] = {
        "base_url": url,
        "api_key": SecretStr("k"),
        "max_retries": 0,
        "timeout": 5,
    }
    try:
        model = ChatOpenAI(model="gpt-4o-mini", **settings)
    except Exception:  # the client refuses some when it is made: the caller's to see
        return
    talk = Conversation(
        build_graph(model=model).compile(checkpointer=InMemorySaver()), "t", context=CONTEXT
    )
    with pytest.raises(ProviderError) as caught:
        run(talk)
    assert isinstance(caught.value, ProviderUnavailableError)
