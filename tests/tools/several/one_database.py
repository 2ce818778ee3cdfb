"""What a turn over one database sends and stores, as plain text: the same before and after graphs
could have several.
"""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.graph import Context, Conversation, Database, build_graph
from longtable.tools.results.result_store import ResultStore
from tests.support.models import call, script

SHOP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL, city TEXT);
INSERT INTO orders VALUES (1, 10.5, 'Bern'), (2, 20, 'Genf'), (3, 30, 'Bern');
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);
"""
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:\+00:00)?")
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CALL_IDS = re.compile(r"tool-(call_\d)-[0-9a-f]+")
_MS = re.compile(r'("ms": |\\"ms\\":)\d+')
_BYTES = re.compile(r'"bytes": \d+')
_RUN = re.compile(r'"run": "[^"]*"')


def told(folder: Path, database: Any = None) -> str:
    """Return what is sent and stored. `database`: makes the argument of `build_graph` of the open
    database.
    """
    path = folder / "shop.db"
    connection = sqlite3.connect(path)
    connection.executescript(SHOP)
    connection.close()
    model = script(
        call("list_tables"),
        call("describe_tables", "call_2", names=["orders"]),
        call("run_sql", "call_3", sql="SELECT city, sum(total) AS total FROM orders GROUP BY city"),
        call("run_sql", "call_4", sql="SELECT nothing FROM orders"),
        call("find_values", "call_5", text="bern"),
        "Bern has 40.5, Genf 20.",
    )
    store = InMemoryStore()
    with Database.open(f"sqlite:///{path}", isolation="none") as opened:
        graph = build_graph(
            model=model,
            database=opened if database is None else database(opened),
            results=ResultStore(folder / "results", isolation="none"),
        )
        compiled = graph.compile(checkpointer=InMemorySaver(), store=store)
        context = Context(model_limit=16_000)
        conversation = Conversation(compiled, "t", context=context)
        events = list(conversation.stream("How much by city?"))
        values = dict(compiled.get_state({"configurable": {"thread_id": "t"}}).values)
    offer: Any = graph.offer  # type: ignore[attr-defined]  # of the builder
    kept = {
        "tools": [convert_to_openai_tool(tool) for tool in offer.tools],
        "calls": len(model.sent),
        "sent": [message.model_dump() for message in model.sent[-1]],
        "events": events,
        "brief": values["brief"],
        "turn": values["turn"],
        "messages": [message.model_dump() for message in values["messages"]],
        "audit": [item.value for item in store.search(("longtable", "audit", "t"))],
        "results": [
            json.loads(file.read_text("utf-8"))
            for file in sorted(folder.glob("results/*/r*/meta.json"))
        ],
    }
    text = json.dumps(kept, ensure_ascii=False, indent=1, default=str)
    for pattern, new in (
        (_TIMES, "TIME"),
        (_IDS, "ID"),
        (_CALL_IDS, r"tool-\1"),
        (_MS, r"\g<1>0"),
        (_BYTES, '"bytes": 0'),
        (_RUN, '"run": ""'),
    ):
        text = pattern.sub(new, text)
    return text
