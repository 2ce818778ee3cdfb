"""Serve the web chat: `longtable web`."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from longtable.base.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from longtable.app.pages.page_guard import Auth, GuardRules
    from longtable.app.session import Progress
    from longtable.app.settings.run_settings import Settings

LOOPBACK = "127.0.0.1"
PORT = 8700
GRACE_SECONDS = 2


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens already, so that a browser that is opened now waits for the
    first page. Raises `ConfigError` if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{host[:80]}:{port} cannot be used ({error.strerror}): name another --port"
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
    import asyncio

    try:
        import uvicorn

        from longtable.app.pages.page_site import Site
        from longtable.app.pages.web_app import web_app
    except ImportError as error:
        listener.close()
        raise MissingExtraError("the web chat cannot be started", "web") from error
    from longtable.app.session import open_session

    rules = guard_rules(settings, auth)
    key = "web_ready" if rules.knows_people else "web_ready_local"

    async def serve() -> None:
        async with open_session(settings, progress) as session:
            size = settings.web.upload_megabytes or 100
            site = Site(session, upload_megabytes=size, project=settings.project)
            config = uvicorn.Config(
                web_app(site, rules),
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
            ready(key, address_of_socket(listener))
            await uvicorn.Server(config).serve(sockets=[listener])

    with listener:
        asyncio.run(serve())
