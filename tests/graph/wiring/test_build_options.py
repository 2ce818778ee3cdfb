"""What `build_graph` takes in groups, and arguments of earlier versions."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.graph import (
    ArchiveFiles,
    ConfigError,
    ContextProvider,
    Conversation,
    Footer,
    Limits,
    Summarizer,
    build_graph,
)
from longtable.graph.wiring.build_options import RENAMED, hooks_by_kind
from longtable.memory.compaction.rolling import Rolling
from tests.support.threads import CONTEXT, talker


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_an_argument_of_an_earlier_version_names_its_new_place(name: str) -> None:
    old: Any = {name: None}
    with pytest.raises(ConfigError) as caught:
        build_graph(model=talker(), **old)
    assert str(caught.value) == f"build_graph({name}=...) is now {RENAMED[name]}"


def test_an_argument_that_never_was_is_refused() -> None:
    unknown: Any = {"modell": None}
    with pytest.raises(TypeError, match="unexpected keyword argument 'modell'"):
        build_graph(model=talker(), **unknown)


def test_hooks_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    provider = ContextProvider(name="date", provide=lambda _: "today")
    archive = ArchiveFiles(tmp_path)
    footer = Footer(lambda thread_id, messages: f"{thread_id} {len(messages)}")
    strategy = Rolling()
    hooks = hooks_by_kind([footer, strategy, archive, provider])
    assert list(hooks.providers) == [provider]
    assert list(hooks.strategies) == [strategy]
    assert hooks.archive is archive
    assert hooks.footer is footer


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ([3], "found int"),
        (
            [Footer(lambda *_: ""), Footer(lambda *_: "")],
            "at most one ArchiveFiles, one Footer and one KnowledgeFolder",
        ),
        (
            [ContextProvider(name="a", provide=lambda _: "")] * 2,
            "two context providers share a name: a, a",
        ),
    ],
)
def test_hooks_that_fit_nowhere_are_refused(hooks: list[Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build_graph(model=talker(), hooks=hooks)


@pytest.mark.parametrize("name", ["rate", "request", "cost"])
def test_a_limit_of_another_type_is_refused(name: str) -> None:
    wrong: Any = {name: 3}
    with pytest.raises(ConfigError, match=rf"Limits\.{name} must be"):
        Limits(**wrong)


@pytest.mark.parametrize("seconds", [0, 86_401, "60"])
def test_seconds_of_a_summary_have_bounds(seconds: Any) -> None:
    with pytest.raises(ConfigError, match=r"Summarizer\.seconds"):
        Summarizer(seconds=seconds)


def test_a_compiled_graph_returns_the_channels_that_it_is_told() -> None:
    graph = build_graph(model=talker()).compile(checkpointer=InMemorySaver())
    assert "brief" in graph.get_output_jsonschema()["properties"]
    graph.output_channels = ["messages"]
    assert list(graph.get_output_jsonschema()["properties"]) == ["messages"]
    config: Any = {"configurable": {"thread_id": "t"}}
    done = graph.invoke({"messages": [HumanMessage("Hello")]}, config, context=CONTEXT)
    assert list(done) == ["messages"]
    assert Conversation(graph, "t", context=CONTEXT).ask("Once more").text
