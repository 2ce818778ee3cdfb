"""What the commands of the command line share: options, and one way to run a command and report its errors."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtable.app.settings_file import FILE, VARIABLES, keys, option_of
from longtable.app.terminal import OutputFailedError, clean_line

if TYPE_CHECKING:
    from longtable.app.screen import Screen
    from longtable.app.settings import Settings

CANCELLED = 130  # what a shell calls a program ended by Ctrl-C

_FIELDS = dict(keys())


def _option(variable: str) -> Any:
    """Return the option that sets what a variable does; its help is the description of the key in the settings file."""
    help = f"{_FIELDS[VARIABLES[variable]].description} ({variable})"
    return typer.Option(f"--{option_of(variable).replace('_', '-')}", help=help)


Config = Annotated[
    str | None,
    typer.Option(help=f"The settings file. Default: {FILE} of your settings folder, and within bounds of this one. (LONGTABLE_CONFIG)"),
]
Store = Annotated[str | None, _option("LONGTABLE_STORE")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full trace of an error.")]

RunOptions = dict[str, Any]
"""The options of one run by their names in Python, None or False where one was not given."""


def chat_options(
    database: Annotated[str | None, _option("LONGTABLE_DATABASE")] = None,
    model: Annotated[str | None, _option("LONGTABLE_MODEL")] = None,
    base_url: Annotated[str | None, _option("LONGTABLE_BASE_URL")] = None,
    thread: Annotated[str | None, typer.Option(help="Continue this thread, or start it. Default: a new one.")] = None,
    store: Store = None,
    model_limit: Annotated[str | None, _option("LONGTABLE_MODEL_LIMIT")] = None,
    approve_sql: Annotated[str | None, _option("LONGTABLE_APPROVE_SQL")] = None,
    private: Annotated[bool, _option("LONGTABLE_PRIVATE")] = False,
    policy: Annotated[str | None, _option("LONGTABLE_POLICY")] = None,
    summarizer: Annotated[str | None, _option("LONGTABLE_SUMMARIZER")] = None,
    compaction: Annotated[str | None, _option("LONGTABLE_COMPACTION")] = None,
    project: Annotated[str | None, _option("LONGTABLE_PROJECT")] = None,
    archive_on_compact: Annotated[bool, _option("LONGTABLE_ARCHIVE_ON_COMPACT")] = False,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> RunOptions:
    """Return the options that `ask`, `chat` and `threads` share."""
    return {**locals()}


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


def run_command(
    command: "Callable[[Settings, Screen], None]", options: RunOptions, *, load: "Callable[[RunOptions], Settings] | None" = None
) -> None:
    """Run a command with its settings and screen; an error is a sentence and exit code 1, never a trace unless asked for.

    `load` makes the settings of a command that needs no file.
    """
    from longtable.app.screen import ConsoleScreen, JsonScreen
    from longtable.app.settings import load_settings
    from longtable.app.terminal import start_log

    _quiet_warnings()
    screen: Screen = JsonScreen() if options["json"] else ConsoleScreen()
    try:
        start_log()
        settings = (load or load_settings)(options)
        for note in settings.notes:
            print(f"Note: {clean_line(note)}", file=sys.stderr)
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

    from longtable.memory.limits import EncodingFallbackWarning

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print(f"Note: {clean_line(str(message))}", file=sys.stderr)

    warnings.simplefilter("ignore")
    warnings.simplefilter("once", EncodingFallbackWarning)
    warnings.showwarning = show
