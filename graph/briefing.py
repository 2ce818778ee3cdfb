"""What surrounds each call of a graph, as a thread keeps it: `brief`."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from longtable.base.context import Context
from longtable.base.errors import ConfigError
from longtable.graph.schema_briefing import schema_brief
from longtable.memory.limits import encoding_name, model_limit
from longtable.memory.policy import CompactionPolicy
from longtable.memory.tokens import counter
from longtable.nodes.prompts import system_prompt
from longtable.nodes.state import thread_of, turn_of
from longtable.tools.database import Database

SCHEMA_SHARE = 0.04
"""Share of the limit that the schema may take in the system prompt; the tools tell what does not fit."""

Brief = dict[str, Any]


def briefing(
    model: BaseChatModel,
    summarizer: BaseChatModel | None,
    database: Database | None,
    tools: Sequence[BaseTool],
    policy: CompactionPolicy,
    *,
    marker: bool,
) -> Callable[[Context, Mapping[str, Any]], tuple[Brief, dict[str, Any] | None]]:
    """Return a function that says what surrounds each call of a thread, and the mark of what changed of the database's schema.

    It is given the run's settings and the thread's values; tool definitions are counted once a process.
    """
    name = model_name(model)
    asked, dialect = (database.name, database.dialect) if database else ("", "")

    @cache
    def counted() -> tuple[str, int]:
        encoding = encoding_name(name) if not model_encoding(model) else model_encoding(model)
        return encoding, counter(encoding).tools([convert_to_openai_tool(tool) for tool in tools])

    def brief(context: Context, values: Mapping[str, Any]) -> tuple[Brief, dict[str, Any] | None]:
        encoding, tool_tokens = counted()
        limit = model_limit(name, setting=context.model_limit, profile=model.profile)
        about = {
            "system": system_prompt(name=asked, dialect=dialect, marker=marker, private=context.privacy == "types"),
            "tool_tokens": tool_tokens,
            "model": name,
            "dialect": dialect,
            "limit": limit,
            "window": _window(summarizer, limit) if summarizer else None,
            "encoding": encoding,
            "policy": policy.as_json(),
        }
        if database is None:
            return about, None
        schema, change = schema_brief(
            database,
            (values.get("brief") or {}).get("schema"),
            budget=int(limit * SCHEMA_SHARE),
            count=counter(encoding).text,
            messages=thread_of(values).messages,
            turn=turn_of(values).get("number", 0) + 1,
        )
        return ({**about, "schema": schema} if schema else about), change

    return brief


def model_name(model: BaseChatModel) -> str:
    """Return the name a model goes by at its provider, "" when it does not say."""
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str):
            return name
    return ""


def model_encoding(model: BaseChatModel) -> str:
    """Return the tiktoken encoding a model itself declares (attribute `encoding`), "" when it declares none."""
    encoding = getattr(model, "encoding", "")
    return encoding if isinstance(encoding, str) else ""


def _window(summarizer: BaseChatModel, limit: int) -> int:
    """Return the summariser's input limit in tokens: its own where it is known, else that of the conversation's model."""
    try:
        return model_limit(model_name(summarizer), profile=summarizer.profile)
    except ConfigError:
        return limit
