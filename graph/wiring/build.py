"""Wire the nodes and edges of the conversation, nothing else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Never

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from longtable.base.context import Context, RequestLimits
from longtable.base.errors import ConfigError, check_type
from longtable.graph.wiring.answerers import (
    ToolOffer,
    answerer_lines,
    model_name,
    prepared,
    summary_writer,
    tool_offer,
)
from longtable.graph.wiring.build_options import (
    Hook,
    Hooks,
    Limits,
    MemoryTools,
    Summarizer,
    check_no_old_arguments,
    hooks_by_kind,
)
from longtable.graph.wiring.call_setup import ConfigSource
from longtable.graph.wiring.editing import Editable
from longtable.graph.wiring.row_sources import row_source
from longtable.graph.wiring.step import Counting, Node, Step
from longtable.memory.compaction.compaction import Strategy
from longtable.memory.compaction.rolling import Rolling
from longtable.memory.policy import WINDOW, CompactionPolicy
from longtable.memory.topics.strategy import Topics
from longtable.nodes.approve import Approve, Gate
from longtable.nodes.calling.context_providers import ContextProviders
from longtable.nodes.compact import Compact, Compactor, Writer
from longtable.nodes.estimate import CallPlans, Estimate
from longtable.nodes.ingest import Ingest
from longtable.nodes.prepare import Prepare
from longtable.nodes.respond import Respond
from longtable.nodes.route import (
    after_estimate,
    after_ingest,
    after_respond,
    after_run_tools,
    after_settle,
    counts_after_ingest,
    counts_after_run_tools,
    counts_after_settle,
)
from longtable.nodes.run_tools import RunTools
from longtable.nodes.settle import Settle
from longtable.nodes.state import (
    Input,
    State,
)
from longtable.nodes.team.at_once import AtOnce
from longtable.nodes.team.team import Team
from longtable.nodes.tooling.audit import Audit
from longtable.nodes.tooling.recall import Indexes
from longtable.tools.charts.chart_tool import chart_tool
from longtable.tools.database import Database
from longtable.tools.fetch import fetch_tool
from longtable.tools.memory_tools import recall_tool
from longtable.tools.row_access import ReadParameters, RowSource
from longtable.tools.several.databases import Databases
from longtable.tools.several.several_tools import tools_of

if TYPE_CHECKING:
    from longtable.graph.wiring.knowledge_provider import KnowledgeProvider
    from longtable.knowledge.folder import KnowledgeFolder
    from longtable.tools.results.result_store import ResultStore

ConversationGraph = StateGraph[State, Context, Input, State]
OPTIONAL_KINDS: Mapping[str, type] = {
    "policy": CompactionPolicy,
    "team": Team,
}
"""The types of those arguments of `build_graph` that may also be None."""


@dataclass(frozen=True)
class _Wiring:
    """A node, and a count of the next call if the node makes one at its end."""

    node: Node
    counting: Counting | None = None


def _now() -> datetime:
    return datetime.now(UTC)


def build_graph(
    *,
    model: BaseChatModel,
    database: Database | Mapping[str, Database] | None = None,
    tools: Sequence[BaseTool] = (),
    team: Team | None = None,
    summarizer: Summarizer | BaseChatModel | Literal[False] | None = None,
    policy: CompactionPolicy | None = None,
    memory_tools: MemoryTools | None = None,
    results: "ResultStore | None" = None,
    models: Mapping[str, BaseChatModel] | None = None,
    fallbacks: Sequence[BaseChatModel] = (),
    hooks: Sequence[Hook] = (),
    limits: Limits | None = None,
    operator: Context | None = None,
    row_parameters: ReadParameters | None = None,
    clock: Callable[[], datetime] = _now,
    **old: Never,
) -> ConversationGraph:
    """Return the uncompiled graph. The caller compiles it: `graph.compile(checkpointer=...,
    store=...)`.

    Args:
        model: The model that answers. Its limit is looked up when a run starts, unless
            `Context.model_limit` sets it. A model that cannot bind tools answers without them.
        database: The database to ask, which brings its own tools; or several, by name. A call of a
            tool then names the database that it asks, and what is kept of it says which one it was.
            Records without a name, of a thread that began with one database, mean the first.
        tools: Further tools. Two tools with the same name raise `ConfigError`.
        team: The personas that answer, and their mode; None for a single voice. If a persona names
            check_sql, this tool is offered to it.
        summarizer: Who writes the summaries: None for `model`, False for code, another model, or a
            `Summarizer`, which also sets a time limit and a prompt.
        policy: When and how the conversation is compacted.
        memory_tools: Whether the model may recall original messages, and pin statements.
        results: Where whole results are kept. The model is told their handles, for `fetch_result`,
            `show_chart` and `Conversation.result`.
        models: Models that a run may choose by name instead of `model` (`Context.model`). With
            `summarizer=None` each of them writes its own summaries.
        fallbacks: Models that answer, in this order, if the model before them fails before its
            answer begins.
        hooks: Each is a `ContextProvider` (material for the calls of one turn, which is not kept),
            a strategy (a way of writing memory, which `policy` names), `ArchiveFiles` (files
            written before each compaction), a `Footer` below the answers, or a `KnowledgeFolder`
            (what the data's owner teaches).
        limits: How many turns an owner may begin, how large a request may be, and which queries
            are costly.
        operator: Settings that the context of a run cannot loosen (`Context.within`), for servers
            whose clients send the context. So that a `Conversation` shows the same views as such
            a run, give it `context.within(operator)`.
        row_parameters: Function that returns, for the owner of a run, the values of the parameters
            in the database's row filters (`TablePolicy.row_filters`). It is asked once a turn. A
            server passes the user whom it authenticated, never a name that a client's context or a
            model gives; without such a user the owner is None. A query that needs a parameter which
            is missing is refused.
        clock: Returns the current time.
        old: Arguments of earlier versions. Each raises `ConfigError` with its replacement.
    """
    check_no_old_arguments([*old])
    _check_types(model, tools, policy=policy, team=team)
    databases = _databases(database)
    writer = summarizer if isinstance(summarizer, Summarizer) else Summarizer(model=summarizer)
    memory_tools = memory_tools or MemoryTools()
    limits = limits or Limits()
    policy = policy or CompactionPolicy()
    by_kind = hooks_by_kind(hooks)
    folder = by_kind.knowledge
    knowledge = _knowledge_provider(folder, databases) if folder else None
    taught = [knowledge.tool()] if knowledge else []
    offered_models = {**(models or {}), "": model}
    parts = _Parts(
        models=offered_models,
        fallbacks=fallbacks,
        databases=databases,
        team=team,
        policy=policy,
        summarizer=writer,
        writers={name: summary_writer(each, writer.model) for name, each in offered_models.items()},
        offer=_offer(model, [*taught, *tools], databases, results, memory_tools, team),
        results=results,
        hooks=by_kind,
        knowledge=knowledge,
        limits=limits,
        clock=clock,
    )
    rows = row_source(databases, row_parameters)
    return _wired(operator or Context(), _nodes(parts), parts.offer, rows)


def _databases(database: object) -> Databases | None:
    if isinstance(database, Database | Mapping):
        return Databases.of(database)
    check_type("database", database, Database, optional=True)
    return None


def _knowledge_provider(
    folder: "KnowledgeFolder", databases: Databases | None
) -> "KnowledgeProvider":
    # It loads the parser, which a process without a knowledge folder does not need.
    from longtable.graph.wiring.knowledge_provider import KnowledgeProvider

    return KnowledgeProvider(folder, databases)


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The parts that the nodes are made from."""

    models: Mapping[str, BaseChatModel]
    """The models by the name with which a run may choose one; "" is the name of the graph's own
    model.
    """
    fallbacks: Sequence[BaseChatModel]
    databases: Databases | None
    team: Team | None
    policy: CompactionPolicy
    summarizer: Summarizer
    writers: Mapping[str, BaseChatModel | None]
    """For each model, the model that writes the summaries of its conversations. None means that
    code writes them.
    """
    offer: ToolOffer
    results: "ResultStore | None"
    hooks: Hooks
    knowledge: "KnowledgeProvider | None"
    limits: Limits
    clock: Callable[[], datetime]
    indexes: Indexes = field(default_factory=Indexes)

    @cached_property
    def plans(self) -> CallPlans:
        """Return the plans of calls, which all nodes share."""
        return CallPlans(self.team)


def _offer(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    databases: Databases | None,
    results: "ResultStore | None",
    memory_tools: MemoryTools,
    team: Team | None,
) -> ToolOffer:
    """Return the tools of the graph, and which of them each voice is offered."""
    known: list[BaseTool] = []
    if databases:
        known += tools_of(databases, keeps_results=results is not None)
    if memory_tools.recall:
        known.append(recall_tool())
    if results is not None:
        known += [fetch_tool(), chart_tool()]
    return tool_offer(
        model,
        [*known, *tools],
        databases=databases,
        recall=memory_tools.recall,
        pins=memory_tools.pins,
        team=team,
    )


def _nodes(parts: _Parts) -> dict[str, _Wiring]:
    """Return the nodes by name. Some of them count the next call at their end."""
    team = parts.team
    compactor = _compactor(parts)
    estimate = Estimate(parts.clock, parts.plans)
    respond = _respond(parts)
    run_tools = _run_tools(parts)
    answering = AtOnce(team, respond, run_tools, estimate.count) if team else respond
    footer = parts.hooks.footer.text if parts.hooks.footer else None
    settle = Settle(parts.clock, parts.plans, parts.results, team=team, footer=footer)
    return {
        "ingest": _Wiring(_ingest(parts), Counting(estimate.count, counts_after_ingest)),
        "estimate": _Wiring(estimate),
        "compact": _Wiring(Compact(compactor)),
        "respond": _Wiring(answering),
        "run_tools": _Wiring(run_tools, Counting(estimate, counts_after_run_tools)),
        "approve": _Wiring(Approve()),
        "settle": _Wiring(settle, Counting(estimate, counts_after_settle)),
        "prepare": _Wiring(Prepare(compactor)),
    }


def _ingest(parts: _Parts) -> Ingest:
    source = ConfigSource(
        models=parts.models,
        summarizers=parts.writers,
        databases=parts.databases,
        offer=parts.offer,
        policy=parts.policy,
        team=parts.team,
    )
    return Ingest(
        source.config,
        parts.clock,
        parts.limits.rate,
        parts.limits.request or RequestLimits(),
        parts.team,
        parts.plans.readings,
    )


def _compactor(parts: _Parts) -> Compactor:
    writers: dict[str, Writer] = {}
    for name, model in parts.writers.items():
        writers[name] = Writer(prepared(model), model_name(model)) if model else Writer(None)
    return Compactor(
        writers,
        _known_strategies(parts.hooks.strategies, parts.policy, parts.team),
        parts.clock,
        parts.plans,
        parts.summarizer.seconds,
        parts.hooks.archive,
        parts.summarizer.prompt,
    )


def _respond(parts: _Parts) -> Respond:
    providers = [*parts.hooks.providers]
    if parts.knowledge:
        providers.append(parts.knowledge.provider())
    return Respond(
        answerer_lines(parts.models, parts.fallbacks, parts.offer, parts.team),
        parts.clock,
        parts.indexes,
        parts.plans,
        ContextProviders(tuple(providers)),
        parts.limits.rate,
        parts.team,
    )


def _run_tools(parts: _Parts) -> RunTools:
    databases = parts.databases
    return RunTools(
        parts.offer.by_name,
        parts.clock,
        parts.indexes,
        Audit(parts.clock, databases.check if databases else None),
        parts.plans,
        parts.results,
        Gate(databases, parts.limits.cost_of(databases)) if databases else None,
        parts.offer.names_of,
        parts.team,
        parts.knowledge.verified if parts.knowledge else None,
    )


def _check_types(model: object, tools: Sequence[object], **others: object) -> None:
    check_type("model", model, BaseChatModel)
    for tool in tools:
        check_type("each of tools", tool, BaseTool)
    for name, value in others.items():
        check_type(name, value, OPTIONAL_KINDS[name], optional=True)


def _known_strategies(
    strategies: Sequence[Strategy], policy: CompactionPolicy, team: Team | None
) -> dict[str, Strategy]:
    """Return the strategies by name. Raises `ConfigError` if a policy names an unknown strategy."""
    built_in: list[Strategy] = [Rolling(), Topics()]
    known = {strategy.name: strategy for strategy in [*built_in, *strategies]}
    of_mode = team.mode.policy if team else None
    for each in filter(None, (policy, of_mode)):
        if each.strategy not in {*known, WINDOW}:
            raise ConfigError(
                f"the policy asks for strategy {each.strategy!r}, known are"
                f" {', '.join(sorted({*known, WINDOW}))}: add it to hooks"
            )
    return known


def _wired(
    operator: Context, nodes: Mapping[str, _Wiring], offer: ToolOffer, rows: RowSource | None
) -> ConversationGraph:
    graph = _Builder(State, context_schema=Context, input_schema=Input)
    graph.offer = offer
    graph.rows = rows
    for name, wiring in nodes.items():
        graph.add_node(name, Step(name, wiring.node, operator, wiring.counting, rows))
    graph.add_edge(START, "ingest")
    graph.add_conditional_edges("ingest", after_ingest)
    graph.add_conditional_edges("estimate", after_estimate)
    graph.add_edge("compact", "estimate")
    graph.add_conditional_edges("respond", after_respond)
    graph.add_conditional_edges("run_tools", after_run_tools)
    graph.add_edge("approve", "run_tools")
    graph.add_conditional_edges("settle", after_settle)
    graph.add_edge("prepare", END)
    return graph


class _Builder(StateGraph[State, Context, Input, State]):
    """A graph builder. In the compiled graph, a person may edit threads."""

    offer: ToolOffer | None = None
    rows: RowSource | None = None
    """Whose rows each owner may read, None if the database has no row filters."""

    def compile(
        self, *args: Any, **kwargs: Any
    ) -> CompiledStateGraph[State, Context, Input, State]:
        # `StateGraph.compile` takes no class: its result becomes an `Editable` as a shallow copy.
        editable = Editable.__new__(Editable)
        vars(editable).update(vars(super().compile(*args, **kwargs)))
        editable.offer = self.offer
        return editable
