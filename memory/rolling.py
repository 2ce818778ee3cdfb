"""The strategy `rolling`: one summary, continued at each compaction, by the summariser or without a model."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from langchain_core.messages import HumanMessage, SystemMessage

from longtable.base.errors import ModelContextOverflowError, Reason
from longtable.memory import summary as text
from longtable.memory.block import pins_that_fit
from longtable.memory.compaction import ROLLING, Attempts, Draft, Job, Request
from longtable.memory.model_summary import Sources, checked, filled, fitted, read_sections
from longtable.memory.pins import Pin, PinEnd, live_pins, pin_contract, pins_in, without_pins
from longtable.memory.summary import coverage, packed, pieces

TRIES = 2
OVERFLOWS = 3
"""How often the window is halved when the summariser itself says that its input is too long."""
WINDOW_SHARE = 0.85
"""Share of the summariser's window that its prompt, input and answer may fill; the rest is for another tokenizer's count."""
PIN_ROOM = 200
"""Tokens for the pins that its answer may name besides the summary."""
MARK_TOKENS = 24
"""Room for what says which part of a long message a piece is."""
FALLBACK_NOTE = "written without a model: questions, answers, rules; the rest is in the transcript"


@dataclass(frozen=True)
class Rolling:
    """Previous summary + newly compacted rounds; the summariser twice, then the fallback."""

    name: str = ROLLING

    def attempts(self, job: Job) -> Attempts:
        """See `Strategy`."""
        if job.call_config.window is not None and job.budget:  # with no room for any text a summary would be asked for in vain
            reason, window, overflows = "", job.call_config.window, 0
            tries = 0
            while tries < TRIES:
                written = yield from _summarise(job, window, reason)
                if isinstance(written, ModelContextOverflowError) and overflows < OVERFLOWS:
                    window, overflows = window // 2, overflows + 1
                    continue
                if isinstance(written, Exception):
                    break
                tries += 1
                why = yield written
                reason = "; ".join(_told(why))
        count = job.call_config.counter.text
        summary = text.fallback_summary(job.previous, job.reads, language=job.language, budget=job.budget, count=count)
        yield Draft(text=summary, method="fallback", note=FALLBACK_NOTE)


def _told(why: "str | Exception | list[Reason] | None") -> list[str]:
    return [reason["message"] for reason in why] if isinstance(why, list) else []


def _summarise(job: Job, window: int, reason: str) -> Generator[Request, object, Draft | Exception]:
    """Ask for the summary; input longer than the window goes in parts, each merged into the memory so far (map-reduce)."""
    summary, kept = job.previous, list[list[str]]()
    pins, ended = list[Pin](), list[PinEnd]()
    sources, count = Sources(job.reads, job.previous), job.call_config.counter.text
    for part in split_input(job, window, reason):
        answer = yield _request(job, summary, part, reason)
        if isinstance(answer, Exception):
            return answer
        told = str(answer or "")
        made, ends = pins_in(told, [message for _, message in job.reads], job.thread.pins)
        pins, ended = [*pins, *made], [*ended, *ends]
        lines = checked(read_sections(without_pins(told), job.instructions or ""), sources, job.count)
        kept = fitted(lines, job.language, job.budget, count)
        summary = text.join_sections(kept if any(kept) else lines, job.language) if any(lines) else ""
        if not any(kept):
            break  # the gate says why: nothing that can be used, or one line over the budget
    else:
        summary = filled(kept, sources, job.language, job.budget, count)
    seen, note = coverage(job.reads, count)
    return Draft(text=summary, method="model", pins=pins, ended=ended, coverage=seen, note=note)


def _request(job: Job, summary: str, part: list[str], reason: str) -> Request:
    words = max(60, job.budget // 2)
    prompt = text.summary_prompt(job.language, words=words, instructions=job.instructions)
    pins = pin_contract(job.language, pins_that_fit(live_pins(job.thread.pins), job.call_config)[0])
    return [SystemMessage(f"{prompt}\n{pins}"), HumanMessage(text.summary_input(summary, part, reason=reason))]


def split_input(job: Job, window: int, reason: str = "") -> list[list[str]]:
    """Split what the summariser reads, one text a message, into parts that fit its window beside prompt, memory and answer.

    One part goes beside the memory as it is, each of several beside one that may have
    grown to its budget. A message longer than a part alone is cut into pieces, each marked: no word of it is left out.
    """
    count = job.call_config.counter.text
    around = job.call_config.counter.messages(_request(job, "", [], reason))
    free = int(window * WINDOW_SHARE) - around - job.plan.summary_budget - PIN_ROOM
    wholes = [(number, text.render_message(number, message)) for number, message in job.reads]
    if sum(count(whole) + 1 for _, whole in wholes) + count(job.previous) <= free:
        return [[whole for _, whole in wholes]]
    room = max(256, free - job.plan.summary_budget)
    return packed(((piece, count(piece) + 1) for number, whole in wholes for piece in _marked_pieces(whole, number, room, count)), room)


def _marked_pieces(whole: str, number: int, room: int, count: Callable[[str], int]) -> list[str]:
    cuts = list(pieces(whole, room, count))
    if len(cuts) > 1:
        cuts = list(pieces(whole, room - MARK_TOKENS, count))
    return [cut if i == 0 else f"[m{number}] (part {i + 1} of {len(cuts)}) {cut}" for i, cut in enumerate(cuts)]
