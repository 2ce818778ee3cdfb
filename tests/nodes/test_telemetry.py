"""Spans and log lines of a run: each node, model call and query, nested, with sizes and times,
without anything that was said.
"""

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import ProviderUnavailableError
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    Database,
    MemoryTools,
    build_graph,
)
from longtable.graph.thread_state import NODES
from longtable.nodes.telemetry import JsonFormatter
from tests.support.model_server import ModelServer, call, open_model_server, say, server_error
from tests.support.models import ScriptedModel, script

CONTEXT = Context(model_limit=16_000, owner="ann")
QUESTION, SECRET = "How many in the Secret Society?", "Secret Society"


@pytest.fixture(scope="module")
def exporter() -> Any:
    pytest.importorskip(
        "opentelemetry.sdk", reason="the OpenTelemetry SDK of the dev extra is not installed"
    )
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream, logger = io.StringIO(), logging.getLogger("longtable")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


def talk(server: ModelServer, tmp_path: Path) -> Conversation:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.executescript(f"CREATE TABLE club (name TEXT); INSERT INTO club VALUES ('{SECRET}')")
    database = Database.open(f"sqlite:///{tmp_path}/shop.db")
    graph = build_graph(model=server.chat_model("gpt-4o"), database=database).compile(
        checkpointer=InMemorySaver()
    )
    return Conversation(graph, "t", context=CONTEXT)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_spans_and_lines_tell_sizes_and_times_and_nothing_that_was_said(
    exporter: Any, server: ModelServer, lines: io.StringIO, tmp_path: Path, asynchronous: bool
) -> None:
    exporter.clear()
    server.script(
        call("run_sql", sql=f"SELECT name FROM club WHERE name = '{SECRET}'"),
        say(f"One: {SECRET}.", input_tokens=300),
    )
    conversation = talk(server, tmp_path)
    answer = (
        asyncio.run(conversation.aask(QUESTION)) if asynchronous else conversation.ask(QUESTION)
    )
    assert answer.queries[0]["row_count"] == 1

    spans = exporter.get_finished_spans()
    names = [span.name for span in spans]
    assert {
        "longtable.node ingest",
        "longtable.node respond",
        "longtable.node run_tools",
        "longtable.node settle",
    } <= set(names)
    models = [span for span in spans if span.name == "longtable.model gpt-4o"]
    (query,) = [span for span in spans if span.name == "longtable.query run_sql"]
    by_id = {span.context.span_id: span.name for span in spans}
    assert [by_id[span.parent.span_id] for span in models] == ["longtable.node respond"] * 2
    assert by_id[query.parent.span_id] == "longtable.node run_tools"
    assert query.attributes["longtable.rows"] == 1
    assert models[1].attributes["gen_ai.usage.input_tokens"] == 300
    assert models[1].attributes["longtable.thread_id"] == "t"
    assert all(span.attributes["longtable.ms"] >= 0 for span in spans)

    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [line["level"] for line in told if line.get("kind") in ("model", "query")] == [
        "INFO"
    ] * 3
    assert all(
        line["time"].endswith("+00:00") and line["logger"].startswith("longtable") for line in told
    )
    assert SECRET not in lines.getvalue()
    assert SECRET not in repr(
        [
            (span.name, dict(span.attributes), [dict(e.attributes) for e in span.events])
            for span in spans
        ]
    )


def test_a_failure_is_told_by_class_and_its_cause_stands_in_the_log_without_keys(
    exporter: Any, server: ModelServer, lines: io.StringIO, tmp_path: Path
) -> None:
    exporter.clear()
    fault = server_error(500)
    server.always(
        fault.__class__(
            status=500, body={"error": {"message": "the engine at sk-proj-AAAABBBBCCCC died"}}
        )
    )
    with pytest.raises(ProviderUnavailableError):
        talk(server, tmp_path).ask(QUESTION)
    (model,) = [
        span for span in exporter.get_finished_spans() if span.name.startswith("longtable.model")
    ]
    assert model.status.status_code.name == "ERROR"
    assert not model.events
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    (cause,) = [line["cause"] for line in told if line.get("kind") == "provider"]
    assert "the engine at [hidden] died" in cause
    assert "AAAABBBB" not in lines.getvalue()


def test_the_summarisers_calls_are_spans_and_the_log_has_the_cause_where_one_fails(
    exporter: Any, server: ModelServer, lines: io.StringIO
) -> None:
    exporter.clear()
    fault = server_error(500)
    server.script(
        say(f"One: {SECRET}.", input_tokens=300),
        fault.__class__(status=500, body={"error": {"message": "password=hunter2 is wrong"}}),
    )
    policy = CompactionPolicy(keep_rounds=1, min_messages=2, ahead=False)
    model = ScriptedModel(say=lambda _: AIMessage("and so on " * 60))
    app = build_graph(
        model=model,
        summarizer=server.chat_model("gpt-4o-mini"),
        policy=policy,
        memory_tools=MemoryTools(recall=False),
    ).compile(InMemorySaver())
    conversation = Conversation(app, "t", context=CONTEXT)
    for _ in range(4):
        conversation.ask(QUESTION)
        conversation.compact()
    spans = [
        span for span in exporter.get_finished_spans() if span.name == "longtable.model gpt-4o-mini"
    ]
    assert {span.attributes["longtable.purpose"] for span in spans} == {"summarise"}
    assert spans[0].attributes["gen_ai.usage.input_tokens"] == 300
    assert spans[-1].status.status_code.name == "ERROR"
    causes = [
        line["cause"]
        for line in map(json.loads, lines.getvalue().splitlines())
        if line.get("kind") == "provider"
    ]
    assert any("password=[hidden] is wrong" in cause for cause in causes)
    assert SECRET not in lines.getvalue()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_langchain_traces_each_node_as_one_run(asynchronous: bool) -> None:
    class Runs(BaseCallbackHandler):
        """The names of all runs that began."""

        names: list[str]

        def on_chain_start(self, serialized: Any, inputs: Any, **told: Any) -> None:
            self.names.append(str(told.get("name")))

    runs = Runs()
    runs.names = []
    graph = build_graph(model=script("Five.")).compile(checkpointer=InMemorySaver())
    given: Any = {"messages": [HumanMessage("How many?")]}
    config: Any = {"configurable": {"thread_id": "t"}, "callbacks": [runs]}
    if asynchronous:
        asyncio.run(graph.ainvoke(given, config, context=CONTEXT))
    else:
        graph.invoke(given, config, context=CONTEXT)
    nodes = [name for name in runs.names if name in NODES]
    assert len(nodes) == len(set(nodes))
    assert {"ingest", "respond", "settle"} <= set(nodes)
    assert not [
        name
        for name in runs.names
        if name not in NODES and not name.startswith(("after_", "LangGraph"))
    ]
