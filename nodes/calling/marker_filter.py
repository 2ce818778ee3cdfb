"""Wrap a chat model so that markers `[NEED_CONTEXT: keyword]`, and the draft text around them, are
shown to nobody.

Whether an answer holds a marker is certain only at the answer's end. So the answer is passed on as
a whole, and does not stream.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from longtable.memory.messages.markers import keywords_in

NEED_CONTEXT = "need_context"
"""Key in `additional_kwargs` of an answer that held markers. Its value is {"keywords": [...]}."""
INNER: RunnableConfig = {
    "tags": ["nostream", "langsmith:nostream"],
    "run_name": "held_back",
    "callbacks": [],
}
"""The config with which the inner model is called, so that nothing of it is streamed: it has no
callbacks of the run, and two tags that LangGraph and agent-chat-ui respect.
"""


def needed_context(answer: BaseMessage) -> list[str]:
    """Return the keywords of an answer's markers."""
    need = answer.additional_kwargs.get(NEED_CONTEXT)
    return [str(keyword) for keyword in need["keywords"]] if isinstance(need, Mapping) else []


class MarkerFilter(BaseChatModel):
    """A chat model that wraps another model and passes on the text only of answers without markers.

    An answer with markers becomes a message without text that holds the keywords of the markers;
    `needed_context` reads them. Ids, usage, metadata and reasoning are passed on unchanged.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    inner: Runnable[LanguageModelInput, BaseMessage]
    cache: BaseCache | bool | None = False
    """False: no cache. The inner model may have a cache of its own; a cache here would not know
    whose answers it keeps.
    """

    @property
    def _llm_type(self) -> str:
        return "held-back"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        # Traces name the model that answers, not its wrapper.
        if isinstance(self.inner, BaseChatModel):
            return self.inner._get_ls_params(stop=stop, **kwargs)
        return super()._get_ls_params(stop=stop, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
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
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield _as_chunk(self._generate(messages, stop, run_manager, **kwargs))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        yield _as_chunk(await self._agenerate(messages, stop, run_manager, **kwargs))


def _as_chunk(result: ChatResult) -> ChatGenerationChunk:
    """Return a whole answer as a single chunk of a stream."""
    fields = {**result.generations[0].message.__dict__, "type": "AIMessageChunk"}
    return ChatGenerationChunk(message=AIMessageChunk(**fields, chunk_position="last"))


def _result(message: BaseMessage) -> ChatResult:
    """Return an answer unchanged if it holds no marker; otherwise without its text, but with the
    keywords of its markers.
    """
    answer = message if isinstance(message, AIMessage) else AIMessage(message.content)
    if keywords := keywords_in(str(answer.text)):
        parts = answer.content if isinstance(answer.content, list) else []
        content = [
            part
            for part in parts
            if not isinstance(part, str) and part.get("type") not in {"text", "output_text"}
        ]
        extra = {**answer.additional_kwargs, NEED_CONTEXT: {"keywords": keywords}}
        answer = answer.model_copy(update={"content": content or "", "additional_kwargs": extra})
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _call_options(stop: list[str] | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {**kwargs, "stop": stop} if stop else dict(kwargs)
