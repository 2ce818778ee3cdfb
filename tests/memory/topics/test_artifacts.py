"""Artifacts: what is written reads back; a merge unites sources and repeats nothing; shortening
never drops a source.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtable.memory.counting.tokens import counter
from longtable.memory.topics.artifacts import (
    MOST_SOURCES,
    Section,
    clean,
    fit_artifact,
    join,
    merge_sections,
    read_sources,
    sections,
    sources_of,
    write_sources,
)

count = counter("o200k_base").text

NASTY = [
    "## a heading",
    "  ## indented",
    "##",
    "### fine",
    "<!-- sources: m99 -->",
    "text <!-- sources: m98 --> text",
    "```sql",
    "```",
    "SELECT 1",
    "| a | b |",
    "|---|---|",
    "",
    "  ",
    "\r",
    "x\x0by\u2028z\x85",
    "\ud800",
    "二月有 24,951 个航班。",
    "- a bullet",
]
LINES = st.one_of(st.sampled_from(NASTY), st.text(max_size=20))
BODIES = st.lists(LINES, max_size=6).map("\n".join)
TITLES = st.one_of(
    st.sampled_from(
        ["Delays", "delays ", "Weather", "延误", "## x", "a <!-- sources: m7 -->", "", "##"]
    ),
    st.text(max_size=12),
)
SECTIONS = st.lists(
    st.builds(Section, TITLES, st.lists(st.integers(1, 60), max_size=6).map(tuple), BODIES),
    max_size=5,
)
ARTIFACTS = SECTIONS.map(join)


@given(SECTIONS)
def test_what_is_joined_reads_back(parts: list[Section]) -> None:
    assert sections(join(parts)) == [clean(part) for part in parts]
    assert join(sections(join(parts))) == join(parts)


@given(st.text(alphabet="#m1-3<!> source:\n|`", max_size=80))
def test_any_text_reads_as_an_artifact_that_reads_back(text: str) -> None:
    assert sections(join(sections(text))) == sections(text)


@given(SECTIONS.flatmap(lambda parts: st.tuples(st.just(parts), st.permutations(parts))))
def test_the_words_of_a_section_cite_nothing_of_their_own(
    both: tuple[list[Section], list[Section]],
) -> None:
    parts, shuffled = both
    assert (
        sources_of(join(parts))
        == {n for part in parts for n in part.sources}
        == sources_of(join(shuffled))
    )


def merge(old: str, new: str) -> str:
    return join(merge_sections([*sections(old), *sections(new)]))


@given(ARTIFACTS, ARTIFACTS)
def test_a_merge_loses_no_source_invents_none_and_is_idempotent(old: str, new: str) -> None:
    merged = merge(old, new)
    assert sources_of(merged) == sources_of(old) | sources_of(new) == sources_of(merge(new, old))
    assert merge(merged, new) == merged
    assert merge(merged, merged) == merged
    assert merge(old, old) == merge(old, "")


@given(ARTIFACTS, ARTIFACTS)
def test_a_merge_keeps_every_line_of_text(old: str, new: str) -> None:
    def lines(artifact: str) -> set[str]:
        return {
            " ".join(line.split()).removeprefix("- ")
            for part in sections(artifact)
            for line in part.body.split("\n")
        } - {"", "```"}

    assert lines(old) | lines(new) <= lines(merge(old, new))


def test_a_merge_joins_same_titled_sections_in_order() -> None:
    old = (
        "## Delays <!-- sources: m1-m3 -->\nMean 12.6 min.\n\n## Planes <!-- sources: m4 -->\n3,322"
        " planes."
    )
    new = (
        "## Weather <!-- sources: m9 -->\nRain.\n\n## delays <!-- sources: m3, m8 -->\n- Mean 12.6"
        " min.\nWorst: EV."
    )
    assert (
        merge(old, new) == "## Delays <!-- sources: m1-m3, m8 -->\nMean 12.6 min.\nWorst: EV.\n\n"
        "## Planes <!-- sources: m4 -->\n3,322 planes.\n\n"
        "## Weather <!-- sources: m9 -->\nRain."
    )


def test_merged_sections_cite_the_sources_of_each_part() -> None:
    parts = [
        Section("Sales", (1, 2), "up"),
        Section("Other", (9,), "x"),
        Section("sales", (5,), "down"),
        Section("SALES", (3, 7), "up"),
    ]
    assert [part.sources for part in merge_sections(parts)] == [(1, 2, 3, 5, 7), (9,)]


def test_code_blocks_and_tables_are_merged_whole() -> None:
    one = "```sql\nSELECT a\nFROM flights\n```\n| x | y |\n|---|---|\n| 1 | 1 |"
    two = "```sql\nSELECT b\nFROM flights\n```\n| x | z |\n|---|---|\n| 1 | 1 |"
    [part] = merge_sections(
        [Section("Q", (1,), one), Section("Q", (2,), two), Section("Q", (2,), one)]
    )
    assert part.body == f"{one}\n{two}"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("m12, m13", (12, 13)),
        ("m3-m7", (3, 4, 5, 6, 7)),
        ("m7 - m3", (3, 4, 5, 6, 7)),
        ("[m2–5], 9; m1", (1, 2, 3, 4, 5, 9)),
        ("m3到m5、m8", (3, 4, 5, 8)),
        ("m5-m8, m6-m9, m7", (5, 6, 7, 8, 9)),
        ("m0, m" + "9" * 30, ()),
        ("", ()),
    ],
)
def test_sources_are_read_as_people_and_models_write_them(
    text: str, numbers: tuple[int, ...]
) -> None:
    assert read_sources(text) == numbers


@given(st.sets(st.integers(1, 400)))
def test_sources_read_back(numbers: set[int]) -> None:
    assert read_sources(write_sources(numbers)) == tuple(sorted(numbers))


def test_a_boundless_range_stays_bounded() -> None:
    assert len(read_sources("m1-m999999999, m5-m900000000, m999999990")) <= MOST_SOURCES


@pytest.mark.parametrize(
    "artifact",
    [
        "## T\n<!-- sources: m1, m2 -->\nbody",
        "## T <!-- Source: [m1], m2 -->\nbody",
        "## T <!--来源：m1-m2-->\nbody",
        "##  T <!-- sources: m1,m2 -->  \r\nbody\r",
    ],
)
def test_headings_are_read_as_models_write_them(artifact: str) -> None:
    assert sections(artifact) == [Section("T", (1, 2), "body")]


def test_words_before_the_first_heading_are_kept() -> None:
    assert sections("Here you are:\n\n## T <!-- sources: m1 -->\nbody")[0] == Section(
        "Notes", (), "Here you are:"
    )


@settings(deadline=None)
@given(ARTIFACTS, st.integers(0, 200))
def test_shortening_keeps_every_source_and_the_order_of_ages(artifact: str, budget: int) -> None:
    shorter = fit_artifact(artifact, budget, count)
    assert sources_of(shorter) == sources_of(artifact)
    if count(artifact) <= budget:
        assert shorter == artifact
    assert sections(join(sections(shorter))) == sections(shorter)


def test_an_artifact_over_its_budget_condenses_its_oldest_sections_first() -> None:
    parts = [
        Section(f"Part {n}", (n * 2, n * 2 + 1), f"Figure {n * 7}.\n" + "more words\n" * 30)
        for n in range(1, 9)
    ]
    whole = join(reversed(parts))
    for budget in (600, 300, 180, 60):
        shorter = fit_artifact(whole, budget, count)
        assert count(shorter) <= budget
        assert sources_of(shorter) == set(range(2, 18))
    first = sections(fit_artifact(whole, 500, count))
    assert next(p for p in first if p.title == "Part 1").body == "Figure 7. …"
    assert next(p for p in first if p.title == "Part 8").body.count("more words") == 30
    assert sections(fit_artifact(whole, 60, count))[0].title == "Earlier"
    assert sections(fit_artifact(whole, 60, count, "zh"))[0].title == "更早的内容"


def test_an_artifact_that_grows_for_ever_stays_within_its_budget() -> None:
    artifact = ""
    for n in range(120):
        artifact = fit_artifact(
            merge(
                artifact, join([Section(f"Question {n}", (n * 2 + 1, n * 2 + 2), "answer " * 30)])
            ),
            400,
            count,
        )
        assert count(artifact) <= 400
    assert sources_of(artifact) == set(range(1, 241))
