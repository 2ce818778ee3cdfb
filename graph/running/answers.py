"""A turn's answer, made of its events."""

import hashlib
import html
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

from longtable.base.errors import LongtableError, MissingExtraError, ThreadBusyError
from longtable.base.events import (
    AnswerStatus,
    ChartShown,
    ContextCompactionSkipped,
    ContextCompressed,
    ContextUsage,
    Event,
    QueryFinished,
    ReportedTokens,
    SpokenAnswer,
    largest_usage,
)
from longtable.graph.export.export_text import safe_html
from longtable.graph.running.thread_runner import DrawChart
from longtable.tools.cells import clip, html_table
from longtable.tools.charts.pictures import Chart, embedded_svg

CompactionEvent = ContextCompressed | ContextCompactionSkipped


@dataclass(frozen=True)
class Answer:
    """One turn's result.

    `status`: "answered", the code of the notice that stands for an answer, or what the turn waits
    for, "approval_requested" or "input_requested", for `Conversation.resume`. Or "steered": the
    message joined `turn`, which another caller runs and whose answer goes to them. Empty if
    `resume` found no turn to continue.
    """

    text: str
    status: AnswerStatus
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None
    """The newest count of a call; for a team, the count of the voice that uses the largest share of
    its limit.
    """
    tokens: ReportedTokens | None = None
    """Of the turn's model calls, as the provider reported them. None if it reports none."""
    recalls: int = 0
    """How often originals were brought back for this turn."""
    unsupported_numbers: list[str] = field(default_factory=list)
    """Figures of the turn's answers, as written, that no result of the turn gives. A team's figures
    by voice are in `voices`.
    """
    charts: list[ChartShown] = field(default_factory=list)
    """Charts of the turn: `Conversation.chart(handle, spec)` draws each."""
    voices: list[SpokenAnswer] = field(default_factory=list)
    """The answer of each voice of a team, in order. `text` is the last one; in a workflow whose
    last step judges, the first step's answer is put above it.
    """
    compactions: list[CompactionEvent] = field(default_factory=list)
    """The compactions for this turn, or the reasons why there was none. A compaction that runs
    after an answer is reported with the next answer.
    """

    def __repr__(self) -> str:
        return (
            f"<Answer {self.status}, turn {self.turn}, {len(self.queries)} queries:"
            f" {clip(' '.join(self.text.split()), 80)}>"
        )

    def __str__(self) -> str:
        """Return the text, so that `print(answer)` prints it."""
        return self.text

    def drawn_by(self, draw: DrawChart) -> Self:
        """Remember how a notebook draws the answer's charts. This is not a field, because a copy or
        a pickle has no use for it.
        """
        vars(self)["_draw"] = draw
        return self

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_draw"}

    def _repr_html_(self) -> str:
        text = safe_html(self.text)
        return text + self._rows_html(shown="<table" in text) + "".join(self._pictures())

    def _rows_html(self, *, shown: bool) -> str:
        """Return the newest result as a table with its SQL; only the SQL if the text has already
        `shown` the rows in a table.
        """
        last = self.queries[-1] if self.queries else None
        if last is None or not last["columns"]:
            return ""
        if shown:
            return f"<p>{html.escape(last['sql'])}</p>"
        return html_table(last["columns"], last["rows"], below=last["sql"])

    def _pictures(self) -> Iterator[str]:
        """Yield each chart whose rows are available, as SVG, or as text if the extra `charts` is
        not installed.
        """
        draw: DrawChart | None = vars(self).get("_draw")
        if draw is None:
            return
        for shown in self.charts:
            with suppress(LongtableError):
                yield _picture(draw(shown["handle"], shown["spec"]))


def _picture(chart: Chart) -> str:
    try:
        svg = chart.svg()
    except MissingExtraError:
        return f"<pre>{html.escape(chart.text())}</pre>"
    prefix = f"chart{hashlib.sha256(svg.encode()).hexdigest()[:12]}"
    return f"<figure>{embedded_svg(svg, prefix) or ''}</figure>"


def answer_of(events: Sequence[Event]) -> Answer:
    """Return the answer of the first turn of a stream; later turns are of messages that others
    left.
    """
    answer = next((event for event in events if event["type"] == "answer"), None)
    before = events[: events.index(answer)] if answer is not None else events
    restarts = [place for place, event in enumerate(before) if _is_restart(event)]
    turn = before[restarts[-1] if restarts else 0 :]
    figures = [event["figures"] for event in turn if event["type"] == "unsupported_numbers"]
    return Answer(
        text=answer["text"] if answer is not None else "",
        status=answer["status"] if answer is not None else "",
        turn=answer["turn"] if answer is not None else 0,
        queries=[event for event in turn if event["type"] == "query_finished"],
        usage=largest_usage(turn),
        tokens=answer.get("tokens") if answer is not None else None,
        recalls=sum(event["type"] == "recall" for event in turn),
        unsupported_numbers=list(dict.fromkeys(chain.from_iterable(figures))),
        charts=[event for event in turn if event["type"] == "chart"],
        voices=answer.get("voices", []) if answer is not None else [],
        compactions=compactions_in(events),
    )


def compactions_in(events: Sequence[Event]) -> list[CompactionEvent]:
    """Return the compaction events of a stream, also those of compactions that were skipped."""
    return [
        event
        for event in events
        if event["type"] == "context_compressed" or event["type"] == "context_compaction_skipped"
    ]


def compaction_of(events: Sequence[Event]) -> CompactionEvent | None:
    """Return the outcome of a compaction that a person asked for, None if the thread is empty."""
    return next(iter(compactions_in(events)), None)


def _is_restart(event: Event) -> bool:
    """Return whether another run overtook the turn, so that its earlier events are void."""
    overtaken = event["type"] == "model_retry" and event["code"] == ThreadBusyError.code
    return overtaken and not event.get("in_place")
