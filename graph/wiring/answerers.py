"""The models that answer in a conversation, and the tools that each voice is offered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from longtable.base.errors import ConfigError
from longtable.nodes.calling.caller import Answerer, asked_once
from longtable.nodes.calling.marker_filter import MarkerFilter
from longtable.nodes.calling.provider_errors import with_usage
from longtable.nodes.calling.thinking import with_reasoning_kept
from longtable.nodes.team.team import Team, persona_tools
from longtable.tools.check_tool import CHECK_SQL
from longtable.tools.pin_tools import PIN_NAMES, pin_tools
from longtable.tools.several.databases import Databases
from longtable.tools.several.several_tools import check_tool_of


def model_name(model: BaseChatModel) -> str:
    """Return the name that a model has at its provider, "" if the model does not tell it."""
    for attribute in ("model_name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str):
            return name
    return ""


def prepared(model: BaseChatModel) -> BaseChatModel:
    """Return the model wrapped so that it reports usage and keeps its reasoning."""
    return with_reasoning_kept(with_usage(model))


def summary_writer(
    model: BaseChatModel, summarizer: BaseChatModel | Literal[False] | None
) -> BaseChatModel | None:
    """Return the model that writes summaries, None if code writes them. Raises `ConfigError` if
    `summarizer` is not a model, None or False.
    """
    if summarizer is None:
        return model if getattr(model, "writes_summaries", True) else None
    if summarizer is not False and not isinstance(summarizer, BaseChatModel):
        raise ConfigError(
            "summarizer must be a chat model, None (the conversation's model writes summaries) or"
            f" False (code does), found {type(summarizer).__name__}"
        )
    return summarizer or None


@dataclass(frozen=True)
class ToolOffer:
    """The tools of a graph, and which of them each voice is offered."""

    all: Sequence[BaseTool]
    tools: Sequence[BaseTool]
    """The tools that are offered without a team; empty if the model cannot call tools."""
    pinning: Sequence[BaseTool]
    """The tools `remember` and `forget`, if they are offered."""
    marker: bool
    """Whether the model cannot call tools, so that it asks for earlier messages by a marker in its
    text.
    """
    by_persona: Mapping[str, Sequence[BaseTool]] = field(default_factory=dict)
    """The tools of each persona, without the tools for pins."""

    def of(self, persona: str) -> Sequence[BaseTool]:
        """Return the tools of a persona. "" stands for the only voice of a graph without a team."""
        return self.by_persona.get(persona, self.tools)

    def definitions(self, persona: str = "", *, pinning: bool) -> list[dict[str, Any]]:
        """Return the definitions of a persona's tools as its model is told of them, in OpenAI's
        form. `pinning`: whether the tools for pins go with its calls.
        """
        offered = [*self.of(persona), *(self.pinning if pinning else ())]
        return [convert_to_openai_tool(tool) for tool in offered]

    @property
    def by_name(self) -> dict[str, BaseTool]:
        """Return every tool that may be called, by name."""
        of_personas = chain.from_iterable(self.by_persona.values())
        return {tool.name: tool for tool in [*self.all, *self.pinning, *of_personas]}

    @property
    def names_of(self) -> dict[str, set[str]]:
        """Return the names of the tools that each persona may call."""
        pins = {tool.name for tool in self.pinning}
        return {
            persona: pins.union(map(attrgetter("name"), tools))
            for persona, tools in self.by_persona.items()
        }


def tool_offer(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    databases: Databases | None,
    recall: bool,
    pins: bool | None,
    team: Team | None,
) -> ToolOffer:
    """Return which of these tools each voice is offered. `check_sql` is added if a persona names
    it. Raises `ConfigError` if two tools have the same name.
    """
    personas = team.personas.values() if team else ()
    names = [tool.name for tool in tools]
    named = {*chain.from_iterable(persona.tools or () for persona in personas)}
    if databases and CHECK_SQL in named - {*names}:
        tools = [*tools, check_tool_of(databases)]
    if len({*names}) != len(names):
        raise ConfigError(f"two tools share a name: {', '.join(sorted(names))}")
    if pins is None:
        pins = getattr(model, "writes_summaries", True) and {*names}.isdisjoint(PIN_NAMES)
    calls_tools = with_tools(prepared(model), tools)[1]
    offered = tools if calls_tools else []
    return ToolOffer(
        tools,
        offered,
        pin_tools() if pins and calls_tools else [],
        recall and not calls_tools,
        {persona.id: persona_tools(persona, team, offered) for persona in personas} if team else {},
    )


def answerer_lines(
    models: Mapping[str, BaseChatModel],
    fallbacks: Sequence[BaseChatModel],
    offer: ToolOffer,
    team: Team | None,
) -> dict[tuple[str, str], list[Answerer]]:
    """Return the models that answer, by persona and by the name with which a run chooses the model.
    Without a team, the persona is "". Each list holds the model itself, and then the models that
    answer if the previous one fails.
    """

    def answerer(model: BaseChatModel, persona: str) -> Answerer:
        once, retries = asked_once(model)
        tools = offer.of(persona)
        run = prepared(once)
        bound = with_tools(run, tools)[0]
        pins = offer.pinning and (not team or team.personas[persona].tools is None)
        return Answerer(
            model_name(model),
            MarkerFilter(inner=bound) if offer.marker else bound,
            run,
            with_tools(run, [*tools, *offer.pinning])[0] if pins else None,
            retries,
        )

    lines: dict[tuple[str, str], list[Answerer]] = {}
    for persona in team.personas if team else [""]:
        own = team.personas[persona].model if team else None
        for name, model in models.items():
            line = (own or model, *fallbacks)
            lines[persona, name] = [answerer(each, persona) for each in line]
    return lines


def with_tools(
    model: BaseChatModel, tools: Sequence[BaseTool]
) -> tuple[Runnable[LanguageModelInput, BaseMessage], bool]:
    """Return the model with its tools, and whether the model can take tools."""
    try:
        return (model.bind_tools(list(tools)) if tools else model), True
    except NotImplementedError:
        return model, False
