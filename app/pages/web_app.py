"""The Starlette application of the web chat."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from longtable.app.pages import result_pages, thread_pages, turn_pages, turn_stream
from longtable.app.pages.page_guard import GuardRules, PageGuard
from longtable.app.pages.page_routes import Handler, http_error, routed
from longtable.app.pages.page_site import Site

STATIC = Path(__file__).parent / "static"
THREAD = "/threads/{thread_id}"
PAGES: Mapping[str, Handler] = {
    "/": thread_pages.index,
    "/threads": thread_pages.thread_list,
    THREAD: thread_pages.thread_page,
    f"{THREAD}/earlier": thread_pages.earlier,
    f"{THREAD}/newer": thread_pages.newer,
    f"{THREAD}/rename": thread_pages.rename_form,
    f"{THREAD}/export": thread_pages.export,
    f"{THREAD}/edit": turn_pages.edit_form,
    f"{THREAD}/keep": turn_pages.keep_form,
    f"{THREAD}/results/{{handle}}.{{ending}}": result_pages.result_file,
    f"{THREAD}/results/{{handle}}": result_pages.result_rows,
    f"{THREAD}/charts/{{handle}}.{{ending}}": result_pages.chart_picture,
}
"""What a GET answers. Nothing here changes anything."""
ACTIONS: Mapping[str, Handler] = {
    f"{THREAD}/ask": turn_pages.ask,
    f"{THREAD}/stop": turn_pages.stop,
    f"{THREAD}/retry": turn_pages.retry,
    f"{THREAD}/decide": turn_pages.decide,
    f"{THREAD}/edit": turn_pages.edit,
    f"{THREAD}/exclude": turn_pages.exclude,
    f"{THREAD}/rate": turn_pages.rate,
    f"{THREAD}/keep": turn_pages.keep,
    f"{THREAD}/rename": thread_pages.rename,
    f"{THREAD}/upload": thread_pages.upload,
    f"{THREAD}/fork": thread_pages.fork,
    f"{THREAD}/delete": thread_pages.delete,
}
"""What a POST answers."""


def web_app(site: Site, rules: GuardRules, *, panel: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application over an open session. When it ends, turns that run are interrupted;
    their threads keep what they had. `panel`: the routes of the right side, below
    `/threads/{thread_id}/panel`; without them the page has none.
    """
    site.has_panel = bool(panel)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await site.running.aclose()
        if site.uploads is not None:
            site.uploads.close()

    routes: list[BaseRoute] = [*panel, Route(f"{THREAD}/events", turn_stream.follow)]
    routes += [Route(path, routed(site, page)) for path, page in PAGES.items()]
    routes += [
        Route(path, routed(site, action), methods=["POST"]) for path, action in ACTIONS.items()
    ]
    routes.append(Mount("/static", StaticFiles(directory=STATIC)))
    app = Starlette(
        routes=routes,
        middleware=[Middleware(PageGuard, rules=rules)],
        exception_handlers={HTTPException: http_error},
        lifespan=lifespan,
    )
    app.state.site = site
    return app
