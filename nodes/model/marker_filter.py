"""A chat model whose marker `[NEED_CONTEXT: keyword]`, and the draft before it, reach nobody who watches the run."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from longtable.memory.marker import Marker, MarkerScanner
from longtable.memory.tokens import compact_json

NEED_CONTEXT = "need_context"
"""Key in `additional_kwargs` of an answer that held a marker: {"keyword": ...}."""
INNER: RunnableConfig = {"tags": ["nostream", "langsmith:nostream"], "run_name": "held_back", "callbacks": []}
"""How the inner model is called: no callbacks of the run reach it, and two tags say so to LangGraph and to agent-chat-ui."""

Part = str | dict[str, Any]
Content = str | list[Part]


@dataclass(frozen=True)
class WholeAnswer:
    """One answer of the model. `whole`: its text with the marker; `rest`: the text nobody was shown, without markers."""

    whole: str
    rest: str
    marker: Marker | None


_WHOLE_ANSWERS: ContextVar[list[WholeAnswer] | None] = ContextVar("longtable_whole_answers", default=None)


@contextmanager
def whole_answers() -> Iterator[list[WholeAnswer]]:
    """Collect the whole answers of the models called in the block, in order: messages hold only what was shown."""
    answers: list[WholeAnswer] = []
    token = _WHOLE_ANSWERS.set(answers)
    try:
        yield answers
    finally:
        _WHOLE_ANSWERS.reset(token)


def needed_context(answer: BaseMessage) -> str | None:
    """Return the keyword of an answer that held a marker, None for one that held none."""
    need = answer.additional_kwargs.get(NEED_CONTEXT)
    return str(need.get("keyword", "")) if isinstance(need, Mapping) else None


class MarkerFilter(BaseChatModel):
    """Wraps a model and passes on only text without markers, in every stream mode, sync and async.

    The message of an answer with a marker holds only what was shown before it, and the keyword (`needed_context`);
    `whole_answers` has the rest. Ids, usage, metadata, tool calls and reasoning pass as they are.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    inner: Runnable[LanguageModelInput, BaseMessage]
    cache: BaseCache | bool | None = False
    """The inner model has its own; one here would not know whose answers it keeps."""

    @property
    def _llm_type(self) -> str:
        return "held-back"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "MarkerFilter":
        """Return the same around the inner model with these tools. Raises `NotImplementedError` where it takes none."""
        if not isinstance(self.inner, BaseChatModel):
            raise NotImplementedError("tools are bound to a chat model: bind them before it is wrapped")
        return MarkerFilter(inner=self.inner.bind_tools(tools, **kwargs))

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Traces name the model that answers, not its wrapper.
        if isinstance(self.inner, BaseChatModel):
            return self.inner._get_ls_params(stop=stop, **kwargs)
        return super()._get_ls_params(stop=stop, **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        del run_manager
        return _result(self.inner.invoke(messages, INNER, **_call_options(stop, kwargs)))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return _result(await self.inner.ainvoke(messages, INNER, **_call_options(stop, kwargs)))

    def _stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        del run_manager  # the caller reports each chunk that is passed on
        stream_filter = _StreamFilter()
        for message in self.inner.stream(messages, INNER, **_call_options(stop, kwargs)):
            yield from stream_filter.pass_on(message)
        yield stream_filter.last()

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        del run_manager
        stream_filter = _StreamFilter()
        async for message in self.inner.astream(messages, INNER, **_call_options(stop, kwargs)):
            for chunk in stream_filter.pass_on(message):
                yield chunk
        yield stream_filter.last()


class _StreamFilter:
    """Passes on those chunks of one answer that may be seen."""

    def __init__(self) -> None:
        self.hold = MarkerScanner()
        self.ending: AIMessageChunk | None = None
        self.id: str | None = None
        self.block: dict[str, Any] | None = None
        """Type, index and id of the newest text block, where content comes as blocks."""

    def pass_on(self, message: BaseMessage) -> Iterator[ChatGenerationChunk]:
        chunk = _as_chunk(message)
        self.id = self.id or chunk.id
        chunk = chunk.model_copy(update={"content": self._filtered(chunk.content)})
        if chunk.chunk_position == "last":
            self.ending = chunk if self.ending is None else self.ending + chunk
        elif _has_content(chunk):
            yield ChatGenerationChunk(message=chunk)

    def last(self) -> ChatGenerationChunk:
        """Return the end of the answer: the text that may still be shown, or the keyword."""
        rest, marker = self.hold.close()
        chunk = self.ending or AIMessageChunk(content="", chunk_position="last")
        chunk = chunk.model_copy(update={"id": self.id})  # LangChain gives the end it adds an id of its own
        _record(WholeAnswer(self.hold.whole, rest, marker))
        if marker is not None:
            return ChatGenerationChunk(message=_marked(chunk, marker))
        content: Content = chunk.content + rest if isinstance(chunk.content, str) else [*chunk.content]
        if rest and self.block is not None:
            content = [*(chunk.content if isinstance(chunk.content, list) else []), {**self.block, "text": rest}]
        return ChatGenerationChunk(message=chunk.model_copy(update={"content": content}))

    def _filtered(self, content: Content) -> Content:
        if isinstance(content, str):
            return self.hold.feed(content)
        return [kept for part in content if (kept := self._part(part)) is not None]

    def _part(self, part: Part) -> Part | None:
        if isinstance(part, str):
            self.block = self.block or {"type": "text"}
            return self.hold.feed(part) or None
        text = _text_of(part)
        if text is None:
            return part
        self.block = {key: part[key] for key in ("type", "index", "id") if key in part}
        shown = self.hold.feed(text)
        return {**part, "text": shown} if shown or not text or part.keys() - {"type", "text", "index"} else None


def _result(message: BaseMessage) -> ChatResult:
    """Return a whole answer, as it is where it holds no marker; else without any of its text, for nothing was shown yet."""
    answer = message if isinstance(message, AIMessage) else AIMessage(message.content)
    hold = MarkerScanner()
    hold.feed(str(answer.text))
    rest, marker = hold.close()
    _record(WholeAnswer(hold.whole, rest, marker))
    if marker is not None:
        textless: Content = ""
        if isinstance(answer.content, list):
            textless = [part for part in answer.content if not isinstance(part, str) and _text_of(part) is None]
        answer = _marked(answer.model_copy(update={"content": textless}), marker)
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _record(answer: WholeAnswer) -> None:
    answers = _WHOLE_ANSWERS.get()
    if answers is not None:
        answers.append(answer)


Answer = TypeVar("Answer", bound=AIMessage)


def _marked(answer: Answer, marker: Marker) -> Answer:
    return answer.model_copy(update={"additional_kwargs": {**answer.additional_kwargs, NEED_CONTEXT: {"keyword": marker.keyword}}})


def _as_chunk(message: BaseMessage) -> AIMessageChunk:
    """Return what an inner model streamed as a chunk: one that cannot stream gives its whole message."""
    if isinstance(message, AIMessageChunk):
        return message
    fields = {**message.__dict__, "type": "AIMessageChunk"}
    calls = [
        ToolCallChunk(name=call["name"], args=compact_json(call["args"]), id=call["id"], index=i, type="tool_call_chunk")
        for i, call in enumerate(fields.pop("tool_calls", []))
    ]
    broken = [
        ToolCallChunk(name=call["name"], args=call["args"], id=call["id"], index=i, type="tool_call_chunk")
        for i, call in enumerate(fields.pop("invalid_tool_calls", []), len(calls))
    ]
    return AIMessageChunk(**fields, tool_call_chunks=[*calls, *broken], chunk_position="last")


def _has_content(chunk: AIMessageChunk) -> bool:
    return bool(chunk.content or chunk.tool_call_chunks or chunk.usage_metadata or chunk.additional_kwargs or chunk.response_metadata)


def _text_of(part: Mapping[str, Any]) -> str | None:
    """Return the text of a text block, None of another block."""
    text = part.get("text")
    return text if part.get("type") in {"text", "output_text"} and isinstance(text, str) else None


def _call_options(stop: list[str] | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {**kwargs, "stop": stop} if stop else dict(kwargs)
