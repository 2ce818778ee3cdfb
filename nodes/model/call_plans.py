"""Hand the plan of the next call on from node to node, so that a superstep builds it once."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.runtime import Runtime

from longtable.base.context import Context
from longtable.memory.view import CallPlan
from longtable.nodes.records.bounded_cache import BoundedCache
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import UNDER_WAY, call_plan_of, turn_of
from longtable.nodes.team.team import Team, scene_of

KEPT_PLANS = 128
"""Plans a process keeps: one a running turn. `settle` or `prepare` drops it; one of a cancelled turn goes when so many came after."""
CHANNELS = ("messages", "compactions", "edits", "archive", "brief", "learned")
"""Channels that a plan is made of, besides the turn's ceiling."""


@dataclass(frozen=True)
class _Kept:
    values: tuple[Any, ...]
    """The channels' values: kept, so that no other object can have their identity."""
    ceiling: int | None
    voice: str | None
    context: Context
    plan: CallPlan


@dataclass(frozen=True)
class CallPlans:
    """The newest plan of each thread with a turn under way.

    A plan is used again only for the very messages and values it was made of. LangGraph hands these on unchanged until they are
    written, so two runs at once, a fork or a resumed run never get each other's plan: at worst one is built anew.
    """

    team: Team | None = None
    kept: BoundedCache[str, _Kept] = field(default_factory=lambda: BoundedCache(KEPT_PLANS))

    def of(self, values: Mapping[str, Any], runtime: Runtime[Context], *, shared: bool = False) -> CallPlan:
        """Return the plan of the next call; `shared`: as a compaction sees it, which serves all voices of a team."""
        context, thread_id = runtime.context or Context(), thread_id_of(runtime)
        if thread_id is None:
            return self._made(values, context, shared=shared)
        made_of, turn = tuple(values.get(name) for name in CHANNELS), turn_of(values)
        under_way = turn.get("status") in UNDER_WAY
        ceiling, voice = turn.get("ceiling") if under_way else None, turn.get("voice") if under_way and not shared else None
        known = self.kept.get(thread_id)
        if known is not None and (known.ceiling, known.voice, known.context) == (ceiling, voice, context) and _same(known.values, made_of):
            return known.plan
        plan = self._made(values, context, shared=shared)
        return self.kept.put(thread_id, _Kept(made_of, ceiling, voice, context, plan)).plan

    def _made(self, values: Mapping[str, Any], context: Context, *, shared: bool) -> CallPlan:
        plan = call_plan_of(values, context, shared=shared)
        voice = plan.call_config.voice
        if self.team is None or voice is None or voice.id not in self.team.personas:
            return plan
        whisper = self.team.mode.whisper(scene_of(self.team, plan.thread.messages, turn_of(values)), voice.id)
        if not whisper:
            return plan
        return replace(plan, call_config=replace(plan.call_config, system=f"{plan.call_config.system}\n\n{whisper}"))

    def drop(self, runtime: Runtime[Context]) -> None:
        """Keep the thread's plan no longer: its turn is over."""
        if (thread_id := thread_id_of(runtime)) is not None:
            self.kept.pop(thread_id)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(a is b or _same_items(a, b) for a, b in zip(one, other, strict=True))


def _same_items(one: Any, other: Any) -> bool:
    """Return whether two lists hold the very same objects: a node that counts has made its own list of the messages."""
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and all(map(operator.is_, one, other))
