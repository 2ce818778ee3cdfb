"""One answer of the model: what it is sent, and what becomes of an answer that is empty, broken off, or asks for originals."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import StreamWriter

from longtable.base.errors import ProviderUnavailableError
from longtable.memory.passed import Material, PassedPart, with_passed
from longtable.memory.rounds import all_calls
from longtable.memory.view import Layout, View
from longtable.nodes.marker_filter import NEED_CONTEXT, WholeAnswer, needed_context
from longtable.nodes.providers import broke_off
from longtable.nodes.recall import Originals, recall_event
from longtable.tools.recall_tool import answered, recall

EMPTY_TRIES = 2
"""An empty answer is asked for once more."""
MOST_RECALLS = 3
"""Times a marker is followed in one answer."""


@dataclass
class Asking:
    """Asks until there is an answer to keep. `view` is what to send; `take` judges what came back."""

    layout: Layout
    originals: Originals
    emit: StreamWriter
    tries: int = 0
    recalls: int = 0
    blocks: list[str] = field(default_factory=list)
    materials: Sequence[Material] = ()
    """What goes with this call and is not kept."""
    passed: list[PassedPart] = field(default_factory=list)

    def view(self) -> View:
        """Return the next request."""
        view = (replace(self.layout, recalled="\n".join(self.blocks)) if self.blocks else self.layout).view
        view, self.passed = with_passed(view, self.materials, self.layout.frame)
        return view

    def take(self, answer: BaseMessage, held: Sequence[WholeAnswer]) -> BaseMessage | None:
        """Return the answer to keep, None to ask again. Searches the store: call it off the event loop.

        Raises `ProviderUnavailableError` for one that broke off.
        """
        if broke_off(answer):
            raise ProviderUnavailableError("the provider's stream ended before its answer was complete")
        self.tries += 1
        keyword = needed_context(answer)
        if keyword is None:
            return None if is_empty(answer) and self.tries < EMPTY_TRIES else answer
        if self.recalls < MOST_RECALLS:
            self.recalls += 1
            found = self._recalled(keyword)
            if found or not held[-1].rest.strip():
                self.blocks.append(found or f"Nothing was found for “{keyword}”.")
                return None
        return _without_marker(answer, held[-1])

    def _recalled(self, keyword: str) -> str:
        """Return the block of originals for a keyword, "" when there are none."""
        try:
            found = answered(recall(self.originals, keyword))
        except Exception:  # no words in the keyword, or a store that fails: then nothing is found, and the answer is kept
            return ""
        if not found["messages"]:
            return ""
        self.emit(recall_event(keyword, found, via="marker"))
        lines = [f"[m{message['number']}] {message['role']} (turn {message['turn']}): {message['text']}" for message in found["messages"]]
        return "\n".join([f"Recalled for “{keyword}”: {found['note']}", *lines])


def is_empty(answer: BaseMessage) -> bool:
    """Tell whether an answer holds neither text nor tool calls."""
    return not answer.text.strip() and not (isinstance(answer, AIMessage) and all_calls(answer))


def _without_marker(answer: BaseMessage, held: WholeAnswer) -> BaseMessage:
    extra: dict[str, Any] = {key: value for key, value in answer.additional_kwargs.items() if key != NEED_CONTEXT}
    content = f"{answer.text}{held.rest}"
    return answer.model_copy(update={"content": content, "additional_kwargs": extra})
