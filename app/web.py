"""Routes beside Agent Server's own: the threads of an owner, what each holds, its results and what
it took.

`langgraph.json` names `app`.

Whose threads they are: the owner's whom the server's authentication found; without authentication
the header `X-Longtable-Owner` names the owner, which a proxy in front sets. A thread of another
owner is not found.
"""

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import chain, islice, starmap
from typing import TYPE_CHECKING, Any, cast, get_args

from fastapi import FastAPI
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from longtable.app.console.result_files import csv_cells
from longtable.app.server.server_threads import (
    ServerThreads,
    compact_thread,
    threads_there,
    write_metadata,
)
from longtable.app.session import server_archive, server_results
from longtable.app.settings.run_settings import running_settings
from longtable.base.concurrency import in_thread
from longtable.base.context import OWNER_RULE, is_owner, requester
from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    EditRefusedError,
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
from longtable.graph.changes import TopicHistory, preview_of, topic_histories
from longtable.graph.export.export_text import Drawing, parts_of
from longtable.graph.export.thread_file import Form, chart_drawer, export_as
from longtable.graph.reports import (
    ALL,
    audit_of,
    audit_of_threads,
    row_of,
    usage_of_threads,
    within,
)
from longtable.graph.threads import (
    MOST_THREADS,
    ThreadInfo,
    change_thread,
    delete_thread,
    list_threads,
    projects_of,
    search_threads,
)
from longtable.graph.transcripts import ThreadRecord, find_thread, load_thread, spent_in
from longtable.memory.counting.usage import By, added, price_rows
from longtable.memory.messages.marks import marks_of
from longtable.memory.pins.pins import current_pins
from longtable.nodes.closing.failures import failed_event
from longtable.nodes.state import values_of
from longtable.tools.charts.chart_tool import chart_of
from longtable.tools.results.result_store import ResultGoneError, UnknownResultError

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultMeta, ResultStore

PAGE = 100
MOST_PAGE = 1_000
"""Items of one answer, where the request does not say how many, and at most."""
BY: tuple[By, ...] = get_args(By)
CHANGES = {"title", "project"}
FORMS = {
    "jsonl": ("application/x-ndjson", "jsonl"),
    "markdown": ("text/markdown", "md"),
    "html": ("text/html", "html"),
}
LANGUAGES = ("", "en", "zh")
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A transcript is other people's text: nothing of it runs."""
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
    (EditRefusedError, 409),
    (ProviderRateLimitedError, 429),
    (ProviderError, 502),
    (DatabaseError, 503),
    (InputError, 422),
    (ConfigError, 400),
)
"""HTTP status by error, the first that fits; another typed error is a 500."""


class BadRequestError(ConfigError):
    """A parameter or the body of a request is wrong. `name` and `wanted` repeat nothing of the
    request: the client is told them.
    """

    code = ConfigError.code

    def __init__(self, found: str, *, name: str = "", wanted: str = "") -> None:
        super().__init__(
            f"{name} must be {wanted}, found {found[:80]!r}", name=name, wanted=wanted or "…"
        )


@dataclass(frozen=True)
class RouteRequest:
    """One request to a route: who sent it, its thread and its parameters. Routes run in a
    thread.
    """

    http: Request
    owner: str | None
    threads: ServerThreads
    body: bytes

    @property
    def thread_id(self) -> str:
        """Return the thread's id as the address has it."""
        return str(self.http.path_params["thread_id"])

    def seen(self) -> str:
        """Return the thread's id. Raises `ThreadNotFoundError` if the owner may not see it."""
        find_thread(self.threads, self.thread_id, self.owner)
        return self.thread_id

    def load(self) -> ThreadRecord:
        """Return the thread whole. Raises `ThreadNotFoundError` if the owner may not see it."""
        return load_thread(self.threads, self.thread_id, self.owner)[0]

    def parameter(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self.http.query_params.get(name, default)

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """Return a parameter that is a whole number from `least` to `most`. Raises
        `BadRequestError`.
        """
        text = self.parameter(name, str(default))
        if not (
            text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most
        ):
            raise BadRequestError(text, name=f"{name}=", wanted=f"{least} … {most}")
        return int(text)

    @property
    def bounds(self) -> tuple[int, int]:
        """Return offset and limit of the page that is asked for. Raises `BadRequestError`."""
        return self.number("offset", 0, least=0, most=MOST_THREADS), self.number(
            "limit", PAGE, least=1, most=MOST_PAGE
        )

    def page(self, name: str, items: Iterable[Any]) -> dict[str, Any]:
        """Return one page of these and the offset of the next, null after the last page."""
        offset, limit = self.bounds
        window = list(islice(items, offset, offset + limit + 1))
        return {name: window[:limit], "next": offset + limit if len(window) > limit else None}


Handler = Callable[[RouteRequest], Response | Mapping[str, Any]]


def status_of(error: LongtableError) -> int:
    """Return the HTTP status that tells a typed error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


async def compact(request: Request) -> Response:
    """Compact a thread now, also under the threshold."""
    event = await compact_thread(
        _client(request), request.path_params["thread_id"], owner_of(request)
    )
    if event is not None and event["type"] == "context_compaction_skipped":
        return _json({"compacted": None, "reasons": event["reasons"]})
    return _json({"compacted": event})


def compact_preview(request: RouteRequest) -> Mapping[str, Any]:
    """Return what compacting now would cover and cost, null if there is nothing to compact."""
    state, _ = find_thread(request.threads, request.thread_id, request.owner)
    values = values_of(state)
    preview = preview_of(values, running_settings().context()) if values.get("brief") else None
    return {"preview": asdict(preview) if preview else None}


def threads(request: RouteRequest) -> Mapping[str, Any]:
    """Return the threads that the owner may see, the newest first; `?project=` and `?text=` narrow
    them.
    """
    project = request.http.query_params.get("project")
    infos = _listed(request, text=request.parameter("text"), project=project)
    return request.page("threads", map(asdict, infos))


def _listed(request: RouteRequest, **narrow: Any) -> list[ThreadInfo]:
    """Return the threads that the owner may see and the server has."""
    there = threads_there(request.threads)
    infos = list_threads(request.threads, limit=MOST_THREADS, owner=request.owner, **narrow)
    return [info for info in infos if info.thread_id in there]


def search(request: RouteRequest) -> Mapping[str, Any]:
    """Return the turns whose words answer `?q=` best, over all transcripts that the owner may
    see.
    """
    hits = search_threads(
        request.threads, request.parameter("q"), limit=sum(request.bounds) + 1, owner=request.owner
    )
    return request.page("hits", map(asdict, hits))


def projects(request: RouteRequest) -> Mapping[str, Any]:
    """Return each project's name with how many threads it has and when one was last used."""
    return request.page("projects", map(asdict, projects_of(_listed(request))))


def change(request: RouteRequest) -> Mapping[str, Any]:
    """Rename a thread, move it to another project, or both, as the body says:
    `{"title": ..., "project": ...}`.
    """
    try:
        fields = json.loads(request.body)
    except (ValueError, RecursionError):
        fields = None
    if (
        not isinstance(fields, dict)
        or not fields
        or not all(name in CHANGES and isinstance(fields[name], str) for name in fields)
    ):
        raise BadRequestError(
            request.body[:80].decode(errors="replace"),
            name="JSON",
            wanted='{"title": "…", "project": "…"}',
        )
    ours = running_settings().project
    if ours and fields.get("project", ours) != ours:
        # No run of this server would find the thread again.
        raise ConfigError(
            f"this server answers on threads of the project {ours!r} only, found"
            f" {fields['project'][:80]!r}",
            name="project",
            wanted=json.dumps(ours, ensure_ascii=False),
        )
    info = change_thread(request.threads, request.seen(), **fields, owner=request.owner)
    with suppress(NotFoundError, UnprocessableEntityError):
        # Deleted by the server: our place in the index is left.
        request.threads.wait(write_metadata(request.threads.client, info.thread_id))
    return asdict(info)


def delete(request: RouteRequest) -> Response:
    """Delete a thread with its results, archive files and audit; after the server's own delete,
    what that left of it.
    """
    left = replace(
        request, threads=ServerThreads(request.threads.client, request.threads.loop, deletes=True)
    )
    delete_thread(
        left.threads,
        left.seen(),
        owner=request.owner,
        results=server_results(),
        archive=server_archive(),
    )
    return Response(status_code=204, headers=SAFE)


def history(request: RouteRequest) -> Mapping[str, Any]:
    """Return the transcript from its first message on, retired messages too; excluded ones are
    marked.
    """
    transcript = request.load().shown
    return {
        **request.page("messages", starmap(_message, enumerate(transcript, 1))),
        "total": len(transcript),
    }


def export(request: RouteRequest) -> Response:
    """Return the whole thread as `?form=` says: jsonl, markdown or html, labels in `?language=`."""
    form = request.parameter("form", "jsonl")
    language = request.parameter("language")
    thread_id = request.thread_id
    for name, value, known in (("form", form, (*FORMS,)), ("language", language, LANGUAGES)):
        if value not in known:
            raise BadRequestError(value, name=f"{name}=", wanted=" | ".join(filter(None, known)))
    media, ending = FORMS[form]
    draw = chart_drawer(server_results(), thread_id) if form == "html" else None
    text = export_as(request.load(), cast("Form", form), language=language or None, draw=draw)
    headers = {**_file(f"{thread_id}.{ending}"), "Content-Security-Policy": PAGE_POLICY}
    return Response(
        text.encode("utf-8", "replace"), media_type=f"{media}; charset=utf-8", headers=headers
    )


def audit(request: RouteRequest) -> Mapping[str, Any]:
    """Return the queries of a thread, or of all threads that the owner may see, the oldest
    first.
    """
    if "thread_id" in request.http.path_params:
        pairs = [
            (request.thread_id, entry)
            for entry in audit_of(request.threads, request.thread_id, request.owner)
        ]
    else:
        pairs = audit_of_threads(request.threads, owner=request.owner)
    return request.page("audit", starmap(row_of, pairs))


def pins(request: RouteRequest) -> Mapping[str, Any]:
    """Return what the user laid down, word for word; an ended pin has the words that ended it."""
    return request.page("pins", map(asdict, current_pins(request.load().thread.pins, ended=True)))


def usage(request: RouteRequest) -> Mapping[str, Any]:
    """Return the tokens that a thread took, or all threads of the owner, added up as `?by=`
    says.
    """
    names = request.parameter("by", ",".join(ALL)).split(",")
    if not set(names) <= set(BY):
        raise BadRequestError(",".join(names), name="by=", wanted=", ".join(BY))
    by = [name for name in BY if name in names]
    prices = running_settings().price_table()
    if "thread_id" in request.http.path_params:
        spent = within(spent_in(request.load()), request.parameter("from"), request.parameter("to"))
        priced = price_rows(spent, prices) if prices else spent
        return request.page("usage", map(asdict, added(priced, by)))
    spent = usage_of_threads(
        request.threads,
        by=by,
        prices=prices,
        owner=request.owner,
        first=request.parameter("from"),
        last=request.parameter("to"),
    )
    return request.page("usage", map(asdict, spent))


def topics(request: RouteRequest) -> Mapping[str, Any]:
    """Return each topic as its newest version is, with all its versions."""
    return request.page("topics", map(asdict, _topics(request)))


def topic(request: RouteRequest) -> Response:
    """Return one topic's document as Markdown; `?version=` an older one."""
    topic_id = request.http.path_params["topic_id"]
    asked_version = request.http.query_params.get("version")
    versions = [
        version for topic in _topics(request) if topic.id == topic_id for version in topic.versions
    ]
    matching = [version for version in versions if asked_version in (None, str(version.version))]
    if not matching:
        raise UnknownTopicError(topic_id)
    return Response(matching[-1].artifact, media_type="text/markdown; charset=utf-8", headers=SAFE)


def _topics(request: RouteRequest) -> list[TopicHistory]:
    record = request.load()
    return topic_histories(record.thread, record.retired)


def results(request: RouteRequest) -> Mapping[str, Any]:
    """Return what is known of the thread's whole results, oldest first."""
    return request.page("results", map(_described, server_results().handles(request.seen())))


def result_csv(request: RouteRequest) -> Response:
    """Return a whole result as CSV with a heading, a batch at a time."""
    store = server_results()
    thread_id = request.seen()
    handle = request.http.path_params["handle"]
    store.path(thread_id, handle)  # its errors have a status; those of a stream have none
    quote = request.parameter("quote_formulas") == "1"
    return StreamingResponse(
        _csv(store, thread_id, handle, quote),
        media_type="text/csv; charset=utf-8",
        headers=_file(f"{handle}.csv"),
    )


def result_arrow(request: RouteRequest) -> Response:
    """Return a whole result as an Arrow IPC stream."""
    store = server_results()
    thread_id = request.seen()
    handle = request.http.path_params["handle"]
    body = arrow_bytes(store, thread_id, handle)
    return Response(
        body, media_type="application/vnd.apache.arrow.stream", headers=_file(f"{handle}.arrows")
    )


def result_svg(request: RouteRequest) -> Response:
    """Return a result as a chart: the last one of it in the transcript, or one that `?wish=`
    describes.
    """
    record = request.load()
    handle = request.http.path_params["handle"]
    wish = request.parameter("wish")
    specs = [
        part.spec
        for part in parts_of(record.shown)
        if isinstance(part, Drawing) and part.handle == handle
    ]
    chart = chart_of(
        handle,
        server_results().get(record.thread_id, handle),
        spec=specs[-1] if specs and not wish else None,
        wish=wish,
    )
    return Response(
        chart.svg(),
        media_type="image/svg+xml",
        headers={**SAFE, "Content-Security-Policy": PAGE_POLICY},
    )


def archive(request: RouteRequest) -> Mapping[str, Any]:
    """Return which files were written before the thread's compactions, oldest first."""
    files = server_archive()
    thread_id = request.seen()
    return request.page("archive", map(asdict, files.files(thread_id) if files else []))


def archive_file(request: RouteRequest) -> Response:
    """Return one of these files."""
    files = server_archive()
    thread_id = request.seen()
    key = request.http.path_params["key"]
    if files is None:
        raise UnknownArchiveError(key)
    return Response(files.read(thread_id, key), media_type="application/json", headers=_file(key))


def owner_of(request: Request) -> str | None:
    """Return the owner: as the server's authentication found; if the server has none, as the header
    says.
    """
    owner = requester(request.scope.get("user"), request.headers.get(OWNER_HEADER))
    if owner is not None and not is_owner(owner):
        raise BadRequestError(owner, name=OWNER_HEADER, wanted=OWNER_RULE)
    return owner


async def error_response(request: Request, error: Exception) -> Response:
    """Return a typed error's status, its code, one sentence for people, and the seconds to wait.

    Public: `app.add_exception_handler(LongtableError, error_response)` gives your own FastAPI
    application the same answers.
    """
    assert isinstance(error, LongtableError)
    language = "zh" if request.headers.get("accept-language", "").startswith("zh") else "en"
    event = failed_event(error, language)
    headers = {"Retry-After": f"{event['retry_after']:.0f}"} if event["retry_after"] else {}
    body = {"code": event["code"], "message": event["text"], "retry_after": event["retry_after"]}
    return _json({"error": body}, status=status_of(error), headers=headers)


def _served(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that runs the handler in a thread."""

    async def route(request: Request) -> Response:
        threads = ServerThreads(_client(request), asyncio.get_running_loop())
        answer = await in_thread(
            handler, RouteRequest(request, owner_of(request), threads, await request.body())
        )
        return answer if isinstance(answer, Response) else _json(answer)

    return route


def _client(request: Request) -> LangGraphClient:
    """Return a client of the server these routes are mounted in."""
    if find_spec("langgraph_api"):
        return get_client()
    headers = {
        name: value
        for name in ("authorization", "x-api-key", "cookie")
        if (value := request.headers.get(name))
    }
    return get_client(url=str(request.base_url), headers=headers)


def _csv(store: "ResultStore", thread_id: str, handle: str, quote_formulas: bool) -> Iterator[str]:
    for rows in chain(
        [[tuple[object, ...](store.meta(thread_id, handle).columns)]],
        store.batches(thread_id, handle),
    ):
        buffer = io.StringIO()
        csv.writer(buffer).writerows(csv_cells(row, quote_formulas=quote_formulas) for row in rows)
        yield buffer.getvalue().encode("utf-8", "replace").decode()


def _described(meta: "ResultMeta") -> dict[str, Any]:
    return {
        "handle": meta.handle,
        "columns": meta.columns,
        "types": meta.types,
        "rows": meta.row_count,
    }


def _message(number: int, message: BaseMessage) -> dict[str, Any]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    of = (
        {"tool_call_id": message.tool_call_id, "status": message.status}
        if isinstance(message, ToolMessage)
        else {}
    )
    fields = {
        "number": number,
        "id": message.id,
        "role": message.type,
        "name": message.name,
        "content": message.content,
    }
    return {
        **fields,
        "tool_calls": calls,
        **of,
        **{name: marks_of(message).get(name) for name in ("turn", "time", "kind")},
    }


def _file(name: str) -> dict[str, str]:
    safe = "".join(
        letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "._-")
    )
    return {**SAFE, "Content-Disposition": f'attachment; filename="{safe}"'}


def _json(
    body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse(
        json.loads(json.dumps(body, ensure_ascii=False)),
        status,
        headers={**SAFE, **(headers or {})},
    )


THREAD = "/longtable/threads/{thread_id}"
ROUTES: tuple[tuple[str, str, Callable[[Request], Awaitable[Response]]], ...] = (
    ("POST", f"{THREAD}/compact", compact),
    *(
        (method, path, _served(handler))
        for method, path, handler in (
            ("GET", "/longtable/threads", threads),
            ("GET", "/longtable/search", search),
            ("GET", "/longtable/projects", projects),
            ("GET", "/longtable/audit", audit),
            ("GET", "/longtable/usage", usage),
            ("PATCH", THREAD, change),
            ("DELETE", THREAD, delete),
            ("GET", f"{THREAD}/compact", compact_preview),
            ("GET", f"{THREAD}/history", history),
            ("GET", f"{THREAD}/export", export),
            ("GET", f"{THREAD}/audit", audit),
            ("GET", f"{THREAD}/pins", pins),
            ("GET", f"{THREAD}/usage", usage),
            ("GET", f"{THREAD}/topics", topics),
            ("GET", f"{THREAD}/topics/{{topic_id}}", topic),
            ("GET", f"{THREAD}/archive", archive),
            ("GET", f"{THREAD}/archive/{{key:path}}", archive_file),
            ("GET", f"{THREAD}/results", results),
            ("GET", f"{THREAD}/results/{{handle}}.csv", result_csv),
            ("GET", f"{THREAD}/results/{{handle}}.arrow", result_arrow),
            ("GET", f"{THREAD}/results/{{handle}}.svg", result_svg),
        )
    ),
)
# Aegra takes no plain Starlette application
app = FastAPI(openapi_url=None, exception_handlers={LongtableError: error_response})
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
