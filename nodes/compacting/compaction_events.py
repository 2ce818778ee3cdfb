"""The events and the state update of a compaction."""

import time

from longtable.base.errors import Reason
from longtable.base.events import ContextCompactionSkipped, ContextCompressed
from longtable.memory.compaction.compaction import TOO_LITTLE, Outcome
from longtable.memory.policy import WINDOW
from longtable.memory.records import Compaction, CompactionReport, is_results, writer_of
from longtable.nodes.state import Now, Turn, Update, pins_changed


def compaction_update(
    now: Now,
    outcome: Outcome | None,
    started: float,
    *,
    ahead: bool = False,
    whole: int = 0,
) -> Update:
    """Send the events of a compaction's outcome, and return its state update.

    `ahead`: True if the compaction was made after an answer, for the next turn. `whole`: with a
    team, the tokens of the voice's call before which the compaction was due, otherwise 0.
    """
    turn = now.turn
    emit = now.runtime.stream_writer
    outcome = outcome or Outcome(None, [_nothing_left(now)])
    made: list[Compaction] = []
    for record in filter(None, (outcome.results, outcome.record)):
        own = outcome if record is outcome.record else Outcome(record, [])
        reported: Compaction = {**record, "report": _report(own, started, ahead=ahead)}
        emit(compressed_event(reported))
        made.append(reported)
    if outcome.record is None and (outcome.reasons or not made):
        emit(_skipped(outcome))
        waits = _waits(turn, outcome, whole)
        return (
            {"compactions": made, "turn": {**turn, **waits}}
            if made
            else {"turn": {**turn, **waits}}
        )
    record = made[-1]
    if record["pins"] or record.get("ended"):
        emit(pins_changed(record["pins"], record.get("ended", ())))
    return {"compactions": made, "turn": {**turn, "breaker": None}}


def _report(outcome: Outcome, started: float, *, ahead: bool) -> CompactionReport:
    ms = round((time.perf_counter() - started) * 1000)
    report = CompactionReport(ms=ms, reasons=outcome.reasons, ahead=ahead)
    if outcome.archive:
        report["archive"] = outcome.archive
    return report


NO_REPORT = CompactionReport(ms=0, reasons=[], ahead=False)
"""What is known of how a compaction of an older version went."""


def compressed_event(record: Compaction) -> ContextCompressed:
    """Return the event of a compaction, from its record."""
    report = record.get("report", NO_REPORT)
    spent = record.get("spent", ())
    event = ContextCompressed(
        type="context_compressed",
        id=record["id"],
        original_tokens=record["tokens_before"],
        compressed_tokens=record["tokens_after"],
        messages=record["folded"],
        strategy=record["strategy"],
        method=record["method"],
        writer=writer_of(record),
        why_by_code=record.get("why_by_code", ""),
        input=sum(call["input"] for call in spent),
        output=sum(call["output"] for call in spent),
        coverage=record["coverage"],
        rebuilt=record["rebuilt"],
        ahead=report["ahead"],
        reasons=report["reasons"],
        ms=report["ms"],
    )
    if is_results(record):
        event["kind"] = "results"
    if topics := (record.get("kept") or {}).get("topics"):
        event["topics"] = {topic["id"]: topic["title"] for topic in topics}
    if "archive" in report:
        event["archive"] = report["archive"]
    return event


def _skipped(outcome: Outcome) -> ContextCompactionSkipped:
    """Return the event of a compaction that was due but did not succeed."""
    event = ContextCompactionSkipped(type="context_compaction_skipped", reasons=outcome.reasons)
    if outcome.calls:
        event["input"] = sum(call["input"] for call in outcome.calls)
        event["output"] = sum(call["output"] for call in outcome.calls)
    return event


def _waits(turn: Turn, outcome: Outcome, whole: int) -> Turn:
    """Return the fields of a turn's record that note at which size a compaction did not succeed.
    The next attempt waits until the call has grown beyond that size.
    """
    # A voice may be shown more than the view that serves all: counted from there, the same would be
    # tried for ever.
    tokens = max(outcome.tokens, whole)
    waits: Turn = {"skipped": tokens}
    if not any(reason["code"] in (TOO_LITTLE, *NOTHING_LEFT) for reason in outcome.reasons):
        waits = {"breaker": tokens or turn.get("breaker")}
    return waits


def _nothing_left(now: Now) -> Reason:
    """Return why there is nothing to compact."""
    policy = now.config.get("policy") or {}
    if policy.get("strategy") == WINDOW:
        return WINDOW_ONLY
    return ALL_COMPACTED if now.thread.newest else NOTHING


NOTHING = Reason(
    code="nothing_to_fold",
    message="the newest round stays word for word, and there is no other yet",
)


ALL_COMPACTED = Reason(
    code="all_compacted",
    message="all but the newest rounds is compacted already; those stay word for word",
)


WINDOW_ONLY = Reason(
    code="window_only", message="the policy is a sliding window, which compacts nothing"
)


NOTHING_LEFT = (NOTHING["code"], ALL_COMPACTED["code"], WINDOW_ONLY["code"])
