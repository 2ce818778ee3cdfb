"""The lasting events of a turn equal those that were streamed."""

from typing import get_args, get_type_hints

from longtable.base.events import Event
from longtable.graph.running.past_events import LASTING

PASSING = (
    "audit_failed",
    "context_compaction_skipped",
    "messages_retired",
    "model_retry",
    "team_turn",
    "thread_waiting",
    "unknown_mentions",
)


def test_each_type_of_event_lasts_or_is_named_as_passing() -> None:
    types = [get_args(get_type_hints(event)["type"])[0] for event in get_args(Event)]
    assert sorted(types) == sorted([*LASTING, *PASSING])
