"""Open what a run needs: for the command line a conversation over model, database and store; for a server its results and archive."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.app.demo import OnStep, demo_path, ensure_demo
from longtable.app.models import model_label, open_model, open_summarizer
from longtable.app.settings import Settings, archive_folder, cache_folder, check_apart, key_for, new_thread_id, results_folder, store_url

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from longtable.graph.archive_files import ArchiveFiles
    from longtable.graph.conversation import Conversation
    from longtable.graph.persistence import Persistence
    from longtable.tools.database import Database
    from longtable.tools.results import ResultStore

Progress = Callable[[], contextlib.AbstractContextManager[OnStep]]
"""Shows the building of the demo database; entered only when it is built."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One open conversation with its database, store and results."""

    conversation: "Conversation"
    database: "Database"
    persistence: "Persistence"
    results: "ResultStore"
    lasts: bool
    """The results outlive the session."""
    label: str
    new: bool

    @property
    def thread_id(self) -> str:
        """The conversation's thread."""
        return self.conversation.thread_id


@asynccontextmanager
async def open_session(settings: Settings, progress: Progress) -> AsyncIterator[Session]:
    """Open all parts, those that fail fast first; raises the typed errors of `longtable.base.errors`."""
    from longtable.base.errors import ConfigError
    from longtable.graph.build import build_graph
    from longtable.graph.conversation import Conversation
    from longtable.graph.persistence import open_persistence
    from longtable.tools.database import Database

    context = settings.context().replace(channel="cli")
    model = open_model(settings.model, base_url=settings.base_url)
    summarizer = open_summarizer(settings.summarizer, base_url=settings.base_url)
    store = store_url(settings.store)
    opening = open_persistence(store, key=key_for("LONGTABLE_STORE_KEY"))
    check_apart(database=database_url(settings), store=store)
    archive = kept_archive(settings)
    if settings.archive_on_compact and archive is None:
        raise ConfigError("a store in memory has no place for an archive: name one that lasts, --store")
    if not settings.database:
        demo_database(progress)
    async with AsyncExitStack() as stack:
        policy = Path(settings.policy) if settings.policy else None
        with _demo_hint(settings):
            database = stack.enter_context(contextlib.closing(Database.open(database_url(settings), policy=policy)))
        persistence = await stack.enter_async_context(opening)
        lasting = None if opening.key else results_folder(store)  # they are files in plain text: not beside what is encrypted
        results = open_results(lasting or Path(stack.enter_context(tempfile.TemporaryDirectory())))
        on_compact = archive if settings.archive_on_compact else None
        built = build_graph(
            model=model,
            database=database,
            summarizer=summarizer,
            policy=settings.compaction_policy(),
            results=results,
            archive_on_compact=on_compact,
        )
        graph = built.compile(checkpointer=persistence.checkpointer, store=persistence.store)
        with _demo_hint(settings):
            # A wrong file, and a name in the policy that it lacks, are told now, not in the first turn.
            await asyncio.to_thread(database.catalog)
        conversation = Conversation(graph, settings.thread or new_thread_id(), context=context, results=results, archive=archive)
        state = await thread_state(conversation)
        label = model_label(settings.model, settings.base_url)
        yield Session(
            conversation=conversation,
            database=database,
            persistence=persistence,
            results=results,
            lasts=lasting is not None,
            label=label,
            new=state.created_at is None,
        )


async def thread_state(conversation: "Conversation") -> "StateSnapshot":
    """Return a thread's state. Raises `DamagedThreadError` and `PersistenceError`."""
    from longtable.base.twins import in_thread
    from longtable.graph.persistence import storage_errors
    from longtable.graph.thread_state import load_state

    with storage_errors():
        return await in_thread(load_state, conversation.graph, conversation.config)


def open_results(folder: Path) -> "ResultStore":
    """Return the store of whole results in a folder, which is made when the first one is kept."""
    from longtable.tools.results import ResultStore

    return ResultStore(folder, clock=lambda: datetime.now(UTC))


def kept_results(settings: Settings) -> "ResultStore | None":
    """Return the results that lie beside a store, None for a store in memory."""
    folder = results_folder(store_url(settings.store))
    return open_results(folder) if folder else None


def kept_archive(settings: Settings) -> "ArchiveFiles | None":
    """Return the archive files that lie beside a store, encrypted as it is; None for a store in memory."""
    from longtable.graph.archive_files import ArchiveFiles

    folder = archive_folder(store_url(settings.store))
    return ArchiveFiles(folder, key=key_for("LONGTABLE_STORE_KEY")) if folder else None


@cache
def server_results() -> "ResultStore":
    """Return the results of this server: in LONGTABLE_RESULTS, else in the user's data folder."""
    if folder := os.environ.get("LONGTABLE_RESULTS"):
        return open_results(Path(folder))
    from platformdirs import user_data_path

    return open_results(user_data_path("longtable", appauthor=False) / "server.results")


@cache
def server_archive() -> "ArchiveFiles | None":
    """Return the archive of this server: in LONGTABLE_ARCHIVE, encrypted with LONGTABLE_STORE_KEY; None where that is not set."""
    from longtable.graph.archive_files import ArchiveFiles

    folder = os.environ.get("LONGTABLE_ARCHIVE")
    return ArchiveFiles(folder, key=key_for("LONGTABLE_STORE_KEY")) if folder else None


def database_url(settings: Settings) -> str:
    """Return the URL of the database that is asked: as given, else the demo's, which may not be built yet."""
    return settings.database or f"duckdb:///{demo_path(cache_folder())}"


@contextlib.contextmanager
def _demo_hint(settings: Settings) -> Iterator[None]:
    """Say how to build the demo database anew where it cannot be read."""
    from longtable.base.errors import DatabaseUnavailableError

    try:
        yield
    except DatabaseUnavailableError as error:
        if settings.database:
            raise
        raise DatabaseUnavailableError(f"{error}; build the demo database anew: longtable demo --force") from error


def demo_database(progress: Progress, *, force: bool = False) -> Path:
    """Return the demo database in the user's cache folder, built when it is not there yet."""
    cache = cache_folder()
    if demo_path(cache).is_file() and not force:
        return demo_path(cache)
    with progress() as on_step:
        return ensure_demo(cache, on_step=on_step, force=force)
