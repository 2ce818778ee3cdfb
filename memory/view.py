"""Thread + frame -> the messages of the next call. Pure: same input, same view."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.memory.block import Memory, memory_of
from longtable.memory.frame import Frame, Parts
from longtable.memory.policy import WINDOW
from longtable.memory.reasoning import with_reasoning
from longtable.memory.rounds import pair_calls, split_groups, split_rounds
from longtable.memory.stale import without_stale
from longtable.memory.stamps import SUMMARY, marked
from longtable.memory.thread import Thread
from longtable.memory.tokens import PRIMING

MEMORY_ID = "longtable-memory"
PREVIEW_CHARS = 200
"""Characters left of a tool result that has to shrink: its columns and a row or two."""
"""Id of the memory's message where it is one of its own."""


@dataclass(frozen=True)
class View:
    """One call: its messages, their tokens, and how many messages were made smaller or left out to fit."""

    messages: list[BaseMessage]
    parts: Parts
    shrunk: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class Layout:
    """The next call before anything gives way; counting, planning and the view all start from it."""

    thread: Thread
    frame: Frame
    recalled: str = ""
    """Originals brought back for this call."""

    @cached_property
    def memory(self) -> Memory:
        """Return the memory block."""
        return replace(memory_of(self.thread, self.frame), recalled=self.recalled)

    @cached_property
    def messages(self) -> list[BaseMessage]:
        """Return the messages that are not folded, each call with its answer."""
        policy = self.frame.policy
        recent = without_stale(self.thread.messages[self.thread.live[1] :], self.thread.shown)
        kept = pair_calls(newest(recent, policy.keep_messages) if policy.strategy == WINDOW else recent)
        return with_reasoning(kept, self.frame.reasoning)

    @cached_property
    def parts(self) -> Parts:
        """Return the call's tokens as it would be if nothing had to give way: the number that triggers a fold."""
        return _parts(self.memory, "", self.messages, self.frame)

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


def build_view(layout: Layout) -> View:
    """Return the next call's messages, within `frame.threshold_tokens` whatever their sizes, once all is folded.

    What gives way past the threshold, in order, oldest first: tool results become previews, then stubs. Then, with a
    note, whole groups (a call with its answers): of the newest round past the threshold; old rounds, which a fold has
    not taken yet, only where the call would not fit at all (`frame.hard_tokens`; no fold comes for a window's). Last the
    memory: ledger, text, pins.
    The newest user message stays word for word: `ingest` refuses one that cannot fit.
    """
    if layout.parts.total <= layout.frame.threshold_tokens:
        return View([*_head(layout.frame, layout.memory, ""), *layout.messages], layout.parts)
    fitter = _Fitter(layout)
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

    def __init__(self, layout: Layout) -> None:
        self.frame, self.memory, self.messages = layout.frame, layout.memory, list(layout.messages)
        self.shrunk: set[int] = set()
        self.left_out = 0
        self.bound = self.frame.threshold_tokens
        self.tokens = layout.parts.messages - PRIMING

    def over(self) -> bool:
        return self._around() + self.tokens > self.bound

    def shrink_results(self, shorten: Callable[[str], str]) -> None:
        count = self.frame.counter.message
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
        if len(rounds) > 1 and self.frame.policy.strategy != WINDOW:
            self.bound = self.frame.hard_tokens
        units = [*rounds[:-1], *split_groups(rounds[-1])] if rounds else []
        said = [place for place in range(len(rounds) - 1, len(units)) if units[place][0].type == "human"]
        dropped: set[int] = set()
        for place in [*(place for place in range(len(units)) if place not in said), *said[:-1]]:
            if not self.over():
                break
            dropped.add(place)
            self.tokens -= sum(map(self.frame.counter.message, units[place]))
            self.left_out += len(units[place])
        self.messages = [message for place, unit in enumerate(units) if place not in dropped for message in unit]

    def view(self) -> View:
        head = _head(self.frame, self.memory, self._note())
        parts = _parts(self.memory, self._note(), self.messages, self.frame)
        return View([*head, *self.messages], parts, shrunk=len(self.shrunk), left_out=self.left_out)

    def _note(self) -> str:
        return f"[{self.left_out} messages of this conversation do not fit and are not shown.]" if self.left_out else ""

    def _around(self) -> int:
        # The note's length changes by a digit at most: count it as if it were there once anything is left out.
        head = _head(self.frame, self.memory, self._note())
        return sum(map(self.frame.counter.message, head)) + self.frame.tool_tokens + PRIMING


def _head(frame: Frame, memory: Memory, note: str) -> list[BaseMessage]:
    """Return the messages before the conversation's own: the system prompt, with memory inside or behind it."""
    block, role = memory.render(), frame.policy.memory_role
    inside = [frame.system, block, note] if role == "system" else [frame.system, note]
    system = SystemMessage("\n\n".join(filter(None, inside)))
    if role == "system" or not block:
        return [system]
    own = AIMessage(block, id=MEMORY_ID) if role == "assistant" else HumanMessage(block, id=MEMORY_ID)
    return [system, marked(own, kind=SUMMARY, sources=[1, memory.count])]


def _parts(memory: Memory, note: str, messages: Sequence[BaseMessage], frame: Frame) -> Parts:
    count = frame.counter.message
    system = count(SystemMessage(frame.system))
    head = sum(map(count, _head(frame, memory, note)))
    return Parts(system=system, tools=frame.tool_tokens, memory=head - system, messages=sum(map(count, messages)) + PRIMING)


def _preview(text: str, chars: int) -> str:
    if len(text) <= chars + 60:
        return text
    return f"{text[:chars]}… [shortened: {len(text):,} characters in all]"
