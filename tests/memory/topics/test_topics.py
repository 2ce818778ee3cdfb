"""Topics: versions, the section for a keyword, the text for the view."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtable.memory.counting.tokens import counter
from longtable.memory.topics.artifacts import Section, join
from longtable.memory.topics.topics import (
    Topic,
    current,
    find_section,
    next_number,
    render_topics,
    versions,
)

count = counter("o200k_base").text


def topic(
    number: int, title: str, *parts: Section, turn: int = 1, version: int = 1, summary: str = ""
) -> Topic:
    return Topic(
        f"t{number}",
        version,
        title,
        summary,
        join(parts),
        (f"id{number}",),
        turn,
        "2026-01-01T00:00:00",
    )


SHELF = [
    topic(
        1,
        "Departure delays",
        Section("Mean delay by carrier", (1, 2, 3), "F9 is worst with 20.2 minutes."),
        Section("JFK in February", (4, 5), "| origin | delay |\n|---|---|\n| JFK | 12.1 |"),
        summary="delays; carriers; JFK",
    ),
    topic(
        2,
        "二月的天气",
        Section("降雨与能见度", (10, 11), "能见度最低 0.06 英里。"),
        Section("风速", (14,), "最大 32 节。"),
        turn=5,
    ),
    topic(
        3,
        "Planes",
        Section(
            "Age of the fleet",
            (20, 21),
            "The oldest plane is from 1956; delay is not linked to age.",
        ),
        turn=3,
    ),
]

TOPICS = st.lists(
    st.builds(
        lambda number, version, title, body, turn: topic(
            number,
            title,
            Section(title, (number, number + 30), body),
            turn=turn,
            version=version,
            summary=body[:40],
        ),
        st.integers(1, 8),
        st.integers(1, 3),
        st.text(max_size=20),
        st.integers(0, 60).map(lambda n: "words 词 " * n),
        st.integers(0, 9),
    ),
    max_size=12,
)


def test_a_topic_survives_json() -> None:
    for each in SHELF:
        assert Topic.from_json(json.loads(json.dumps(each.as_json()))) == each
    assert Topic.from_json({**SHELF[0].as_json(), "later": 1}) == SHELF[0]


def test_the_latest_version_is_current_and_all_are_kept() -> None:
    log = [
        SHELF[0],
        SHELF[1],
        topic(1, "Departure delays", version=2),
        SHELF[2],
        topic(2, "天气", version=2),
    ]
    assert [(t.id, t.version) for t in current(log)] == [("t1", 2), ("t2", 2), ("t3", 1)]
    assert [t.version for t in versions(log, "t1")] == [1, 2]
    assert versions(log, "t9") == []
    assert next_number(log) == 4
    assert next_number([]) == 1


@pytest.mark.parametrize(
    ("keyword", "id", "title"),
    [
        ("JFK in February", "t1", "JFK in February"),
        ("jfk IN  february ", "t1", "JFK in February"),
        ("ＪＦＫ", "t1", "JFK in February"),
        ("ｆｌｅｅ", "t3", "Age of the fleet"),
        ("fleet", "t3", "Age of the fleet"),
        ("delay", "t1", "Mean delay by carrier"),  # a title beats the text of a topic used later
        ("1956", "t3", "Age of the fleet"),
        ("F9", "t1", "Mean delay by carrier"),
        ("planes", "t3", "Age of the fleet"),
        ("降雨", "t2", "降雨与能见度"),
        ("风", "t2", "风速"),
        ("能见度最低", "t2", "降雨与能见度"),
        ("二月的天气", "t2", "风速"),  # a topic's title: its newest section
        ("average delays per carrier", "t1", "Mean delay by carrier"),
        ("天气能见度", "t2", "降雨与能见度"),
    ],
)
def test_a_keyword_finds_its_section(keyword: str, id: str, title: str) -> None:
    found = find_section(SHELF, keyword)
    assert found is not None
    assert (found.topic.id, found.section.title) == (id, title)


def test_an_exact_title_comes_before_a_longer_one_and_a_topics_title_before_text_elsewhere() -> (
    None
):
    hits = [
        topic(
            1,
            "Planes",
            Section("Delay", (1,), "x"),
            Section("Fares", (3,), "prices of planes"),
            Section("Seats", (9,), "y"),
            turn=1,
        ),
        topic(
            2,
            "Other",
            Section("Delay by carrier", (5,), "z"),
            Section("Late", (6,), "planes"),
            turn=9,
        ),
    ]
    for keyword, title in (
        ("delay", "Delay"),
        ("planes", "Fares"),
        ("delay by", "Delay by carrier"),
        ("plane", "Fares"),
    ):
        found = find_section(hits, keyword)
        assert found is not None
        assert found.section.title == title


@pytest.mark.parametrize("keyword", ["", "  ", "quarterly revenue", "退款", "?"])
def test_a_keyword_of_nothing_finds_nothing(keyword: str) -> None:
    assert find_section(SHELF, keyword) is None
    assert find_section([], "delay") is None


def test_only_the_current_version_is_found() -> None:
    log = [*SHELF, topic(3, "Planes", Section("Seats", (30,), "A319 has 145."), version=2)]
    assert find_section(log, "1956") is None
    found = find_section(log, "A319")
    assert found is not None
    assert found.section.sources == (30,)


@settings(deadline=None)
@given(TOPICS, st.integers(0, 900), st.sampled_from(["en", "zh"]))
def test_the_text_never_passes_its_budget(topics: list[Topic], budget: int, language: str) -> None:
    text = render_topics(topics, budget, count, language)
    assert count(text) <= budget
    assert render_topics(topics, budget, count, language) == text


def test_the_least_recently_used_topic_shrinks_first_and_then_only_its_title_is_left() -> None:
    uses = {1: 9, 2: 3, 3: 6}
    long = [
        topic(
            n,
            f"Subject {n}",
            Section("S", (n,), f"body{n} " * 60),
            turn=turn,
            summary=f"gist{n} of all that was said of this subject",
        )
        for n, turn in uses.items()
    ]
    everything = render_topics(long, 10_000, count, "en")
    assert all(f"body{n}" in everything for n in uses)
    some = render_topics(long, 350, count, "en")
    assert "gist2" in some
    assert "body2" not in some
    assert "body1" in some
    assert "body3" in some
    # In the order they came up: the text before stays as it was.
    assert some.index("(t1)") < some.index("(t2)") < some.index("(t3)")
    less = render_topics(long, 52, count, "en")
    assert "body" not in less
    assert "gist1" in less
    assert "gist2" not in less
    assert "1 more topics: Subject 2" in less
    assert render_topics(long, 3, count, "en") == ""
    assert "另有 1 个主题：Subject 2" in render_topics(long, 52, count, "zh")


def test_hundreds_of_topics_leave_a_line_that_counts_them() -> None:
    many = [
        topic(
            n, f"Subject {n} with a long title", Section("S", (n,), "body"), turn=n, summary="gist"
        )
        for n in range(1, 400)
    ]
    text = render_topics(many, 500, count, "en")
    assert count(text) <= 500
    assert f"{399 - text.count('gist')} more topics" in text
    assert "(t399)" in text


def test_no_topics_no_text() -> None:
    assert render_topics([], 100, count, "en") == ""
