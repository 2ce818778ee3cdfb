"""A request to a route: its owner, its thread and its parameters, and how errors are answered."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from longtable.app.server.server_lists import KnownThreads
from longtable.app.server.server_threads import ServerThreads
from longtable.app.settings.row_settings import server_rows
from longtable.base.concurrency import in_thread
from longtable.base.context import requester
from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    EditRefusedError,
    InputError,
    LongtableError,
    OtherRowsError,
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
from longtable.base.settings_base import OWNER_RULE, is_owner
from longtable.graph.listing.thread_list import MOST_THREADS
from longtable.graph.transcripts import ThreadRecord, find_thread, load_thread
from longtable.nodes.closing.failures import failed_event
from longtable.tools.results.result_store import ResultGoneError, UnknownResultError
from longtable.tools.row_access import RowAccess, reading_as

PAGE = 100


MOST_PAGE = 1_000
"""The number of items in one answer if the request names none, and the most items that it may ask
for.
"""


LANGUAGES = ("", "en", "zh")


OWNER_HEADER = "x-longtable-owner"


SAFE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class NotAnEditorError(LongtableError):
    """The owner of a request may not write knowledge on this server."""

    def __init__(self, owner: str) -> None:
        super().__init__(
            f"{owner or 'a request without an owner'!r} may not write knowledge here: [knowledge]"
            " editors, in the settings file, names who may"
        )


class UnknownEntryError(LongtableError):
    """The server's knowledge has no query and no term of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no query and no term {name[:80]!r}: GET /longtable/knowledge")
        self.name = name


STATUS: tuple[tuple[type[LongtableError], int], ...] = (
    (ThreadNotFoundError, 404),
    (UnknownTopicError, 404),
    (UnknownResultError, 404),
    (UnknownArchiveError, 404),
    (UnknownTurnError, 404),
    (UnknownMessageError, 404),
    (UnknownPinError, 404),
    (UnknownEntryError, 404),
    (NotAnEditorError, 403),
    (OtherRowsError, 410),
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
"""The HTTP status of each error class. The first class that fits counts; all other typed errors are
answered with 500.
"""


class BadRequestError(ConfigError):
    """A parameter or the body of a request is wrong. `name` and `wanted` may be shown to the
    client, because they repeat nothing from the request.
    """

    code = ConfigError.code

    def __init__(self, found: str, *, name: str = "", wanted: str = "") -> None:
        super().__init__(
            f"{name} must be {wanted}, found {found[:80]!r}", name=name, wanted=wanted or "…"
        )


@dataclass(frozen=True)
class RouteRequest:
    """One request to a route: who sent it, the thread it is about, and its parameters. Handlers run
    in a worker thread.
    """

    http: Request
    owner: str | None
    threads: ServerThreads
    body: bytes

    @property
    def thread_id(self) -> str:
        """Return the id of the thread, as it stands in the address."""
        return str(self.http.path_params["thread_id"])

    def seen(self) -> str:
        """Return the id of the thread. Raises `ThreadNotFoundError` if the owner may not see the
        thread.
        """
        find_thread(self.threads, self.thread_id, self.owner)
        return self.thread_id

    def load(self) -> ThreadRecord:
        """Return the whole thread. Raises `ThreadNotFoundError` if the owner may not see it."""
        return load_thread(self.threads, self.thread_id, self.owner)[0]

    def parameter(self, name: str, default: str = "") -> str:
        """Return a query parameter of the address, or `default` if it is not given."""
        return self.http.query_params.get(name, default)

    def number(self, name: str, default: int, *, least: int, most: int) -> int:
        """Return a query parameter that is a whole number. Raises `BadRequestError` unless it is
        from `least` to `most`.
        """
        text = self.parameter(name, str(default))
        digits = text.removeprefix("-") if least < 0 else text
        if not (
            text.isascii() and digits.isdecimal() and len(text) < 20 and least <= int(text) <= most
        ):
            raise BadRequestError(text, name=f"{name}=", wanted=f"{least} … {most}")
        return int(text)

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the offset and the limit of the requested page. Raises `BadRequestError` if they
        are out of range.
        """
        return self.number("offset", 0, least=0, most=MOST_THREADS), self.number(
            "limit", PAGE, least=1, most=MOST_PAGE
        )

    def page(self, name: str, items: Iterable[Any]) -> dict[str, Any]:
        """Return one page of the items. `next` is the offset of the next page, None after the last
        page.
        """
        offset, limit = self.bounds
        window = list(islice(items, offset, offset + limit + 1))
        return {name: window[:limit], "next": offset + limit if len(window) > limit else None}


Handler = Callable[[RouteRequest], Response | Mapping[str, Any]]


def status_of(error: LongtableError) -> int:
    """Return the HTTP status of a typed error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def owner_of(request: Request) -> str | None:
    """Return the owner that the server's authentication found. Without authentication, return the
    owner that the request's header names. Raises `BadRequestError` for a name that cannot be an
    owner's.
    """
    owner = requester(request.scope.get("user"), request.headers.get(OWNER_HEADER))
    if owner is not None and not is_owner(owner):
        raise BadRequestError(owner, name=OWNER_HEADER, wanted=OWNER_RULE)
    return owner


def _access(request: Request) -> RowAccess | None:
    """Return whose rows may be read: those of the user whom the server authenticated. The header
    that names an owner is only a claim.
    """
    source = server_rows()
    return source.access(requester(request.scope.get("user"), None)) if source else None


async def error_response(request: Request, error: Exception) -> Response:
    """Return the answer for an error: its HTTP status, its code, a sentence for people, and the
    seconds to wait.

    Public: `app.add_exception_handler(LongtableError, error_response)` gives your own FastAPI
    application the same answers.
    """
    assert isinstance(error, LongtableError)
    language = "zh" if request.headers.get("accept-language", "").startswith("zh") else "en"
    event = failed_event(error, language)
    headers = {"Retry-After": f"{event['retry_after']:.0f}"} if event["retry_after"] else {}
    body = {"code": event["code"], "message": event["text"], "retry_after": event["retry_after"]}
    return json_response({"error": body}, status=status_of(error), headers=headers)


def served(handler: Handler, known: KnownThreads) -> Callable[[Request], Awaitable[Response]]:
    """Return a route that runs the handler in a worker thread.

    Requests to LangGraph's server share what is `known` of its threads. Other servers are asked in
    the name of each user, and may answer each with other threads.
    """

    async def route(request: Request) -> Response:
        loop = asyncio.get_running_loop()
        shared = known if _is_agent_server() else None
        threads = ServerThreads(client_of(request), loop, known=shared)
        body = await request.body()
        route_request = RouteRequest(request, owner_of(request), threads, body)
        with reading_as(_access(request)):
            answer = await in_thread(handler, route_request)
        return answer if isinstance(answer, Response) else json_response(answer)

    return route


def _is_agent_server() -> bool:
    """Return whether LangGraph's own server runs these routes."""
    return find_spec("langgraph_api") is not None


def client_of(request: Request) -> LangGraphClient:
    """Return a client of the server in which these routes are mounted."""
    if _is_agent_server():
        return get_client()
    headers = {
        name: value
        for name in ("authorization", "x-api-key", "cookie")
        if (value := request.headers.get(name))
    }
    return get_client(url=str(request.base_url), headers=headers)


def file_headers(name: str) -> dict[str, str]:
    safe = "".join(
        letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "._-")
    )
    return {**SAFE, "Content-Disposition": f'attachment; filename="{safe}"'}


def json_response(
    body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return JSONResponse(
        json.loads(json.dumps(body, ensure_ascii=False)),
        status,
        headers={**SAFE, **(headers or {})},
    )
