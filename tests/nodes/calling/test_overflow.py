"""Which exceptions say that a request was over the context, and which limit they name, by table."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import ContextOverflowError

from longtable.base.errors import ModelContextOverflowError, ProviderRefusedError
from longtable.nodes.calling.provider_errors import (
    LEAST_LIMIT,
    is_overflow,
    learned_limit,
    provider_error,
)
from tests.support.overflow_bodies import OTHERS, OVERFLOWS, Refusal


class StatusError(Exception):
    """Looks like the errors of openai and anthropic: the body in `body`, its words in the
    message.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"Error code: {refusal.status} - {refusal.body}")
        self.status_code = refusal.status
        self.body = (
            refusal.body.get("error", refusal.body)
            if isinstance(refusal.body, dict)
            else refusal.body
        )
        inner = self.body if isinstance(self.body, dict) else {}
        self.code, self.type, self.param = inner.get("code"), inner.get("type"), inner.get("param")


class ClientError(Exception):
    """Looks like botocore's."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(
            f"An error occurred ({code}) when calling the Converse operation: {message}"
        )
        self.response = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }


class GoogleError(Exception):
    """Looks like google-genai's: the status is a number in `code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} INVALID_ARGUMENT. {message}")
        self.code, self.status, self.response = code, "INVALID_ARGUMENT", None
        self.body = {"error": {"code": code, "message": message}}


class OllamaError(Exception):
    """Looks like ollama's: words and a status."""

    def __init__(self, message: str, status_code: int) -> None:
        super().__init__(f"{message} (status code: {status_code})")
        self.error, self.status_code = message, status_code


@pytest.mark.parametrize("refusal", OVERFLOWS, ids=str)
def test_an_overflow_is_recognised_with_the_limit_it_names(refusal: Refusal) -> None:
    error = StatusError(refusal)
    assert is_overflow(error)
    assert isinstance(provider_error(error), ModelContextOverflowError)
    assert learned_limit(error) == refusal.limit


@pytest.mark.parametrize("refusal", OTHERS, ids=str)
def test_what_merely_sounds_like_it_is_none_and_teaches_no_limit(refusal: Refusal) -> None:
    error = StatusError(refusal)
    assert not is_overflow(error)
    assert not isinstance(provider_error(error), ModelContextOverflowError)
    assert learned_limit(error) is None


def from_google(message: str) -> Exception:
    """Return an error as langchain-google-genai raises it: words alone."""
    kind: type[Exception] = type(
        "ChatGoogleGenerativeAIError",
        (Exception,),
        {"__module__": "langchain_google_genai.chat_models"},
    )
    return kind(message)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (ContextOverflowError("x"), None),
        (ClientError("ValidationException", "Input is too long for requested model."), None),
        (
            ClientError(
                "ValidationException", "prompt is too long: 208310 tokens > 200000 maximum"
            ),
            200_000,
        ),
        (
            GoogleError(
                400,
                "The input token count (1200000) exceeds the maximum number of tokens allowed"
                " (1048576).",
            ),
            1_048_576,
        ),
        (
            from_google(
                "400 The input token count (40000) exceeds the maximum number of tokens allowed"
                " (32768)."
            ),
            32_768,
        ),
        (OllamaError("the input length exceeds the context length", 400), None),
        # What LangChain raises when the error came with status 200.
        (
            ValueError(
                {"message": "This endpoint's maximum context length is 32768 tokens.", "code": 400}
            ),
            32_768,
        ),
        (
            ModelContextOverflowError(
                "the provider says: maximum context length is 8192 tokens. However, you requested"
                " 9000"
            ),
            8_192,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_clients_shapes_are_read_too(error: Exception, limit: int | None) -> None:
    assert is_overflow(error)
    assert learned_limit(error) == limit


@pytest.mark.parametrize(
    "error",
    [
        ValueError("maximum context length exceeded in my own tool"),
        KeyError("context_length_exceeded"),
        ClientError(
            "ThrottlingException", "Too many tokens, please wait before trying again.", 429
        ),
        GoogleError(429, "Quota exceeded for input tokens per minute"),
        from_google("403 Permission denied"),
        ValueError(),
        ValueError({"message": None, "code": None}),
        OSError(22, "too many tokens"),
    ],
    ids=repr,
)
def test_an_error_of_ones_own_code_is_none(error: Exception) -> None:
    assert not is_overflow(error)


def test_asking_for_more_output_than_the_context_holds_is_refused_not_compacted_for() -> None:
    error = StatusError(next(each for each in OTHERS if each.server == "vllm-max-tokens-alone"))
    assert isinstance(provider_error(error), ProviderRefusedError)


WORDINGS = [refusal for refusal in OVERFLOWS if refusal.limit is not None]


@given(st.sampled_from(WORDINGS), st.integers(LEAST_LIMIT, 2_000_000), st.integers(1, 1_000_000))
def test_the_limit_is_never_taken_for_the_size_that_was_asked_for(
    refusal: Refusal, limit: int, over: int
) -> None:
    """In each wording the named limit is replaced; what was asked for stays over it."""
    text = json.dumps(refusal.body, ensure_ascii=False).replace(
        f"{refusal.limit:,}", str(refusal.limit)
    )
    changed: Any = json.loads(text.replace(str(refusal.limit), str(limit)))
    error = StatusError(Refusal(refusal.server, refusal.status, changed, limit))
    # None: with the smaller limit the output asked for is too much by itself
    assert learned_limit(error) in (limit, None)
    if is_overflow(error):
        assert learned_limit(error) == limit


@pytest.mark.parametrize("absurd", [0, 1, 255, 10**9])
def test_a_number_that_is_no_models_limit_is_not_learned(absurd: int) -> None:
    error = StatusError(
        Refusal(
            "x",
            400,
            {"error": {"message": f"maximum context length is {absurd} tokens", "n_ctx": absurd}},
        )
    )
    assert is_overflow(error)
    assert learned_limit(error) is None


@given(st.text(max_size=400), st.sampled_from([400, 413, 422, 429, 500]))
def test_any_words_are_read_without_an_error(words: str, status: int) -> None:
    error = StatusError(Refusal("x", status, {"error": {"message": words}}))
    assert learned_limit(error) is None or is_overflow(error)


@pytest.mark.parametrize(
    "words",
    ["prompt " * 20_000, "context length " * 20_000, "1" * 200_000, "输入" * 50_000, "> " * 50_000],
)
def test_long_words_are_read_within_the_time_limit_of_a_test(words: str) -> None:
    assert learned_limit(StatusError(Refusal("x", 400, {"error": {"message": words}}))) is None
