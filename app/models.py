"""Open the model a user names: the built-in analyst, `provider:model`, or any OpenAI-compatible endpoint."""

import re
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from longtable.app.settings import CODE, SAME, check_base_url, key_for
from longtable.base.errors import ConfigError
from longtable.base.extras import pip_install

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

BUILT_IN = "built-in analyst"
KEY_VARIABLES = ("LONGTABLE_API_KEY", "OPENAI_API_KEY")
PLACEHOLDER_KEY = "no-key"  # local servers ask for none, but the client insists on one
TIMEOUT_SECONDS = 120.0
MAX_RETRIES = 1  # a person waits in front of it; the turn can be asked again

_PACKAGE = re.compile(r"pip install (?:-U )?([\w.-]+)")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")


def open_model(name: str | None, *, base_url: str | None = None, option: str = "--model") -> "BaseChatModel":
    """Return the chat model; None for both is the built-in analyst. Raises `ConfigError` that says what to install or set."""
    if base_url:
        check_base_url(base_url)
        return _endpoint(name, base_url)
    if not name:
        from longtable.analyst.model import BuiltInAnalyst

        return BuiltInAnalyst()
    return _named(name, option)


def open_summarizer(name: str | None, *, base_url: str | None = None) -> "BaseChatModel | Literal[False] | None":
    """Return the `summarizer` of `build_graph`: None for the model that answers, False for code, else the model of that name.

    With `base_url` it is a model there, as `open_model` says.
    """
    if name in (None, "", SAME):
        return None
    return False if name == CODE else open_model(name, base_url=base_url, option="--summarizer")


def model_label(name: str | None, base_url: str | None = None) -> str:
    """Return how to call the model towards the user."""
    if not name and not base_url:
        return BUILT_IN
    # The host alone: a URL may hold a password.
    return f"{name} at {urlsplit(base_url).hostname}" if base_url else str(name)


def _endpoint(name: str | None, base_url: str) -> "BaseChatModel":
    bare = (name or "").removeprefix("openai:")
    if not bare:
        raise ConfigError("--base-url needs the name of a model there: add --model NAME")
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    key = SecretStr(key_for(*KEY_VARIABLES) or PLACEHOLDER_KEY)
    # Without stream_usage, streaming from a base_url of one's own reports no tokens.
    return ChatOpenAI(model=bare, base_url=base_url, api_key=key, stream_usage=True, timeout=TIMEOUT_SECONDS, max_retries=MAX_RETRIES)


def _named(name: str, option: str) -> "BaseChatModel":
    provider, colon, bare = name.partition(":")
    if not colon or not provider or not bare:
        raise ConfigError(
            f"{option} must be provider:name, as in openai:gpt-4o-mini, found {name!r} (or add --base-url for a server of your own)"
        )
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(bare, model_provider=provider)
    except Exception as error:  # each provider's package raises its own; the user gets one sentence
        raise ConfigError(f"{option} {name} cannot be opened: {_advice(error, provider)}") from error


def _advice(error: Exception, provider: str) -> str:
    """Return what to do, read off the words of langchain and of the provider's client; never the words themselves."""
    told = str(error)
    if isinstance(error, ImportError):
        package = _PACKAGE.search(told)
        return f"run `{pip_install(package.group(1) if package else 'langchain-' + provider.replace('_', '-'))}`"
    if told.startswith("Unsupported provider"):
        return f"there is no provider {provider!r}; use one that LangChain knows, as in openai:gpt-4o-mini"
    unset = [variable for variable in _VARIABLE.findall(told) if not key_for(variable)]
    if unset:
        return f"its key is missing; set the environment variable {unset[0]}"
    return f"check the provider's settings and the model's name ({type(error).__name__})"
