"""The entry of the command line. `main` imports everything else itself, so that Ctrl-C ends the
program without a traceback even while it is loading.
"""

import gc
import os
import sys
import threading

COLLECT_AFTER = 10_000
"""Allocations between two collections of garbage, in place of Python's 700: collecting while
importing, which leaves no garbage, took a tenth of the start. Not more, because the exceptions of a
server would keep what they hold for long.
"""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(COLLECT_AFTER)
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(130)  # what a shell calls a program ended by Ctrl-C


def _run() -> None:
    """Run the command that was typed. However it ends, its output is flushed first. If the output
    cannot be written, an error says so.
    """
    from longtable.app.commands import eval_cli, knowledge_cli, records_cli, threads_cli
    from longtable.app.console.streams import OutputFailedError, drop_output, open_streams, writing
    from longtable.app.program import app
    from longtable.base.concurrency import BACKGROUND

    threads_cli.register(app)
    records_cli.register(app)
    knowledge_cli.register(app)
    eval_cli.register(app)
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
        from longtable.app.console.translations import say, system_language

        drop_output()
        language = system_language()
        print(
            f"{say('error', language)}: {say('output_failed', language, reason=error)}",
            file=sys.stderr,
        )
        code = 1
    if any(thread.name == BACKGROUND for thread in threading.enumerate()):
        # A summary that nobody waits for any more: DuckDB would complain of that thread when the
        # interpreter ends.
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else bool(code))
    gc.freeze()  # else Python looks for garbage in all modules as it ends: 0.3 s after a chat
    sys.exit(code)


if __name__ == "__main__":
    main()
