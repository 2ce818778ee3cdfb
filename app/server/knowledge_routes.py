"""Routes for knowledge: what the owner of the data teaches, and what people keep of a thread and
say of its answers.

Who may write knowledge is a setting (`[knowledge] editors`), because it goes with everybody's
questions. Whoever is named there counts as having checked what they keep.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from longtable.app.server.requests import (
    SAFE,
    BadRequestError,
    NotAnEditorError,
    RouteRequest,
    UnknownEntryError,
    file_headers,
    json_response,
)
from longtable.app.session import open_databases, server_knowledge
from longtable.app.settings.run_settings import running_settings
from longtable.base.errors import ConfigError, KnowledgeNotWritableError, TurnPendingError
from longtable.graph.changes import rate
from longtable.graph.kept_queries import (
    keep_query,
    query_to_keep,
    remove_entry,
    teach_kept,
)
from longtable.graph.ratings import questions_of, ratings_in
from longtable.graph.thread_state import is_pending, writing_node
from longtable.graph.transcripts import find_thread
from longtable.knowledge.entries import Knowledge, Term, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.nodes.state import values_of
from longtable.store.records.knowledge_records import KnowledgeRecords

if TYPE_CHECKING:
    from longtable.graph.wiring.knowledge_provider import KnowledgeProvider

EVERYBODY = "*"
MOST_REASON_CHARS = 500
TERM = {"term": str, "synonyms": list, "meaning": str, "sql": str, "database": str}
QUERY = {"question": str, "wordings": list, "sql": str, "database": str}
KEPT = {"turn": int, "question": str, "sql": str, "database": str}
RATED = {"turn": int, "score": int, "comment": str}


def knowledge(request: RouteRequest) -> Mapping[str, Any]:
    """Return the terms and checked queries of the server's knowledge folder. Without a folder there
    are none.
    """
    taught = _taught(request)
    terms = [{"kind": "term", **asdict(term)} for term in taught.terms]
    queries = [{"kind": "query", **asdict(query)} for query in taught.queries]
    return request.page("knowledge", [*terms, *queries])


def check(request: RouteRequest) -> Mapping[str, Any]:
    """Return what is wrong with the knowledge: entries that cannot be read, and queries that the
    database cannot plan.
    """
    editor_of(request)
    taught = _taught(request)
    problems = [*taught.problems]
    if taught.queries or taught.terms:
        with _checking() as provider:
            problems += provider.problems(taught)
    shown = [{"place": str(each.place), "message": each.message} for each in problems]
    return request.page("problems", shown)


def add(request: RouteRequest) -> Mapping[str, Any] | Response:
    """Add a term, or a query that the database can plan: `{"term": ..., "synonyms": [...],
    "meaning": ..., "sql": ...}` or `{"question": ..., "wordings": [...], "sql": ...}`. Of several
    databases, `"database"` names one.
    """
    by = editor_of(request)
    folder = _folder()
    if "question" not in object_of(request):
        fields = body_of(request, TERM, needed=("term",))
        try:
            folder.add_term(Term(**fields))
        except KnowledgeNotWritableError:
            raise  # its words name a path
        except ConfigError as error:
            return _refused(error)
        return {"kind": "term", "name": fields["term"]}
    fields = body_of(request, QUERY, needed=("question", "sql"))
    now = datetime.now(UTC)
    query = VerifiedQuery(name="", checked_by=by, checked_on=now.date().isoformat(), **fields)
    return _kept(request, folder, query, now)


def remove(request: RouteRequest) -> Response:
    """Remove the query or the term of this name."""
    editor_of(request)
    name = str(request.http.path_params["name"])
    if not remove_entry(_folder(), name, request.threads.optional_store):
        raise UnknownEntryError(name)
    return Response(status_code=204, headers=SAFE)


def export(request: RouteRequest) -> Response:
    """Return the terms as a semantic model of Apache Ossie."""
    from longtable.knowledge.exchange.ossie import write_ossie

    text = write_ossie(_taught(request).terms, "longtable")
    headers = file_headers("knowledge.json")
    return Response(text, media_type="application/json", headers=headers)


def import_(request: RouteRequest) -> Mapping[str, Any]:
    """Add the terms and queries of another program's file, which is the body of the request. Its
    name is in `?name=`. Queries that the database cannot plan are left out.
    """
    from longtable.knowledge.exchange.formats import read_text
    from longtable.knowledge.exchange.importing import Import

    editor_of(request)
    folder = _folder()
    found = read_text(request.body, request.parameter("name", "knowledge.json"))
    imported = Import(folder, [str(problem) for problem in found.problems])
    imported.add_terms(found.terms)
    with _checking() as provider:
        imported.add_queries(found.queries, provider.fault)
    return {"added": imported.added, "problems": imported.problems}


def keep(request: RouteRequest) -> Mapping[str, Any] | Response:
    """Keep the question of a turn and the SQL that answered it, or with `sql` the SQL that should
    have run: `{"turn": 3, "question": ..., "sql": ..., "database": ...}`, each of them optional.
    """
    request.seen()
    by = editor_of(request)
    folder = _folder()
    fields = body_of(request, KEPT)
    messages = request.load().thread.messages
    now = datetime.now(UTC)
    query = query_to_keep(
        messages,
        fields.get("turn"),
        question=fields.get("question"),
        sql=fields.get("sql"),
        by=by,
        now=now,
        database=fields.get("database", ""),
    )
    return _kept(request, folder, query, now)


def ratings(request: RouteRequest) -> Mapping[str, Any]:
    """Return what people said of the thread's answers, the newest rating of each turn."""
    record = request.load()
    found = ratings_in(record.edits, questions_of(record.thread))
    return request.page("ratings", map(asdict, found))


def rate_turn(request: RouteRequest) -> Mapping[str, Any]:
    """Rate the answer of a turn: `{"turn": 2, "score": -1, "comment": "returns are missing"}`."""
    threads = request.threads
    request.seen()
    fields = body_of(request, RATED, needed=("turn", "score"))
    with threads.alone(request.thread_id):
        state, _ = find_thread(threads, request.thread_id, request.owner)
        if is_pending(state):
            raise TurnPendingError(request.thread_id)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        comment = fields.get("comment", "")
        values = values_of(state)
        _, update = rate(values, fields["turn"], fields["score"], comment, now)
        threads.update(request.thread_id, update, writing_node(state, update))
    return {**fields, "comment": comment, "time": now}


# -- parts -----------------------------------------------------------------------------------------


def editor_of(request: RouteRequest) -> str:
    """Return who sent the request. Raises `NotAnEditorError` unless the settings let them write
    knowledge.
    """
    editors = [name.strip() for name in (running_settings().knowledge.editors or "").split(",")]
    owner = request.owner or ""
    if EVERYBODY not in editors and (not owner or owner not in editors):
        raise NotAnEditorError(owner)
    return owner


def body_of(
    request: RouteRequest, kinds: Mapping[str, type], needed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the fields of the JSON object that the request sent. Raises `BadRequestError` for
    another text, an unknown or missing field, or a value of another kind.
    """
    fields = object_of(request)
    is_known = kinds.keys() >= fields.keys() >= {*needed}
    if not is_known or not all(_is_of(value, kinds[name]) for name, value in fields.items()):
        wanted = ", ".join(f'"{name}": {kind.__name__}' for name, kind in kinds.items())
        found = request.body[:80].decode(errors="replace")
        raise BadRequestError(found, name="JSON", wanted=f"{{{wanted}}}")
    return fields


def object_of(request: RouteRequest) -> dict[str, Any]:
    """Return the JSON object that the request sent, an empty one for an empty body. Raises
    `BadRequestError` for anything else.
    """
    try:
        fields = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        found = request.body[:80].decode(errors="replace")
        raise BadRequestError(found, name="JSON", wanted="{…}")
    return fields


def _is_of(value: object, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(_is_of(each, str) for each in value)
    if isinstance(value, str) and not is_storable(value):
        return False
    return isinstance(value, kind) and not isinstance(value, bool)


def is_storable(text: str) -> bool:
    """Return whether a text can be written as UTF-8. A lone surrogate cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _refused(error: ConfigError) -> Response:
    """Tell an editor why an entry of theirs is not kept."""
    reason = " ".join(str(error).split())[:MOST_REASON_CHARS]
    body = {"code": "entry_refused", "message": reason, "retry_after": None}
    return json_response({"error": body}, status=400)


def _folder() -> KnowledgeFolder:
    folder = server_knowledge()
    if folder is None:
        raise ConfigError(
            "this server has no knowledge folder: name one with [knowledge] folder or"
            " LONGTABLE_KNOWLEDGE",
            name="knowledge",
            wanted="a folder",
        )
    return folder


def _taught(request: RouteRequest) -> Knowledge:
    folder = server_knowledge()
    if folder is None:
        return Knowledge()
    teach_kept(folder, KnowledgeRecords(request.threads.optional_store, folder.path))
    return folder.current()


def _kept(
    request: RouteRequest, folder: KnowledgeFolder, query: VerifiedQuery, now: datetime
) -> Mapping[str, Any] | Response:
    """Keep a query that the database can plan, and return it; of another one, why not."""
    try:
        with _checking():
            kept = keep_query(folder, query, request.threads.optional_store, now.isoformat())
    except KnowledgeNotWritableError:
        raise
    except ConfigError as error:
        return _refused(error)
    return {"kind": "query", **asdict(kept)}


@contextmanager
def _checking() -> "Iterator[KnowledgeProvider]":
    """Give what plans the folder's entries on their databases."""
    from longtable.graph.wiring.knowledge_provider import KnowledgeProvider

    with open_databases(running_settings()) as databases:
        yield KnowledgeProvider(_folder(), databases)
