"""Routes beside Agent Server's own: the threads of an owner, what each holds, its results and what it took.

`langgraph.json` names `app`.

Whose threads are asked for: the identity that the server's authentication found; without one the header
`X-Longtable-Owner`, which a proxy in front sets. A thread of another owner is not found.
"""

import asyncio
import csv
import io
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, cast, get_args

from fastapi import FastAPI
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from longtable.app.result_files import csv_cells
from longtable.app.session import server_archive, server_results
from longtable.app.web_threads import ServerThreads, compact_thread, write_metadata
from longtable.base.context import is_owner, requester
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
from longtable.base.twins import in_thread
from longtable.graph.changes import TopicHistory, topic_histories
from longtable.graph.export import Form, chart_drawer, export_as
from longtable.graph.reports import ALL, audit_of, audit_of_threads, row_of, usage_of_threads, within
from longtable.graph.threads import MOST_THREADS, delete_thread, info_of, list_threads, move_thread, rename_thread, search_threads
from longtable.graph.transcripts import ThreadRecord, find_thread, index_entry, load_thread, spent_in
from longtable.memory.pins import current_pins
from longtable.memory.spent import By, added
from longtable.memory.stamps import marks_of
from longtable.memory.transcript_text import Drawing, parts_of
from longtable.nodes.turns.failures import failed_event as failure
from longtable.tools.charts.chart_tool import chart_of
from longtable.tools.results import ResultGoneError, UnknownResultError

if TYPE_CHECKING:
    from longtable.tools.results import ResultMeta, ResultStore

PAGE, MOST_PAGE = 100, 1_000
"""Items of one answer, where the request does not say how many, and at most."""
BY: tuple[By, ...] = get_args(By)
CHANGES = {"title", "project"}
FORMS = {"jsonl": ("application/x-ndjson", "jsonl"), "markdown": ("text/markdown", "md"), "html": ("text/html", "html")}
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


@dataclass(frozen=True)
class Asked:
    """One request: whose it is, its thread and its parameters; used in a thread."""

    request: Request
    owner: str | None
    threads: ServerThreads
    body: bytes

    @property
    def thread_id(self) -> str:
        """Return the thread's id as the address has it."""
        return str(self.request.path_params["thread_id"])

    def seen(self) -> str:
        """Return the thread's id. Raises `ThreadNotFoundError` where who asks may not see it."""
        find_thread(self.threads, self.thread_id, self.owner)
        return self.thread_id

    def load(self) -> ThreadRecord:
        """Return the thread whole. Raises `ThreadNotFoundError` where who asks may not see it."""
        return load_thread(self.threads, self.thread_id, self.owner)[0]

    def parameter(self, name: str, default: str = "") -> str:
        """Return a parameter of the address."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, most: int) -> int:
        """Return a parameter that is a whole number from 0 to `most`. Raises `ConfigError`."""
        text = self.parameter(name, str(default))
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
            raise ConfigError(f"{name}= takes a whole number from 0 to {most:,}, found {text[:80]!r}")
        return int(text)

    def page(self, name: str, items: Iterable[Any]) -> dict[str, Any]:
        """Return one page of these and the offset of the next, null after the last page."""
        limit, offset = self.number("limit", PAGE, MOST_PAGE), self.number("offset", 0, MOST_THREADS)
        shown = list(islice(items, offset, offset + limit + 1))
        return {name: shown[:limit], "next": offset + limit if len(shown) > limit else None}


Handler = Callable[[Asked], Response | Mapping[str, Any]]


def status_of(error: LongtableError) -> int:
    """Return the HTTP status that tells a typed error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


async def compact(request: Request) -> Response:
    """Compact a thread now, also under the threshold."""
    made = await compact_thread(_client(request), request.path_params["thread_id"], owner_of(request))
    if made is not None and made["type"] == "context_compaction_skipped":
        return _json({"compacted": None, "reasons": made["reasons"]})
    return _json({"compacted": made})


def threads(asked: Asked) -> Mapping[str, Any]:
    """Return the threads that who asks may see, the newest first; `?project=` and `?text=` narrow them."""
    project = asked.request.query_params.get("project")
    infos = list_threads(asked.threads, limit=MOST_THREADS, owner=asked.owner, text=asked.parameter("text"), project=project)
    return asked.page("threads", map(asdict, infos))


def search(asked: Asked) -> Mapping[str, Any]:
    """Return the turns whose words answer `?q=` best, over all transcripts that who asks may see."""
    last = asked.number("offset", 0, MOST_THREADS) + asked.number("limit", PAGE, MOST_PAGE) + 1
    return asked.page("hits", map(asdict, search_threads(asked.threads, asked.parameter("q"), limit=last, owner=asked.owner)))


def projects(asked: Asked) -> Mapping[str, Any]:
    """Return each project's name with how many threads it has and when one was last used."""
    infos = list_threads(asked.threads, limit=MOST_THREADS, owner=asked.owner)
    counts = Counter(info.project for info in infos)
    used = {info.project: info.updated for info in reversed(infos)}
    return asked.page("projects", [{"project": name, "threads": counts[name], "updated": used[name]} for name in sorted(counts)])


def change(asked: Asked) -> Mapping[str, Any]:
    """Rename a thread, move it to another project, or both, as the body says: `{"title": ..., "project": ...}`."""
    try:
        fields = json.loads(asked.body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not fields or not all(name in CHANGES and isinstance(fields[name], str) for name in fields):
        raise ConfigError('the body must be JSON with "title", "project" or both, each a text')
    thread_id = asked.seen()
    if "project" in fields:
        move_thread(asked.threads, thread_id, fields["project"], owner=asked.owner)
    if "title" in fields:
        rename_thread(asked.threads, thread_id, fields["title"], owner=asked.owner)
    with suppress(NotFoundError, UnprocessableEntityError):  # deleted by the server: our place in the index is left
        asked.threads.wait(write_metadata(asked.threads.client, thread_id))
    return asdict(info_of(thread_id, index_entry(asked.threads, thread_id)))


def delete(asked: Asked) -> Response:
    """Delete a thread with its results, archive files and audit; after the server's own delete, what that left of it."""
    left = replace(asked, threads=ServerThreads(asked.threads.client, asked.threads.loop, deletes=True))
    delete_thread(left.threads, left.seen(), owner=asked.owner, results=server_results(), archive=server_archive())
    return Response(status_code=204, headers=SAFE)


def history(asked: Asked) -> Mapping[str, Any]:
    """Return the transcript from its first message on, retired messages too; excluded ones are marked."""
    shown = asked.load().shown
    return {**asked.page("messages", starmap(_message, enumerate(shown, 1))), "total": len(shown)}


def export(asked: Asked) -> Response:
    """Return the whole thread as `?form=` says: jsonl, markdown or html, labels in `?language=`."""
    form, language, thread_id = asked.parameter("form", "jsonl"), asked.parameter("language"), asked.thread_id
    if form not in FORMS or language not in LANGUAGES:
        raise ConfigError(f"form= takes {', '.join(FORMS)} and language= takes en or zh, found {form[:40]!r} and {language[:40]!r}")
    media, ending = FORMS[form]
    draw = chart_drawer(server_results(), thread_id) if form == "html" else None
    text = export_as(asked.load(), cast("Form", form), language=language or None, draw=draw)
    headers = {**_file(f"{thread_id}.{ending}"), "Content-Security-Policy": PAGE_POLICY}
    return Response(text.encode("utf-8", "replace"), media_type=f"{media}; charset=utf-8", headers=headers)


def audit(asked: Asked) -> Mapping[str, Any]:
    """Return the queries of a thread, or of all threads that who asks may see, the oldest first."""
    if "thread_id" in asked.request.path_params:
        pairs = [(asked.thread_id, entry) for entry in audit_of(asked.threads, asked.thread_id, asked.owner)]
    else:
        pairs = audit_of_threads(asked.threads, owner=asked.owner)
    return asked.page("audit", starmap(row_of, pairs))


def pins(asked: Asked) -> Mapping[str, Any]:
    """Return what the user laid down, word for word; an ended pin has the words that ended it."""
    return asked.page("pins", map(asdict, current_pins(asked.load().thread.pins, ended=True)))


def usage(asked: Asked) -> Mapping[str, Any]:
    """Return the tokens that a thread took, or all threads of who asks, added up as `?by=` says."""
    wanted = asked.parameter("by", ",".join(ALL)).split(",")
    if not set(wanted) <= set(BY):
        raise ConfigError(f"by= takes {', '.join(BY)}, found {','.join(wanted)[:80]!r}")
    by = [name for name in BY if name in wanted]
    if "thread_id" in asked.request.path_params:
        spent = within(spent_in(asked.load()), asked.parameter("from"), asked.parameter("to"))
        return asked.page("usage", map(asdict, added(spent, by)))
    spent = usage_of_threads(asked.threads, by=by, owner=asked.owner, first=asked.parameter("from"), last=asked.parameter("to"))
    return asked.page("usage", map(asdict, spent))


def topics(asked: Asked) -> Mapping[str, Any]:
    """Return each topic as its newest version is, with all its versions."""
    return asked.page("topics", map(asdict, _topics(asked)))


def topic(asked: Asked) -> Response:
    """Return one topic's document as Markdown; `?version=` an older one."""
    topic_id = asked.request.path_params["topic_id"]
    wanted = asked.request.query_params.get("version")
    versions = [version for topic in _topics(asked) if topic.id == topic_id for version in topic.versions]
    found = [version for version in versions if wanted in (None, str(version.version))]
    if not found:
        raise UnknownTopicError(topic_id)
    return Response(found[-1].artifact, media_type="text/markdown; charset=utf-8", headers=SAFE)


def _topics(asked: Asked) -> list[TopicHistory]:
    record = asked.load()
    return topic_histories(record.thread, record.retired)


def results(asked: Asked) -> Mapping[str, Any]:
    """Return what is known of the thread's whole results, oldest first."""
    return asked.page("results", map(_described, server_results().handles(asked.seen())))


def result_csv(asked: Asked) -> Response:
    """Return a whole result as CSV with a heading, a batch at a time."""
    store, thread_id, handle = server_results(), asked.seen(), asked.request.path_params["handle"]
    store.path(thread_id, handle)  # its errors have a status; those of a stream have none
    quote = asked.parameter("quote_formulas") == "1"
    return StreamingResponse(_csv(store, thread_id, handle, quote), media_type="text/csv; charset=utf-8", headers=_file(f"{handle}.csv"))


def result_arrow(asked: Asked) -> Response:
    """Return a whole result as an Arrow IPC stream."""
    store, thread_id, handle = server_results(), asked.seen(), asked.request.path_params["handle"]
    body = arrow_bytes(store, thread_id, handle)
    return Response(body, media_type="application/vnd.apache.arrow.stream", headers=_file(f"{handle}.arrows"))


def result_svg(asked: Asked) -> Response:
    """Return a result as a chart: the last one of it in the transcript, or one that `?wish=` describes."""
    record, handle, wish = asked.load(), asked.request.path_params["handle"], asked.parameter("wish")
    drawn = [part.spec for part in parts_of(record.shown) if isinstance(part, Drawing) and part.handle == handle]
    chart = chart_of(handle, server_results().get(record.thread_id, handle), spec=drawn[-1] if drawn and not wish else None, wish=wish)
    return Response(chart.svg(), media_type="image/svg+xml", headers={**SAFE, "Content-Security-Policy": PAGE_POLICY})


def archive(asked: Asked) -> Mapping[str, Any]:
    """Return which files were written before the thread's compactions, oldest first."""
    files, thread_id = server_archive(), asked.seen()
    return asked.page("archive", map(asdict, files.files(thread_id) if files else []))


def archive_file(asked: Asked) -> Response:
    """Return one of these files."""
    files, thread_id, key = server_archive(), asked.seen(), asked.request.path_params["key"]
    if files is None:
        raise UnknownArchiveError(key)
    return Response(files.read(thread_id, key), media_type="application/json", headers=_file(key))


def owner_of(request: Request) -> str | None:
    """Return who asks: as the server's authentication found; the header says where the server has none."""
    owner = requester(request.scope.get("user"), request.headers.get(OWNER_HEADER))
    if owner is not None and not is_owner(owner):
        raise ConfigError(f"{OWNER_HEADER} must be 1 to 200 printable characters without blanks at its ends")
    return owner


async def error_response(request: Request, error: Exception) -> Response:
    """Return a typed error's status, its code, one sentence for people, and the seconds to wait.

    Public: `app.add_exception_handler(LongtableError, error_response)` gives your own FastAPI application the same answers.
    """
    assert isinstance(error, LongtableError)
    language = "zh" if request.headers.get("accept-language", "").startswith("zh") else "en"
    told = failure(error, language)
    headers = {"Retry-After": f"{told['retry_after']:.0f}"} if told["retry_after"] else {}
    body = {"code": told["code"], "message": told["text"], "retry_after": told["retry_after"]}
    return _json({"error": body}, status=status_of(error), headers=headers)


def _served(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that runs the handler in a thread."""

    async def route(request: Request) -> Response:
        asked = Asked(request, owner_of(request), ServerThreads(_client(request), asyncio.get_running_loop()), await request.body())
        answer = await in_thread(handler, asked)
        return answer if isinstance(answer, Response) else _json(answer)

    return route


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


def _message(number: int, message: BaseMessage) -> dict[str, Any]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    of = {"tool_call_id": message.tool_call_id, "status": message.status} if isinstance(message, ToolMessage) else {}
    fields = {"number": number, "id": message.id, "role": message.type, "name": message.name, "content": message.content}
    return {**fields, "tool_calls": calls, **of, **{name: marks_of(message).get(name) for name in ("turn", "time", "kind")}}


def _file(name: str) -> dict[str, str]:
    safe = "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "._-"))
    return {**SAFE, "Content-Disposition": f'attachment; filename="{safe}"'}


def _json(body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(json.loads(json.dumps(body, ensure_ascii=False)), status, headers={**SAFE, **(headers or {})})


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
app = FastAPI(openapi_url=None, exception_handlers={LongtableError: error_response})  # Aegra takes no plain Starlette application
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
