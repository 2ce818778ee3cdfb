"""What a provider's exception means, read off its status, code, type and words; no provider's package is imported."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from longtable.base.errors import (
    LongtableError,
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderError,
    ProviderProtocolError,
    ProviderRateLimitedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.base.redaction import redacted
from longtable.nodes.model.overflow import by_a_provider, error_details, is_overflow, learned_limit

__all__ = ["broke_off", "is_overflow", "learned_limit", "provider_error", "with_usage"]

_NETWORK = re.compile(r"connect|timeout|timedout|protocolerror|readerror|incomplete|apierror|invalidurl", re.IGNORECASE)
LONGEST_WAIT = 31_536_000.0
"""Seconds; a provider that asks for more means something else."""
_ABOUT_CONTENT = re.compile(
    r"""content[ _-]?(?:filter|policy|management|moderation)|\b(?:moderation|flagged|inappropriate)\b|high\ risk|exists\ risk
    |data_?inspection|responsible_?ai|safety\ (?:system|polic|filter)|sensitive\ content|new_sensitive|敏感|违规|不合规|不安全
    |(?:image|audio|video|vision|multi-?modal)\ ?(?:inputs?|_url|content|files?|data)?s?[^.]{0,40}(?:not\ support|unsupported)
    |(?:support|process|decode|parse|download|unsupported|invalid)\w*\ [^.]{0,24}(?:image|audio|video|vision|multi-?modal)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words and codes of a provider that refuses what a message holds: a content policy, or a kind of content that the model does not take."""
_CONTENT_CODE = re.compile(r"content_?(?:filter|policy)|data_?inspection|moderation|responsible_?ai|sensitive", re.IGNORECASE)
_INPUT_NOT_TAKEN = re.compile(r"\b(?:image|audio|video) input is not supported", re.IGNORECASE)  # llama.cpp's 500
_NOT_THE_MESSAGE = re.compile(
    r"""not\ support\w*\ (?:\w+[ _-])?(?:tool|function)|(?:tools?|functions?)(?:[ _-](?:call(?:s|ing)?|use))?\ (?:is|are)\ not
    |不支持(?:工具|函数)|\broles?\b[^.:]{0,40}(?:support|alternate)|(?:system|developer)\ (?:message|prompt|instruction)s?\ (?:is|are)\ not
    |\byour\ (?:account|organi[sz]ation)\b|\buser\ location\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words about tools, roles, the account or its place: they decide before those about content, as in
"llama3.2-vision does not support tools" and "your account was flagged"."""
_IN_A_MESSAGE = re.compile(r"\b(?:messages|input|contents)['\"]?(?:[.\[]|,\s*\d)")
"""A path into the messages."""
_ABOUT_SETTINGS = re.compile(
    r"""api[ _-]?key|credit|balance|billing|quota|arrear|overdue|欠费|余额
    |model[^.]{0,60}(?:not\ (?:found|exist)|does\ not\ exist|unknown|no\ access)|(?:no\ such|unknown|invalid)\ model|模型(?:不存在|名)
    |temperature|top_[pk]\b|max_(?:completion_|new_|output_)?tokens|tool[ _](?:choice|schema|definition)|parallel_tool_calls
    |stream_options|response_format|reasoning_effort|logprobs|(?:unsupported|unknown|unrecognized)\ (?:parameter|(?:request\ )?argument)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words about an account, a model's name or a parameter: any message would be refused."""
OWN_WORDS = 500
"""Characters of an error that are the provider's: some servers repeat the prompt after them."""
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""What reading an answer raises that is not as expected: JSON, UTF-8 and pydantic's errors are ValueErrors."""
_READING = {
    "openai._streaming": {"__stream__"},
    "openai._response": {"_parse"},
    "openai._legacy_response": {"_parse"},
    "langchain_openai.chat_models.base": {
        "_create_chat_result",
        "_convert_dict_to_message",
        "_convert_chunk_to_generation_chunk",
        "_convert_delta_to_message_chunk",
    },
    "langchain_core.language_models.chat_models": {"generate_from_stream"},  # a stream that held no event
}
_RAISED_IN = {
    ("langchain_openai.chat_models.base", "_stream"),  # an event that is no object
    ("langchain_openai.chat_models.base", "_astream"),
    ("langchain_core.language_models.chat_models", "invoke"),  # an answer without choices
    ("langchain_core.language_models.chat_models", "ainvoke"),
}


def provider_error(error: Exception) -> ProviderError | None:
    """Return the typed error a provider's exception stands for, or None when it is no provider's (a bug: raise it)."""
    if isinstance(error, LongtableError):
        return error if isinstance(error, ProviderError) else None
    if isinstance(error, ExceptionGroup):  # anyio's, of the addresses it tried
        return next((known for each in error.exceptions if (known := provider_error(each))), None)
    status = error_details(error).status
    if is_overflow(error):
        return ModelContextOverflowError(f"the provider says the context is too long: {_told(error)}")
    content = _refuses_content(error)
    if status in (401, 403) and not content:
        return ProviderAuthError(f"the provider refused the key (HTTP {status}): check the key's environment variable and the model's name")
    if status == 429:
        return ProviderRateLimitedError("the provider asks to wait (HTTP 429)", retry_after=_retry_after(error))
    if status is not None and status >= 500 and not content:
        return ProviderUnavailableError(f"the provider failed (HTTP {status})", retry_after=_retry_after(error))
    if status is not None and status >= 400:
        hint = "; is the model's name right, and is /v1 missing at the end of the base URL?" if status in (404, 405) else ""
        return ProviderRefusedError(f"the provider refused the request (HTTP {status}): {_told(error)}{hint}", content=content)
    if said := _error_in_answer(error):
        return ProviderRefusedError(f"the provider answered with an error: {said}", content=content)
    if _unreadable(error):
        return ProviderProtocolError(
            f"the server's answer is not of the OpenAI protocol ({type(error).__name__}): is /v1 missing at the end of the base URL?"
        )
    if any(_NETWORK.search(cls.__name__) for cls in type(error).__mro__) or isinstance(error, OSError) or _connecting(error):
        return ProviderUnavailableError(f"the provider cannot be reached or broke off ({type(error).__name__})")
    return None


def _refuses_content(error: Exception) -> bool:
    """Return whether a provider refuses what the messages hold, so that other messages may be answered.

    A 400 without a stated cause counts as one: otherwise every later message would fail the same way.
    """
    told = error_details(error)
    if told.status in (401, 429) or (told.status is None and not by_a_provider(error)):
        return False
    if any(map(_CONTENT_CODE.search, told.names)):
        return True
    words = " ".join([*sorted(told.names), told.words[:OWN_WORDS]])
    if _NOT_THE_MESSAGE.search(words):
        return False
    if told.status is not None and told.status >= 500:
        return bool(_INPUT_NOT_TAKEN.search(words))
    if _ABOUT_CONTENT.search(words):
        return True
    if told.status not in (400, 415, 422):
        return False
    if told.param:
        return told.param.startswith(("messages", "input", "contents", "prompt"))
    return bool(_IN_A_MESSAGE.search(words)) or not _ABOUT_SETTINGS.search(words)


def _unreadable(error: Exception) -> bool:
    """Return whether reading the answer failed. Where an exception came up tells it from a bug, and from a request never sent."""
    if not isinstance(error, _UNREADABLE):
        return False
    places = list(_places(error.__traceback__))
    return bool(places) and (places[-1] in _RAISED_IN or any(function in _READING.get(module, ()) for module, function in places))


def _connecting(error: Exception) -> bool:
    """Return whether a port or host that cannot be met the socket: asyncio raises what it finds there as it is."""
    wrong = isinstance(error, OverflowError | UnicodeError)
    return wrong and any(
        module.partition(".")[0] in {"anyio", "asyncio", "httpcore", "httpcore2"} for module, _ in _places(error.__traceback__)
    )


def _error_in_answer(error: Exception) -> str:
    """Return the provider's words for an error sent with status 200, which langchain-openai raises as they are; else ""."""
    places = list(_places(error.__traceback__))
    if type(error) is not ValueError or not places or places[-1][1] != "_create_chat_result":
        return ""
    return "" if str(error).startswith("Unexpected response type") else _told(error)


def _places(trace: TracebackType | None) -> Iterator[tuple[str, str]]:
    """Yield module and function of each frame, the raising one last."""
    while trace:
        yield str(trace.tb_frame.f_globals.get("__name__", "")), trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def broke_off(answer: BaseMessage) -> bool:
    """Return whether a stream ended before its end: an answer of OpenAI's protocol without a reason to finish.

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
    """Return the seconds a provider asks to wait: a number, or a date, which is read against the answer's own."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    told = (_number(headers.get("retry-after-ms"), 0.001), _number(headers.get("retry-after")))
    wait = next((number for number in told if number is not None), None)
    if wait is None and (until := _date(headers.get("retry-after"))) and (sent := _date(headers.get("date"))):
        wait = (until - sent).total_seconds()
    return max(0.0, wait) if wait is not None and wait < LONGEST_WAIT else None


def _number(text: object, unit: float = 1.0) -> float | None:
    try:
        number = float(str(text)) * unit
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(text: object) -> datetime | None:
    try:
        date = parsedate_to_datetime(str(text))
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _told(error: Exception) -> str:
    """Return the provider's words, clipped, without anything that looks like a key; of a page for browsers, only that it is one."""
    words = error_details(error).words
    if re.search(r"<(?:!doctype|html)\b", words, re.IGNORECASE):
        return "it sent an HTML page"
    return re.sub(r"\b(sk|key|bearer)[-_ ][\w\-]{6,}", "[key]", redacted(" ".join(words.split()))[:300], flags=re.IGNORECASE)
