"""Hand the plan of the next call on from node to node, so that a superstep builds it once."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.runtime import Runtime

from longtable.base.context import Context
from longtable.memory.view import CallPlan
from longtable.nodes.records.bounded_cache import BoundedCache
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import UNDER_WAY, call_plan_of, turn_of

KEPT_PLANS = 128
"""Plans a process keeps: one a running turn. `settle` or `prepare` drops it; one of a cancelled turn goes when so many came after."""
CHANNELS = ("messages", "compactions", "edits", "archive", "brief", "learned")
"""Channels that a plan is made of, besides the turn's ceiling."""


@dataclass(frozen=True)
class _Kept:
    values: tuple[Any, ...]
    """The channels' values: kept, so that no other object can have their identity."""
    ceiling: int | None
    context: Context
    plan: CallPlan


@dataclass(frozen=True)
class CallPlans:
    """The newest plan of each thread with a turn under way.

    A plan is used again only for the very messages and values it was made of. LangGraph hands these on unchanged until they are
    written, so two runs at once, a fork or a resumed run never get each other's plan: at worst one is built anew.
    """

    kept: BoundedCache[str, _Kept] = field(default_factory=lambda: BoundedCache(KEPT_PLANS))

    def of(self, values: Mapping[str, Any], runtime: Runtime[Context]) -> CallPlan:
        """Return the plan of the next call."""
        context, thread_id = runtime.context or Context(), thread_id_of(runtime)
        if thread_id is None:
            return call_plan_of(values, context)
        made_of, turn = tuple(values.get(name) for name in CHANNELS), turn_of(values)
        ceiling = turn.get("ceiling") if turn.get("status") in UNDER_WAY else None
        known = self.kept.get(thread_id)
        if known is not None and known.ceiling == ceiling and known.context == context and _same(known.values, made_of):
            return known.plan
        return self.kept.put(thread_id, _Kept(made_of, ceiling, context, call_plan_of(values, context))).plan

    def drop(self, runtime: Runtime[Context]) -> None:
        """Keep the thread's plan no longer: its turn is over."""
        if (thread_id := thread_id_of(runtime)) is not None:
            self.kept.pop(thread_id)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(a is b or _same_items(a, b) for a, b in zip(one, other, strict=True))


def _same_items(one: Any, other: Any) -> bool:
    """Return whether two lists hold the very same objects: a node that counts has made its own list of the messages."""
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and all(map(operator.is_, one, other))
