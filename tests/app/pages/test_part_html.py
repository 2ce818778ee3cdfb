"""Parts of a turn: SQL, tables, marks and notes."""

from typing import Any, cast

import pytest

from longtable.app.pages.part_html import (
    Part,
    TurnPlace,
    coloured_sql,
    marked_figures,
    note_of,
    numeric_columns,
    result_part,
)
from longtable.base.events import QueryFinished

PART = Part(TurnPlace("a b", "t1", "en"), "t1-1")


def test_sql_is_coloured_and_stays_the_same_text() -> None:
    html = coloured_sql("SELECT \"x\", 'it''s <b>' FROM t -- why & how\nWHERE n > 3.5")
    assert '<span class="sql-word">SELECT</span>' in html
    assert '<span class="sql-number">3.5</span>' in html
    assert '<span class="sql-comment">-- why &amp; how</span>' in html
    assert "<b>" not in html
    assert html.striptags() == "SELECT \"x\", 'it''s <b>' FROM t -- why & how WHERE n > 3.5"


@pytest.mark.parametrize(
    ("html", "figures", "marked"),
    [
        ("<p>12 and 120</p>", ["12"], 1),
        ("<p>1.12, 12.5, 12.</p>", ["12"], 1),
        ('<a href="12">12</a>', ["12"], 1),
        ("<p>5 %</p>", ["5 %", "5"], 1),
        ("<p>12</p>", [], 0),
    ],
)
def test_only_whole_figures_of_the_text_are_marked(
    html: str, figures: list[str], marked: int
) -> None:
    assert marked_figures(html, figures, "en").count("<mark") == marked


def test_numbers_are_told_by_their_first_value() -> None:
    assert numeric_columns([[None, "a", True], [1.5, "b", False]], 3) == [True, False, False]
    assert numeric_columns([], 1) == [False]


def result(**more: Any) -> str:
    event: Any = {"columns": ["n"], "rows": [[number] for number in range(300)], "row_count": 300}
    return result_part(PART, cast("QueryFinished", {**event, **more}))


def test_a_table_shows_200_rows_and_offers_the_rest() -> None:
    html = result(handle="r1")
    assert html.count("<tr>") == 201
    assert "200 of 300 shown" in html
    assert '/threads/a%20b/results/r1.csv"' in html


def test_a_result_that_was_not_kept_has_no_files_and_no_pages() -> None:
    html = result(not_kept="the disk is full")
    assert "the disk is full" in html
    assert "/results/" not in html


def test_rows_that_are_gone_say_so_in_place_of_the_table() -> None:
    html = result(handle="r1", rows=[], gone="deleted")
    assert "deleted" in html
    assert "<table>" not in html


COMPACTED = {
    "type": "context_compressed",
    "messages": 4,
    "original_tokens": 8_000,
    "compressed_tokens": 3_000,
    "writer": "code",
}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (COMPACTED, "Memory compacted: 4 messages, 8,000 to 3,000 tokens, by code."),
        ({**COMPACTED, "kind": "results"}, "Older results shortened: 8,000 to 3,000 tokens."),
        ({**COMPACTED, "undone": True}, "this was undone since"),
        ({"type": "recall", "found": 0, "turns": []}, ""),
        ({"type": "recall", "found": 2, "turns": [1, 3]}, "turns 1, 3"),
        ({"type": "context_passed", "passed": [{"cites": ["churn"]}]}, "churn"),
        ({"type": "context_passed", "passed": []}, ""),
        ({"type": "pins_changed", "pinned": [{"text": "in EUR"}], "ended": []}, "in EUR"),
        ({"type": "schema_changed", "changed": ["a"], "new": [], "gone": ["b"]}, "a, b"),
        ({"type": "steered", "id": "m", "text": "and May", "turn": 1}, "and May"),
        ({"type": "model_fallback", "model": "a", "fallback": "b", "code": ""}, "b is asked"),
        ({"type": "model_retry", "model": "a", "attempt": 1, "wait_s": 2.4, "code": ""}, "2 s"),
        ({"type": "unknown_mentions", "words": ["@x"], "known": ["ann"]}, "@x"),
        ({"type": "thread_waiting", "thread_id": "t"}, "waiting"),
        ({"type": "context_usage"}, ""),
    ],
)
def test_an_event_is_told_in_a_sentence_or_not_at_all(event: dict[str, Any], words: str) -> None:
    note = note_of(event, "en")
    assert words in note
    assert bool(words) == bool(note)
    assert bool(note_of(event, "zh")) == bool(words)
