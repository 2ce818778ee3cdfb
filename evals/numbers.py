"""Measure the number check on labelled answers: invented figures caught, true figures wrongly flagged.

Each line of numbers.jsonl is a question, its results and answers to it; an invented figure stands in ⟦ ⟧. Every second line is
held out: the rules were never tuned on it.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from longtable.memory.figures import Figure, figures
from longtable.memory.number_check import Source, unsupported

FILE = Path(__file__).with_name("numbers.jsonl")


@dataclass(frozen=True)
class Labelled:
    """One answer; `invented` are the places of its made-up figures."""

    line: int
    question: str
    sources: tuple[Source, ...]
    answer: str
    invented: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Score:
    """How many there were, and how many of them were flagged."""

    invented: int
    caught: int
    true: int
    flagged: int
    answers: int
    answers_flagged: int

    def row(self, name: str) -> str:
        """Return a line of the table."""
        return (
            f"| {name} | {self.caught} of {self.invented} ({100 * self.caught / max(1, self.invented):.1f} %) "
            f"| {self.flagged} of {self.true} ({100 * self.flagged / max(1, self.true):.1f} %) "
            f"| {self.answers_flagged} of {self.answers} ({100 * self.answers_flagged / max(1, self.answers):.1f} %) |"
        )


def load(path: Path = FILE) -> list[Labelled]:
    """Return the labelled answers in order."""
    found = []
    for line, text in enumerate(path.read_text(encoding="utf-8").splitlines()):
        case = json.loads(text)
        sources = tuple(Source(source["columns"], source["rows"], source["row_count"], source["sql"]) for source in case["sources"])
        found += [Labelled(line, case["question"], sources, *_unmarked(answer)) for answer in case["answers"]]
    return found


def _unmarked(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    text, spans = "", []
    for piece in re.split(r"(⟦[^⟧]*⟧)", marked):
        if piece.startswith("⟦"):
            spans.append((len(text), len(text) + len(piece) - 2))
            piece = piece[1:-1]
        text += piece
    return text, tuple(spans)


def score(answers: Sequence[Labelled], *, misses: bool = False) -> Score:
    """Run the check over labelled answers and count."""
    invented = caught = true = flagged = clean = clean_flagged = 0
    for item in answers:
        found = unsupported(item.answer, item.sources, item.question)
        spans = [(figure.start, figure.end) for figure in found]
        hits = [any(_overlap(span, made_up) for span in spans) for made_up in item.invented]
        wrong = [figure for figure in found if not any(_overlap((figure.start, figure.end), made_up) for made_up in item.invented)]
        claims = [f for f in figures(item.answer) if not any(_overlap((f.start, f.end), made_up) for made_up in item.invented)]
        invented, caught = invented + len(hits), caught + sum(hits)
        true, flagged = true + len(claims), flagged + len(wrong)
        if not item.invented:
            clean, clean_flagged = clean + 1, clean_flagged + bool(wrong)
        if misses and (not all(hits) or wrong):
            print(f"{item.line + 1}: {item.answer!r}\n   missed {hits.count(False)}, wrongly flagged {[figure.text for figure in wrong]}")
    return Score(invented, caught, true, flagged, clean, clean_flagged)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def mutated(answers: Sequence[Labelled], *, seed: int = 7) -> Iterator[Labelled]:
    """Yield true answers with one figure of three and more digits made wrong in one of its first two digits."""
    chance = random.Random(seed)
    for item in answers:
        if not item.invented:
            for figure in figures(item.answer):
                if (wrong := _wrong(figure, chance)) is not None:
                    text = item.answer[: figure.start] + wrong + item.answer[figure.end :]
                    yield Labelled(item.line, item.question, item.sources, text, ((figure.start, figure.start + len(wrong)),))


def _wrong(figure: Figure, chance: random.Random) -> str | None:
    raw = figure.text
    places = [at for at, char in enumerate(raw) if char.isascii() and char.isdigit()]
    if len(places) < 3:
        return None
    at = chance.choice(places[:2])
    digit = chance.choice([other for other in "123456789" if other != raw[at]])
    return raw[:at] + digit + raw[at + 1 :]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="show what went wrong on the half that may be tuned on")
    options = parser.parse_args()
    answers = load()
    tuned = [item for item in answers if item.line % 2 == 0]
    held = [item for item in answers if item.line % 2 == 1]
    print("| half | invented figures caught | true figures flagged | true answers flagged |\n|---|---|---|---|")
    print(score(tuned, misses=options.misses).row("tuned on"))
    print(score(held).row("held out"))
    spoiled = list(mutated(held))
    print(score(spoiled).row("held out, one figure changed by one digit"))


if __name__ == "__main__":
    main()
