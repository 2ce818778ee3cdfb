"""Estimate what a run will cost, before a paid model is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

if TYPE_CHECKING:
    from longtable.graph import Conversation, Price

CALLS_A_TURN = 3
"""Model calls of a usual turn: one looks at the schema, one queries, one answers."""
GROWTH_A_TURN = 500
"""Tokens that a turn's question, calls and results add to each later call of its dialogue."""
OUTPUT_A_CALL = 150
SAMPLE_THREAD = "eval-estimate"


class SilentModel(BaseChatModel):
    """A model that answers at once and for nothing, so that the size of a call can be counted."""

    encoding: str = "o200k_base"

    @property
    def _llm_type(self) -> str:
        return "silent"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Return the model itself: it calls no tool."""
        del tools, kwargs
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del messages, stop, run_manager, kwargs
        return ChatResult(generations=[ChatGeneration(message=AIMessage("."))])


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Tokens and money of the turns that are still to be asked. `cost`: None without a price."""

    turns: int
    input: int
    output: int
    cost: float | None = None

    def __str__(self) -> str:
        money = "no price is set" if self.cost is None else f"about {self.cost:,.2f}"
        turns = "1 turn" if self.turns == 1 else f"{self.turns:,} turns"
        return (
            f"{turns}, about {self.input:,} tokens of input and {self.output:,} of output, {money}"
        )


def first_call_tokens(conversation: "Conversation", text: str) -> int:
    """Return the tokens of a question's first call: system prompt, tools, schema and question.
    The conversation's model must be a `SilentModel`.
    """
    usage = conversation.ask(text).usage
    return usage["total"] if usage else 0


def estimated(turns: Sequence[int], first_call: int, price: "Price | None") -> Estimate:
    """Return the estimate for dialogues with so many turns each, by the size of a first call."""
    taken = 0
    for count in turns:
        for number in range(count):
            taken += CALLS_A_TURN * (first_call + number * GROWTH_A_TURN)
    written = sum(turns) * CALLS_A_TURN * OUTPUT_A_CALL
    cost = None
    if price is not None:
        cost = (taken * price.input + written * price.output) / 1_000_000
    return Estimate(turns=sum(turns), input=taken, output=written, cost=cost)
