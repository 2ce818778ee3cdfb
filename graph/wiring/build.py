"""Wire the conversation: nodes and edges, nothing else."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from longtable.base.context import Context, RequestLimits
from longtable.base.errors import ConfigError, check_type
from longtable.graph.wiring.answerers import (
    answerer_lines,
    model_name,
    prepared,
    summary_writer,
    tool_offer,
)
from longtable.graph.wiring.call_setup import call_configs
from longtable.graph.wiring.editing import Editable
from longtable.graph.wiring.step import Counting, Node, Step
from longtable.memory.compaction.compaction import Strategy
from longtable.memory.compaction.rolling import Rolling
from longtable.memory.policy import WINDOW, CompactionPolicy
from longtable.memory.topics.strategy import Topics
from longtable.nodes.approve import Approve, Gate
from longtable.nodes.arriving.rate_limit import RateLimit
from longtable.nodes.calling.context_providers import ContextProvider, ContextProviders
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
from longtable.nodes.settle import Footer, Settle
from longtable.nodes.state import (
    Input,
    Output,
    State,
)
from longtable.nodes.team.at_once import AtOnce
from longtable.nodes.team.team import Team
from longtable.nodes.tooling.audit import Audit
from longtable.nodes.tooling.recall import Indexes
from longtable.store.records.archive_files import archive_from
from longtable.tools.charts.chart_tool import chart_tool
from longtable.tools.database import Database
from longtable.tools.fetch import fetch_tool
from longtable.tools.memory_tools import recall_tool
from longtable.tools.sql.verdict import CostThresholds
from longtable.tools.toolset import database_tools

if TYPE_CHECKING:
    from pathlib import Path

    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.results.result_store import ResultStore

ConversationGraph = StateGraph[State, Context, Input, State]
OPTIONAL_KINDS: Mapping[str, type] = {
    "database": Database,
    "policy": CompactionPolicy,
    "rate_limit": RateLimit,
    "cost": CostThresholds,
    "team": Team,
}
"""Types of the arguments of `build_graph` that may be None."""


def _now() -> datetime:
    return datetime.now(UTC)


def build_graph(
    *,
    model: BaseChatModel,
    database: Database | None = None,
    summarizer: BaseChatModel | Literal[False] | None = None,
    tools: Sequence[BaseTool] = (),
    policy: CompactionPolicy | None = None,
    strategies: Sequence[Strategy] = (),
    recall: bool = True,
    pin_tools: bool | None = None,
    results: "ResultStore | None" = None,
    archive_on_compact: "ArchiveFiles | Path | str | None" = None,
    fallbacks: Sequence[BaseChatModel] = (),
    models: Mapping[str, BaseChatModel] | None = None,
    context_providers: Sequence[ContextProvider] = (),
    rate_limit: RateLimit | None = None,
    summary_seconds: float = 120.0,
    cost: CostThresholds | None = None,
    operator: Context | None = None,
    memory_prompt: str | None = None,
    request_limits: RequestLimits | None = None,
    footer: Footer | None = None,
    clock: Callable[[], datetime] = _now,
    output_schema: type[State] | type[Output] = State,
    team: Team | None = None,
) -> ConversationGraph:
    """Return the uncompiled graph; `graph.compile(checkpointer=..., store=...)` is the caller's.

    `database` brings its tools, `recall` one that searches what was compacted (or, for a model that
    calls no tools, a marker that asks for it); `tools` are further ones (a name given twice raises
    `ConfigError`). `pin_tools`: whether the model may pin what the user lays down, by `remember`
    and `forget` (from a limit of 8,000 tokens); None: unless it says of itself that it writes no
    summaries, or `tools` have these names. `summarizer` writes the summaries, in at most
    `summary_seconds` a call: None means the conversation's `model`, unless that says of itself that
    it writes none (`writes_summaries = False`); False means that code writes them. `results` keeps
    every whole result under a handle that the model is told, for `fetch_result`, `show_chart` and
    `Conversation.result`. `cost` says which queries are costly, for `Context.approve_sql`.
    `operator`: settings that no run's context loosens (`Context.within`), for servers whose clients
    send the context. A `Conversation` with a client's context shows the same views as the runs
    where it gets `context.within(operator)`. `archive_on_compact`: a folder, or `ArchiveFiles`, to
    which what is compacted is written before each compaction. `memory_prompt` replaces the
    instructions of the summariser. `request_limits` bound what one request may hold. `fallbacks`
    answer in their order where the model before them fails before its answer begins. `models`:
    those that a run may choose by name in place of `model` (`Context.model`); with
    `summarizer=None` each writes its own summaries. `context_providers` give material that goes
    with the calls of one turn and is not kept. `rate_limit` bounds the turns of an owner.
    `strategies` are ways of writing memory besides "rolling", "topics" and "window", for `policy`
    to name. A model that cannot bind tools answers without them. `footer` gives what people read
    below an answer, from the thread's id and the turn's messages; no model is sent it.
    `output_schema=Output` makes a run return the transcript alone. The model's limit is looked up
    when a run starts: `Context.model_limit` may still set it. `team`: personas that answer, and
    their mode; None for one voice. A team of which a persona names check_sql is offered it.
    """
    _check_types(
        model, tools, database=database, policy=policy, rate_limit=rate_limit, cost=cost, team=team
    )
    _check_values(context_providers, summary_seconds)
    offer = tool_offer(
        model,
        [
            *(database_tools(database) if database else []),
            *([recall_tool()] if recall else []),
            *([fetch_tool(), chart_tool()] if results is not None else []),
            *tools,
        ],
        database=database,
        recall=recall,
        pins=pin_tools,
        team=team,
    )
    policy = policy or CompactionPolicy()
    offered_models = {**(models or {}), "": model}
    writers = {name: summary_writer(each, summarizer) for name, each in offered_models.items()}
    config = call_configs(offered_models, writers, database, offer, policy, team)
    indexes = Indexes()
    plans = CallPlans(team)
    compactor = Compactor(
        {
            name: Writer(prepared(each), model_name(each)) if each else Writer(None)
            for name, each in writers.items()
        },
        _known_strategies(strategies, policy, team),
        clock,
        plans,
        summary_seconds,
        archive_from(archive_on_compact),
        memory_prompt,
    )
    estimate = Estimate(clock, plans)
    respond = Respond(
        answerer_lines(offered_models, fallbacks, offer, team),
        clock,
        indexes,
        plans,
        ContextProviders(tuple(context_providers)),
        rate_limit,
        team,
    )
    run_tools = RunTools(
        offer.by_name,
        clock,
        indexes,
        Audit(clock, database.check if database else None),
        plans,
        results,
        Gate(database, cost or CostThresholds()) if database else None,
        offer.names_of,
        team,
    )
    counting = {
        "ingest": Counting(estimate.count, counts_after_ingest),
        "run_tools": Counting(estimate, counts_after_run_tools),
        "settle": Counting(estimate, counts_after_settle),
    }
    return _wired(
        output_schema,
        operator or Context(),
        counting,
        ingest=Ingest(
            config, clock, rate_limit, request_limits or RequestLimits(), team, plans.readings
        ),
        estimate=estimate,
        compact=Compact(compactor),
        respond=AtOnce(team, respond, run_tools, estimate.count) if team else respond,
        run_tools=run_tools,
        approve=Approve(),
        settle=Settle(clock, plans, results, team=team, footer=footer),
        prepare=Prepare(compactor),
    )


def _check_types(model: object, tools: Sequence[object], **others: object) -> None:
    check_type("model", model, BaseChatModel)
    for tool in tools:
        check_type("each of tools", tool, BaseTool)
    for name, value in others.items():
        check_type(name, value, OPTIONAL_KINDS[name], optional=True)


def _check_values(context_providers: Sequence[ContextProvider], summary_seconds: object) -> None:
    names = sorted(provider.name for provider in context_providers)
    if len({*names}) != len(names):
        raise ConfigError(f"two context providers share a name: {', '.join(names)}")
    if not isinstance(summary_seconds, int | float) or not 0 < summary_seconds <= 86_400:
        raise ConfigError(
            f"summary_seconds must be over 0 and at most 86,400 seconds, found {summary_seconds!r}"
        )


def _known_strategies(
    strategies: Sequence[Strategy], policy: CompactionPolicy, team: Team | None
) -> dict[str, Strategy]:
    """Return the strategies by name. Raises `ConfigError` where a policy asks for another one."""
    built_in: list[Strategy] = [Rolling(), Topics()]
    known = {strategy.name: strategy for strategy in [*built_in, *strategies]}
    of_mode = team.mode.policy if team else None
    for each in filter(None, (policy, of_mode)):
        if each.strategy not in {*known, WINDOW}:
            raise ConfigError(
                f"the policy asks for strategy {each.strategy!r}, known are"
                f" {', '.join(sorted({*known, WINDOW}))}: add it to strategies"
            )
    return known


def _wired(
    output_schema: type[State] | type[Output],
    operator: Context,
    counting: Mapping[str, "Counting"],
    **nodes: Node,
) -> ConversationGraph:
    graph: ConversationGraph = _Builder(
        State, context_schema=Context, input_schema=Input, output_schema=cast("Any", output_schema)
    )
    for name, node in nodes.items():
        graph.add_node(name, Step(name, node, operator, counting.get(name)))
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
    """A graph whose threads a person may edit once it is compiled."""

    def compile(
        self, *args: Any, **kwargs: Any
    ) -> CompiledStateGraph[State, Context, Input, State]:
        # `StateGraph.compile` takes no class: its result becomes an `Editable` as a shallow copy.
        editable = Editable.__new__(Editable)
        vars(editable).update(vars(super().compile(*args, **kwargs)))
        return editable
