"""Two chat models that answer at once: one answers the user, one writes summaries. What they are sent is kept."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from pydantic import Field

from benchmarks.memories.talks import FACT, ROWS, answer, table
from longtable.memory.tokens import counter

ENCODING = "o200k_base"
HEADINGS = ("Facts and findings", "User preferences", "Constraints", "Decisions", "Open items")
FILLER = "Delays were compared by carrier, airport and month, and the highest means were named with their counts."
"""Stands in the summary of a talk without facts, so often that it has the size of a real one."""
FILLER_LINES = 16
ANSWER, SUMMARY = "answer", "summary"


class Answerer(BaseChatModel):
    """Answers at once; a question that names a number of rows is looked up with the tool first."""

    sent: list[list[BaseMessage]] = Field(default_factory=list)
    """The messages of each call since this list was emptied."""
    log: Any = None
    """A list that both models of a thread write their calls to, in order: who had to wait for whom."""

    @property
    def _llm_type(self) -> str:
        return "answerer"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Return the model itself: it knows the one tool there is."""
        del tools, tool_choice, kwargs
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        self.sent.append(messages)
        self.log.append(ANSWER)
        last = messages[-1]
        wanted = None if isinstance(last, ToolMessage) else ROWS.search(last.text)
        if wanted:
            call = {"name": "look_up", "args": {"rows": int(wanted[1])}, "id": f"call_{len(messages)}_{wanted[1]}", "type": "tool_call"}
            return _result(AIMessage("", tool_calls=[call]))
        return _result(AIMessage(answer(last.text)))


class Summariser(BaseChatModel):
    """Writes down every fact it is shown, word for word, within `allowed` tokens: what is missing later, the framework lost.

    Input over `window` tokens raises what a provider's refusal becomes in LangChain.
    """

    allowed: int
    window: int
    inputs: list[int] = Field(default_factory=list)
    """Tokens of each call's input."""
    log: Any = None
    """See `Answerer.log`."""

    @property
    def _llm_type(self) -> str:
        return "summariser"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        count = counter(ENCODING)
        self.log.append(SUMMARY)
        self.inputs.append(count.messages(messages))
        if self.inputs[-1] > self.window:
            raise ContextOverflowError(f"the input has {self.inputs[-1]:,} tokens, the window {self.window:,}")
        shown = "\n".join(message.text for message in messages)
        facts = list(dict.fromkeys(FACT.findall(shown)))
        return _result(AIMessage(within(self.allowed, facts or [FILLER] * FILLER_LINES, count.text)))


def within(allowed: int, lines: Sequence[str], count: Callable[[str], int]) -> str:
    """Return a summary under five headings, with as many of the lines as `allowed` tokens hold."""
    heads = [f"## {heading}" for heading in HEADINGS]
    room = allowed - count("\n".join(heads)) - 8
    kept: list[str] = []
    for line in lines:
        room -= count(f"- {line}\n") + 1
        if room < 0:
            break
        kept.append(f"- {line}")
    return "\n".join([heads[0], *kept, *heads[1:]])


def look_up_tool() -> BaseTool:
    """Return the one tool of the talk over tables."""

    @tool
    def look_up(rows: int) -> str:
        """Return that many rows."""
        return table(rows)

    return look_up


def facts_in(messages: Sequence[BaseMessage]) -> set[str]:
    """Return the facts that stand word for word in messages."""
    return {fact for message in messages for fact in FACT.findall(message.text)}


def waited_for(log: Sequence[str]) -> int:
    """Return how many summaries of a turn were written before its last answer."""
    last = max(i for i, call in enumerate(log) if call == ANSWER)
    return list(log[:last]).count(SUMMARY)


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
