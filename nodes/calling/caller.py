"""Make one model call with the run's settings. A call that fails is tried again if that may help,
and then made to the next model in line.
"""

import asyncio
import re
import time
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.types import StreamWriter

from longtable.base.concurrency import Execution
from longtable.base.context import Context
from longtable.base.errors import (
    ConfigError,
    ModelContextOverflowError,
    ProviderAuthError,
    ProviderError,
    ProviderQuotaError,
    ProviderRateLimitedError,
    ProviderUnavailableError,
)
from longtable.base.events import ModelFallback, ModelRetry
from longtable.memory.messages.call_reports import ReportedFallback
from longtable.memory.messages.reasoning import reasoning_sent, split_reasoning, without_reasoning
from longtable.memory.view import View
from longtable.nodes.calling.model_clients import client_packages, is_claude
from longtable.nodes.calling.prompt_cache import cache_key, cache_mark, sends_key, with_marks
from longtable.nodes.calling.provider_errors import provider_error
from longtable.nodes.telemetry import span, usage_fields

Settings = dict[str, Any]
"""Arguments of one call of a model."""
FIRST_WAIT = 0.5
MOST_WAIT = 30.0
"""`FIRST_WAIT`: seconds before the first retry. The wait doubles with each retry, up to
`MOST_WAIT`. If a provider asks to wait longer than `MOST_WAIT` and there is another model, that
model is asked.
"""
LAST_WAIT = 90.0
"""The longest wait, in seconds, that is accepted from the provider of the last model in line."""


@dataclass(frozen=True)
class Answerer:
    """One model that may answer.

    `model`: the model with its tools bound. `base`: the model as it was given, without tools.
    `with_pins`: the model with its tools and also `remember` and `forget`, None if there is none.
    """

    name: str
    model: Runnable[Any, BaseMessage]
    base: BaseChatModel
    with_pins: Runnable[Any, BaseMessage] | None = None
    retries: int = 0
    """Number of retries that the model's client would have made by itself, without telling anybody.
    """


def asked_once(model: BaseChatModel) -> tuple[BaseChatModel, int]:
    """Return the model with a client that makes no retries, and how many retries the client would
    have made.

    Retries are made in this module instead, so that users are told of the waits. This works only
    for the clients of OpenAI and Anthropic; any other model is returned unchanged.
    """
    modules = client_packages(model)
    client: Any = model
    if "langchain_anthropic" in modules and client.max_retries:
        once = model.model_copy(update={"max_retries": 0})
        for cached in ("_client", "_async_client", "_client_params"):
            vars(once).pop(cached, None)
        return once, int(client.max_retries)
    root = getattr(model, "root_client", None)
    root_async = getattr(model, "root_async_client", None)
    if "langchain_openai" not in modules or not root or not root_async or not root.max_retries:
        return model, 0
    one_try = root.with_options(max_retries=0)
    one_try_async = root_async.with_options(max_retries=0)
    clients = {
        "root_client": one_try,
        "root_async_client": one_try_async,
        "client": one_try.chat.completions,
        "async_client": one_try_async.chat.completions,
    }
    return model.model_copy(update={"max_retries": 0, **clients}), int(root.max_retries)


def without_tools(model: Runnable[Any, BaseMessage], names: Set[str]) -> Runnable[Any, BaseMessage]:
    """Return a model without those of its bound tools that have these names. Tools are recognised
    in the formats of OpenAI's and Anthropic's clients; tools in other formats stay.
    """
    if not names or not isinstance(model, RunnableBinding):
        return model
    bound = model.kwargs.get("tools", ())
    left = [
        tool
        for tool in bound
        if not (isinstance(tool, dict) and tool.get("function", tool).get("name") in names)
    ]
    return model.model_copy(update={"kwargs": {**model.kwargs, "tools": left}}) if left else model


class _TokenWatcher(BaseCallbackHandler):
    """Note whether any part of an answer has arrived. This is needed because clients raise the same
    errors before a stream begins and in the middle of it.
    """

    run_inline = True

    def __init__(self) -> None:
        self.any = False

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Do nothing. Without this method, LangChain would join all messages to one text and call
        `on_llm_start`.
        """

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.any = self.any or bool(token)


@dataclass
class Caller:
    """Make the model calls for one answer. `line`: the model and its fallbacks, in order.
    `answered`: the index in `line` of the model that is asked now, or answered last.
    """

    line: Sequence[Answerer]
    context: Context
    emit: StreamWriter
    about: dict[str, Any] = field(default_factory=dict)
    """Fields of the run for spans (telemetry)."""
    voice: str = ""
    """Id of the persona that is asked, "" without a team. The metadata of a stream holds it."""
    thread_id: str = ""
    answered: int = 0
    fallbacks: list[ReportedFallback] = field(default_factory=list, init=False)
    """The models that did not answer, each with the next in line."""
    _tries: int = field(default=0, init=False)
    _tokens: _TokenWatcher = field(default_factory=_TokenWatcher, init=False)

    @property
    def name(self) -> str:
        """Return the name of the model that answered, or failed last."""
        return self.line[self.answered].name

    @property
    def answering(self) -> bool:
        """Return whether any part of the newest answer has arrived."""
        return self._tokens.any

    async def call(self, view: View, how: Execution) -> BaseMessage:
        """Call the models in line until one answers, and return the answer. Raises the error of the
        last model in line if none answers.
        """
        self._tries = 0
        while True:
            # Who answered once in this answer goes on: a first model that is down is not asked
            # again for each part.
            answerer = self.line[self.answered]
            settings = self._settings(answerer)
            model, sent = self._request(answerer, view)
            config = self._config()
            try:
                with span(
                    "model",
                    answerer.name or "model",
                    {**self.about, "gen_ai.request.model": answerer.name},
                ) as fields:
                    answer = await how.call(
                        partial(model.invoke, sent, config, **settings),
                        partial(model.ainvoke, sent, config, **settings),
                    )
                    fields |= usage_fields(answer)
                return split_reasoning(answer, answerer.name)
            except Exception as error:
                seconds = self._wait(error)
            await how.call(partial(time.sleep, seconds), partial(asyncio.sleep, seconds))

    def _settings(self, answerer: Answerer) -> Settings:
        """Return the settings of this call, with the key of the thread's prompt cache."""
        settings = call_settings(self.context, answerer.base)
        if self.thread_id and sends_key(answerer.base, self.context.prompt_cache_key):
            settings["prompt_cache_key"] = cache_key(self.thread_id, self.voice)
        return settings

    def _request(
        self, answerer: Answerer, view: View
    ) -> tuple[Runnable[Any, BaseMessage], list[BaseMessage]]:
        """Return the model and the messages for it, with marks for its prompt cache if it takes
        them.
        """
        messages = _messages_for(answerer, view.messages)
        lifetime = self.context.prompt_cache
        if lifetime == "off" or not is_claude(answerer.base):
            return answerer.model, messages
        return with_marks(answerer.model, view, messages, cache_mark(lifetime))

    def _config(self) -> RunnableConfig:
        """Return the run's own config with the token watcher."""
        self._tokens.any = False
        metadata = {"voice": self.voice} if self.voice else {}
        return merge_configs(
            ensure_config(), RunnableConfig(callbacks=[self._tokens], metadata=metadata)
        )

    def _wait(self, error: Exception) -> float:
        """Return the seconds until the next try, with the same model or the next in line. Raise the
        error if there is no further try.

        There is no further try if a part of an answer has arrived: the person has seen that part,
        and a second answer would follow it.
        """
        known = provider_error(error, answering=self.answering)
        if known is None or isinstance(known, ModelContextOverflowError) or self.answering:
            raise error
        is_last = self.answered + 1 >= len(self.line)
        tries = self.context.max_retries + self.line[self.answered].retries
        longest = LAST_WAIT if is_last else MOST_WAIT
        wait = _pause(known, self._tries, longest) if self._tries < tries else None
        if wait is not None:
            self._tries += 1
            self.emit(
                ModelRetry(
                    type="model_retry",
                    model=self.name,
                    attempt=self._tries,
                    wait_s=wait,
                    code=known.code,
                )
            )
            return wait
        if is_last:
            raise error
        following = self.line[self.answered + 1].name
        fallback = ReportedFallback(model=self.name, fallback=following, code=known.code)
        self.fallbacks.append(fallback)
        self.emit(ModelFallback(type="model_fallback", **fallback))
        self.answered = self.answered + 1
        self._tries = 0
        return 0.0


def _messages_for(answerer: Answerer, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages for this model. Reasoning was added for the first model in line; it is
    removed if this model does not want it.
    """
    wants = reasoning_sent(answerer.name) != "never"
    return list(messages) if wants else [without_reasoning(message) for message in messages]


def _pause(error: ProviderError, tries: int, longest: float) -> float | None:
    """Return the seconds to wait before asking again. Return None if asking again cannot help, or
    if the provider asks to wait longer than `longest`.
    """
    if not isinstance(error, ProviderRateLimitedError | ProviderUnavailableError):
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= longest else None
    return min(MOST_WAIT, float(FIRST_WAIT * 2**tries))


DEFAULT_BUDGET = 4_096
"""Tokens of thinking for Anthropic's models if no budget is set; these models require one."""

_THINKING_TYPE = re.compile(r"deepseek|glm-|kimi-k2\.[5-9]|kimi-k[3-9]", re.IGNORECASE)
"""Names of models whose own servers take the parameter `thinking: {"type": ...}`."""
_OWN_HOSTS = re.compile(r"(?:^|\.)(?:deepseek\.com|bigmodel\.cn|z\.ai|moonshot\.(?:cn|ai))$")
_DASHSCOPE = re.compile(r"(?:^|\.)aliyuncs\.com$")
_OPENAI_NAMES = re.compile(r"^(?:gpt-|o\d)", re.IGNORECASE)


def call_settings(context: Context, model: BaseChatModel) -> Settings:
    """Return the arguments of each call of a model that follow from a run's settings. Raises
    `ConfigError` if the model's client does not support a setting.
    """
    settings: Settings = {} if context.temperature is None else {"temperature": context.temperature}
    names = [
        name
        for name in ("reasoning_effort", "thinking", "request_timeout")
        if getattr(context, name) is not None
    ]
    if not names:
        return settings
    modules = client_packages(model)
    if context.request_timeout is not None:
        settings["timeout"] = context.request_timeout
    if "langchain_openai" in modules:
        return {**settings, **_for_openai(context, model)}
    if "langchain_anthropic" in modules:
        return {**settings, **_for_anthropic(context)}
    raise ConfigError(
        f"Context.{names[0]} cannot be set for a run of {type(model).__name__}: set it where the"
        " model is made, or leave it at None",
        name=names[0],
        says="model_setting",
    )


def _for_openai(context: Context, model: BaseChatModel) -> Settings:
    """Return the arguments for a client of OpenAI's protocol. The setting `thinking`, which is not
    part of the protocol, is sent in the form that the model's server understands.
    """
    effort = context.reasoning_effort
    body = {} if context.thinking is None else _thinking_body(context.thinking, model)
    if context.thinking is False and not body and effort is None:
        effort = "none"
    extra = {"extra_body": {**(getattr(model, "extra_body", None) or {}), **body}} if body else {}
    return extra if effort is None else {**extra, "reasoning_effort": effort}


def _thinking_body(thinking: bool | int, model: BaseChatModel) -> Settings:
    name = str(getattr(model, "model_name", ""))
    url = getattr(model, "openai_api_base", None)
    host = ""
    with suppress(ValueError):  # no URL: the client says so
        host = (urlsplit(url).hostname or "") if isinstance(url, str) else ""
    on = thinking is not False
    by_type = bool(_OWN_HOSTS.search(host) and _THINKING_TYPE.search(name))
    budget = {} if isinstance(thinking, bool) else {"thinking_budget": thinking}
    if budget and (by_type or _OPENAI_NAMES.match(name)):
        raise ConfigError(
            f"Context.thinking: {name} takes no number of tokens, set True, False or"
            " Context.reasoning_effort",
            name="thinking",
            says="model_setting",
        )
    if _OPENAI_NAMES.match(name):
        return {}
    if _DASHSCOPE.search(host):
        return {"enable_thinking": on, **budget}
    if by_type:
        return {"thinking": {"type": "enabled" if on else "disabled"}}
    # vLLM, SGLang and llama.cpp hand it to the model's chat template; Qwen's, DeepSeek's and GLM's
    # read one of these two.
    return {"chat_template_kwargs": {"enable_thinking": on, "thinking": on}, **budget}


def _for_anthropic(context: Context) -> Settings:
    if context.reasoning_effort is not None:
        raise ConfigError(
            "Context.reasoning_effort: Anthropic's models take a number of tokens, set"
            " Context.thinking",
            name="reasoning_effort",
            says="model_setting",
        )
    if context.thinking is None:
        return {}
    tokens = DEFAULT_BUDGET if context.thinking is True else context.thinking
    return {
        "thinking": {"type": "enabled", "budget_tokens": tokens} if tokens else {"type": "disabled"}
    }


THINKS = re.compile(
    r"^(?:.*/)?(?:o\d|gpt-5(?!.*chat))|r1\b|reason|think|qwq|qwen-?3|glm-(?:4\.[5-9]|[5-9])|magistral|gpt-oss"
    r"|gemini-(?:2\.5|[3-9])",
    re.IGNORECASE,
)
"""Names of models that may think before they answer, and whose thinking counts among the tokens of
the answer.
"""
ROOM_TO_THINK = 4_096


ANSWER_TOKENS = ("max_tokens", "max_output_tokens", "num_predict")
"""The names of a client's field for the most tokens of an answer: in most clients, in Google's, and
in Ollama's.
"""


def bounded(model: BaseChatModel, tokens: int) -> BaseChatModel:
    """Return a copy of a model whose answers have at most `tokens` tokens of text. If the model's
    class has no field for this limit, return the model itself.

    The limit is set as a field, not as an argument of the call, because Ollama's client has no such
    argument.
    """
    field_name = next((name for name in ANSWER_TOKENS if name in type(model).model_fields), None)
    most = tokens + (ROOM_TO_THINK if THINKS.search(_model_name(model)) else 0)
    return model.model_copy(update={field_name: most}) if field_name else model


def summary_settings(context: Context, model: BaseChatModel) -> Settings:
    """Return the arguments of a call that writes a summary. They ask for little or no thinking.

    Only clients whose settings are known are given such arguments. A server that may not know a
    switch for thinking is sent none: if it refused the call, the summary would be lost.
    """
    modules = client_packages(model)
    name = _model_name(model)
    if "langchain_openai" in modules:
        if _OPENAI_NAMES.match(name):
            return {"reasoning_effort": "low"} if THINKS.search(name) else {}
        return {} if context.thinking is None else _for_openai(Context(thinking=False), model)
    thinks = context.thinking is not None or getattr(model, "thinking", None) is not None
    return {"thinking": {"type": "disabled"}} if thinks and "langchain_anthropic" in modules else {}


def _model_name(model: BaseChatModel) -> str:
    return str(getattr(model, "model_name", getattr(model, "model", "")))


LOCKED_OUT = (ProviderAuthError, ProviderQuotaError)
"""Errors about a key or an account. After such an error the next call would be refused as well."""
