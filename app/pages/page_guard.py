"""Who may ask the web chat, and from where.

Each request passes `PageGuard` first: the name of the host, the token against forged requests, and
the owner. Each answer gets the headers that keep a page to its own server.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address, ip_network

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longtable.app.pages.page_words import browser_language, page_word
from longtable.app.pages.turn_html import toast_html
from longtable.base.errors import ConfigError
from longtable.base.settings_base import OWNER_RULE, is_owner

Auth = Callable[[Request], str | None]
"""Returns the owner of a request, None if it has none: such a request is refused."""
COOKIE = "longtable_token"
TOKEN_HEADER = "x-longtable-token"
MOST_FIELD_BYTES = 2_000_000
"""Largest body of a form without a file."""
SAFE_METHODS = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, kw_only=True)
class GuardRules:
    """Who may ask. Raises `ConfigError` for rules that trust nobody or everybody.

    `hosts`: names by which browsers may call the server, without port. `owner_header`: the header
    in which a proxy names the owner; it is read only from the addresses `proxies`. `auth`: an
    operator's own function instead.
    """

    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    owner_header: str = ""
    proxies: tuple[str, ...] = ()
    auth: Auth | None = None

    def __post_init__(self) -> None:
        if self.owner_header and not self.proxies:
            raise ConfigError(
                f"[web] owner_header {self.owner_header!r} needs proxies: the addresses whose header"
                " is trusted"
            )
        for address in self.proxies:
            try:
                ip_network(address)
            except ValueError:
                raise ConfigError(
                    f"[web] proxies takes IP addresses and networks, found {address[:40]!r}"
                ) from None

    @property
    def knows_people(self) -> bool:
        """Return whether requests have owners. Otherwise the server listens on loopback only."""
        return bool(self.owner_header or self.auth)

    def is_proxy(self, address: str) -> bool:
        """Return whether an address is that of a trusted proxy."""
        try:
            return any(ip_address(address) in ip_network(each) for each in self.proxies)
        except ValueError:
            return False

    def owner_of(self, request: Request) -> str | None:
        """Return the owner of a request, None if the server knows no people. Raises
        `PermissionError` for a request without a valid owner.
        """
        if not self.knows_people:
            return None
        if self.auth is not None:
            owner = self.auth(request)
        else:
            peer = request.client.host if request.client else ""
            owner = request.headers.get(self.owner_header) if self.is_proxy(peer) else None
        if owner is None or not is_owner(owner):
            raise PermissionError(OWNER_RULE)
        return owner


def check_address(host: str, rules: GuardRules) -> None:
    """Raise `ConfigError` if a server would listen beyond loopback without knowing who asks."""
    if host in ("localhost", "127.0.0.1", "::1") or rules.knows_people:
        return
    raise ConfigError(
        f"--host {host[:80]}: without [web] owner_header and proxies, or an auth callable, nobody"
        " knows who asks, so the page listens on 127.0.0.1 only",
        name="--host",
        wanted="127.0.0.1",
    )


def token_of(headers: Mapping[str, str]) -> str:
    """Return the token in a browser's cookie, "" if there is no sound one."""
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    text = cookies[COOKIE].value if COOKIE in cookies else ""
    return text if len(text) == 43 and text.isascii() else ""


def body_is_too_large(headers: Mapping[str, str], most: int) -> bool:
    """Return whether a request's body has more than `most` bytes, or does not say how many."""
    length = headers.get("content-length", "")
    return not (length.isascii() and length.isdecimal() and int(length) <= most)


def refusal_of(request: Request, rules: GuardRules, token: str) -> tuple[int, str] | None:
    """Return the status and the words with which a request is refused, None if it may pass."""
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name.casefold() not in rules.hosts:
        return 421, "bad_host"
    if request.method in SAFE_METHODS:
        return None
    origin = request.headers.get("origin", "")
    is_ours = origin.partition("://")[2] == host if origin else True
    sent = request.headers.get(TOKEN_HEADER, "").encode("utf-8", "replace")
    is_known = bool(token) and secrets.compare_digest(sent, token.encode())
    return None if is_ours and is_known else (403, "bad_request")


class PageGuard:
    """Middleware that lets only sound requests through, and puts owner and token in their state."""

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self.app = app
        self.rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        token = token_of(request.headers)
        refusal = refusal_of(request, self.rules, token)
        state = scope.setdefault("state", {})
        state["token"] = token or secrets.token_urlsafe(32)
        try:
            state["owner"] = self.rules.owner_of(request)
        except PermissionError:
            refusal = refusal or (401, "no_owner")
        app = self.app
        if refusal is not None:
            status, key = refusal
            app = _refusal(request, status, page_word(key, browser_language(request)))
        cookie = "" if token else f"{COOKIE}={state['token']}; Path=/; HttpOnly; SameSite=Strict"

        def with_headers(message: Message) -> "object":
            if message["type"] == "http.response.start":
                _add_headers(MutableHeaders(scope=message), cookie)
            return send(message)

        await app(scope, receive, with_headers)  # type: ignore[arg-type]  # an awaitable, as send's


def _refusal(request: Request, status: int, text: str) -> Response:
    """Return a sentence: as HTML that shows it for a moment if a part of a page asked."""
    if not request.headers.get("hx-request"):
        return PlainTextResponse(text, status)
    return HTMLResponse(toast_html(text), status)


def _add_headers(headers: MutableHeaders, cookie: str) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    if not Headers(raw=headers.raw).get("cache-control"):
        headers["Cache-Control"] = "no-store"
    if cookie:
        headers.append("Set-Cookie", cookie)
