"""Open what a run needs: models by name, database, graph, conversation; for a server its results
and archive.
"""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from longtable.app.demo import OnStep, demo_path, ensure_demo
from longtable.app.settings.run_settings import (
    Settings,
    archive_folder,
    cache_folder,
    check_apart,
    key_for,
    load_settings,
    new_thread_id,
    results_folder,
    running_settings,
    store_url,
)
from longtable.app.settings.settings_file import did_you_mean
from longtable.app.settings.settings_tables import CODE, SAME, VARIABLES, option_of, team_of
from longtable.base.context import RequestLimits
from longtable.base.errors import ConfigError, pip_install

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.types import StateSnapshot

    from longtable.graph.conversation import Conversation
    from longtable.store.persistence import Persistence
    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.database import Database
    from longtable.tools.results.result_store import ResultStore

BUILT_IN = "built-in analyst"
KEY_VARIABLES = ("LONGTABLE_API_KEY", "OPENAI_API_KEY")
PLACEHOLDER_KEY = "no-key"  # local servers ask for none, but the client insists on one
TIMEOUT_SECONDS = 120.0
MAX_RETRIES = 1  # a person waits in front of it; the turn can be asked again

_PACKAGE = re.compile(r"pip install (?:-U )?([\w.-]+)")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")

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
    choices: Sequence[str] = ()
    """Names of the models that a turn may choose, the own first."""

    @property
    def thread_id(self) -> str:
        """The conversation's thread."""
        return self.conversation.thread_id


@asynccontextmanager
async def open_session(settings: Settings, progress: Progress) -> AsyncIterator[Session]:
    """Open all parts, those that fail fast first; raises the typed errors of
    `longtable.base.errors`.
    """
    from longtable.graph.conversation import Conversation
    from longtable.graph.wiring.build import build_graph
    from longtable.store.persistence import open_persistence

    context = settings.context().replace(channel="cli")
    arguments = graph_arguments(settings)
    store = store_url(settings.store.url)
    opening = open_persistence(store, key=key_for("LONGTABLE_STORE_KEY"))
    check_apart(database=database_url(settings), store=store)
    archive = kept_archive(settings)
    if settings.store.archive_on_compact and archive is None:
        raise ConfigError(
            "a store in memory keeps no archive files: name a store that lasts with --store"
        )
    if not settings.database.url:
        demo_database(progress)
    async with AsyncExitStack() as stack:
        with _demo_hint(settings):
            database = stack.enter_context(contextlib.closing(open_database(settings)))
        persistence = await stack.enter_async_context(opening)
        # They are files in plain text: not beside what is encrypted.
        lasting = None if opening.key else results_folder(store)
        results = open_results(lasting or Path(stack.enter_context(tempfile.TemporaryDirectory())))
        on_compact = archive if settings.store.archive_on_compact else None
        built = build_graph(
            database=database, results=results, archive_on_compact=on_compact, **arguments
        )
        graph = built.compile(checkpointer=persistence.checkpointer, store=persistence.store)
        with _demo_hint(settings):
            # A wrong file, and a name in the policy that it lacks, are told now, not in the first
            # turn.
            await asyncio.to_thread(database.catalog)
        conversation = Conversation(
            graph,
            settings.thread or new_thread_id(),
            context=context,
            results=results,
            archive=archive,
        )
        state = await thread_state(conversation)
        yield Session(
            conversation=conversation,
            database=database,
            persistence=persistence,
            results=results,
            lasts=lasting is not None,
            label=model_label(settings),
            new=state.created_at is None,
            choices=tuple(arguments["models"]),
        )


def open_with_settings(database: str | None = None, **options: Any) -> "Conversation":
    """Return a conversation with what `longtable.toml` and the environment say, for a notebook;
    `close` it, or use it with `with`.

    `options` win over both and are called like those of the command line: `model`, `store`,
    `thread`, `config`, `base_url`, `model_limit`, `private` ... Without a database it is the
    demo's, without a model the built-in analyst. Raises `ConfigError`.
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
    check_apart(database=database_url(settings), store=store)
    if not settings.database.url:
        demo_database(lambda: contextlib.nullcontext(lambda _: None))
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(open_database(settings))
        persistence = stack.enter_context(
            open_persistence(store, key=key_for("LONGTABLE_STORE_KEY"))
        )
        archive = kept_archive(settings) if settings.store.archive_on_compact else None
        context = settings.context().replace(channel="notebook")
        arguments = graph_arguments(settings)
        conversation = open_conversation(
            source,
            store=persistence,
            thread=settings.thread,
            context=context,
            archive_on_compact=archive,
            **arguments,
        )
        conversation.on_close.push(stack.pop_all())
    return conversation


async def thread_state(conversation: "Conversation") -> "StateSnapshot":
    """Return a thread's state. Raises `DamagedThreadError`, `LostMessagesError` and
    `PersistenceError`.
    """
    from longtable.base.concurrency import in_thread
    from longtable.graph.thread_state import StoredThreads, check_lost
    from longtable.graph.transcripts import index_entry
    from longtable.store.persistence import storage_errors

    threads = StoredThreads(conversation.graph)
    thread_id = conversation.thread_id
    with storage_errors():
        entry = await in_thread(index_entry, threads, thread_id)
        state = await in_thread(threads.load, thread_id)
        await in_thread(check_lost, threads, thread_id, state, entry)
    return state


def open_results(folder: Path) -> "ResultStore":
    """Return the store of whole results in a folder, which is made when the first one is kept."""
    from longtable.tools.results.result_store import ResultStore

    return ResultStore(folder, clock=lambda: datetime.now(UTC))


def kept_results(settings: Settings) -> "ResultStore | None":
    """Return the results that lie beside a store, None for a store in memory."""
    folder = results_folder(store_url(settings.store.url))
    return open_results(folder) if folder else None


def kept_archive(settings: Settings) -> "ArchiveFiles | None":
    """Return the archive files that lie beside a store, encrypted as it is; None for a store in
    memory.
    """
    from longtable.store.records.archive_files import ArchiveFiles

    folder = archive_folder(store_url(settings.store.url))
    return ArchiveFiles(folder, key=key_for("LONGTABLE_STORE_KEY")) if folder else None


@cache
def server_results() -> "ResultStore":
    """Return the results of this server: in its folder for them, else in the user's data folder."""
    if folder := running_settings().store.results:
        return open_results(Path(folder))
    from platformdirs import user_data_path

    return open_results(user_data_path("longtable", appauthor=False) / "server.results")


@cache
def server_archive() -> "ArchiveFiles | None":
    """Return the archive of this server, encrypted with LONGTABLE_STORE_KEY; None where it has no
    folder for one.
    """
    from longtable.store.records.archive_files import ArchiveFiles

    folder = running_settings().store.archive
    return ArchiveFiles(folder, key=key_for("LONGTABLE_STORE_KEY")) if folder else None


def database_url(settings: Settings) -> str:
    """Return the URL of the database that is asked: as given, else the demo's, which may not be
    built yet.
    """
    return settings.database.url or f"duckdb:///{demo_path(cache_folder())}"


def open_database(settings: Settings) -> "Database":
    """Return the database that is asked, within its policy and limits. Raises what `Database.open`
    raises.
    """
    from longtable.tools.database import Database
    from longtable.tools.engines.base import QueryLimits

    policy = Path(settings.policy.file) if settings.policy.file else None
    return Database.open(
        database_url(settings), policy=policy, limits=QueryLimits(**settings.limits_of("query"))
    )


@contextlib.contextmanager
def _demo_hint(settings: Settings) -> Iterator[None]:
    """Say how to build the demo database anew where it cannot be read."""
    from longtable.base.errors import DatabaseUnavailableError

    try:
        yield
    except DatabaseUnavailableError as error:
        if settings.database.url:
            raise
        raise DatabaseUnavailableError(
            f"{error}; build the demo database anew: longtable demo --force"
        ) from error


def demo_database(progress: Progress, *, force: bool = False) -> Path:
    """Return the demo database in the user's cache folder, built when it does not exist yet."""
    cache = cache_folder()
    if demo_path(cache).is_file() and not force:
        return demo_path(cache)
    with progress() as on_step:
        return ensure_demo(cache, on_step=on_step, force=force)


# -- models by name --------------------------------------------------------------------------------


def open_model(
    name: str | None, *, base_url: str | None = None, option: str = "--model"
) -> "BaseChatModel":
    """Return the chat model; None for both is the built-in analyst. Raises `ConfigError` that says
    what to install or set.
    """
    if base_url:
        return _endpoint(name, base_url, option)
    if not name:
        from longtable.analyst.model import BuiltInAnalyst

        return BuiltInAnalyst()
    return _provider_model(name, option)


def named_model(settings: Settings, name: str) -> "BaseChatModel":
    """Return the model of a table `[models.NAME]`. Raises `ConfigError`.

    A URL without a variable gets no key: another server's is not sent there.
    """
    table = settings.models[name]
    key = _key_in(table.api_key_env, name)
    model = table.model or name
    if table.provider == "openai" and table.base_url:
        return _endpoint(model, table.base_url, f"models.{name}", key or PLACEHOLDER_KEY)
    places = {"base_url": table.base_url, "api_key": key}
    options = {place: value for place, value in places.items() if value}
    return _provider_model(f"{table.provider}:{model}", f"models.{name}", **options)


def _key_in(variable: str | None, name: str) -> str | None:
    """Return the key that a variable holds, None if no variable is named. Raises `ConfigError`."""
    key = key_for(variable) if variable else None
    if variable and not key:
        raise ConfigError(f"models.{name}: set the environment variable {variable} to its key")
    return key


def _opened(
    settings: Settings, name: str | None, base_url: str | None, option: str
) -> "BaseChatModel":
    """Return the model of a table `[models.NAME]`, else the one that its name opens."""
    if name in settings.models:
        return named_model(settings, str(name))
    return open_model(name, base_url=base_url, option=option)


def _summarizer(settings: Settings) -> "BaseChatModel | Literal[False] | None":
    name = settings.summarizer.name
    if name in settings.models:
        return named_model(settings, str(name))
    option = settings.name_of("summarizer.name", "--summarizer")
    return open_summarizer(name, base_url=settings.model.base_url, option=option)


def graph_arguments(settings: Settings) -> dict[str, Any]:
    """Return what the settings say as arguments of `build_graph`. Raises `ConfigError`."""
    from longtable.nodes.arriving.rate_limit import RateLimit

    base_url = settings.model.base_url
    summarizer = settings.summarizer
    limit = settings.rate_limit
    own = settings.model.name
    offered = settings.name_of("model.choices", "--model")
    choices = (
        dict.fromkeys(filter(None, [own, *settings.model.choices]))
        if settings.model.choices
        else {}
    )
    spare = settings.name_of("fallbacks.models", "--model")

    opened = partial(_opened, settings)

    def open_persona(name: str) -> "BaseChatModel":
        return opened(name, base_url, settings.name_of("team.personas", "team.personas"))

    model = opened(own, base_url, settings.name_of("model.name", "--model"))
    return {
        "model": model,
        "models": {
            name: model if name == own else opened(name, base_url, offered) for name in choices
        },
        "summarizer": _summarizer(settings),
        "policy": settings.compaction.policy(),
        "fallbacks": [
            opened(name, settings.fallbacks.base_url, spare) for name in settings.fallbacks.models
        ],
        "rate_limit": RateLimit(**limit.model_dump()) if limit else None,
        "request_limits": RequestLimits(**settings.limits_of("request")),
        **(
            {"team": team_of(settings.team, open_persona)}
            if settings.team.answers(settings.project)
            else {}
        ),
        **({"summary_seconds": summarizer.seconds} if summarizer.seconds else {}),
    }


def open_summarizer(
    name: str | None, *, base_url: str | None = None, option: str = "--summarizer"
) -> "BaseChatModel | Literal[False] | None":
    """Return the `summarizer` of `build_graph`: None for the model that answers, False for code,
    else the model of that name.

    With `base_url` it is a model there, as `open_model` says.
    """
    if name in (None, SAME):
        return None
    return False if name == CODE else open_model(name, base_url=base_url, option=option)


def model_label(settings: Settings) -> str:
    """Return how to call the model towards the user, and another one that writes summaries. Hosts
    alone: a URL may hold a password.
    """
    model = settings.model
    summarizer = settings.summarizer.name
    named = settings.models.get(model.name or "")
    url = named.base_url if named else model.base_url
    at = f" at {urlsplit(url).hostname}" if url else ""
    writer = f" (summaries: {summarizer}{at})" if summarizer not in (None, SAME, CODE) else ""
    return f"{model.name or BUILT_IN}{at}{writer}"


def _endpoint(
    name: str | None, base_url: str, option: str, own_key: str | None = None
) -> "BaseChatModel":
    bare = (name or "").removeprefix("openai:")
    if not bare:
        raise ConfigError(f"{option} must name a model at the base URL, as in llama3.1")
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    shared = key_for(*KEY_VARIABLES) if own_key is None else own_key
    key = SecretStr(shared or PLACEHOLDER_KEY)
    # Without stream_usage, streaming from a base_url of one's own reports no tokens.
    return ChatOpenAI(
        model=bare,
        base_url=base_url,
        api_key=key,
        stream_usage=True,
        timeout=TIMEOUT_SECONDS,
        max_retries=MAX_RETRIES,
    )


def _provider_model(name: str, option: str, **places: str) -> "BaseChatModel":
    provider, colon, bare = name.partition(":")
    if not colon or not provider or not bare:
        raise ConfigError(
            f"{option} must be provider:name, as in openai:gpt-4o-mini, found {name!r} (or add"
            " --base-url for a server of your own)"
        )
    from langchain.chat_models import init_chat_model

    try:
        return cast(
            "BaseChatModel",
            init_chat_model(bare, model_provider=provider, **cast("Any", places)),
        )
    except Exception as error:  # each provider's package raises its own; the user gets one sentence
        raise ConfigError(
            f"{option} {name} cannot be opened: {_what_to_do(error, provider)}"
        ) from error


def _what_to_do(error: Exception, provider: str) -> str:
    """Return what to do, read off the words of langchain and of the provider's client; never the
    words themselves.
    """
    text = str(error)
    if isinstance(error, ImportError):
        package = _PACKAGE.search(text)
        return f"run `{pip_install(package.group(1) if package else 'langchain-' + provider.replace('_', '-'))}`"
    if text.startswith("Unsupported provider"):
        return (
            f"there is no provider {provider!r}; use one that LangChain knows, as in"
            " openai:gpt-4o-mini"
        )
    unset = [variable for variable in _VARIABLE.findall(text) if not key_for(variable)]
    if unset:
        return f"its key is missing; set the environment variable {unset[0]}"
    return f"check the provider's settings and the model's name ({type(error).__name__})"
