"""Fit a summary that a model wrote into its budget: keep the most important lines, and fill unused
room with findings that the model left out.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from longtable.memory.pins.net import asks
from longtable.memory.summary.code_summary import (
    Skip,
    fallback_summary,
    is_codes_line,
    left_out_in,
)
from longtable.memory.summary.headings import MOST_CITED
from longtable.memory.summary.sources import Sources, content_words, figures
from longtable.memory.summary.summary_text import (
    CONSTRAINTS,
    DECISIONS,
    FACTS,
    PREFERENCES,
    cited_numbers,
    facts_in,
    findings_in,
    is_finding,
    join_sections,
    without_citations,
)
from longtable.memory.topics.artifacts import Count

# -- room ------------------------------------------------------------------------------------------

_WORTH = {CONSTRAINTS: 2, PREFERENCES: 1, DECISIONS: 1}
_QUOTED = re.compile(r"[\"“„].{6,}[\"”]|[「『].{4,}[」』]|‘.{4,}’")


def fitted(
    sections: Sequence[Sequence[str]], language: str, budget: int, count: Count
) -> list[list[str]]:
    """Return as many lines of each section as fit `budget` tokens, in their order.

    Constraints are kept first; then preferences, decisions and lines that quote somebody; then
    facts and open items. Within each of these groups, lines with a figure come before lines
    without, and newer lines (by the messages that they cite) before older ones.
    """
    room = budget - count(join_sections([[]] * len(sections), language))
    lines: list[tuple[int, int, str]] = []
    for place, section in enumerate(sections):
        lines += [(place, at, line) for at, line in enumerate(section)]

    def worth(item: tuple[int, int, str]) -> tuple[int, bool, int, int]:
        place, at, line = item
        section = max(_WORTH.get(place, 0), int(bool(_QUOTED.search(line))))
        return section, bool(figures(line)), max(cited_numbers(line), default=0), at

    stays: set[tuple[int, int]] = set()
    for place, at, line in sorted(lines, key=worth, reverse=True):
        if (cost := count(line) + 1) <= room:
            stays.add((place, at))
            room -= cost
    result: list[list[str]] = []
    for place, section in enumerate(sections):
        result.append([line for at, line in enumerate(section) if (place, at) in stays])
    return result


def filled(
    sections: Sequence[Sequence[str]],
    sources: Sources,
    language: str,
    budget: int,
    count: Count,
    room_for_stated: int = 0,
    mark: Callable[[str], str] = str,
    skip: Skip = lambda sentence, ids: False,  # noqa: ARG005  # what a caller may hand in
    is_pinned: Callable[[str], bool] = lambda line: False,  # noqa: ARG005  # likewise
) -> str:
    """Return the model's summary as text, and let code fill its unused room with lines for findings
    that the model's lines do not hold.

    So a lazy model is never worse than no model: a line that only cites a round does not replace
    the round's findings. Facts of the previous summary are carried on in the same way, unless a new
    line says the same with another figure. `skip` returns True for a sentence that needs no line
    because a pin holds it. For `room_for_stated`, `mark` and `is_pinned` see `fallback_summary`.
    """
    claims = list(map(claim_of, chain.from_iterable(sections)))

    def is_held(sentence: str, ids: str) -> bool:
        return skip(sentence, ids) or _held(claim_of(f"{sentence} [{ids}]"), claims)

    before = facts_in(sources.previous)
    older = [line for line in before if is_codes_line(line) or _is_worth(line)]
    older = [line for line in older if _is_own(line) or not _held(claim_of(line), claims)]
    facts = [*filter(left_out_in, before), *older, *sections[FACTS]]
    text = join_sections([facts, *sections[FACTS + 1 :]], language)
    whole = fallback_summary(
        text,
        sources.messages,
        language=language,
        budget=budget,
        count=count,
        room_for_stated=room_for_stated,
        mark=mark,
        skip=is_held,
        is_pinned=is_pinned,
    )
    return whole or join_sections(sections, language)


def _is_own(line: str) -> bool:
    """Return whether code wrote a line of single sentences ("User said: ..."), which are checked
    one by one. False for a question with its answer.
    """
    return is_codes_line(line) and not is_finding(line)


@dataclass(frozen=True)
class Claim:
    """The content of a line: its words, the values of its figures, all its numbers as written, and
    the numbers of the messages that it cites.
    """

    words: frozenset[str]
    figures: frozenset[float]
    numbers: frozenset[str]
    cited: frozenset[int]


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@lru_cache(maxsize=4_096)
def claim_of(line: str) -> Claim:
    finding = next(iter(findings_in(line)), None)
    said = f"{finding.question} {finding.answer}" if finding else without_citations(line)
    asked = finding is not None and asks(finding.question)
    claimed = finding.answer if finding and asked else said
    return Claim(
        content_words(said),
        frozenset(figure.value for figure in figures(claimed)),
        frozenset(_NUMBER.findall(said)),
        frozenset(cited_numbers(line)),
    )


def _held(claim: Claim, others: Sequence[Claim]) -> bool:
    """Return whether other lines already hold a claim.

    They do if they hold half of the claim's figures or, for a claim without figures, half of its
    words. For this, only lines count that cite one of the claim's messages, or no message. Other
    lines also hold a claim if one of them makes the same claim with one figure changed, or has all
    words of a claim without figures.
    """
    near = [
        other for other in others if not other.cited or not claim.cited or other.cited & claim.cited
    ]
    if not claim.figures:
        # Words alone that a line repeats, whatever it cites, say nothing about a message.
        same = any(claim.words <= other.words for other in others)
        return same or any(2 * len(claim.words & other.words) >= len(claim.words) for other in near)
    if any(_corrects(claim, other) for other in others):
        return True
    known = [other.figures for other in near if claim.words & other.words or not claim.words]
    return 2 * len(claim.figures.intersection(*[frozenset().union(*known)])) >= len(claim.figures)


def _corrects(claim: Claim, other: Claim) -> bool:
    """Return whether `other` says the same as `claim` with one number changed."""
    changed = len(claim.numbers - other.numbers) == 1 == len(other.numbers - claim.numbers)
    return changed and claim.words == other.words


def _is_worth(line: str) -> bool:
    """Return whether a fact of the previous summary is worth carrying on. It must have two content
    words, a figure, a quote, or a few citations. False for a note that lines were left out.
    """
    if left_out_in(line):
        return False
    claim = claim_of(line)
    cites_few = 0 < len(claim.cited) <= MOST_CITED
    return len(claim.words) > 1 or bool(claim.figures) or cites_few or bool(_QUOTED.search(line))
