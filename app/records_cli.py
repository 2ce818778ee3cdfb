"""The command line's `audit`, `result` and `threads archive`: what was asked, what came of it, what
was compacted.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtable.app.program import Config, Debug, RunOptions, Store, add_options, print_json
from longtable.app.terminal import writing
from longtable.app.threads_cli import (
    Id,
    Owner,
    Scope,
    all_owner_options,
    owner_options,
    report_damaged,
    threads_app,
    work,
)

if TYPE_CHECKING:
    from longtable.app.screen import Screen
    from longtable.app.settings import Settings
    from longtable.graph.persistence import Persistence
    from longtable.nodes.records.audit import AuditEntry

SHOWN_SQL = 100


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(audit)
    app.command()(result)
    threads_app.command()(archive)


@add_options(all_owner_options)
def audit(
    ctx: typer.Context,
    options: Scope,
    thread: Annotated[
        str | None, typer.Option(help="Of this thread only. Default: of all threads.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, with every column.")] = False,
) -> None:
    """Show every query the model sent: when, what it read, how it ended; also those refused, failed
    or cancelled.
    """

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from longtable.app import render
        from longtable.app.result_files import write_csv
        from longtable.base.errors import ConfigError
        from longtable.graph.reports import audit_of, audit_of_threads, row_of
        from longtable.graph.thread_state import StoredThreads, reader

        if csv and settings.as_json:
            raise ConfigError("choose --csv or --json, not both")
        if thread is None:
            found = audit_of_threads(
                persistence,
                owner=options.owner,
                all_owners=options.all_owners,
                on_damaged=report_damaged(screen),
            )
        else:
            threads = StoredThreads(reader(persistence))
            found = [
                (thread, entry)
                for entry in audit_of(threads, thread, options.owner, all_owners=options.all_owners)
            ]
        rows = [row_of(thread_id, entry) for thread_id, entry in found]
        if settings.as_json:
            print_json(rows)
        elif csv:
            with writing():
                write_csv(
                    sys.stdout,
                    list(rows[0]) if rows else [],
                    [[list(row.values()) for row in rows]],
                )
        elif found:
            voice = ("voice",) * any(entry.voice for _, entry in found)
            shown = [
                [entry.time, thread_id, *(entry.voice for _ in voice), *_line(entry)]
                for thread_id, entry in found
            ]
            head = ("time", "thread", *voice, "turn", "verdict", "tables", "sql", "rows", "ms")
            screen.show("audit", render.listing(head, shown, numeric=2))
        else:
            screen.note("no_queries")

    work(ctx, options.run, run)


def result(
    ctx: typer.Context,
    handle: Annotated[str, typer.Argument(help="The result's handle, such as r3.")],
    thread: Annotated[str, typer.Option(help="The thread it belongs to.")],
    csv: Annotated[
        bool, typer.Option("--csv", help="As CSV; to standard output unless --output names a file.")
    ] = False,
    quote_formulas: Annotated[
        bool,
        typer.Option(
            "--quote-formulas", help="In CSV, put a ' before texts that a spreadsheet would run."
        ),
    ] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="As a Parquet file.")] = False,
    xlsx: Annotated[bool, typer.Option("--xlsx", help="As an Excel file.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file; its ending says the form.")
    ] = None,
    owner: Owner = None,
    store: Store = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Show a whole result again, or write it to a file."""

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from longtable.app import render
        from longtable.app.commands import shown_result
        from longtable.app.result_files import save_result, write_csv
        from longtable.app.screen import make_console
        from longtable.app.session import kept_results
        from longtable.app.settings import key_for
        from longtable.base.errors import ConfigError
        from longtable.graph.thread_state import StoredThreads, reader
        from longtable.graph.transcripts import find_thread

        forms = [
            name
            for name, wanted in {".csv": csv, ".parquet": parquet, ".xlsx": xlsx}.items()
            if wanted
        ]
        if len(forms) > 1 or (output and forms and output.suffix.lower() != forms[0]):
            raise ConfigError(
                "choose one of --csv, --parquet and --xlsx, and a file name with that ending"
            )
        results = kept_results(settings)
        if results is None:
            raise ConfigError(
                "a store in memory keeps no results: name the thread's store with --store"
            )
        if key_for("LONGTABLE_STORE_KEY") and not results.handles(thread):
            raise ConfigError(
                "an encrypted store keeps no results, which would be files in plain text: run the"
                " query again"
            )
        find_thread(StoredThreads(reader(persistence)), thread, owner)  # whose thread it is
        formulas = 0
        if output is None and forms == [".csv"]:
            meta = results.meta(thread, handle)
            with writing():
                formulas = write_csv(
                    sys.stdout,
                    meta.columns,
                    results.batches(thread, handle),
                    quote_formulas=quote_formulas,
                )
        elif output is None and not forms:
            found = shown_result(results.get(thread, handle))
            screen.show("result", render.whole_result(found, make_console().width))
        else:
            file = (output or Path(f"{results.meta(thread, handle).handle}{forms[0]}")).expanduser()
            rows, formulas = save_result(
                results, thread, handle, file, quote_formulas=quote_formulas
            )
            screen.note(
                "result_saved" if rows != 1 else "result_saved_1",
                handle=handle,
                count=f"{rows:,}",
                file=file,
            )
        if formulas:
            screen.note("result_formulas", count=f"{formulas:,}")

    work(ctx, RunOptions(store=store, config=config, json=False, debug=debug), run)


@add_options(owner_options)
def archive(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    key: Annotated[
        str | None,
        typer.Argument(help="The file to print, as the list names it. Default: list them."),
    ] = None,
) -> None:
    """List the files that were written before a thread's compactions (`chat --archive-on-compact`),
    or print one.
    """

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from dataclasses import asdict

        from longtable.app import render
        from longtable.app.session import kept_archive
        from longtable.base.context import Context
        from longtable.graph.conversation import Conversation
        from longtable.graph.thread_state import reader

        conversation = Conversation(
            reader(persistence),
            thread,
            context=Context(owner=options.owner),
            archive=kept_archive(settings),
        )
        if key is not None:
            text = conversation.archive_file(key)
            with writing():
                print(text)
            return
        files = conversation.archive_files()
        if settings.as_json:
            print_json(asdict(file) for file in files)
        elif files:
            rows = [
                [file.key, f"{file.first:,}", f"{file.last:,}", f"{file.bytes:,}"] for file in files
            ]
            screen.show(
                "archive", render.listing(("key", "first", "last", "bytes"), rows, numeric=3)
            )
        else:
            screen.note("no_archive")

    work(ctx, options.run, run)


def _line(entry: "AuditEntry") -> list[str]:
    rows = "" if entry.rows is None else f"{entry.rows:,}"
    verdict = f"{entry.verdict} {entry.rule}".strip()
    return [
        str(entry.turn),
        verdict,
        ", ".join(entry.tables),
        _clipped(entry.ran or entry.sent),
        rows,
        f"{entry.ms or 0:,}",
    ]


def _clipped(sql: str) -> str:
    line = " ".join(sql.split())
    return line if len(line) <= SHOWN_SQL else f"{line[: SHOWN_SQL - 1]}…"
