"""Parse, join, merge, check and shorten Markdown artifacts. The sections of an artifact cite the
messages that they come from.

A section is a line "## title <!-- sources: m3-m5, m9 -->" with its text under it. Sources are
places in the transcript.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import getitem, itemgetter

from longtable.base.words import fold
from longtable.memory.counting.tokens import levels_that_fit

MOST_SOURCES = 200_000
"""Most messages that are read from one list of sources, so that "m1-m999999999" does no harm."""
NOTES = "Notes"
EARLIER = {"en": "Earlier", "zh": "更早的内容"}
FENCE = "```"

Count = Callable[[str], int]

_HEADING = re.compile(r"^ {0,3}##(?=\s|$)(?P<title>.*)$")
_CITED = re.compile(r"<!--\s*(?:sources?|来源)\s*[:：](?P<sources>[^>]*?)-->\s*$", re.IGNORECASE)
_NUMBERS = re.compile(r"(?<!\d)(\d{1,9})(?!\d)(?:\s*[-–—~至到]\s*[mM]?(\d{1,9})(?!\d))?")
_UNPRINTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Section:
    """One part of an artifact: its title, the numbers of the messages it comes from (ascending),
    and its Markdown text.
    """

    title: str
    sources: tuple[int, ...]
    body: str


# -- parse and join --------------------------------------------------------------------------------


def sections(artifact: str) -> list[Section]:
    """Read an artifact. Text before the first heading becomes a section "Notes". The output of
    `join` is read back exactly.
    """
    sections_read: list[tuple[str, list[str]]] = []
    for line in artifact.split("\n"):
        if match := _HEADING.match(line):
            sections_read.append((match["title"], []))
        elif sections_read:
            sections_read[-1][1].append(line)
        elif line.strip():
            sections_read.append((NOTES, [line]))
    return [_section(title, body) for title, body in sections_read]


def join(parts: Iterable[Section]) -> str:
    """Write sections as one artifact, each cleaned first."""
    return "\n\n".join(_write(clean(part)) for part in parts)


def clean(part: Section) -> Section:
    """Return a section that can be written and read back without change: headings and comments
    within its title and text are defused, and code fences are closed.
    """
    title = " ".join(_plain(part.title).split()) or NOTES
    lines = [_demoted(line.rstrip()) for line in _plain(part.body).splitlines()]
    body = "\n".join(lines).strip("\n")
    if sum(_is_fence(line) for line in lines) % 2:
        body += f"\n{FENCE}"
    return Section(title, tuple(sorted({n for n in part.sources if n > 0})), body)


def read_sources(text: str) -> tuple[int, ...]:
    """Read "m3-m5, m9" as (3, 4, 5, 9)."""
    pairs = sorted(
        (int(a), int(b or a)) if int(b or a) >= int(a) else (int(b), int(a))
        for a, b in _NUMBERS.findall(text)
    )
    numbers: list[int] = []
    for first, last in pairs:
        start = max(first, numbers[-1] + 1 if numbers else 1)
        numbers += range(start, min(last, start + MOST_SOURCES - len(numbers) - 1) + 1)
    return tuple(numbers)


def write_sources(sources: Iterable[int]) -> str:
    """Write (3, 4, 5, 9) as "m3-m5, m9"."""
    return ", ".join(_run(first, last) for first, last in runs(sorted(set(sources))))


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each run of consecutive numbers."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        first = spans.pop()[0] if spans and spans[-1][1] == number - 1 else number
        spans.append((first, number))
    return spans


def _run(first: int, last: int) -> str:
    if first == last:
        return f"m{first}"
    return f"m{first}, m{last}" if last == first + 1 else f"m{first}-m{last}"


def _section(title: str, body: Sequence[str]) -> Section:
    cited = _CITED.search(title)
    lines = list(body)
    if cited is None:
        # Models also put the comment on the line below the heading.
        place = next((i for i, line in enumerate(lines) if line.strip()), None)
        if place is not None and (cited := _CITED.fullmatch(lines[place].strip())):
            del lines[place]
    else:
        title = title[: cited.start()]
    return clean(Section(title, read_sources(cited["sources"]) if cited else (), "\n".join(lines)))


def _write(part: Section) -> str:
    cited = f" <!-- sources: {write_sources(part.sources)} -->" if part.sources else ""
    return f"## {part.title}{cited}\n{part.body}".rstrip("\n")


def _plain(text: str) -> str:
    return _UNPRINTED.sub(" ", text).replace("<!--", "‹!--")


def _demoted(line: str) -> str:
    return line.replace("##", "###", 1) if _HEADING.match(line) else line


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(FENCE)


# -- merge and check -------------------------------------------------------------------------------


def merge_sections(parts: Iterable[Section]) -> list[Section]:
    """Merge sections that have the same title, in the place of the first of them."""
    merged: dict[str, Section] = {}
    for part in map(clean, parts):
        key = fold(part.title)
        merged[key] = _united(merged[key], part) if key in merged else part
    return list(merged.values())


def sources_of(artifact: str) -> set[int]:
    """Return the numbers of all messages that an artifact cites."""
    return cited_by(sections(artifact))


def cited_by(parts: Iterable[Section]) -> set[int]:
    """Return the numbers of all messages that these sections cite."""
    return set().union(*(part.sources for part in parts))


def _united(old: Section, new: Section) -> Section:
    there = {_key(unit) for unit in _units(old.body)}
    body = old.body
    for unit in _units(new.body):
        if _key(unit) not in there:
            there.add(_key(unit))
            # Two tables without a blank line between them would read as one.
            last = body.rpartition("\n")[2]
            both_are_tables = _is_row(unit) and _is_row(last)
            between = "\n\n" if both_are_tables else "\n"
            body = f"{body}{between}{unit}" if body else unit
    return clean(Section(old.title, (*old.sources, *new.sources), body))


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _key(unit: str) -> str:
    return " ".join(unit.split()).removeprefix("- ")


def _units(body: str) -> list[str]:
    """Split a text into units. A unit is a line, or a whole code block or table. A merge drops
    repeated units, but keeps repeated lines within a block or table.
    """
    units: list[list[str]] = []
    kind = ""
    for line in body.split("\n"):
        if kind == "code":
            units[-1].append(line)
            kind = "" if _is_fence(line) else kind
        elif _is_fence(line):
            units.append([line])
            kind = "code"
        elif _is_row(line) and kind == "table":
            units[-1].append(line)
        elif line.strip():
            units.append([line])
            kind = "table" if _is_row(line) else ""
        else:
            kind = ""
    return ["\n".join(unit) for unit in units]


# -- shorten ---------------------------------------------------------------------------------------


def fit_artifact(artifact: str, budget: int, count: Count, language: str = "en") -> str:
    """Shorten an artifact to `budget` tokens by `count`, oldest sections first. Sources are never
    dropped.

    Texts are cut to their first line, then to its first 60 characters, then to nothing. After that
    the oldest sections are joined into one. If the budget is too small even for the sources, the
    result is larger than the budget. Older versions of a topic still hold the whole text.
    """
    if count(artifact) <= budget:
        return artifact
    parts = sections(artifact)
    oldest = sorted(
        range(len(parts)), key=lambda place: (max(parts[place].sources, default=0), place)
    )
    forms = [_forms(parts[place]) for place in oldest]

    def costs_of(forms_of_part: Sequence[Section]) -> list[int]:
        return [count(_write(form)) + 2 for form in forms_of_part]

    costs = list(map(costs_of, forms))
    levels = levels_that_fit(
        len(parts), 3, lambda levels: sum(map(getitem, costs, levels)) <= budget
    )
    if levels is not None:
        return join(
            part
            for _, part in sorted(
                zip(oldest, map(getitem, forms, levels), strict=True), key=itemgetter(0)
            )
        )
    ordered = [each[-1] for each in forms]
    together = 2
    while count(
        shorter := join([_one(ordered[:together], language), *ordered[together:]])
    ) > budget and together < len(parts):
        together *= 2
    return shorter


def _forms(part: Section) -> list[Section]:
    """Return a section in four forms, each with a shorter text than the form before."""
    return [replace(part, body=body) for body in _shorter(part.body)]


def _shorter(body: str) -> tuple[str, str, str, str]:
    """Return a text in four lengths: whole, its first line, the first 60 characters of that line,
    and empty.
    """
    lines = [line for line in body.split("\n") if line.strip(" |:-") and not _is_fence(line)]
    first = body if not lines or lines[0] == body else _marked(lines[0])
    return body, first, first if len(first) <= 60 else _marked(first[:60]), ""


def _marked(line: str) -> str:
    return f"{line.rstrip(' …')} …"


def _one(parts: Sequence[Section], language: str) -> Section:
    titles = "; ".join(part.title[:40] for part in parts)
    return Section(
        EARLIER[language],
        tuple(chain.from_iterable(part.sources for part in parts)),
        _marked(titles[:300]) if titles[300:] else titles,
    )
