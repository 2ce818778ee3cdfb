"""The command line: `longtable ask`, `chat`, `threads`, `mcp`, `init`, `config`, `demo`. Heavy imports happen inside the commands."""

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtable.app.cli_options import Debug, Json, RunOptions, report, run_command, with_options
from longtable.app.terminal import OutputFailedError, drop_output, open_streams, takes_unicode, writing

if TYPE_CHECKING:
    from longtable.app.screen import Screen
    from longtable.app.settings import Settings

app = typer.Typer(
    name="longtable",
    help="Ask questions of a database, in conversations that never lose what was said.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
@with_options
def ask(question: Annotated[str, typer.Argument(help="The question, in quotes.")], options: RunOptions) -> None:
    """Ask one question and print the answer."""

    def run(settings: "Settings", screen: "Screen") -> None:
        from longtable.app.chat import Chat
        from longtable.app.screen import demo_progress
        from longtable.app.settings import check_text
        from longtable.app.terminal import language_of

        screen.language = language_of(question)
        check_text(question)
        with Chat(settings, screen, demo_progress, answering=False) as chat:
            screen.opened(chat.session)
            chat.resume()
            if not chat.turn(question):
                chat.left_waiting()
                raise typer.Exit(1)

    run_command(run, options)


@app.command()
@with_options
def chat(options: RunOptions) -> None:
    """Hold a conversation; with standard input not a terminal, answer one message a line."""

    def run(settings: "Settings", screen: "Screen") -> None:
        from longtable.app.chat import Chat, run_piped, run_prompt
        from longtable.app.screen import demo_progress

        def failed(error: Exception) -> None:
            report(error, screen, debug=settings.debug)

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
            screen.note("goodbye", id=settings.continued(talk.session.thread_id))

    run_command(run, options)


@app.command()
@with_options
def mcp(options: RunOptions) -> None:
    """Serve the conversation and its database to an MCP client, on standard input and output."""

    def run(settings: "Settings", _: "Screen") -> None:
        from longtable.app.screen import demo_progress
        from longtable.base.errors import ConfigError, MissingExtraError

        try:
            from longtable.app.mcp_server import serve
        except ImportError as error:
            raise MissingExtraError("an MCP server cannot be started", "mcp") from error
        if settings.as_json:
            raise ConfigError("an MCP server speaks its protocol on standard output, nothing else: leave --json out")
        serve(settings, demo_progress)

    run_command(run, options)


@app.command()
def init(
    user: Annotated[bool, typer.Option("--user", help="Write it into your settings folder, where all of it counts.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a settings file, longtable.toml, with a comment for each setting; never over one that is there."""
    from longtable.app.settings import Settings

    def run(_: "Settings", screen: "Screen") -> None:
        from longtable.app.settings import user_folder
        from longtable.app.settings_file import FILE, write_first_file

        path = user_folder() / FILE if user else Path(FILE)
        write_first_file(path, force=force)
        screen.note("init_written", file=path)

    run_command(run, {"json": json, "debug": debug}, load=Settings.model_validate)


@app.command()
@with_options
def config(options: RunOptions) -> None:
    """Show each setting that holds, and where it comes from: an option, a variable, a file and its line, or the default."""

    def run(settings: "Settings", screen: "Screen") -> None:
        from longtable.app import render
        from longtable.app.settings import setting_rows
        from longtable.app.threads_cli import print_json

        rows = setting_rows(settings, os.environ)
        if settings.as_json:
            print_json({"name": name, "value": value, "source": source} for name, value, source in rows)
        else:
            screen.show("config", render.listing(("name", "value", "source"), rows))

    run_command(run, options)


@app.command()
def demo(
    force: Annotated[bool, typer.Option("--force", help="Build it anew.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Build the demo database if it is not there yet, and print its path."""

    def run(settings: "Settings", _: "Screen") -> None:
        from longtable.app.screen import demo_progress
        from longtable.app.session import demo_database
        from longtable.app.terminal import json_line

        path = demo_database(demo_progress, force=force)
        with writing():
            found = {"type": "demo", "path": str(path), "url": f"duckdb:///{path}"}
            print(json_line(found, ascii_only=not takes_unicode()) if settings.as_json else path)

    run_command(run, {"json": json, "debug": debug})


def main() -> None:
    """Run the command line. Whatever ends it, the output is written out first, or it is said that it cannot be."""
    from longtable.app import records_cli, threads_cli
    from longtable.base.twins import BACKGROUND

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
        from longtable.app.translations import say, system_language

        drop_output()
        language = system_language()
        print(f"{say('error', language)}: {say('output_failed', language, reason=error)}", file=sys.stderr)
        code = 1
    if any(thread.name == BACKGROUND for thread in threading.enumerate()):
        # A summary that nobody waits for any more: DuckDB would complain of that thread when the interpreter ends.
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else bool(code))
    sys.exit(code)


if __name__ == "__main__":
    main()
