"""Tell from a provider's exception that a request was over the model's context, and which limit it names.

Read off status, code, type, parameter and words of whatever a client raises: openai's, anthropic's, ollama's, botocore's
and Google's exceptions, and the bare error body that LangChain raises for an error sent with status 200. No provider's
package is imported. The words are those of OpenAI, Azure, vLLM, SGLang, llama.cpp, LM Studio, Ollama, DeepSeek,
DashScope, Anthropic, Bedrock, Gemini, Mistral, xAI, Groq, OpenRouter, Moonshot, Zhipu, MiniMax, Cohere and TGI.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.exceptions import ContextOverflowError

from longtable.base.errors import ModelContextOverflowError

_CODES = {
    "context_length_exceeded",  # OpenAI, Azure, Groq
    "exceed_context_size_error",  # llama.cpp
    "context_window_exceeded",
    "request_too_large",  # Anthropic
    "1261",  # Zhipu
}
_SIZE_CODES = {"string_above_max_length", "array_above_max_length"}  # OpenAI: of a message, or of a tool's description

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
_BY_A_PROVIDER = re.compile(r"(?:openai|anthropic|google|langchain_(?:google|aws)|botocore|ollama|mistralai|cohere|groq)(?![a-z])")
_ENDED_IN_CONTEXT = "context size has been exceeded"  # llama.cpp's 500, met while it answers

_N = r"(\d[\d,_]{0,15})"
_LIMITS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\d\s*(?:tokens)?\s*>\s*{_N}",
        rf"range of input length should be \[\s*\d+\s*,\s*{_N}",
        rf"too large for model with {_N} maximum",
        rf"max(?:imum)? (?:(?:context|prompt|model|input|sequence) )?length(?: is| of|:)?\s*(?:only )?\(?{_N}(?! characters)",
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
    r"is too large: (\d+)|requested (\d+) output tokens|(\d+) (?:tokens )?(?:in|for) the (?:completion|output)|\d+ \+ (\d+) > \d"
    r"|(\d+) `max_new_tokens`"
)
LEAST_LIMIT, MOST_LIMIT = 256, 100_000_000
"""Tokens outside of which a number is no model's limit."""
WORDS_READ = 4_000
"""Characters of an error that are read: some servers repeat the prompt after their own words."""


@dataclass(frozen=True)
class ErrorDetails:
    """What a provider's exception says."""

    status: int | None
    names: frozenset[str]
    """Its codes and types."""
    param: str
    words: str
    n_ctx: object = None
    """The limit as llama.cpp gives it."""


def is_overflow(error: Exception) -> bool:
    """Return whether a provider says that the request is over its context.

    413 always is: whoever refuses a request for its size, a proxy too, may take a smaller one. Not an overflow: asking
    for more output than the context holds, which no shorter conversation helps; rate limits; a tool's long description.
    """
    if isinstance(error, ContextOverflowError | ModelContextOverflowError):
        return True
    told = error_details(error)
    if told.status == 413:
        return True
    if told.status == 500:
        return _ENDED_IN_CONTEXT in told.words.lower()
    if told.status not in (None, 400, 422) or _asks_too_much_output(told.words):
        return False
    if _CODES & told.names:
        return True
    if _SIZE_CODES & told.names:
        return told.param.startswith(("messages", "input")) and "tool_calls" not in told.param and ".name" not in told.param
    if told.status is None and not by_a_provider(error):
        return False
    return bool(_WORDS.search(told.words)) and not _NOT_CONTEXT.search(told.words)


def learned_limit(error: Exception) -> int | None:
    """Return the limit in tokens that an overflow error names, None when it names none; never the size that was asked for."""
    if not is_overflow(error):
        return None
    told = error_details(error)
    if _SIZE_CODES & told.names or _NOT_CONTEXT.search(told.words):
        return None  # characters, or tokens a minute
    if isinstance(told.n_ctx, int) and not isinstance(told.n_ctx, bool):
        return _plausible(told.n_ctx)
    return _limit_in(told.words)


def by_a_provider(error: Exception) -> bool:
    """Return whether an exception is of a provider's client, whatever it says."""
    return _BY_A_PROVIDER.match(type(error).__module__) is not None


def error_details(error: Exception) -> ErrorDetails:
    """Read status, codes, types, parameter and words off an exception or the error body it carries."""
    body = _body(error)
    codes = [getattr(error, "code", None), body.get("code"), body.get("Code"), getattr(error, "type", None), body.get("type")]
    words = str(error)[:WORDS_READ]
    for message in (body.get("message"), body.get("Message")):
        if isinstance(message, str) and message[:WORDS_READ] not in words:
            words += f": {message[:WORDS_READ]}"  # openai's exception has no words of an error that is a bare string
    return ErrorDetails(
        status=next(_statuses(error, body), None),
        names=frozenset(str(code) for code in codes if code is not None),
        param=str(getattr(error, "param", None) or body.get("param") or ""),
        words=words,
        n_ctx=body.get("n_ctx"),
    )


def _body(error: Exception) -> Mapping[str, Any]:
    """Return the error's body: openai's and anthropic's attribute, botocore's response, or the value LangChain raises."""
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
    told = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    told += [meta.get("HTTPStatusCode") if isinstance(meta, Mapping) else None, body.get("code")]
    if response is not None or hasattr(error, "body"):
        told.append(getattr(error, "code", None))  # Google's; elsewhere a number by this name may be anything
    yield from (int(each) for each in told if isinstance(each, int) and not isinstance(each, bool) and 400 <= each <= 599)


def _asks_too_much_output(words: str) -> bool:
    """Return whether the output asked for would not fit the context alone, whatever the input's size."""
    asked, limit = _OUTPUT_ASKED.search(words), _limit_in(words)
    return asked is not None and limit is not None and int(next(filter(None, asked.groups()))) >= limit


def _limit_in(words: str) -> int | None:
    for pattern in _LIMITS:
        if found := pattern.search(words):
            return _plausible(int(next(filter(None, found.groups())).replace(",", "").replace("_", "")))
    return None


def _plausible(limit: int) -> int | None:
    return limit if LEAST_LIMIT <= limit <= MOST_LIMIT else None
