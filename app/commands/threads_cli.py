"""The command `threads` and its commands: list, show, search, rename, move, fork, export, import,
delete and prune threads.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from longtable.app.commands.store_commands import (
    Id,
    OpenStore,
    Owner,
    Scope,
    all_owner_options,
    open_store,
    owner_options,
    was_typed,
)
from longtable.app.console.index_progress import indexing
from longtable.app.console.streams import clean, print_json, writing
from longtable.app.console.translations import say
from longtable.app.program import Config, Debug, Json, RunOptions, Store, add_options, with_options
from longtable.base.errors import ConfigError, ThreadNotFoundError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

threads_app = typer.Typer(invoke_without_command=True, add_completion=False)

Limit = Annotated[int, typer.Option(min=1, max=100_000, help="Most lines.")]
Form = Literal["jsonl", "markdown", "html"]
ENDINGS: dict[str, Form] = {
    ".jsonl": "jsonl",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(
        threads_app,
        name="threads",
        help="List the threads of a store, newest first; the commands below do more with them.",
    )


@threads_app.callback()
@with_options
def threads(ctx: typer.Context, options: RunOptions) -> None:
    """List the threads of a store, newest first. Takes the options of `chat`; only --store and
    --thread matter.
    """
    # An option before the subcommand's name counts, unless the subcommand is given its own.
    ctx.obj = {
        name: ctx.params[name]
        for name in ("store", "config", "json", "debug")
        if was_typed(ctx, name)
    }
    if ctx.invoked_subcommand is None:
        with open_store(ctx, options) as opened:
            _list(opened, thread=opened.settings.thread, limit=100)


@threads_app.command("list")
@add_options(all_owner_options)
def list_command(
    ctx: typer.Context,
    options: Scope,
    text: Annotated[str, typer.Option(help="Only with all these words in the title.")] = "",
    project: Annotated[str | None, typer.Option(help="Only those of this project.")] = None,
    limit: Limit = 100,
    page: Annotated[int, typer.Option(min=1, help="Which page of so many.")] = 1,
) -> None:
    """List threads, newest first, page by page."""
    with open_store(ctx, options.run) as opened:
        _list(
            opened,
            text=text,
            project=project,
            limit=limit,
            offset=(page - 1) * limit,
            owner=options.owner,
            all_owners=options.all_owners,
        )


@threads_app.command()
@add_options(all_owner_options)
def projects(ctx: typer.Context, options: Scope) -> None:
    """List the projects of threads, with how many each has."""
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render
        from longtable.graph.listing.thread_list import list_projects

        found = list_projects(opened.persistence, **options.whose)
        rows = [[each.project or "-", each.updated[:16], f"{each.threads:,}"] for each in found]
        opened.screen.listing(
            "projects",
            lambda: render.listing(("project", "updated", "threads"), rows, numeric=1),
            list(map(asdict, found)),
            empty="no_threads",
        )


@threads_app.command()
@add_options(owner_options)
def show(
    ctx: typer.Context,
    thread: Id,
    options: Scope,
    reasoning: Annotated[
        bool, typer.Option("--reasoning", help="With the model's reasoning, where it told any.")
    ] = False,
) -> None:
    """Show a thread's transcript."""
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render

        messages = opened.conversation(thread, options.owner).history()
        if not opened.settings.as_json:
            opened.screen.show("show", render.messages(messages, reasoning=reasoning))
            return
        print_json(
            _message_record(number, message, reasoning=reasoning)
            for number, message in enumerate(messages, 1)
        )


def _message_record(number: int, message: "BaseMessage", *, reasoning: bool) -> dict[str, Any]:
    """Return a message of a transcript as JSON. With `reasoning`, include the model's reasoning."""
    from longtable.memory.messages.metadata import metadata_of

    metadata = metadata_of(message)
    calls = getattr(message, "tool_calls", [])
    record: dict[str, Any] = {
        "number": number,
        "turn": metadata.turn,
        "time": metadata.time,
        "role": message.type,
        "kind": metadata.kind,
        "model": metadata.model,
    }
    if reasoning:
        record["reasoning"] = metadata.reasoning
    record["text"] = str(message.text)
    record["tool_calls"] = [{"name": call["name"], "args": call["args"]} for call in calls]
    return record


@threads_app.command()
@add_options(all_owner_options)
def search(
    ctx: typer.Context,
    options: Scope,
    query: Annotated[str, typer.Argument(help="Words to find, in any thread.")],
    limit: Limit = 20,
) -> None:
    """Search the transcripts of all threads; the best turns first."""
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render
        from longtable.graph.listing.thread_search import search_threads

        with indexing(opened.screen.language) as on_indexed:
            hits = search_threads(
                opened.persistence,
                query,
                limit=limit,
                on_damaged=opened.report_damaged,
                on_indexed=on_indexed,
                **options.whose,
            )
        rows = [[hit.thread_id, str(hit.turn), hit.title, hit.excerpt] for hit in hits]
        opened.screen.listing(
            "search",
            lambda: render.listing(("thread", "turn", "title", "excerpt"), rows),
            list(map(asdict, hits)),
            empty="nothing_found",
        )


@threads_app.command()
@add_options(owner_options)
def rename(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    title: Annotated[str, typer.Argument(help="The new title.")],
) -> None:
    """Give a thread another title."""
    with open_store(ctx, options.run) as opened:
        new = opened.conversation(thread, options.owner).rename(title)
        opened.screen.note("renamed", id=thread, title=new)


@threads_app.command()
@add_options(owner_options)
def move(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    project: Annotated[str, typer.Argument(help='The project; "" for none.')],
) -> None:
    """Move a thread to another project."""
    with open_store(ctx, options.run) as opened:
        from longtable.graph.threads import move_thread

        move_thread(opened.persistence, thread, project, owner=options.owner)
        opened.screen.note("moved", id=thread, project=project or "-")


@threads_app.command()
@add_options(owner_options)
def fork(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    turn: Annotated[
        int | None,
        typer.Option(
            help=(
                "The last turn the new thread has. Default: the last that is finished, and can be"
                " read."
            )
        ),
    ] = None,
    new: Annotated[
        str | None, typer.Option("--as", help="The new thread's id. Default: a new one.")
    ] = None,
) -> None:
    """Begin a new thread with the first turns of another."""
    with open_store(ctx, options.run) as opened:
        from longtable.app.settings.run_settings import check_thread_id, new_thread_id
        from longtable.memory.messages.metadata import metadata_of

        new_id = new or new_thread_id()
        check_thread_id(new_id)
        forked = opened.conversation(thread, options.owner).fork(turn, thread_id=new_id)
        turns = turn or max((metadata_of(message).turn for message in forked.history()), default=0)
        opened.screen.note(
            "forked", id=new_id, argument=shlex.quote(new_id), thread=thread, turn=turns
        )


@threads_app.command()
def export(
    ctx: typer.Context,
    thread: Id,
    form: Annotated[
        Form | None,
        typer.Option(
            "--format",
            help=(
                "jsonl holds all and can be imported; the others are for people. Default: by the"
                " file's ending, else jsonl."
            ),
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file. Default: standard output.")
    ] = None,
    owner: Owner = None,
    store: Store = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Write a thread whole: messages, archive, memory and edits; or its transcript for people."""
    run = RunOptions(store=store, config=config, json=False, debug=debug)
    with open_store(ctx, run) as opened:
        with opened.reading(owner):
            text = opened.conversation(thread, owner).export(_form_of(output, form))
        if output is None:
            with writing():
                sys.stdout.write(text)
            return
        with _named_file(output), output.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        opened.screen.note("exported", id=thread, file=output)


@threads_app.command("import")
def import_command(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="What `threads export` wrote; - for standard input.")
    ],
    new: Annotated[
        str | None, typer.Option("--as", help="The thread's id here. Default: the one it had.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="Whose it is here. Default: the owner it had.")
    ] = None,
    store: Store = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Take in a thread that was exported."""
    run = RunOptions(store=store, config=config, json=json, debug=debug)
    with open_store(ctx, run, creates=True) as opened:
        from longtable.app.settings.run_settings import check_thread_id
        from longtable.graph.threads import import_thread

        if new is not None:
            check_thread_id(new)
        with (
            _named_file(file),
            open(  # noqa: PTH123
                0 if str(file) == "-" else file,  # 0: standard input
                encoding="utf-8-sig",
                errors="replace",
                newline="\n",
            ) as lines,
        ):
            thread_id = import_thread(opened.persistence, lines, thread_id=new, owner=owner)
        opened.screen.note("imported", id=thread_id)


@threads_app.command()
@add_options(all_owner_options)
def delete(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    yes: Yes = False,
) -> None:
    """Delete a thread with all that is stored of it."""
    with open_store(ctx, options.run) as opened:
        from longtable.graph.thread_state import threads_in
        from longtable.graph.threads import check_owner, delete_thread

        check_owner(threads_in(opened.persistence), thread, **options.whose)
        _confirm("delete_ask", opened, yes=yes, id=thread)
        delete_thread(
            opened.persistence,
            thread,
            results=opened.results,
            archive=opened.archive,
            **options.whose,
        )
        opened.screen.note("deleted", id=thread)


@threads_app.command()
@add_options(all_owner_options)
def prune(
    ctx: typer.Context,
    options: Scope,
    older_than: Annotated[str, typer.Option(help="Not used for so long: 90d, 12w, 36h.")],
    keep_archive: Annotated[
        bool,
        typer.Option(
            "--keep-archive",
            help="Keep transcript and memory; drop only the checkpoints behind them.",
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete the threads that were not used for long."""
    with open_store(ctx, options.run) as opened:
        from longtable.app.console import render
        from longtable.graph.listing.thread_list import MOST_THREADS, list_threads
        from longtable.graph.pruning import prune_threads, stale_threads

        age = _age(older_than)
        now = datetime.now(UTC)
        infos = list_threads(opened.persistence, limit=MOST_THREADS, **options.whose)
        stale = stale_threads(infos, older_than=age, now=now)
        if not stale:
            opened.screen.note("nothing_to_prune")
            return
        if not yes and not opened.settings.as_json:
            opened.screen.show("threads", render.threads(stale))
        _confirm("reduce_ask" if keep_archive else "prune_ask", opened, yes=yes, count=len(stale))
        pruned = prune_threads(
            opened.persistence,
            older_than=age,
            now=now,
            keep_archive=keep_archive,
            results=opened.results,
            archive=opened.archive,
            on_damaged=opened.report_damaged,
            **options.whose,
        )
        if opened.settings.as_json:
            print_json(asdict(info) for info in pruned)
        opened.screen.note("reduced" if keep_archive else "pruned", count=len(pruned))


# -- inside ----------------------------------------------------------------------------------------


def _list(opened: OpenStore, *, thread: str | None = None, **page: Any) -> None:
    from longtable.app.console import render
    from longtable.graph.listing.thread_list import MOST_THREADS, list_threads

    infos = list_threads(opened.persistence, **({"limit": MOST_THREADS} if thread else page))
    infos = [info for info in infos if thread in (None, info.thread_id)]
    if thread and not infos:
        raise ThreadNotFoundError(thread)
    for info in infos:
        if info.damaged:
            opened.warn("damaged_line", info.thread_id)
    narrowed = any(page.get(name) for name in ("offset", "text", "project"))
    opened.screen.listing(
        "threads",
        lambda: render.threads(infos),
        list(map(asdict, infos)),
        empty="no_such_threads" if narrowed else "no_threads",
    )


def _form_of(output: Path | None, form: Form | None) -> Form:
    """Return the format that was asked for; if none was, the format of the file's ending. Raises
    `ConfigError` if these two differ. Also raises it if no format was asked for and the ending is
    unknown.
    """
    ending = output.suffix.lower() if output else ""
    of_ending = ENDINGS.get(ending)
    if ending and of_ending is None and form is None:
        known = ", ".join(ENDINGS)
        raise ConfigError(
            f"no form of a transcript has the ending {ending[:20]!r}: name the file with one of"
            f" {known}, or say --format"
        )
    if form and of_ending and form != of_ending:
        raise ConfigError(f"--format {form} does not fit the file {str(output)!r}: leave one out")
    return form or of_ending or "jsonl"


def _confirm(key: str, opened: OpenStore, *, yes: bool, **values: object) -> None:
    """Ask the person before a step that cannot be undone. Raises `ConfigError` if there is nobody
    to ask, and ends the command if the answer is no.
    """
    if yes:
        return
    if opened.settings.as_json or not sys.stdin.isatty():
        raise ConfigError("deleting cannot be undone: without a terminal, add --yes to confirm it")
    print(f"{clean(say(key, opened.screen.language, **values))} [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().casefold() not in {"y", "yes", "是"}:
        opened.screen.note("nothing_done")
        raise typer.Exit(1)


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if not match:
        raise ConfigError(
            f"--older-than is a number with h, d or w, as in 90d, found {text[:40]!r}"
        )
    return timedelta(hours=int(match[1]) * {"h": 1, "d": 24, "w": 168}[match[2]])


@contextmanager
def _named_file(path: Path) -> Iterator[None]:
    """Raise `ConfigError` if a file that the person named exists already or cannot be used."""
    try:
        yield
    except FileExistsError as error:
        raise ConfigError(
            f"{str(path)!r} already exists: name another file, or delete it first"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{str(path)!r} cannot be used ({error.strerror or type(error).__name__}): name another"
            " file"
        ) from error
