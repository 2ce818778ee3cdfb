"""A run's settings for its model, in the words of the model's own client: temperature, effort, thinking, timeout."""

import re
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

from longtable.base.context import Context
from longtable.base.errors import ConfigError

Settings = dict[str, Any]
DEFAULT_BUDGET = 4_096
"""Tokens of thinking where Anthropic's models are told to think and no budget is named; they insist on one."""

_THINKING_TYPE = re.compile(r"deepseek|glm-|kimi-k2\.[5-9]|kimi-k[3-9]", re.IGNORECASE)
"""Models whose own servers take `thinking: {"type": ...}`."""
_OWN_HOSTS = re.compile(r"(?:^|\.)(?:deepseek\.com|bigmodel\.cn|z\.ai|moonshot\.(?:cn|ai))$")
_DASHSCOPE = re.compile(r"(?:^|\.)aliyuncs\.com$")
_OPENAI_NAMES = re.compile(r"^(?:gpt-|o\d)", re.IGNORECASE)


def call_settings(context: Context, model: BaseChatModel) -> Settings:
    """Return what goes with each call of a model. Raises `ConfigError` for a setting the model has no way to take."""
    settings: Settings = {} if context.temperature is None else {"temperature": context.temperature}
    family = _family(model)
    asked = [name for name in ("reasoning_effort", "thinking", "thinking_budget", "request_timeout") if getattr(context, name) is not None]
    if not asked:
        return settings
    if family == "openai":
        return {**settings, **_for_openai(context, model)}
    if family == "anthropic":
        return {**settings, **_for_anthropic(context)}
    raise ConfigError(
        f"Context.{asked[0]} cannot be set for a run of {type(model).__name__}: set it where the model is made, or leave it at None"
    )


def _for_openai(context: Context, model: BaseChatModel) -> Settings:
    """Return the settings of OpenAI's protocol; what is not part of it goes as the servers of each model take it."""
    settings: Settings = {}
    if context.request_timeout is not None:
        settings["timeout"] = context.request_timeout
    if context.reasoning_effort is not None:
        settings["reasoning_effort"] = context.reasoning_effort
    body = _thinking_body(context, model)
    if body:
        settings["extra_body"] = {**(getattr(model, "extra_body", None) or {}), **body}
    elif context.thinking is False and context.reasoning_effort is None:
        settings["reasoning_effort"] = "none"
    return settings


def _thinking_body(context: Context, model: BaseChatModel) -> Settings:
    if context.thinking is None and context.thinking_budget is None:
        return {}
    name, host = str(getattr(model, "model_name", "")), _host(model)
    on = context.thinking is not False
    by_type = bool(_OWN_HOSTS.search(host) and _THINKING_TYPE.search(name))
    if context.thinking_budget is not None and (by_type or _OPENAI_NAMES.match(name)):
        raise ConfigError(f"Context.thinking_budget: {name} takes no budget, set Context.reasoning_effort or Context.thinking")
    if _OPENAI_NAMES.match(name):
        return {}
    budget = {} if context.thinking_budget is None else {"thinking_budget": context.thinking_budget}
    if _DASHSCOPE.search(host):
        return {"enable_thinking": on, **budget}
    if by_type:
        return {"thinking": {"type": "enabled" if on else "disabled"}}
    # vLLM, SGLang and llama.cpp hand it to the model's chat template; Qwen's, DeepSeek's and GLM's read one of these two.
    return {"chat_template_kwargs": {"enable_thinking": on, "thinking": on}, **budget}


def _for_anthropic(context: Context) -> Settings:
    settings: Settings = {} if context.request_timeout is None else {"timeout": context.request_timeout}
    if context.reasoning_effort is not None:
        raise ConfigError("Context.reasoning_effort: Anthropic's models take a budget, set Context.thinking_budget")
    if context.thinking is False:
        settings["thinking"] = {"type": "disabled"}
    elif context.thinking or context.thinking_budget is not None:
        settings["thinking"] = {"type": "enabled", "budget_tokens": context.thinking_budget or DEFAULT_BUDGET}
    return settings


def _family(model: BaseChatModel) -> str:
    """Return whose client a model is, by the modules of its classes; its package is not imported."""
    modules = {cls.__module__.partition(".")[0] for cls in type(model).__mro__}
    return next((family for family in ("openai", "anthropic") if f"langchain_{family}" in modules), "")


def _host(model: BaseChatModel) -> str:
    url = getattr(model, "openai_api_base", None)
    try:
        return urlsplit(url).hostname or "" if isinstance(url, str) else ""
    except ValueError:  # no URL: the client says so
        return ""
