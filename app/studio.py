"""The graph for LangGraph Studio and Agent Server: `langgraph.json` points here.

Built once when the server loads it, as the environment says (see `.env.example`); without a database and a model: the demo
database and the built-in analyst. What it says of privacy, approval, limit and project holds for every run, whatever context a
client sends: the client may be stricter (`Context.within`).
Compiled without a checkpointer: the server brings its own. Whole results are kept in LONGTABLE_RESULTS, and what is compacted in
LONGTABLE_ARCHIVE if that is set (LONGTABLE_ARCHIVE_ON_COMPACT=0: only read there), for `app/web.py`.
"""

import os
from pathlib import Path

from longtable.app.demo import ensure_demo
from longtable.app.models import open_model, open_summarizer
from longtable.app.session import server_archive, server_results
from longtable.app.settings import cache_folder, server_settings
from longtable.app.terminal import start_log
from longtable.graph.build import build_graph
from longtable.nodes.state import Output
from longtable.tools.database import Database

_settings = server_settings(os.environ)
start_log()

_built = build_graph(
    model=open_model(_settings.model, base_url=_settings.base_url),
    summarizer=open_summarizer(_settings.summarizer, base_url=_settings.base_url),
    policy=_settings.compaction_policy(),
    database=Database.open(
        _settings.database or f"duckdb:///{ensure_demo(cache_folder())}", policy=Path(_settings.policy) if _settings.policy else None
    ),
    results=server_results(),
    archive_on_compact=server_archive() if _settings.archive_on_compact else None,
    output_schema=Output,
    operator=_settings.context(),
)

graph = _built.compile(name="longtable")
