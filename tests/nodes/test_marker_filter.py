"""Nobody who watches a run sees a marker or the draft before it, in any stream mode; the node has the whole answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, BaseMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field
from typing_extensions import TypedDict

from longtable.nodes.model.marker_filter import MarkerFilter, WholeAnswer, needed_context, whole_answers
from longtable.nodes.model.provider_errors import broke_off
from tests.support.model_server import Reply, open_model_server
from tests.support.models import ScriptedModel, script

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
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        self.calls.append({"stop": stop, **kwargs})
        whole: BaseMessageChunk = self.chunks[0]
        for chunk in self.chunks[1:]:
            whole = whole + chunk
        fields = {key: value for key, value in whole.__dict__.items() if key not in {"type", "tool_call_chunks", "chunk_position"}}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**fields))])

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
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
    """Cut a text into chunks as a provider streams them: an id on each, usage and the reason to finish at the end."""
    cut = [AIMessageChunk(content=text[i : i + size], id="run-1") for i in range(0, len(text), size)]
    end = AIMessageChunk(content="", id="run-1", usage_metadata=USAGE, response_metadata={"finish_reason": "stop", "model_name": "m"})
    return [*cut, end]


def blocks(text: str, size: int = 3) -> list[AIMessageChunk]:
    """The same as content blocks: a reasoning block, then text with an index."""
    thought: list[str | dict[Any, Any]] = [{"type": "reasoning", "reasoning": "let me think", "index": 0}]
    cut = [
        AIMessageChunk(content=[{"type": "text", "text": text[i : i + size], "index": 1}], id="run-1") for i in range(0, len(text), size)
    ]
    return [AIMessageChunk(content=thought, id="run-1"), *cut, AIMessageChunk(content=[], id="run-1", usage_metadata=USAGE)]


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_of(model: BaseChatModel, held: list[WholeAnswer]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph whose node answers again, plainly, where the model asked for context."""

    def respond(state: State) -> dict[str, Any]:
        with whole_answers() as collected:
            answer = model.invoke(state["messages"])
        held.extend(collected)
        return _update(answer)

    async def arespond(state: State) -> dict[str, Any]:
        with whole_answers() as collected:
            answer = await model.ainvoke(state["messages"])
        held.extend(collected)
        return _update(answer)

    def _update(answer: AIMessage) -> dict[str, Any]:
        return {"messages": [AIMessage("found it", id="second")]} if needed_context(answer) is not None else {"messages": [answer]}

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
    joined = "".join(str(item[1][0].text) for item in items if isinstance(item, tuple) and item[0] == "messages")
    events = "".join(
        str(item["data"]["chunk"].text) for item in items if isinstance(item, dict) and item.get("event") == "on_chat_model_stream"
    )
    return f"{joined}\n{events}\n{items!r}"


@watched
@told_as
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_neither_draft_nor_marker_is_seen(watch: Watch, make: Callable[..., list[AIMessageChunk]], size: int) -> None:
    held: list[WholeAnswer] = []
    text = f"{DRAFT} {MARKER} and more of it"
    items = watch(graph_of(MarkerFilter(inner=Streamer(chunks=make(text, size))), held))
    everything = seen(items)
    assert "found it" in everything
    for secret in ("secretdraft", "NEED", "and more of it"):
        assert secret not in everything, secret
    assert [answer.whole for answer in held] == [text]
    assert held[0].rest == f"{DRAFT} and more of it"
    assert held[0].marker is not None
    assert held[0].marker.keyword == "zebrakeyword"


@watched
def test_the_watchers_would_see_it(watch: Watch) -> None:
    assert "secretdraft" in seen(watch(graph_of(Streamer(chunks=pieces(f"{DRAFT} {MARKER}", 1_000)), [])))


@watched
@told_as
def test_a_marker_behind_a_long_text_is_not_seen(watch: Watch, make: Callable[..., list[AIMessageChunk]]) -> None:
    held: list[WholeAnswer] = []
    items = watch(graph_of(MarkerFilter(inner=Streamer(chunks=make(f"{FLOWING}{MARKER} rest", 7))), held))
    assert "NEED" not in seen(items)
    assert held[0].rest in (" rest", f"{FLOWING.rstrip()} rest")


@watched
@told_as
@pytest.mark.parametrize("text", ["6,200 flights.", FLOWING + "See [1] and [NEED a plane]."], ids=["short", "long"])
def test_an_answer_without_a_marker_is_seen_whole(watch: Watch, make: Callable[..., list[AIMessageChunk]], text: str) -> None:
    held: list[WholeAnswer] = []
    graph = graph_of(MarkerFilter(inner=Streamer(chunks=make(text))), held)
    items = watch(graph)
    assert text in seen(items)
    if watch in (stream, astream):
        tokens = [item[1][0] for item in items if item[0] == "messages" and isinstance(item[1][0], AIMessageChunk)]
        assert "".join(str(token.text) for token in tokens) == text
        assert {token.id for token in tokens} == {"run-1"}
        assert (sum(1 for token in tokens if token.text) > 20) == (len(text) > 200)
    answer = graph.get_state(CONFIG).values["messages"][-1]
    assert answer.text == text
    assert answer.usage_metadata["total_tokens"] == USAGE["total_tokens"]
    assert needed_context(answer) is None
    assert held == [WholeAnswer(text, held[0].rest, None)]


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
@told_as
def test_a_call_that_nobody_watches_gives_the_same(wait: bool, make: Callable[..., list[AIMessageChunk]]) -> None:
    def ask(text: str) -> tuple[AIMessage, list[WholeAnswer]]:
        model = MarkerFilter(inner=Streamer(chunks=make(text)))
        with whole_answers() as held:
            answer = asyncio.run(model.ainvoke("?")) if wait else model.invoke("?")
        return answer, held

    plain, held = ask("6,200 flights.")
    assert (plain.text, plain.id, plain.usage_metadata, needed_context(plain)) == ("6,200 flights.", "run-1", USAGE, None)
    assert held == [WholeAnswer("6,200 flights.", "6,200 flights.", None)]
    marked, (found,) = ask(f"{FLOWING} {MARKER}")
    assert (marked.text, needed_context(marked), marked.usage_metadata) == ("", "zebrakeyword", USAGE)
    assert (found.whole, found.rest) == (f"{FLOWING} {MARKER}", FLOWING.rstrip())


def test_streams_are_the_model_s_own_but_for_what_is_held() -> None:
    reasoning = AIMessageChunk(content="", id="r", additional_kwargs={"reasoning_content": "thinking"})
    calling = [
        AIMessageChunk(
            content="", id="r", tool_call_chunks=[{"name": "f", "args": '{"x":', "id": "c", "index": 0, "type": "tool_call_chunk"}]
        ),
        AIMessageChunk(
            content="", id="r", tool_call_chunks=[{"name": None, "args": "1}", "id": None, "index": 0, "type": "tool_call_chunk"}]
        ),
    ]
    inner = Streamer(chunks=[reasoning, *pieces("I look.")[:-1], *calling, pieces("")[-1]])

    def total(model: BaseChatModel) -> AIMessageChunk:
        chunks = list(model.stream("?"))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole = whole + chunk
        return whole

    plain, sieved = total(inner), total(MarkerFilter(inner=inner))
    assert sieved.model_dump() == plain.model_dump()
    assert sieved.tool_calls == [{"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}]


def test_a_model_that_cannot_stream_is_held_back_too() -> None:
    call = AIMessageChunk(
        content="I look. " + MARKER,
        id="r",
        tool_call_chunks=[{"name": "f", "args": '{"x":1}', "id": "c", "index": 0, "type": "tool_call_chunk"}],
        usage_metadata=USAGE,
    )
    held: list[WholeAnswer] = []
    everything = seen(stream(graph_of(MarkerFilter(inner=Streamer(chunks=[call], disable_streaming=True)), held)))
    assert "I look" not in everything
    (last,) = MarkerFilter(inner=Streamer(chunks=[call], disable_streaming=True)).stream("?")
    assert (last.text, needed_context(last), last.usage_metadata, last.id) == ("", "zebrakeyword", USAGE, "r")
    assert last.tool_calls == [{"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}]


def test_settings_of_a_call_and_bound_tools_reach_the_inner_model() -> None:
    @tool
    def look(x: int) -> str:
        """Look."""
        return str(x)

    inner = Streamer(chunks=pieces("ok"))
    bound = MarkerFilter(inner=inner).bind_tools([look])
    bound.invoke("?", stop=["END"], temperature=0.5)
    list(bound.stream("?"))
    assert inner.calls == [{"stop": ["END"], "tools": ["look"], "temperature": 0.5}, {"stop": None, "tools": ["look"]}]


def test_each_call_is_collected_by_its_own_block() -> None:
    model = MarkerFilter(inner=script("one", f"two {MARKER}"))
    with whole_answers() as outer:
        model.invoke("?")
        with whole_answers() as inner:
            model.invoke("?")
    model.invoke("?")
    assert [held.whole for held in outer] == ["one"]
    assert [held.whole for held in inner] == [f"two {MARKER}"]


def test_an_error_of_the_inner_model_is_the_caller_s() -> None:
    def fail(_: Sequence[BaseMessage]) -> AIMessage:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        MarkerFilter(inner=ScriptedModel(say=fail)).invoke("?")
    with pytest.raises(ConnectionError, match="gone"):
        list(MarkerFilter(inner=ScriptedModel(say=fail)).stream("?"))


def test_over_real_http_usage_and_the_reason_to_finish_pass_and_a_broken_stream_is_still_known() -> None:
    text = f"{FLOWING}Done."
    with open_model_server() as server:
        server.script(Reply(text=text, pieces=20), Reply(text=f"{DRAFT} {MARKER}", pieces=9), Reply(text=text, pieces=9, breaks="truncate"))
        model = MarkerFilter(inner=server.chat_model(stream_usage=True))
        held: list[WholeAnswer] = []
        graph = graph_of(model, held)
        stream(graph)
        whole = graph.get_state(CONFIG).values["messages"][-1]
        assert (whole.text, whole.usage_metadata["input_tokens"]) == (text, 100)
        assert whole.response_metadata["finish_reason"] == "stop"
        assert not broke_off(whole)
        assert "secretdraft" not in seen(astream(graph_of(model, held)))
        chunks = list(model.stream("?"))
        total = chunks[0]
        for chunk in chunks[1:]:
            total = total + chunk
        assert broke_off(total)
