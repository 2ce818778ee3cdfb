"""The commands `knowledge ...`: list, check, add, remove, import and export what the owner of the
data teaches.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtable.app.console.streams import clean_line
from longtable.app.program import (
    CANCELLED,
    Config,
    Debug,
    Json,
    RunOptions,
    Store,
    add_options,
    option,
    running,
)
from longtable.base.errors import ConfigError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from longtable.app.console.screen import Screen
    from longtable.app.settings.run_settings import Settings
    from longtable.graph.wiring.knowledge_provider import KnowledgeProvider
    from longtable.knowledge.folder import KnowledgeFolder

knowledge_app = typer.Typer(
    name="knowledge",
    help="Glossary, rules and checked queries that go with the questions they fit.",
    no_args_is_help=True,
)
SHOWN_CHARS = 100


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(knowledge_app)


def knowledge_options(
    knowledge: Annotated[str | None, option("LONGTABLE_KNOWLEDGE")] = None,
    database: Annotated[str | None, option("LONGTABLE_DATABASE")] = None,
    policy: Annotated[str | None, option("LONGTABLE_POLICY")] = None,
    store: Store = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> RunOptions:
    """Return the options that the commands share."""
    return {**locals()}


with_options = add_options(knowledge_options)


@contextmanager
def _opened(options: RunOptions) -> "Iterator[tuple[KnowledgeFolder, Settings, Screen]]":
    """Give a command the knowledge folder. It may not exist yet."""
    from longtable.knowledge.folder import KnowledgeFolder

    with running(options) as (settings, screen):
        folder = settings.knowledge.folder
        if not folder:
            raise ConfigError(
                "no knowledge folder is named: give one with --knowledge FOLDER, or as"
                " [knowledge] folder in the settings file",
                name="knowledge",
                wanted="a folder",
            )
        yield KnowledgeFolder(Path(folder)), settings, screen


@contextmanager
def _kept_store(folder: "KnowledgeFolder", settings: "Settings") -> "Iterator[BaseStore | None]":
    """Give the store of the threads, None if its file is not there, and let the folder teach what
    the store keeps for it.
    """
    from longtable.app.settings.run_settings import key_for, store_url
    from longtable.graph.kept_queries import teach_kept
    from longtable.store.persistence import open_persistence
    from longtable.store.records.knowledge_records import KnowledgeRecords

    opening = open_persistence(store_url(settings.store.url), key=key_for("LONGTABLE_STORE_KEY"))
    if opening.path is not None and not opening.path.exists():
        yield None
        return
    with opening as persistence:
        teach_kept(folder, KnowledgeRecords(persistence.store, folder.path))
        yield persistence.store


@knowledge_app.command(name="list")
@with_options
def list_(options: RunOptions) -> None:
    """List the terms and the checked queries."""
    with _opened(options) as (folder, settings, screen), _kept_store(folder, settings):
        from longtable.app.console import render

        knowledge = folder.current()
        records: list[dict[str, Any]] = []
        for term in knowledge.terms:
            about = {"synonyms": [*term.synonyms], "text": term.meaning, "sql": term.sql}
            about |= {"database": term.database} if term.database else {}
            records.append({"kind": "term", "name": term.term, **about, "place": str(term.place)})
        for query in knowledge.queries:
            checked = {"checked_by": query.checked_by, "checked_on": query.checked_on}
            about = {"text": query.question, "wordings": [*query.wordings], "sql": query.sql}
            about |= {"database": query.database} if query.database else {}
            place = str(query.place)
            records.append(
                {"kind": "query", "name": query.name, **about, **checked, "place": place}
            )
        cells = [
            [each["kind"], each["name"], clean_line(each["text"], SHOWN_CHARS), each["place"]]
            for each in records
        ]
        columns = ["kind", "name", "text", "place"]
        screen.listing(
            "knowledge", lambda: render.listing(columns, cells), records, empty="no_knowledge"
        )
        _tell_problems(screen, [str(problem) for problem in knowledge.problems])


@knowledge_app.command()
@with_options
def check(options: RunOptions) -> None:
    """Check every entry, and plan every query on the database. Ends with 1 if anything is wrong."""
    with _opened(options) as (folder, settings, screen), _kept_store(folder, settings):
        knowledge = folder.current()
        problems = [str(problem) for problem in knowledge.problems]
        with _checking(folder, settings) as provider:
            problems += map(str, provider.problems(knowledge))
        _tell_problems(screen, problems)
        count = f"{len(knowledge.terms):,}", f"{len(knowledge.queries):,}"
        screen.note("knowledge_checked", terms=count[0], queries=count[1], wrong=len(problems))
        if problems:
            raise typer.Exit(1)


@knowledge_app.command()
@with_options
def add(
    options: RunOptions,
    what: Annotated[str, typer.Argument(help="A question, or with --meaning a term.")],
    sql: Annotated[str, typer.Option(help="The SQL that answers it, or that says the term.")] = "",
    also: Annotated[
        list[str] | None, typer.Option(help="Another wording, or a synonym; may be given again.")
    ] = None,
    meaning: Annotated[str, typer.Option(help="What the term means.")] = "",
    by: Annotated[str, typer.Option(help="Who checked the query.")] = "",
    of_database: Annotated[
        str, typer.Option(help="Of several databases, the name of the one that it is about.")
    ] = "",
) -> None:
    """Add a checked query, which is planned on the database first, or a term."""
    with _opened(options) as (folder, settings, screen):
        from longtable.knowledge.entries import Term, VerifiedQuery

        if not all(wording.strip() for wording in also or []):
            raise ConfigError("--also needs words: another wording, or a synonym")
        if meaning and by:
            raise ConfigError("--by is for a query: nobody checks a term, so leave --by out")
        if meaning:
            synonyms = also or []
            term = Term(
                term=what, synonyms=synonyms, meaning=meaning, sql=sql, database=of_database
            )
            folder.add_term(term)
            screen.note("knowledge_added", name=clean_line(what))
            return
        if not sql.strip():
            raise ConfigError("give the SQL that answers the question with --sql")
        query = VerifiedQuery(
            name="",
            question=what,
            wordings=also or [],
            sql=sql,
            checked_by=by,
            checked_on=datetime.now(UTC).date().isoformat(),
            database=of_database,
        )
        from longtable.graph.kept_queries import keep_query

        before = folder.query_names()
        with _checking(folder, settings):
            added = keep_query(folder, query, None, time="")
        key = "knowledge_there" if added.name in before else "knowledge_added"
        screen.note(key, name=added.place.file)


@knowledge_app.command(name="import")
@with_options
def import_(
    options: RunOptions,
    file: Annotated[
        Path,
        typer.Argument(
            help="A semantic model of Apache Ossie or pairs of Vanna (JSON), or a test of nao (YAML)."
        ),
    ],
) -> None:
    """Add the terms and queries of another program's file. Queries that cannot run on the database
    are left out.
    """
    with _opened(options) as (folder, settings, screen):
        from longtable.knowledge.exchange.formats import read_file
        from longtable.knowledge.exchange.importing import Import

        found = read_file(file)
        imported = Import(folder, [str(problem) for problem in found.problems])
        try:
            imported.add_terms(found.terms)
            with _checking(folder, settings) as provider:
                imported.add_queries(found.queries, provider.fault)
        except KeyboardInterrupt:
            screen.note("import_cancelled", added=f"{imported.added:,}")
            raise typer.Exit(CANCELLED) from None
        wrong = len(imported.problems)
        _tell_problems(screen, imported.problems)
        screen.note("knowledge_imported", added=f"{imported.added:,}", wrong=f"{wrong:,}")
        if wrong and not imported.added:
            raise typer.Exit(1)


@contextmanager
def _checking(folder: "KnowledgeFolder", settings: "Settings") -> "Iterator[KnowledgeProvider]":
    """Give what plans a folder's entries on their databases."""
    from longtable.app.session import open_databases
    from longtable.graph.wiring.knowledge_provider import KnowledgeProvider

    with open_databases(settings) as databases:
        yield KnowledgeProvider(folder, databases)


@knowledge_app.command()
@with_options
def export(
    options: RunOptions,
    file: Annotated[Path, typer.Argument(help="The JSON file to write; it must not be there yet.")],
    flat: Annotated[
        bool, typer.Option("--flat", help="Write version 0.2.0.dev0 in place of 0.1.1.")
    ] = False,
) -> None:
    """Write the terms as a semantic model of Apache Ossie. It has no place for queries."""
    with _opened(options) as (folder, _, screen):
        from longtable.knowledge.exchange.ossie import write_ossie

        text = write_ossie(folder.current().terms, folder.path.name, flat=flat)
        try:
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise ConfigError(f"{file} cannot be written: {error.strerror}") from error
        screen.note("knowledge_exported", file=clean_line(str(file)))


@knowledge_app.command()
@with_options
def remove(
    options: RunOptions,
    name: Annotated[str, typer.Argument(help="The name of a query, or a term.")],
) -> None:
    """Remove a checked query or a term."""
    with (
        _opened(options) as (folder, settings, screen),
        _kept_store(folder, settings) as store,
    ):
        from longtable.graph.kept_queries import remove_entry

        if not remove_entry(folder, name, store):
            raise ConfigError(f"there is no query and no term {name!r}: see `knowledge list`")
        screen.note("knowledge_removed", name=clean_line(name))


def _tell_problems(screen: "Screen", problems: Sequence[str]) -> None:
    for problem in problems:
        screen.note("knowledge_problem", problem=clean_line(problem))
