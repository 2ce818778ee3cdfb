"""No failure repeats a secret: every way a provider fails over HTTP, every tool's failure, every
address.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import ConfigError, ProviderError
from longtable.graph import Context, Conversation, Database, build_graph, open_persistence
from tests.support import model_server
from tests.support.errors import HOSTILE, INSIDE, KEY, SECRETS
from tests.support.model_server import Fault, ModelServer, Reply, open_model_server, say

FAULTS: dict[str, Reply | Fault] = {
    **{
        f"http {status}": model_server.error(status, HOSTILE, code=HOSTILE)
        for status in (400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529)
    },
    "bare string": Fault(status=400, body={"error": HOSTILE}),
    "flat": Fault(status=400, body={"message": HOSTILE, "detail": HOSTILE}),
    "overflow": model_server.error(
        400, f"maximum context length is 8192 tokens. {HOSTILE}", code="context_length_exceeded"
    ),
    "error with 200": Fault(status=200, body={"error": {"message": HOSTILE}}),
    "no answer": Fault(status=200, body={"choices": None, "note": HOSTILE}),
    "error in the stream": Reply(text="The answer is long.", breaks="error"),
    "broken off": Reply(text="The answer is long.", breaks="drop"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", FAULTS)
def test_no_failure_of_a_provider_tells_a_secret(
    server: ModelServer, name: str, streamed: bool
) -> None:
    server.always(FAULTS[name])
    model = server.chat_model(disable_streaming=not streamed, api_key=KEY)
    graph = build_graph(model=model).compile(checkpointer=InMemorySaver())
    events: list[Any] = []
    talk = Conversation(graph, "t", context=Context(model_limit=16_000))
    with pytest.raises(ProviderError) as caught:
        events.extend(talk.stream("Hi"))
    error = caught.value
    told = [
        str(error),
        repr(error),
        *error.args,
        json.dumps(events, default=str),
        repr(graph.get_state(talk.config).values),
    ]
    assert not [secret for secret in SECRETS for text in told if secret in str(text)]
    for language in ("en", "zh"):
        assert not [inside for inside in INSIDE if inside in error.user_text(language)]


def test_no_failure_of_a_tool_tells_a_secret(server: ModelServer) -> None:
    @tool
    def look() -> str:
        """Look."""
        raise RuntimeError(HOSTILE)

    server.script(model_server.call("look"), say("It failed."))
    graph = build_graph(model=server.chat_model(), tools=[look]).compile(
        checkpointer=InMemorySaver()
    )
    talk = Conversation(graph, "t", context=Context(model_limit=16_000))
    events = list(talk.stream("Hi"))
    (failed,) = [event for event in events if event["type"] == "tool_finished"]
    assert "RuntimeError" in failed["error"]
    told = (
        json.dumps(events, default=str)
        + repr(talk.history())
        + json.dumps(server.requests[-1].body)
    )
    assert not [secret for secret in SECRETS if secret in told]


@pytest.mark.parametrize(
    "url",
    [
        # Libpq takes what follows the first @ for the host, and says it.
        "postgresql://ann:hun@9f8e7d6c5b4a@127.0.0.1:1/shop",
        "postgresql://ann:first 9f8e7d6c5b4a@127.0.0.1:1/shop",
        "postgresql://ann:9f8e7d6c5b4a%zz@127.0.0.1:1/shop",
        "postgresql://ann:9f8e7d6c5b4a@127.0.0.1:1/shop?nonsense=1",
    ],
)
@pytest.mark.parametrize(
    "opened",
    [Database.open, lambda url: open_persistence(url).__enter__()],
    ids=["database", "store"],
)
def test_a_url_that_cannot_be_read_is_told_without_its_password(
    opened: Callable[[str], Any], url: str
) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        opened(url)
    assert "9f8e7d6c5b4a" not in str(caught.value)
    assert caught.value.__cause__ is None  # a log would show it
