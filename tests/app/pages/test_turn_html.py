"""A turn's HTML is a function of its events: what a stream makes is what a reload shows."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.app.pages.part_html import TurnPlace
from longtable.app.pages.turn_html import (
    TurnPainter,
    body_html,
    changes_html,
    complete_block,
    sse_data,
)
from longtable.base.events import Event, QueryFinished
from tests.app.pages.served_pages import HOSTILE, shown_body

PLACE = TurnPlace("thread", "t1", "en")
QUERY: QueryFinished = {
    "type": "query_finished",
    "call_id": "c1",
    "name": "run_sql",
    "status": "success",
    "ms": 3,
    "sql": f"SELECT '{HOSTILE}'",
    "columns": [HOSTILE, "n"],
    "rows": [[HOSTILE, 12], [None, 13]],
    "row_count": 2,
    "handle": "r1",
}
EVENTS: list[Event] = [
    {"type": "voice_started", "voice": "a", "name": HOSTILE, "color": HOSTILE},
    {"type": "reasoning", "text": f"hm {HOSTILE}"},
    {"type": "query_started", "call_id": "c1", "name": "run_sql", "sql": "SELECT 1"},
    QUERY,
    {"type": "chart", "call_id": "c2", "handle": "r1", "spec": {"title": HOSTILE}, "notes": []},
    {"type": "token", "text": f"**Bold** {HOSTILE} 12\n"},
    {"type": "token", "text": "\n| a |\n|---|\n| 99 |"},
    {"type": "steered", "id": "m", "text": HOSTILE, "turn": 1},
    {"type": "unsupported_numbers", "turn": 1, "figures": ["99"]},
    {"type": "answer", "text": "", "status": "answered", "turn": 1},
]


def streamed(events: list[Event]) -> str:
    painter = TurnPainter(PLACE)
    messages = [
        sse_data(changes_html(painter.take(event), PLACE), str(number))
        for number, event in enumerate(events, 1)
    ]
    return shown_body("".join(messages))


def test_what_is_streamed_is_what_a_reload_shows() -> None:
    assert streamed(EVENTS) == body_html(EVENTS, PLACE)


def test_no_text_becomes_html() -> None:
    html = body_html(EVENTS, PLACE)
    assert "<img src=x" not in html
    assert html.count("&lt;img src=x onerror") >= 6


def test_an_update_sends_what_is_new() -> None:
    painter = TurnPainter(PLACE)
    painter.take({"type": "token", "text": "word " * 2_000})
    message = changes_html(painter.take({"type": "token", "text": "more"}), PLACE)
    assert "more" in message
    assert len(message) < 200


def test_a_figure_that_no_result_holds_is_marked_in_the_text() -> None:
    html = body_html(EVENTS, PLACE)
    assert re.search(r'<mark class="flag"[^>]*>99</mark>', html)
    assert "Not found in any result: 99" in html


def test_a_table_of_the_answer_after_a_query_is_folded() -> None:
    html = body_html(EVENTS, PLACE)
    assert '<details class="repeat">' in html
    without = [event for event in EVENTS if not event["type"].startswith("query")]
    assert '<details class="repeat">' not in body_html(without, PLACE)


def test_a_notice_that_no_token_told_is_shown() -> None:
    html = body_html(
        [{"type": "answer", "text": "No more calls.", "status": "call_budget", "turn": 2}], PLACE
    )
    assert "No more calls." in html


def test_a_query_that_waits_has_its_sql_and_the_two_decisions() -> None:
    html = body_html(
        [
            {
                "type": "approval_requested",
                "action_requests": [
                    {"name": "run_sql", "args": {"sql": "SELECT 7"}, "description": "It is costly."}
                ],
                "review_configs": [],
            },
            {"type": "answer", "text": "", "status": "approval_requested", "turn": 1},
        ],
        PLACE,
    )
    assert "SELECT 7" in html
    assert 'value="approve"' in html
    assert 'value="reject"' in html
    assert 'class="foot"' not in html


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("a", 0),
        ("a\n", 0),
        ("a\n\nb", 3),
        ("a\n \n\nb", 5),
        ("```\na\n\nb", 0),
        ("```\na\n\nb\n```\n\nc", 14),
        ("\n\n", 2),
    ],
)
def test_a_block_is_complete_when_nothing_later_can_change_it(text: str, length: int) -> None:
    assert complete_block(text) == length


@given(st.lists(st.text(alphabet="ab*`\n |-<&", max_size=8), max_size=12))
def test_in_whatever_pieces_text_comes_it_ends_the_same(pieces: list[str]) -> None:
    events: list[Event] = [{"type": "token", "text": piece} for piece in pieces if piece]
    end: Event = {"type": "answer", "text": "", "status": "answered", "turn": 1}
    whole: list[Event] = [{"type": "token", "text": "".join(pieces)}] if "".join(pieces) else []
    without_ids = re.compile(r'id="t1-\d+"')
    one = without_ids.sub("", body_html([*events, end], PLACE))
    other = without_ids.sub("", body_html([*whole, end], PLACE))
    assert one == other
    assert streamed([*events, end]) == body_html([*events, end], PLACE)
