"""Open the parts of a run: models by name, database, graph and conversation. For a server, also
open its results and archive.
"""

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtable.app.demo import OnStep, demo_path, ensure_demo
from longtable.app.models import model_label, opened_model, summarizer_named
from longtable.app.settings.row_settings import row_function
from longtable.app.settings.run_settings import (
    Settings,
    archive_folder,
    asks_demo,
    cache_folder,
    check_apart,
    database_url,
    database_urls,
    key_for,
    load_settings,
    new_thread_id,
    results_folder,
    running_settings,
    store_url,
    url_of_table,
)
from longtable.app.settings.settings_file import did_you_mean
from longtable.app.settings.settings_tables import VARIABLES, option_of, team_of
from longtable.base.context import RequestLimits
from longtable.base.errors import ConfigError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.types import StateSnapshot

    from longtable.graph.conversation import Conversation
    from longtable.graph.wiring.build_options import Hook
    from longtable.knowledge.folder import KnowledgeFolder
    from longtable.store.persistence import Persistence
    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.database import Database, QueryResult
    from longtable.tools.results.result_store import ResultStore
    from longtable.tools.several.databases import Databases


Progress = Callable[[], contextlib.AbstractContextManager[OnStep]]
"""Shows how the demo database is built. It is used only if the database must be built."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One open conversation with its database, store and results."""

    conversation: "Conversation"
    databases: "Databases"
    persistence: "Persistence"
    results: "ResultStore"
    lasts: bool
    """Whether the results stay after the session has ended."""
    label: str
    new: bool
    choices: Sequence[str] = ()
    """The names of the models that a turn may choose; the session's own model comes first."""
    knowledge: "KnowledgeFolder | None" = None

    @property
    def database(self) -> "Database":
        """Return the database that is asked; of several, the first one."""
        return self.databases.first

    @property
    def thread_id(self) -> str:
        """Return the id of the conversation's thread."""
        return self.conversation.thread_id

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Bind queries and stored results within the block to the rows of the conversation's
        owner.
        """
        from longtable.graph.wiring.row_sources import reading_for

        return reading_for(self.conversation.graph, self.conversation.context.owner)

    def run(self, sql: str, database: str = "") -> "QueryResult":
        """Run one SELECT as the conversation's owner, on one of several databases by its name.
        Raises the errors of `Database.run`, and `UnknownDatabaseError`.
        """
        from longtable.tools.several.several_tools import errors_named

        with self.reading():
            name = self.databases.name_of(database or self.databases.first_name)
            with errors_named(name):
                return self.databases[name].run(sql)


@asynccontextmanager
async def open_session(settings: Settings, progress: Progress) -> AsyncIterator[Session]:
    """Open all parts of a session; the parts that fail quickly come first. Raises the errors of
    `longtable.base.errors`.
    """
    from longtable.graph.conversation import Conversation
    from longtable.graph.wiring.build import build_graph
    from longtable.store.persistence import open_persistence

    context = settings.context().replace(channel="cli")
    arguments = graph_arguments(settings) | {"row_parameters": row_function(settings)}
    store = store_url(settings.store.url)
    opening = open_persistence(store, key=key_for("LONGTABLE_STORE_KEY"))
    for url in database_urls(settings):
        check_apart(database=url, store=store)
    archive = kept_archive(settings)
    if settings.store.archive_on_compact and archive is None:
        raise ConfigError(
            "a store in memory keeps no archive files: name a store that lasts with --store"
        )
    knowledge = knowledge_of(settings)
    hooks = _hooks(settings, archive, knowledge)
    thread_id = settings.thread or new_thread_id()
    if asks_demo(settings):
        demo_database(progress)
    async with AsyncExitStack() as stack:
        with _demo_hint(settings):
            databases = stack.enter_context(open_databases(settings))
        persistence = await stack.enter_async_context(opening)
        # Results are plain files: an encrypted store has none beside it.
        lasting = None if opening.key else results_folder(store)
        results = open_results(lasting or Path(stack.enter_context(tempfile.TemporaryDirectory())))
        built = build_graph(database=databases, results=results, hooks=hooks, **arguments)
        graph = built.compile(checkpointer=persistence.checkpointer, store=persistence.store)
        with _demo_hint(settings):
            # A wrong file, and a name in the policy that it lacks, are told now, not in the first
            # turn.
            await asyncio.to_thread(check_catalogs, databases)
        conversation = Conversation(
            graph, thread_id, context=context, results=results, archive=archive
        )
        conversation.knowledge = knowledge
        state = await thread_state(conversation)
        yield Session(
            conversation=conversation,
            databases=databases,
            persistence=persistence,
            results=results,
            lasts=lasting is not None,
            label=model_label(settings),
            new=state.created_at is None,
            choices=tuple(arguments["models"]),
            knowledge=knowledge,
        )


def open_with_settings(database: str | None = None, **options: Any) -> "Conversation":
    """Return a conversation with the settings of `longtable.toml` and the environment, for a
    notebook. Close it with `close`, or use it in a `with` block.

    `options` override both. They have the names of the command line's options in Python: `model`,
    `store`, `thread`, `config`, `base_url`, `model_limit`, `private` and so on. Without a database
    the demo database is used, without a model the built-in analyst. Raises `ConfigError` for an
    unknown option or a wrong setting.
    """
    from longtable.graph.opening import open_conversation
    from longtable.store.persistence import open_persistence

    known = sorted({*map(option_of, VARIABLES), "config", "thread"})
    if unknown := sorted(options.keys() - set(known)):
        raise ConfigError(
            f"open_with_settings has no option {unknown[0]!r}{did_you_mean(unknown[0], known)}: it"
            f" has {', '.join(known)}"
        )
    settings = load_settings({"database": database, **options})
    store = store_url(settings.store.url)
    for url in database_urls(settings):
        check_apart(database=url, store=store)
    if asks_demo(settings):
        demo_database(lambda: contextlib.nullcontext(lambda _: None))
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(open_databases(settings))
        persistence = stack.enter_context(
            open_persistence(store, key=key_for("LONGTABLE_STORE_KEY"))
        )
        hooks = _hooks(settings, kept_archive(settings), knowledge_of(settings))
        context = settings.context().replace(channel="notebook")
        arguments = graph_arguments(settings)
        conversation = open_conversation(
            source,
            store=persistence,
            thread=settings.thread,
            context=context,
            hooks=hooks,
            row_parameters=row_function(settings),
            **arguments,
        )
        conversation.on_close.push(stack.pop_all())
    return conversation


async def thread_state(conversation: "Conversation") -> "StateSnapshot":
    """Return the state of a conversation's thread. Raises `DamagedThreadError` or
    `LostMessagesError` if it cannot be read, `PersistenceError` if the store fails.
    """
    from longtable.base.concurrency import in_thread
    from longtable.graph.thread_state import StoredThreads, check_lost
    from longtable.graph.transcripts import index_entry
    from longtable.store.storage_errors import storage_errors

    threads = StoredThreads(conversation.graph)
    thread_id = conversation.thread_id
    with storage_errors():
        entry = await in_thread(index_entry, threads, thread_id)
        state = await in_thread(threads.load, thread_id)
        await in_thread(check_lost, threads, thread_id, state, entry)
    return state


def open_results(folder: Path) -> "ResultStore":
    """Return the store of whole results in a folder. The folder is made when the first result is
    stored.
    """
    from longtable.tools.results.result_store import ResultStore

    return ResultStore(folder)


def kept_results(settings: Settings) -> "ResultStore | None":
    """Return the store of results beside a store of threads, None for a store in memory."""
    folder = results_folder(store_url(settings.store.url))
    return open_results(folder) if folder else None


def _hooks(
    settings: Settings, archive: "ArchiveFiles | None", knowledge: "KnowledgeFolder | None"
) -> "list[Hook]":
    """Return the hooks of a session's graph."""
    hooks: list[Hook] = []
    if archive is not None and settings.store.archive_on_compact:
        hooks.append(archive)
    if knowledge is not None:
        hooks.append(knowledge)
    return hooks


def knowledge_of(settings: Settings) -> "KnowledgeFolder | None":
    """Return the knowledge folder of the settings, None if they name none. Raises `ConfigError` if
    it is not there.
    """
    from longtable.knowledge.folder import KnowledgeFolder

    if not settings.knowledge.folder:
        return None
    folder = KnowledgeFolder(Path(settings.knowledge.folder))
    folder.current()
    return folder


def kept_archive(settings: Settings) -> "ArchiveFiles | None":
    """Return the archive files beside a store of threads, None for a store in memory. If the store
    is encrypted, the files are encrypted too.
    """
    from longtable.store.records.archive_files import ArchiveFiles

    folder = archive_folder(store_url(settings.store.url))
    return ArchiveFiles(folder, key=key_for("LONGTABLE_STORE_KEY")) if folder else None


@cache
def server_results() -> "ResultStore":
    """Return the store of results of this server: in the folder that the settings name, otherwise
    in the user's data folder.
    """
    if folder := running_settings().store.results:
        return open_results(Path(folder))
    from platformdirs import user_data_path

    return open_results(user_data_path("longtable", appauthor=False) / "server.results")


@cache
def server_knowledge() -> "KnowledgeFolder | None":
    """Return the knowledge folder of this server, None if the settings name none."""
    return knowledge_of(running_settings())


@cache
def server_archive() -> "ArchiveFiles | None":
    """Return the archive files of this server, None if the settings name no folder for them. With
    LONGTABLE_STORE_KEY, the files are encrypted.
    """
    from longtable.store.records.archive_files import ArchiveFiles

    folder = running_settings().store.archive
    return ArchiveFiles(folder, key=key_for("LONGTABLE_STORE_KEY")) if folder else None


def open_databases(settings: Settings) -> "Databases":
    """Open all databases to query, each with its policy and limits. Of several, one that is down is
    opened when it is up. Close them with `close`, or use them as a context manager. Raises the
    errors of `Database.open`.
    """
    from longtable.tools.engines.base import QueryLimits
    from longtable.tools.several.databases import Databases
    from longtable.tools.several.late import open_or_defer

    if not settings.databases:
        return Databases.of_one(open_database(settings))
    with contextlib.ExitStack() as stack:
        opened: dict[str, Database] = {}
        for name, table in settings.databases.items():
            url = url_of_table(table)
            if not url:
                raise ConfigError(
                    f"databases.{name}: the variable {table.url_env} is not set: it must hold the"
                    " URL of the database"
                )
            own = {"seconds": table.query_seconds, "rows": table.query_rows}
            limits = settings.limits_of("query") | {
                key: value for key, value in own.items() if value is not None
            }
            policy = Path(table.policy) if table.policy else None
            try:
                database = open_or_defer(url, limits=QueryLimits(**limits), policy=policy)
            except ConfigError as error:
                raise ConfigError(f"databases.{name}: {error}") from error
            opened[name] = stack.enter_context(contextlib.closing(database))
        databases = Databases(opened)
        stack.pop_all()
    return databases


def check_catalogs(databases: "Databases") -> None:
    """Read the catalogues of all databases, so that what is wrong with them is told now. Of
    several, one that is down is left out: its queries fail until it is up.
    """
    from longtable.base.errors import DatabaseUnavailableError

    for name, database in databases.items():
        try:
            database.catalog()
        except DatabaseUnavailableError as error:
            if not databases.are_several:
                raise
            logging.getLogger("longtable.databases").warning("%s is down: %s", name, error)
        except ConfigError as error:
            if not databases.are_several:
                raise
            raise ConfigError(f"databases.{name}: {error}") from error


def open_database(settings: Settings) -> "Database":
    """Open the database to query, with its policy and limits. Raises the errors of
    `Database.open`.
    """
    from longtable.tools.database import Database
    from longtable.tools.engines.base import QueryLimits

    policy = Path(settings.policy.file) if settings.policy.file else None
    return Database.open(
        database_url(settings), policy=policy, limits=QueryLimits(**settings.limits_of("query"))
    )


@contextlib.contextmanager
def _demo_hint(settings: Settings) -> Iterator[None]:
    """If the demo database cannot be read, add to the error how to rebuild it."""
    from longtable.base.errors import DatabaseUnavailableError

    try:
        yield
    except DatabaseUnavailableError as error:
        if not asks_demo(settings):
            raise
        raise DatabaseUnavailableError(
            f"{error}; build the demo database anew: longtable demo --force"
        ) from error


def demo_database(progress: Progress, *, force: bool = False) -> Path:
    """Return the path of the demo database in the user's cache folder. It is built first if it does
    not exist, or if `force` is True.
    """
    cache = cache_folder()
    if demo_path(cache).is_file() and not force:
        return demo_path(cache)
    with progress() as on_step:
        return ensure_demo(cache, on_step=on_step, force=force)


# -- models by name --------------------------------------------------------------------------------


def graph_arguments(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `build_graph` that the settings ask for. Raises `ConfigError` if a
    model cannot be opened.
    """
    from longtable.graph.wiring.build_options import Limits, Summarizer
    from longtable.nodes.arriving.rate_limit import RateLimit

    base_url = settings.model.base_url
    limit = settings.rate_limit
    own = settings.model.name
    offered = settings.name_of("model.choices", "--model")
    choices = (
        dict.fromkeys(filter(None, [own, *settings.model.choices]))
        if settings.model.choices
        else {}
    )
    spare = settings.name_of("fallbacks.models", "--model")

    opened = partial(opened_model, settings)

    def open_persona(name: str) -> "BaseChatModel":
        return opened(name, base_url, settings.name_of("team.personas", "team.personas"))

    model = opened(own, base_url, settings.name_of("model.name", "--model"))
    models = {name: model if name == own else opened(name, base_url, offered) for name in choices}
    spare_url = settings.fallbacks.base_url
    fallbacks = [opened(name, spare_url, spare) for name in settings.fallbacks.models]
    arguments: dict[str, Any] = {
        "model": model,
        "models": models,
        "summarizer": Summarizer(**_summarizer_options(settings)),
        "policy": settings.compaction.policy(),
        "fallbacks": fallbacks,
        "limits": Limits(
            rate=RateLimit(**limit.model_dump()) if limit else None,
            request=RequestLimits(**settings.limits_of("request")),
        ),
    }
    if settings.team.answers(settings.project):
        arguments["team"] = team_of(settings.team, open_persona)
    return arguments


def _summarizer_options(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {"model": summarizer_named(settings)}
    if settings.summarizer.seconds:
        options["seconds"] = settings.summarizer.seconds
    return options
