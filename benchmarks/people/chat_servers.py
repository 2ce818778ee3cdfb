"""The web chat as an operator starts it: servers over a shop, with a model and a store."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from benchmarks.people.machine import StoreServer
from benchmarks.people.open_page import OWNER_HEADER
from benchmarks.people.programs import Program, running
from benchmarks.people.shop import make_shop
from tests.app.runner import PROGRAM, Home
from tests.support.postgres import postgres_server

SETTINGS = f"""
[web]
owner_header = "{OWNER_HEADER}"
proxies = ["127.0.0.1"]
"""


@contextmanager
def served(
    home: Path, *, on_postgres: bool, instances: int, stretch: float
) -> Iterator[tuple[list[Program], StoreServer | None]]:
    """Serve the web chat until the block ends. All instances share the store, and the folder of
    whole results. `stretch` is by how much the model is slower.
    """
    make_shop(home / "shop.db")
    settings = home / "longtable.toml"
    settings.write_text(SETTINGS)
    own = Home(home)
    with ExitStack() as stack:
        command = [sys.executable, "-m", "benchmarks.people.talk_model", str(stretch)]
        model = stack.enter_context(running(command, own.environment(), home / "model.log"))
        store_url = _durable_store() if on_postgres else own.store
        environment = own.environment(
            LONGTABLE_STORE=store_url,
            LONGTABLE_MODEL="openai:gpt-4o-mini",
            LONGTABLE_BASE_URL=model.address,
            OPENAI_API_KEY="unused",
            LONGTABLE_LOG="text",
            LONGTABLE_LOG_LEVEL="ERROR",
        )
        command = [str(PROGRAM), "web", "--port", "0", "--config", str(settings)]
        chats = [
            stack.enter_context(running(command, environment, home / f"web-{number}.log"))
            for number in range(instances)
        ]
        store = stack.enter_context(closing(StoreServer(store_url))) if on_postgres else None
        yield chats, store


def _durable_store() -> str:
    """Return the URL of a new store on a PostgreSQL that waits for the disk, as in earnest."""
    server = postgres_server()
    server.run(server.url("postgres"), "ALTER SYSTEM SET fsync = on")
    server.run(server.url("postgres"), "SELECT pg_reload_conf()")
    return server.create()
