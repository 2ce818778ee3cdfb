"""The marker is found however it is written, and taken out tidily."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.memory.answers import find, keywords_in, without

LONG = "The flights of May are shown below, one line for each carrier. " * 4


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("[NEED_CONTEXT: May delays]", "May delays"),
        ("Let me see. [need_context:May  delays ] Then", "May delays"),
        ("［NEED_CONTEXT：五月的延误］", "五月的延误"),
        ("【 Need Context : x 】", "x"),
        ("[NEED-CONTEXT: x]", "x"),
        ("[NEEDCONTEXT : x]", "x"),
        ('**[NEED_CONTEXT: "tail number"]**', "tail number"),
        ("[\nNEED_CONTEXT: x]", "x"),
        ("[NEED_CONTEXT:]", ""),
        ("[NEED_CONTEXT: cut off", "cut off"),
        ("[NEED_CONTEXT: cut by its line\nmore", "cut by its line"),
        ("[1] [NEED [NEED_CONTEXT: second] [NEED_CONTEXT: third]", "second"),
    ],
)
def test_a_marker_is_found(text: str, keyword: str) -> None:
    marker = find(text)
    assert marker is not None
    assert marker.keyword == keyword
    assert text[marker.start] in "[［【"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "see [the docs](https://x.y)",
        "[NEED_CONTEXT]",
        "NEED_CONTEXT: x",
        "[I need context: x]",
        "[NEED] CONTEXT: x",
        "[ ] todo: x",
    ],
)
def test_other_brackets_are_no_marker(text: str) -> None:
    assert find(text) is None
    assert without(text) == text


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("[NEED_CONTEXT: x]", ""),
        ("Before [NEED_CONTEXT: x] after", "Before after"),
        ("Before[NEED_CONTEXT: x]after", "Beforeafter"),
        ("Before. \n\n[NEED_CONTEXT: x]\n\n\nAfter.", "Before.\n\nAfter."),
        ("Before.\n[NEED_CONTEXT: x] \nAfter.", "Before.\n\nAfter."),
        ("Before.\n[NEED_CONTEXT: x] After.", "Before.\nAfter."),
        ("Only before \n [NEED_CONTEXT: x]\n", "Only before"),
        ("  [NEED_CONTEXT: x] Only after ", "Only after "),
        ("a **[NEED_CONTEXT: x]** b", "a b"),
        ("`[NEED_CONTEXT: x]`", ""),
        ('("[[NEED_CONTEXT: x]]")', ""),
        ("a [NEED_CONTEXT: x] [NEED_CONTEXT: y] b", "a b"),
        ("[NEED_CONTEXT: x\nAfter", "After"),
        ("一［NEED_CONTEXT：x］二", "一二"),
        ("**bold** [NEED_CONTEXT: x]", "**bold**"),
    ],
)
def test_a_marker_is_taken_out_tidily(text: str, rest: str) -> None:
    assert without(text) == rest


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "[",
            "［",
            "【",
            "]",
            "NEED",
            "_",
            " ",
            "CONTEXT",
            ":",
            "：",
            "need",
            "x",
            "\n",
            "**",
            "`",
            "[1]",
            "[NEED_CONTEXT: May]",
            "[NEED_C",
            "(u)",
            LONG,
            "五月",
        ]
    ),
    max_size=14,
).map("".join)
TEXTS = (
    FRAGMENTS
    | st.text(max_size=80)
    | st.tuples(st.just(LONG), FRAGMENTS, st.text(max_size=30)).map("".join)
)


@given(TEXTS)
def test_a_text_without_its_markers_has_none_and_one_without_any_stays_as_it_is(text: str) -> None:
    assert keywords_in(without(text)) == []
    assert bool(keywords_in(text)) == (find(text) is not None)
    assert find(text) is not None or without(text) == text


def test_the_keywords_of_all_markers_are_found_each_once() -> None:
    text = (
        "[NEED_CONTEXT: May] and [NEED_CONTEXT: 五月的延误]\n［need context：May］[NEED_CONTEXT:"
        " cut off"
    )
    assert keywords_in(text) == ["May", "五月的延误", "cut off"]
