"""Tell a person that a run failed, and keep the developer's words from the clients of a server."""

import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from langchain_core.messages import HumanMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from longtable.graph.context import Context
from longtable.graph.errors import LongtableError, RunFailedError, for_clients
from longtable.graph.events import Event, Failed
from longtable.graph.state import State, thread_of, turn_of
from longtable.memory.summary import language_of
from longtable.nodes.settle import newest_language
from longtable.nodes.tracing import log_failure

P = ParamSpec("P")
_TOLD = "_told"
"""Attribute of an error that was told as an event."""


class _Talk(Protocol):
    @property
    def context(self) -> Context: ...


Talk = TypeVar("Talk", bound=_Talk)


@contextmanager
def reporting(state: State, runtime: Runtime[Context]) -> Iterator[None]:
    """Run a node; tell its failure by the event `failed`, and on a server raise what a client may read in the error's place."""
    try:
        yield
    except (GraphBubbleUp, RunFailedError):  # an interrupt; a graph within this one told it
        raise
    except Exception as error:
        if _is_retried(error):
            raise
        event = failed(error, _language(state, runtime.context))
        runtime.stream_writer(event)
        if runtime.server_info is None:
            error.__dict__[_TOLD] = True
            raise
        log_failure(event["code"], error)
        raise for_clients(error, event["text"], event["code"]) from None  # a server shows and logs causes, keys and all


def failed(error: Exception, language: str) -> Failed:
    """Return the event of a failure."""
    known = error if isinstance(error, LongtableError) else LongtableError()
    wait = getattr(error, "retry_after", getattr(error, "wait_s", None)) if known is error else None
    return Failed(type="failed", code=known.code, text=known.user_text(language), retry_after=wait)


def telling(stream: Callable[Concatenate[Talk, P], Iterator[Event]]) -> Callable[Concatenate[Talk, P], Iterator[Event]]:
    """Let a stream of events end with the event `failed` where it fails outside the nodes: before a run begins, in its store."""

    @wraps(stream)
    def told(self: Talk, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Event]:
        try:
            yield from stream(self, *args, **kwargs)
        except Exception as error:
            if not _was_told(error):
                yield failed(error, _language_of_call(self.context, args))
            raise

    return told


def atelling(
    stream: Callable[Concatenate[Talk, P], AsyncGenerator[Event, None]],
) -> Callable[Concatenate[Talk, P], AsyncGenerator[Event, None]]:
    """Let an awaited stream do so: see `telling`."""

    @wraps(stream)
    async def told(self: Talk, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Event, None]:
        try:
            async with aclosing(stream(self, *args, **kwargs)) as events:
                async for event in events:
                    yield event
        except Exception as error:
            if not _was_told(error):
                yield failed(error, _language_of_call(self.context, args))
            raise

    return told


def _was_told(error: BaseException | None) -> bool:
    """Return whether a node told of this error, or of the one that it was made of."""
    return error is not None and (_TOLD in vars(error) or _was_told(error.__cause__))


def _language_of_call(context: Context, args: tuple[object, ...]) -> str:
    return context.language or language_of([HumanMessage(text) for text in args if isinstance(text, str)])


def _language(state: State, context: Context) -> str:
    turn = turn_of(state)
    refused = str((turn.get("refusal") or {}).get("language", "")) if turn.get("status") == "refused" else ""
    return context.language or refused or newest_language(thread_of(state).messages)


def _is_retried(error: Exception) -> bool:
    """Return whether Agent Server runs the turn again after this error: it knows it by its class."""
    worker = sys.modules.get("langgraph_api.worker_runtime")
    return isinstance(error, getattr(worker, "ALL_RETRIABLE_EXCEPTIONS", ()))
