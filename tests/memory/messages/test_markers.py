"""The marker is found however it is written, and taken out tidily."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.memory.messages.markers import find, keywords_in

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
        ("NEED_CONTEXT: x", "x"),
        ("need_context: x", "x"),
        ("NEED CONTEXT: x", "x"),
        ("Let me look. NEED_CONTEXT: zebra. Then I answer.", "zebra"),
        ("<NEED_CONTEXT: x>", "x"),
        ("<NEED_CONTEXT>x</NEED_CONTEXT>", "x"),
        ("(NEED_CONTEXT: x)", "x"),
        ("（NEED_CONTEXT：x）", "x"),
        ("{NEED_CONTEXT: x}", "x"),
        ("「NEED_CONTEXT：五月的延误」", "五月的延误"),
        ("【NEED_CONTEXT：x】", "x"),
        ("**NEED_CONTEXT: x**", "x"),
        ("**NEED_CONTEXT:** x", "x"),
        ("[**NEED_CONTEXT**: x]", "x"),
        ("`NEED_CONTEXT: x`", "x"),
        (r"NEED\_CONTEXT: x", "x"),
        ("[NEED_CONTEXT: the budget (2024)]", "the budget (2024)"),
        ("[1] [NEED [NEED_CONTEXT: second] [NEED_CONTEXT: third]", "second"),
    ],
)
def test_a_marker_is_found(text: str, keyword: str) -> None:
    marker = find(text)
    assert marker is not None
    assert marker.keyword == keyword
    assert (
        "context" not in f"{text[: marker.start]}{text[marker.end :]}".casefold() or "third" in text
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "see [the docs](https://x.y)",
        "[NEED_CONTEXT]",
        "NEED_CONTEXT",
        "I need context: x",
        "You need context (see above): x",
        "UNNEED_CONTEXT: x",
        "[I need context: x]",
        "[NEED] CONTEXT: x",
        "[ ] todo: x",
    ],
)
def test_other_words_and_brackets_are_no_marker(text: str) -> None:
    assert find(text) is None


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            "[",
            "NEED_CONTEXT",
            "(",
            "<",
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
def test_no_text_breaks_the_search_and_a_marker_is_a_part_of_it(text: str) -> None:
    marker = find(text)
    assert bool(keywords_in(text)) == (marker is not None)
    if marker:
        assert 0 <= marker.start < marker.end <= len(text)
        assert find(text[: marker.start]) is None


def test_the_keywords_of_all_markers_are_found_each_once() -> None:
    text = (
        "[NEED_CONTEXT: May] and [NEED_CONTEXT: 五月的延误]\n［need context：May］[NEED_CONTEXT:"
        " cut off"
    )
    assert keywords_in(text) == ["May", "五月的延误", "cut off"]
