"""Routes for threads: list, search, change and export them, and return their parts."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain, starmap
from typing import Any, cast, get_args

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph_sdk.errors import NotFoundError, UnprocessableEntityError
from starlette.requests import Request
from starlette.responses import Response

from longtable.app.server.requests import (
    LANGUAGES,
    MOST_PAGE,
    PAGE,
    SAFE,
    BadRequestError,
    RouteRequest,
    client_of,
    file_headers,
    json_response,
    owner_of,
)
from longtable.app.server.server_threads import (
    ServerThreads,
    compact_thread,
    entries_of_existing,
    write_metadata,
)
from longtable.app.session import server_archive, server_results
from longtable.app.settings.run_settings import running_settings
from longtable.base.errors import ConfigError, UnknownTopicError
from longtable.graph.changes import TopicHistory, topic_histories
from longtable.graph.compaction_preview import preview_of
from longtable.graph.export.thread_file import Form, chart_drawer, export_as
from longtable.graph.listing.thread_list import (
    MOST_THREADS,
    ThreadInfo,
    info_of,
    projects_of,
    wanted_by,
)
from longtable.graph.listing.thread_search import search_threads
from longtable.graph.reports import (
    ALL,
    audit_of,
    audit_of_threads,
    row_of,
    usage_of_threads,
    within,
)
from longtable.graph.running.past_turns import past_turns
from longtable.graph.threads import change_thread, delete_thread
from longtable.graph.transcripts import find_thread, spent_in
from longtable.memory.counting.prices import price_rows
from longtable.memory.counting.usage import By, added
from longtable.memory.messages.marks import marks_of
from longtable.memory.pins.pins import current_pins
from longtable.nodes.state import turn_of, values_of
from longtable.store.records.item_values import newest_of

BY: tuple[By, ...] = get_args(By)


CHANGES = {"title", "project"}


FORMS = {
    "jsonl": ("application/x-ndjson", "jsonl"),
    "markdown": ("text/markdown", "md"),
    "html": ("text/html", "html"),
}


PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The content policy of a page with a transcript. A transcript is text of other people, so nothing
in it may run.
"""


async def compact(request: Request) -> Response:
    """Compact a thread now, even below the threshold."""
    event = await compact_thread(
        client_of(request), request.path_params["thread_id"], owner_of(request)
    )
    if event is not None and event["type"] == "context_compaction_skipped":
        return json_response({"compacted": None, "reasons": event["reasons"]})
    return json_response({"compacted": event})


def compact_preview(request: RouteRequest) -> Mapping[str, Any]:
    """Return what a compaction would do and cost now. The preview is null if there is nothing to
    compact.
    """
    state, _ = find_thread(request.threads, request.thread_id, request.owner)
    values = values_of(state)
    preview = preview_of(values, running_settings().context()) if values.get("brief") else None
    return {"preview": asdict(preview) if preview else None}


def threads(request: RouteRequest) -> Mapping[str, Any]:
    """Return the threads that the owner may see, the newest first. `?project=` and `?text=` filter
    them.
    """
    project = request.http.query_params.get("project")
    most = sum(request.bounds) + 1
    infos = _listed(request, most, text=request.parameter("text"), project=project)
    return request.page("threads", map(asdict, infos))


def _listed(request: RouteRequest, most: int = MOST_THREADS, **narrow: Any) -> list[ThreadInfo]:
    """Return the newest threads that the owner may see and that still exist on the server."""
    is_wanted = wanted_by(owner=request.owner, **narrow)
    newest = newest_of(entries_of_existing(request.threads), is_wanted, most)
    return [info_of(thread_id, entry) for thread_id, entry in newest]


def search(request: RouteRequest) -> Mapping[str, Any]:
    """Return the turns that match `?q=` best, in all transcripts that the owner may see."""
    hits = search_threads(
        request.threads, request.parameter("q"), limit=sum(request.bounds) + 1, owner=request.owner
    )
    return request.page("hits", map(asdict, hits))


def projects(request: RouteRequest) -> Mapping[str, Any]:
    """Return the name of each project, the number of its threads, and when one of them was last
    used.
    """
    return request.page("projects", map(asdict, projects_of(_listed(request))))


def change(request: RouteRequest) -> Mapping[str, Any]:
    """Rename a thread, move it to another project, or both. The body is `{"title": ..., "project":
    ...}`.
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
    """Delete a thread with its results, archive files and audit. If the server has already deleted
    the thread, this deletes what is left.
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
    """Return the transcript from its first message on, including retired messages. Excluded
    messages are marked.
    """
    transcript = request.load().shown
    return {
        **request.page("messages", starmap(_message, enumerate(transcript, 1))),
        "total": len(transcript),
    }


def turns(request: RouteRequest) -> Mapping[str, Any]:
    """Return the turns from number `?start=` on, oldest first, each with its lasting events. A
    negative start counts from the newest turn, whose number is `newest`.
    """
    start = request.number("start", 1, least=-MOST_THREADS, most=MOST_THREADS)
    limit = request.number("limit", PAGE, least=1, most=MOST_PAGE)
    state, _ = find_thread(request.threads, request.thread_id, request.owner)
    page = past_turns(
        request.threads,
        request.thread_id,
        state,
        start=start,
        limit=limit,
        results=server_results(),
    )
    return {
        "turns": list(map(asdict, page)),
        "newest": turn_of(values_of(state)).get("number", 0),
    }


def export(request: RouteRequest) -> Response:
    """Return the whole thread. `?form=` is jsonl, markdown or html; `?language=` is the language of
    the labels.
    """
    form = request.parameter("form", "jsonl")
    language = request.parameter("language")
    thread_id = request.thread_id
    for name, value, known in (("form", form, (*FORMS,)), ("language", language, LANGUAGES)):
        if value not in known:
            raise BadRequestError(value, name=f"{name}=", wanted=" | ".join(filter(None, known)))
    media, ending = FORMS[form]
    draw = chart_drawer(server_results(), thread_id) if form == "html" else None
    text = export_as(request.load(), cast("Form", form), language=language or None, draw=draw)
    headers = {**file_headers(f"{thread_id}.{ending}"), "Content-Security-Policy": PAGE_POLICY}
    return Response(
        text.encode("utf-8", "replace"), media_type=f"{media}; charset=utf-8", headers=headers
    )


def audit(request: RouteRequest) -> Mapping[str, Any]:
    """Return the queries of a thread, the oldest first. If the address names no thread, return
    those of all threads that the owner may see.
    """
    if "thread_id" in request.http.path_params:
        pairs = [
            (request.thread_id, entry)
            for entry in audit_of(request.threads, request.thread_id, request.owner)
        ]
    else:
        there = dict(entries_of_existing(request.threads))
        pairs = audit_of_threads(request.threads, owner=request.owner)
        pairs = [(thread_id, entry) for thread_id, entry in pairs if thread_id in there]
    return request.page("audit", starmap(row_of, pairs))


def pins(request: RouteRequest) -> Mapping[str, Any]:
    """Return the pins word for word. An ended pin has the words that ended it."""
    return request.page("pins", map(asdict, current_pins(request.load().thread.pins, ended=True)))


def usage(request: RouteRequest) -> Mapping[str, Any]:
    """Return the tokens that a thread took. If the address names no thread, return the tokens of
    all threads of the owner. `?by=` says by what they are added up.
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
    """Return each topic in its newest version, with all its versions."""
    return request.page("topics", map(asdict, topics_of(request)))


def topic(request: RouteRequest) -> Response:
    """Return the document of one topic as Markdown. `?version=` asks for an older version."""
    topic_id = request.http.path_params["topic_id"]
    asked_version = request.http.query_params.get("version")
    documents = [topic for topic in topics_of(request) if topic.id == topic_id]
    versions = list(chain.from_iterable(document.versions for document in documents))
    matching = [version for version in versions if asked_version in (None, str(version.version))]
    if not matching:
        raise UnknownTopicError(topic_id)
    return Response(matching[-1].artifact, media_type="text/markdown; charset=utf-8", headers=SAFE)


def topics_of(request: RouteRequest) -> list[TopicHistory]:
    record = request.load()
    return topic_histories(record.thread, record.retired)


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
