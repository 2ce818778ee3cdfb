"""The built-in analyst as a LangChain chat model with tool calls, streaming and usage numbers. It
has no weights and uses no network.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from longtable.analyst.checker import as_colleague, without_colleagues
from longtable.analyst.database_choice import names_in, step_among
from longtable.analyst.dialog import Call, decide, read_view
from longtable.memory.counting.tokens import compact_json, counter

MODEL_NAME = "built-in-analyst"
INPUT_LIMIT = 32_000
_WORDS = re.compile(r"\S+\s*|\s+")


class BuiltInAnalyst(BaseChatModel):
    """Answers questions about a database by rules. It knows the database only through the tools
    that are bound to it.

    The same messages always give the same answer. The analyst has no tokenizer of its own, so its
    usage numbers are counted in the way in which the graph counts tokens.
    """

    writes_summaries: ClassVar[bool] = False
    """False, because this model writes no summaries of conversations. Code writes them instead."""

    model_name: str = MODEL_NAME
    encoding: str = "o200k_base"  # what the graph counts its messages with
    profile: ModelProfile | None = Field(
        default_factory=lambda: ModelProfile(max_input_tokens=INPUT_LIMIT)
    )

    @property
    def _llm_type(self) -> str:
        return MODEL_NAME

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools. This model uses only their names."""
        bound = {"tools": [convert_to_openai_tool(tool) for tool in tools], **kwargs}
        return self.bind(**bound, **({"tool_choice": tool_choice} if tool_choice else {}))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager
        return ChatResult(
            generations=[ChatGeneration(message=self.answer(messages, kwargs.get("tools") or ()))]
        )

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        del stop
        for chunk in self._chunks(self.answer(messages, kwargs.get("tools") or ())):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def answer(self, messages: Sequence[BaseMessage], tools: Sequence[Any] = ()) -> AIMessage:
        """Return the message that follows `messages`, with usage numbers: it contains tool calls or
        the text of the answer.
        """
        names = frozenset(tool["function"]["name"] for tool in tools)
        decision = as_colleague(messages, names)
        if decision is None:
            view = read_view(without_colleagues(messages))
            databases = names_in(tools)
            step = partial(step_among, databases) if databases else None
            decision = decide(view, names, step)
        text, requests = (decision, ()) if isinstance(decision, str) else ("", decision)
        calls = [
            tool_call(name=call.name, args=call.args, id=_call_id(messages, call, place))
            for place, call in enumerate(requests)
        ]
        count = counter(self.encoding)
        sent = count.messages(messages) + count.tools(tools)
        spent = count.text(text) + sum(count.text(compact_json(call["args"])) for call in calls)
        usage = UsageMetadata(input_tokens=sent, output_tokens=spent, total_tokens=sent + spent)
        metadata = {
            "model_name": self.model_name,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        return AIMessage(
            content=text, tool_calls=calls, usage_metadata=usage, response_metadata=metadata
        )

    def _chunks(self, message: AIMessage) -> Iterator[ChatGenerationChunk]:
        """Yield a message in chunks of one word each. The last chunk has the tool calls and the
        usage.
        """
        for word in _WORDS.findall(str(message.content)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        calls = [
            tool_call_chunk(
                name=call["name"],
                args=json.dumps(call["args"], ensure_ascii=False),
                id=call["id"],
                index=place,
            )
            for place, call in enumerate(message.tool_calls)
        ]
        last = AIMessageChunk(
            content="",
            tool_call_chunks=calls,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)


def _call_id(messages: Sequence[BaseMessage], call: Call, place: int) -> str:
    """Return an id for a tool call that no earlier call of the thread has. The same messages always
    give the same id.
    """
    last = (messages[-1].id, str(messages[-1].text)) if messages else ()
    key = json.dumps([len(messages), last, call.name, call.args, place], sort_keys=True)
    return "call_" + hashlib.sha256(key.encode()).hexdigest()[:20]
