"""Build the messages of the next call from a thread and a call config. The functions are pure: the
same input gives the same view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.memory.call_config import (
    BLOCK_TOKENS,
    SPARE_SHARE,
    SUMMARY_FLOOR,
    TALK_SHARE,
    CallConfig,
    Parts,
)
from longtable.memory.compaction.result_heads import shrunk
from longtable.memory.counting.tokens import PRIMING
from longtable.memory.memory_block import Memory, memory_of
from longtable.memory.messages.marks import SUMMARY, marked
from longtable.memory.messages.reasoning import with_reasoning
from longtable.memory.messages.rounds import (
    is_users,
    pair_calls,
    split_groups,
    split_rounds,
    without_dangling,
    without_stale,
)
from longtable.memory.policy import WINDOW
from longtable.memory.thread import Thread
from longtable.memory.voices import as_heard

MEMORY_ID = "longtable-memory"
"""Id of the message that holds the memory, if the memory is not in the system message."""
SYSTEM_SEPARATOR = "\n\n"
"""Text between the parts of the system message."""
PREVIEW_CHARS = 200
"""A tool result keeps this many characters (its columns and a row or two) as long as another result
can shrink instead.
"""


@dataclass(frozen=True)
class View:
    """One call: its messages, their tokens, and how many messages were shortened or left out to
    fit.
    """

    messages: list[BaseMessage]
    parts: Parts
    shrunk: int = 0
    left_out: int = 0
    system_ends: tuple[int, ...] = ()
    """Where the parts of the system message end that stay the same over several calls: the system
    prompt with the schema, then the memory if it is in this message. Each end is an index into the
    text. Text after the last end changes with each call.
    """


@dataclass(frozen=True)
class CallPlan:
    """The next call before anything is shortened or left out. Counting tokens, planning a
    compaction and building the view all start from this plan.
    """

    thread: Thread
    call_config: CallConfig
    recalled: str = ""
    """Original messages brought back for this call, as text."""
    results_end: int | None = None
    """Index of the first live message whose result stays whole. None means what the thread's
    compactions say. Another value shows what the view would be if more results shrank.
    """

    @cached_property
    def memory(self) -> Memory:
        """Return the memory block."""
        return replace(memory_of(self.thread, self.call_config), recalled=self.recalled)

    @cached_property
    def messages(self) -> list[BaseMessage]:
        """Return the messages that are not compacted, as the call shows them: with shrunk results,
        and with exactly one answer after each tool call.
        """
        policy = self.call_config.policy
        recent = without_stale(self.thread.messages[self.thread.live[1] :], self.thread.shown)
        recent = without_dangling(recent)
        if self.call_config.voice is not None:
            recent = as_heard(recent, self.call_config.voice)
        recent = shrunk(recent, self.shrunk_numbers)
        paired = pair_calls(
            newest(recent, policy.keep_messages) if policy.strategy == WINDOW else recent
        )
        return with_reasoning(paired, self.call_config.reasoning)

    @cached_property
    def shrunk_numbers(self) -> dict[str | None, int]:
        """Return the live messages whose results a compaction shrank, as id to number."""
        start = self.thread.live[1]
        end = self.thread.live_results[1] if self.results_end is None else self.results_end
        first = self.thread.archived + start + 1
        covered = self.thread.messages[start:end]
        return {message.id: number for number, message in enumerate(covered, first)}

    @cached_property
    def parts(self) -> Parts:
        """Return the tokens of the call before anything is shortened or left out. Their total
        decides whether a compaction is due.
        """
        return _parts(self.memory, "", self.messages, self.call_config)

    @cached_property
    def floor(self) -> int:
        """Return the tokens of the parts that every view holds: system prompt, tools, pins and the
        newest user message.
        """
        newest_words = next(
            (message for message in reversed(self.messages) if is_users(message)), None
        )
        return must_stay(self, newest_words).total

    @property
    def bound(self) -> int:
        """Return the most tokens of a compacted view: the threshold, or more if the parts that
        every view holds leave too little room below it.
        """
        call_config = self.call_config
        if self.floor + call_config.share(SPARE_SHARE) <= call_config.threshold_tokens:
            return call_config.threshold_tokens
        return min(call_config.hard_tokens, self.floor + call_config.share(TALK_SHARE))

    @property
    def memory_bound(self) -> int:
        """Return the most tokens of this view with a memory added. If too little room is left below
        the bound, a memory of the minimum size may go beyond the bound.
        """
        if self.parts.total + BLOCK_TOKENS + SUMMARY_FLOOR <= self.bound:
            return self.bound
        return self.parts.total + min(
            BLOCK_TOKENS + self.call_config.least_memory, self.call_config.hard_tokens - self.floor
        )

    @cached_property
    def view(self) -> View:
        """Return the call as it is sent."""
        return build_view(self)


def must_stay(call_plan: CallPlan, message: BaseMessage | None) -> Parts:
    """Return the tokens of a call that holds only system prompt, tools, pins and this message."""
    pins = replace(call_plan.memory, text="", ledger="", recalled="", count=0)
    return _parts(pins, "", [message] if message else [], call_plan.call_config)


def newest(messages: Sequence[BaseMessage], count: int) -> list[BaseMessage]:
    """Return the newest `count` messages. If the newest round is longer than that, return its
    earlier user messages too.
    """
    tail = list(messages[-count:])
    newest_round = split_rounds(messages)[-1:]
    before = len(newest_round[0]) - len(tail) if newest_round else 0
    return (
        [*(message for message in newest_round[0][:before] if message.type == "human"), *tail]
        if before > 0
        else tail
    )


def build_view(call_plan: CallPlan) -> View:
    """Return the messages of the next call, cut so that they fit.

    A call over the threshold is cut to `call_plan.bound`, in this order:

    1. Tool results shrink, oldest first, to the size that fits, then to a note.
    2. Whole groups (a tool call with its answers) are left out, with a note: groups of the newest
       round if this round alone is over the bound. Old rounds that are not compacted yet are left
       out only if the call would not fit at all (`call_config.hard_tokens`). With the strategy
       `window`, which compacts nothing, old rounds are left out first.
    3. The memory is cut: first the ledger, then the text, then recalled originals.

    Pins and the newest user message stay word for word, because `ingest` refuses a message that
    does not fit beside the pins. Only if even they do not fit the limit, the pins go too.
    """
    if call_plan.parts.total <= call_plan.call_config.threshold_tokens:
        return View(
            [*_head(call_plan.call_config, call_plan.memory, ""), *call_plan.messages],
            call_plan.parts,
            system_ends=_system_ends(call_plan.call_config, call_plan.memory),
        )
    fitter = _Fitter(call_plan)
    fitter.shrink_results(PREVIEW_CHARS)
    fitter.shrink_results(0)
    if fitter.over():
        fitter.leave_out()
    memory = fitter.memory
    for smaller in (
        replace(memory, ledger=""),
        replace(memory, ledger="", text=""),
        replace(memory, ledger="", text="", recalled=""),
    ):
        if fitter.over():
            fitter.memory = smaller
    if fitter.over() and fitter.total() > call_plan.call_config.hard_tokens:
        # The provider taught since that there is less room.
        fitter.memory = Memory()
    return fitter.view()


class _Fitter:
    """Cut one view until it fits. A running sum of its tokens makes each step cost O(1)."""

    def __init__(self, call_plan: CallPlan) -> None:
        self.call_config = call_plan.call_config
        self.memory = call_plan.memory
        self.whole = call_plan.messages
        self.messages = list(call_plan.messages)
        self.numbers = {
            message.id: number
            for number, message in enumerate(
                call_plan.thread.messages, call_plan.thread.archived + 1
            )
        }
        self.shrunk: set[int] = set()
        self.left_out = 0
        self.bound = call_plan.bound
        self.tokens = call_plan.parts.messages - PRIMING

    def total(self) -> int:
        # The note's length changes by a digit at most: count it as if it were there once anything
        # is left out.
        head = _head(self.call_config, self.memory, self._note())
        return (
            sum(map(self.call_config.counter.message, head))
            + self.call_config.tool_tokens
            + PRIMING
            + self.tokens
        )

    def over(self) -> bool:
        return self.total() > self.bound

    def shrink_results(self, least: int) -> None:
        """Cut tool results, the oldest first, only until the view is within its bound. Each result
        keeps at least `least` characters.
        """
        count = self.call_config.counter.message
        excess = self.total() - self.bound
        for i, message in enumerate(self.messages):
            if excess <= 0:
                return
            if isinstance(message, ToolMessage):
                text = self._shortened(i, excess, least)
                if len(text) < len(message.text):
                    smaller = message.model_copy(update={"content": text})
                    freed = count(message) - count(smaller)
                    self.messages[i] = smaller
                    self.tokens = self.tokens - freed
                    excess = excess - freed
                    self.shrunk.add(i)

    def _shortened(self, place: int, excess: int, least: int) -> str:
        whole = self.whole[place]
        counter = self.call_config.counter
        read = f'recall_history("m{self.numbers.get(whole.id, 0)}") reads them'
        mark = f"… [shortened: {len(whole.text):,} characters in all, {read}]"
        fitting = counter.prefix(
            whole.text, counter.text(self.messages[place].text) - excess - counter.text(mark)
        )
        return f"{whole.text[: max(least, len(fitting))]}{mark}"

    def leave_out(self) -> None:
        """Leave out groups of messages until the call fits.

        Drop groups of the newest round, oldest first, until this round alone is within the bound.
        Its questions are dropped last, and the newest user message is never dropped. Then drop old
        rounds until the call fits the limit. With the strategy `window`, drop old rounds first,
        until the call is within the bound, because no compaction will take them.
        """
        rounds = split_rounds(self.messages)
        if not rounds:
            return
        old = rounds[:-1]
        groups = split_groups(rounds[-1])
        questions = [group for group in groups if is_users(group[0])]
        others = [group for group in groups if not is_users(group[0])]
        order = [*others, *questions[:-1]]
        if self.call_config.policy.strategy == WINDOW:
            dropped = self._dropped([*old, *order])
        else:
            # What waits for a compaction takes nothing from the newest round, and gives it nothing.
            self.bound += sum(map(self._size, old))
            dropped = self._dropped(order)
            self.bound = min(self.bound, self.call_config.hard_tokens)
            dropped |= self._dropped(old)
        self.messages = [message for message in self.messages if id(message) not in dropped]

    def _dropped(self, units: Sequence[Sequence[BaseMessage]]) -> set[int]:
        """Drop units, in order, until the call is within its bound. Return the Python ids of the
        dropped messages.
        """
        dropped: set[int] = set()
        for unit in units:
            if not self.over():
                break
            dropped |= set(map(id, unit))
            self.tokens -= self._size(unit)
            self.left_out += len(unit)
        return dropped

    def _size(self, messages: Sequence[BaseMessage]) -> int:
        return sum(map(self.call_config.counter.message, messages))

    def view(self) -> View:
        head = _head(self.call_config, self.memory, self._note())
        parts = _parts(self.memory, self._note(), self.messages, self.call_config)
        return View(
            [*head, *self.messages],
            parts,
            shrunk=len(self.shrunk),
            left_out=self.left_out,
            system_ends=_system_ends(self.call_config, self.memory),
        )

    def _note(self) -> str:
        return (
            f"[{self.left_out} messages of this conversation do not fit and are not shown.]"
            if self.left_out
            else ""
        )


def _head(call_config: CallConfig, memory: Memory, note: str) -> list[BaseMessage]:
    """Return the messages before those of the conversation: the system prompt, with the memory
    inside or after it.
    """
    block = memory.render()
    role = call_config.policy.memory_role
    inside = [call_config.system, block if role == "system" else "", note, call_config.whisper]
    system = SystemMessage(SYSTEM_SEPARATOR.join(filter(None, inside)))
    if role == "system" or not block:
        return [system]
    own = (
        AIMessage(block, id=MEMORY_ID) if role == "assistant" else HumanMessage(block, id=MEMORY_ID)
    )
    return [system, marked(own, kind=SUMMARY, sources=[1, memory.count])]


def _system_ends(call_config: CallConfig, memory: Memory) -> tuple[int, ...]:
    """Return the ends of the parts of the system message that stay the same over several calls; see
    `View.system_ends`.
    """
    role = call_config.policy.memory_role
    parts = [call_config.system, memory.render() if role == "system" else ""]
    ends: list[int] = []
    for part in filter(None, parts):
        before = ends[-1] + len(SYSTEM_SEPARATOR) if ends else 0
        ends.append(before + len(part))
    return tuple(ends)


def _parts(
    memory: Memory, note: str, messages: Sequence[BaseMessage], call_config: CallConfig
) -> Parts:
    count = call_config.counter.message
    system = count(SystemMessage(call_config.instructions))
    head = sum(map(count, _head(call_config, memory, note)))
    return Parts(
        system=system,
        tools=call_config.tool_tokens,
        memory=head - system,
        messages=sum(map(count, messages)) + PRIMING,
    )
