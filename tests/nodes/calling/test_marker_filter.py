"""Nobody who watches a run sees a marker or the draft before it, in any stream mode; the node has
the whole answer.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field
from typing_extensions import TypedDict

from longtable.nodes.calling.marker_filter import MarkerFilter, needed_context
from tests.support.model_server import Reply, open_model_server
from tests.support.models import ScriptedModel

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")

DRAFT = "Hmm, secretdraft about the tail number."
MARKER = "[NEED_CONTEXT: zebrakeyword]"
FLOWING = "The flights of May are listed here, one line each. " * 5
USAGE: Any = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}


class Streamer(BaseChatModel):
    """Streams the chunks it was given; its whole answer is their sum."""

    chunks: list[AIMessageChunk]
    calls: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "streamer"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[each.name for each in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.calls.append({"stop": stop, **kwargs})
        whole: BaseMessageChunk = self.chunks[0]
        for chunk in self.chunks[1:]:
            whole = whole + chunk
        fields = {
            key: value
            for key, value in whole.__dict__.items()
            if key not in {"type", "tool_call_chunks", "chunk_position"}
        }
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**fields))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.calls.append({"stop": stop, **kwargs})
        for chunk in self.chunks:
            yield ChatGenerationChunk(message=chunk.model_copy(deep=True))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, **kwargs):
            yield chunk


def pieces(text: str, size: int = 3) -> list[AIMessageChunk]:
    """Cut a text into chunks as a provider streams them: an id on each, usage and the reason to
    finish at the end.
    """
    cut = [
        AIMessageChunk(content=text[i : i + size], id="run-1") for i in range(0, len(text), size)
    ]
    end = AIMessageChunk(
        content="",
        id="run-1",
        usage_metadata=USAGE,
        response_metadata={"finish_reason": "stop", "model_name": "m"},
    )
    return [*cut, end]


def blocks(text: str, size: int = 3) -> list[AIMessageChunk]:
    """The same as content blocks: a reasoning block, then text with an index."""
    thought: list[str | dict[Any, Any]] = [
        {"type": "reasoning", "reasoning": "let me think", "index": 0}
    ]
    cut = [
        AIMessageChunk(
            content=[{"type": "text", "text": text[i : i + size], "index": 1}], id="run-1"
        )
        for i in range(0, len(text), size)
    ]
    return [
        AIMessageChunk(content=thought, id="run-1"),
        *cut,
        AIMessageChunk(content=[], id="run-1", usage_metadata=USAGE),
    ]


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_of(model: BaseChatModel) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph whose node answers again, plainly, where the model asked for context."""

    def respond(state: State) -> dict[str, Any]:
        return _update(model.invoke(state["messages"]))

    async def arespond(state: State) -> dict[str, Any]:
        return _update(await model.ainvoke(state["messages"]))

    def _update(answer: AIMessage) -> dict[str, Any]:
        return (
            {"messages": [AIMessage("found it", id="second")]}
            if needed_context(answer)
            else {"messages": [answer]}
        )

    graph = StateGraph(State)
    graph.add_node("respond", RunnableLambda(respond, arespond))
    graph.add_edge(START, "respond")
    graph.add_edge("respond", END)
    return graph.compile(checkpointer=InMemorySaver())


MODES: Any = ["messages", "updates", "values", "custom", "debug", "checkpoints", "tasks"]
CONFIG: Any = {"configurable": {"thread_id": "t"}}
ASK: Any = {"messages": [HumanMessage("which plane was it?", id="q")]}
Watch = Callable[[CompiledStateGraph[Any, Any, Any, Any]], list[Any]]


def stream(graph: CompiledStateGraph[Any, Any, Any, Any]) -> list[Any]:
    return list(graph.stream(ASK, CONFIG, stream_mode=MODES))


def astream(graph: CompiledStateGraph[Any, Any, Any, Any]) -> list[Any]:
    async def collect() -> list[Any]:
        return [item async for item in graph.astream(ASK, CONFIG, stream_mode=MODES)]

    return asyncio.run(collect())


def events_v2(graph: CompiledStateGraph[Any, Any, Any, Any]) -> list[Any]:
    async def collect() -> list[Any]:
        return [event async for event in graph.astream_events(ASK, CONFIG, version="v2")]

    return asyncio.run(collect())


def events_v3(graph: CompiledStateGraph[Any, Any, Any, Any]) -> list[Any]:
    return list(graph.stream_events(ASK, CONFIG, version="v3"))


def aevents_v3(graph: CompiledStateGraph[Any, Any, Any, Any]) -> list[Any]:
    async def collect() -> list[Any]:
        run = await graph.astream_events(ASK, CONFIG, version="v3")
        return [event async for event in run]

    return asyncio.run(collect())


WATCHERS: list[Watch] = [stream, astream, events_v2, events_v3, aevents_v3]
watched = pytest.mark.parametrize("watch", WATCHERS, ids=lambda watch: watch.__name__)
told_as = pytest.mark.parametrize("make", [pieces, blocks], ids=["text", "blocks"])


def seen(items: list[Any]) -> str:
    """Return everything a watcher was given, as text, the pieces of its stream joined as well."""
    joined = "".join(
        str(item[1][0].text) for item in items if isinstance(item, tuple) and item[0] == "messages"
    )
    events = "".join(
        str(item["data"]["chunk"].text)
        for item in items
        if isinstance(item, dict) and item.get("event") == "on_chat_model_stream"
    )
    return f"{joined}\n{events}\n{items!r}"


@watched
@told_as
@pytest.mark.parametrize("size", [1, 3, 1_000])
@pytest.mark.parametrize(
    "marker",
    [
        MARKER,
        "NEED_CONTEXT: zebrakeyword.",
        "<NEED_CONTEXT: zebrakeyword>",
        "【NEED_CONTEXT：zebrakeyword】",
        "**NEED_CONTEXT:** zebrakeyword.",
    ],
)
def test_neither_draft_nor_marker_is_seen(
    watch: Watch, make: Callable[..., list[AIMessageChunk]], marker: str, size: int
) -> None:
    text = f"{DRAFT} {marker} and more of it"
    items = watch(graph_of(MarkerFilter(inner=Streamer(chunks=make(text, size)))))
    everything = seen(items)
    assert "found it" in everything
    for secret in ("secretdraft", "NEED", "and more of it"):
        assert secret not in everything, secret


@watched
def test_the_watchers_would_see_it(watch: Watch) -> None:
    assert "secretdraft" in seen(
        watch(graph_of(Streamer(chunks=pieces(f"{DRAFT} {MARKER}", 1_000))))
    )


@watched
@told_as
def test_no_draft_is_seen_however_long(
    watch: Watch, make: Callable[..., list[AIMessageChunk]]
) -> None:
    everything = seen(
        watch(graph_of(MarkerFilter(inner=Streamer(chunks=make(f"{FLOWING}{MARKER} rest", 7)))))
    )
    assert "NEED" not in everything
    assert "flights of May" not in everything


@watched
@told_as
@pytest.mark.parametrize(
    "text", ["6,200 flights.", FLOWING + "See [1] and [NEED a plane]."], ids=["short", "long"]
)
def test_an_answer_without_a_marker_is_seen_whole(
    watch: Watch, make: Callable[..., list[AIMessageChunk]], text: str
) -> None:
    graph = graph_of(MarkerFilter(inner=Streamer(chunks=make(text))))
    items = watch(graph)
    assert text in seen(items)
    answer = graph.get_state(CONFIG).values["messages"][-1]
    assert answer.text == text
    assert answer.usage_metadata["total_tokens"] == USAGE["total_tokens"]
    assert needed_context(answer) == []


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
@told_as
def test_a_call_that_nobody_watches_gives_the_same(
    wait: bool, make: Callable[..., list[AIMessageChunk]]
) -> None:
    def ask(text: str) -> AIMessage:
        model = MarkerFilter(inner=Streamer(chunks=make(text)))
        return asyncio.run(model.ainvoke("?")) if wait else model.invoke("?")

    plain = ask("6,200 flights.")
    assert (plain.text, plain.id, plain.usage_metadata, needed_context(plain)) == (
        "6,200 flights.",
        "run-1",
        USAGE,
        [],
    )
    marked = ask(f"{FLOWING} {MARKER}")
    assert (marked.text, needed_context(marked), marked.usage_metadata) == (
        "",
        ["zebrakeyword"],
        USAGE,
    )


def test_settings_of_a_call_reach_the_inner_model() -> None:
    inner = Streamer(chunks=pieces("ok"))
    MarkerFilter(inner=inner).invoke("?", stop=["END"], temperature=0.5)
    assert inner.calls == [{"stop": ["END"], "temperature": 0.5}]


def test_an_error_of_the_inner_model_is_the_caller_s() -> None:
    def fail(_: Sequence[BaseMessage]) -> AIMessage:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        MarkerFilter(inner=ScriptedModel(say=fail)).invoke("?")
    with pytest.raises(ConnectionError, match="gone"):
        list(MarkerFilter(inner=ScriptedModel(say=fail)).stream("?"))


def test_over_real_http_usage_and_the_reason_to_finish_pass() -> None:
    text = f"{FLOWING}Done."
    with open_model_server() as server:
        server.script(Reply(text=text, pieces=20), Reply(text=f"{FLOWING} {MARKER}", pieces=9))
        model = MarkerFilter(inner=server.chat_model(stream_usage=True))
        graph = graph_of(model)
        stream(graph)
        whole = graph.get_state(CONFIG).values["messages"][-1]
        assert (whole.text, whole.usage_metadata["input_tokens"]) == (text, 100)
        assert whole.response_metadata["finish_reason"] == "stop"
        assert "flights of May" not in seen(astream(graph_of(model)))
