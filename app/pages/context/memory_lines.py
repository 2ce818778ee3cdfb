"""The memory line by line, as the model is sent it, each line with the messages that it cites."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

from longtable.app.pages.context.transcript_facts import MessageFacts
from longtable.memory.compaction.ledger import ledger_in
from longtable.memory.pins.pins import Pin
from longtable.memory.summary.summary_text import MEMORY_INTRO, citations
from longtable.memory.topics.artifacts import read_sources, runs

_PIN = re.compile(r'^- ".*" \[(p[0-9a-f]+)[^\[\]]*\]$')
_TAGS = ("<memory>", "</memory>")


@dataclass(frozen=True)
class Piece:
    """A piece of a line. With `first` over 0 it cites the messages `first` to `last` of the
    transcript, which a reader may open.
    """

    text: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class MemoryLine:
    """One line of the memory. The texts of its pieces together are the line, word for word."""

    kind: Literal["heading", "item", "pin", "query", "note"]
    pieces: tuple[Piece, ...]
    sources: tuple[Piece, ...] = ()
    """What the line stands on and does not name by message numbers: the message that a pin quotes,
    the turn of a query.
    """

    @property
    def key(self) -> str:
        """Return an id of the line's words, by which a page finds it again after a refresh."""
        return f"{crc32(''.join(piece.text for piece in self.pieces).encode()):08x}"


@dataclass(frozen=True)
class Sources:
    """Where lines without message numbers come from: the number of the message that each pin
    quotes, and the first and last message number of each turn.
    """

    pins: Mapping[str, int]
    turns: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, messages: Sequence[MessageFacts], pins: Sequence[Pin]) -> "Sources":
        """Return the sources in a whole transcript."""
        numbers = {message.id: number for number, message in enumerate(messages, 1)}
        turns: dict[int, tuple[int, int]] = {}
        for number, message in enumerate(messages, 1):
            first, _ = turns.get(message.turn, (number, number))
            turns[message.turn] = (first, number)
        quoted = {pin.id: numbers[pin.message_id] for pin in pins if pin.message_id in numbers}
        return cls(quoted, turns)


def memory_lines(text: str, sources: Sources, *, messages: int) -> list[MemoryLine]:
    """Return the lines of a memory without its tags and empty lines. Pure.

    `messages`: the number of messages in the transcript; a citation of a message that does not
    exist is plain text.
    """
    lines = [line for line in text.split("\n") if line.strip() and line not in _TAGS]
    return [_line(line, sources, messages) for line in lines]


def _line(line: str, sources: Sources, messages: int) -> MemoryLine:
    if line in MEMORY_INTRO.values():  # it explains what a citation is by an example
        return MemoryLine("note", (Piece(line),))
    pin = _PIN.match(line)
    if pin:
        number = sources.pins.get(pin[1])
        quoted = (Piece(f"m{number}", number, number),) if number else ()
        return MemoryLine("pin", (Piece(line),), quoted)
    query = next(iter(ledger_in(line)), None)
    if query:
        span = sources.turns.get(query.turn)
        of_turn = (Piece(_range(*span), *span),) if span else ()
        return MemoryLine("query", (Piece(line),), of_turn)
    pieces = tuple(_pieces(line, messages))
    if line.startswith("#"):
        return MemoryLine("heading", pieces)
    return MemoryLine("item" if line.startswith(("- ", "* ")) else "note", pieces)


def _pieces(line: str, messages: int) -> Iterator[Piece]:
    """Yield a line in pieces: its words, and each citation as links to the runs that it names."""
    rest = line
    for citation in citations(line):
        before, _, rest = rest.partition(citation)
        if before:
            yield Piece(before)
        numbers = read_sources(citation)
        spans = runs(number for number in numbers if 1 <= number <= messages)
        if spans and len(numbers) == sum(last - first + 1 for first, last in spans):
            yield from _linked(citation, spans)
        else:
            yield Piece(citation)
    if rest:
        yield Piece(rest)


def _linked(citation: str, spans: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Yield a citation as links. One that is written as its runs would be is cut at its commas;
    any other is one link to all that it spans.
    """
    written = [_range(first, last) for first, last in spans]
    if citation != f"[{', '.join(written)}]":
        yield Piece(citation, spans[0][0], spans[-1][1])
        return
    yield Piece("[")
    for place, (text, span) in enumerate(zip(written, spans, strict=True)):
        if place:
            yield Piece(", ")
        yield Piece(text, *span)
    yield Piece("]")


def _range(first: int, last: int) -> str:
    return f"m{first}" if first == last else f"m{first}-m{last}"
