"""What the server of forked processes has ready: every module that the command line and the tests'
programs import, and two encodings.

Modules only: nothing here may start a thread, which a fork would not take along.
"""

import gc
from importlib import import_module

from longtable.memory.counting.tokens import counter

MODULES = (
    *(
        "longtable.app.cli",
        "longtable.app.commands.records_cli",
        "longtable.app.commands.threads_cli",
        "longtable.app.console.chat",
        "longtable.app.demo",
        "longtable.app.program",
        "longtable.app.settings.settings_file",
        "longtable.app.settings.settings_tables",
    ),
    *(
        "longtable.analyst.model",
        "longtable.analyst.zh",
        "longtable.graph",
        "longtable.store.records.archive_files",
        "longtable.graph.export.thread_file",
        "longtable.graph.thread_state",
    ),
    *(
        "longtable.tools.engines.duckdb",
        "longtable.tools.engines.sqlite",
        "longtable.tools.results.parquet",
        "longtable.tools.results.result_store",
        "longtable.tools.sql.wall",
        "longtable.tools.schema.catalog_facts",
        "longtable.tools.schema.schema_index",
    ),
    *(
        "longtable.nodes.telemetry",
        "sqlglot.dialects.duckdb",
        "sqlglot.dialects.sqlite",
        "typer._adapters",
    ),
    # What a client of a provider imports when it first sends something.
    *(
        "langchain_openai",
        "openai.resources.chat.completions",
        "httpcore2",
        "anyio._backends._asyncio",
        "truststore",
    ),
    *(
        "langchain_core.tracers.context",
        "langchain_core.tracers.run_collector",
        "langchain_core.tracers.stdout",
    ),
    *(
        "benchmarks.faults.talk",
        "tests.support.doomed",
        "tests.support.isolation",
        "tests.support.talker",
        "tests.support.writers",
    ),
)

for _name in MODULES:
    import_module(_name)
for _encoding in ("cl100k_base", "o200k_base"):
    counter(_encoding)
gc.freeze()  # a collection in a fork would write to, hence copy, every page of these
