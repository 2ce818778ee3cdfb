"""The commands `usage`, `audit`, `result` and `threads archive`: the tokens, queries, results and
archive files of threads.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtable.app.commands.store_commands import (
    Id,
    Owner,
    Scope,
    all_owner_options,
    open_store,
    owner_options,
)
from longtable.app.commands.threads_cli import threads_app
from longtable.app.console.index_progress import indexing
from longtable.app.console.streams import clean_line, writing
from longtable.app.program import Config, Debug, RunOptions, Store, add_options
from longtable.base.errors import ConfigError

if TYPE_CHECKING:
    from longtable.app.commands.store_commands import OpenStore
    from longtable.nodes.tooling.audit import AuditEntry
    from longtable.tools.results.result_store import ResultStore

By = StrEnum("By", "hour day month thread model project purpose voice")
"""What usage can be added up by."""
First = Annotated[
    str, typer.Option("--from", help="First day, month or hour, as 2026-11-23 or 2026-11.")
]
Last = Annotated[str, typer.Option("--to", help="Last day, month or hour.")]
FIGURES = ("calls", "input", "output", "cached", "cache_written", "reasoning", "estimated")
SHOWN_SQL = 100


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (usage, audit, result):
        app.command()(command)
    threads_app.command()(archive)
    threads_app.command()(ratings)


@add_options(all_owner_options)
def usage(
    ctx: typer.Context,
    options: Scope,
    by: Annotated[
        list[By] | None,
        typer.Option(help="Add up by this; may be given again. Default: model and purpose."),
    ] = None,
    first: First = "",
    last: Last = "",
    prices: Annotated[
        Path | None,
        typer.Option(
            envvar="LONGTABLE_PRICES",
            help="A price table (TOML or JSON): show what the tokens cost.",
        ),
    ] = None,
) -> None:
    """Show the tokens that threads took, as providers reported them or estimated, and what they
    cost by your price table.
    """
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render
        from longtable.graph.reports import read_prices, usage_of_threads

        names: list[Any] = [each.value for each in dict.fromkeys(by or (By.model, By.purpose))]
        table = read_prices(prices) if prices else opened.settings.price_table()
        with indexing(opened.screen.language) as on_indexed:
            spent = usage_of_threads(
                opened.persistence,
                by=names,
                prices=table,
                on_damaged=opened.report_damaged,
                first=first,
                last=last,
                on_indexed=on_indexed,
                **options.whose,
            )
        figures = [*FIGURES, *(("cost", "unpriced") if table else ())]
        figures += ["charged"] * any(row.charged is not None for row in spent)
        columns = [*names, *figures]
        records = [_record(row, columns) for row in spent]
        rows = [_usage_cells(record, figures) for record in records]
        opened.screen.listing(
            "usage",
            lambda: render.listing(columns, rows, numeric=len(figures)),
            records,
            empty="no_threads",
        )


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
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render
        from longtable.app.console.result_files import write_csv
        from longtable.graph.reports import audit_of, audit_of_threads, row_of

        if csv and opened.settings.as_json:
            raise ConfigError("choose --csv or --json, not both")
        if thread is None:
            entries = audit_of_threads(
                opened.persistence, on_damaged=opened.report_damaged, **options.whose
            )
        else:
            of_thread = audit_of(opened.threads, thread, **options.whose)
            entries = [(thread, entry) for entry in of_thread]
        records = [row_of(thread_id, entry) for thread_id, entry in entries]
        has_databases = any(entry.database for _, entry in entries)
        for record in records if has_databases else ():
            record.setdefault("database", "")
        if csv:
            cells = [list(record.values()) for record in records]
            with writing():
                write_csv(sys.stdout, list(records[0]) if records else [], [cells])
            return
        has_voices = any(entry.voice for _, entry in entries)
        voice = ("voice",) if has_voices else ()
        database = ("database",) if has_databases else ()
        columns = ("time", "thread", *voice, *database, "turn", "verdict", "tables", "sql")
        rows: list[list[str]] = []
        for thread_id, entry in entries:
            who = [entry.voice] if has_voices else []
            who += [entry.database] if has_databases else []
            rows.append([entry.time, thread_id, *who, *_audit_row(entry)])
        heads = (*columns, "rows", "ms")
        opened.screen.listing(
            "audit", lambda: render.listing(heads, rows, numeric=2), records, empty="no_queries"
        )


@add_options(all_owner_options)
def ratings(ctx: typer.Context, options: Scope) -> None:
    """Show what people said of the answers: right or wrong, and why."""
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render
        from longtable.graph.ratings import ratings_of_threads

        found = ratings_of_threads(
            opened.persistence, on_damaged=opened.report_damaged, **options.whose
        )
        records = [{"thread": thread, **asdict(rating)} for thread, rating in found]
        columns = ("time", "thread", "turn", "score", "question", "comment")
        rows: list[list[str]] = []
        for record in records:
            texts = [clean_line(str(record[name]), SHOWN_SQL) for name in columns]
            rows.append(texts)
        opened.screen.listing(
            "ratings", lambda: render.listing(columns, rows), records, empty="no_ratings"
        )


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
    run = RunOptions(store=store, config=config, json=False, debug=debug)
    with open_store(ctx, run) as opened, opened.reading(owner):
        from longtable.app.commands.chat_commands import shown_result
        from longtable.app.console import render
        from longtable.app.console.result_files import save_result, write_csv
        from longtable.app.console.screen import make_console
        from longtable.graph.transcripts import find_thread

        form = _form({".csv": csv, ".parquet": parquet, ".xlsx": xlsx}, output)
        results = _kept_results(opened, thread)
        screen = opened.screen
        find_thread(opened.threads, thread, owner)  # whose thread it is
        formulas = 0
        if output is None and form == ".csv":
            meta = results.meta(thread, handle)
            with writing():
                formulas = write_csv(
                    sys.stdout,
                    meta.columns,
                    results.batches(thread, handle),
                    quote_formulas=quote_formulas,
                )
        elif output is None and not form:
            whole = shown_result(results.get(thread, handle))
            screen.show("result", render.whole_result(whole, make_console().width))
        else:
            file = (output or Path(f"{results.meta(thread, handle).handle}{form}")).expanduser()
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


def _form(chosen: Mapping[str, bool], output: Path | None) -> str:
    """Return the file ending of the format that the options choose, "" if they choose none. Raises
    `ConfigError` if they choose several formats, or if the file name has another ending.
    """
    forms = [name for name, is_chosen in chosen.items() if is_chosen]
    if len(forms) > 1 or (output and forms and output.suffix.lower() != forms[0]):
        raise ConfigError(
            "choose one of --csv, --parquet and --xlsx, and a file name with that ending"
        )
    return forms[0] if forms else ""


def _kept_results(opened: "OpenStore", thread: str) -> "ResultStore":
    """Return the results of a store. Raises `ConfigError` if the store keeps no results."""
    from longtable.app.settings.run_settings import key_for

    results = opened.results
    if results is None:
        raise ConfigError(
            "a store in memory keeps no results: name the thread's store with --store"
        )
    if key_for("LONGTABLE_STORE_KEY") and not results.handles(thread):
        raise ConfigError(
            "an encrypted store keeps no results, which would be files in plain text: run the"
            " query again"
        )
    return results


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
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render

        conversation = opened.conversation(thread, options.owner)
        if key is not None:
            text = conversation.archive_file(key)
            with writing():
                print(text)
            return
        files = conversation.archive_files()
        rows = [
            [file.key, f"{file.first:,}", f"{file.last:,}", f"{file.bytes:,}"] for file in files
        ]
        records = [asdict(file) for file in files]
        opened.screen.listing(
            "archive",
            lambda: render.listing(("key", "first", "last", "bytes"), rows, numeric=3),
            records,
            empty="no_archive",
        )


def _record(row: object, columns: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in columns}


def _usage_cells(record: Mapping[str, Any], figures: Collection[str]) -> list[Any]:
    return [_figure(value) if name in figures else value for name, value in record.items()]


def _figure(value: float | None) -> str:
    """Return a number as the list of usage shows it. A cost that is not known becomes "-"."""
    return "-" if value is None else f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"


def _audit_row(entry: "AuditEntry") -> list[str]:
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
