"""A thread as memory sees it: the live transcript, what was compacted of it, and what a person
changed about its memory.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NotRequired

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from typing_extensions import TypedDict

from longtable.memory.counting.tokens import compact_json
from longtable.memory.counting.usage import UNKNOWN, SummaryCall
from longtable.memory.messages.marks import is_recalled
from longtable.memory.pins.pins import IN_PASSING, Pin, PinEnd, with_ends
from longtable.memory.summary.summary_text import language_of

NAME_CHARS = 64
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{NAME_CHARS}}}")
"""What OpenAI takes as a message's name."""
REFUSED_NOTE = {
    "en": "[What the user sent here was refused by the model's provider, and is left out.]",
    "zh": "[用户在此处发送的内容被模型服务拒绝，已略去。]",
}
BLANK = "[excluded]"
"""Stands for the words of an excluded message where it was brought back before."""
NEAR = 20
"""Messages before a note that its language is read from."""


def with_notes(
    messages: Sequence[BaseMessage], excluded: Collection[str], refused: Collection[str]
) -> list[BaseMessage]:
    """Return the messages that are not excluded, with one note for each run of refused ones."""
    if not refused:
        return (
            [message for message in messages if message.id not in excluded]
            if excluded
            else list(messages)
        )
    result: list[BaseMessage] = []
    noted = False
    for place, message in enumerate(messages):
        if message.id not in excluded:
            result.append(message)
            noted = False
        elif message.id in refused and not noted:
            # Of what came before alone: the note stays the same when the conversation goes on.
            language = language_of(messages[max(0, place - NEAR) : place + 1])
            result.append(HumanMessage(REFUSED_NOTE[language], id=f"{message.id}/refused"))
            noted = True
    return result


def with_sent_name(message: BaseMessage) -> BaseMessage:
    """Return the message with a name that providers take; where that is another one, its text
    begins with the real one.

    A name with no letter or digit of ASCII is left out. Two names may look alike then: the texts
    tell them apart.
    """
    if message.type not in ("human", "ai"):
        return message
    extra = message.additional_kwargs
    name = message.name or extra.get("name")  # langchain-openai sends either
    if name is None or (isinstance(name, str) and _NAME.fullmatch(name)):
        return message
    real = " ".join(str(name).split())
    plain = unicodedata.normalize("NFKD", real).encode("ascii", "ignore").decode()
    short = re.sub(r"[^a-zA-Z0-9_-]+", "_", plain).strip("_")[:NAME_CHARS]
    changes = {
        "name": short or None,
        "additional_kwargs": {key: value for key, value in extra.items() if key != "name"},
    }
    return message.model_copy(update={**changes, "content": _named(message, real)})


def without_copies(message: BaseMessage, excluded: Collection[str]) -> BaseMessage:
    """Return a message that brought earlier ones back without the words of those that were excluded
    since.
    """
    if not is_recalled(message):
        return message
    try:
        answer = json.loads(message.text)
        blanked = [copy for copy in answer["messages"] if copy["id"] in excluded]
    except (ValueError, KeyError, TypeError):  # of another version: it may hold the words
        return message.model_copy(update={"content": BLANK})
    for copy in blanked:
        copy["text"] = BLANK
    return message.model_copy(update={"content": compact_json(answer)}) if blanked else message


def _named(message: BaseMessage, name: str) -> str | list[str | dict[str, object]]:
    content = message.content
    if not name or (isinstance(message, AIMessage) and not message.text):
        # An answer that only calls tools.
        return content
    return (
        f"{name}: {content}"
        if isinstance(content, str)
        else [{"type": "text", "text": f"{name}:"}, *content]
    )


class Covered(TypedDict):
    """Which messages a compaction stands for."""

    id: str
    previous: str | None
    """Id of the compaction that it continues."""
    strategy: NotRequired[str]
    """Absent: written before there was more than "rolling"."""
    from_id: str | None
    to_id: str | None
    """First and last message covered."""
    count: int
    """Messages of the transcript that it stands for."""
    length: int
    """Messages of the transcript when it was made."""
    folded: int
    """Messages that are new in it."""


class Memory(TypedDict):
    """What a compaction keeps of the messages that it stands for."""

    summary: str
    ledger_budget: NotRequired[int]
    """Most tokens of the query ledger beside its text."""
    pins: list[dict[str, Any]]
    ledger: list[dict[str, Any]]
    excluded: list[int]
    """Numbers of covered messages that were excluded."""
    rebuilt: bool
    """Whether its text was made from the originals."""
    language: str


class Writing(TypedDict):
    """How a compaction was written, and what it saves. Token counts are of the next call."""

    method: Literal["model", "fallback"]
    coverage: float
    coverage_note: str
    summary_tokens: int
    folded_tokens: int
    tokens_before: int
    tokens_after: int
    policy_version: int
    turn: int
    time: str


class Compaction(Covered, Memory, Writing):
    """One compaction as the state keeps it: plain JSON."""

    kind: NotRequired[Literal["results"]]
    """Present in a record that wrote no memory: results of tools shrink to their heads up to it."""
    ended: NotRequired[list[PinEnd]]
    """Pins that the summariser saw taken back or replaced."""
    writer: NotRequired[str]
    """Name of the model that wrote it, or "code". Absent: written before this was noted; see
    `writer_of`.
    """
    why_by_code: NotRequired[str]
    """Why code wrote it, "" if a model did."""
    spent: NotRequired[list[SummaryCall]]
    """What the summariser's calls took."""
    kept: NotRequired[dict[str, Any]]
    """What its strategy keeps in it."""
    earlier: NotRequired[int]
    """The rest is of one that older ones were merged into. Ledger lines left out of it."""
    folds: NotRequired[int]
    """Compactions since the last one that was made from the originals."""
    merged: NotRequired[int]
    """How many it stands for; they are in the store."""
    replaces: NotRequired[list[str]]
    """Their ids, as far as they were in the state."""


BY_CODE = "code"


def is_results(record: Compaction) -> bool:
    """Return whether a compaction wrote no memory: it only shrinks results of tools."""
    return record.get("kind") == "results"


def writer_of(record: Compaction) -> str:
    """Return who wrote a compaction: the name of a model, or "code"."""
    if record["method"] == "fallback":
        return BY_CODE
    return record.get("writer") or next(
        (call["model"] for call in reversed(record.get("spent", []))), UNKNOWN
    )


def stored_pins(records: Iterable[Compaction]) -> Iterator[dict[str, Any]]:
    """Yield the pins that compactions keep, oldest first."""
    for record in records:
        yield from record.get("pins", ())


def stored_ends(records: Iterable[Compaction]) -> Iterator[PinEnd]:
    """Yield what ended pins, as compactions keep it."""
    for record in records:
        yield from record.get("ended", ())


def stored_lines(records: Iterable[Compaction]) -> Iterator[dict[str, Any]]:
    """Yield the lines of the query ledger that compactions keep."""
    for record in records:
        yield from record.get("ledger", ())


def stored_topics(record: Compaction) -> Sequence[dict[str, Any]]:
    """Return the versions of topics that a compaction keeps."""
    kept: Mapping[str, Any] = record.get("kept") or {}
    topics: Sequence[dict[str, Any]] = kept.get("topics", ())
    return topics


EditOperation = Literal["pin", "unpin", "exclude", "include", "undo"]


class Edit(TypedDict):
    """One change of a person, or an exclusion by code; append-only."""

    id: str
    op: EditOperation
    turn: NotRequired[int]
    time: NotRequired[str]
    pin: NotRequired[dict[str, Any]]
    pins: NotRequired[list[str]]
    quote: NotRequired[str]
    """What the user said that ended the pins; absent where a person took them away."""
    message: NotRequired[str | None]
    """Id of the message that is excluded or included, or that holds the quote."""
    number: NotRequired[int]
    record: NotRequired[str]
    """Id of the compaction that is undone."""
    why: NotRequired[str]
    """"refused": the provider refused the message."""


REFUSED = "refused"


@dataclass(frozen=True)
class Thread:
    """The values of a thread. Messages are numbered from 1 over the whole transcript, retired ones
    included.
    """

    messages: Sequence[BaseMessage]
    """The live transcript: all that has not retired to the archive."""
    compactions: Sequence[Compaction] = ()
    edits: Sequence[Edit] = ()
    archived: int = 0
    """Messages that retired; they came before `messages[0]`."""

    @property
    def length(self) -> int:
        """Return how many messages the whole transcript has."""
        return self.archived + len(self.messages)

    def numbered(self, start: int, end: int) -> list[tuple[int, BaseMessage]]:
        """Return the live messages `start` to `end` with their numbers, excluded ones left out."""
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
        """Return the excluded messages: id to number."""
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
        """Return every pin that was not taken away, ended ones too, in the order they were
        stated.
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
                ends += _ends_of(edit)
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
        """Return the newest compaction whose memory applies, and the place of the first live
        message after it.

        One that was undone does not apply, nor one whose last message is neither live nor retired:
        an older does, or none.
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
        """Return the newest compaction of results that applies, and the place of the first live
        message whose result it leaves whole.
        """
        for record in reversed(self.compactions):
            if is_results(record):
                end = self._end_of(record)
                if end is not None:
                    return record, end
        return None, 0

    @property
    def newest(self) -> Compaction | None:
        """Return the newest compaction that changes what a call is shown, None if there is none."""
        memory, start = self.live
        results, end = self.live_results
        if results is None or end <= start:
            return memory
        order = [record["id"] for record in self.compactions]
        if memory is None or order.index(results["id"]) > order.index(memory["id"]):
            return results
        return memory

    def applies(self, record: Compaction) -> bool:
        """Return whether a compaction was not undone and its last message is live or retired."""
        return self._end_of(record) is not None

    def _end_of(self, record: Compaction) -> int | None:
        """Return the place after the last message that a compaction covers, None if it does not
        apply.
        """
        if record["id"] in self.undone:
            return None
        if record["to_id"] in self._places:
            return self._places[record["to_id"]] + 1
        return 0 if record["count"] <= self.archived else None

    @cached_property
    def _places(self) -> dict[str | None, int]:
        """Return the places of the live messages by id; empty if nothing was compacted."""
        if not self.compactions:
            return {}
        return {message.id: place for place, message in enumerate(self.messages)}

    @cached_property
    def chain(self) -> list[Compaction]:
        """Return the live compaction and those it stands on, oldest first."""
        by_id = {record["id"]: record for record in self.compactions}
        chain: list[Compaction] = []
        record = self.live[0]
        while record is not None:
            chain.append(record)
            record = by_id.get(record["previous"] or "")
        return chain[::-1]

    @cached_property
    def uncompacted(self) -> list[BaseMessage]:
        """Return the live messages after the live compaction, excluded ones left out."""
        live = self.messages[self.live[1] :]
        return (
            [message for message in live if message.id not in self.excluded]
            if self.excluded
            else list(live)
        )

    @property
    def shown(self) -> list[BaseMessage]:
        """Return them as a call is shown them: with a note where a refused turn stood, and with
        names that providers take.
        """
        live = with_notes(self.messages[self.live[1] :], self.excluded, self.refused)
        return [
            with_sent_name(without_copies(message, self.excluded) if self.excluded else message)
            for message in live
        ]

    @property
    def stale(self) -> bool:
        """Return whether the live compaction holds a message excluded since, or lacks one included
        again.
        """
        record = self.live[0]
        if record is None:
            return False
        return covered_exclusions(self.excluded, record["count"]) != list(
            record.get("excluded", ())
        )


def _ends_of(edit: Edit) -> list[PinEnd]:
    """Return the ends of the pins that the user's words ended."""
    return [
        PinEnd(pin=id_, quote=edit["quote"], message=str(edit["message"]), turn=edit["turn"])
        for id_ in edit["pins"]
    ]


def covered_exclusions(excluded: Mapping[str, int], count: int) -> list[int]:
    """Return the numbers of excluded messages among the first `count`."""
    return sorted(number for number in excluded.values() if number <= count)
