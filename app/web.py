"""Routes beside Agent Server's own: compact now, delete, usage, topics, results as CSV and Arrow, archive files.

`langgraph.json` names `app`.

Whose threads are asked for: the identity that the server's authentication found; without one the header
`X-Longtable-Owner`, which a proxy in front sets. A thread of another owner is not found.
"""

import csv
import io
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from longtable.app import web_threads
from longtable.app.result_files import csv_cells
from longtable.app.session import server_archive, server_results
from longtable.base.context import is_owner, requester
from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    InputError,
    LongtableError,
    ProviderError,
    ProviderRateLimitedError,
    ThreadBusyError,
    ThreadExistsError,
    ThreadNotFoundError,
    TurnPendingError,
    UndoTooFarError,
    UnknownArchiveError,
    UnknownMessageError,
    UnknownPinError,
    UnknownTopicError,
    UnknownTurnError,
)
from longtable.base.twins import in_thread
from longtable.graph.changes import TopicHistory, topic_histories
from longtable.graph.reports import ALL, spent_in
from longtable.graph.transcripts import ThreadRecord, find_thread, load_thread
from longtable.memory.spent import added
from longtable.nodes.turns.failures import failed_event as failure
from longtable.tools.results import ResultGoneError, UnknownResultError

if TYPE_CHECKING:
    from longtable.tools.results import ResultMeta, ResultStore

OWNER_HEADER = "x-longtable-owner"
SAFE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
STATUS: tuple[tuple[type[LongtableError], int], ...] = (
    (ThreadNotFoundError, 404),
    (UnknownTopicError, 404),
    (UnknownResultError, 404),
    (UnknownArchiveError, 404),
    (UnknownTurnError, 404),
    (UnknownMessageError, 404),
    (UnknownPinError, 404),
    (ResultGoneError, 410),
    (TurnPendingError, 409),
    (ThreadBusyError, 409),
    (ThreadExistsError, 409),
    (UndoTooFarError, 409),
    (ProviderRateLimitedError, 429),
    (ProviderError, 502),
    (DatabaseError, 503),
    (InputError, 422),
    (ConfigError, 400),
)
"""HTTP status by error, the first that fits; another typed error is a 500."""

Handler = Callable[[Request], Awaitable[Response]]


def status_of(error: LongtableError) -> int:
    """Return the HTTP status that tells a typed error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


async def compact(request: Request) -> Response:
    """Compact a thread now, also under the threshold."""
    made = await web_threads.compact(_client(request), request.path_params["thread_id"], owner_of(request))
    if made is not None and made["type"] == "context_compaction_skipped":
        return _json({"compacted": None, "reasons": made["reasons"]})
    return _json({"compacted": made})


async def delete(request: Request) -> Response:
    """Delete a thread with its results, archive files and audit; after the server's own delete, what that left of it."""
    thread_id = request.path_params["thread_id"]
    await web_threads.delete(_client(request), thread_id, owner_of(request), results=server_results(), archive=server_archive())
    return Response(status_code=204, headers=SAFE)


async def usage(request: Request) -> Response:
    """Return the tokens a thread took, by day, model and purpose, or as `?by=` says."""
    asked = request.query_params.get("by", ",".join(ALL))
    by = [name for name in ALL if name in asked.split(",")]
    if len(by) != len(asked.split(",")):
        raise ConfigError(f"by= takes {', '.join(ALL)}, found {asked[:80]!r}")
    return _json({"usage": [asdict(spent) for spent in added(spent_in(await _load(request)), by)]})


async def topics(request: Request) -> Response:
    """Return each topic as its newest version is, with all its versions."""
    return _json({"topics": [asdict(topic) for topic in _topics(await _load(request))]})


async def topic(request: Request) -> Response:
    """Return one topic's document as Markdown; `?version=` an older one."""
    topic_id = request.path_params["topic_id"]
    wanted = request.query_params.get("version")
    history = [version for topic in _topics(await _load(request)) if topic.id == topic_id for version in topic.versions]
    found = [version for version in history if wanted in (None, str(version.version))]
    if not found:
        raise UnknownTopicError(topic_id)
    return Response(found[-1].artifact, media_type="text/markdown; charset=utf-8", headers=SAFE)


def _topics(record: ThreadRecord) -> list[TopicHistory]:
    return topic_histories(record.thread, record.retired)


async def results(request: Request) -> Response:
    """Return what is known of the thread's whole results, oldest first."""
    store, thread_id = server_results(), await _seen(request)
    return _json({"results": [_described(meta) for meta in store.handles(thread_id)]})


async def result_csv(request: Request) -> Response:
    """Return a whole result as CSV with a heading, a batch at a time."""
    store, thread_id = server_results(), await _seen(request)
    handle = request.path_params["handle"]
    store.path(thread_id, handle)  # its errors have a status; those of a stream have none
    quote = request.query_params.get("quote_formulas") == "1"
    return StreamingResponse(_csv(store, thread_id, handle, quote), media_type="text/csv; charset=utf-8", headers=_file(f"{handle}.csv"))


async def result_arrow(request: Request) -> Response:
    """Return a whole result as an Arrow IPC stream."""
    store, thread_id = server_results(), await _seen(request)
    handle = request.path_params["handle"]
    body = await run_in_threadpool(arrow_bytes, store, thread_id, handle)
    return Response(body, media_type="application/vnd.apache.arrow.stream", headers=_file(f"{handle}.arrows"))


async def archive(request: Request) -> Response:
    """Return which files were written before the thread's compactions, oldest first."""
    thread_id = await _seen(request)
    files = server_archive()
    found = await run_in_threadpool(files.files, thread_id) if files else []
    return _json({"archive": [asdict(file) for file in found]})


async def archive_file(request: Request) -> Response:
    """Return one of these files."""
    thread_id, key = await _seen(request), request.path_params["key"]
    files = server_archive()
    if files is None:
        raise UnknownArchiveError(key)
    body = await run_in_threadpool(files.read, thread_id, key)
    return Response(body, media_type="application/json", headers=_file(key))


def owner_of(request: Request) -> str | None:
    """Return who asks: as the server's authentication found; the header says where the server has none."""
    owner = requester(request.scope.get("user"), request.headers.get(OWNER_HEADER))
    if owner is not None and not is_owner(owner):
        raise ConfigError(f"{OWNER_HEADER} must be 1 to 200 printable characters without blanks at its ends")
    return owner


async def failed(request: Request, error: Exception) -> Response:
    """Return a typed error's status, its code, one sentence for people, and the seconds to wait."""
    assert isinstance(error, LongtableError)
    language = "zh" if request.headers.get("accept-language", "").startswith("zh") else "en"
    told = failure(error, language)
    headers = {"Retry-After": f"{told['retry_after']:.0f}"} if told["retry_after"] else {}
    body = {"code": told["code"], "message": told["text"], "retry_after": told["retry_after"]}
    return _json({"error": body}, status=status_of(error), headers=headers)


async def _load(request: Request) -> ThreadRecord:
    threads = web_threads.ServerThreads(_client(request))
    whole, _ = await in_thread(load_thread, threads, request.path_params["thread_id"], owner_of(request))
    return whole


async def _seen(request: Request) -> str:
    """Return the thread's id. Raises `ThreadNotFoundError` where who asks may not see it."""
    thread_id: str = request.path_params["thread_id"]
    await in_thread(find_thread, web_threads.ServerThreads(_client(request)), thread_id, owner_of(request))
    return thread_id


def _client(request: Request) -> LangGraphClient:
    """Return a client of the server these routes are mounted in."""
    if find_spec("langgraph_api"):
        return get_client()
    passed = {name: value for name in ("authorization", "x-api-key", "cookie") if (value := request.headers.get(name))}
    return get_client(url=str(request.base_url), headers=passed)


def _csv(store: "ResultStore", thread_id: str, handle: str, quote_formulas: bool) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(csv_cells(store.meta(thread_id, handle).columns, quote_formulas=quote_formulas))
    for rows in store.batches(thread_id, handle):
        writer.writerows(csv_cells(row, quote_formulas=quote_formulas) for row in rows)
        yield buffer.getvalue().encode("utf-8", "replace").decode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _described(meta: "ResultMeta") -> dict[str, Any]:
    return {"handle": meta.handle, "columns": meta.columns, "types": meta.types, "rows": meta.row_count}


def _file(name: str) -> dict[str, str]:
    safe = "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "._-"))
    return {**SAFE, "Content-Disposition": f'attachment; filename="{safe}"'}


def _json(body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(json.loads(json.dumps(body, ensure_ascii=False)), status, headers={**SAFE, **(headers or {})})


THREAD = "/longtable/threads/{thread_id}"
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("DELETE", THREAD, delete),
    ("POST", f"{THREAD}/compact", compact),
    ("GET", f"{THREAD}/usage", usage),
    ("GET", f"{THREAD}/topics", topics),
    ("GET", f"{THREAD}/topics/{{topic_id}}", topic),
    ("GET", f"{THREAD}/archive", archive),
    ("GET", f"{THREAD}/archive/{{key:path}}", archive_file),
    ("GET", f"{THREAD}/results", results),
    ("GET", f"{THREAD}/results/{{handle}}.csv", result_csv),
    ("GET", f"{THREAD}/results/{{handle}}.arrow", result_arrow),
)
app = FastAPI(openapi_url=None, exception_handlers={LongtableError: failed})  # Aegra takes no plain Starlette application
for _method, _path, _handler in ROUTES:  # nor puts its authentication before Starlette's own routes
    app.add_api_route(_path, _handler, methods=[_method], response_model=None)


def arrow_bytes(store: "ResultStore", thread_id: str, handle: str) -> bytes:
    """Return a whole result as an Arrow IPC stream. Raises what `ResultStore.arrow` raises."""
    table = store.arrow(thread_id, handle)
    from pyarrow import BufferOutputStream, ipc

    sink = BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole
