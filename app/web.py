"""Routes in addition to those of Agent Server: the threads of an owner, with their contents,
results and usage. `langgraph.json` names `app`.

The owner is the one that the server's authentication found. Without authentication, the header
`X-Longtable-Owner` names the owner; a proxy in front must set it. The threads of other owners are
answered as not found.
"""

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from longtable.app.server import knowledge_routes
from longtable.app.server.requests import error_response, served
from longtable.app.server.result_routes import (
    archive,
    archive_file,
    result_arrow,
    result_csv,
    result_svg,
    results,
)
from longtable.app.server.server_lists import KnownThreads
from longtable.app.server.thread_routes import (
    audit,
    change,
    compact,
    compact_preview,
    delete,
    export,
    history,
    pins,
    projects,
    search,
    threads,
    topic,
    topics,
    turns,
    usage,
)
from longtable.base.errors import (
    LongtableError,
)

THREAD = "/longtable/threads/{thread_id}"
KNOWN = KnownThreads()
ROUTES: tuple[tuple[str, str, Callable[[Request], Awaitable[Response]]], ...] = (
    ("POST", f"{THREAD}/compact", compact),
    *(
        (method, path, served(handler, KNOWN))
        for method, path, handler in (
            ("GET", "/longtable/threads", threads),
            ("GET", "/longtable/search", search),
            ("GET", "/longtable/projects", projects),
            ("GET", "/longtable/audit", audit),
            ("GET", "/longtable/usage", usage),
            ("GET", "/longtable/knowledge", knowledge_routes.knowledge),
            ("POST", "/longtable/knowledge", knowledge_routes.add),
            ("GET", "/longtable/knowledge/check", knowledge_routes.check),
            ("GET", "/longtable/knowledge/export", knowledge_routes.export),
            ("POST", "/longtable/knowledge/import", knowledge_routes.import_),
            ("DELETE", "/longtable/knowledge/{name:path}", knowledge_routes.remove),
            ("PATCH", THREAD, change),
            ("DELETE", THREAD, delete),
            ("GET", f"{THREAD}/compact", compact_preview),
            ("GET", f"{THREAD}/history", history),
            ("GET", f"{THREAD}/turns", turns),
            ("GET", f"{THREAD}/export", export),
            ("GET", f"{THREAD}/audit", audit),
            ("GET", f"{THREAD}/pins", pins),
            ("GET", f"{THREAD}/ratings", knowledge_routes.ratings),
            ("POST", f"{THREAD}/ratings", knowledge_routes.rate_turn),
            ("POST", f"{THREAD}/keep", knowledge_routes.keep),
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
