"""The command line: `longtable ask`, `chat`, `threads`, `mcp`, `demo`. Heavy imports happen inside the commands."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

import typer

from longtable.app.streams import OutputFailedError, drop_output, open_streams, takes_unicode, writing

if TYPE_CHECKING:
    from longtable.app.screen import Screen
    from longtable.app.settings import Settings

CANCELLED = 130  # what a shell calls a program ended by Ctrl-C

app = typer.Typer(
    name="longtable",
    help="Ask questions of a database, in conversations that never lose what was said.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Database = Annotated[
    str | None,
    typer.Option(
        envvar="LONGTABLE_DATABASE",
        help="sqlite:///file.db, duckdb:///file.duckdb, postgresql://..., or a file or folder of data. Default: the demo database.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(envvar="LONGTABLE_MODEL", help="provider:name, as in openai:gpt-4o-mini. Default: the built-in analyst."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(envvar="LONGTABLE_BASE_URL", help="Any OpenAI-compatible endpoint, as in http://127.0.0.1:8000/v1."),
]
Thread = Annotated[str | None, typer.Option(help="Continue this thread, or start it. Default: a new one.")]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="LONGTABLE_STORE",
        help="Where threads are kept: sqlite:///file.db, postgresql://... or memory://. Default: a file in your data folder.",
    ),
]
ModelLimit = Annotated[
    int | None,
    typer.Option(envvar="LONGTABLE_MODEL_LIMIT", help="The model's input limit in tokens. Default: what is known of the model."),
]
Private = Annotated[
    bool,
    typer.Option("--private", envvar="LONGTABLE_PRIVATE", help="Show the model types, counts and names only; you still see every row."),
]
ApproveSql = Annotated[
    str | None,
    typer.Option(
        envvar="LONGTABLE_APPROVE_SQL", help="Which queries wait for your approval: never, costly ones, or always. Default: costly."
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(envvar="LONGTABLE_POLICY", help="A TOML file that says which tables and columns may be read. Default: all."),
]
Project = Annotated[
    str | None,
    typer.Option(envvar="LONGTABLE_PROJECT", help="What the thread is for: threads are listed and tokens added up by it."),
]
ArchiveOnCompact = Annotated[
    bool,
    typer.Option(
        "--archive-on-compact",
        envvar="LONGTABLE_ARCHIVE_ON_COMPACT",
        help="Before each compaction write what it folds to a file, beside the store.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full trace of an error.")]


class Given(TypedDict):
    """The options of one run, by the names of `Settings`."""

    json: bool
    debug: bool
    database: NotRequired[str | None]
    model: NotRequired[str | None]
    base_url: NotRequired[str | None]
    thread: NotRequired[str | None]
    store: NotRequired[str | None]
    model_limit: NotRequired[int | None]
    approve_sql: NotRequired[str | None]
    private: NotRequired[bool]
    policy: NotRequired[str | None]
    project: NotRequired[str | None]
    archive_on_compact: NotRequired[bool]


def options(
    database: Database = None,
    model: Model = None,
    base_url: BaseUrl = None,
    thread: Thread = None,
    store: Store = None,
    model_limit: ModelLimit = None,
    approve_sql: ApproveSql = None,
    private: Private = False,
    policy: Policy = None,
    project: Project = None,
    archive_on_compact: ArchiveOnCompact = False,
    json: Json = False,
    debug: Debug = False,
) -> Given:
    """Return the options that `ask`, `chat` and `threads` share."""
    return Given(
        database=database,
        model=model,
        base_url=base_url,
        thread=thread,
        store=store,
        model_limit=model_limit,
        approve_sql=approve_sql,
        private=private,
        policy=policy,
        project=project,
        archive_on_compact=archive_on_compact,
        json=json,
        debug=debug,
    )


def sharing(made: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that `made` takes, behind its own parameters; it is handed what `made` returns: `given`."""
    shared = inspect.signature(made).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: parameter for name, parameter in inspect.signature(command).parameters.items() if name != "given"}

        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = made(**{name: values.pop(name) for name in shared})
            command(**values, given=given)

        # What Typer reads.
        run.__signature__ = inspect.Signature([*own.values(), *shared.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in {**own, **shared}.items()}
        return run

    return decorate


with_options = sharing(options)
"""Give a command the options of a chat."""


@app.command()
@with_options
def ask(question: Annotated[str, typer.Argument(help="The question, in quotes.")], given: Given) -> None:
    """Ask one question and print the answer."""

    def run(settings: "Settings", screen: "Screen") -> None:
        from longtable.app.chat import Chat
        from longtable.app.clean import language_of
        from longtable.app.screen import demo_progress
        from longtable.app.settings import check_text

        screen.language = language_of(question)
        check_text(question)
        with Chat(settings, screen, demo_progress, answering=False) as chat:
            screen.opened(chat.session)
            chat.resume()
            if not chat.turn(question):
                chat.left_waiting()
                raise typer.Exit(1)

    run_command(run, given)


@app.command()
@with_options
def chat(given: Given) -> None:
    """Hold a conversation; with standard input not a terminal, answer one message a line."""

    def run(settings: "Settings", screen: "Screen") -> None:
        from longtable.app.chat import Chat, run_piped, run_prompt
        from longtable.app.screen import demo_progress

        def failed(error: Exception) -> None:
            _report(error, screen, debug=settings.debug)

        with Chat(settings, screen, demo_progress) as talk:
            screen.note("greeting", model=talk.session.label, database=talk.session.database.name)
            screen.opened(talk.session)
            talk.begin(failed)
            if not sys.stdin.isatty():
                run_piped(talk, sys.stdin.buffer, failed)
                talk.left_waiting()
                return
            screen.note("greeting_keys")
            run_prompt(talk, failed)
            talk.left_waiting()
            screen.note("goodbye", id=talk.session.thread_id)

    run_command(run, given)


@app.command()
@with_options
def mcp(given: Given) -> None:
    """Serve the conversation and its database to an MCP client, on standard input and output."""

    def run(settings: "Settings", _: "Screen") -> None:
        from longtable.app.screen import demo_progress
        from longtable.base.errors import ConfigError, MissingExtraError

        try:
            from longtable.app.mcp_server import serve
        except ImportError as error:
            raise MissingExtraError("an MCP server cannot be started", "mcp") from error
        if settings.json:
            raise ConfigError("an MCP server speaks its protocol on standard output, nothing else: leave --json out")
        serve(settings, demo_progress)

    run_command(run, given)


@app.command()
def demo(
    force: Annotated[bool, typer.Option("--force", help="Build it anew.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Build the demo database if it is not there yet, and print its path."""

    def run(settings: "Settings", _: "Screen") -> None:
        from longtable.app.clean import json_line
        from longtable.app.screen import demo_progress
        from longtable.app.session import demo_database

        path = demo_database(demo_progress, force=force)
        with writing():
            found = {"type": "demo", "path": str(path), "url": f"duckdb:///{path}"}
            print(json_line(found, ascii_only=not takes_unicode()) if settings.json else path)

    run_command(run, {"json": json, "debug": debug})


def run_command(command: "Callable[[Settings, Screen], None]", given: "Given") -> None:
    """Run a command with its settings and screen; an error is a sentence and exit code 1, never a trace unless asked for."""
    from longtable.app.logs import start_log
    from longtable.app.screen import ConsoleScreen, JsonScreen
    from longtable.app.settings import Settings

    _quiet_warnings()
    screen: Screen = JsonScreen() if given["json"] else ConsoleScreen()
    try:
        start_log()
        settings = Settings(**given)
        command(settings, screen)
    except KeyboardInterrupt:
        screen.note("cancelled_ask")
        raise typer.Exit(CANCELLED) from None
    except (BrokenPipeError, OutputFailedError, typer.Exit):
        raise  # `main` ends these
    except Exception as error:
        _report(error, screen, debug=given["debug"])
        raise typer.Exit(1) from None


def _report(error: Exception, screen: "Screen", *, debug: bool) -> None:
    if isinstance(error, BrokenPipeError | OutputFailedError):
        raise error
    if debug:
        import traceback

        traceback.print_exception(error)
    screen.error(error)


def _quiet_warnings() -> None:
    """Show longtable's own warnings as one line each, and no other library's."""
    import warnings

    from longtable.app.clean import clean_line
    from longtable.memory.limits import EncodingFallbackWarning

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"Note: {clean_line(str(message))}", file=sys.stderr)

    warnings.simplefilter("ignore")
    warnings.simplefilter("once", EncodingFallbackWarning)
    warnings.showwarning = show


def main() -> None:
    """Run the command line. Whatever ends it, the output is written out first, or it is said that it cannot be."""
    from longtable.app import records_cli, threads_cli

    threads_cli.register(app)
    records_cli.register(app)
    open_streams()
    code: int | str | None = 0
    try:
        with writing():
            try:
                app()
            except SystemExit as end:
                code = end.code
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe went away, as `head` does: no fault of anybody
        drop_output()
        code = code or 1
    except OutputFailedError as error:
        from longtable.app.words import say, system_language

        drop_output()
        language = system_language()
        print(f"{say('error', language)}: {say('output_failed', language, reason=error)}", file=sys.stderr)
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
