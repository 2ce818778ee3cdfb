"""The graph for LangGraph Studio and Agent Server: `langgraph.json` points here.

The graph is built once, when the server loads this module, with the settings of `longtable.toml`
and the environment (see `.env.example`). Without a database and a model, these are the demo
database and the built-in analyst. Privacy, approval, limit and project in these settings hold for
every run, whatever context a client sends. The client may only be stricter (`Context.within`). The
graph is compiled without a checkpointer, because the server brings its own.

Whole results are kept in LONGTABLE_RESULTS. Compacted messages are kept in LONGTABLE_ARCHIVE if
this is set; with LONGTABLE_ARCHIVE_ON_COMPACT=0 that folder is only read. `app/web.py` serves both.
"""

import logging
import os
from functools import partial

from longtable.app.console.logs import start_log
from longtable.app.console.result_files import answer_links
from longtable.app.demo import ensure_demo
from longtable.app.server.ordered_runs import OrderedGraph
from longtable.app.server.server_threads import MetadataWriter
from longtable.app.session import (
    graph_arguments,
    open_databases,
    server_archive,
    server_knowledge,
    server_results,
)
from longtable.app.settings.row_settings import row_function
from longtable.app.settings.run_settings import asks_demo, cache_folder, running_settings
from longtable.graph.wiring.build import build_graph
from longtable.graph.wiring.build_options import Footer, Hook

_settings = running_settings()
start_log()
if asks_demo(_settings):
    ensure_demo(cache_folder())

# LONGTABLE_RESULTS_URL; else what `langgraph dev` says of itself, else links without a host, for
# pages of the same server.
_address = _settings.store.results_url or os.environ.get("LANGGRAPH_API_URL", "")

_hooks: list[Hook] = []
if _address != "none":
    _hooks.append(Footer(partial(answer_links, _address)))
_archive = server_archive() if _settings.store.archive_on_compact else None
if _archive is not None:
    _hooks.append(_archive)
_knowledge = server_knowledge()
if _knowledge is not None:
    _hooks.append(_knowledge)
_databases = open_databases(_settings)
_built = build_graph(
    database=_databases,
    results=server_results(),
    hooks=_hooks,
    operator=_settings.context(),
    row_parameters=row_function(_settings),
    **graph_arguments(_settings),
)

_notes = list(_settings.notes)
for _database in _databases.values():
    _notes += [f"{each.file}: {each.text()}" for each in _database.notes]
for _note in _notes:
    logging.getLogger("longtable.settings").warning(_note)

_compiled = OrderedGraph.of(_built.compile(name="longtable"))
_compiled.output_channels = ["messages"]
graph = _compiled.with_config(callbacks=[MetadataWriter()])
