"""A graph for a server under test: it asks a person, dawdles, or says how many questions it was
shown, as it is told.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.types import interrupt

from longtable.graph import ArchiveFiles, CompactionPolicy, build_graph
from longtable.tools.results.result_store import ResultStore
from tests.support.errors import CLASSES, HOSTILE, made
from tests.support.models import ScriptedModel, call


@tool
def confirm(what: str) -> str:
    """Ask a person, in the shape that chat clients draw."""
    request = {"name": "confirm", "args": {"what": what}, "description": "May I?"}
    review = {"action_name": "confirm", "allowed_decisions": ["approve", "reject"]}
    return str(
        interrupt({"action_requests": [request], "review_configs": [review]})["decisions"][0][
            "type"
        ]
    )


@tool
async def dawdle(seconds: float) -> str:
    """Take time, awaited."""
    await asyncio.sleep(seconds)
    return "done"


def say(messages: Sequence[BaseMessage]) -> AIMessage:
    """Do as the newest question says; answer with the tool's answer, else with the questions in
    view.
    """
    if messages[-1].type == "tool":
        return AIMessage(f"the tool said {messages[-1].text}")
    match str(messages[-1].text).split():
        case ["confirm", what]:
            return call("confirm", what=what)
        case ["dawdle"]:
            return call("dawdle", seconds=60)
        case ["slowly", _]:
            time.sleep(0.5)
        case ["fail", number, *_]:
            raise made(CLASSES[int(number)])
        case ["fall", *_]:
            raise ValueError(HOSTILE)
    return AIMessage(" / ".join(str(m.text)[:20] for m in messages if m.type == "human"))


graph = build_graph(
    model=ScriptedModel(say=say),
    tools=[confirm, dawdle],
    policy=CompactionPolicy(keep_rounds=1, min_messages=4),
    results=ResultStore(Path(os.environ.get("LONGTABLE_RESULTS", "results"))),
    hooks=[ArchiveFiles(os.environ["LONGTABLE_ARCHIVE"])]
    if os.environ.get("LONGTABLE_ARCHIVE")
    else [],
).compile(name="scripted")
graph.output_channels = ["messages"]
