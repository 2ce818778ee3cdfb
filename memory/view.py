"""Thread + frame -> the messages of the next call. Pure: same input, same view."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.memory.block import Memory, memory_of
from longtable.memory.call_config import CallConfig, Parts
from longtable.memory.policy import WINDOW
from longtable.memory.reasoning import with_reasoning
from longtable.memory.rounds import pair_calls, split_groups, split_rounds, without_stale
from longtable.memory.stamps import SUMMARY, marked
from longtable.memory.thread import Thread
from longtable.memory.tokens import PRIMING

MEMORY_ID = "longtable-memory"
"""Id of the memory's message where it is one of its own."""
PREVIEW_CHARS = 200
"""Characters left of a tool result that has to shrink: its columns and a row or two."""


@dataclass(frozen=True)
class View:
    """One call: its messages, their tokens, and how many messages were made smaller or left out to fit."""

    messages: list[BaseMessage]
    parts: Parts
    shrunk: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class CallPlan:
    """The next call before anything gives way; counting, planning and the view all start from it."""

    thread: Thread
    call_config: CallConfig
    recalled: str = ""
    """Originals brought back for this call."""

    @cached_property
    def memory(self) -> Memory:
        """Return the memory block."""
        return replace(memory_of(self.thread, self.call_config), recalled=self.recalled)

    @cached_property
    def messages(self) -> list[BaseMessage]:
        """Return the messages that are not compacted, each call with its answer."""
        policy = self.call_config.policy
        recent = without_stale(self.thread.messages[self.thread.live[1] :], self.thread.shown)
        kept = pair_calls(newest(recent, policy.keep_messages) if policy.strategy == WINDOW else recent)
        return with_reasoning(kept, self.call_config.reasoning)

    @cached_property
    def parts(self) -> Parts:
        """Return the call's tokens as it would be if nothing had to give way: the number that triggers a compaction."""
        return _parts(self.memory, "", self.messages, self.call_config)

    @cached_property
    def view(self) -> View:
        """Return the call as it is sent."""
        return build_view(self)


def newest(messages: Sequence[BaseMessage], count: int) -> list[BaseMessage]:
    """Return the newest `count` messages, and before them what the user said of the newest round where that is more."""
    tail = list(messages[-count:])
    newest_round = split_rounds(messages)[-1:]
    before = len(newest_round[0]) - len(tail) if newest_round else 0
    return [*(message for message in newest_round[0][:before] if message.type == "human"), *tail] if before > 0 else tail


def build_view(call_plan: CallPlan) -> View:
    """Return the next call's messages, within `call_config.threshold_tokens` whatever their sizes, once all is compacted.

    What gives way past the threshold, in order, oldest first: tool results become previews, then stubs. Then, with a
    note, whole groups (a call with its answers): of the newest round past the threshold; old rounds, which a compaction has
    not taken yet, only where the call would not fit at all (`call_config.hard_tokens`; no compaction comes for a window's). Last the
    memory: ledger, text, pins.
    The newest user message stays word for word: `ingest` refuses one that cannot fit.
    """
    if call_plan.parts.total <= call_plan.call_config.threshold_tokens:
        return View([*_head(call_plan.call_config, call_plan.memory, ""), *call_plan.messages], call_plan.parts)
    fitter = _Fitter(call_plan)
    if fitter.over():
        fitter.shrink_results(lambda text: _preview(text, PREVIEW_CHARS))
    if fitter.over():
        fitter.shrink_results(lambda text: f"[result of {len(text):,} characters is not shown]" if len(text) > 60 else text)
    if fitter.over():
        fitter.leave_out()
    while fitter.over() and fitter.memory.render():
        fitter.memory = fitter.memory.smaller()
    return fitter.view()


class _Fitter:
    """Makes one view fit. The total is kept as a running sum, so that each step costs O(1)."""

    def __init__(self, call_plan: CallPlan) -> None:
        self.call_config, self.memory, self.messages = call_plan.call_config, call_plan.memory, list(call_plan.messages)
        self.shrunk: set[int] = set()
        self.left_out = 0
        self.bound = self.call_config.threshold_tokens
        self.tokens = call_plan.parts.messages - PRIMING

    def over(self) -> bool:
        return self._around() + self.tokens > self.bound

    def shrink_results(self, shorten: Callable[[str], str]) -> None:
        count = self.call_config.counter.message
        for i, message in enumerate(self.messages):
            if not self.over():
                return
            if isinstance(message, ToolMessage) and len(shorter := shorten(message.text)) < len(message.text):
                smaller = message.model_copy(update={"content": shorter})
                self.tokens += count(smaller) - count(message)
                self.messages[i] = smaller
                self.shrunk.add(i)

    def leave_out(self) -> None:
        """Drop old rounds whole, then groups of the newest round, oldest first, its questions last; never the newest user message."""
        rounds = split_rounds(self.messages)
        if len(rounds) > 1 and self.call_config.policy.strategy != WINDOW:
            self.bound = self.call_config.hard_tokens
        units = [*rounds[:-1], *split_groups(rounds[-1])] if rounds else []
        said = [place for place in range(len(rounds) - 1, len(units)) if units[place][0].type == "human"]
        dropped: set[int] = set()
        for place in [*(place for place in range(len(units)) if place not in said), *said[:-1]]:
            if not self.over():
                break
            dropped.add(place)
            self.tokens -= sum(map(self.call_config.counter.message, units[place]))
            self.left_out += len(units[place])
        self.messages = [message for place, unit in enumerate(units) if place not in dropped for message in unit]

    def view(self) -> View:
        head = _head(self.call_config, self.memory, self._note())
        parts = _parts(self.memory, self._note(), self.messages, self.call_config)
        return View([*head, *self.messages], parts, shrunk=len(self.shrunk), left_out=self.left_out)

    def _note(self) -> str:
        return f"[{self.left_out} messages of this conversation do not fit and are not shown.]" if self.left_out else ""

    def _around(self) -> int:
        # The note's length changes by a digit at most: count it as if it were there once anything is left out.
        head = _head(self.call_config, self.memory, self._note())
        return sum(map(self.call_config.counter.message, head)) + self.call_config.tool_tokens + PRIMING


def _head(call_config: CallConfig, memory: Memory, note: str) -> list[BaseMessage]:
    """Return the messages before the conversation's own: the system prompt, with memory inside or behind it."""
    block, role = memory.render(), call_config.policy.memory_role
    inside = [call_config.system, block, note] if role == "system" else [call_config.system, note]
    system = SystemMessage("\n\n".join(filter(None, inside)))
    if role == "system" or not block:
        return [system]
    own = AIMessage(block, id=MEMORY_ID) if role == "assistant" else HumanMessage(block, id=MEMORY_ID)
    return [system, marked(own, kind=SUMMARY, sources=[1, memory.count])]


def _parts(memory: Memory, note: str, messages: Sequence[BaseMessage], call_config: CallConfig) -> Parts:
    count = call_config.counter.message
    system = count(SystemMessage(call_config.system))
    head = sum(map(count, _head(call_config, memory, note)))
    return Parts(system=system, tools=call_config.tool_tokens, memory=head - system, messages=sum(map(count, messages)) + PRIMING)


def _preview(text: str, chars: int) -> str:
    if len(text) <= chars + 60:
        return text
    return f"{text[:chars]}… [shortened: {len(text):,} characters in all]"
