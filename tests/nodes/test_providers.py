"""What a provider's exception means, by table."""

from typing import Any

import pytest

from longtable.graph.errors import (
    LongtableError,
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderRateLimitedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.nodes.providers import is_overflow, provider_error


class StatusError(Exception):
    """Looks like the errors of openai, anthropic and other clients."""

    def __init__(
        self, status: int, message: str = "", *, code: object = None, body: object = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status_code, self.code, self.body = status, code, body
        self.response = type("Response", (), {"headers": headers or {}, "status_code": status})()


class APIConnectionError(Exception):
    """Named as openai's."""


@pytest.mark.parametrize(
    "error",
    [
        StatusError(400, "x", code="context_length_exceeded"),
        StatusError(400, "x", body={"error": {"type": "exceed_context_size_error", "code": 400}}),
        StatusError(400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"),
        StatusError(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        StatusError(400, "Range of input length should be [1, 129024]"),
        StatusError(400, "the request exceeds the available context size (4096 tokens), try increasing it"),
        StatusError(400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        StatusError(413, "Too many tokens in the request"),
    ],
)
def test_overflows_are_recognised(error: Exception) -> None:
    assert is_overflow(error)
    assert isinstance(provider_error(error), ModelContextOverflowError)


@pytest.mark.parametrize(
    "error",
    [
        StatusError(429, "too many tokens per minute"),
        StatusError(400, "invalid tool schema"),
        StatusError(500, "maximum context length"),
        ValueError("maximum context length exceeded in my own tool"),
    ],
)
def test_others_are_not_taken_for_overflows(error: Exception) -> None:
    assert not is_overflow(error)


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
def test_each_failure_has_its_type_and_a_sentence_in_both_languages(error: Exception, kind: type[LongtableError]) -> None:
    known = provider_error(error)
    assert known is not None
    assert type(known) is kind
    assert known.user_text("en") != known.user_text("zh")


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"retry-after": "7"}, 7.0), ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None), ({}, None)]
)
def test_the_time_to_wait_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    known: Any = provider_error(StatusError(429, headers=headers))
    assert known.retry_after == seconds


def test_a_bug_is_no_providers_error() -> None:
    assert provider_error(KeyError("x")) is None


def test_no_key_is_repeated() -> None:
    known = provider_error(StatusError(422, "your key sk-abcdef123456 and Bearer abcdef123456 are odd"))
    assert "abcdef123456" not in str(known)
