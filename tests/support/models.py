"""A chat model whose words are the point of a test: it answers what a function says and remembers
what it was sent.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field

from longtable.graph import Conversation
from longtable.memory.counting.tokens import compact_json

Say = Callable[[Sequence[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Answers `say(messages)`; `sent` holds every request. Streams its words one by one.

    As the conversation's model it leaves summaries to code, so that `sent` holds the turns'
    requests alone.
    """

    writes_summaries: ClassVar[bool] = False

    say: Say
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    encoding: str = "o200k_base"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        assert all(isinstance(tool, BaseTool) for tool in tools)
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.sent.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.say(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.sent.append(list(messages))
        answer = self.say(messages)
        calls = [
            ToolCallChunk(
                name=call["name"],
                args=compact_json(call["args"]),
                id=call["id"],
                index=i,
                type="tool_call_chunk",
            )
            for i, call in enumerate(answer.tool_calls)
        ] + [
            ToolCallChunk(
                name=bad["name"],
                args=bad["args"],
                id=bad["id"],
                index=i + 100,
                type="tool_call_chunk",
            )
            for i, bad in enumerate(answer.invalid_tool_calls)
        ]
        pieces = answer.text.split(" ")
        for i, piece in enumerate(pieces):
            last = i == len(pieces) - 1
            chunk = ChatGenerationChunk(
                message=AIMessageChunk(
                    content=piece if last else f"{piece} ",
                    tool_call_chunks=calls if last else [],
                    id=answer.id,
                )
            )
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk


def script(*answers: AIMessage | str) -> ScriptedModel:
    """Return a model that gives these answers in turn, the last one again and again."""
    given = [AIMessage(answer) if isinstance(answer, str) else answer for answer in answers]
    place = iter(range(10**9))
    return ScriptedModel(
        say=lambda _: given[min(next(place), len(given) - 1)].model_copy(deep=True)
    )


def call(name: str, call_id: str = "call_1", **args: object) -> AIMessage:
    """Return an assistant message that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id}])


_MODELS: WeakKeyDictionary[Conversation, ScriptedModel] = WeakKeyDictionary()


def answered_by(model: ScriptedModel, conversation: Conversation) -> Conversation:
    """Return the conversation, and remember which model answers in it."""
    _MODELS[conversation] = model
    return conversation


def sent_of(conversation: Conversation) -> list[list[BaseMessage]]:
    """Return every request that the model of a conversation was sent."""
    return _MODELS[conversation].sent
