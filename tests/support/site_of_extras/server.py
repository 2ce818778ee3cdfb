"""Run one script after the other, each in a fork: what they import is imported once."""

import gc
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

from longtable.memory.counting.tokens import counter

for _name in (
    "longtable.app.cli",
    "longtable.app.commands.records_cli",
    "longtable.app.commands.threads_cli",
    "longtable.app.console.chat",
    *(
        "longtable.analyst.model",
        "longtable.graph",
        "longtable.store.records.archive_files",
        "longtable.graph.export.thread_file",
        "longtable.graph.thread_state",
    ),
    *(
        "longtable.tools.engines.duckdb",
        "longtable.tools.engines.sqlite",
        "longtable.tools.sql.wall",
        "longtable.tools.schema.schema_index",
    ),
    *(
        "longtable.nodes.telemetry",
        "sqlglot.dialects.duckdb",
        "sqlglot.dialects.sqlite",
        "langchain_openai",
    ),
):
    import_module(_name)
counter("o200k_base")
gc.freeze()  # a collection in a fork would copy every page of these


def run(job: dict[str, Any]) -> None:
    """Be the program of a job: its own streams, folder, environment and arguments."""
    os.environ.clear()
    os.environ.update(job["environment"])
    import_module("sitecustomize").Visible.hide(os.environ["TESTS_HIDDEN_DISTRIBUTIONS"])
    os.chdir(job["folder"])
    for number, name in enumerate(("in", "out", "err")):
        os.dup2(
            os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else os.O_RDONLY), number
        )
        setattr(sys, f"std{name}", os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    sys.argv = ["longtable", *job["arguments"]]
    code = 0
    try:
        exec(compile(job["script"], "script", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


for _line in sys.stdin:
    if (_child := os.fork()) == 0:
        run(json.loads(_line))
    print(os.waitstatus_to_exitcode(os.waitpid(_child, 0)[1]), flush=True)
