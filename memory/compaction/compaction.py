"""One compaction as values: its input, the check of its memory, and its record. This module knows
no node and no model.

A strategy writes drafts of the memory. `compaction_steps` checks each draft at the gate, and makes
the record of the first draft that passes. Both are generators without I/O: they yield requests to a
model, and the caller sends back the model's text or an exception.
"""

import hashlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal, Protocol, cast

from langchain_core.messages import BaseMessage

from longtable.base.errors import Reason
from longtable.memory.call_config import BLOCK_TOKENS, SUMMARY_FLOOR, CallConfig
from longtable.memory.compaction.gate import Candidate, Sizes, objections, pairs_valid
from longtable.memory.compaction.ledger import ledger_lines
from longtable.memory.compaction.plan import CompactionPlan
from longtable.memory.counting.tokens import fingerprint
from longtable.memory.counting.usage import SummaryCall
from longtable.memory.memory_block import pins_text, pins_that_fit
from longtable.memory.messages.marks import PRIVATE, is_recalled, mark_of
from longtable.memory.pins.pin_lines import pin_contract
from longtable.memory.pins.pins import (
    IN_PASSING,
    Pin,
    PinEnd,
    current_pins,
    pins_in_passing,
    repeated_as_rule,
)
from longtable.memory.policy import TOPICS
from longtable.memory.records import Compaction, Covered, Memory, Writing, stored_lines, stored_pins
from longtable.memory.summary.summary_text import Numbered, cited_numbers, harmless, language_of
from longtable.memory.thread import Thread, covered_exclusions
from longtable.memory.topics.topics import unfiled
from longtable.memory.view import CallPlan

ROLLING = "rolling"
MEMORY_VERSION = 2
"""Part of a compaction's identity. Raise it to have the same input compacted anew."""
MARGIN = 0.1
"""A new memory must be smaller than the text it replaces by at least this share. Otherwise the call
is not worth its cost.
"""
Request = list[BaseMessage]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A new memory before the gate has accepted it."""

    text: str
    method: Literal["model", "fallback"]
    pins: Sequence[Pin] = ()
    """Pins the model found, each verified against its source."""
    ended: Sequence[PinEnd] = ()
    """Ends of earlier pins that the model found, verified in the same way."""
    coverage: float = 1.0
    """Share of the compacted text, in tokens, that the writer saw."""
    note: str = ""
    """Why the coverage is under 1, or another note for whoever reads the record."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """The strategy's own data, kept in the record for its next compaction: plain JSON."""


TOO_LITTLE = "too_little"
"""Code of the reason if there was too little to compact. No draft was written, and the next turn
tries again.
"""


@dataclass(frozen=True)
class Outcome:
    """The result of a compaction: a new record, or None with the reasons why there is none.

    If there is a record, `reasons` tells of the attempts that failed before it. If there is none,
    `tokens` is the size of the view, and the next attempt waits until the view has grown beyond
    this size.
    """

    record: Compaction | None
    reasons: list[Reason]
    tokens: int = 0
    archive: str | None = None
    """Key of the archive file that holds the compacted messages."""
    calls: Sequence[SummaryCall] = ()
    """The summariser's calls with their tokens and cost, including calls whose text was refused."""
    results: Compaction | None = None
    """The compaction that shrank results, if there was one: before `record`, or without it."""


Attempts = Generator["Request | Draft", "str | Exception | list[Reason] | None", None]


class Strategy(Protocol):
    """A writer of memories. A strategy of your own needs a name and one method, `attempts`.
    Counting, gate, records and view are the same for all strategies.
    """

    @property
    def name(self) -> str:
        """Return the name by which a policy selects this strategy."""
        ...

    def attempts(self, job: "Job") -> Attempts:
        """Yield requests to the model and drafts of the memory.

        The answer sent back to a request is the model's text or an exception. The answer to a draft
        is the list of the gate's reasons against it. The first draft that passes ends the
        generator.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """The input of one compaction."""

    strategy: str
    thread: Thread
    call_config: CallConfig
    plan: CompactionPlan
    turn: int
    time: str
    instructions: str | None = None
    originals: Sequence[Numbered] | None = None
    """All retired messages except excluded ones, if the memory is made again from the originals;
    otherwise None.
    """

    @cached_property
    def id(self) -> str:
        """Return the compaction's identity: a digest of the covered ids and contents, the previous
        memory, the strategy, the version, and a person's changes (undos and exclusions).
        """
        plan = self.plan
        thread = self.thread
        before = plan.previous["id"] if plan.previous else ""
        changes = (
            sorted(thread.undone),
            covered_exclusions(thread.excluded, self.count),
            self.rebuilt,
        )
        digest = hashlib.sha256(f"{before}/{MEMORY_VERSION}/{self.strategy}/{changes}".encode())
        for message in thread.messages[plan.start : plan.end]:
            digest.update(f"/{message.id}/".encode() + fingerprint(message))
        return digest.hexdigest()[:24]

    @property
    def rebuilt(self) -> bool:
        """Return whether the memory is made again from the originals. Always False for the strategy
        `topics`: its topics stay, and only the messages that they lack are filed.
        """
        return self.originals is not None and self.strategy != TOPICS

    @property
    def count(self) -> int:
        """Return how many messages of the transcript the new memory covers."""
        return self.thread.archived + self.plan.end

    @cached_property
    def language(self) -> str:
        """Return the language of the memory: that in which the users have mostly written so far."""
        return language_of(self.thread.messages[: self.plan.end])

    @cached_property
    def pin_contract(self) -> str:
        """Return the summariser's instructions about pins, with a list of the pins that it may
        replace or end.
        """
        shown, _ = pins_that_fit(current_pins(self.thread.pins), self.call_config)
        return pin_contract(self.language, shown)

    @cached_property
    def compacted(self) -> list[Numbered]:
        """Return the messages that are compacted now, with their numbers."""
        return self.thread.numbered(self.plan.start, self.plan.end)

    @cached_property
    def reads(self) -> list[Numbered]:
        """Return the messages that the writer of the memory reads besides `previous`. Messages that
        only repeat earlier ones are left out. Messages private to one voice of a team are left out
        too, because all voices see the memory.
        """
        messages = (
            self.compacted
            if self.originals is None
            else [*self.originals, *self.thread.numbered(0, self.plan.end)]
        )
        return [
            (number, message)
            for number, message in messages
            if not is_recalled(message) and not mark_of(message, PRIVATE)
        ]

    @property
    def previous(self) -> str:
        """Return the text of the memory that the new memory continues. It is empty if the new
        memory is the first or is made from the originals.
        """
        return "" if self.rebuilt or not self.plan.previous else str(self.plan.previous["summary"])

    @property
    def replaced_tokens(self) -> int:
        """Return the tokens of the text that the new memory replaces."""
        if self.remade:
            return self.plan.summary_budget
        before = str(self.plan.previous["summary"]) if self.plan.previous else ""
        return self.plan.compacted_tokens + self.call_config.counter.text(before)

    @cached_property
    def ledger(self) -> list[dict[str, Any]]:
        """Return ledger lines for the queries in `reads`, without queries that an earlier record
        already has.
        """
        known = {line["message_id"] for line in stored_lines(self.thread.chain)}
        for record in self.thread.chain:
            if record.get("earlier"):  # a merged one has only its newest lines; it knew the others
                known |= {
                    str(m.id)
                    for number, m in self.reads
                    if number <= record["count"] and number not in record["excluded"]
                }
        lines = ledger_lines([message for _, message in self.reads])
        return [line.as_json() for line in lines if line.message_id not in known]

    @property
    def budget(self) -> int:
        """Return the most tokens of a memory text that can pass the gate, 0 if no text can. Lines
        with the user's statements may take `room_for_stated` tokens more.
        """
        return self._within(self.plan.summary_budget)

    @property
    def room_for_stated(self) -> int:
        """Return the extra tokens for lines with the user's statements. They come from the share of
        tokens that is reserved for pins and that the pins do not use.
        """
        return self._within(self.most_summary) - self.budget

    @property
    def most_summary(self) -> int:
        """Return the most tokens that a summary may have in any case, even if it replaces a lot of
        text.
        """
        return self.plan.summary_budget + self.unused_by_pins

    @cached_property
    def unused_by_pins(self) -> int:
        """Return how many of the tokens reserved for pins stay unused after this compaction."""
        said = [message for _, message in self.reads]
        pins = [*self.thread.pins, *pins_in_passing(said, self.thread.pins)]
        text = pins_text(current_pins(pins), self.call_config, self.language)
        return self.call_config.unused_pin_tokens(self.call_config.counter.text(text))

    def _within(self, most: int) -> int:
        gain = (
            self.room
            if self.remade
            else self.room - self.empty.memory_bound + self.plan.tokens_before
        )
        by_gate = int(self.replaced_tokens * (1 - self.margin))
        return max(0, min(most, by_gate, self.room, gain))

    @cached_property
    def room(self) -> int:
        """Return the tokens that the view has for the memory's text."""
        return self.empty.memory_bound - self.empty.parts.total - BLOCK_TOKENS

    @cached_property
    def empty(self) -> CallPlan:
        """Return the next call with a memory that has no text yet."""
        return _call_plan(self, _record(self, Draft(text="", method="fallback")))

    @property
    def remade(self) -> bool:
        """Return whether the new memory covers no new message. It is then only made again because
        messages were excluded or included.
        """
        return self.plan.start == self.plan.end

    @property
    def margin(self) -> float:
        """Return the share by which the memory must be smaller than the text it replaces."""
        return 0.0 if self.remade else MARGIN


def needs_originals(thread: Thread, call_config: CallConfig) -> bool:
    """Return whether the next memory must be made from the originals instead of continuing the
    previous memory.

    This is so if a covered message was excluded or included since, or if another strategy wrote the
    previous memory. The strategy `topics` needs originals only if its topics lack messages; it can
    leave out excluded messages without them. With a model, every `rebuild_every`-th memory is also
    made from the originals, so that no error is handed on for ever. But this is done only while the
    compacted text fits one window of the summariser, because each window costs a call.
    """
    record = thread.live[0]
    if record is None:
        return False
    if call_config.policy.strategy == TOPICS:
        count, again = unfiled(thread)
        return count < record["count"] or bool(again)
    if must_be_remade(thread, call_config):
        return True
    every = call_config.policy.rebuild_every
    window = call_config.window
    if window is None or not every:
        return False
    since = sum(
        int(older.get("folds", 1))
        for older in takewhile(lambda older: not older.get("rebuilt"), reversed(thread.chain))
    )
    compacted = sum(int(older["folded_tokens"]) for older in thread.chain)
    return since + 1 >= every and compacted <= window


def must_be_remade(thread: Thread, call_config: CallConfig) -> bool:
    """Return whether the memory must not be continued, because a message that it covers was
    excluded or included since, or because another strategy wrote the memory.
    """
    record = thread.live[0]
    return record is not None and (
        thread.stale or record.get("strategy", ROLLING) != call_config.policy.strategy
    )


def compaction_steps(
    job: Job, strategy: Strategy
) -> Generator[Request, str | Exception | None, Outcome]:
    """Let the strategy write until a draft passes the gate. The outcome also tells of the drafts
    that failed.
    """
    if refusal := no_room(job):
        return refusal
    attempts = strategy.attempts(job)
    reasons: list[Reason] = []
    answer: str | Exception | list[Reason] | None = None
    while True:
        try:
            step = attempts.send(answer)
        except StopIteration:
            return Outcome(None, reasons, job.plan.tokens_before)
        if isinstance(step, Draft):
            record, why = judge(job, step)
            if record:
                attempts.close()
                return Outcome(record, reasons)
            reasons += why
            answer = why
        else:
            answer = yield step
            if isinstance(answer, Exception):
                reasons.append(
                    Reason(
                        code="summariser_failed",
                        message=f"the summariser failed: {type(answer).__name__}",
                    )
                )


def no_room(job: Job) -> Outcome | None:
    """Return the outcome if no memory could pass the gate, so that no model needs to be asked.
    Return None if a memory could pass.
    """
    if job.budget >= SUMMARY_FLOOR:
        return None
    if job.room >= SUMMARY_FLOOR:
        reason = Reason(
            code=TOO_LITTLE, message="what could be compacted is shorter than its memory would be"
        )
        return Outcome(None, [reason], job.plan.tokens_before)
    message = "system prompt, tools, pins and the newest words leave no room for a memory"
    return Outcome(None, [Reason(code="no_room", message=message)], job.plan.tokens_before)


def judge(job: Job, draft: Draft) -> tuple[Compaction | None, list[Reason]]:
    """Return the record of a draft that passes the gate, or why it does not."""
    record = _record(job, draft)
    call_plan = _call_plan(job, record)
    after = call_plan.parts
    block = call_plan.memory.render()
    pins, _ = pins_that_fit(current_pins(call_plan.thread.pins), job.call_config)
    # A memory made again for what was excluded or included need not be smaller than the one it
    # replaces.
    view_before = after.total + 1 if job.remade else job.plan.tokens_before
    sizes = Sizes(
        summary=record["summary_tokens"],
        replaced=job.replaced_tokens,
        view=after.total,
        view_before=view_before,
        budget=_call_plan(job, {**record, "summary": ""}).memory_bound,
        kept=after.total - after.memory,
        summary_budget=job.most_summary,
    )
    words = " ".join(block.split())
    candidate = Candidate(
        summary=draft.text,
        sizes=sizes,
        margin=job.margin,
        missing_pins=[pin.text for pin in pins if not _holds_pin(words, pin)],
        unknown_citations=[n for n in sorted(cited_numbers(draft.text)) if not 1 <= n <= job.count],
        pairs_valid=pairs_valid(call_plan.messages),
    )
    why = objections(candidate)
    return (None, why) if why else ({**record, "tokens_after": after.total}, [])


def _holds_pin(words: str, pin: Pin) -> bool:
    """Return whether the memory's text, with single blanks, holds a pin word for word."""
    return harmless(" ".join(pin.text.split())) in words


def _call_plan(job: Job, record: Compaction) -> CallPlan:
    return CallPlan(
        replace(job.thread, compactions=[*job.thread.compactions, record]), job.call_config
    )


def _record(job: Job, draft: Draft) -> Compaction:
    parts = {**_covered(job), **_memory(job, draft), **_writing(job, draft)}
    record = cast("Compaction", parts)  # each part is checked where it is made
    if draft.kept:
        record["kept"] = dict(draft.kept)
    if draft.ended:
        record["ended"] = list(draft.ended)
    return record


def _memory(job: Job, draft: Draft) -> Memory:
    return {
        "summary": draft.text,
        "ledger_budget": job.plan.ledger_budget,
        "pins": [pin.as_json() for pin in _pins(job, draft)],
        "ledger": job.ledger,
        "excluded": covered_exclusions(job.thread.excluded, job.count),
        "rebuilt": job.rebuilt,
        "language": job.language,
    }


def _covered(job: Job) -> Covered:
    plan = job.plan
    thread = job.thread
    previous: Compaction | None = plan.previous
    last = str(previous["to_id"]) if previous else None
    return {
        "id": job.id,
        "previous": previous["id"] if previous else None,
        "strategy": job.strategy,
        "from_id": previous["from_id"] if previous else thread.messages[0].id,
        "to_id": thread.messages[plan.end - 1].id if plan.end else last,
        "count": job.count,
        "length": thread.length,
        "folded": plan.end - plan.start,
    }


def _writing(job: Job, draft: Draft) -> Writing:
    return {
        "method": draft.method,
        "coverage": draft.coverage,
        "coverage_note": draft.note,
        "summary_tokens": job.call_config.counter.text(draft.text),
        "folded_tokens": job.plan.compacted_tokens,
        "tokens_before": job.plan.tokens_before,
        "tokens_after": 0,
        "policy_version": MEMORY_VERSION,
        "turn": job.turn,
        "time": job.time,
    }


def _pins(job: Job, draft: Draft) -> list[Pin]:
    """Return the new pins of the messages in `reads`, in the order they were said.

    They are the draft's pins and the rules that the user said in passing. A rule said in passing is
    left out if it is already pinned or if the draft repeats it as a rule.
    """
    stored = list(stored_pins(job.thread.chain))
    stored += [edit["pin"] for edit in job.thread.edits if edit["op"] == "pin"]
    known = {pin["id"] for pin in stored}
    firm = {pin["id"] for pin in stored if pin["by"] != IN_PASSING}
    by_id: dict[str, Pin] = {}
    for pin in pins_in_passing([message for _, message in job.reads], job.thread.pins):
        if pin.id not in known and not repeated_as_rule(draft.text, pin.text):
            by_id[pin.id] = pin
    for pin in draft.pins:
        if pin.id not in firm:
            by_id[pin.id] = pin
    places = {message.id: number for number, message in job.reads}
    return sorted(by_id.values(), key=lambda pin: places.get(pin.message_id, 0))
