"""What a provider's exception means, by table."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessageChunk

from longtable.base.errors import (
    LongtableError,
    ProviderAuthError,
    ProviderRateLimitedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.nodes.calling.provider_errors import provider_error, with_usage
from tests.support.model_server import ModelServer, open_model_server, say


class StatusError(Exception):
    """Looks like the errors of openai, anthropic and other clients."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        code: object = None,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status_code, self.code, self.body = status, code, body
        self.response = type("Response", (), {"headers": headers or {}, "status_code": status})()


class APIConnectionError(Exception):
    """Named as openai's."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StatusError(401), ProviderAuthError),
        (StatusError(403), ProviderAuthError),
        (StatusError(429), ProviderRateLimitedError),
        (StatusError(500), ProviderUnavailableError),
        (StatusError(529), ProviderUnavailableError),
        (StatusError(404, "no such model"), ProviderRefusedError),
        (APIConnectionError("no"), ProviderUnavailableError),
        (ConnectionResetError(104, "reset"), ProviderUnavailableError),
    ],
)
def test_each_failure_has_its_type_and_a_sentence_in_both_languages(
    error: Exception, kind: type[LongtableError]
) -> None:
    known = provider_error(error)
    assert known is not None
    assert type(known) is kind
    assert known.user_text("en") != known.user_text("zh")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    known: Any = provider_error(StatusError(429, headers=headers))
    assert known.retry_after == seconds


OF_CONTENT = [
    (400, {"message": "The prompt was flagged.", "code": "content_policy_violation"}),
    (
        400,
        {
            "message": "triggering Azure OpenAI's content management policy",
            "code": "content_filter",
            "param": "prompt",
        },
    ),
    (
        400,
        {
            "message": "Input data may contain inappropriate content.",
            "code": "data_inspection_failed",
        },
    ),
    (400, {"message": "Content Exists Risk", "type": "invalid_request_error"}),
    (400, {"message": "系统检测到输入或生成内容可能包含不安全或敏感内容", "code": "1301"}),
    (
        400,
        {
            "message": "Invalid 'messages[1].name': string does not match pattern.",
            "param": "messages[1].name",
            "code": "invalid_value",
        },
    ),
    (
        422,
        {
            "detail": [
                {
                    "loc": ["body", "messages", 0, "name"],
                    "msg": "Extra inputs are not permitted; tool_choice",
                }
            ]
        },
    ),
    (400, {"message": "image_url is only supported by certain models."}),
    (
        403,
        {
            "message": (
                "Your chosen model requires moderation and your input was flagged. No credits were"
                " charged."
            )
        },
    ),
    (400, {"message": "[{'role': 'user', 'content': 'support tools by country'}] cannot be read"}),
    (
        500,
        {
            "message": "Input data may contain inappropriate content.",
            "code": "data_inspection_failed",
        },
    ),
    (404, {"message": "No endpoints found that support image input"}),
    (500, {"message": "image input is not supported - hint: you may need to provide the mmproj"}),
    (400, {"message": "Bad request"}),
]
OF_SETTINGS = [
    (
        400,
        {
            "message": "Unsupported value: 'temperature' does not support 0.2.",
            "param": "temperature",
            "code": "unsupported_value",
        },
    ),
    (
        400,
        {
            "message": "Invalid schema for function 'x'",
            "param": "tools[0].function.parameters",
            "code": "invalid_function_parameters",
        },
    ),
    (
        400,
        {
            "message": "API key not valid. Please pass a valid API key.",
            "status": "INVALID_ARGUMENT",
        },
    ),
    (
        400,
        {
            "message": "Your credit balance is too low to access the API.",
            "type": "invalid_request_error",
        },
    ),
    (400, {"message": "Model Not Exist", "type": "invalid_request_error"}),
    (400, {"message": '"auto" tool choice requires --enable-auto-tool-choice; tool_choice'}),
    (
        400,
        {
            "message": (
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to'
                " be set"
            )
        },
    ),
    (400, {"message": "registry.ollama.ai/library/llama3:latest does not support tools"}),
    (400, {"message": "registry.ollama.ai/library/llama3.2-vision:latest does not support tools"}),
    (400, {"message": "This model does not support tool calling"}),
    (
        400,
        {
            "message": "Function calling is not enabled for models/gemma-3-27b-it",
            "status": "INVALID_ARGUMENT",
        },
    ),
    (400, {"message": "System role not supported"}),
    (400, {"message": "Developer instruction is not enabled for models/gemma-3-27b-it"}),
    (
        400,
        {
            "message": "Unsupported value: 'messages[0].role' does not support 'system'",
            "param": "messages[0].role",
        },
    ),
    (400, {"message": "Conversation roles must alternate user/assistant/user/assistant/..."}),
    (
        400,
        {
            "message": "User location is not supported for the API use.",
            "status": "FAILED_PRECONDITION",
        },
    ),
    (
        400,
        {"message": "Your organization must be verified to stream this model.", "param": "stream"},
    ),
    (404, {"message": "The model `x` does not exist", "code": "model_not_found"}),
]


@pytest.mark.parametrize(
    ("status", "error", "content"),
    [*((*each, True) for each in OF_CONTENT), *((*each, False) for each in OF_SETTINGS)],
    ids=str,
)
def test_a_refusal_says_whether_it_is_for_what_the_messages_hold(
    status: int, error: dict[str, Any], content: bool
) -> None:
    known = provider_error(
        StatusError(status, f"Error code: {status} - {error}", body={"error": error})
    )
    assert isinstance(known, ProviderRefusedError)
    assert known.content is content


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (403, "Your account was flagged for a violation of the content policy", ProviderAuthError),
        (403, "User location is not supported for the API use.", ProviderAuthError),
        (500, "error while processing image tokens", ProviderUnavailableError),
        (503, "content filter service unavailable", ProviderUnavailableError),
    ],
)
def test_words_about_content_do_not_hide_a_blocked_account_or_a_failing_server(
    status: int, message: str, kind: type[LongtableError]
) -> None:
    assert (
        type(provider_error(StatusError(status, message, body={"error": {"message": message}})))
        is kind
    )


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_a_key_a_quota_or_a_server_that_is_down_is_no_refusal_of_content(status: int) -> None:
    assert not isinstance(
        provider_error(StatusError(status, "the request failed")), ProviderRefusedError
    )


def test_a_bug_is_no_providers_error() -> None:
    assert provider_error(KeyError("x")) is None


def test_the_servers_own_words_are_told_where_the_clients_error_has_none() -> None:
    known = provider_error(StatusError(400, "Error code: 400", body="no such tool"))
    assert (
        str(known) == "the provider refused the request (HTTP 400): Error code: 400: no such tool"
    )


def test_no_key_is_repeated() -> None:
    known = provider_error(
        StatusError(422, "your key sk-abcdef123456 and Bearer abcdef123456 are odd")
    )
    assert "abcdef123456" not in str(known)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def streamed_input_tokens(model: BaseChatModel) -> list[int]:
    chunks = [chunk for chunk in model.stream("hi") if isinstance(chunk, AIMessageChunk)]
    return [chunk.usage_metadata["input_tokens"] for chunk in chunks if chunk.usage_metadata]


def test_a_stream_is_asked_for_its_usage_and_the_usage_arrives(server: ModelServer) -> None:
    server.always(say("hello there", input_tokens=321))
    plain = server.chat_model(stream_usage=None)
    assert streamed_input_tokens(plain) == []
    assert streamed_input_tokens(with_usage(plain)) == [321]
    assert [request.body.get("stream_options") for request in server.requests] == [
        None,
        {"include_usage": True},
    ]
    assert plain.stream_usage is None  # the owner's model is left as it is


def test_the_usage_arrives_in_async_streams_with_tools_too(server: ModelServer) -> None:
    server.always(say("hello there", input_tokens=321))
    bound = with_usage(server.chat_model(stream_usage=None)).bind_tools(
        [{"type": "function", "function": {"name": "now", "parameters": {}}}]
    )

    async def read() -> list[int]:
        chunks = [chunk async for chunk in bound.astream("hi") if isinstance(chunk, AIMessageChunk)]
        return [chunk.usage_metadata["input_tokens"] for chunk in chunks if chunk.usage_metadata]

    assert asyncio.run(read()) == [321]
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("said", [True, False])
def test_what_the_owner_said_about_usage_stays(server: ModelServer, said: bool) -> None:
    model = server.chat_model(stream_usage=said)
    assert with_usage(model) is model
    server.script(say("hello", input_tokens=7))
    assert streamed_input_tokens(with_usage(model)) == ([7] if said else [])


def test_a_request_that_is_not_streamed_is_not_changed(server: ModelServer) -> None:
    server.always(say("hello"))
    plain = server.chat_model(stream_usage=None)
    plain.invoke("hi")
    with_usage(plain).invoke("hi")
    assert server.requests[0].body == server.requests[1].body


def test_a_model_without_the_field_is_returned_as_it_is() -> None:
    model = FakeListChatModel(responses=["x"])
    assert with_usage(model) is model


class Broken(FakeListChatModel):
    """A model with a bug of its own."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        return str(dict[str, str]()["missing"])


class Unsayable(FakeListChatModel):
    """A model that cannot read the answer it got."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        return str(json.loads("<html>"))


@pytest.mark.parametrize("model", [Broken(responses=[]), Unsayable(responses=[])])
def test_a_bug_inside_a_model_is_no_fault_of_its_server(model: BaseChatModel) -> None:
    with pytest.raises((KeyError, ValueError)) as caught:
        model.invoke("hi")
    assert provider_error(caught.value) is None


def test_a_request_that_cannot_be_made_is_no_fault_of_the_server(server: ModelServer) -> None:
    with pytest.raises(TypeError) as caught:
        server.chat_model(extra_body={"when": object()}).invoke("hi")
    assert provider_error(caught.value) is None
    assert server.requests == []


def test_of_a_group_the_error_of_the_provider_counts() -> None:
    assert isinstance(
        provider_error(ExceptionGroup("two addresses", [KeyError("x"), OSError("refused")])),
        ProviderUnavailableError,
    )
    assert provider_error(ExceptionGroup("bugs", [KeyError("x"), ZeroDivisionError()])) is None


SENT = "Sat, 21 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        # Against the server's own clock.
        ({"retry-after": "Sat, 21 Nov 2026 12:00:09 GMT", "date": SENT}, 9.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT", "date": SENT}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:09 GMT"}, None),
        ({"retry-after": "soon", "date": SENT}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e30"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize(
    ("status", "kind"), [(429, ProviderRateLimitedError), (503, ProviderUnavailableError)]
)
def test_the_time_to_wait_is_read_in_every_form(
    status: int,
    kind: type[ProviderRateLimitedError | ProviderUnavailableError],
    headers: dict[str, str],
    wait: float | None,
) -> None:
    told = provider_error(StatusError(status, headers=headers))
    assert isinstance(told, kind)
    assert told.retry_after == wait
