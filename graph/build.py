"""Wire the conversation: nodes and edges, nothing else."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime

from longtable.graph.context import Context
from longtable.graph.errors import ConfigError
from longtable.graph.state import Input, State
from longtable.memory.fold import Strategy
from longtable.memory.limits import encoding_name, model_limit
from longtable.memory.policy import WINDOW, CompactionPolicy
from longtable.memory.rolling import Rolling
from longtable.memory.tokens import counter
from longtable.memory.topic_strategy import Topics
from longtable.nodes.compact import Compact
from longtable.nodes.estimate import Estimate
from longtable.nodes.folding import Folding
from longtable.nodes.ingest import Ingest
from longtable.nodes.prepare import Prepare
from longtable.nodes.prompts import system_prompt
from longtable.nodes.providers import with_usage
from longtable.nodes.respond import Respond
from longtable.nodes.route import after_estimate, after_ingest, after_respond, after_settle
from longtable.nodes.run_tools import RunTools
from longtable.nodes.settle import Settle
from longtable.tools.database import Database
from longtable.tools.recall_tool import recall_tool
from longtable.tools.toolset import database_tools

Update = dict[str, Any]
ConversationGraph = StateGraph[State, Context, Input, State]


def _now() -> datetime:
    return datetime.now(UTC)


def build_graph(
    *,
    model: BaseChatModel,
    database: Database | None = None,
    summarizer: BaseChatModel | None = None,
    tools: Sequence[BaseTool] = (),
    policy: CompactionPolicy | None = None,
    strategies: Sequence[Strategy] = (),
    recall: bool = True,
    summary_seconds: float = 120.0,
    clock: Callable[[], datetime] = _now,
) -> ConversationGraph:
    """Return the uncompiled graph; `graph.compile(checkpointer=..., store=...)` is the caller's.

    `database` brings its four tools, `recall` one that searches what was folded (or, for a model that calls no tools, a
    marker that asks for it); `tools` are further ones (a name given twice raises `ConfigError`). `summarizer`
    writes the summaries, in at most `summary_seconds` a call; without one a fallback does that needs no model.
    `strategies` are ways of writing memory besides "rolling", "topics" and "window", for `policy` to name. A model that
    cannot bind tools answers without them. The model's limit is looked up when a run starts: `Context.model_limit` may still set it.
    """
    toolset = [*(database_tools(database) if database else []), *([recall_tool()] if recall else []), *tools]
    by_name = {tool.name: tool for tool in toolset}
    if len(by_name) != len(toolset):
        raise ConfigError(f"two tools share a name: {', '.join(sorted(tool.name for tool in toolset))}")
    policy = policy or CompactionPolicy()
    built_in: list[Strategy] = [Rolling(), Topics()]
    known = {strategy.name: strategy for strategy in [*built_in, *strategies]}
    if policy.strategy not in {*known, WINDOW}:
        raise ConfigError(
            f"the policy asks for strategy {policy.strategy!r}, known are {', '.join(sorted({*known, WINDOW}))}: add it to strategies"
        )
    brief = _briefing(model, summarizer, database, toolset, policy)
    folding = Folding(summarizer, known, clock, summary_seconds)
    compact, prepare = Compact(folding), Prepare(folding)
    respond = Respond(_with_tools(with_usage(model), toolset), clock)
    run_tools = RunTools(by_name, clock)

    graph = StateGraph(State, context_schema=Context, input_schema=Input)
    graph.add_node("ingest", Ingest(brief, clock))
    graph.add_node("estimate", Estimate())
    graph.add_node("compact", _either(compact, compact.acall))
    graph.add_node("respond", _either(respond, respond.acall))
    graph.add_node("run_tools", _either(run_tools, run_tools.acall))
    graph.add_node("settle", Settle(clock))
    graph.add_node("prepare", _either(prepare, prepare.acall))
    graph.add_edge(START, "ingest")
    graph.add_conditional_edges("ingest", after_ingest)
    graph.add_conditional_edges("estimate", after_estimate)
    graph.add_edge("compact", "estimate")
    graph.add_conditional_edges("respond", after_respond)
    graph.add_edge("run_tools", "estimate")
    graph.add_conditional_edges("settle", after_settle)
    graph.add_edge("prepare", END)
    return graph


def _either(call: Callable[..., Update], acall: Callable[..., Awaitable[Update]]) -> RunnableLambda[State, Update]:
    """Return one node that serves both `invoke` and `ainvoke`."""

    def sync(state: State) -> Update:
        return call(state, runtime=_runtime())

    async def asynchronous(state: State) -> Update:
        return await acall(state, runtime=_runtime())

    return RunnableLambda(sync, asynchronous)


def _runtime() -> Runtime[Context]:
    return get_runtime(Context)


def _briefing(
    model: BaseChatModel, summarizer: BaseChatModel | None, database: Database | None, tools: Sequence[BaseTool], policy: CompactionPolicy
) -> Callable[[Context], Update]:
    """Return a function that says what surrounds each call of a run; tool definitions are counted once a process."""
    name = model_name(model)

    @cache
    def counted() -> tuple[str, int]:
        encoding = encoding_name(name) if not model_encoding(model) else model_encoding(model)
        return encoding, counter(encoding).tools([convert_to_openai_tool(tool) for tool in tools])

    def brief(context: Context) -> Update:
        encoding, tool_tokens = counted()
        limit = model_limit(name, setting=context.model_limit, profile=model.profile)
        return {
            "system": system_prompt(name=database.name if database else "", dialect=database.dialect if database else ""),
            "tool_tokens": tool_tokens,
            "model": name,
            "dialect": database.dialect if database else "",
            "limit": limit,
            "window": _window(summarizer, limit) if summarizer else None,
            "encoding": encoding,
            "policy": policy.as_json(),
        }

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


def _with_tools(model: BaseChatModel, tools: Sequence[BaseTool]) -> Runnable[LanguageModelInput, BaseMessage]:
    if not tools:
        return model
    try:
        return model.bind_tools(list(tools))
    except NotImplementedError:
        return model


def _window(summarizer: BaseChatModel, limit: int) -> int:
    """Return the summariser's input limit in tokens: its own where it is known, else that of the conversation's model."""
    try:
        return model_limit(model_name(summarizer), profile=summarizer.profile)
    except ConfigError:
        return limit
