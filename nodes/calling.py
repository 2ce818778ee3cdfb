"""One call of a model: with the run's settings, tried again where that may help, then by the next model in line."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.types import StreamWriter

from longtable.base.context import Context
from longtable.base.errors import ModelContextOverflowError, ProviderError, ProviderRateLimitedError, ProviderUnavailableError
from longtable.base.events import ModelFallback, ModelRetry
from longtable.memory.reasoning import parted, reasoning_sent, without_reasoning
from longtable.nodes.model_settings import call_settings
from longtable.nodes.providers import provider_error
from longtable.nodes.tracing import span, usage_fields

FIRST_WAIT, MOST_WAIT = 0.5, 30.0
"""Seconds before the first further try, doubled each time; and the longest that a provider's retry-after is waited for."""


@dataclass(frozen=True)
class Answerer:
    """One model that may answer. `model`: with its tools bound; `base`: as it was given."""

    name: str
    model: Runnable[Any, BaseMessage]
    base: BaseChatModel


class _Shown(BaseCallbackHandler):
    """Notes whether a part of an answer has come: clients wrap a stream that broke in the errors of one that never began."""

    run_inline = True

    def __init__(self) -> None:
        self.any = False

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.any = self.any or bool(token)


@dataclass
class Caller:
    """The calls of one answer. `answered`: the place in line of the model that gave the newest one, 0 the first."""

    line: Sequence[Answerer]
    context: Context
    emit: StreamWriter
    about: dict[str, Any] = field(default_factory=dict)
    """What its spans tell of the run."""
    answered: int = 0
    _tries: int = field(default=0, init=False)
    _shown: _Shown = field(default_factory=_Shown, init=False)

    @property
    def name(self) -> str:
        """Return the name of the model that answered, or failed last."""
        return self.line[self.answered].name

    def call(self, messages: Sequence[BaseMessage]) -> BaseMessage:
        """Return an answer. Raises what the last model in line raised."""
        for answerer, settings in self._turns():
            while True:
                try:
                    with span("model", answerer.name or "model", {**self.about, "gen_ai.request.model": answerer.name}) as told:
                        answer = answerer.model.invoke(self._for(answerer, messages), self._config(), **settings)
                        told |= usage_fields(answer)
                    return parted(answer, answerer.name)
                except Exception as error:
                    wait = self._wait(error)
                    if wait is None:
                        break
                    time.sleep(wait)
        raise AssertionError("a line of models ends in an answer or an error")

    async def acall(self, messages: Sequence[BaseMessage]) -> BaseMessage:
        """Return an answer without blocking the event loop: see `call`."""
        for answerer, settings in self._turns():
            while True:
                try:
                    with span("model", answerer.name or "model", {**self.about, "gen_ai.request.model": answerer.name}) as told:
                        answer = await answerer.model.ainvoke(self._for(answerer, messages), self._config(), **settings)
                        told |= usage_fields(answer)
                    return parted(answer, answerer.name)
                except Exception as error:
                    wait = self._wait(error)
                    if wait is None:
                        break
                    await asyncio.sleep(wait)
        raise AssertionError("a line of models ends in an answer or an error")

    def _turns(self) -> Iterator[tuple[Answerer, dict[str, Any]]]:
        # Who answered once in this answer goes on: a first model that is down is not asked again for each part.
        for place in range(self.answered, len(self.line)):
            self.answered, self._tries = place, 0
            yield self.line[place], call_settings(self.context, self.line[place].base)

    def _config(self) -> RunnableConfig:
        """Return the run's own config, with one that notes what has been shown."""
        self._shown.any = False
        return merge_configs(ensure_config(), RunnableConfig(callbacks=[self._shown]))

    def _for(self, answerer: Answerer, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the messages without reasoning that was put in for the first model, where this one does not want it."""
        wants = reasoning_sent(answerer.name) != "never"
        return list(messages) if wants else [without_reasoning(message) for message in messages]

    def _wait(self, error: Exception) -> float | None:
        """Return the seconds until the same model is asked again, None for the next in line; raise where there is none.

        Only where no part of an answer has come: the person has seen it, and a second one would follow it.
        """
        known = provider_error(error)
        if known is None or isinstance(known, ModelContextOverflowError) or self._shown.any:
            raise error
        wait = self._pause(known)
        if wait is not None and self._tries < self.context.max_retries:
            self._tries += 1
            self.emit(ModelRetry(type="model_retry", model=self.name, attempt=self._tries, wait_s=wait, code=known.code))
            return wait
        if self.answered + 1 >= len(self.line):
            raise error
        following = self.line[self.answered + 1].name
        self.emit(ModelFallback(type="model_fallback", model=self.name, fallback=following, code=known.code))
        return None

    def _pause(self, error: ProviderError) -> float | None:
        """Return how long to wait before asking again, None where that cannot help, or takes too long."""
        if not isinstance(error, ProviderRateLimitedError | ProviderUnavailableError):
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= MOST_WAIT else None
        return min(MOST_WAIT, float(FIRST_WAIT * 2**self._tries))
