"""The gauge says what the next call takes, in the figures of the event that reports it."""

from longtable.app.console.token_counts import usage_now
from longtable.app.pages.context.gauge_bar import BAR_UNITS, gauge_of
from longtable.memory.call_config import Parts
from longtable.memory.view import View
from tests.app.pages.context.panel_talk import data_of, long_talk
from tests.support.compacting import call_config
from tests.support.threads import values_of


def test_the_gauge_has_the_figures_of_the_terminal() -> None:
    conversation = long_talk(9)
    usage = usage_now(values_of(conversation), conversation.context)
    assert usage is not None
    gauge = data_of(conversation).gauge
    assert gauge.total == usage["calibrated"]
    assert gauge.limit == usage["limit"] == 3_000
    assert {part.name: part.tokens for part in gauge.parts if part.tokens} == {
        name: tokens for name, tokens in usage["parts"].items() if tokens
    }
    assert gauge.threshold_tokens == 1_800
    assert gauge.mark_x == 600


def test_the_parts_stand_side_by_side_and_end_at_the_limit() -> None:
    view = View([], Parts(system=100, tools=200, memory=300, messages=900))
    gauge = gauge_of(view, call_config(1_000))
    ends = [round(part.x + part.width, 1) for part in gauge.parts]
    assert [part.x for part in gauge.parts] == [0, *ends[:-1]]
    assert ends[-1] == BAR_UNITS
    assert gauge.level == "over"


def test_sizes_are_the_providers() -> None:
    view = View([], Parts(system=100, tools=0, memory=0, messages=200))
    gauge = gauge_of(view, call_config(1_000, factor=1.5))
    assert gauge.total == 450
    assert gauge.level == "near"
    assert gauge_of(view, call_config(1_000)).level == "calm"
