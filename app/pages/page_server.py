"""Serve the web chat: `longtable web`."""

import asyncio
import contextlib
import errno
import socket
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.base.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import Route

    from longtable.app.pages.page_guard import Auth, GuardRules
    from longtable.app.pages.page_site import Site
    from longtable.app.pages.uploads import Uploaded
    from longtable.app.session import Progress, Session
    from longtable.app.settings.run_settings import Settings
    from longtable.graph.conversation import Conversation

LOOPBACK = "127.0.0.1"
PORT = 8700
GRACE_SECONDS = 2
KEEP_ALIVE_SECONDS = 30
"""How long an idle connection stays open. A page looks for news every 4 s; if it is a little late,
it should not have to connect again.
"""
UPLOAD_MEGABYTES = 100


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens already, so that a browser that is opened now waits for the
    first page. Raises `ConfigError` if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio turns off the delay of small writes (TCP_NODELAY) only then.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        advice = "name another --port" if is_port else "--host names an address of this machine"
        raise ConfigError(
            f"{host[:80]}:{port} cannot be used ({error.strerror}): {advice}"
        ) from error
    return listener


def address_of_socket(listener: socket.socket) -> str:
    """Return the address to open in a browser."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"


def guard_rules(settings: "Settings", auth: "Auth | None" = None) -> "GuardRules":
    """Return who may ask, by the settings. Raises `ConfigError` for rules that do not hold."""
    from longtable.app.pages.page_guard import GuardRules, check_address

    table = settings.web
    local = GuardRules.hosts
    rules = GuardRules(
        hosts=tuple(name.casefold() for name in (*local, *table.hosts)),
        owner_header=(table.owner_header or "").lower(),
        proxies=tuple(table.proxies),
        auth=auth,
    )
    check_address(table.host or LOOPBACK, rules)
    return rules


def serve_pages(
    settings: "Settings",
    progress: "Progress",
    listener: socket.socket,
    *,
    ready: Callable[[str, str], None],
    auth: "Auth | None" = None,
) -> None:
    """Serve pages on a socket until Ctrl-C. `ready` is called once they are there, with the key of
    a sentence and the address.

    `auth`: an operator's function that returns the owner of a request.
    """
    try:
        import uvicorn

        from longtable.app.pages.web_app import web_app
    except ImportError as error:
        listener.close()
        raise MissingExtraError("the web chat cannot be started", "web") from error
    from longtable.app.session import open_session

    rules = guard_rules(settings, auth)
    key = "web_ready" if rules.knows_people else "web_ready_local"

    async def serve() -> None:
        async with open_session(settings, progress) as session:
            with contextlib.ExitStack() as stack:
                folder = uploads_folder(settings, session)
                if folder is None:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                site = site_of(settings, session, folder)
                config = uvicorn.Config(
                    web_app(site, rules, panel=panel_of(site)),
                    log_level="warning",
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    timeout_graceful_shutdown=GRACE_SECONDS,
                    timeout_keep_alive=KEEP_ALIVE_SECONDS,
                )
                ready(key, address_of_socket(listener))
                await uvicorn.Server(config).serve(sockets=[listener])

    with listener:
        asyncio.run(serve())


def uploads_folder(settings: "Settings", session: "Session") -> Path | None:
    """Return the folder of uploads, beside the results of the store. Return None if the store does
    not last, or is encrypted, which files of people are not.
    """
    from longtable.app.settings.run_settings import results_folder, store_url

    kept = results_folder(store_url(settings.store.url)) if session.lasts else None
    return kept.with_name(f"{kept.name.removesuffix('.results')}.uploads") if kept else None


def panel_of(site: "Site") -> "list[Route]":
    """Return the routes of the right side, over the threads of a site."""
    from longtable.app.pages.context.panel_routes import panel_routes

    def conversation_of(request: "Request") -> "Conversation":
        return site.conversation(str(request.path_params["thread_id"]), request.state.owner)

    return panel_routes(conversation_of)


def site_of(settings: "Settings", session: "Session", folder: Path) -> "Site":
    """Return what all pages share, over an open session. Uploads are kept in `folder`."""
    from longtable.app.pages.page_site import Site
    from longtable.app.pages.uploads import Uploads

    size = settings.web.upload_megabytes or UPLOAD_MEGABYTES
    site = Site(session, upload_megabytes=size, project=settings.project)
    if settings.team.answers(settings.project):
        site.mode = settings.team.mode or "workflow"
    site.uploads = Uploads(
        folder,
        partial(open_uploaded, settings, session),
        most_bytes=size * 1_000_000,
        is_busy=site.running.running,
    )
    return site


def open_uploaded(settings: "Settings", session: "Session", url: str) -> "Uploaded":
    """Open a file as a database, and build a graph that asks it and keeps its threads where all
    threads are. The policy and the knowledge of the server's own database do not hold for it.
    """
    from longtable.app.pages.uploads import Uploaded
    from longtable.app.session import graph_arguments
    from longtable.graph.wiring.build import build_graph
    from longtable.tools.database import Database
    from longtable.tools.engines.base import QueryLimits

    database = Database.open(url, limits=QueryLimits(**settings.limits_of("query")))
    try:
        arguments = graph_arguments(settings)
        built = build_graph(database=database, results=session.results, **arguments)
        persistence = session.persistence
        graph = built.compile(checkpointer=persistence.checkpointer, store=persistence.store)
    except BaseException:
        database.close()
        raise
    return Uploaded(database, graph)
