"""Shared parts of the commands on a store: their options, and the open store that they work on."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtable.app.console.streams import clean_line
from longtable.app.console.translations import say
from longtable.app.program import Config, Debug, Json, RunOptions, Store, running

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from longtable.app.console.screen import Screen
    from longtable.app.settings.run_settings import Settings
    from longtable.base.errors import DamagedThreadError
    from longtable.graph.conversation import Conversation
    from longtable.graph.thread_state import StoredThreads
    from longtable.store.persistence import Persistence
    from longtable.store.records.archive_files import ArchiveFiles
    from longtable.tools.results.result_store import ResultStore

Id = Annotated[str, typer.Argument(help="The thread's id, as `longtable threads` lists it.")]
Owner = Annotated[
    str | None, typer.Option(help="Whose threads: theirs and nobody's. Default: nobody's only.")
]
AllOwners = Annotated[
    bool, typer.Option("--all-owners", help="Threads of every owner: for those who run the store.")
]


@dataclass(frozen=True)
class Scope:
    """The owners whose threads a command works on, and the options of its run."""

    run: RunOptions
    owner: str | None
    all_owners: bool = False

    @property
    def whose(self) -> dict[str, Any]:
        """Return the owners as arguments of the functions on threads."""
        return {"owner": self.owner, "all_owners": self.all_owners}


def owner_options(
    owner: Owner = None,
    store: Store = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> Scope:
    """Return the options of a command that works on the threads of one owner."""
    return Scope(RunOptions(store=store, config=config, json=json, debug=debug), owner)


def all_owner_options(
    owner: Owner = None,
    all_owners: AllOwners = False,
    store: Store = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> Scope:
    """Return the options of a command that can work on the threads of every owner."""
    return Scope(RunOptions(store=store, config=config, json=json, debug=debug), owner, all_owners)


@dataclass(frozen=True)
class OpenStore:
    """An open store, with the settings and the screen of the command that uses it."""

    persistence: "Persistence"
    settings: "Settings"
    screen: "Screen"

    @cached_property
    def results(self) -> "ResultStore | None":
        """Return the store of whole results beside the store of threads, None for a store in
        memory.
        """
        from longtable.app.session import kept_results

        return kept_results(self.settings)

    @cached_property
    def archive(self) -> "ArchiveFiles | None":
        """Return the archive files beside the store of threads, None for a store in memory."""
        from longtable.app.session import kept_archive

        return kept_archive(self.settings)

    @cached_property
    def threads(self) -> "StoredThreads":
        """Return the threads of the store."""
        from longtable.graph.thread_state import StoredThreads, reader

        return StoredThreads(reader(self.persistence))

    def reading(self, owner: str | None) -> "AbstractContextManager[None]":
        """Bind stored results within the block to the rows that an owner may read."""
        from longtable.app.settings.row_settings import row_source_of
        from longtable.tools.row_access import reading_as

        source = row_source_of(self.settings)
        return reading_as(source.access(owner) if source else None)

    def conversation(self, thread: str, owner: str | None) -> "Conversation":
        """Return the conversation of a thread, for commands that need no model."""
        from longtable.base.context import Context
        from longtable.graph.conversation import Conversation
        from longtable.graph.thread_state import reader

        return Conversation(
            reader(self.persistence),
            thread,
            context=Context(owner=owner),
            results=self.results,
            archive=self.archive,
        )

    def report_damaged(self, error: "DamagedThreadError") -> None:
        """Report on standard error that a thread cannot be read."""
        self.warn("damaged_thread", error.thread_id)

    def warn(self, key: str, thread_id: str) -> None:
        """Print a warning about a thread on standard error."""
        text = say(key, self.screen.language, id=thread_id, argument=shlex.quote(thread_id))
        print(clean_line(text), file=sys.stderr)


@contextmanager
def open_store(
    ctx: typer.Context, options: RunOptions, *, creates: bool = False
) -> Iterator[OpenStore]:
    """Open the store that the options of a command name. An option that stands before the name of
    the command counts if the command's own option was not typed. Errors are reported as in
    `running`.

    A missing store is created only if the command `creates` threads. So a typing error in the name
    of a store leaves no file behind.
    """
    before = ctx.obj or {}
    own = {name: value for name, value in before.items() if not was_typed(ctx, name)}
    with running({**options, **own}) as (settings, screen):
        from longtable.app.settings.run_settings import (
            check_apart,
            database_url,
            key_for,
            store_url,
        )
        from longtable.store.persistence import open_persistence

        url = store_url(settings.store.url)
        check_apart(database=database_url(settings), store=url)
        opening = open_persistence(url, key=key_for("LONGTABLE_STORE_KEY"))
        if opening.path is not None and not opening.path.exists() and not creates:
            if settings.sources.get("store.url") == "--store":
                note = say("no_store", screen.language, file=opening.path)
                print(f"Note: {clean_line(note)}", file=sys.stderr)
            opening = open_persistence("memory://")
        with opening as persistence:
            yield OpenStore(persistence, settings, screen)


def was_typed(ctx: typer.Context, name: str) -> bool:
    """Return whether an option was typed, and not taken from the environment or the default."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
