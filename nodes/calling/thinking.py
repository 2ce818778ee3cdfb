"""Let langchain-openai's models keep reasoning that they would drop or leave in the content. The
reasoning is stored beside the content, and sent again if a view holds it.
"""

import asyncio
import sys
import threading
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk

from longtable.base.concurrency import BoundedCache
from longtable.memory.messages.reasoning import REASONING, ThinkTagParser, split_reasoning

_SIEVES: BoundedCache[tuple[int, int], ThinkTagParser] = BoundedCache(1_024)
"""The parsers of running streams, by OS thread and task. The parser of a stream that broke off is
dropped when the same task makes its next request.
"""

KEYS = (REASONING, "reasoning")
"""Keys of reasoning in a message or in a delta of a stream. DeepSeek, Qwen, vLLM before 0.12 and
llama.cpp use the first key; later vLLM and OpenRouter use the second.
"""


def with_reasoning_kept(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of the model that keeps reasoning. A model that is not of langchain-openai is
    returned itself.

    The copy's class is a subclass of the model's class, with the same name and the same fields. The
    given model is not changed.
    """
    # Not imported: no such model either.
    module = sys.modules.get("langchain_openai.chat_models.base")
    if (
        module is None
        or not isinstance(model, module.BaseChatOpenAI)
        or isinstance(model, _Keeping)
    ):
        return model
    cls: type[BaseChatModel] = type(model)
    copy = _keeping(cls).model_construct(model.model_fields_set, **dict(model))
    for name in filter(partial(hasattr, model), cls.__private_attributes__):
        setattr(copy, name, getattr(model, name))
    return copy


class _Keeping:
    """Mixin for model classes of langchain-openai that keeps reasoning. It overrides the hooks that
    langchain-openai has for other protocols, as ChatDeepSeek does.
    """

    def _create_chat_result(
        self, response: Any, generation_info: dict[str, Any] | None = None
    ) -> Any:
        result = super()._create_chat_result(response, generation_info)  # type: ignore[misc]  # the class it is mixed into has it
        choices = (
            response if isinstance(response, Mapping) else response.model_dump(warnings=False)
        ).get("choices") or []
        for generation, choice in zip(result.generations, choices, strict=False):
            _keep(generation.message, choice.get("message"))
        name = str(getattr(self, "model_name", ""))
        result.generations = [
            ChatGeneration(
                message=split_reasoning(each.message, name), generation_info=each.generation_info
            )
            for each in result.generations
        ]
        return result

    def _convert_chunk_to_generation_chunk(self, chunk: dict[str, Any], *args: Any) -> Any:
        generation = super()._convert_chunk_to_generation_chunk(chunk, *args)  # type: ignore[misc]  # as above
        choices = chunk.get("choices") or (chunk.get("chunk") or {}).get("choices") or []
        if generation is None or not choices:
            return generation
        _keep(generation.message, choices[0].get("delta"))
        return _sieved(generation, ended=bool(choices[0].get("finish_reason")))

    def _get_request_payload(
        self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        _SIEVES.pop(_here())
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)  # type: ignore[misc]  # as above
        sent = payload.get("messages")
        messages = self._convert_input(input_).to_messages()  # type: ignore[attr-defined]  # as above
        if isinstance(sent, list) and len(sent) == len(messages):
            for fields, message in zip(sent, messages, strict=True):
                reasoning = message.additional_kwargs.get(REASONING)
                if isinstance(message, AIMessage) and isinstance(reasoning, str):
                    fields[REASONING] = reasoning
        return payload


def _keep(message: BaseMessage, thought: object) -> None:
    """Store the reasoning in `thought` (a message or delta of the protocol) beside the content of
    `message`. Do nothing if the model's own class has done so.
    """
    if (
        not isinstance(message, AIMessage | AIMessageChunk)
        or not isinstance(thought, Mapping)
        or REASONING in message.additional_kwargs
    ):
        return
    if reasoning := next(
        (text for key in KEYS if isinstance(text := thought.get(key), str) and text), ""
    ):
        message.additional_kwargs[REASONING] = reasoning


def _sieved(chunk: ChatGenerationChunk, *, ended: bool) -> ChatGenerationChunk:
    """Return a chunk of a stream without reasoning in its text. Reasoning that the server left in
    the text (in think tags) is moved beside the text. `ended`: True for the last chunk.
    """
    content = chunk.message.content
    if not isinstance(content, str) or not (content or ended):
        return chunk
    sieve = _SIEVES.get(_here()) or _SIEVES.put(_here(), ThinkTagParser())
    thought, text = sieve.feed(content)
    if ended:
        last_thought, last_text = sieve.close()
        thought = thought + last_thought
        text = text + last_text
        _SIEVES.pop(_here())
    if text == content and not thought:
        return chunk
    extra = (
        {REASONING: chunk.message.additional_kwargs.get(REASONING, "") + thought} if thought else {}
    )
    changes = {"content": text, "additional_kwargs": {**chunk.message.additional_kwargs, **extra}}
    return ChatGenerationChunk(
        message=chunk.message.model_copy(update=changes), generation_info=chunk.generation_info
    )


def _here() -> tuple[int, int]:
    """Return a key for the running stream: the OS thread and the task that read it, because a
    stream is read by one task only. The stream's own id cannot be the key, because some servers
    give all streams the same id.
    """
    try:
        return threading.get_ident(), id(asyncio.current_task())
    except RuntimeError:  # no event loop here
        return threading.get_ident(), 0


@cache  # one class for each, or isinstance would not hold between two copies
def _keeping(cls: type[BaseChatModel]) -> type[BaseChatModel]:
    return type(
        cls.__name__,
        (_Keeping, cls),
        {"__module__": cls.__module__, "__doc__": cls.__doc__, "__qualname__": cls.__qualname__},
    )
