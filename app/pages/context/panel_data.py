"""What the panel shows of a thread: the next call, the thread's calls so far, memory and pins."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import BaseMessage

from longtable.app.pages.context.gauge_bar import Gauge, gauge_of
from longtable.app.pages.context.memory_lines import MemoryLine, Sources, memory_lines
from longtable.app.pages.context.next_call import CallPart, call_parts, memory_text, message_text
from longtable.app.pages.context.saw_tooth import SawTooth, saw_tooth_of
from longtable.app.pages.context.transcript_facts import ArchiveFacts, MessageFacts, facts_of
from longtable.base.context import Context
from longtable.graph.conversation import Conversation
from longtable.graph.thread_state import StoredThreads
from longtable.graph.transcripts import find_thread
from longtable.graph.wiring.answerers import ToolOffer
from longtable.graph.wiring.editing import Editable
from longtable.memory.compaction.merging import unmerged
from longtable.memory.memory_block import pins_that_fit
from longtable.memory.messages.marks import EXCLUDED, kind_of, mark_of, speaker_of, turn_number
from longtable.memory.pins.pins import Pin, current_pins
from longtable.memory.records import Compaction, stored_pins, writer_of
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.state import State, thread_of, values_of
from longtable.store.damage import readable
from longtable.store.storage_errors import storage_errors

PinState = Literal["holds", "no_room", "ended", "removed"]


@dataclass(frozen=True)
class PinRow:
    """A pin as a person sees it. `state`: "no_room" if it holds but the memory has no room for it,
    "ended" if later words of the user ended it (`ended`), "removed" if a person ended it by hand.
    """

    id: str
    text: str
    by: str
    turn: int
    speaker: str
    number: int
    """Number of the message that it quotes, 0 if it was pinned by hand."""
    ended: str
    state: PinState


@dataclass(frozen=True)
class MemoryData:
    """The memory of the next call. `covered`: how many messages of the transcript it stands for.
    `writer` is the name of the model that wrote it, "code", or "" without a summary.
    """

    lines: tuple[MemoryLine, ...]
    tokens: int
    covered: int
    writer: str
    turn: int


@dataclass(frozen=True)
class PanelData:
    """Everything that the panel shows of a thread. Sizes are in tokens; see `Gauge` for its own."""

    thread_id: str
    gauge: Gauge
    curve: SawTooth
    parts: tuple[CallPart, ...]
    memory: MemoryData
    pins: tuple[PinRow, ...]
    messages: int
    """How many messages the transcript has."""
    can_undo: bool
    """Whether there is a compaction that can be dropped."""


@dataclass(frozen=True)
class OriginalMessage:
    """One message of the transcript, word for word."""

    number: int
    kind: str
    turn: int
    speaker: str
    time: str
    """ISO 8601, "" if unknown."""
    text: str
    excluded: bool


@dataclass(frozen=True)
class PanelThread:
    """What is read of a thread for the panel. `values` is its state, `facts` those of all messages
    of its transcript, `retired` the compactions that left the state for the store.
    """

    thread_id: str
    values: State
    facts: Sequence[MessageFacts]
    retired: Sequence[Compaction] = ()
    offer: ToolOffer | None = None
    """The tools that its graph offers, None if the graph runs no turns."""

    @property
    def thread(self) -> Thread:
        """Return the thread in the form that the memory works with."""
        return thread_of(self.values)


@storage_errors()
def panel_thread(conversation: Conversation, archive: ArchiveFacts) -> PanelThread:
    """Read a thread for the panel. Raises `ThreadNotFoundError` before the first turn,
    `DamagedThreadError` if it cannot be read.
    """
    threads = StoredThreads(conversation.graph)
    thread_id = conversation.thread_id
    state, _ = find_thread(threads, thread_id, conversation.context.owner)
    values = values_of(state)
    thread = thread_of(values)
    with readable(thread_id, "what is kept of it in the store"):
        archived = archive.of(threads, thread_id, thread.archived)
        retired = threads.retired_compactions(thread_id, thread)
    graph = conversation.graph
    return PanelThread(
        thread_id=thread_id,
        values=values,
        facts=[*archived, *map(facts_of, thread.messages)],
        retired=retired,
        offer=graph.offer if isinstance(graph, Editable) else None,
    )


def panel_data(known: PanelThread, context: Context) -> PanelData | None:
    """Return what the panel shows of a thread, None before its first call. Pure."""
    if not known.values.get("brief"):
        return None
    call_plan = call_plan_of(known.values, context)
    thread = call_plan.thread
    view = call_plan.view
    curve = saw_tooth_of(
        known.facts,
        unmerged(known.retired, thread.compactions),
        thread.undone,
        next_tokens=view.parts.total,
        threshold_tokens=call_plan.call_config.threshold_tokens,
    )
    newest = thread.newest
    return PanelData(
        thread_id=known.thread_id,
        gauge=gauge_of(view, call_plan.call_config),
        curve=curve,
        parts=tuple(call_parts(call_plan, _tools(call_plan, known.offer))),
        memory=_memory(call_plan, known.facts),
        pins=tuple(_pin_rows(call_plan, known.facts)),
        messages=thread.length,
        can_undo=newest is not None and "merged" not in newest,
    )


def originals(messages: Sequence[BaseMessage], first: int) -> list[OriginalMessage]:
    """Return messages of a transcript as a person reads them; `first` is the number of the first.

    Excluded messages are marked, as `Conversation.history` marks them.
    """
    return [
        OriginalMessage(
            number=number,
            kind=message.type,
            turn=turn_number(message),
            speaker=speaker_of(message),
            time=str(mark_of(message, "time") or ""),
            text=message_text(message),
            excluded=kind_of(message) == EXCLUDED,
        )
        for number, message in enumerate(messages, first)
    ]


def _tools(call_plan: CallPlan, offer: ToolOffer | None) -> Sequence[Mapping[str, Any]]:
    """Return the definitions of the tools that go with the next call."""
    if offer is None:
        return ()
    call_config = call_plan.call_config
    persona = call_config.voice.id if call_config.voice else ""
    return offer.definitions(persona, pinning=call_config.pin_tools)


def _memory(call_plan: CallPlan, messages: Sequence[MessageFacts]) -> MemoryData:
    view = call_plan.view
    text = memory_text(view, role=call_plan.call_config.policy.memory_role)
    sources = Sources.of(messages, call_plan.thread.pins)
    record = call_plan.thread.live[0]
    return MemoryData(
        lines=tuple(memory_lines(text, sources, messages=len(messages))),
        tokens=view.parts.memory if text else 0,
        covered=record["count"] if record else 0,
        writer=writer_of(record) if record else "",
        turn=record["turn"] if record else 0,
    )


def _pin_rows(call_plan: CallPlan, messages: Sequence[MessageFacts]) -> Iterator[PinRow]:
    """Yield the pins that hold, then those that have ended."""
    thread = call_plan.thread
    numbers = {message.id: number for number, message in enumerate(messages, 1)}
    listed = current_pins(thread.pins, ended=True)
    holding = [pin for pin in listed if not pin.ended]
    fitting = {pin.id for pin in pins_that_fit(holding, call_plan.call_config)[0]}
    for pin in holding:
        yield _row(pin, numbers, "holds" if pin.id in fitting else "no_room")
    for pin in listed:
        if pin.ended:
            yield _row(pin, numbers, "ended")
    for pin in removed_pins(thread):
        yield _row(pin, numbers, "removed")


def _row(pin: Pin, numbers: dict[str | None, int], state: PinState) -> PinRow:
    return PinRow(
        id=pin.id,
        text=pin.text,
        by=pin.by,
        turn=pin.turn,
        speaker=pin.speaker,
        number=numbers.get(pin.message_id, 0),
        ended=pin.ended,
        state=state,
    )


def removed_pins(thread: Thread) -> list[Pin]:
    """Return the pins that a person ended by hand and whose words are in no other pin, oldest
    first. They are restored by pinning their words again.
    """
    by_hand = [edit["pin"] for edit in thread.edits if edit["op"] == "pin"]
    known = {
        pin.id: pin
        for pin in map(Pin.from_json, [*stored_pins(thread.chain), *by_hand])
        if pin.message_id not in thread.excluded
    }
    words = [pin.text for pin in thread.pins]
    listed = {pin.id for pin in thread.pins}
    removed: dict[str, Pin] = {}
    for pin in known.values():
        if pin.id not in listed and not any(pin.text in text for text in words):
            removed[pin.text] = pin
    return sorted(removed.values(), key=lambda pin: pin.turn)
