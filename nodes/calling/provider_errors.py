"""Find out what a provider's exception means, and which limit it names.

This is read from status, code, type, parameter and words of the exceptions that clients raise:
openai's, anthropic's, ollama's, botocore's and Google's exceptions, and the bare error body that
LangChain raises for an error sent with status 200. No provider's package is imported. The words
that are recognised are those of OpenAI, Azure, vLLM, SGLang, llama.cpp, LM Studio, Ollama,
DeepSeek, DashScope, Anthropic, Bedrock, Gemini, Mistral, xAI, Groq, OpenRouter, Moonshot, Zhipu,
MiniMax, Cohere and TGI.
"""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from longtable.base.errors import (
    LongtableError,
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderError,
    ProviderProtocolError,
    ProviderQuotaError,
    ProviderRateLimitedError,
    ProviderRefusedError,
    ProviderUnavailableError,
)
from longtable.base.redaction import redacted

_CODES = {
    "context_length_exceeded",  # OpenAI, Azure, Groq
    "exceed_context_size_error",  # llama.cpp
    "context_window_exceeded",
    "request_too_large",  # Anthropic
    "1261",  # Zhipu
}
# OpenAI: of a message, or of a tool's description
_SIZE_CODES = {"string_above_max_length", "array_above_max_length"}

_WORDS = re.compile(
    r"""maximum\ (?:context|prompt|model)\ length
    |context[ _](?:length|size|window|limit)[^.]{0,60}(?:exceed|overflow|longer|not\ enough)
    |(?:exceed|longer|greater|overflow|fit)\w*[^.]{0,60}(?:context|model)(?:'s)?[ _](?:length|size|window|limit)
    |when\ context\ the\ overflows
    |(?:prompt|input)\ (?:\([^)]{0,40}\)\ )?(?:is\ )?too\ (?:long|large\ for)
    |(?:prompt|input)\ exceeds\ (?:the\ )?max(?:imum)?\ length
    |range\ of\ input\ length|input\ length[^.]{0,60}(?:exceed|maximum|limit)
    |input\ tokens?[^.]{0,40}exceed|input\ token\ count[^.]{0,40}(?:exceeds|but\ model\ only\ supports)
    |token\ (?:count|limit)[^.]{0,30}exceed|exceeded\ model\ token\ limit
    |too\ many\ tokens(?!\ per)
    |`inputs`\ (?:tokens\ \+|must\ have\ less)
    |max_tokens\ must\ be\ at\ least\ 1,\ got\ -
    |(?:输入(?!参数)|上下文|提示词|prompt|对话|消息)[^。；;]{0,24}(?:超出|超过|超长|过长|太长)
    |(?:超出|超过)[^。；;]{0,16}(?:上下文|输入长度)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_CONTEXT = re.compile(r"per[ -]?min|per[ -]?day|\b[TR]P[MD]\b|频率|限流", re.IGNORECASE)
_BY_A_PROVIDER = re.compile(
    r"(?:openai|anthropic|google|langchain_(?:google|aws)|botocore|ollama|mistralai|cohere|groq)(?![a-z])"
)
_ENDED_IN_CONTEXT = "context size has been exceeded"  # llama.cpp's 500, met while it answers

_N = r"(\d[\d,_]{0,15})"
_LIMITS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\d\s*(?:tokens)?\s*>\s*{_N}",
        rf"range of input length should be \[\s*\d+\s*,\s*{_N}",
        rf"too large for model with {_N} maximum",
        (
            r"max(?:imum)? (?:(?:context|prompt|model|input|sequence) )?length(?: is|"
            rf" of|:)?\s*(?:only )?\(?{_N}(?! characters)"
        ),
        rf"context (?:size|length|window|limit)(?: is| of|:)?\s*(?:only )?\(?{_N}",
        rf"(?:configured limit|limit) of {_N}",
        rf"number of tokens allowed \(?{_N}",
        rf"only supports up to {_N}",
        rf"token limit: {_N}",
        rf"must be <= {_N}|must have less than {_N} tokens",
        rf"cannot exceed {_N}",
        rf"(?:最大|上限|限制)[^\d。]{{0,16}}{_N}",
    )
]
_OUTPUT_ASKED = re.compile(
    r"is too large: (\d+)|requested (\d+) output tokens|(\d+) (?:tokens )?(?:in|for) the"
    r" (?:completion|output)|\d+ \+ (\d+) > \d"
    r"|(\d+) `max_new_tokens`"
)
LEAST_LIMIT = 256
MOST_LIMIT = 100_000_000
"""A number below `LEAST_LIMIT` or above `MOST_LIMIT` is not taken for a model's limit in tokens."""
WORDS_READ = 4_000
"""Only this many characters of an error are read, because some servers repeat the prompt after
their own words.
"""


@dataclass(frozen=True)
class ErrorDetails:
    """Status, codes, parameter and words of a provider's exception."""

    status: int | None
    names: frozenset[str]
    """The codes and types of the error."""
    param: str
    words: str
    n_ctx: object = None
    """The limit in tokens, which only llama.cpp reports as a field."""


def is_overflow(error: Exception) -> bool:
    """Return whether a provider says that the request is too long for its context.

    Status 413 always counts: a server or proxy that refuses a request for its size may accept a
    smaller request. False for a request of more output than the context holds (a shorter
    conversation would not help), for rate limits, and for a tool's description that is too long.
    """
    if isinstance(error, ContextOverflowError | ModelContextOverflowError):
        return True
    details = error_details(error)
    if details.status == 413:
        return True
    if details.status == 500:
        return _ENDED_IN_CONTEXT in details.words.lower()
    if details.status not in (None, 400, 422) or _asks_too_much_output(details.words):
        return False
    if _CODES & details.names:
        return True
    if _SIZE_CODES & details.names:
        return (
            details.param.startswith(("messages", "input"))
            and "tool_calls" not in details.param
            and ".name" not in details.param
        )
    if details.status is None and not by_a_provider(error):
        return False
    return bool(_WORDS.search(details.words)) and not _NOT_CONTEXT.search(details.words)


def learned_limit(error: Exception) -> int | None:
    """Return the limit in tokens that an overflow error names, None if it names no limit. The
    request's own size, which the error may name too, is never returned.
    """
    if not is_overflow(error):
        return None
    details = error_details(error)
    if _SIZE_CODES & details.names or _NOT_CONTEXT.search(details.words):
        return None  # characters, or tokens a minute
    if isinstance(details.n_ctx, int) and not isinstance(details.n_ctx, bool):
        return _plausible(details.n_ctx)
    return _limit_in(details.words)


def by_a_provider(error: Exception) -> bool:
    """Return whether the class of an exception belongs to a provider's client."""
    return _BY_A_PROVIDER.match(type(error).__module__) is not None


def error_details(error: Exception) -> ErrorDetails:
    """Read status, codes, types, parameter and words from an exception, or from the error body that
    the exception carries.
    """
    body = _body(error)
    codes = [
        getattr(error, "code", None),
        body.get("code"),
        body.get("Code"),
        getattr(error, "type", None),
        body.get("type"),
    ]
    words = str(error)[:WORDS_READ]
    for message in (body.get("message"), body.get("Message")):
        if isinstance(message, str) and message[:WORDS_READ] not in words:
            # openai's exception has no words of an error that is a bare string
            words += f": {message[:WORDS_READ]}"
    return ErrorDetails(
        status=next(_statuses(error, body), None),
        names=frozenset(str(code) for code in codes if code is not None),
        param=str(getattr(error, "param", None) or body.get("param") or ""),
        words=words,
        n_ctx=body.get("n_ctx"),
    )


def _body(error: Exception) -> Mapping[str, Any]:
    """Return the error body of an exception, an empty dict if there is none. It is an attribute of
    openai's and anthropic's exceptions, in the response of botocore's, or the value that LangChain
    raises.
    """
    if isinstance(text := getattr(error, "body", None), str):
        return {"message": text}
    first = error.args[0] if error.args else None
    for source in (getattr(error, "body", None), getattr(error, "response", None), first):
        if isinstance(source, Mapping):
            inner = source.get("error", source.get("Error", source))
            return inner if isinstance(inner, Mapping) else {"message": inner}
    return {}


def _statuses(error: Exception, body: Mapping[str, Any]) -> Iterator[int]:
    response = getattr(error, "response", None)
    meta = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    # `code` is Google's; elsewhere a number by this name may be anything.
    code = getattr(error, "code", None) if response is not None or hasattr(error, "body") else None
    of_body = (meta.get("HTTPStatusCode") if isinstance(meta, Mapping) else None, body.get("code"))
    for status in (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        *of_body,
        code,
    ):
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            yield int(status)


def _asks_too_much_output(words: str) -> bool:
    """Return whether the requested output alone would not fit the context, whatever the size of the
    input.
    """
    request = _OUTPUT_ASKED.search(words)
    limit = _limit_in(words)
    return (
        request is not None
        and limit is not None
        and int(next(filter(None, request.groups()))) >= limit
    )


def _limit_in(words: str) -> int | None:
    for pattern in _LIMITS:
        if match := pattern.search(words):
            return _plausible(
                int(next(filter(None, match.groups())).replace(",", "").replace("_", ""))
            )
    return None


def _plausible(limit: int) -> int | None:
    return limit if LEAST_LIMIT <= limit <= MOST_LIMIT else None


# -- what else a provider's exception means --------------------------------------------------------

_NETWORK = re.compile(
    r"connect|timeout|timedout|protocolerror|readerror|incomplete|apierror|invalidurl",
    re.IGNORECASE,
)
QUOTA = "insufficient_quota"
"""The error code with which OpenAI and others send a status 429 for which waiting does not help."""
LONGEST_WAIT = 31_536_000.0
"""Longest wait in seconds that is believed. A provider that gives a larger number must mean
something else.
"""
_ABOUT_CONTENT = re.compile(
    r"""content[ _-]?(?:filter|policy|management|moderation)|\b(?:moderation|flagged|inappropriate)\b|high\ risk|exists\ risk
    |data_?inspection|responsible_?ai|safety\ (?:system|polic|filter)|sensitive\ content|new_sensitive|敏感|违规|不合规|不安全
    |(?:image|audio|video|vision|multi-?modal)\ ?(?:inputs?|_url|content|files?|data)?s?[^.]{0,40}(?:not\ support|unsupported)
    |(?:support|process|decode|parse|download|unsupported|invalid)\w*\ [^.]{0,24}(?:image|audio|video|vision|multi-?modal)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words and codes of errors about the content of a message: the content breaks a content policy, or
the model does not accept this kind of content.
"""
_CONTENT_CODE = re.compile(
    r"content_?(?:filter|policy)|data_?inspection|moderation|responsible_?ai|sensitive",
    re.IGNORECASE,
)
# llama.cpp's 500
_INPUT_NOT_TAKEN = re.compile(r"\b(?:image|audio|video) input is not supported", re.IGNORECASE)
_NOT_THE_MESSAGE = re.compile(
    r"""not\ support\w*\ (?:\w+[ _-])?(?:tool|function)|(?:tools?|functions?)(?:[ _-](?:call(?:s|ing)?|use))?\ (?:is|are)\ not
    |不支持(?:工具|函数)|\broles?\b[^.:]{0,40}(?:support|alternate)|(?:system|developer)\ (?:message|prompt|instruction)s?\ (?:is|are)\ not
    |\byour\ (?:account|organi[sz]ation)\b|\buser\ location\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of errors about tools, roles, the account or its region. They are checked before words
about content, because "llama3.2-vision does not support tools" and "your account was flagged" are
not about content.
"""
_IN_A_MESSAGE = re.compile(r"\b(?:messages|input|contents)['\"]?(?:[.\[]|,\s*\d)")
"""Pattern of a path to a field of the messages, such as `messages[3]`."""
_ABOUT_SETTINGS = re.compile(
    r"""api[ _-]?key|credit|balance|billing|quota|arrear|overdue|欠费|余额
    |model[^.]{0,60}(?:not\ (?:found|exist)|does\ not\ exist|unknown|no\ access)|(?:no\ such|unknown|invalid)\ model|模型(?:不存在|名)
    |temperature|top_[pk]\b|max_(?:completion_|new_|output_)?tokens|tool[ _](?:choice|schema|definition)|parallel_tool_calls
    |stream_options|response_format|reasoning_effort|logprobs|(?:unsupported|unknown|unrecognized)\ (?:parameter|(?:request\ )?argument)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of errors about an account, a model's name or a parameter. With such an error any message
would be refused.
"""
OWN_WORDS = 500
"""Only this many characters of an error count as the provider's own words, because some servers
repeat the prompt after them.
"""
_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""Exceptions that a client raises if it reads an unexpected answer. (Errors of JSON, UTF-8 and
pydantic are `ValueError`s.)
"""
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
    # A stream that held no event.
    "langchain_core.language_models.chat_models": {"generate_from_stream"},
}
_RAISED_IN = {
    ("langchain_openai.chat_models.base", "_stream"),  # an event that is no object
    ("langchain_openai.chat_models.base", "_astream"),
    ("langchain_core.language_models.chat_models", "invoke"),  # an answer without choices
    ("langchain_core.language_models.chat_models", "ainvoke"),
}


def provider_error(error: Exception, *, answering: bool = False) -> ProviderError | None:
    """Return the typed error that a provider's exception stands for. Return None if the exception
    does not come from a provider; then it is a bug, and should be raised.

    `answering`: True if a part of the answer had arrived, so that the base URL must be right.
    """
    if isinstance(error, LongtableError):
        return error if isinstance(error, ProviderError) else None
    if isinstance(error, ExceptionGroup):  # anyio's, of the addresses it tried
        return next(
            (
                known
                for each in error.exceptions
                if (known := provider_error(each, answering=answering))
            ),
            None,
        )
    details = error_details(error)
    if is_overflow(error):
        return ModelContextOverflowError(
            f"the provider says the context is too long: {_words(error)}"
        )
    content = _refuses_content(error)
    refused = _http_error(error, details, content=content)
    if refused is not None:
        return refused
    if words := _error_in_answer(error):
        return ProviderRefusedError(
            f"the provider answered with an error: {words}", content=content
        )
    if _unreadable(error):
        what = "a part of the answer" if answering else "the server's answer"
        hint = "" if answering else ": is /v1 missing at the end of the base URL?"
        return ProviderProtocolError(
            f"{what} is not of the OpenAI protocol ({type(error).__name__}){hint}"
        )
    if (
        any(_NETWORK.search(cls.__name__) for cls in type(error).__mro__)
        or isinstance(error, OSError)
        or _connecting(error)
    ):
        return ProviderUnavailableError(
            f"the provider cannot be reached or broke off ({type(error).__name__})"
        )
    return None


def _http_error(error: Exception, details: ErrorDetails, *, content: bool) -> ProviderError | None:
    """Return the typed error that the HTTP status stands for, None if there is no such status.
    `content`: True if the provider refuses the content of the messages.
    """
    status = details.status
    if status in (401, 403) and not content:
        return ProviderAuthError(
            f"the provider refused the key (HTTP {status}): check the key's environment variable"
            " and the model's name"
        )
    if status == 402 or QUOTA in details.names:
        return ProviderQuotaError(
            f"the account at the provider has no credit or quota left (HTTP {status}): top it up"
        )
    if status == 429:
        return ProviderRateLimitedError(
            "the provider asks to wait (HTTP 429)", retry_after=_retry_after(error)
        )
    if status is not None and status >= 500 and not content:
        return ProviderUnavailableError(
            f"the provider failed (HTTP {status})", retry_after=_retry_after(error)
        )
    if status is not None and status >= 400:
        hint = (
            "; is the model's name right, and is /v1 missing at the end of the base URL?"
            if status in (404, 405)
            else ""
        )
        return ProviderRefusedError(
            f"the provider refused the request (HTTP {status}): {_words(error)}{hint}",
            content=content,
        )
    return None


def _refuses_content(error: Exception) -> bool:
    """Return whether a provider refuses the content of the messages, so that it may answer other
    messages.

    A status 400 without a stated cause counts as such a refusal. Otherwise the messages would stay
    in the view, and every later message would fail in the same way.
    """
    details = error_details(error)
    if details.status in (401, 429) or (details.status is None and not by_a_provider(error)):
        return False
    if any(map(_CONTENT_CODE.search, details.names)):
        return True
    words = " ".join([*sorted(details.names), details.words[:OWN_WORDS]])
    if _NOT_THE_MESSAGE.search(words):
        return False
    if details.status is not None and details.status >= 500:
        return bool(_INPUT_NOT_TAKEN.search(words))
    if _ABOUT_CONTENT.search(words):
        return True
    if details.status not in (400, 415, 422):
        return False
    if details.param:
        return details.param.startswith(("messages", "input", "contents", "prompt"))
    return bool(_IN_A_MESSAGE.search(words)) or not _ABOUT_SETTINGS.search(words)


def _unreadable(error: Exception) -> bool:
    """Return whether the client failed while it read the answer. The function that raised the
    exception shows this; a bug, or a request that was never sent, raises it elsewhere.
    """
    if not isinstance(error, _UNREADABLE):
        return False
    places = list(_places(error.__traceback__))
    return bool(places) and (
        places[-1] in _RAISED_IN
        or any(function in _READING.get(module, ()) for module, function in places)
    )


def _connecting(error: Exception) -> bool:
    """Return whether an error was raised because a host or port is impossible. asyncio passes such
    errors of the socket on unchanged, as `OverflowError` or `UnicodeError`.
    """
    wrong = isinstance(error, OverflowError | UnicodeError)
    return wrong and any(
        module.partition(".")[0] in {"anyio", "asyncio", "httpcore", "httpcore2"}
        for module, _ in _places(error.__traceback__)
    )


def _error_in_answer(error: Exception) -> str:
    """Return the provider's words if an error was sent with status 200, which langchain-openai
    raises as a bare `ValueError`. Return "" for any other error.
    """
    places = list(_places(error.__traceback__))
    if type(error) is not ValueError or not places or places[-1][1] != "_create_chat_result":
        return ""
    return "" if str(error).startswith("Unexpected response type") else _words(error)


def _places(trace: TracebackType | None) -> Iterator[tuple[str, str]]:
    """Yield module and function of each frame of a traceback. The frame that raised comes last."""
    while trace:
        yield str(trace.tb_frame.f_globals.get("__name__", "")), trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def broke_off(answer: BaseMessage) -> bool:
    """Return whether the stream of an answer broke off. It did if the answer came in OpenAI's
    protocol and has no finish reason.

    Without this check, half an SQL statement would look complete, because LangChain closes the open
    brackets of arguments that were cut.
    """
    data = answer.response_metadata
    return data.get("model_provider") == "openai" and not (
        data.get("finish_reason") or data.get("status")
    )


def with_usage(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of the model that asks the server to report token usage in streams, too.

    `stream_usage` is a field of langchain-openai's models. With None, its default, only OpenAI's
    own servers are asked for usage. A model without this field, or whose owner set it to True or
    False, is returned unchanged.
    """
    if (
        "stream_usage" not in type(model).model_fields
        or getattr(model, "stream_usage", None) is not None
    ):
        return model
    return model.model_copy(update={"stream_usage": True})


def _retry_after(error: Exception) -> float | None:
    """Return the seconds that a provider asks to wait, None if it does not say. The header holds a
    number, or a date, from which the date of the answer is subtracted.
    """
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(str(headers.get(name))) * unit
            if math.isfinite(seconds):
                return max(0.0, seconds) if seconds < LONGEST_WAIT else None
    with suppress(ValueError):
        until, sent = (
            parsedate_to_datetime(str(headers.get(name))) for name in ("retry-after", "date")
        )
        dates = [date if date.tzinfo else date.replace(tzinfo=UTC) for date in (until, sent)]
        seconds = (dates[0] - dates[1]).total_seconds()
        return max(0.0, seconds) if seconds < LONGEST_WAIT else None
    return None


def _words(error: Exception) -> str:
    """Return the provider's words, clipped and without anything that looks like a key. For an HTML
    page, return only the text "it sent an HTML page".
    """
    words = error_details(error).words
    if re.search(r"<(?:!doctype|html)\b", words, re.IGNORECASE):
        return "it sent an HTML page"
    return re.sub(
        r"\b(sk|key|bearer)[-_ ][\w\-]{6,}",
        "[key]",
        redacted(" ".join(words.split()))[:300],
        flags=re.IGNORECASE,
    )
