"""A chat model whose markers `[NEED_CONTEXT: keyword]`, and the draft around them, reach nobody.

Only at the end of an answer is it certain that no marker follows, so the answer is passed on whole
and does not stream.
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
"""Key in `additional_kwargs` of an answer that held markers: {"keywords": [...]}."""
INNER: RunnableConfig = {
    "tags": ["nostream", "langsmith:nostream"],
    "run_name": "held_back",
    "callbacks": [],
}
"""How the inner model is called: no callbacks of the run reach it, and two tags say so to LangGraph
and to agent-chat-ui.
"""


def needed_context(answer: BaseMessage) -> list[str]:
    """Return the keywords of an answer's markers."""
    need = answer.additional_kwargs.get(NEED_CONTEXT)
    return [str(keyword) for keyword in need["keywords"]] if isinstance(need, Mapping) else []


class MarkerFilter(BaseChatModel):
    """Wraps a model and passes on only answers without markers, sync and async.

    The message of an answer with markers holds no text, only their keywords (`needed_context`).
    Ids, usage, metadata and reasoning pass as they are.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    inner: Runnable[LanguageModelInput, BaseMessage]
    cache: BaseCache | bool | None = False
    """The inner model has a cache of its own; a cache here would not know which model's answers it
    keeps.
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
    """Return a whole answer as the one chunk of its stream."""
    fields = {**result.generations[0].message.__dict__, "type": "AIMessageChunk"}
    return ChatGenerationChunk(message=AIMessageChunk(**fields, chunk_position="last"))


def _result(message: BaseMessage) -> ChatResult:
    """Return an answer unchanged if it holds no marker, else without any of its text."""
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
