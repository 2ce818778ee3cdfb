"""A thread as the memory sees it: the live transcript, its compactions, and a person's changes to
its memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NotRequired

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from longtable.memory.messages.sent_messages import with_notes, with_sent_name, without_copies
from longtable.memory.pins.pins import IN_PASSING, Pin, PinEnd, with_ends
from longtable.memory.records import Compaction, is_results, stored_ends, stored_pins

EditOperation = Literal["pin", "unpin", "exclude", "include", "undo", "rate", "flag", "fail"]


class Edit(TypedDict):
    """One change of the memory outside of a compaction: by a person, by a tool, or by code (such as
    the exclusion of a refused message). Edits are only ever appended.
    """

    id: str
    op: EditOperation
    turn: NotRequired[int]
    time: NotRequired[str]
    pin: NotRequired[dict[str, Any]]
    pins: NotRequired[list[str]]
    quote: NotRequired[str]
    """The user's words that ended the pins. Absent if a person removed the pins by hand."""
    message: NotRequired[str | None]
    """Id of the message that is excluded or included, or that holds the quote."""
    number: NotRequired[int]
    record: NotRequired[str]
    """Id of the compaction that is undone."""
    score: NotRequired[int]
    """Of a rated turn: 1 if its answer was right, -1 if it was wrong."""
    comment: NotRequired[str]
    why: NotRequired[str]
    """Reason of an exclusion: "refused" if the model's provider refused the message."""
    answer: NotRequired[str]
    """Id of the answer after which a turn changed pins, or whose figures are flagged."""
    figures: NotRequired[list[str]]
    """Of a flag: the figures of the answer that no result supports, as written."""
    voice: NotRequired[str]
    failure: NotRequired[str]
    """Of a flag: why the figures could not be checked."""
    code: NotRequired[str]
    """Of a failed turn: the code of its error, and for the person its sentence (`text`) and the
    seconds to wait (`retry_after`).
    """
    text: NotRequired[str]
    retry_after: NotRequired[float | None]


REFUSED = "refused"


@dataclass(frozen=True)
class Thread:
    """The values of a thread. Messages are numbered from 1 over the whole transcript, which
    includes retired messages.
    """

    messages: Sequence[BaseMessage]
    """The live transcript: all messages that have not retired to the archive."""
    compactions: Sequence[Compaction] = ()
    edits: Sequence[Edit] = ()
    archived: int = 0
    """Number of retired messages. They came before `messages[0]`."""

    @property
    def length(self) -> int:
        """Return how many messages the whole transcript has."""
        return self.archived + len(self.messages)

    def numbered(self, start: int, end: int) -> list[tuple[int, BaseMessage]]:
        """Return the live messages from index `start` up to `end`, each with its number. Excluded
        messages are left out.
        """
        return [
            (self.archived + i + 1, self.messages[i])
            for i in range(start, min(end, len(self.messages)))
            if self.messages[i].id not in self.excluded
        ]

    @cached_property
    def undone(self) -> frozenset[str]:
        """Return the ids of compactions that were undone."""
        return frozenset(edit["record"] for edit in self.edits if edit["op"] == "undo")

    @cached_property
    def excluded(self) -> dict[str, int]:
        """Return the excluded messages, as a map from id to number."""
        excluded: dict[str, int] = {}
        for edit in self.edits:
            if edit["op"] == "exclude":
                excluded[str(edit["message"])] = edit["number"]
            elif edit["op"] == "include":
                excluded.pop(str(edit["message"]), None)
        return excluded

    @cached_property
    def excluded_turns(self) -> frozenset[int]:
        """Return the turns of the excluded messages."""
        return frozenset(
            edit["turn"]
            for edit in self.edits
            if edit["op"] == "exclude" and "turn" in edit and edit["message"] in self.excluded
        )

    @cached_property
    def refused(self) -> frozenset[str]:
        """Return the ids of excluded messages that the model's provider refused."""
        newest = {edit["message"]: edit for edit in self.edits if edit["op"] == "exclude"}
        return frozenset(id_ for id_ in self.excluded if newest[id_].get("why") == REFUSED)

    @cached_property
    def pins(self) -> list[Pin]:
        """Return all pins, including ended ones, in the order they were stated. Pins that a person
        removed, and pins that quote an excluded message, are left out.
        """
        known: dict[str, Pin] = {}
        ends = list(stored_ends(self.chain))
        removed: set[str] = set()
        restored: dict[str, int] = {}
        by_hand = [edit["pin"] for edit in self.edits if edit["op"] == "pin"]
        for stored in [*stored_pins(self.chain), *by_hand]:
            pin = Pin.from_json(stored)
            if pin.by != IN_PASSING or pin.id not in known:
                known[pin.id] = pin
        for edit in self.edits:
            if edit["op"] == "pin":
                removed.discard(edit["pin"]["id"])
                restored[edit["pin"]["id"]] = edit.get("turn", -1)
            elif edit["op"] == "unpin" and "quote" in edit:
                ends += ends_of(edit)
            elif edit["op"] == "unpin":
                removed |= set(edit["pins"])
        live = [
            pin
            for pin in known.values()
            if pin.id not in removed and pin.message_id not in self.excluded
        ]
        return with_ends(
            live, [end for end in ends if end["message"] not in self.excluded], restored
        )

    @cached_property
    def live(self) -> tuple[Compaction | None, int]:
        """Return the newest compaction whose memory applies, and the index of the first live
        message after the messages that it covers. Return None and 0 if none applies.

        A compaction does not apply if it was undone, or if its last message is neither live nor
        retired. Then an older compaction may apply.
        """
        for record in reversed(self.compactions):
            if is_results(record):
                continue
            end = self._end_of(record)
            if end is not None:
                return record, end
        return None, 0

    @cached_property
    def live_results(self) -> tuple[Compaction | None, int]:
        """Return the newest compaction of results that applies, and the index of the first live
        message whose result it leaves whole. Return None and 0 if none applies.
        """
        for record in reversed(self.compactions):
            if is_results(record):
                end = self._end_of(record)
                if end is not None:
                    return record, end
        return None, 0

    @property
    def newest(self) -> Compaction | None:
        """Return the newest compaction that changes the view of a call, None if there is none."""
        memory, start = self.live
        results, end = self.live_results
        if results is None or end <= start:
            return memory
        order = [record["id"] for record in self.compactions]
        if memory is None or order.index(results["id"]) > order.index(memory["id"]):
            return results
        return memory

    def applies(self, record: Compaction) -> bool:
        """Return whether a compaction applies: it was not undone, and its last message is live or
        retired.
        """
        return self._end_of(record) is not None

    def _end_of(self, record: Compaction) -> int | None:
        """Return the index after the last live message that a compaction covers. Return None if the
        compaction does not apply.
        """
        if record["id"] in self.undone:
            return None
        if record["to_id"] in self._places:
            return self._places[record["to_id"]] + 1
        return 0 if record["count"] <= self.archived else None

    @cached_property
    def _places(self) -> dict[str | None, int]:
        """Return the indices of the live messages by id; empty if there is no compaction."""
        if not self.compactions:
            return {}
        return {message.id: place for place, message in enumerate(self.messages)}

    @cached_property
    def chain(self) -> list[Compaction]:
        """Return the live compaction and the compactions that it continues, oldest first."""
        by_id = {record["id"]: record for record in self.compactions}
        chain: list[Compaction] = []
        record = self.live[0]
        while record is not None:
            chain.append(record)
            record = by_id.get(record["previous"] or "")
        return chain[::-1]

    @cached_property
    def uncompacted(self) -> list[BaseMessage]:
        """Return the live messages that the live compaction does not cover, without excluded
        messages.
        """
        live = self.messages[self.live[1] :]
        return (
            [message for message in live if message.id not in self.excluded]
            if self.excluded
            else list(live)
        )

    @property
    def shown(self) -> list[BaseMessage]:
        """Return the uncompacted messages as a call shows them: with a note in place of refused
        messages, and with speakers' names that providers accept.
        """
        live = with_notes(self.messages[self.live[1] :], self.excluded, self.refused)
        return [
            with_sent_name(without_copies(message, self.excluded) if self.excluded else message)
            for message in live
        ]

    @property
    def stale(self) -> bool:
        """Return whether the live compaction holds a message that was excluded since, or lacks a
        message that was included again since.
        """
        record = self.live[0]
        if record is None:
            return False
        return covered_exclusions(self.excluded, record["count"]) != list(
            record.get("excluded", ())
        )


def ends_of(edit: Edit) -> list[PinEnd]:
    """Return an end for each pin that an edit ended by a quote of the user."""
    return [
        PinEnd(pin=id_, quote=edit["quote"], message=str(edit["message"]), turn=edit["turn"])
        for id_ in edit["pins"]
    ]


def covered_exclusions(excluded: Mapping[str, int], count: int) -> list[int]:
    """Return the numbers of the excluded messages among the first `count` messages, sorted."""
    return sorted(number for number in excluded.values() if number <= count)
