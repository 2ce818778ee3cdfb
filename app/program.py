"""The command line: its options, how commands run and report errors, and the commands `ask`,
`chat`, `web`, `mcp`, `init`, `config` and `demo`.

Modules that take long to import are imported inside the commands.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtable.app.console.streams import OutputFailedError, clean_line, print_json, writing
from longtable.app.settings.settings_file import FILE
from longtable.app.settings.settings_tables import KEYS, VARIABLES, option_of

if TYPE_CHECKING:
    from longtable.app.console.screen import Screen
    from longtable.app.settings.run_settings import Settings

CANCELLED = 130  # what a shell calls a program ended by Ctrl-C


def option(variable: str) -> Any:
    """Return the command-line option for the setting of an environment variable. Its help text is
    the description of the key in the settings file.
    """
    help = f"{KEYS[VARIABLES[variable]].description} ({variable})"
    plain = help.replace("[", r"\[")  # [team] is no markup
    return typer.Option(f"--{option_of(variable).replace('_', '-')}", help=plain)


Config = Annotated[
    str | None,
    typer.Option(
        help=(
            f"The settings file. Default: {FILE} of your settings folder, and within bounds of this"
            " one. (LONGTABLE_CONFIG)"
        )
    ),
]
Store = Annotated[str | None, option("LONGTABLE_STORE")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full trace of an error.")]

RunOptions = dict[str, Any]
"""The options of one run, by their names in Python. An option that was not given is None or
False.
"""


def chat_options(
    database: Annotated[str | None, option("LONGTABLE_DATABASE")] = None,
    model: Annotated[str | None, option("LONGTABLE_MODEL")] = None,
    base_url: Annotated[str | None, option("LONGTABLE_BASE_URL")] = None,
    thread: Annotated[
        str | None, typer.Option(help="Continue this thread, or start it. Default: a new one.")
    ] = None,
    store: Store = None,
    model_limit: Annotated[str | None, option("LONGTABLE_MODEL_LIMIT")] = None,
    approve_sql: Annotated[str | None, option("LONGTABLE_APPROVE_SQL")] = None,
    private: Annotated[bool, option("LONGTABLE_PRIVATE")] = False,
    policy: Annotated[str | None, option("LONGTABLE_POLICY")] = None,
    knowledge: Annotated[str | None, option("LONGTABLE_KNOWLEDGE")] = None,
    summarizer: Annotated[str | None, option("LONGTABLE_SUMMARIZER")] = None,
    compaction: Annotated[str | None, option("LONGTABLE_COMPACTION")] = None,
    project: Annotated[str | None, option("LONGTABLE_PROJECT")] = None,
    archive_on_compact: Annotated[bool, option("LONGTABLE_ARCHIVE_ON_COMPACT")] = False,
    team: Annotated[bool, option("LONGTABLE_TEAM")] = False,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> RunOptions:
    """Return the options that `ask`, `chat` and `threads` share."""
    return {**locals()}


def add_options(build: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the parameters of `build` to a command as options. The command
    receives the value that `build` returns as `options`.
    """
    shared = inspect.signature(build).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {
            name: parameter
            for name, parameter in inspect.signature(command).parameters.items()
            if name != "options"
        }

        @functools.wraps(command)
        def run(**values: Any) -> None:
            options = build(**{name: values.pop(name) for name in shared})
            command(**values, options=options)

        # What Typer reads.
        run.__signature__ = inspect.Signature([*own.values(), *shared.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {
            name: parameter.annotation for name, parameter in {**own, **shared}.items()
        }
        return run

    return decorate


with_options = add_options(chat_options)
"""Add the options of a chat to a command."""


@contextmanager
def running(
    options: RunOptions, *, load: "Callable[[RunOptions], Settings] | None" = None
) -> "Iterator[tuple[Settings, Screen]]":
    """Give a command its settings and its screen. An error is shown as a sentence and ends the
    command with exit code 1. With the option `debug`, the traceback is shown too.

    `load` makes the settings for a command that does not read a settings file.
    """
    from longtable.app.console.logs import start_log
    from longtable.app.console.screen import ConsoleScreen, JsonScreen
    from longtable.app.settings.run_settings import load_settings

    _quiet_warnings()
    screen: Screen = JsonScreen() if options["json"] else ConsoleScreen()
    try:
        start_log()
        settings = (load or load_settings)(options)
        for note in settings.notes:
            print(f"Note: {clean_line(note)}", file=sys.stderr)
        yield settings, screen
    except KeyboardInterrupt:
        screen.note("cancelled_ask")
        raise typer.Exit(CANCELLED) from None
    except (BrokenPipeError, OutputFailedError, typer.Exit):
        raise  # `main` ends these
    except Exception as error:
        report(error, screen, debug=options["debug"])
        raise typer.Exit(1) from None


def report(error: Exception, screen: "Screen", *, debug: bool) -> None:
    """Show an error. If the error is about writing the output, it is raised instead."""
    if isinstance(error, BrokenPipeError | OutputFailedError):
        raise error
    if debug:
        import traceback

        traceback.print_exception(error)
    screen.error(error)


def _quiet_warnings() -> None:
    """Show the warnings of longtable as one line each, and hide the warnings of other libraries."""
    import warnings

    from longtable.memory.counting.model_limits import EncodingFallbackWarning

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"Note: {clean_line(str(message))}", file=sys.stderr)

    warnings.simplefilter("ignore")
    warnings.simplefilter("once", EncodingFallbackWarning)
    warnings.showwarning = show


# -- the commands ----------------------------------------------------------------------------------

app = typer.Typer(
    name="longtable",
    help="Ask questions of a database, in conversations that never lose what was said.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@with_options
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")], options: RunOptions
) -> None:
    """Ask one question and print the answer."""
    with running(options) as (settings, screen):
        from longtable.app.console.chat import Chat
        from longtable.app.console.screen import demo_progress
        from longtable.app.console.streams import language_of
        from longtable.app.settings.run_settings import check_text

        screen.language = language_of(question)
        check_text(question)
        with Chat(settings, screen, demo_progress, answering=False) as chat:
            screen.opened(chat.session)
            try:
                chat.resume()
            except Exception as error:  # of the turn before; the new question is asked all the same
                report(error, screen, debug=settings.debug)
            if not chat.turn(question):
                chat.left_waiting()
                raise typer.Exit(1)


@app.command()
@with_options
def chat(options: RunOptions) -> None:
    """Hold a conversation; with standard input not a terminal, answer one message a line."""
    with running(options) as (settings, screen):
        from longtable.app.console.chat import Chat, run_piped, run_prompt
        from longtable.app.console.screen import demo_progress

        failed = functools.partial(report, screen=screen, debug=settings.debug)
        with Chat(settings, screen, demo_progress) as talk:
            screen.note("greeting", model=talk.session.label, database=talk.session.databases.title)
            screen.opened(talk.session)
            talk.begin(failed)
            if not sys.stdin.isatty():
                run_piped(talk, sys.stdin.buffer, failed)
                talk.left_waiting()
                return
            screen.note("greeting_keys")
            run_prompt(talk, failed)
            talk.left_waiting()
            screen.note("goodbye", id=settings.continued(talk.session.thread_id))


@app.command()
@with_options
def mcp(options: RunOptions) -> None:
    """Serve the conversation and its database to an MCP client, on standard input and output."""
    with running(options) as (settings, _):
        from longtable.app.console.screen import demo_progress
        from longtable.base.errors import ConfigError, MissingExtraError

        try:
            from longtable.app.mcp_server import serve
        except ImportError as error:
            raise MissingExtraError("an MCP server cannot be started", "mcp") from error
        if settings.as_json:
            raise ConfigError(
                "standard output carries the MCP protocol and nothing else: leave --json out"
            )
        serve(settings, demo_progress)


@app.command()
@with_options
def web(
    options: RunOptions,
    host: Annotated[str | None, option("LONGTABLE_WEB_HOST")] = None,
    port: Annotated[str | None, option("LONGTABLE_WEB_PORT")] = None,
) -> None:
    """Serve a chat in the browser over the same settings, threads and walls as the command line."""
    with running({**options, "host": host, "port": port}) as (settings, screen):
        from longtable.app.console.screen import demo_progress
        from longtable.app.pages.page_server import (
            LOOPBACK,
            PORT,
            listening_socket,
            serve_pages,
        )

        table = settings.web
        listens_at = PORT if table.port is None else table.port
        listener = listening_socket(table.host or LOOPBACK, listens_at)
        serve_pages(
            settings,
            demo_progress,
            listener,
            ready=lambda key, address: screen.note(key, address=address),
        )


@app.command()
def init(
    user: Annotated[
        bool,
        typer.Option("--user", help="Write it into your settings folder, where all of it counts."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a settings file, longtable.toml, with a comment for each setting, and an example of a
    knowledge folder; never over one that exists.
    """
    from longtable.app.settings.run_settings import KNOWLEDGE, Settings, user_folder
    from longtable.app.settings.settings_file import (
        FILE,
        GLOSSARY,
        write_first_file,
        write_first_glossary,
    )

    with running({"json": json, "debug": debug}, load=Settings.model_validate) as (_, screen):
        path = user_folder() / FILE if user else Path(FILE)
        write_first_file(path, force=force)
        screen.note("init_written", file=path)
        folder = path.parent / KNOWLEDGE
        if write_first_glossary(folder):
            screen.note("init_example", file=folder / GLOSSARY)
        screen.note("init_knowledge", folder=folder)


@app.command()
@with_options
def config(options: RunOptions) -> None:
    """Show each setting that holds, and where it comes from: an option, a variable, a file and its
    line, or the default.
    """
    with running(options) as (settings, screen):
        from longtable.app.console import render
        from longtable.app.settings.run_settings import setting_rows

        columns = ("name", "value", "source")
        rows = setting_rows(settings, os.environ)
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        screen.listing("config", lambda: render.listing(columns, rows), records)


@app.command()
def demo(
    force: Annotated[bool, typer.Option("--force", help="Build it anew.")] = False,
    into: Annotated[
        str | None,
        typer.Option("--into", help="Load it into this database, which must be empty."),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Build the demo database if it does not exist yet, and print its path. With --into URL, load
    it into an empty database of any engine, and print that URL.
    """
    with running({"json": json, "debug": debug}) as (settings, _):
        from longtable.app.console.screen import demo_progress
        from longtable.app.session import demo_database

        path = demo_database(demo_progress, force=force)
        shown = str(path)
        record = {"type": "demo", "path": shown, "url": f"duckdb:///{path}"}
        if into is not None:
            from longtable.app.demo_into import load_demo

            with demo_progress() as on_step:
                shown = load_demo(path, into, on_step=on_step)
            record = {"type": "demo", "url": shown}
        if settings.as_json:
            print_json([record])
        else:
            with writing():
                print(shown)
