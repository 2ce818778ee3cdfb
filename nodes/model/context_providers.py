"""Ask the context providers of a graph for what goes with the next call; one that fails or is slow is left out and said so."""

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime

from longtable.base.context import Context
from longtable.base.errors import ConfigError, Reason
from longtable.base.events import ContextPassed, PassedMaterial
from longtable.memory.materials import Material, MaterialPart
from longtable.nodes.records.bounded_cache import BoundedCache
from longtable.nodes.records.thread_index import thread_id_of
from longtable.nodes.state import State, thread_of, turn_of

KEPT_TURNS = 64
"""Turns whose material a process keeps, so that a turn of several calls asks each provider once."""


@dataclass(frozen=True, kw_only=True)
class ContextRequest:
    """What a provider is told: the question, and whose it is. `messages`: the thread's live transcript, not to be changed."""

    question: str
    thread_id: str | None
    turn: int
    owner: str | None
    messages: Sequence[BaseMessage] = field(repr=False)


Provide = Callable[[ContextRequest], str | Awaitable[str]]


@dataclass(frozen=True, kw_only=True)
class ContextProvider:
    """A function that gives material for the calls of one turn, "" for none; sync or async.

    `name`: how events and metadata call it; `seconds`: how long a call waits for it; `max_tokens`: what it may take.
    """

    name: str
    provide: Provide
    seconds: float = 5.0
    max_tokens: int = 2_000

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > 100 or not self.name.isprintable():
            raise ConfigError(f"a context provider needs a name of 1 to 100 printable characters, found {self.name[:80]!r}")
        if not 0 < self.seconds <= 600 or self.max_tokens < 1:
            raise ConfigError(
                f"context provider {self.name!r}: seconds must be over 0 and at most 600, max_tokens at least 1, "
                f"found {self.seconds!r} and {self.max_tokens!r}"
            )


@dataclass(frozen=True)
class ProvidedContext:
    """What the providers gave for one turn."""

    materials: Sequence[Material] = ()
    failures: Sequence[Reason] = ()


@dataclass(frozen=True)
class ContextProviders:
    """Asks the providers of a graph, all at once, once a turn in one process."""

    providers: Sequence[ContextProvider] = ()
    kept: BoundedCache[tuple[str, str], ProvidedContext] = field(default_factory=lambda: BoundedCache(KEPT_TURNS), compare=False)

    def collect(self, state: State, runtime: Runtime[Context]) -> ProvidedContext:
        """Return the material of this turn. Blocking: at most as long as the slowest provider may take."""
        if not self.providers or (known := self._known(state, runtime)):
            return known if self.providers and known else ProvidedContext()
        asked, started = _asked(state, runtime), time.monotonic()
        waiting = [(provider, _in_thread(provider, asked)) for provider in self.providers]
        outcomes = [(provider, answer.wait(started + provider.seconds)) for provider, answer in waiting]
        return self._keep(state, runtime, outcomes)

    async def acollect(self, state: State, runtime: Runtime[Context]) -> ProvidedContext:
        """Do the same without blocking the event loop; async providers run in it."""
        if not self.providers or (known := self._known(state, runtime)):
            return known if self.providers and known else ProvidedContext()
        asked = _asked(state, runtime)
        outcomes = await asyncio.gather(*(_aoutcome(provider, asked) for provider in self.providers))
        return self._keep(state, runtime, list(zip(self.providers, outcomes, strict=True)))

    def _known(self, state: State, runtime: Runtime[Context]) -> ProvidedContext | None:
        key = _key(state, runtime)
        return self.kept.get(key) if key else None

    def _keep(self, state: State, runtime: Runtime[Context], outcomes: "Sequence[tuple[ContextProvider, Outcome]]") -> ProvidedContext:
        materials: list[Material] = []
        failures: list[Reason] = []
        for provider, outcome in outcomes:
            if outcome.failure:
                failures.append(Reason(code=outcome.failure, message=f"{provider.name}: {outcome.told}"))
            elif outcome.text.strip():
                materials.append(Material(provider.name, outcome.text, outcome.ms, provider.max_tokens))
        provided = ProvidedContext(materials, failures)
        key = _key(state, runtime)
        return self.kept.put(key, provided) if key else provided


def context_passed_event(call: int, parts: Sequence[MaterialPart], failures: Sequence[Reason]) -> ContextPassed:
    """Return the event that tells what goes with a call, and what was left out."""
    passed = [PassedMaterial(source=part.source, tokens=part.tokens, ms=part.ms, shortened=part.shortened) for part in parts if part.tokens]
    no_room = [Reason(code="no_room", message=f"{part.source}: the call has no room for it") for part in parts if not part.tokens]
    return ContextPassed(type="context_passed", call=call, passed=passed, left_out=[*failures, *no_room])


# -- one provider ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What asking one provider came to; `failure` is a code, "" where it gave its text."""

    text: str = ""
    ms: int = 0
    failure: str = ""
    told: str = ""


class _Answer:
    """One provider at work in a thread of its own, which nobody waits for longer than it may take."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.outcome = Outcome(failure="provider_slow", told="it did not answer in time")

    def wait(self, until: float) -> Outcome:
        self.done.wait(max(0.0, until - time.monotonic()))
        return self.outcome


def _in_thread(provider: ContextProvider, asked: ContextRequest) -> _Answer:
    answer, context = _Answer(), contextvars.copy_context()

    def work() -> None:
        started = time.monotonic()
        try:
            made = provider.provide(asked)
            answer.outcome = _outcome(asyncio.run(_awaited(made)) if inspect.isawaitable(made) else made, started)
        except Exception as error:  # whatever a provider raises leaves it out
            answer.outcome = _failed(error)
        answer.done.set()

    # A daemon: one that hangs for ever holds up neither the turn nor the end of the process.
    threading.Thread(target=context.run, args=(work,), daemon=True, name=f"context-{provider.name}").start()
    return answer


async def _aoutcome(provider: ContextProvider, asked: ContextRequest) -> Outcome:
    started = time.monotonic()
    if not inspect.iscoroutinefunction(provider.provide):
        answer = _in_thread(provider, asked)
        while not answer.done.is_set() and time.monotonic() - started < provider.seconds:
            await asyncio.sleep(0.005)
        return answer.outcome
    work = asyncio.ensure_future(provider.provide(asked))
    # Not `wait_for`, which waits for the end of what it cancels: one that goes on all the same would hold up the turn for ever.
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait([work], timeout=provider.seconds)
    finally:
        if not work.done():
            work.cancel()
    if not work.done():
        return _Answer().outcome
    try:
        return _outcome(work.result(), started)
    except (Exception, asyncio.CancelledError) as error:  # as above; it may cancel itself
        return _failed(error)


async def _awaited(made: Awaitable[str]) -> str:
    return await made


def _outcome(text: Any, started: float) -> Outcome:
    if text is not None and not isinstance(text, str):
        return Outcome(failure="provider_failed", told=f"it gave {type(text).__name__}, no text")
    clean = (text or "").encode("utf-8", "replace").decode()
    return Outcome(clean, round((time.monotonic() - started) * 1000))


def _failed(error: BaseException) -> Outcome:
    # Its class only: the words of somebody else's client may hold a key or a URL.
    return Outcome(failure="provider_failed", told=f"it failed ({type(error).__name__})")


def _asked(state: State, runtime: Runtime[Context]) -> ContextRequest:
    messages = thread_of(state).messages
    question = next((str(message.text) for message in reversed(messages) if message.type == "human"), "")
    context, turn = runtime.context or Context(), int(turn_of(state).get("number", 0))
    return ContextRequest(question=question, thread_id=thread_id_of(runtime), turn=turn, owner=context.owner, messages=tuple(messages))


def _key(state: State, runtime: Runtime[Context]) -> tuple[str, str] | None:
    """Return what tells turns apart: the thread, and the run that opened the turn."""
    thread_id, run = thread_id_of(runtime), turn_of(state).get("run")
    return (thread_id, f"{run}/{turn_of(state).get('number')}") if thread_id and run else None
