"""No error repeats a secret: every class of graph/errors.py, every way a provider fails over HTTP, every tool's failure."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import ConfigError, LongtableError, ProviderError
from longtable.base.redaction import redacted
from longtable.graph import Context, Conversation, Database, RateLimit, build_graph, open_persistence
from tests.support import model_server
from tests.support.errors import CLASSES, HOSTILE, INSIDE, KEY, PEM, SECRETS, made
from tests.support.model_server import Fault, ModelServer, Reply, open_model_server, say


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_error_repeats_a_secret_and_a_person_reads_nothing_from_inside(cls: type[LongtableError]) -> None:
    error = made(cls)
    assert not [secret for secret in SECRETS if secret in str(error)]
    assert not [secret for secret in SECRETS if secret in repr(error)]
    for language in ("en", "zh", "fr"):
        said = error.user_text(language)
        assert not [inside for inside in INSIDE if inside in said]
        assert 3 < len(said) < 200
    assert error.user_text("zh") != error.user_text("en")
    assert error.code


FAULTS: dict[str, Reply | Fault] = {
    **{
        f"http {status}": model_server.error(status, HOSTILE, code=HOSTILE)
        for status in (400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529)
    },
    "bare string": Fault(status=400, body={"error": HOSTILE}),
    "flat": Fault(status=400, body={"message": HOSTILE, "detail": HOSTILE}),
    "overflow": model_server.error(400, f"maximum context length is 8192 tokens. {HOSTILE}", code="context_length_exceeded"),
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
def test_no_failure_of_a_provider_tells_a_secret(server: ModelServer, name: str, streamed: bool) -> None:
    server.always(FAULTS[name])
    model = server.chat_model(disable_streaming=not streamed, api_key=KEY)
    graph = build_graph(model=model).compile(checkpointer=InMemorySaver())
    events: list[Any] = []
    talk = Conversation(graph, "t", context=Context(model_limit=16_000))
    with pytest.raises(ProviderError) as caught:
        events.extend(talk.stream("Hi"))
    error = caught.value
    told = [str(error), repr(error), *error.args, json.dumps(events, default=str), repr(graph.get_state(talk.config).values)]
    assert not [secret for secret in SECRETS for text in told if secret in str(text)]
    for language in ("en", "zh"):
        assert not [inside for inside in INSIDE if inside in error.user_text(language)]


def test_no_failure_of_a_tool_tells_a_secret(server: ModelServer) -> None:
    @tool
    def look() -> str:
        """Look."""
        raise RuntimeError(HOSTILE)

    server.script(model_server.call("look"), say("It failed."))
    graph = build_graph(model=server.chat_model(), tools=[look]).compile(checkpointer=InMemorySaver())
    talk = Conversation(graph, "t", context=Context(model_limit=16_000))
    events = list(talk.stream("Hi"))
    (failed,) = [event for event in events if event["type"] == "tool_finished"]
    assert "RuntimeError" in failed["error"]
    told = json.dumps(events, default=str) + repr(talk.history()) + json.dumps(server.requests[-1].body)
    assert not [secret for secret in SECRETS if secret in told]


@pytest.mark.parametrize(
    "told",
    [
        "connection to postgresql://ann:hun@TAIL@db:5432/shop failed",
        'invalid URI: "postgresql://ann:first TAIL@db/shop"',
        "redis://:TAIL@127.0.0.1:6379/0",
        "https://TAIL@git.example/x",
        "host=db password='first TAIL' dbname=x",
        "password = TAIL",
        "PGPASSWORD=TAIL OPENAI_API_KEY=TAIL LONGTABLE_STORE_KEY=TAIL aws_secret_access_key=TAIL client_secret=TAIL",
        "x-api-key: TAIL",
        "{'x-api-key': 'TAIL', \"refresh_token\": \"TAIL\"}",
        "Incorrect API key provided: TAIL. You can find it",
        "https://api.example/v1?key=TAIL&x=1 https://blob.example/c?sv=1&sig=TAIL",
        "github_pat_TAIL glpat-TAIL xapp-1-TAIL gsk_TAIL sk_live_TAIL",
        f"-----{PEM}----- MIIE TAIL -----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_are_told_by_the_forms_they_come_in(told: str) -> None:
    assert "9f8e7d6c5b4a" not in redacted(told.replace("TAIL", "9f8e7d6c5b4a"))


@pytest.mark.parametrize("unit", ["://", "a:", "a-", "_", "api_key: ", "eyJ", f"-----{PEM}-----", "secret "])
def test_a_hostile_text_is_read_in_linear_time(unit: str) -> None:
    def seconds(length: int) -> float:
        started = time.process_time()
        redacted(unit * (length // len(unit)))
        return time.process_time() - started

    seconds(1_000)
    assert seconds(80_000) < 16 * max(seconds(10_000), 0.004)  # eight times the text; quadratic would be 64


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hun@9f8e7d6c5b4a@127.0.0.1:1/shop",  # libpq takes what follows the first @ for the host, and says it
        "postgresql://ann:first 9f8e7d6c5b4a@127.0.0.1:1/shop",
        "postgresql://ann:9f8e7d6c5b4a%zz@127.0.0.1:1/shop",
        "postgresql://ann:9f8e7d6c5b4a@127.0.0.1:1/shop?nonsense=1",
    ],
)
@pytest.mark.parametrize("opened", [Database.open, lambda url: open_persistence(url).__enter__()], ids=["database", "store"])
def test_a_url_that_cannot_be_read_is_told_without_its_password(opened: Callable[[str], Any], url: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        opened(url)
    assert "9f8e7d6c5b4a" not in str(caught.value)
    assert caught.value.__cause__ is None  # a log would show it
    assert "9f8e7d6c5b4a" not in repr(RateLimit(storage=url))


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096, token=5",
        "api_key: Field required",
        "SELECT token FROM password WHERE basic = 'x'",
        "the key of orders is order_id",
        "http://127.0.0.1:8000/v1",
        "ann@example.org",
        "sk-7",
        "write postgresql://user:password@host:5432/database",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text
