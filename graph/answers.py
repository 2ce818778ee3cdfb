"""What a turn or a compaction returns to whoever does not read its stream: made of the stream's events."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from longtable.base.errors import ThreadBusyError
from longtable.base.events import ChartShown, ContextCompressed, ContextUsage, Event, QueryFinished


@dataclass(frozen=True)
class Answer:
    """One turn's result.

    `status`: "answered", the code of the notice that stands for an answer, or what the turn waits for, "approval_requested" or
    "input_requested", for `Conversation.resume`. Or "steered": the message joined `turn`, which another caller runs and whose
    answer goes to them. Empty where `resume` had nothing to go on with.
    """

    text: str
    status: str
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None
    recalls: int = 0
    """How often originals were brought back for this turn."""
    unsupported_numbers: list[str] = field(default_factory=list)
    """Figures of the text that no result of the turn gives, as written."""
    charts: list[ChartShown] = field(default_factory=list)
    """Charts of the turn: `Conversation.chart(handle, spec)` draws each."""


def answer_of(events: Sequence[Event]) -> Answer:
    """Return the result of the first turn of a stream; later ones are of messages that others left."""
    answer = next((event for event in events if event["type"] == "answer"), None)
    before = events[: events.index(answer)] if answer is not None else events
    restarts = [place for place, event in enumerate(before) if _begins_again(event)]
    turn = before[restarts[-1] if restarts else 0 :]
    usage = [event for event in turn if event["type"] == "context_usage"]
    figures = [event["figures"] for event in turn if event["type"] == "unsupported_numbers"]
    return Answer(
        text=answer["text"] if answer is not None else "",
        status=answer["status"] if answer is not None else "",
        turn=answer["turn"] if answer is not None else 0,
        queries=[event for event in turn if event["type"] == "query_finished"],
        usage=usage[-1] if usage else None,
        recalls=sum(event["type"] == "recall" for event in turn),
        unsupported_numbers=figures[-1] if figures else [],
        charts=[event for event in turn if event["type"] == "chart"],
    )


def compaction_of(events: Sequence[Event]) -> ContextCompressed | None:
    """Return the compaction that a stream tells of, None where there was none."""
    return next((event for event in events if event["type"] == "context_compressed"), None)


def _begins_again(event: Event) -> bool:
    """Return whether another run overtook the turn, so that what it had done before is void."""
    overtaken = event["type"] == "model_retry" and event["code"] == ThreadBusyError.code
    return overtaken and not event.get("in_place")
