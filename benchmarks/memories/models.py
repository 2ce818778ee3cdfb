"""Chat models that answer at once: one answers the user, the others write summaries."""

import random
import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from pydantic import Field

from benchmarks.memories.talks import FIGURE, ROWS, Said, answer, table
from longtable.memory.counting.tokens import counter

ENCODING = "o200k_base"
# As models write headings, whatever they were asked for.
HEADINGS = {
    "en": (
        "**1. Facts & Findings**",
        "**2. User Preferences**",
        "**3. Constraints**",
        "**4. Decisions**",
        "**5. Open Items**",
    ),
    "zh": ("一、事实与发现", "二、用户偏好", "三、约束", "四、决定", "五、未决事项"),
}
FILLER = (
    "Delays were compared by carrier, airport and month, and the highest means were named with"
    " their counts."
)
"""Stands in the summary of a talk without facts, so often that it has the size of a real one."""
FILLER_LINES = 16
INVENTED = 12
"""Lines that the inventing summariser makes up at each call."""
ANSWER = "answer"
SUMMARY = "summary"
Character = Literal["honest", "lazy", "inventing"]


class Answerer(BaseChatModel):
    """Answers at once; a question that names a number of rows is looked up with the tool first."""

    tool: str = "look_up"
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    """The messages of each call since this list was emptied."""
    log: Any = None
    """A list that both models of a thread write their calls to, in order: who had to wait for
    whom.
    """

    @property
    def _llm_type(self) -> str:
        return "answerer"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Return the model itself: it knows the one tool it calls."""
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
        rows = None if isinstance(last, ToolMessage) else ROWS.search(last.text)
        if rows is None:
            question = next((m.text for m in reversed(messages) if m.type == "human"), "")
            return _result(AIMessage(answer(question)))
        query = f"SELECT * FROM flights WHERE year <> {len(messages)} LIMIT {rows[1]}"
        args = {"rows": int(rows[1])} if self.tool == "look_up" else {"sql": query}
        call = {
            "name": self.tool,
            "args": args,
            "id": f"call_{len(messages)}_{rows[1]}",
            "type": "tool_call",
        }
        return _result(AIMessage("", tool_calls=[call]))


class Summariser(BaseChatModel):
    """Writes each planted thing it is shown in words of its own, within `allowed` tokens: what is
    missing later was lost by the framework. Every other line cites the range it read, or nothing.

    A lazy one stops after one line. An inventing one adds figures that nobody said, half of them
    planted ones with one digit changed. Input over `window` tokens raises what a provider's refusal
    becomes in LangChain.
    """

    allowed: int
    window: int
    character: Character = "honest"
    planted: list[Said] = Field(default_factory=list)
    language: str = "en"
    inputs: list[int] = Field(default_factory=list)
    """Tokens of each call's input."""
    invented: set[str] = Field(default_factory=set)
    """Figures made up so far."""
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
            raise ContextOverflowError(
                f"the input has {self.inputs[-1]:,} tokens, the window {self.window:,}"
            )
        # Langchain escapes as in XML.
        text = unescape("\n".join(message.text for message in messages))
        figures = set(FIGURE.findall(text))
        lines = [
            item.note
            for item in self.planted
            if item.key in (figures if FIGURE.fullmatch(item.key) else text)
        ]
        lines = lines or [FILLER] * FILLER_LINES
        if self.character == "lazy":
            del lines[1:]
        elif self.character == "inventing":
            lines = [*self._made_up(), *lines]
        numbers = [int(number) for number in re.findall(r"^\[m(\d+)\]", text, re.MULTILINE)]
        cited = f" [m{min(numbers)}-m{max(numbers)}]" if numbers else ""
        lines = [f"{line}{cited if n % 2 else ''}" for n, line in enumerate(lines)]
        return _result(AIMessage(within(self.allowed, lines, HEADINGS[self.language], count.text)))

    def _made_up(self) -> list[str]:
        random_ = random.Random(len(self.inputs))
        true = [item for item in self.planted if FIGURE.fullmatch(item.key)]
        known = {item.key for item in true}
        lines = []
        for n in range(INVENTED):
            item = random_.choice(true)
            digit = int(item.key[0])
            figure = (
                f"{(digit + random_.randint(1, 8) - 1) % 9 + 1}{item.key[1:]}"
                if n % 2
                else f"{random_.randint(100_000, 999_999):,}"
            )
            if figure not in known:
                self.invented.add(figure)
                lines.append(item.note.replace(item.key, figure))
        return lines


def within(
    allowed: int, lines: Sequence[str], heads: Sequence[str], count: Callable[[str], int]
) -> str:
    """Return a summary under five headings, with as many of the lines as `allowed` tokens hold."""
    room = allowed - count("\n".join(heads)) - 8
    fitting: list[str] = []
    for line in lines:
        room -= count(f"- {line}\n") + 1
        if room < 0:
            break
        fitting.append(f"- {line}")
    return "\n".join([heads[0], *fitting, *heads[1:]])


def look_up_tool() -> BaseTool:
    """Return the one tool of the talk over tables."""

    @tool
    def look_up(rows: int) -> str:
        """Return that many rows."""
        return table(rows)

    return look_up


def waited_for(log: Sequence[str]) -> int:
    """Return how many summaries of a turn were written before its last answer."""
    last = max(i for i, call in enumerate(log) if call == ANSWER)
    return list(log[:last]).count(SUMMARY)


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
