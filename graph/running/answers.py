"""The answer of a turn, made from the turn's events."""

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
    Verified,
    largest_usage,
    verified_queries,
)
from longtable.graph.export.export_text import safe_html
from longtable.graph.running.thread_runner import DrawChart
from longtable.tools.cells import clip, html_table
from longtable.tools.charts.pictures import Chart, embedded_svg

CompactionEvent = ContextCompressed | ContextCompactionSkipped


@dataclass(frozen=True)
class Answer:
    """The result of one turn.

    `status` is "answered" if a model answered. It is the code of a notice if a notice stands in
    place of an answer. It is "approval_requested" or "input_requested" if the turn waits for
    `Conversation.resume`. It is "steered" if the message joined `turn`, which another caller runs
    and whose answer goes to this caller. It is empty if `resume` found no turn to continue.
    """

    text: str
    status: AnswerStatus
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None
    """The count of the turn's newest model call. For a team, it is the count of the voice that uses
    the largest share of its limit.
    """
    tokens: ReportedTokens | None = None
    """Of the turn's model calls, as the provider reported them. None if it reports none."""
    recalls: int = 0
    """How often original messages were brought back during this turn."""
    unsupported_numbers: list[str] = field(default_factory=list)
    """Figures in the answers of the turn, as written, that are in no result of the turn. For a
    team, `voices` has the figures of each voice.
    """
    verified: list[Verified] = field(default_factory=list)
    """The verified queries that the turn's queries equal but for parameters. Empty unless all of
    its queries that gave a result are verified ones.
    """
    charts: list[ChartShown] = field(default_factory=list)
    """The charts of the turn. `Conversation.chart(handle, spec)` draws one."""
    voices: list[SpokenAnswer] = field(default_factory=list)
    """The answer of each voice of a team, in order. `text` is the last of them. In a workflow whose
    last step judges, `text` begins with the first step's answer.
    """
    compactions: list[CompactionEvent] = field(default_factory=list)
    """The compactions made for this turn, or the reasons why none was made. A compaction that runs
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
        """Remember how a notebook draws the charts of the answer. The function is kept outside the
        fields, because a copy or a pickle has no use for it.
        """
        vars(self)["_draw"] = draw
        return self

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_draw"}

    def _repr_html_(self) -> str:
        text = safe_html(self.text)
        return text + self._rows_html(shown="<table" in text) + "".join(self._pictures())

    def _rows_html(self, *, shown: bool) -> str:
        """Return the newest result as a table with its SQL. If `shown` is True, the text already
        shows the rows in a table, so only the SQL is returned.
        """
        last = self.queries[-1] if self.queries else None
        if last is None or not last["columns"]:
            return ""
        if shown:
            return f"<p>{html.escape(last['sql'])}</p>"
        return html_table(last["columns"], last["rows"], below=last["sql"])

    def _pictures(self) -> Iterator[str]:
        """Yield each chart whose rows are still available, as SVG. Without the extra `charts`, a
        chart is shown as text.
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
    """Return the answer of the first turn in a stream. Later turns in it answer messages that other
    callers left.
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
        verified=verified_queries(turn),
        charts=[event for event in turn if event["type"] == "chart"],
        voices=answer.get("voices", []) if answer is not None else [],
        compactions=compactions_in(events),
    )


def compactions_in(events: Sequence[Event]) -> list[CompactionEvent]:
    """Return the events of a stream about compactions, including those about skipped
    compactions.
    """
    return [
        event
        for event in events
        if event["type"] == "context_compressed" or event["type"] == "context_compaction_skipped"
    ]


def compaction_of(events: Sequence[Event]) -> CompactionEvent | None:
    """Return the outcome of a compaction that a person asked for. Return None if there is no such
    event, because the thread is empty.
    """
    return next(iter(compactions_in(events)), None)


def _is_restart(event: Event) -> bool:
    """Return whether the event says that another run overtook the turn. The turn's earlier events
    are then void.
    """
    overtaken = event["type"] == "model_retry" and event["code"] == ThreadBusyError.code
    return overtaken and not event.get("in_place")
