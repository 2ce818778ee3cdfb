"""Tell which provider's client a chat model is, without importing any provider's package."""

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

CLAUDE_ON_VERTEX = "ChatAnthropicVertex"
"""A class of `langchain-google-vertexai`. It takes the same content blocks as Anthropic's client,
but is not a subclass of that client.
"""


def client_packages(model: BaseChatModel) -> set[str]:
    """Return the top-level packages of a model's class and its base classes, such as
    "langchain_openai".
    """
    return {cls.__module__.partition(".")[0] for cls in type(model).__mro__}


def is_claude(model: BaseChatModel) -> bool:
    """Return whether a model is Claude through `langchain-anthropic`: on Anthropic's own API, on
    Bedrock, or on Vertex.
    """
    names = {cls.__name__ for cls in type(model).__mro__}
    return "langchain_anthropic" in client_packages(model) or CLAUDE_ON_VERTEX in names


def is_openai_protocol(model: BaseChatModel) -> bool:
    """Return whether a model is called through `langchain-openai`, whatever its server is."""
    return "langchain_openai" in client_packages(model)


def server_host(model: BaseChatModel) -> str:
    """Return the host that a model's OpenAI client calls, "" if it is not known."""
    client: Any = getattr(model, "root_client", None)
    with suppress(ValueError):  # no URL: the client says so when it is used
        return urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    return ""
