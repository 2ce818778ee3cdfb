"""What the commands of the command line share: options, and one way to run a command and report its errors."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

import typer

from longtable.app.terminal import OutputFailedError

if TYPE_CHECKING:
    from longtable.app.screen import Screen
    from longtable.app.settings import Settings

CANCELLED = 130  # what a shell calls a program ended by Ctrl-C

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
Summarizer = Annotated[
    str | None,
    typer.Option(
        envvar="LONGTABLE_SUMMARIZER",
        help="Who writes summaries: same (the model that answers), code, or another model as provider:name. Default: same.",
    ),
]
Compaction = Annotated[
    str | None,
    typer.Option(
        envvar="LONGTABLE_COMPACTION", help="How to compact: analyst, rolling_chat, single_history, window or topics. Default: analyst."
    ),
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
        help="Before each compaction write what it covers to a file, beside the store.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full trace of an error.")]


class RunOptions(TypedDict):
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
    summarizer: NotRequired[str | None]
    compaction: NotRequired[str | None]
    project: NotRequired[str | None]
    archive_on_compact: NotRequired[bool]


def chat_options(
    database: Database = None,
    model: Model = None,
    base_url: BaseUrl = None,
    thread: Thread = None,
    store: Store = None,
    model_limit: ModelLimit = None,
    approve_sql: ApproveSql = None,
    private: Private = False,
    policy: Policy = None,
    summarizer: Summarizer = None,
    compaction: Compaction = None,
    project: Project = None,
    archive_on_compact: ArchiveOnCompact = False,
    json: Json = False,
    debug: Debug = False,
) -> RunOptions:
    """Return the options that `ask`, `chat` and `threads` share."""
    return RunOptions(
        database=database,
        model=model,
        base_url=base_url,
        thread=thread,
        store=store,
        model_limit=model_limit,
        approve_sql=approve_sql,
        private=private,
        policy=policy,
        summarizer=summarizer,
        compaction=compaction,
        project=project,
        archive_on_compact=archive_on_compact,
        json=json,
        debug=debug,
    )


def add_options(build: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the parameters of `build` to a command as options; the command gets what `build` returns as `options`."""
    shared = inspect.signature(build).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: parameter for name, parameter in inspect.signature(command).parameters.items() if name != "options"}

        @functools.wraps(command)
        def run(**values: Any) -> None:
            options = build(**{name: values.pop(name) for name in shared})
            command(**values, options=options)

        # What Typer reads.
        run.__signature__ = inspect.Signature([*own.values(), *shared.values()])  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in {**own, **shared}.items()}
        return run

    return decorate


with_options = add_options(chat_options)
"""Add the options of a chat to a command."""


def run_command(command: "Callable[[Settings, Screen], None]", options: "RunOptions") -> None:
    """Run a command with its settings and screen; an error is a sentence and exit code 1, never a trace unless asked for."""
    from longtable.app.screen import ConsoleScreen, JsonScreen
    from longtable.app.settings import Settings
    from longtable.app.terminal import start_log

    _quiet_warnings()
    screen: Screen = JsonScreen() if options["json"] else ConsoleScreen()
    try:
        start_log()
        settings = Settings(**options)
        command(settings, screen)
    except KeyboardInterrupt:
        screen.note("cancelled_ask")
        raise typer.Exit(CANCELLED) from None
    except (BrokenPipeError, OutputFailedError, typer.Exit):
        raise  # `main` ends these
    except Exception as error:
        report(error, screen, debug=options["debug"])
        raise typer.Exit(1) from None


def report(error: Exception, screen: "Screen", *, debug: bool) -> None:
    if isinstance(error, BrokenPipeError | OutputFailedError):
        raise error
    if debug:
        import traceback

        traceback.print_exception(error)
    screen.error(error)


def _quiet_warnings() -> None:
    """Show longtable's own warnings as one line each, and no other library's."""
    import warnings

    from longtable.app.terminal import clean_line
    from longtable.memory.limits import EncodingFallbackWarning

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"Note: {clean_line(str(message))}", file=sys.stderr)

    warnings.simplefilter("ignore")
    warnings.simplefilter("once", EncodingFallbackWarning)
    warnings.showwarning = show
