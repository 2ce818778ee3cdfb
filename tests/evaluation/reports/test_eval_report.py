"""The report for people, for programs and for CI."""

from xml.etree import ElementTree

import pytest

from longtable.evaluation.question_set import Bar
from longtable.evaluation.reports.comparing import compare
from longtable.evaluation.reports.eval_report import Report, escaped, percent
from longtable.evaluation.reports.junit import junit_xml
from longtable.evaluation.scoring import Verdict
from longtable.evaluation.turn_results import TurnResult


def result(
    verdict: Verdict = "right", dialogue: str = "d", turn: int = 1, **settings: object
) -> TurnResult:
    defaults: dict[str, object] = {"model": "m", "knowledge": False, "fingerprint": "f"}
    return TurnResult(
        dialogue=dialogue,
        turn=turn,
        question="How many <b>|`?",
        verdict=verdict,
        **{**defaults, **settings},  # type: ignore[arg-type]  # by name
    )


MIXED = [
    result("right", "a", 1, tags=("easy",), cost=0.25, input=10),
    result("wrong", "a", 2, tags=("easy",), cost=0.5, check="rows", wanted=[["n"], ["1"]]),
    result("right", "b", 1, tags=("hard",)),
    result("unscored", "c", 1, check="gold fails: x"),
    result("lucky", "e", 1, check="copy 1: rows", sql="SELECT ```"),
    result("failed", "f", 1, error="provider: \x00 gone"),
]


def test_shares_are_by_tag_turn_and_interaction() -> None:
    subject = Report(results=MIXED).as_json()["subjects"][0]
    assert subject["all"]["accuracy"] == 2 / 5
    assert (subject["all"]["interactions_right"], subject["all"]["interactions"]) == (1, 4)
    assert (subject["all"]["cost"], subject["all"]["input"]) == (0.75, 10)
    assert subject["by_tag"]["easy"]["accuracy"] == 0.5
    assert subject["by_tag"]["hard"]["accuracy"] == 1
    assert subject["by_turn"]["1"]["scored"] == 4
    assert subject["by_turn"]["2"]["accuracy"] == 0


def test_a_bar_is_held_against_each_subject() -> None:
    report = Report(results=MIXED, bar=Bar(questions=0.4, interactions=0.5))
    assert report.below_bar() == ["m: 25 % of interactions are right, the bar is 50 %"]
    nothing = Report(results=[result("unscored")], bar=Bar(questions=0))
    assert nothing.below_bar() == ["m: - of questions are right, the bar is 0 %"]


def test_a_share_is_never_rounded_up() -> None:
    assert [percent(share) for share in (0.9999, 1, 0.5, None)] == ["99.9 %", "100 %", "50 %", "-"]


def test_markdown_shows_each_miss_and_nothing_that_it_would_obey() -> None:
    text = Report(results=MIXED, problems=["q.toml:1: <x>"]).as_markdown()
    assert text.count("\n### ") == 3
    assert r"How many &lt;b\>\|\`?" in text
    assert "**lucky: copy 1: rows**" in text
    assert "````sql\nSELECT ```\n````" in text
    assert r"- q.toml:1: &lt;x\>" in text
    assert "| easy | 1 of 2 (50 %) |" in text


@pytest.mark.parametrize(
    ("hostile", "safe"),
    [
        ("![x](https://a.example/p.png)", r"\!\[x\](https&#58;//a.example/p.png)"),
        ("[x](javascript:a)", r"\[x\](javascript:a)"),
        ("# Title", r"\# Title"),
        ("1. one", r"1\. one"),
        ("- one", r"\- one"),
        ("> quote", r"\> quote"),
        ("www.a.example", r"www\.a.example"),
        ("a\\*b*_c_~~d~~", r"a\\\*b\*\_c\_\~\~d\~\~"),
        ("\x1b[31mred\x00\u202e", "red"),
        ("1.5 of -2", "1.5 of -2"),
        ("<img src=x>&", r"&lt;img src=x\>&amp;"),
    ],
)
def test_markdown_takes_hostile_text_literally(hostile: str, safe: str) -> None:
    assert escaped(hostile) == safe


def test_without_copies_nothing_is_known_of_luck() -> None:
    summary = Report(results=[result("right"), result("right", model="n", copies=3)]).as_markdown()
    rows = [line.split("|") for line in summary.splitlines() if line.startswith(("| m ", "| n "))]
    assert [row[4].strip() for row in rows] == ["-", "0"]


def test_junit_has_a_case_for_each_turn() -> None:
    root = ElementTree.fromstring(junit_xml(Report(results=MIXED)))
    [suite] = root
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "2", "1", "1"]
    messages = [child.get("message") for case in suite for child in case]
    assert messages[0] == "wrong: rows"
    assert messages[-1] == "provider: \ufffd gone"


def test_a_comparison_leaves_out_changed_questions() -> None:
    before = [
        result("wrong", "fixed"),
        result("right", "broken"),
        result("lucky", "same"),
        result("right", "edited", fingerprint="old"),
        result("right", "gone"),
        result("unscored", "silent"),
    ]
    now = [
        result("right", "fixed"),
        result("wrong", "broken"),
        result("wrong", "same"),
        result("wrong", "edited"),
        result("wrong", "new"),
        result("wrong", "silent"),
    ]
    [changes] = compare(before, Report(results=now))
    names = {
        "better": [pair[1].dialogue for pair in changes.better],
        "worse": [pair[1].dialogue for pair in changes.worse],
        "changed": [each.dialogue for each in changes.changed],
        "new": [each.dialogue for each in changes.new],
        "gone": [each.dialogue for each in changes.gone],
    }
    assert names == {
        "better": ["fixed"],
        "worse": ["broken"],
        "changed": ["edited"],
        "new": ["new"],
        "gone": ["gone"],
    }
    assert changes.shares == (1 / 3, 1 / 3)


def test_two_single_subjects_are_compared_whatever_their_names() -> None:
    [changes] = compare([result("wrong", model="old")], Report(results=[result("right")]))
    assert (changes.before, changes.label, len(changes.better)) == ("old", "m", 1)
    two = Report(results=[result(), result(model="n")])
    assert compare([result("wrong", model="old")], two) == []
