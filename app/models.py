"""Open models by name: the built-in analyst, a model of a provider, or a model of the settings
file.
"""

import re
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from longtable.app.settings.run_settings import Settings, key_for
from longtable.app.settings.settings_tables import CODE, SAME
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


def open_model(
    name: str | None, *, base_url: str | None = None, option: str = "--model"
) -> "BaseChatModel":
    """Return the chat model. If `name` and `base_url` are both None, this is the built-in analyst.
    Raises `ConfigError`, which says what to install or to set.
    """
    if base_url:
        return _endpoint(name, base_url, option)
    if not name:
        from longtable.analyst.model import BuiltInAnalyst

        return BuiltInAnalyst()
    return _provider_model(name, option)


def named_model(settings: Settings, name: str) -> "BaseChatModel":
    """Return the model that the table `[models.NAME]` describes. Raises `ConfigError` if it cannot
    be opened.

    If the table has a URL but names no variable for a key, no key is sent, because the key in the
    environment may be meant for another server.
    """
    table = settings.models[name]
    key = _key_in(table.api_key_env, name)
    model = table.model or name
    if table.provider == "openai" and table.base_url:
        return _endpoint(model, table.base_url, f"models.{name}", key or PLACEHOLDER_KEY)
    places = {"base_url": table.base_url, "api_key": key}
    options = {place: value for place, value in places.items() if value}
    return _provider_model(f"{table.provider}:{model}", f"models.{name}", **options)


def _key_in(variable: str | None, name: str) -> str | None:
    """Return the key in an environment variable, None if `variable` is None. Raises `ConfigError`
    if the variable is not set.
    """
    key = key_for(variable) if variable else None
    if variable and not key:
        raise ConfigError(f"models.{name}: set the environment variable {variable} to its key")
    return key


def opened_model(
    settings: Settings, name: str | None, base_url: str | None, option: str
) -> "BaseChatModel":
    """Return the model of the table `[models.NAME]` if there is one; otherwise the model that the
    name itself describes.
    """
    if name in settings.models:
        return named_model(settings, str(name))
    return open_model(name, base_url=base_url, option=option)


def summarizer_named(settings: Settings) -> "BaseChatModel | Literal[False] | None":
    name = settings.summarizer.name
    if name in settings.models:
        return named_model(settings, str(name))
    option = settings.name_of("summarizer.name", "--summarizer")
    return open_summarizer(name, base_url=settings.model.base_url, option=option)


def open_summarizer(
    name: str | None, *, base_url: str | None = None, option: str = "--summarizer"
) -> "BaseChatModel | Literal[False] | None":
    """Return the argument `summarizer` of `build_graph`: None for the model that answers, False for
    code, otherwise the named model.

    With `base_url`, the named model is on that server, as in `open_model`.
    """
    if name in (None, SAME):
        return None
    return False if name == CODE else open_model(name, base_url=base_url, option=option)


def model_label(settings: Settings) -> str:
    """Return the text that tells people which model answers, and which model writes the summaries
    if it is another one. Only the host of a URL is shown, because a URL may contain a password.
    """
    model = settings.model
    summarizer = settings.summarizer.name
    named = settings.models.get(model.name or "")
    url = named.base_url if named else model.base_url
    at = f" at {urlsplit(url).hostname}" if url else ""
    writer = f" (summaries: {summarizer}{at})" if summarizer not in (None, SAME, CODE) else ""
    return f"{model.name or BUILT_IN}{at}{writer}"


def _endpoint(
    name: str | None, base_url: str, option: str, own_key: str | None = None
) -> "BaseChatModel":
    bare = (name or "").removeprefix("openai:")
    if not bare:
        raise ConfigError(f"{option} must name a model at the base URL, as in llama3.1")
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    shared = key_for(*KEY_VARIABLES) if own_key is None else own_key
    key = SecretStr(shared or PLACEHOLDER_KEY)
    # Without stream_usage, streaming from a base_url of one's own reports no tokens.
    return ChatOpenAI(
        model=bare,
        base_url=base_url,
        api_key=key,
        stream_usage=True,
        timeout=TIMEOUT_SECONDS,
        max_retries=MAX_RETRIES,
    )


def _provider_model(name: str, option: str, **places: str) -> "BaseChatModel":
    provider, colon, bare = name.partition(":")
    if not colon or not provider or not bare:
        raise ConfigError(
            f"{option} must be provider:name, as in openai:gpt-4o-mini, found {name!r} (or add"
            " --base-url for a server of your own)"
        )
    from langchain.chat_models import init_chat_model

    try:
        return cast(
            "BaseChatModel",
            init_chat_model(bare, model_provider=provider, **cast("Any", places)),
        )
    except Exception as error:  # each provider's package raises its own; the user gets one sentence
        raise ConfigError(
            f"{option} {name} cannot be opened: {_what_to_do(error, provider)}"
        ) from error


def _what_to_do(error: Exception, provider: str) -> str:
    """Return advice on what to do about an error of LangChain or of a provider's client. The advice
    depends on the error's text, but the text itself is never shown.
    """
    text = str(error)
    if isinstance(error, ImportError):
        package = _PACKAGE.search(text)
        return f"run `{pip_install(package.group(1) if package else 'langchain-' + provider.replace('_', '-'))}`"
    if text.startswith("Unsupported provider"):
        return (
            f"there is no provider {provider!r}; use one that LangChain knows, as in"
            " openai:gpt-4o-mini"
        )
    unset = [variable for variable in _VARIABLE.findall(text) if not key_for(variable)]
    if unset:
        return f"its key is missing; set the environment variable {unset[0]}"
    return f"check the provider's settings and the model's name ({type(error).__name__})"
