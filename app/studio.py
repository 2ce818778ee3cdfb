"""The graph for LangGraph Studio and Agent Server: `langgraph.json` points here.

Built once when the server loads it, from LONGTABLE_DATABASE, LONGTABLE_MODEL, LONGTABLE_BASE_URL (see `.env.example`);
without them: the demo database and the built-in analyst. LONGTABLE_POLICY names a policy file, if any.
The limit is a field of the form (`Context.model_limit`).
Compiled without a checkpointer: the server brings its own. Whole results are kept in LONGTABLE_RESULTS, and what is folded in
LONGTABLE_ARCHIVE if that is set, for `app/web.py`.
"""

import os
from pathlib import Path

from longtable.app.demo import ensure_demo
from longtable.app.models import open_model
from longtable.app.settings import cache_folder
from longtable.app.web_results import server_archive, server_results
from longtable.graph.build import build_graph
from longtable.graph.state import Output
from longtable.tools.database import Database

_url = os.environ.get("LONGTABLE_DATABASE") or f"duckdb:///{ensure_demo(cache_folder())}"
_model = open_model(os.environ.get("LONGTABLE_MODEL") or None, base_url=os.environ.get("LONGTABLE_BASE_URL") or None)

_policy = Path(os.environ["LONGTABLE_POLICY"]) if os.environ.get("LONGTABLE_POLICY") else None

_built = build_graph(
    model=_model,
    database=Database.open(_url, policy=_policy),
    results=server_results(),
    archive_on_compact=server_archive(),
    output_schema=Output,
)

graph = _built.compile(name="longtable")
