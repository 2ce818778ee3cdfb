"""The command line's `threads` and `usage`: list, show, search, rename, fork, export, import,
delete, prune; what was spent.
"""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from longtable.app.program import (
    Config,
    Debug,
    Json,
    RunOptions,
    Store,
    add_options,
    print_json,
    run_command,
    with_options,
)
from longtable.app.terminal import writing

if TYPE_CHECKING:
    from longtable.app.screen import Screen
    from longtable.app.settings import Settings
    from longtable.graph.conversation import Conversation
    from longtable.graph.loading import Report
    from longtable.graph.persistence import Persistence

threads_app = typer.Typer(invoke_without_command=True, add_completion=False)

Id = Annotated[str, typer.Argument(help="The thread's id, as `longtable threads` lists it.")]
Owner = Annotated[
    str | None, typer.Option(help="Whose threads: theirs and nobody's. Default: nobody's only.")
]
AllOwners = Annotated[
    bool, typer.Option("--all-owners", help="Threads of every owner: for those who run the store.")
]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="Most lines.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@dataclass(frozen=True)
class Scope:
    """Whose threads a command is about, and the options of its run."""

    run: RunOptions
    owner: str | None
    all_owners: bool = False


def owner_options(
    owner: Owner = None,
    store: Store = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> Scope:
    """Return the options of a command about one owner's thread."""
    return Scope(RunOptions(store=store, config=config, json=json, debug=debug), owner)


def all_owner_options(
    owner: Owner = None,
    all_owners: AllOwners = False,
    store: Store = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> Scope:
    """Return the options of a command that may be about every owner's threads."""
    return Scope(RunOptions(store=store, config=config, json=json, debug=debug), owner, all_owners)


Work = Callable[["Persistence", "Settings", "Screen"], None]


class By(StrEnum):
    """What usage is added up by."""

    hour = "hour"
    day = "day"
    month = "month"
    thread = "thread"
    model = "model"
    project = "project"
    purpose = "purpose"
    voice = "voice"


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(
        threads_app,
        name="threads",
        help="List the threads of a store, newest first; the commands below do more with them.",
    )
    app.command()(usage)


@threads_app.callback()
@with_options
def threads(ctx: typer.Context, options: RunOptions) -> None:
    """List the threads of a store, newest first. Takes the options of `chat`; only --store and
    --thread matter.
    """
    # An option before the subcommand's name counts, unless the subcommand is given its own.
    ctx.obj = {
        name: ctx.params[name] for name in ("store", "config", "json", "debug") if _typed(ctx, name)
    }
    if ctx.invoked_subcommand is None:
        work(
            ctx,
            options,
            lambda persistence, settings, screen: _list(
                persistence, settings, screen, thread=settings.thread, limit=100
            ),
        )


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
    more: dict[str, Any] = {
        "text": text,
        "project": project,
        "limit": limit,
        "offset": (page - 1) * limit,
        "owner": options.owner,
    }
    more["all_owners"] = options.all_owners
    work(ctx, options.run, lambda p, settings, screen: _list(p, settings, screen, **more))


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

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from longtable.app import render
        from longtable.memory.metadata import metadata_of

        messages = _conversation(persistence, thread, options.owner).history()
        if settings.as_json:
            print_json(
                {
                    "number": number,
                    "turn": (told := metadata_of(message)).turn,
                    "time": told.time,
                    "role": message.type,
                    "kind": told.kind,
                    "model": told.model,
                    **({"reasoning": told.reasoning} if reasoning else {}),
                    "text": str(message.text),
                    "tool_calls": [
                        {"name": call["name"], "args": call["args"]}
                        for call in getattr(message, "tool_calls", [])
                    ],
                }
                for number, message in enumerate(messages, 1)
            )
        else:
            screen.show("show", render.messages(messages, reasoning=reasoning))

    work(ctx, options.run, run)


@threads_app.command()
@add_options(all_owner_options)
def search(
    ctx: typer.Context,
    options: Scope,
    query: Annotated[str, typer.Argument(help="Words to find, in any thread.")],
    limit: Limit = 20,
) -> None:
    """Search the transcripts of all threads; the best turns first."""

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from dataclasses import asdict

        from longtable.app import render
        from longtable.graph.threads import search_threads

        seen: Any = {
            "owner": options.owner,
            "all_owners": options.all_owners,
            "on_damaged": report_damaged(screen),
        }
        found = search_threads(persistence, query, limit=limit, **seen)
        if settings.as_json:
            print_json(asdict(each) for each in found)
        elif found:
            rows = [[each.thread_id, str(each.turn), each.title, each.excerpt] for each in found]
            screen.show("search", render.listing(("thread", "turn", "title", "excerpt"), rows))
        else:
            screen.note("nothing_found")

    work(ctx, options.run, run)


@threads_app.command()
@add_options(owner_options)
def rename(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    title: Annotated[str, typer.Argument(help="The new title.")],
) -> None:
    """Give a thread another title."""

    def run(persistence: "Persistence", _: "Settings", screen: "Screen") -> None:
        screen.note(
            "renamed",
            id=thread,
            title=_conversation(persistence, thread, options.owner).rename(title),
        )

    work(ctx, options.run, run)


@threads_app.command()
@add_options(owner_options)
def move(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    project: Annotated[str, typer.Argument(help='The project; "" for none.')],
) -> None:
    """Move a thread to another project."""

    def run(persistence: "Persistence", _: "Settings", screen: "Screen") -> None:
        from longtable.graph.threads import move_thread

        move_thread(persistence, thread, project, owner=options.owner)
        screen.note("moved", id=thread, project=project or "-")

    work(ctx, options.run, run)


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

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from longtable.app.session import kept_archive, kept_results
        from longtable.app.settings import check_thread_id, new_thread_id
        from longtable.memory.metadata import metadata_of

        new_id = new or new_thread_id()
        check_thread_id(new_id)
        conversation = _conversation(persistence, thread, options.owner)
        conversation.results, conversation.archive = kept_results(settings), kept_archive(settings)
        forked = conversation.fork(turn, thread_id=new_id)
        turns = turn or max((metadata_of(message).turn for message in forked.history()), default=0)
        screen.note("forked", id=new_id, argument=shlex.quote(new_id), thread=thread, turn=turns)

    work(ctx, options.run, run)


@threads_app.command()
def export(
    ctx: typer.Context,
    thread: Id,
    form: Annotated[
        Literal["jsonl", "markdown", "html"],
        typer.Option(
            "--format", help="jsonl holds all and can be imported; the others are for people."
        ),
    ] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file. Default: standard output.")
    ] = None,
    owner: Owner = None,
    store: Store = None,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Write a thread whole: messages, archive, memory and edits; or its transcript for people."""

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from longtable.app.session import kept_results

        conversation = _conversation(persistence, thread, owner)
        conversation.results = kept_results(settings)
        text = conversation.export(form)
        if output is None:
            with writing():
                sys.stdout.write(text)
            return
        with _asked(output), output.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        screen.note("exported", id=thread, file=output)

    work(ctx, RunOptions(store=store, config=config, json=False, debug=debug), run)


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

    def run(persistence: "Persistence", _: "Settings", screen: "Screen") -> None:
        from longtable.app.settings import check_thread_id
        from longtable.graph.threads import import_thread

        if new is not None:
            check_thread_id(new)
        with (
            _asked(file),
            open(  # noqa: PTH123
                0 if str(file) == "-" else file,  # 0: standard input
                encoding="utf-8-sig",
                errors="replace",
                newline="\n",
            ) as lines,
        ):
            thread_id = import_thread(persistence, lines, thread_id=new, owner=owner)
        screen.note("imported", id=thread_id)

    work(ctx, RunOptions(store=store, config=config, json=json, debug=debug), run, makes=True)


@threads_app.command()
@add_options(all_owner_options)
def delete(
    ctx: typer.Context,
    options: Scope,
    thread: Id,
    yes: Yes = False,
) -> None:
    """Delete a thread with all that is stored of it."""

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from longtable.app.session import kept_archive, kept_results
        from longtable.graph.threads import delete_thread

        _confirm("delete_ask", settings, screen, yes=yes, id=thread)
        beside: Any = {"results": kept_results(settings), "archive": kept_archive(settings)}
        delete_thread(
            persistence, thread, owner=options.owner, all_owners=options.all_owners, **beside
        )
        screen.note("deleted", id=thread)

    work(ctx, options.run, run)


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

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from dataclasses import asdict
        from datetime import UTC, datetime

        from longtable.app import render
        from longtable.app.session import kept_archive, kept_results
        from longtable.graph.threads import MOST_THREADS, list_threads, prune_threads, stale_threads

        age, now = _age(older_than), datetime.now(UTC)
        infos = list_threads(
            persistence, limit=MOST_THREADS, owner=options.owner, all_owners=options.all_owners
        )
        old = stale_threads(infos, older_than=age, now=now)
        if not old:
            screen.note("nothing_to_prune")
            return
        if not yes and not settings.as_json:
            screen.show("threads", render.threads(old))
        _confirm(
            "reduce_ask" if keep_archive else "prune_ask", settings, screen, yes=yes, count=len(old)
        )
        done = prune_threads(
            persistence,
            older_than=age,
            now=now,
            keep_archive=keep_archive,
            owner=options.owner,
            all_owners=options.all_owners,
            results=kept_results(settings),
            archive=kept_archive(settings),
            on_damaged=report_damaged(screen),
        )
        if settings.as_json:
            print_json(asdict(info) for info in done)
        screen.note("reduced" if keep_archive else "pruned", count=len(done))

    work(ctx, options.run, run)


@add_options(all_owner_options)
def usage(
    ctx: typer.Context,
    options: Scope,
    by: Annotated[
        list[By] | None,
        typer.Option(help="Add up by this; may be given again. Default: model and purpose."),
    ] = None,
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

    def run(persistence: "Persistence", settings: "Settings", screen: "Screen") -> None:
        from dataclasses import asdict

        from longtable.app import render
        from longtable.graph.reports import read_prices, usage_of_threads
        from longtable.memory.spent import Price

        names: list[Any] = [each.value for each in by or [By.model, By.purpose]]
        listed = {name: Price(**price.model_dump()) for name, price in settings.prices.items()}
        table = read_prices(prices) if prices else listed or None
        seen: Any = {
            "owner": options.owner,
            "all_owners": options.all_owners,
            "on_damaged": report_damaged(screen),
        }
        spent = usage_of_threads(persistence, by=names, prices=table, **seen)
        figures = (
            "calls",
            "input",
            "output",
            "cached",
            "reasoning",
            "estimated",
            *(("cost", "unpriced") if table else ()),
        )
        figures += ("charged",) * any(row.charged is not None for row in spent)
        if settings.as_json:
            print_json(
                {name: value for name, value in asdict(row).items() if name in (*names, *figures)}
                for row in spent
            )
        elif spent:
            rows = [
                [
                    *(getattr(row, name) for name in names),
                    *(_figure(getattr(row, name)) for name in figures),
                ]
                for row in spent
            ]
            screen.show("usage", render.listing((*names, *figures), rows, numeric=len(figures)))
        else:
            screen.note("no_threads")

    work(ctx, options.run, run)


# -- inside ----------------------------------------------------------------------------------------


def work(ctx: typer.Context, options: RunOptions, work: Work, *, makes: bool = False) -> None:
    """Run a command on the store of its own options, else of those before the command's name.

    Unless it `makes` threads, a missing store is not created: a typing error in its name leaves no
    file behind.
    """

    def run(settings: "Settings", screen: "Screen") -> None:
        from longtable.app.session import database_url
        from longtable.app.settings import check_apart, key_for, store_url
        from longtable.graph.persistence import open_persistence

        url = store_url(settings.store.url)
        check_apart(database=database_url(settings), store=url)
        kept = open_persistence(url, key=key_for("LONGTABLE_STORE_KEY"))
        if kept.path is not None and not kept.path.exists() and not makes:
            kept = open_persistence("memory://")
        with kept as persistence:
            work(persistence, settings, screen)

    before = ctx.obj or {}
    own = {name: value for name, value in before.items() if not _typed(ctx, name)}
    run_command(run, RunOptions(**{**options, **own}))


def _figure(value: float | None) -> str:
    """Return a number as the list of usage shows it; a cost that is not known is left open."""
    return "-" if value is None else f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"


def _typed(ctx: typer.Context, name: str) -> bool:
    """Return whether an option was typed, not taken from the environment or its default."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _list(
    persistence: "Persistence",
    settings: "Settings",
    screen: "Screen",
    *,
    thread: str | None = None,
    **page: Any,
) -> None:
    from dataclasses import asdict

    from longtable.app import render
    from longtable.base.errors import ThreadNotFoundError
    from longtable.graph.threads import MOST_THREADS, list_threads

    infos = list_threads(persistence, **({"limit": MOST_THREADS} if thread else page))
    infos = [info for info in infos if thread in (None, info.thread_id)]
    if thread and not infos:
        raise ThreadNotFoundError(thread)
    for info in infos:
        if info.damaged:
            warn("damaged_line", screen, info.thread_id)
    if settings.as_json:
        print_json(asdict(info) for info in infos)
    elif infos:
        screen.show("threads", render.threads(infos))
    else:
        screen.note(
            "no_such_threads"
            if any(page.get(name) for name in ("offset", "text", "project"))
            else "no_threads"
        )


def _conversation(persistence: "Persistence", thread: str, owner: str | None) -> "Conversation":
    from longtable.base.context import Context
    from longtable.graph.conversation import Conversation
    from longtable.graph.thread_state import reader

    return Conversation(reader(persistence), thread, context=Context(owner=owner))


def report_damaged(screen: "Screen") -> "Report":
    """Return a callback that names unreadable threads on standard error."""
    return lambda error: warn("damaged_thread", screen, error.thread_id)


def warn(key: str, screen: "Screen", thread_id: str) -> None:
    """Print one warning about a thread to standard error."""
    from longtable.app.terminal import clean_line
    from longtable.app.translations import say

    print(
        clean_line(say(key, screen.language, id=thread_id, argument=shlex.quote(thread_id))),
        file=sys.stderr,
    )


def _confirm(
    key: str, settings: "Settings", screen: "Screen", *, yes: bool, **values: object
) -> None:
    """Ask before what cannot be taken back. Raises `ConfigError` where nobody can answer."""
    from longtable.app.terminal import clean
    from longtable.app.translations import say
    from longtable.base.errors import ConfigError

    if yes:
        return
    if settings.as_json or not sys.stdin.isatty():
        raise ConfigError("deleting cannot be undone: without a terminal, add --yes to confirm it")
    print(f"{clean(say(key, screen.language, **values))} [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().casefold() not in {"y", "yes", "是"}:
        screen.note("nothing_done")
        raise typer.Exit(1)


def _age(text: str) -> Any:
    import re
    from datetime import timedelta

    from longtable.base.errors import ConfigError

    found = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if not found:
        raise ConfigError(
            f"--older-than is a number with h, d or w, as in 90d, found {text[:40]!r}"
        )
    return timedelta(hours=int(found[1]) * {"h": 1, "d": 24, "w": 168}[found[2]])


@contextmanager
def _asked(path: Path) -> Iterator[None]:
    """Turn what is wrong with a file the user named into a `ConfigError`."""
    from longtable.base.errors import ConfigError

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
