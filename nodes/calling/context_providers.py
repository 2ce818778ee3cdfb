"""Ask a graph's context providers for material. An event names the providers that failed or were
too slow.
"""

import asyncio
import contextvars
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from longtable.base.concurrency import BoundedCache, Execution, in_daemon
from longtable.base.errors import ConfigError, Reason
from longtable.base.events import ContextPassed, PassedMaterial
from longtable.memory.materials import Material, MaterialPart
from longtable.memory.messages.rounds import is_users
from longtable.nodes.state import Now

CACHED_TURNS = 64
"""Most turns whose material a process keeps. The material is kept so that a turn of several model
calls asks each provider only once.
"""


@dataclass(frozen=True, kw_only=True)
class ContextRequest:
    """A request to a context provider. `messages`: the thread's live transcript without excluded
    messages; a provider must not change it. `store`: the store of the graph, None without one.
    """

    question: str
    thread_id: str | None
    turn: int
    owner: str | None
    messages: Sequence[BaseMessage] = field(repr=False)
    store: BaseStore | None = field(default=None, repr=False)


@dataclass(frozen=True)
class CitedText:
    """Material, and the names of what it quotes. The event and the metadata repeat these names."""

    text: str
    cites: Sequence[str] = ()
    left_out: Sequence[Reason] = ()
    """What is missing in the material, and why. The event tells it."""
    ends: Sequence[int] = ()
    """Where in the text each of `cites` ends, in characters. A longer text is cut there."""


Provided = str | CitedText
Provide = Callable[[ContextRequest], Provided | Awaitable[Provided]]


@dataclass(frozen=True, kw_only=True)
class ContextProvider:
    """A source of material for the calls of a turn.

    `provide`: a sync or async function that returns the material as text, "" if there is none.
    `name`: the name in events and metadata. `seconds`: how long a call waits for the provider at
    most. `max_tokens`: the most tokens of its material.
    """

    name: str
    provide: Provide
    seconds: float = 5.0
    max_tokens: int = 2_000

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > 100 or not self.name.isprintable():
            raise ConfigError(
                "a context provider needs a name of 1 to 100 printable characters, found"
                f" {self.name[:80]!r}"
            )
        if not 0 < self.seconds <= 600 or self.max_tokens < 1:
            raise ConfigError(
                f"context provider {self.name!r}: seconds must be over 0 and at most 600,"
                f" max_tokens at least 1, found {self.seconds!r} and {self.max_tokens!r}"
            )


@dataclass(frozen=True)
class ProvidedContext:
    """The material for one turn, and the reasons why material of some providers is missing."""

    materials: Sequence[Material] = ()
    failures: Sequence[Reason] = ()


@dataclass(frozen=True)
class ContextProviders:
    """Ask the context providers of a graph: all at the same time, and only once per turn (in the
    same process).
    """

    providers: Sequence[ContextProvider] = ()
    turns: BoundedCache[str, ProvidedContext] = field(
        default_factory=lambda: BoundedCache(CACHED_TURNS), compare=False
    )

    async def collect(self, now: Now, how: Execution) -> ProvidedContext:
        """Return the material of this turn. This waits for all providers, at most as long as the
        largest of their `seconds`.
        """
        if not self.providers:
            return ProvidedContext()
        thread_id = now.thread_id
        turn = now.turn
        number = turn.get("number", 0)
        # A turn is known by the run that opened it.
        key = f"{thread_id}/{turn['run']}/{number}" if thread_id and turn.get("run") else ""
        if key and (cached := self.turns.get(key)):
            return cached
        thread = now.thread
        owner = now.context.owner
        messages = [message for message in thread.messages if message.id not in thread.excluded]
        question = next(
            (str(message.text) for message in reversed(messages) if is_users(message)), ""
        )
        request = ContextRequest(
            question=question,
            thread_id=thread_id,
            turn=number,
            owner=owner,
            messages=messages,
            store=now.runtime.store,
        )
        answers = await how.call(
            partial(_ask_in_threads, self.providers, request),
            lambda: asyncio.gather(*(_ask(provider, request) for provider in self.providers)),
        )
        failures: list[Reason] = []
        materials: list[Material] = []
        for provider, answer in zip(self.providers, answers, strict=True):
            failures += answer.left_out
            if answer.failure:
                message = f"{provider.name}: {answer.detail}"
                failures.append(Reason(code=answer.failure, message=message))
            if answer.text.strip():
                materials.append(answer.material(provider))
        provided = ProvidedContext(materials, failures)
        return self.turns.put(key, provided) if key else provided


def context_passed_event(
    call: int, parts: Sequence[MaterialPart], failures: Sequence[Reason]
) -> ContextPassed:
    """Return the event that lists the material sent with a call, and the material left out."""
    materials = [
        PassedMaterial(
            source=part.source,
            tokens=part.tokens,
            ms=part.ms,
            shortened=part.shortened,
            cites=[*part.cites],
        )
        for part in parts
        if part.tokens
    ]
    no_room = [
        Reason(code="no_room", message=f"{part.source}: the call has no room for it")
        for part in parts
        if not part.tokens
    ]
    return ContextPassed(
        type="context_passed", call=call, passed=materials, left_out=[*failures, *no_room]
    )


# -- one provider ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProviderAnswer:
    """The answer of one provider. `failure` is the code of its failure, "" if it gave a text."""

    text: str = ""
    ms: int = 0
    failure: str = ""
    detail: str = ""
    cites: Sequence[str] = ()
    left_out: Sequence[Reason] = ()
    ends: Sequence[int] = ()

    def material(self, provider: ContextProvider) -> Material:
        """Return the text as material for calls."""
        most = provider.max_tokens
        return Material(provider.name, self.text, self.ms, most, self.cites, self.ends)


SLOW = ProviderAnswer(failure="provider_slow", detail="it did not answer in time")


def _ask_in_threads(
    providers: Sequence[ContextProvider], request: ContextRequest
) -> list[ProviderAnswer]:
    started = time.monotonic()
    waiting = [
        (_in_thread(provider, request), started + provider.seconds) for provider in providers
    ]
    answers: list[ProviderAnswer] = []
    for answer, until in waiting:
        try:
            answers.append(answer.result(timeout=max(0.0, until - time.monotonic())))
        except TimeoutError:
            answers.append(SLOW)
    return answers


async def _ask(provider: ContextProvider, request: ContextRequest) -> ProviderAnswer:
    if inspect.iscoroutinefunction(provider.provide):
        work: asyncio.Future[ProviderAnswer] = asyncio.ensure_future(
            _awaited(provider.provide(request))
        )
    else:
        work = asyncio.wrap_future(_in_thread(provider, request))
    # Not `wait_for`: it waits for the end of what it cancels, and a provider may go on for ever.
    try:
        done, _ = await asyncio.wait([work], timeout=provider.seconds)
    finally:
        work.cancel()
    return work.result() if done else SLOW


def _in_thread(provider: ContextProvider, request: ContextRequest) -> "Future[ProviderAnswer]":
    in_context = contextvars.copy_context().run
    return in_daemon(partial(in_context, _answer, provider, request), f"context-{provider.name}")


def _answer(provider: ContextProvider, request: ContextRequest) -> ProviderAnswer:
    started = time.monotonic()
    try:
        text: Any = provider.provide(request)
        if inspect.isawaitable(text):
            return asyncio.run(_awaited(text))
        return _checked(text, started)
    except BaseException as error:  # whatever a provider raises leaves it out
        return _failure(error)


async def _awaited(text: Awaitable[Provided]) -> ProviderAnswer:
    started = time.monotonic()
    try:
        return _checked(await text, started)
    except (Exception, asyncio.CancelledError) as error:  # as above; it may cancel itself
        return _failure(error)


def _checked(given: Any, started: float) -> ProviderAnswer:
    cited = given if isinstance(given, CitedText) else CitedText(given)
    text: Any = cited.text
    if text is not None and not isinstance(text, str):
        return ProviderAnswer(
            failure="provider_failed", detail=f"it gave {type(text).__name__}, no text"
        )
    storable = (text or "").encode("utf-8", "replace").decode()
    ms = round((time.monotonic() - started) * 1000)
    cites = [str(name) for name in cited.cites]
    ends = cited.ends if len(cited.ends) == len(cites) else ()
    return ProviderAnswer(storable, ms, cites=cites, left_out=cited.left_out, ends=ends)


def _failure(error: BaseException) -> ProviderAnswer:
    # Its class only: the words of somebody else's client may hold a key or a URL.
    return ProviderAnswer(failure="provider_failed", detail=f"it failed ({type(error).__name__})")
