"""The size of a thread's calls over its turns: it rises with each call and falls at each
compaction. As a drawing, it looks like the teeth of a saw.

Sizes are tokens as they were counted before each call. A call of an older version has no such
count; the provider's count is drawn instead, or the call is missing.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from longtable.app.pages.context.transcript_facts import MessageFacts
from longtable.memory.records import BY_CODE, Compaction, is_results, writer_of

WIDTH = 360
HEIGHT = 132
"""Size of the drawing, in its own units."""
LEFT = 6
RIGHT = 354
TOP = 14
BASE = 112
"""The rectangle of the curve."""
MOST_CALLS = 400
"""Most calls that are drawn. Of more, the largest of each group of neighbours is drawn."""
NEAR = 0.25
"""The line of the threshold is drawn if the largest call is at least this share of it. Otherwise
the line would press the curve flat.
"""


class Point(NamedTuple):
    """A place in the drawing."""

    x: float
    y: float


@dataclass(frozen=True)
class Fall:
    """One compaction. `before` and `after` are tokens of the next call. `number`: its place among
    the thread's compactions, from 1.
    """

    number: int
    turn: int
    kind: Literal["rows", "summary"]
    """"rows" if only results of tools shrank, "summary" if a memory was written."""
    writer: str
    """Name of the model that wrote the memory, "code" if code did, "unknown" in old threads."""
    by_code: bool
    why_by_code: str
    before: int
    after: int
    messages: int
    """How many messages it took into the memory, or how many results it shrank."""
    undone: bool
    top: Point
    bottom: Point
    """Where the fall is drawn."""


@dataclass(frozen=True)
class SawTooth:
    """The curve of a thread and its compactions."""

    falls: tuple[Fall, ...]
    lines: tuple[str, ...]
    """Runs of the curve between compactions, each as the points of an SVG polyline."""
    next_call: Point
    next_tokens: int
    calls: int
    """How many calls have a size."""
    unknown: int
    """How many calls have none, so that they are not drawn."""
    largest: int
    turns: int
    threshold_tokens: int
    threshold_y: float | None
    """None if the calls are far below the threshold."""
    ticks: tuple[tuple[float, int], ...]
    """Where turns begin on the horizontal axis, each with the turn's number."""


class _Call(NamedTuple):
    """One call: how many messages the thread had then, its turn and its tokens."""

    messages: int
    turn: int
    tokens: int


def saw_tooth_of(
    messages: Sequence[MessageFacts],
    records: Sequence[Compaction],
    undone: Iterable[str],
    *,
    next_tokens: int,
    threshold_tokens: int,
) -> SawTooth:
    """Return the curve of a thread. Pure.

    `messages`: all of the transcript. `records`: all its compactions, oldest first. `undone`: ids
    of those that were undone. `next_tokens` and `threshold_tokens` are tokens as we count them.
    """
    calls = [
        _Call(place, message.turn, message.tokens)
        for place, message in enumerate(messages)
        if message.is_call and message.tokens is not None
    ]
    drawn = _largest_of_groups(calls)
    befores = [record["tokens_before"] for record in records]
    largest = max([next_tokens, *(call.tokens for call in calls), *befores])
    shows = largest >= NEAR * threshold_tokens
    scale = _Scale(
        steps=len(drawn) + len(records) + 1,
        most=max(1, round(1.08 * max(largest, threshold_tokens if shows else 0))),
    )
    curve = _curve(drawn, records, set(undone), scale)
    end = scale.point(scale.steps - 1, next_tokens)
    lines = [*curve.lines[:-1], [*curve.lines[-1], end]]
    return SawTooth(
        falls=tuple(curve.falls),
        lines=tuple(_points(line) for line in lines if len(line) > 1),
        next_call=end,
        next_tokens=next_tokens,
        calls=len(calls),
        unknown=sum(message.is_call for message in messages) - len(calls),
        largest=largest,
        turns=max((message.turn for message in messages), default=0),
        threshold_tokens=threshold_tokens,
        threshold_y=scale.y(threshold_tokens) if shows else None,
        ticks=_ticks(curve.turns),
    )


def _fall(
    number: int, record: Compaction, undone: Collection[str], step: int, scale: "_Scale"
) -> Fall:
    writer = writer_of(record)
    return Fall(
        number=number,
        turn=record["turn"],
        kind="rows" if is_results(record) else "summary",
        writer=writer,
        by_code=writer == BY_CODE or is_results(record),
        why_by_code=record.get("why_by_code", ""),
        before=record["tokens_before"],
        after=record["tokens_after"],
        messages=record["folded"],
        undone=record["id"] in undone,
        top=scale.point(step, record["tokens_before"]),
        bottom=scale.point(step, record["tokens_after"]),
    )


def _largest_of_groups(calls: Sequence[_Call]) -> list[_Call]:
    size = -(-len(calls) // MOST_CALLS) or 1
    groups = [calls[start : start + size] for start in range(0, len(calls), size)]
    return [max(group, key=lambda call: call.tokens) for group in groups]


@dataclass(frozen=True)
class _Scale:
    """Steps from left to right and tokens from bottom to top."""

    steps: int
    most: int

    def x(self, step: int) -> float:
        share = step / max(1, self.steps - 1)
        return round(LEFT + (RIGHT - LEFT) * share, 1)

    def y(self, tokens: int) -> float:
        return round(BASE - (BASE - TOP) * tokens / self.most, 1)

    def point(self, step: int, tokens: int) -> Point:
        return Point(self.x(step), self.y(tokens))


@dataclass(frozen=True)
class _Curve:
    lines: list[list[Point]]
    falls: list[Fall]
    turns: list[tuple[float, int]]
    """For each call, where it is and its turn."""


def _curve(
    calls: Sequence[_Call],
    records: Sequence[Compaction],
    undone: Collection[str],
    scale: _Scale,
) -> _Curve:
    """Return the curve. A compaction comes before the first call that is made with at least as many
    messages as the thread had then.
    """
    curve = _Curve([[]], [], [])
    waiting = list(enumerate(records, 1))
    step = 0
    for call in [*calls, None]:
        while waiting and (call is None or waiting[0][1]["length"] <= call.messages):
            number, record = waiting.pop(0)
            fall = _fall(number, record, undone, step, scale)
            curve.falls.append(fall)
            curve.lines[-1].append(fall.top)
            curve.lines.append([fall.bottom])
            step += 1
        if call is not None:
            point = scale.point(step, call.tokens)
            curve.lines[-1].append(point)
            curve.turns.append((point.x, call.turn))
            step += 1
    return curve


def _points(line: Sequence[Point]) -> str:
    """Return a line as the attribute `points` of an SVG polyline."""
    return " ".join(f"{x},{y}" for x, y in line)


def _ticks(turns: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """Return at most five turns that are about evenly apart, with the place of their first call."""
    first: dict[int, float] = {}
    for x, turn in turns:
        first.setdefault(turn, x)
    places = [(x, turn) for turn, x in first.items() if turn]
    apart = (RIGHT - LEFT) / 5
    ticks: list[tuple[float, int]] = []
    for x, turn in places:
        if not ticks or x - ticks[-1][0] >= apart:
            ticks.append((x, turn))
    return tuple(ticks)
