"""A step of the graph: a node with its settings, its tracing span and its error handling."""

import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import StateUpdate

from longtable.base.concurrency import ASYNC, SYNC, BoundedCache, Execution, complete, in_thread
from longtable.base.context import Context, requester
from longtable.base.errors import ConfigError
from longtable.memory.summary.summary_text import language_of
from longtable.nodes.arriving.incoming import (
    COLLECTED,
    EACH_STORED,
    ROWS,
    SENT,
    STATELESS,
    run_settings,
)
from longtable.nodes.closing.failures import note_failure, reporting
from longtable.nodes.closing.spending import ENDINGS, keep_spending
from longtable.nodes.prepare import Prepare
from longtable.nodes.reducers import read_messages
from longtable.nodes.state import Now, State, Update, with_tally
from longtable.nodes.team.turn_order import speaking
from longtable.nodes.telemetry import run_fields, span
from longtable.tools.row_access import RowAccess, RowSource, RunRows, reading_as

Supersteps = Sequence[Sequence[StateUpdate]]


Node = Callable[..., Any]

OF_LANGGRAPH = {"thread_id", "checkpoint_id", "checkpoint_ns", "run_id", "assistant_id", "graph_id"}
"""Names that clients of a server send together with settings, but which are not settings."""


def run_arguments(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    stateless: bool,
    filters_rows: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a run. The context, which servers send as a dict, becomes a
    `Context`, and the newest message is added to the config. If the graph's database has row
    filters, what keeps the row parameters of this run is added, too. The argument `collect`
    becomes a part of the config.

    Errors in the context are written in the language of the newest message.
    """
    named = {**dict(zip(("input", "config"), args, strict=False)), **kwargs}
    context = named.get("context")
    # A mapping is what a client of a server sent: the owner in it is a claim.
    rows = RunRows(trusts_context=not isinstance(context, Mapping))
    if isinstance(context, Mapping):
        try:
            named["context"] = Context(**context)
        except ConfigError as error:
            error.language = _language_of(named.get("input"), context.get("language"))
            raise
    # Always set: a run within a node of another run would have that run's.
    marks: dict[str, Any] = {COLLECTED: named.pop("collect", None)}
    if stateless:
        marks[STATELESS] = True
    if filters_rows:
        marks[ROWS] = rows
    if named.get("durability") == "sync":
        marks[EACH_STORED] = True
    newest = next(iter(as_sent(named.get("input"))[::-1]), None)
    if newest is not None and newest.type == "human" and newest.id:
        marks[SENT] = newest
    config = named.get("config") or {}
    named["config"] = {**config, "configurable": {**config.get("configurable", {}), **marks}}
    sent = named.pop("input", None)
    if isinstance(sent, Mapping) and "tally" in sent:  # the graph's own
        sent = {name: value for name, value in sent.items() if name != "tally"}
    return sent, named


def _language_of(sent: object, chosen: object) -> str:
    """Return the language of what a run was sent, English if it contains no messages."""
    if chosen in ("en", "zh"):
        return str(chosen)
    return language_of(as_sent(sent))


@dataclass(frozen=True)
class Counting:
    """The count of the next call at the end of a node. It is made if `is_due` returns True for the
    states before and after the node.
    """

    count: Callable[[Now], Update]
    is_due: Callable[[Now, Now], bool]

    def done(self, before: Now, update: Update) -> Update:
        """Return the update of the node together with that of the count."""
        after = before.after(update)
        if not self.is_due(before, after):
            return update
        counted = self.count(speaking(after))
        messages = [*update.get("messages", ()), *counted.get("messages", ())]
        return {**update, **counted, **({"messages": messages} if messages else {})}


class Step(Runnable[State, Update]):
    """One node, with `invoke` and `ainvoke`, as one tracing span.

    LangGraph starts a traced run for each node. A `RunnableLambda` would start a second run inside
    this run, which costs 0.3 ms for each node.
    """

    def __init__(
        self,
        name: str,
        node: Node,
        operator: Context,
        counting: "Counting | None",
        rows: RowSource | None = None,
    ) -> None:
        self.rows = rows
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
        """Run the node. If the node never awaits, it runs in a worker thread."""
        return self._run(input, ASYNC) if self.waits else super().ainvoke(input, config)

    @property
    def may_wait(self) -> bool:
        """Return whether the node prepares the next turn and may ask a model while doing so."""
        return isinstance(self.node, Prepare) and self.node.compactor.asks_a_model

    def outside(self, state: State, runtime: Runtime[Context]) -> Update:
        """Run the node outside a run of the graph."""
        return complete(self._run(state, SYNC, runtime))

    async def _run(
        self, state: State, how: Execution, runtime: Runtime[Context] | None = None
    ) -> Update:
        given = runtime or get_runtime(Context)
        begun = Now.of(state, _within(self.operator, given))
        now = speaking(begun)
        fields = run_fields(now.turn, now.thread_id)
        access = self._access(given)
        with reading_as(access), reporting(now), span("node", str(self.name), fields):
            try:
                made = await self.node(now, how) if self.waits else self.node(now)
            except Exception as error:
                keep = partial(note_failure, now, error)
                await how.call(keep, partial(in_thread, keep)) if self.waits else keep()
                raise
            update = cast("Update", made)
            if self.name in ENDINGS:
                keep_spending(now, update)
            if self.counting:
                counted = partial(self.counting.done, now, update)
                update = await how.call(counted) if self.waits else counted()
            return with_tally(state, update)

    def _access(self, runtime: Runtime[Context]) -> RowAccess | None:
        """Return the rows that the node may read: those of the owner whom the operator's side
        named.
        """
        if self.rows is None:
            return None
        run = run_settings().get(ROWS)
        run = run if isinstance(run, RunRows) else RunRows(trusts_context=False)
        trusted = run.trusts_context and runtime.server_info is None
        claimed = runtime.context.owner if runtime.context and trusted else None
        owner = _sender(runtime) if runtime.server_info else claimed
        return run.access(self.rows, owner if owner is not None else self.operator.owner)


def _sender(runtime: Runtime[Context]) -> str | None:
    """Return whom a server authenticated, None if it authenticated nobody."""
    user = runtime.server_info.user if runtime.server_info else None
    return requester(user, None)


def _within(operator: Context, runtime: Runtime[Context]) -> Runtime[Context]:
    """Return the runtime with the settings that apply: those of the run, limited by those of the
    operator, and with the authenticated owner. If the run's events are collected, its nodes write
    them to the function that takes them.
    """
    context = _limited(runtime.context, operator)
    user = runtime.server_info.user if runtime.server_info else None
    if user is not None and user.is_authenticated and not user.identity and _authenticates_nobody():
        user = None  # a scheduled run's
    owner = requester(user, context.owner)
    if owner != context.owner:
        context = context.replace(owner=owner)
    collect = run_settings().get(COLLECTED)
    if callable(collect):
        return runtime.override(context=context, stream_writer=collect)
    return runtime.override(context=context)


_Limited = tuple[Context | None, Context, Context]
_limited_settings: BoundedCache[tuple[int, int], _Limited] = BoundedCache(128)
"""The settings of runs, each with the operator's settings, and the settings that follow from the
two. The keys are the Python ids of the first two. They are kept, so that no other object can get
the same id.
"""


def _limited(context: Context | None, operator: Context) -> Context:
    """Return the settings of a run, limited by those of the operator. They are made once for all
    nodes of a run, because each of some forty fields is checked.
    """
    key = (id(context), id(operator))
    known = _limited_settings.get(key)
    if known is not None:
        return known[2]
    limited = (context or Context()).within(operator)
    return _limited_settings.put(key, (context, operator, limited))[2]


def _authenticates_nobody() -> bool:
    """Return whether this process is an Agent Server without authentication."""
    config = sys.modules.get("langgraph_api.config")
    return config is not None and not config.LANGGRAPH_AUTH and config.LANGGRAPH_AUTH_TYPE == "noop"


def as_sent(sent: object) -> Sequence[BaseMessage]:
    """Return the messages in the input of a run. Empty if they cannot be read; the node `ingest`
    then raises the error.
    """
    messages = sent.get("messages") if isinstance(sent, Mapping) else None
    with suppress(Exception):
        return read_messages(messages or [])
    return ()
