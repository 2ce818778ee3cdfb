"""Open a conversation in one call, with its database, store and graph."""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel

from longtable.base.context import Context
from longtable.base.errors import ConfigError
from longtable.base.url import refuse_same_file
from longtable.graph.conversation import Conversation
from longtable.graph.running.thread_runner import WhenBusy
from longtable.graph.wiring.build import build_graph
from longtable.knowledge.folder import KnowledgeFolder
from longtable.store.persistence import Persistence, open_persistence
from longtable.tools.database import Database
from longtable.tools.several.database_names import check_names
from longtable.tools.several.databases import Databases
from longtable.tools.several.late import open_or_defer

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultStore


def open_conversation(
    database: Database | str | Mapping[str, Database | str],
    *,
    model: BaseChatModel | str,
    store: Persistence | str = "memory://",
    thread: str | None = None,
    context: Context | None = None,
    when_busy: WhenBusy = "queue",
    results: "ResultStore | None" = None,
    **arguments: Any,
) -> Conversation:
    """Return a conversation about a database, with everything it needs. Close it with `close`, or
    use it as a context manager.

    `database` is a URL, or an open database, which stays open; or several of them by name. Of the
    URLs of several, one that is down is opened when it is up. `model` is a chat model, or
    "provider:name" as LangChain's `init_chat_model` reads it. `store` is the URL where threads are
    kept, or what `open_persistence` returns. Whole results are kept beside the file of the store.
    If the store is encrypted or has no file, they are kept in a temporary folder. `arguments` are
    those of `build_graph`.

    The conversation has the attributes `graph`, `database`, `persistence` and `results`. Raises the
    errors of `Database.open`, `open_persistence` and `build_graph`.
    """
    # Loads duckdb, which an import of this package does not.
    from longtable.tools.results.result_store import ResultStore

    chat_model = _model_of(model) if isinstance(model, str) else model
    with ExitStack() as stack:
        persistence = open_persistence(store) if isinstance(store, str) else store
        by_name = dict(database) if isinstance(database, Mapping) else {"": database}
        for each in by_name.values():
            if isinstance(each, str):
                refuse_same_file(each, persistence.path)
        if isinstance(store, str):
            stack.enter_context(persistence)
        if isinstance(database, Databases):
            databases = database
        elif isinstance(database, Mapping):
            check_names(database)
            opening = open_or_defer if len(by_name) > 1 else Database.open
            opened = {name: _opened(each, stack, opening) for name, each in by_name.items()}
            databases = Databases(opened)
        else:
            databases = Databases.of_one(_opened(database, stack, Database.open))
        results = results or ResultStore(_results_folder(persistence, stack))
        built = build_graph(model=chat_model, database=databases, results=results, **arguments)
        graph = built.compile(checkpointer=persistence.checkpointer, store=persistence.store)
        hooks = arguments.get("hooks", ())
        conversation = Conversation(
            graph,
            thread,
            context=context,
            when_busy=when_busy,
            results=results,
            knowledge=next((hook for hook in hooks if isinstance(hook, KnowledgeFolder)), None),
        )
        conversation.database = databases.first
        conversation.persistence = persistence
        conversation.on_close = stack.pop_all()
    return conversation


def _opened(
    database: Database | str, stack: ExitStack, opening: Callable[[str], Database]
) -> Database:
    return stack.enter_context(opening(database)) if isinstance(database, str) else database


def _results_folder(persistence: Persistence, stack: ExitStack) -> Path:
    """Return the folder for results, beside the file of the store. If the store has no file or is
    encrypted, return a temporary folder, because results are plain files.
    """
    if persistence.path is None or persistence.key is not None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="longtable-results-")))
    return persistence.path.with_name(f"{persistence.path.name}.results")


def _model_of(name: str) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    try:
        model: BaseChatModel = init_chat_model(name)
    except Exception as error:  # each provider's package raises its own
        raise ConfigError(
            f"the model {name!r} cannot be opened ({error}): give provider:name, as in"
            " openai:gpt-4o-mini, or a chat model"
        ) from error
    return model
