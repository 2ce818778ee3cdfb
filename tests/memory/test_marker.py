"""The marker is found however it is written, taken out tidily, and never shown, however the stream is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.memory.marker import DRAFT_CHARS, MarkerScanner, find, without

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


def stream(pieces: list[str]) -> tuple[list[str], str, MarkerScanner]:
    held = MarkerScanner()
    shown = [held.feed(piece) for piece in pieces]
    rest, _ = held.close()
    return shown, rest, held


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
TEXTS = FRAGMENTS | st.text(max_size=80) | st.tuples(st.just(LONG), FRAGMENTS, st.text(max_size=30)).map("".join)


@st.composite
def cut(draw: st.DrawFn) -> list[str]:
    """Draw a text and cut it anywhere, some pieces empty."""
    text = draw(TEXTS)
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=30)))
    return [text[a:b] for a, b in zip([0, *edges], [*edges, len(text)], strict=True)]


@given(cut())
def test_shown_and_rest_are_the_text_without_its_markers(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown, rest, held = stream(pieces)
    assert held.whole == text
    assert held.close()[1] == find(text)
    if "".join(shown) + rest != without(text):
        # Fragments around a marker that make another: what was shown stays, and no marker is in the rest.
        assert find(text) is not None
        assert text.startswith("".join(shown))
        assert find("".join(rest)) is None
    if find(text) is None:
        assert "".join(shown) + rest == text


@given(cut())
def test_nothing_of_a_marker_is_shown_and_no_short_draft_before_one(pieces: list[str]) -> None:
    text = "".join(pieces)
    shown = "".join(stream(pieces)[0])
    assert text.startswith(shown)
    if (marker := find(text)) is not None:
        assert len(shown) <= marker.start
        if marker.end <= DRAFT_CHARS:
            assert shown == ""
    assert shown == "" or len(text) > DRAFT_CHARS


@given(cut())
def test_how_a_text_is_cut_does_not_change_what_is_answered(pieces: list[str]) -> None:
    text = "".join(pieces)
    by_characters, rest, held = stream(list(text))
    assert held.close()[1] == find(text)
    if find(text) is None:
        assert "".join(by_characters) + rest == text


@pytest.mark.parametrize("cuts", range(1, 24))
def test_a_marker_is_held_back_at_every_cut(cuts: int) -> None:
    marker = "[NEED_CONTEXT: May]"
    shown, rest, held = stream([LONG, marker[:cuts], marker[cuts:], " and more " * 50])
    assert "".join(shown) == LONG.rstrip()
    assert rest == " " + ("and more " + " and more " * 49)
    assert held.close()[1] is not None


@pytest.mark.parametrize("text", ["see [1] for more", "a [link](https://x.y/z) here", "[x] done", "[NEED a plane] is", "[NEED_CONTEXT] it"])
def test_other_brackets_flow_on_as_soon_as_they_can_be_no_marker(text: str) -> None:
    held = MarkerScanner()
    assert held.feed(LONG + ".") == LONG + "."
    assert "".join(held.feed(character) for character in text) == text
    assert held.close() == ("", None)


def test_a_short_answer_comes_whole_at_its_end_and_a_long_one_flows() -> None:
    held = MarkerScanner()
    assert [held.feed("6,200 "), held.feed("flights.")] == ["", ""]
    assert held.close() == ("6,200 flights.", None)
    held = MarkerScanner()
    words = [f"word{n} " for n in range(100)]
    shown = [held.feed(word) for word in words]
    assert sum(map(len, shown)) >= len("".join(words)) - 1
    assert sum(1 for piece in shown if piece) > 70


def test_half_of_a_marker_at_the_very_end_is_shown_when_nothing_follows() -> None:
    held = MarkerScanner()
    assert held.feed(LONG + "[NEED_C") == LONG.rstrip()
    assert held.close() == (" [NEED_C", None)


def test_a_long_run_of_blanks_is_not_held_for_ever() -> None:
    hold = MarkerScanner()
    hold.feed("word " * 100)
    shown = [len(hold.feed(" ")) for _ in range(5_000)]
    assert sum(shown) > 4_500
