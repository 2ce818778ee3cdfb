"""Ask the voices of a team at the same time if they do not hear each other.

Each voice runs its calls in its own LangGraph task, whose result is stored when the task ends. A
resumed run asks only the voices whose results are missing. Then the voices' messages are added to
the transcript one voice after the other, as if each voice had been asked in its turn.

LangGraph's `Send` was tried first, but its argument is stored whole: a turn on 1,000 messages took
1.9 MB. A subgraph for each voice took 5.5 MB and six namespaces; also, a subgraph's tokens do not
appear in its parent's stream, and `turn` takes only one write per superstep.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Semaphore
from typing import Any, cast

from langgraph.errors import GraphBubbleUp
from langgraph.func import task

from longtable.base.concurrency import Execution, complete
from longtable.base.events import VoiceStarted
from longtable.nodes.closing.failures import ASK_AGAIN, FAILED
from longtable.nodes.respond import Respond
from longtable.nodes.route import (
    after_estimate,
    after_respond,
    after_run_tools,
    counts_after_run_tools,
)
from longtable.nodes.run_tools import RunTools
from longtable.nodes.state import (
    VOICE_TASK,
    Now,
    State,
    Turn,
    Update,
    is_ahead,
    with_last,
    without_key,
)
from longtable.nodes.team.team import Team
from longtable.nodes.team.turn_order import OF_VOICE, asked_next, at_once, scene_of, taken_over


@dataclass(frozen=True)
class AtOnce:
    """The node `respond` of a team. It asks voices at the same time if the mode allows that, and
    otherwise one voice.
    """

    team: Team
    respond: Respond
    run_tools: RunTools
    count: Callable[..., Update]

    async def __call__(self, now: Now, how: Execution) -> Update:
        turn = now.turn
        first_voice = turn.get("voice", "")
        if is_ahead(now.state, turn):
            return self._taken(now)
        voices = [first_voice] if turn.get("calls") or "alone" in turn else self._together(now)
        for persona in (
            self.team.personas[voice]
            for voice in voices
            if voice in self.team.personas and not turn.get("calls")
        ):
            started = VoiceStarted(
                type="voice_started", voice=persona.id, name=persona.display, color=persona.color
            )
            now.runtime.stream_writer({**started, "at_once": True} if len(voices) > 1 else started)
        if len(voices) == 1:
            return await self.respond(now, how)
        # Kept for the turn: each is asked once.
        await self.respond.providers.collect(now, how)
        # One call is each one's own, so that a later voice takes nobody's only one.
        left = turn.get("calls_left", self.team.max_calls) - len(voices)
        shared = SharedCalls()
        begun_here: set[str] = set()
        runs = list[Any]()
        for voice in voices:
            own = (
                turn
                if voice == first_voice
                else {**asked_next(turn, voice), "skipped": turn.get("skipped")}
            )
            begun = now.with_turn(cast("Turn", {**own, "calls_left": left + 1}))
            step = "respond" if voice == first_voice else "estimate"
            work = partial(self._voice, begun, step, how, shared, begun_here)
            runs.append(
                cast("Any", task)(
                    work if how.on_loop else partial(_completed, work), name=VOICE_TASK
                )()
            )
        shared.open(left - _extra_calls(dict(zip(voices, runs, strict=True)), begun_here))
        results: list[Any] = await how.call(
            partial(_results, runs), lambda: asyncio.gather(*runs, return_exceptions=True)
        )
        if errors := [each for each in results if isinstance(each, BaseException)]:
            # Now that what the others made is stored.
            raise errors[0]
        calls = sum(each["turn"].get("calls", 0) for each in results)
        turn = {**turn, "calls_left": max(0, left + len(voices) - calls)}
        made = dict(zip(voices, results, strict=True))
        ahead = {**(now.state.get("ahead") or {}), **made}
        return self._taken(now.after({"turn": turn, "ahead": ahead}))

    def _together(self, now: Now) -> list[str]:
        """Return the voices to ask at the same time. The first is the voice whose turn it is; it
        may be the only one.
        """
        turn = now.turn
        there = now.config.get("voices", {})
        scene = scene_of(self.team, now.thread.messages, turn)
        voices = [voice for voice in at_once(self.team, scene) if voice in there]
        new = [voice for voice in voices if not is_ahead(now.state, {**turn, "voice": voice})]
        return (
            new[: max(1, turn.get("calls_left", 1))]
            if new[:1] == [turn.get("voice")]
            else [turn.get("voice", "")]
        )

    async def _voice(
        self, begun: Now, step: str, how: Execution, shared: "SharedCalls", begun_here: set[str]
    ) -> Update:
        """Run the steps of one voice and return their update. Stop at the voice's answer, or at a
        step that only one voice at a time can take.

        Such a step is a compaction, an approval, a tool that asks a person, or the closing of a
        request that the provider refused. The id of the voice is added to `begun_here`.
        """
        voice = begun.turn["voice"]
        begun_here.add(voice)
        write = begun.runtime.stream_writer
        # What is asked of a person is asked when it is the voice's turn.
        runtime = begun.runtime.override(
            stream_writer=lambda event: (
                event["type"] == "approval_requested" or write({"voice": voice, **event})
            )
        )
        now = replace(begun, runtime=runtime)
        while step not in ("settle", "approve", "compact"):
            if step == "respond" and now.turn.get("calls") and not shared.take():
                now = now.with_turn({**now.turn, "status": "call_budget"})
                break
            node = self.respond if step == "respond" else self.run_tools
            before = now
            try:
                counted = how.call(partial(self.count, now)) if step == "estimate" else None
                update = await (counted or node(now, how))
            except GraphBubbleUp:
                # A tool asks a person: it is run again when it is this voice's turn.
                break
            refused = update.get("turn", {}).get("status") in ("overflow", ASK_AGAIN, FAILED)
            now = before if refused else before.after(update)
            step = "compact" if refused else _next_step(step, before, now)
        if step == "compact":
            now = now.with_turn({**now.turn, "status": ASK_AGAIN, "alone": True})
        return _made(begun.state, now.state)

    def _taken(self, now: Now) -> Update:
        """Return the update of the voice whose turn it is, which was made earlier and stored in
        `ahead`.
        """
        turn = now.turn
        ahead = now.state.get("ahead") or {}
        messages = now.thread.messages
        result = ahead[turn["voice"]]
        own = {name: value for name, value in result["turn"].items() if name in OF_VOICE}
        turn = cast("Turn", {**without_key(turn, *OF_VOICE), **own})
        transcript = taken_over(result.get("messages", ()), self.team, messages, turn)
        rest: dict[str, Any] = {
            voice: each for voice, each in ahead.items() if voice != turn["voice"]
        }
        return {
            **cast("Update", result),
            "messages": transcript,
            "turn": with_last(turn, transcript),
            "ahead": rest,
        }


class SharedCalls:
    """Model calls that voices asked at the same time may make beyond the one that each has."""

    def __init__(self) -> None:
        self._opened = Event()
        self._left = Semaphore(0)

    def open(self, calls: int) -> None:
        """Set how many calls the voices may take. Until then `take` waits."""
        if calls > 0:
            self._left.release(calls)
        self._opened.set()

    def take(self) -> bool:
        """Take one call. Return False if none is left."""
        self._opened.wait()
        return self._left.acquire(blocking=False)


def _extra_calls(runs: Mapping[str, Future[Update]], begun_here: Collection[str]) -> int:
    """Return the calls beyond the first of each voice whose result an earlier run stored.

    LangGraph gives such a result at once, without a call of the voice's work.
    """
    stored = [run for voice, run in runs.items() if run.done() and voice not in begun_here]
    calls = [run.result()["turn"].get("calls", 0) for run in stored if not run.exception()]
    return sum(max(0, number - 1) for number in calls)


def _completed(work: Callable[[], Coroutine[Any, Any, Update]]) -> Update:
    return complete(work())


def _results(runs: Sequence[Future[Update]]) -> list[Update | BaseException]:
    wait(runs)
    return [run.exception() or run.result() for run in runs]


def _next_step(step: str, before: Now, after: Now) -> str:
    if step == "run_tools":
        counts = counts_after_run_tools(before, after)
        return "estimate" if counts else after_run_tools(after.state)
    return after_estimate(after.state) if step == "estimate" else after_respond(after.state)


def _made(before: State, now: State) -> Update:
    """Return the update that leads from the state `before` to the state `now`. It has all channels
    that changed; of `messages` and `edits`, it has only the new items.
    """
    old = cast("dict[str, Any]", before)
    new = cast("dict[str, Any]", now)
    lists = ("messages", "edits")
    changed = {name: value for name, value in new.items() if value is not old.get(name)}
    return cast(
        "Update",
        {
            name: each[len(old.get(name) or ()) :] if name in lists else each
            for name, each in changed.items()
        },
    )
