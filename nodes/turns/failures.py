"""Report a failed run to the person in one sentence; the developer's text goes to the log, never to a server's clients."""

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from langchain_core.messages import HumanMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from longtable.base.context import Context
from longtable.base.errors import LongtableError, RunFailedError, client_error
from longtable.base.events import Event, Failed
from longtable.memory.summary import language_of
from longtable.nodes.state import State, newest_language, thread_of, turn_of
from longtable.nodes.turns.tracing import log_failure

P = ParamSpec("P")
_REPORTED = "_reported"
"""Attribute of an error for which the event `failed` was sent."""


class _HasContext(Protocol):
    @property
    def context(self) -> Context: ...


Owner = TypeVar("Owner", bound=_HasContext)


@contextmanager
def reporting(state: State, runtime: Runtime[Context]) -> Iterator[None]:
    """Send the event `failed` where a node fails. On a server, raise an error that holds only what a client may read."""
    try:
        yield
    except (GraphBubbleUp, RunFailedError):  # an interrupt; a failure that a graph within this one reported
        raise
    except Exception as error:
        if _is_retried(error):
            raise
        event = failed(error, _language(state, runtime.context))
        runtime.stream_writer(event)
        if runtime.server_info is None:
            error.__dict__[_REPORTED] = True
            raise
        log_failure(event["code"], error)
        raise client_error(error, event["text"], event["code"]) from None  # a server shows and logs causes, keys and all


def failed(error: Exception, language: str) -> Failed:
    """Return the event of a failure."""
    known = error if isinstance(error, LongtableError) else LongtableError()
    wait = getattr(error, "retry_after", getattr(error, "wait_s", None)) if known is error else None
    return Failed(type="failed", code=known.code, text=known.user_text(language), retry_after=wait)


def ends_with_failed(stream: Callable[Concatenate[Owner, P], Iterator[Event]]) -> Callable[Concatenate[Owner, P], Iterator[Event]]:
    """Decorate a stream of events: a failure outside the nodes, such as in the store, is its last event, too."""

    @wraps(stream)
    def wrapper(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Event]:
        try:
            yield from stream(self, *args, **kwargs)
        except Exception as error:
            if not _is_reported(error):
                yield failed(error, _language_of_call(self.context, args))
            raise

    return wrapper


def aends_with_failed(
    stream: Callable[Concatenate[Owner, P], AsyncGenerator[Event, None]],
) -> Callable[Concatenate[Owner, P], AsyncGenerator[Event, None]]:
    """Decorate an async stream: see `ends_with_failed`."""

    @wraps(stream)
    async def wrapper(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Event, None]:
        try:
            async with aclosing(stream(self, *args, **kwargs)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            if not _is_reported(error):
                yield failed(error, _language_of_call(self.context, args))
            raise

    return wrapper


def _is_reported(error: BaseException | None) -> bool:
    """Return whether a node sent an event for this error or for its cause."""
    return error is not None and (_REPORTED in vars(error) or _is_reported(error.__cause__))


def _language_of_call(context: Context, args: tuple[object, ...]) -> str:
    return context.language or language_of([HumanMessage(text) for text in args if isinstance(text, str)])


def _language(state: State, context: Context) -> str:
    turn = turn_of(state)
    refused = turn["refusal"]["language"] if turn.get("status") == "refused" else ""
    return context.language or refused or newest_language(thread_of(state).messages)


def _is_retried(error: Exception) -> bool:
    """Return whether Agent Server runs the turn again after an error of this class."""
    worker = sys.modules.get("langgraph_api.worker_runtime")
    return isinstance(error, getattr(worker, "ALL_RETRIABLE_EXCEPTIONS", ()))
