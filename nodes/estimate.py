"""Count exactly what the next call would send, and decide whether a compaction is due. The plan of
the call is built only once in a superstep.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from longtable.base.concurrency import BoundedCache
from longtable.base.context import Context
from longtable.base.events import ContextUsage, TeamTurn, UsageFigures, UsageParts
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.due import due_compaction
from longtable.memory.messages.marks import STEERED
from longtable.memory.view import CallPlan, View
from longtable.memory.voices import TEAM
from longtable.nodes.arriving.inbox import receive, steered_event
from longtable.nodes.arriving.stamps import stamp
from longtable.nodes.call_plans import CallSource, Readings
from longtable.nodes.state import UNDER_WAY, Now, Update, Usage, failed_at, with_last
from longtable.nodes.team.team import Team
from longtable.nodes.team.turn_order import scene_of

KEPT_PLANS = 128
"""Number of plans that a process keeps, one for each thread with a running turn. `settle` or
`prepare` drops the plan of its turn. The plan of a cancelled turn is dropped once there are this
many newer plans.
"""
CHANNELS = ("messages", "compactions", "edits", "archive", "brief", "learned")
"""The channels of the state from which a plan is made. The ceiling in the turn's record counts too.
"""


@dataclass(frozen=True)
class _Kept:
    values: tuple[Any, ...]
    """The values of `CHANNELS`. They are kept so that no other object can get the same Python id.
    """
    ceiling: int | None
    voice: str | None
    context: Context
    plan: CallPlan


@dataclass(frozen=True)
class CallPlans:
    """The newest call plan of each thread with a running turn.

    A plan is used again only if the state holds the very objects from which the plan was made.
    LangGraph passes these objects on unchanged until they are written. So concurrent runs, forks
    and resumed runs never get each other's plan; at worst a plan is built anew.
    """

    team: Team | None = None
    readings: Readings = field(default_factory=Readings)
    kept: BoundedCache[str, _Kept] = field(default_factory=lambda: BoundedCache(KEPT_PLANS))

    def of(self, now: Now, *, shared: bool = False) -> CallPlan:
        """Return the plan of the next call. For `shared`, which compactions use, see
        `CallSource.call_config`.
        """
        context = now.context
        thread_id = now.thread_id
        if thread_id is None:
            return self._made(now, shared=shared)
        made_of = tuple(now.state.get(name) for name in CHANNELS)
        turn = now.turn
        under_way = turn.get("status") in UNDER_WAY
        ceiling = turn.get("ceiling") if under_way else None
        voice = turn.get("voice") if under_way and not shared else None
        known = self.kept.get(thread_id)
        if (
            known is not None
            and (known.ceiling, known.voice, known.context) == (ceiling, voice, context)
            and _same(known.values, made_of)
        ):
            return known.plan
        plan = self._made(now, shared=shared)
        return self.kept.put(thread_id, _Kept(made_of, ceiling, voice, context, plan)).plan

    def of_team(self, now: Now) -> CallPlan | None:
        """Return one plan that stands for all personas, if the team's mode keeps secrets. Return
        None otherwise, or if no voice is speaking.

        This plan hears everything and has no whisper, so that its tokens do not reveal who is
        asked.
        """
        turn = now.turn
        if self.team is None or not self.team.mode.private or not turn.get("voice"):
            return None
        return self.of(now, shared=True) if turn.get("status") in UNDER_WAY else None

    def _made(self, now: Now, *, shared: bool) -> CallPlan:
        source = CallSource(
            config=now.config,
            policy=self.readings.policy(now.config),
            calibration=self.readings.calibration(now.state.get("learned")),
            context=now.context,
            turn=now.turn,
            messages=now.thread.messages,
        )
        plan = CallPlan(now.thread, source.call_config(shared=shared))
        voice = plan.call_config.voice
        if self.team is None or voice is None or voice.id not in self.team.personas:
            return plan
        scene = scene_of(self.team, plan.thread.messages, now.turn)
        whisper = self.team.mode.whisper(scene, voice.id)
        if not whisper:
            return plan
        return replace(plan, call_config=plan.call_config.with_whisper(whisper))

    def drop(self, thread_id: str | None) -> None:
        """Drop the thread's plan, because its turn is over."""
        if thread_id is not None:
            self.kept.pop(thread_id)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(a is b or _same_items(a, b) for a, b in zip(one, other, strict=True))


def _same_items(one: Any, other: Any) -> bool:
    """Return whether two lists hold the very same objects. (A node that counts makes its own list
    of the messages, so the lists themselves may be different objects.)
    """
    return (
        isinstance(one, list)
        and isinstance(other, list)
        and len(one) == len(other)
        and all(map(operator.is_, one, other))
    )


@dataclass(frozen=True)
class Estimate:
    """The node: counts the next call, writes `usage`, and sends the event `context_usage`. Most
    nodes count at their own end; this one runs only after those that do not (see `route.py`).
    """

    clock: Callable[[], datetime]
    plans: CallPlans

    def __call__(self, now: Now) -> Update:
        """Take messages that arrived since the last call into the turn. Count the next call."""
        received, turn = receive(now.turn, now.runtime, look=_asks(now))
        if not received:
            changed = now if turn == now.turn else now.with_turn(turn)
            return {"turn": turn, **self.count(changed)}
        known = {message.id for message in now.thread.messages}
        time = self.clock().isoformat(timespec="seconds")
        joined = [
            stamp(each.message, turn=turn, time=time, marks={"kind": STEERED})
            for each in received
            if each.message.id not in known
        ]
        for message in joined:
            now.runtime.stream_writer(steered_event(message, turn.get("number", 0)))
        update: Update = (
            {"messages": joined, "turn": with_last(turn, joined)} if joined else {"turn": turn}
        )
        return {**update, **self.count(now.after(update))}

    def count(self, now: Now) -> Update:
        """Count the next call, send the event, and return the update."""
        turn = now.turn
        of_team = self.plans.of_team(now)
        call_plan = self.plans.of(now)
        due = due_compaction(call_plan, failed_at(turn)) is not None
        view = View(call_plan.messages, call_plan.parts) if due else call_plan.view
        figures = usage_figures(view, call_plan.call_config)
        if of_team:
            figures = team_figures(of_team.view, of_team.call_config)
        if (
            (team := self.plans.team)
            and turn.get("calls_left") == team.max_calls
            and not turn.get("calls")
        ):
            now.runtime.stream_writer(self._cost(team, now))
        now.runtime.stream_writer({"type": "context_usage", **figures})
        update = Update(usage=Usage(due=due, **figures))
        if turn.get("status") in UNDER_WAY:
            update["turn"] = {
                **turn,
                "status": "running" if _asks(now) else "call_budget",
            }
        return update

    def _cost(self, team: Team, now: Now) -> TeamTurn:
        """Return the event `team_turn`, which says before a team's first call what the turn may
        cost.
        """
        speakers = team.mode.speakers(scene_of(team, now.thread.messages, now.turn))
        of_team = self.plans.of_team(now)
        if of_team:
            # Who is told more has another role.
            tokens = {TEAM: of_team.view.parts.total}
        else:
            plans = {
                id_: self.plans.of(now.with_turn({**now.turn, "voice": id_})) for id_ in speakers
            }
            tokens = {id_: plan.view.parts.total for id_, plan in plans.items()}
        return TeamTurn(
            type="team_turn", mode=team.mode.name, tokens=tokens, most_calls=team.max_calls
        )


def _asks(now: Now) -> bool:
    """Return whether the turn may call the model again."""
    turn = now.turn
    return (
        turn.get("status") in UNDER_WAY
        and turn.get("calls", 0) < now.context.max_model_calls
        and turn.get("calls_left", 1) > 0
    )


def usage_event(view: View, call_config: CallConfig) -> ContextUsage:
    """Return the event that reports the size of a call."""
    return cast("ContextUsage", {"type": "context_usage", **usage_figures(view, call_config)})


def team_figures(view: View, call_config: CallConfig) -> UsageFigures:
    """Return the figures of a view that stands for all personas, marked with `of_team`."""
    return {**usage_figures(view, call_config), "of_team": True}


def usage_figures(view: View, call_config: CallConfig) -> UsageFigures:
    """Return a call's size by part, and how much was left out or shortened for it."""
    tokens = view.parts
    total = tokens.total
    calibrated = round(total * call_config.factor)
    parts = UsageParts(
        system=tokens.system, tools=tokens.tools, memory=tokens.memory, messages=tokens.messages
    )
    if tokens.passed:
        parts["passed"] = tokens.passed
    return UsageFigures(
        total=total,
        calibrated=calibrated,
        ratio=round(call_config.factor, 4),
        limit=call_config.limit,
        fraction=round(calibrated / call_config.limit, 4),
        threshold=call_config.policy.threshold,
        parts=parts,
        shrunk=view.shrunk,
        left_out=view.left_out,
        estimated=call_config.counter.estimated,
    )
