"""The memory block: the part of a call that stands for the compacted conversation."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial

from longtable.base.concurrency import BoundedCache
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.ledger import LedgerLine, fit_ledger, render_ledger
from longtable.memory.counting.tokens import counter
from longtable.memory.pins.pin_lines import fit_pins, render_pins
from longtable.memory.pins.pins import Pin, current_pins
from longtable.memory.policy import TOPICS
from longtable.memory.records import Compaction
from longtable.memory.summary.summary_text import cited_numbers, language_of, render_memory
from longtable.memory.thread import Thread
from longtable.memory.topics.topics import render_topics, visible_topics

LEAST_LINE = 12
"""Fewest tokens of a line of the ledger."""
_RANGE = {
    "en": "It stands for messages m1-m{count} of the transcript.",
    "zh": "它代表会话记录中的消息 m1-m{count}。",
}


@dataclass(frozen=True)
class Memory:
    """The parts of the memory block. `text` is the lossy summary. Pins and ledger are apart from it
    and hold the original words.
    """

    text: str = ""
    pins: str = ""
    ledger: str = ""
    language: str = "en"
    count: int = 0
    """Number of messages of the transcript that the text covers."""
    recalled: str = ""
    """Original messages brought back for this call, word for word."""

    def render(self) -> str:
        """Return the block as text, "" if it has no parts."""
        parts = [part for part in (self.pins, self.text, self.ledger, self.recalled) if part]
        if not parts:
            return ""
        source = [_RANGE[self.language].format(count=self.count)] if self.count else []
        return render_memory("\n\n".join([*source, *parts]), self.language)


def memory_of(thread: Thread, call_config: CallConfig) -> Memory:
    """Return the memory of a call: the text of the live compaction, the pins that hold, and the
    ledger of all compacted rounds.
    """
    record, _ = thread.live
    pins = current_pins(thread.pins)
    if record is None and not pins:
        return Memory()
    language = record["language"] if record else language_of(thread.messages)
    return Memory(
        text=visible_text(record, thread, call_config) if record else "",
        pins=pins_text(pins, call_config, language),
        ledger=ledger_text(
            *ledger_of(thread, call_config),
            call_config,
            language,
            record.get("ledger_budget") if record else None,
        ),
        language=language,
        count=record["count"] if record else 0,
    )


def visible_text(record: Compaction, thread: Thread, call_config: CallConfig) -> str:
    """Return the text of a compaction without the words of messages that were excluded since.

    A line that cites such a message is dropped. If there are such messages, a line that cites
    nothing is dropped too, because it may be about any of them.
    """
    hidden = {
        number
        for number in thread.excluded.values()
        if number <= record["count"] and number not in record.get("excluded", ())
    }
    if not hidden:
        return record["summary"]
    if record.get("strategy") == TOPICS:
        count = partial(_tokens, call_config.encoding)
        return render_topics(
            visible_topics(thread), call_config.summary_tokens, count, record["language"]
        )
    lines = [(line, cited_numbers(line)) for line in record["summary"].splitlines()]
    return "\n".join(
        line
        for line, cited in lines
        if line.startswith("#") or (cited and hidden.isdisjoint(cited))
    )


def ledger_of(thread: Thread, call_config: CallConfig) -> tuple[list[LedgerLine], int]:
    """Return the newest queries of the compacted rounds, oldest first, and the number of queries
    before them. No more queries are returned than can fit the ledger.

    Queries of excluded messages are left out.
    """
    most = call_config.ledger_tokens // LEAST_LINE + 1
    lines: list[LedgerLine] = []
    for record in reversed(thread.chain):
        if len(lines) < most:
            lines = [*_lines_of(record), *lines]
    lines = lines[-most:]
    earlier = sum(
        len(record.get("ledger", ())) + record.get("earlier", 0) for record in thread.chain
    ) - len(lines)
    # The question of a turn of which a message was excluded may be that message.
    lines = [
        replace(line, question="") if line.turn in thread.excluded_turns else line for line in lines
    ]
    return [line for line in lines if line.message_id not in thread.excluded], earlier


_lines: BoundedCache[int, tuple[object, tuple[LedgerLine, ...]]] = BoundedCache(128)
"""The lines of compactions, by the Python id of the stored list. The list is kept too, so that no
other object can get the same id.
"""


def _lines_of(record: Compaction) -> tuple[LedgerLine, ...]:
    """Return the lines of a compaction. They are read once, because a thread's compactions are the
    same objects throughout a turn: 800 lines were read in each turn of a long talk.
    """
    stored = record.get("ledger")
    if stored is None:
        return ()
    known = _lines.get(id(stored))
    if known is not None:
        return known[1]
    lines = tuple(LedgerLine.from_json(line) for line in stored)
    return _lines.put(id(stored), (stored, lines))[1]


def pins_that_fit(pins: list[Pin], call_config: CallConfig) -> tuple[list[Pin], int]:
    """Return the pins that fit the memory block, and how many pins do not fit."""
    return fit_pins(pins, call_config.pin_tokens, partial(_tokens, call_config.encoding))


def pins_text(pins: list[Pin], call_config: CallConfig, language: str) -> str:
    """Return the text of the pins that fit their budget, "" if none do."""
    fitting, dropped = pins_that_fit(pins, call_config)
    return render_pins(fitting, language, dropped) if fitting else ""


def ledger_text(
    lines: list[LedgerLine],
    earlier: int,
    call_config: CallConfig,
    language: str,
    budget: int | None = None,
) -> str:
    """Return the ledger's text within `budget` tokens, and never more than the ledger's share. The
    newest queries stay longest. `earlier`: number of queries that are not in `lines`.
    """
    most = call_config.ledger_tokens if budget is None else min(budget, call_config.ledger_tokens)
    return _ledger_text(tuple(lines), earlier, most, call_config.encoding, language)


@lru_cache(maxsize=128)
def _ledger_text(
    lines: tuple[LedgerLine, ...], earlier: int, most: int, encoding: str, language: str
) -> str:
    # The same lines are fitted several times a turn, and change with a compaction only.
    fitting, dropped = fit_ledger(lines, most, partial(_tokens, encoding), language)
    return render_ledger(fitting, language, earlier + dropped) if fitting else ""


@lru_cache(maxsize=16_384)
def _tokens(encoding: str, text: str) -> int:
    """Return the tokens of a line of the memory block. The count is cached, because the same lines
    are fitted again before each call.
    """
    return counter(encoding).text(text)
