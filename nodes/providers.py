"""What a provider's exception means, read off its status, code, type and words; no provider's package is imported."""

import re

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from longtable.graph.errors import (
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.nodes.overflow import is_overflow, learned_limit, read

__all__ = ["broke_off", "is_overflow", "learned_limit", "provider_error", "with_usage"]

_NETWORK = re.compile(r"connect|timeout|timedout|protocolerror|readerror|incomplete|apierror", re.IGNORECASE)


def provider_error(error: Exception) -> ProviderError | None:
    """Return the typed error a provider's exception stands for, or None when it is no provider's (a bug: raise it)."""
    if isinstance(error, ProviderError):
        return error
    status = read(error).status
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


def with_usage(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of the model that asks for the usage of a stream too, where its owner left that open.

    `stream_usage` is langchain-openai's: None asks only OpenAI itself, and a server of one's own then streams without
    a count. A model without that field, or one whose owner said True or False, is returned as it is.
    """
    if "stream_usage" not in type(model).model_fields or getattr(model, "stream_usage", None) is not None:
        return model
    return model.model_copy(update={"stream_usage": True})


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers is not None else None
    try:
        return float(value) if value is not None else None
    except ValueError:  # an HTTP date: rare, and no number of seconds
        return None


def _told(error: Exception) -> str:
    """Return the provider's words, clipped, without anything that looks like a key."""
    return re.sub(r"\b(sk|key|bearer)[-_ ][\w\-]{6,}", "[key]", " ".join(read(error).words.split())[:300], flags=re.IGNORECASE)
