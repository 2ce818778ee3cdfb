"""Tell a person that a run failed, and keep the developer's words from the clients of a server."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from longtable.graph.context import Context
from longtable.graph.errors import LongtableError, RunFailedError, for_clients
from longtable.graph.events import Failed
from longtable.graph.state import State, thread_of, turn_of
from longtable.nodes.settle import newest_language
from longtable.nodes.tracing import log_failure

_TOLD = "_told"
"""Attribute of an error that was told as an event."""


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


def was_told(error: Exception) -> bool:
    """Return whether a node told of this error by an event."""
    return _TOLD in vars(error)


def _language(state: State, context: Context) -> str:
    turn = turn_of(state)
    refused = str((turn.get("refusal") or {}).get("language", "")) if turn.get("status") == "refused" else ""
    return context.language or refused or newest_language(thread_of(state).messages)


def _is_retried(error: Exception) -> bool:
    """Return whether Agent Server runs the turn again after this error: it knows it by its class."""
    worker = sys.modules.get("langgraph_api.worker_runtime")
    return isinstance(error, getattr(worker, "ALL_RETRIABLE_EXCEPTIONS", ()))
