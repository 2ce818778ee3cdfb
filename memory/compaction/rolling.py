"""The strategy `rolling`: one summary that each compaction continues, written by the summariser or,
without a model, by code.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial

from langchain_core.messages import HumanMessage, SystemMessage

from longtable.base.errors import ModelContextOverflowError
from longtable.memory.compaction.compaction import ROLLING, Attempts, Draft, Job, Request
from longtable.memory.counting.tokens import MOST_CHARS
from longtable.memory.memory_block import pins_that_fit, visible_text
from longtable.memory.pins.pin_lines import is_remark
from longtable.memory.pins.pins import (
    Pin,
    PinEnd,
    current_pins,
    pins_in,
    pins_in_passing,
    said_by_user,
    without_pins,
)
from longtable.memory.records import stored_pins
from longtable.memory.summary import summary_text as text
from longtable.memory.summary.code_summary import Skip, fallback_summary
from longtable.memory.summary.corrections import corrections, marked
from longtable.memory.summary.headings import read_sections
from longtable.memory.summary.sources import Sources, checked
from longtable.memory.summary.standing_rules import Standing, carried_on
from longtable.memory.summary.summary_room import filled, fitted
from longtable.memory.summary.summary_text import (
    coverage,
    join_sections,
    packed,
    pieces,
    sections_of,
)

TRIES = 2
OVERFLOWS = 3
"""How often the window is halved if the summariser's provider says that the input is too long."""
WINDOW_SHARE = 0.85
"""Share of the summariser's window that its prompt, input and answer may fill. The rest is a
margin, because the summariser's tokenizer may count differently.
"""
PIN_ROOM = 200
"""Tokens for the pins that the summariser's answer may name besides the summary."""
PIN_LINE = 24
"""Tokens of a pin's line without the pin's text."""
MARK_TOKENS = 24
"""Room for the mark that says which part of a long message a piece is."""
FALLBACK_NOTE = "written without a model: questions, answers, rules; the rest is in the transcript"


@dataclass(frozen=True)
class Rolling:
    """Write the summary from the previous summary and the newly compacted rounds. The summariser
    has two tries; then code writes a fallback.
    """

    name: str = ROLLING

    def attempts(self, job: Job) -> Attempts:
        """See `Strategy`."""
        mark = partial(
            marked, corrected=corrections(job.previous, job.reads), language=job.language
        )
        if job.call_config.window is not None and job.budget:
            # With no room for any text a summary would be asked for in vain.
            window = job.call_config.window
            reason = ""
            overflows = 0
            tries = 0
            while tries < TRIES:
                draft = yield from _summarise(job, window, reason, mark)
                if isinstance(draft, ModelContextOverflowError) and overflows < OVERFLOWS:
                    window //= 2
                    overflows += 1
                    continue
                if isinstance(draft, Exception):
                    break
                tries += 1
                objections = yield draft
                reason = (
                    "; ".join(each["message"] for each in objections)
                    if isinstance(objections, list)
                    else ""
                )
        yield _draft_by_code(job, mark)


def _draft_by_code(job: Job, mark: Callable[[str], str]) -> Draft:
    """Return the memory that code writes, without a model."""
    rules = _rules_before(job)
    standing = _standing(job)
    sections = carried_on(sections_of(job.previous), rules, standing, job.language)
    summary = fallback_summary(
        join_sections(sections, job.language) if any(sections) else "",
        job.reads,
        language=job.language,
        budget=job.budget,
        count=job.call_config.counter.text,
        room_for_stated=job.room_for_stated,
        mark=mark,
        skip=_shown_by_pins(job),
        is_pinned=standing.holds,
    )
    return Draft(text=summary, method="fallback", note=FALLBACK_NOTE)


def _rules_before(job: Job) -> str:
    """Return the text of the previous memory, without lines on messages excluded since. It is empty
    if there is none, or if another strategy wrote it.

    The new memory carries on the preferences and constraints in this text, even if it is made from
    the originals.
    """
    before = job.plan.previous
    if before is None or before.get("strategy", ROLLING) != ROLLING:
        return ""
    return visible_text(before, job.thread, job.call_config)


def _standing(job: Job, new_pins: Sequence[Pin] = (), ends: Sequence[PinEnd] = ()) -> Standing:
    """Return which rules have ended and which rules the view shows. `new_pins` and `ends` are those
    of the draft.
    """
    live = _live_pins(job, ends)
    live_ids = {pin.id for pin in live}
    stored = map(Pin.from_json, stored_pins(job.thread.chain))
    gone = [pin.text for pin in [*stored, *job.thread.pins] if pin.id not in live_ids]
    shown, _ = pins_that_fit([*live, *new_pins], job.call_config)
    numbers = {message.id: number for number, message in job.compacted}
    messages = [message for _, message in job.compacted]
    said = [(numbers[message.id], message) for message in said_by_user(messages)]
    return Standing(gone, [pin.text for pin in shown], said)


def _live_pins(job: Job, ends: Sequence[PinEnd]) -> list[Pin]:
    """Return the thread's pins that still hold after these ends."""
    ended = {end["pin"] for end in ends}
    return [pin for pin in current_pins(job.thread.pins) if pin.id not in ended]


def _shown_by_pins(job: Job, new_pins: Sequence[Pin] = (), ends: Sequence[PinEnd] = ()) -> Skip:
    """Return a function that returns True if a pin of the next view holds a sentence word for word.

    Remarks (see `is_remark`) do not count as pins here: they are the first to be left out of a
    view, and may take back a rule that stays.
    """
    passing = pins_in_passing([message for _, message in job.reads], job.thread.pins)
    pins = [*_live_pins(job, ends), *new_pins, *passing]
    shown, _ = pins_that_fit(pins, job.call_config)
    texts = [" ".join(pin.text.split()) for pin in shown if not is_remark(pin)]

    def skip(sentence: str, _ids: str) -> bool:
        words = " ".join(sentence.split())
        return any(words in text for text in texts)

    return skip


def _summarise(
    job: Job, window: int, reason: str, mark: Callable[[str], str]
) -> Generator[Request, object, Draft | Exception]:
    """Ask the summariser for the summary, and return a draft, or the exception of a failed request.
    If the input is longer than the window, send it in parts; each answer continues the summary of
    the parts before.
    """
    summary = job.previous
    rules = _rules_before(job)
    fitting: list[list[str]] = []
    pins: list[Pin] = []
    ends: list[PinEnd] = []
    sources = Sources(job.reads, job.previous)
    count = job.call_config.counter.text
    for part in split_input(job, window, reason):
        answer = yield _request(job, summary, part, reason)
        if isinstance(answer, Exception):
            return answer
        quoted, replaced = pins_in(
            str(answer or ""), [message for _, message in job.reads], job.thread.pins
        )
        pins += quoted
        ends += replaced
        sections = _read(str(answer or ""), job, sources)
        if any(sections):
            sections = carried_on(sections, rules, _standing(job, pins, ends), job.language)
        sections = [list(map(mark, section)) for section in sections]
        fitting = fitted(sections, job.language, job.budget, count)
        summary = (
            join_sections(fitting if any(fitting) else sections, job.language)
            if any(sections)
            else ""
        )
        rules = summary
        if not any(fitting):
            break  # the gate says why: nothing that can be used, or one line over the budget
    else:
        skip = _shown_by_pins(job, pins, ends)
        new_pins = sum(count(pin.text) + PIN_LINE for pin in pins)
        room = max(0, job.room_for_stated - new_pins)
        summary = filled(
            fitting,
            sources,
            job.language,
            job.budget,
            count,
            room,
            mark,
            skip,
            _standing(job, pins, ends).holds,
        )
    share, note = coverage(job.reads, count)
    return Draft(text=summary, method="model", pins=pins, ended=ends, coverage=share, note=note)


def _read(answer: str, job: Job, sources: Sources) -> list[list[str]]:
    """Return the lines of an answer under the five headings, without lines that the messages do not
    support.
    """
    sections = read_sections(without_pins(answer), job.instructions or "")
    return checked(sections, sources, job.count)


def _request(job: Job, summary: str, part: list[str], reason: str) -> Request:
    words = max(60, job.budget // 2)
    prompt = text.summary_prompt(job.language, words=words, instructions=job.instructions)
    return [
        SystemMessage(f"{prompt}\n{job.pin_contract}"),
        HumanMessage(text.summary_input(summary, part, reason=reason)),
    ]


def split_input(job: Job, window: int, reason: str = "") -> list[list[str]]:
    """Split the summariser's input into parts. A part is a list of texts, one for each message.
    Each part fits the summariser's window together with prompt, memory and answer.

    A single part must fit beside the present memory. If there are several parts, each must fit
    beside a memory that may have grown to its budget. A message longer than a part is cut into
    marked pieces, so that no word of it is left out.
    """
    count = job.call_config.counter.text
    around = job.call_config.counter.messages(_request(job, "", [], reason))
    free = int(window * WINDOW_SHARE) - around - job.plan.summary_budget - PIN_ROOM
    wholes = [(number, text.render_message(number, message)) for number, message in job.reads]
    chars = sum(len(whole) for _, whole in wholes)
    if (
        chars <= free * MOST_CHARS
        and sum(count(whole) + 1 for _, whole in wholes) + count(job.previous) <= free
    ):
        return [[whole for _, whole in wholes]]
    room = max(256, free - max(job.plan.summary_budget, count(job.previous)))
    parts: list[str] = []
    for number, whole in wholes:
        parts += _marked_pieces(whole, number, room, count)
    return packed(((part, count(part) + 1) for part in parts), room)


def _marked_pieces(whole: str, number: int, room: int, count: Callable[[str], int]) -> list[str]:
    cuts = list(pieces(whole, room, count))
    if len(cuts) > 1:
        cuts = list(pieces(whole, room - MARK_TOKENS, count))
    return [
        cut if i == 0 else f"[m{number}] (part {i + 1} of {len(cuts)}) {cut}"
        for i, cut in enumerate(cuts)
    ]
