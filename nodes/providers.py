"""What a provider's exception means, read off its status, code, type and words; no provider's package is imported."""

import re
from collections.abc import Iterator, Mapping

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage

from longtable.graph.errors import (
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)

# Codes and types by which OpenAI, vLLM, llama.cpp and DashScope name an overflow.
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "context_window_exceeded"}
_OVERFLOW_WORDS = re.compile(
    r"maximum context length|context (?:length|size|window)[^.]{0,40}exceed|exceed\w*[^.]{0,60}context (?:length|size|window)"
    r"|prompt is too long|input (?:length|is too long)[^.]{0,60}(?:exceed|maximum|limit)|range of input length|too many tokens",
    re.IGNORECASE,
)
_NETWORK = re.compile(r"connect|timeout|timedout|protocolerror|readerror|incomplete|apierror", re.IGNORECASE)


def provider_error(error: Exception) -> ProviderError | None:
    """Return the typed error a provider's exception stands for, or None when it is no provider's (a bug: raise it)."""
    if isinstance(error, ProviderError):
        return error
    status = _status(error)
    if is_overflow(error):
        return ModelContextOverflowError(f"the provider says the context is too long: {_told(error)}")
    if status in (401, 403):
        return ProviderAuthError(f"the provider refused the key (HTTP {status}): check the key's environment variable and the model's name")
    if status == 429:
        return ProviderRateLimitedError("the provider asks to wait (HTTP 429)", retry_after=_retry_after(error))
    if status is not None and status >= 500:
        return ProviderUnavailableError(f"the provider failed (HTTP {status})")
    if status is not None and status >= 400:
        return ProviderRefusedError(f"the provider refused the request (HTTP {status}): {_told(error)}")
    if any(_NETWORK.search(cls.__name__) for cls in type(error).__mro__) or isinstance(error, OSError):
        return ProviderUnavailableError(f"the provider cannot be reached or broke off ({type(error).__name__})")
    return None


def broke_off(answer: BaseMessage) -> bool:
    """Tell whether a stream ended before its end: an answer of OpenAI's protocol without a reason to finish.

    Without this half a statement looks whole: LangChain closes the brackets of arguments that were cut.
    """
    told = answer.response_metadata
    return told.get("model_provider") == "openai" and not (told.get("finish_reason") or told.get("status"))


def is_overflow(error: Exception) -> bool:
    """Tell whether a provider says that the request is over its context."""
    if isinstance(error, ContextOverflowError):
        return True
    if _status(error) not in (None, 400, 413, 422):
        return False
    if _OVERFLOW_CODES & set(_names(error)):
        return True
    return _status(error) is not None and bool(_OVERFLOW_WORDS.search(str(error)))


def _status(error: Exception) -> int | None:
    for source in (error, getattr(error, "response", None)):
        status = getattr(source, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _names(error: Exception) -> Iterator[str]:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    for source in (getattr(error, "code", None), getattr(error, "type", None)):
        yield str(source)
    if isinstance(inner, Mapping):
        yield from (str(inner.get(key)) for key in ("code", "type"))


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers is not None else None
    try:
        return float(value) if value is not None else None
    except ValueError:  # an HTTP date: rare, and no number of seconds
        return None


def _told(error: Exception) -> str:
    """Return the provider's words, clipped, without anything that looks like a key."""
    return re.sub(r"\b(sk|key|bearer)[-_ ][\w\-]{6,}", "[key]", " ".join(str(error).split())[:300], flags=re.IGNORECASE)
