"""Wire the conversation: nodes and edges, nothing else."""

import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import StateSnapshot, StateUpdate

from longtable.base.concurrency import ASYNC, SYNC, Execution, complete, in_thread
from longtable.base.context import Context, RequestLimits, requester
from longtable.base.errors import ConfigError, check_type
from longtable.graph.changes import edited, writes_messages
from longtable.graph.wiring.answerers import (
    answerer_lines,
    model_name,
    prepared,
    summary_writer,
    tool_offer,
)
from longtable.graph.wiring.call_setup import call_configs
from longtable.memory.compaction.compaction import Strategy
from longtable.memory.compaction.rolling import Rolling
from longtable.memory.compaction.summary_text import language_of
from longtable.memory.policy import WINDOW, CompactionPolicy
from longtable.memory.topics.strategy import Topics
from longtable.nodes.approve import Approve, Gate
from longtable.nodes.arriving.rate_limit import RateLimit
from longtable.nodes.calling.context_providers import ContextProvider, ContextProviders
from longtable.nodes.closing.failures import reporting
from longtable.nodes.closing.spending import ENDINGS, keep_spending
from longtable.nodes.compact import Compact, Compactor, Writer
from longtable.nodes.estimate import CallPlans, Estimate
from longtable.nodes.ingest import EACH_STORED, SENT, STATELESS, Ingest
from longtable.nodes.prepare import Prepare
from longtable.nodes.reducers import read_messages
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
    Update,
    applied,
    turn_of,
    values_of,
    with_tally,
)
from longtable.nodes.tally import tally_after_removals
from longtable.nodes.team.at_once import AtOnce
from longtable.nodes.team.team import Team, speaking
from longtable.nodes.telemetry import run_fields, span
from longtable.nodes.tooling.audit import Audit
from longtable.nodes.tooling.recall import Indexes
from longtable.store.records.archive_files import archive_from
from longtable.store.records.retired import ids_in_archive
from longtable.store.records.retired_store import StoreArchive
from longtable.store.records.thread_index import thread_id_of
from longtable.tools.charts.chart_tool import chart_tool
from longtable.tools.database import Database
from longtable.tools.fetch import fetch_tool
from longtable.tools.memory_tools import recall_tool
from longtable.tools.sql.verdict import CostThresholds
from longtable.tools.toolset import database_tools

if TYPE_CHECKING:
    from pathlib import Path

    from langgraph.store.base import BaseStore

    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.results.result_store import ResultStore

Node = Callable[..., Any]
ConversationGraph = StateGraph[State, Context, Input, State]
Supersteps = Sequence[Sequence[StateUpdate]]
OF_LANGGRAPH = {"thread_id", "checkpoint_id", "checkpoint_ns", "run_id", "assistant_id", "graph_id"}
"""Names that clients of servers send beside settings."""
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
        "ingest": _Counting(estimate.count, counts_after_ingest),
        "run_tools": _Counting(estimate, counts_after_run_tools),
        "settle": _Counting(estimate, counts_after_settle),
    }
    return _wired(
        output_schema,
        operator or Context(),
        counting,
        ingest=Ingest(config, clock, rate_limit, request_limits or RequestLimits(), team),
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
    counting: Mapping[str, "_Counting"],
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
        # `StateGraph.compile` takes no class: its result becomes an `_Editable` as a shallow copy.
        editable = _Editable.__new__(_Editable)
        vars(editable).update(vars(super().compile(*args, **kwargs)))
        return editable


class _Editable(CompiledStateGraph[State, Context, Input, State]):
    """A compiled graph in which an edit of a message by `update_state` holds or is refused, as in
    Studio: see `changes.edited`.

    Not in the reducer: there a run's input looks the same, and one that repeats a message's id
    overwrites nothing.
    """

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """Return the schema of `Context`. Agent Server drops what is not among its properties
        before a run; here it drops nothing, so that a misspelt field is refused.
        """
        schema = super().get_context_jsonschema() or {}
        return {**schema, "properties": _AllProperties(schema.get("properties", {}))}

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the schema of what a caller gives: the messages."""
        schema = super().get_input_jsonschema(config)
        properties = {"messages": schema["properties"]["messages"]}
        definitions = {
            name: each for name, each in schema.get("$defs", {}).items() if name != "Tally"
        }
        return {**schema, "properties": properties, "$defs": definitions}

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        sent, named = _run_arguments(args, kwargs, stateless=self.checkpointer is None)
        if self._takes_out(sent, named):
            state = self.get_state(named["config"])
            sent = _with_tally_of_rest(sent, values_of(state))
        return super().stream(sent, **named)

    def astream(self, *args: Any, **kwargs: Any) -> Any:
        sent, named = _run_arguments(args, kwargs, stateless=self.checkpointer is None)
        if self._takes_out(sent, named):
            return self._astream_of_rest(sent, named)
        return super().astream(sent, **named)

    async def _astream_of_rest(
        self, sent: Any, named: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        state = await self.aget_state(named["config"])
        sent = _with_tally_of_rest(sent, values_of(state))
        stream = cast("AsyncGenerator[Any, None]", super().astream(sent, **named))
        async with aclosing(stream) as parts:
            async for part in parts:
                yield part

    def _takes_out(self, sent: object, named: Mapping[str, Any]) -> bool:
        """Return whether a run of a stored thread begins by taking messages out."""
        stored = isinstance(self.checkpointer, BaseCheckpointSaver)
        place = (named.get("config") or {}).get("configurable", {})
        own = "thread_id" in place and not place.get("checkpoint_ns")
        return stored and own and any(message.type == "remove" for message in _sent(sent))

    def bulk_update_state(self, config: RunnableConfig, supersteps: Supersteps) -> RunnableConfig:
        edits = any(writes_messages(update) for step in supersteps for update in step)
        return super().bulk_update_state(
            config,
            self._edited(config, supersteps, self.get_state(config)) if edits else supersteps,
        )

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Supersteps
    ) -> RunnableConfig:
        if any(writes_messages(update) for step in supersteps for update in step):
            supersteps = await in_thread(
                self._edited, config, supersteps, await self.aget_state(config)
            )
        return await super().abulk_update_state(config, supersteps)

    def _edited(
        self, config: RunnableConfig, supersteps: Supersteps, state: StateSnapshot
    ) -> Supersteps:
        # Without a store nothing has retired.
        retired = partial(
            ids_in_archive,
            StoreArchive(cast("BaseStore", self.store)),
            config["configurable"]["thread_id"],
        )
        values = values_of(state)
        edited_steps: list[list[StateUpdate]] = []
        for step in supersteps:
            updates = [
                each._replace(values=edited(each.values or {}, values, retired))
                if writes_messages(each)
                else each
                for each in step
            ]
            values = _count_edited(values, updates)
            edited_steps.append(updates)
        return edited_steps


def _count_edited(values: State, updates: list[StateUpdate]) -> State:
    """Put the tally of a superstep into the last of its updates that writes messages; return the
    values after it.
    """
    last: int | None = None
    for place, update in enumerate(updates):
        if writes_messages(update):
            values = applied(values, with_tally(values, cast("Update", update.values)))
            last = place
    if last is not None:
        update = updates[last]
        updates[last] = update._replace(values={**(update.values or {}), "tally": values["tally"]})
    return values


class _AllProperties(dict[str, Any]):
    """The properties of a schema; all names count as such but those of LangGraph itself."""

    def __contains__(self, name: object) -> bool:
        ours = super().__contains__(name)
        return ours or not (name in OF_LANGGRAPH or str(name).startswith("__"))


def _run_arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], *, stateless: bool
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a run: its context as `Context`, which servers send as a dict, and in
    its config its newest message.

    What is wrong with the context is told in the language of the newest message.
    """
    named = {**dict(zip(("input", "config"), args, strict=False)), **kwargs}
    context = named.get("context")
    if isinstance(context, Mapping):
        try:
            named["context"] = Context(**context)
        except ConfigError as error:
            error.language = _language_of(named.get("input"), context.get("language"))
            raise
    marks: dict[str, Any] = {STATELESS: True} if stateless else {}
    if named.get("durability") == "sync":
        marks[EACH_STORED] = True
    newest = next(iter(_sent(named.get("input"))[::-1]), None)
    if newest is not None and newest.type == "human" and newest.id:
        marks[SENT] = newest
    if marks:
        config = named.get("config") or {}
        named["config"] = {**config, "configurable": {**config.get("configurable", {}), **marks}}
    sent = named.pop("input", None)
    if isinstance(sent, Mapping) and "tally" in sent:  # the graph's own
        sent = {name: value for name, value in sent.items() if name != "tally"}
    return sent, named


def _with_tally_of_rest(sent: Mapping[str, Any], values: State) -> dict[str, Any]:
    """Return an input that takes messages out with the tally of those that are left."""
    tally = tally_after_removals(values, sent["messages"])
    return {"messages": sent["messages"], **({"tally": tally} if tally is not None else {})}


def _sent(sent: object) -> Sequence[BaseMessage]:
    """Return the messages of a run's input, none if they cannot be read: `ingest` says why."""
    messages = sent.get("messages") if isinstance(sent, Mapping) else None
    with suppress(Exception):
        return read_messages(messages or [])
    return ()


def _language_of(sent: object, chosen: object) -> str:
    """Return the language of what a run was sent, English if it holds no messages."""
    if chosen in ("en", "zh"):
        return str(chosen)
    return language_of(_sent(sent))


@dataclass(frozen=True)
class _Counting:
    """The count of the next call at the end of a node, where `is_due` of the states before and
    after it.
    """

    count: Callable[..., Update]
    is_due: Callable[[State, State], bool]

    def done(self, state: State, update: Update, runtime: Runtime[Context]) -> Update:
        """Return the update of the node and of the count."""
        after = applied(state, update)
        if not self.is_due(state, after):
            return update
        counted = self.count(after, runtime=speaking(runtime, after))
        messages = [*update.get("messages", ()), *counted.get("messages", ())]
        return {**update, **counted, **({"messages": messages} if messages else {})}


class Step(Runnable[State, Update]):
    """One node, for `invoke` and `ainvoke`, as a span.

    LangGraph starts a traced run for each node. A `RunnableLambda` would start a second one within,
    0.3 ms a node.
    """

    def __init__(
        self, name: str, node: Node, operator: Context, counting: "_Counting | None"
    ) -> None:
        self.name = name
        self.node = node
        self.operator = operator
        self.counting = counting
        self.waits = inspect.iscoroutinefunction(type(node).__call__)

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: ARG002  # in its context
        """Run the node."""
        return complete(self._run(input, SYNC))

    def ainvoke(
        self, input: State, config: RunnableConfig | None = None, **_: Any
    ) -> Coroutine[Any, Any, Update]:
        """Run the node, in a worker thread where it never waits."""
        return self._run(input, ASYNC) if self.waits else super().ainvoke(input, config)

    @property
    def may_wait(self) -> bool:
        """Return whether it makes room for the next turn, and asks a model for that."""
        return isinstance(self.node, Prepare) and self.node.compactor.asks_a_model

    def outside(self, state: State, runtime: Runtime[Context]) -> Update:
        """Run the node outside a run of its graph."""
        return complete(self._run(state, SYNC, runtime))

    async def _run(
        self, state: State, how: Execution, runtime: Runtime[Context] | None = None
    ) -> Update:
        runtime = _within(self.operator, runtime or get_runtime(Context))
        runtime = speaking(runtime, state)
        with (
            reporting(state, runtime),
            span("node", str(self.name), run_fields(turn_of(state), thread_id_of(runtime))),
        ):
            update = cast(
                "Update",
                (
                    await self.node(state, runtime=runtime, how=how)
                    if self.waits
                    else self.node(state, runtime=runtime)
                ),
            )
            if self.name in ENDINGS:
                keep_spending(applied(state, update), runtime)
            if self.counting:
                counted = partial(self.counting.done, state, update, runtime)
                update = await how.call(counted) if self.waits else counted()
            return with_tally(state, update)


def _within(operator: Context, runtime: Runtime[Context]) -> Runtime[Context]:
    """Return the runtime with the settings that hold: the run's own, within the operator's, of the
    owner that a server found.
    """
    context = (runtime.context or Context()).within(operator)
    user = runtime.server_info.user if runtime.server_info else None
    if user is not None and user.is_authenticated and not user.identity and _authenticates_nobody():
        user = None  # a scheduled run's
    return runtime.override(context=context.replace(owner=requester(user, context.owner)))


def _authenticates_nobody() -> bool:
    """Return whether this process is an Agent Server without authentication."""
    config = sys.modules.get("langgraph_api.config")
    return config is not None and not config.LANGGRAPH_AUTH and config.LANGGRAPH_AUTH_TYPE == "noop"
