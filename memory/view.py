"""Transcript + compactions + frame -> the messages of the next call. Pure: same input, same view."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from longtable.memory.policy import CompactionPolicy
from longtable.memory.rounds import pair_calls, split_groups, split_rounds
from longtable.memory.summary import render_memory
from longtable.memory.tokens import PRIMING, TokenCounter, counter

Record = Mapping[str, Any]
"""One compaction, as the state keeps it: plain JSON, see `longtable.nodes.compact`."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What surrounds the messages of a call, and the numbers that bound it."""

    system: str
    tool_tokens: int
    """Tokens of the tool definitions that go with each call."""
    limit: int
    encoding: str
    policy: CompactionPolicy = field(default_factory=CompactionPolicy)
    ceiling: int | None = None
    """Tokens this turn's calls may have after the provider said a call is too long: half of what it was sent."""

    @property
    def threshold_tokens(self) -> int:
        """Return the tokens at which a fold is due, and that no view after a fold passes."""
        return min(int(self.limit * self.policy.threshold), self.ceiling or self.limit)

    @property
    def target_tokens(self) -> int:
        """Return the tokens a view should have after a fold."""
        return self._share_of_threshold(self.policy.target)

    @property
    def summary_tokens(self) -> int:
        """Return the most tokens a summary may take."""
        return max(64, self._share_of_threshold(self.policy.summary_share))

    @property
    def hard_tokens(self) -> int:
        """Return the tokens beyond which the model has no room left to answer."""
        return min(int(self.limit * (1 - self.policy.reserve)), self.ceiling or self.limit)

    @property
    def counter(self) -> TokenCounter:
        """Return the counter of the frame's encoding."""
        return counter(self.encoding)

    def _share_of_threshold(self, share: float) -> int:
        return int(self.threshold_tokens * share / self.policy.threshold)


@dataclass(frozen=True)
class Parts:
    """Tokens of a call by part. `total` is what a provider is sent."""

    system: int
    tools: int
    memory: int
    messages: int

    @property
    def total(self) -> int:
        return self.system + self.tools + self.memory + self.messages


@dataclass(frozen=True)
class View:
    """One call: its messages, their tokens, and how many messages were made smaller or left out to fit."""

    messages: list[BaseMessage]
    parts: Parts
    shrunk: int = 0
    left_out: int = 0


def live_record(messages: Sequence[BaseMessage], compactions: Sequence[Record]) -> tuple[Record | None, int]:
    """Return the newest compaction that applies to this transcript, and the place of the first message after it.

    A record whose last covered message is no longer there does not apply: an older one does, or none.
    """
    places = {message.id: i for i, message in enumerate(messages)} if compactions else {}
    for record in reversed(compactions):
        if record["to_id"] in places:
            return record, places[record["to_id"]] + 1
    return None, 0


def measure(messages: Sequence[BaseMessage], compactions: Sequence[Record], frame: Frame) -> Parts:
    """Count the next call as it would be if nothing had to give way: the number that triggers a fold."""
    record, start = live_record(messages, compactions)
    return _parts(memory_text(record), pair_calls(messages[start:]), frame)


def memory_text(record: Record | None) -> str:
    """Return the memory block of a record, "" without one."""
    return render_memory(record["summary"], record["language"]) if record else ""


def build_view(messages: Sequence[BaseMessage], compactions: Sequence[Record], frame: Frame) -> View:
    """Return the next call's messages, within `frame.threshold_tokens` whatever their sizes, once all is folded.

    What gives way past the threshold, in order, oldest first: tool results become previews, then stubs. Then, with a
    note, whole groups (a call with its answers): of the newest round past the threshold; old rounds, which a fold has
    not taken yet, only where the call would not fit at all (`frame.hard_tokens`). Last the memory. The newest user
    message stays word for word: `ingest` refuses one that cannot fit.
    """
    record, start = live_record(messages, compactions)
    fitter = _Fitter(frame, memory_text(record), pair_calls(messages[start:]))
    if fitter.over():
        fitter.shrink_results(lambda text: _preview(text, frame.policy.preview_chars))
    if fitter.over():
        fitter.shrink_results(lambda text: f"[result of {len(text):,} characters is not shown]" if len(text) > 60 else text)
    if fitter.over():
        fitter.leave_out()
    if fitter.over():
        fitter.memory = ""
    return fitter.view()


class _Fitter:
    """Makes one view fit. The total is kept as a running sum, so that each step costs O(1)."""

    def __init__(self, frame: Frame, memory: str, messages: list[BaseMessage]) -> None:
        self.frame, self.memory, self.messages = frame, memory, messages
        self.shrunk: set[int] = set()
        self.left_out = 0
        self.bound = frame.threshold_tokens
        self.tokens = sum(map(frame.counter.message, messages))

    def over(self) -> bool:
        return self._frame_tokens() + self.tokens > self.bound

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
        """Drop old rounds whole, then groups of the newest round, oldest first; never the newest user message."""
        rounds = split_rounds(self.messages)
        if len(rounds) > 1:
            self.bound = self.frame.hard_tokens
        units = [*rounds[:-1], *split_groups(rounds[-1])] if rounds else []
        newest = max((i for i, m in enumerate(self.messages) if m.type == "human"), default=-1)
        keep = self.messages[newest] if newest >= 0 else None
        kept: list[BaseMessage] = []
        for unit in units:
            if unit[0] is keep or not self.over():
                kept += unit
            else:
                self.tokens -= sum(map(self.frame.counter.message, unit))
                self.left_out += len(unit)
        self.messages = kept

    def view(self) -> View:
        frame = self.frame
        system = SystemMessage(_system_text(frame.system, self.memory, self._note()))
        parts = _parts("\n\n".join(filter(None, [self.memory, self._note()])), self.messages, frame)
        return View([system, *self.messages], parts, shrunk=len(self.shrunk), left_out=self.left_out)

    def _note(self) -> str:
        return f"[{self.left_out} messages of this conversation do not fit and are not shown.]" if self.left_out else ""

    def _frame_tokens(self) -> int:
        # The note's length changes by a digit at most: count it as if it were there once anything is left out.
        text = _system_text(self.frame.system, self.memory, self._note())
        return self.frame.counter.message(SystemMessage(text)) + self.frame.tool_tokens + PRIMING


def _system_text(system: str, memory: str, note: str = "") -> str:
    return "\n\n".join(filter(None, [system, memory, note]))


def _parts(memory: str, messages: Sequence[BaseMessage], frame: Frame) -> Parts:
    count = frame.counter.message
    system = count(SystemMessage(frame.system))
    with_memory = count(SystemMessage(_system_text(frame.system, memory)))
    return Parts(
        system=system,
        tools=frame.tool_tokens,
        memory=with_memory - system,
        messages=sum(map(count, messages)) + PRIMING,
    )


def _preview(text: str, chars: int) -> str:
    if len(text) <= chars + 60:
        return text
    return f"{text[:chars]}… [shortened: {len(text):,} characters in all]"
