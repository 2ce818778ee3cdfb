"""The pages of threads: the list, one conversation, and what can be done with it as a whole."""

from typing import TYPE_CHECKING, Any, cast

from markupsafe import escape
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response

from longtable.app.console.translations import say
from longtable.app.pages.page_routes import (
    address_of,
    newer_turns,
    page_html,
    page_response,
    redirect,
    said,
    title_of_thread,
    toast,
    turn_article,
)
from longtable.app.pages.page_site import PageRequest, ShownTurn, turns_page
from longtable.app.pages.page_words import page_word
from longtable.app.pages.turn_html import partial_html
from longtable.app.server.requests import file_headers
from longtable.app.server.thread_routes import FORMS
from longtable.app.settings.run_settings import check_thread_id, new_thread_id
from longtable.base.errors import ConfigError, DatabaseUnavailableError, ThreadNotFoundError
from longtable.graph.listing.thread_list import (
    MOST_THREADS,
    ThreadInfo,
    list_projects,
    list_threads,
)
from longtable.graph.listing.thread_search import search_threads
from longtable.graph.transcripts import find_thread, index_entry
from longtable.nodes.state import values_of
from longtable.tools.catalog import Catalog, Table
from longtable.tools.engines.base import LoadNote

if TYPE_CHECKING:
    from longtable.graph.export.thread_file import Form

NEW = "new=1"
"""What the address of a conversation says that has no question yet."""
MOST_NOTES = 8
MOST_LISTED = 60
"""Threads in the list at first, and more of them at a time."""


def index(_: PageRequest) -> Response:
    """Go to a new conversation."""
    return RedirectResponse(f"{address_of(new_thread_id())}?{NEW}", 303)


def thread_page(request: PageRequest) -> Response:
    """Show a conversation. A new one is empty and is not stored before its first question. Raises
    `ThreadNotFoundError` for any other that does not exist or is somebody else's.
    """
    thread_id = request.thread_id
    check_thread_id(thread_id)
    shown: list[ShownTurn] = []
    first = 1
    is_new = False
    try:
        shown, first = turns_page(request)
    except ThreadNotFoundError:
        is_new = True
        if not request.field("new"):
            raise
    database = request.site.database(thread_id, request.owner)
    questions: list[str] = []
    notes: list[str] = []
    if not shown:
        questions = schema_questions(database.catalog(), request.language)
        notes = [guess_text(note, request.language) for note in database.notes[:MOST_NOTES]]
    live = request.site.live.get(thread_id)
    facts: dict[str, Any] = {
        "turns": shown,
        "first": first,
        "runs": bool(shown) and shown[-1].runs,
        "title": "" if is_new else title_of_thread(request, live),
        "examples": questions,
        "notes": notes,
        "database": database,
        "threads": listing(request),
        "model": "" if is_new else chosen_model(request),
    }
    return page_response("page.html", request, thread_id=thread_id, site=request.site, **facts)


def chosen_model(request: PageRequest) -> str:
    """Return the model that the newest turn chose, "" if the operator lists none to choose from, or
    nothing is stored yet.
    """
    if not request.site.session.choices:
        return ""
    try:
        state, _ = find_thread(request.site.threads(), request.thread_id, request.owner)
    except ThreadNotFoundError:
        return ""
    return values_of(state).get("brief", {}).get("choice", "")


def newer(request: PageRequest) -> Response:
    """Return the turns that began since, as in another tab."""
    return newer_turns(request)


def earlier(request: PageRequest) -> Response:
    """Return the turns before a number, to stand above those that a page has."""
    shown, first = turns_page(request, before=max(1, request.number("before", 1)))
    articles = "".join(turn_article(request, turn) for turn in shown)
    button = page_html("earlier.html", request, thread_id=request.thread_id, first=first)
    return HTMLResponse(button + articles)


def thread_list(request: PageRequest) -> Response:
    """Return the list of threads: all, or those in which words were found."""
    return HTMLResponse(listing(request))


def listing(request: PageRequest) -> str:
    """Return the list of the person's threads as HTML, the newest first."""
    persistence = request.site.session.persistence
    words = request.field("q").strip()[:200]
    limit = min(MOST_THREADS, max(MOST_LISTED, request.number("limit", MOST_LISTED)))
    project = request.field("project") or request.site.project
    infos = list_threads(
        persistence, owner=request.owner, limit=limit + 1, text=words, project=project or None
    )
    lines = [(info.thread_id, info.title, "", _day(info)) for info in infos[:limit]]
    if words:
        hits = search_threads(persistence, words, owner=request.owner, limit=20)
        named = {line[0] for line in lines}
        lines += [
            (hit.thread_id, hit.title, hit.excerpt, "")
            for hit in hits
            if hit.thread_id not in named
        ]
    projects = [each.project for each in list_projects(persistence, owner=request.owner)]
    return page_html(
        "threads.html",
        request,
        lines=lines,
        current=request.http.path_params.get("thread_id") or request.field("current"),
        more=limit + MOST_LISTED if len(infos) > limit else 0,
        words=words,
        project=project or "",
        projects=[name for name in projects if name],
    )


def _day(info: ThreadInfo) -> str:
    return info.updated[:10]


def rename_form(request: PageRequest) -> Response:
    """Show the title to change."""
    request.stored()
    title = title_of_thread(request, None)
    return page_response("rename.html", request, thread_id=request.thread_id, title=title)


def rename(request: PageRequest) -> Response:
    """Give the thread another title."""
    title = request.stored().rename(request.field("title"))
    answer = said(title, partial_html("title", "innerHTML", escape(title)))
    answer.headers["HX-Trigger"] = "changed"
    return answer


def fork(request: PageRequest) -> Response:
    """Begin a new thread with the turns up to a number, or with all."""
    new_id = new_thread_id()
    uploads = request.site.uploads
    if uploads is not None:
        uploads.copy(request.thread_id, new_id, request.owner)
    forked = request.stored().fork(request.number("turn", 0) or None, thread_id=new_id)
    return redirect(address_of(forked.thread_id))


def delete(request: PageRequest) -> Response:
    """Delete a thread with all that is stored of it."""
    request.stored().delete()
    request.site.live.pop(request.thread_id, None)
    if request.site.uploads is not None:
        request.site.uploads.delete(request.thread_id, request.owner)
    return redirect("/")


def upload(request: PageRequest) -> Response:
    """Make a file the database of a thread that has not begun."""
    check_thread_id(request.thread_id)
    uploads = request.site.uploads
    file = request.form.get("file")
    if uploads is None or not isinstance(file, UploadFile) or not file.filename:
        return toast("required_file", request.language, status=422)
    try:
        request.stored()
    except ThreadNotFoundError:
        if index_entry(request.site.threads(), request.thread_id):
            raise
    else:
        return toast("upload_late", request.language, status=409)
    try:
        uploads.keep(request.thread_id, request.owner, file.filename, file.file)
    except DatabaseUnavailableError as error:
        folder = uploads.folder_of(request.thread_id, request.owner)
        reason = str(error).replace(f"{folder}/", "")
        return toast("upload_unreadable", request.language, status=422, reason=reason)
    return redirect(f"{address_of(request.thread_id)}?{NEW}")


def guess_text(note: LoadNote, language: str) -> str:
    """Return a sentence about a guess that was made when a file was loaded."""
    where = ", ".join(filter(None, [note.file, note.column]))
    return say(f"loaded_{note.code}", language, where=where, count=note.count, value=note.value)


def export(request: PageRequest) -> Response:
    """Return the whole thread as a file."""
    form = request.http.query_params.get("form", "html")
    if form not in FORMS:
        raise ConfigError(f"form= is {' | '.join(FORMS)}, found {form[:40]!r}")
    text = request.stored(language=request.language).export(cast("Form", form))
    media, ending = FORMS[form]
    headers = {
        **file_headers(f"{request.thread_id}.{ending}"),
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    body = text.encode("utf-8", "replace")
    return Response(body, media_type=f"{media}; charset=utf-8", headers=headers)


# -- questions of an empty thread ------------------------------------------------------------------


def schema_questions(catalog: Catalog, language: str) -> list[str]:
    """Return up to three questions about the largest tables of a schema. Pure."""
    tables = [table for table in catalog.tables if table.kind == "table"] or list(catalog.tables)
    by_width = sorted(tables, key=lambda table: -len(table.columns))
    questions = [_question(table, place, language) for place, table in enumerate(by_width[:3])]
    return [question for question in questions if question]


def _question(table: Table, place: int, language: str) -> str:
    name = table.bare_name.replace("_", " ")
    texts = [column.name for column in table.columns if _is_text(column.type)]
    group = next((name for name in texts if "id" not in name.casefold()), "")
    if place == 0 and group:
        asked = group.replace("_", " ")
        return page_word("ask_per", language, table=name, column=asked)
    is_plural = name.endswith("s") or language == "zh"
    return page_word("ask_count", language, table=name) if is_plural else ""


def _is_text(kind: str) -> bool:
    return any(word in kind.upper() for word in ("CHAR", "TEXT", "STRING"))
