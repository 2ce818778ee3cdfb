"""The report of a run: as data for JSON, as Markdown, and whether each subject reaches the bar."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from longtable.evaluation.matching import Rows
from longtable.evaluation.question_set import Bar
from longtable.evaluation.turn_results import Tally, TurnResult, tally_of
from longtable.tools.cells import clean

VERSION = 1
NO_BAR = Bar()
MOST_MISSES = 200
"""Misses that the Markdown shows; the JSON has all."""
MOST_CELL = 100
"""Most characters of a cell."""
_MARKS = re.compile(r"[\\`*_\[\]|~#>!]")
_BEGINNING = re.compile(r"^(\d*)([-+.)])(?=\s)")
"""What makes a list of a line that begins with it."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of a run, in the order of the questions."""

    results: Sequence[TurnResult]
    problems: Sequence[str] = ()
    """Mistakes of files, and gold that fails, each with file and line."""
    bar: Bar = NO_BAR
    began: str = ""
    """The time of the run's beginning in UTC, as 2026-11-27T08:00:00+00:00."""
    files: Sequence[str] = ()

    @property
    def subjects(self) -> dict[str, list[TurnResult]]:
        """Return the results of each subject by its label."""
        subjects: dict[str, list[TurnResult]] = {}
        for result in self.results:
            subjects.setdefault(label_of(result), []).append(result)
        return subjects

    def below_bar(self) -> list[str]:
        """Return a sentence for each share that is below the bar. A share of nothing is below."""
        sentences: list[str] = []
        for label, results in self.subjects.items():
            tally = tally_of(results)
            shares = {
                "questions": (tally.accuracy, self.bar.questions),
                "interactions": (tally.interaction_accuracy, self.bar.interactions),
            }
            for name, (share, least) in shares.items():
                if least is not None and (share is None or share < least):
                    sentences.append(
                        f"{label}: {percent(share)} of {name} are right, the bar is"
                        f" {percent(least)}"
                    )
        return sentences

    def is_incomplete(self) -> bool:
        """Return whether a bar is set, and something was left out, not asked or not scored: without
        it the share says too little.
        """
        return self.bar != NO_BAR and bool(self.problems)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON, which `--against` reads."""
        subjects: list[dict[str, Any]] = []
        for label, results in self.subjects.items():
            first = results[0]
            subjects.append(
                {
                    "label": label,
                    "model": first.model,
                    "knowledge": first.knowledge,
                    "all": tally_of(results).as_json(),
                    "by_tag": _by(results, _tags_of),
                    "by_turn": _by(results, _turn_of),
                }
            )
        return {
            "longtable_eval": VERSION,
            "began": self.began,
            "files": [*self.files],
            "bar": {"questions": self.bar.questions, "interactions": self.bar.interactions},
            "below_bar": self.below_bar(),
            "problems": [*self.problems],
            "subjects": subjects,
            "results": [result.as_json() for result in self.results],
        }

    def as_markdown(self, changes: str = "") -> str:
        """Return the report for people. `changes`: what `comparing` says, put below the table."""
        parts = ["# Evaluation", self._summary(), self._bar_text(), changes]
        parts.append(self._breakdown("tag", _tags_of))
        parts.append(self._breakdown("turn", _turn_of))
        parts.append(self._problems_text())
        parts.append(self._misses())
        return "\n\n".join(part for part in parts if part) + "\n"

    def _summary(self) -> str:
        rows: list[dict[str, str]] = []
        for label, results in self.subjects.items():
            tally = tally_of(results)
            counts = _count_cells(tally)
            rows.append({"model": label, **counts, **_taken_cells(tally, len(results))})
        head = [*rows[0]] if rows else []
        return table(head, [[*row.values()] for row in rows])

    def _bar_text(self) -> str:
        return "\n".join(f"**Below the bar.** {escaped(each)}." for each in self.below_bar())

    def _breakdown(self, name: str, keys: "Keys") -> str:
        """Return a table of the accuracy by tag or by turn, "" if there is nothing to compare: no
        tag, or one turn only.
        """
        names: dict[str, None] = {}
        for result in self.results:
            names.update(dict.fromkeys(keys(result)))
        if len(names) < (2 if name == "turn" else 1):
            return ""
        head = [name, *self.subjects]
        rows: list[list[str]] = []
        for each in sorted(names, key=lambda text: (text.isdigit() and int(text), text)):
            cells = [each]
            for results in self.subjects.values():
                tally = tally_of(result for result in results if each in keys(result))
                cells.append(f"{tally.right:,} of {tally.scored:,} ({percent(tally.accuracy)})")
            rows.append(cells)
        return f"## By {name}\n\n{table(head, rows)}"

    def _problems_text(self) -> str:
        if not self.problems:
            return ""
        lines = [f"- {escaped(problem)}" for problem in self.problems]
        return "\n".join(["## Left out or not scored", "", *lines])

    def _misses(self) -> str:
        misses = [result for result in self.results if result.verdict not in ("right", "unscored")]
        if not misses:
            return ""
        parts = ["## Misses", *map(_miss, misses[:MOST_MISSES])]
        if len(misses) > MOST_MISSES:
            parts.append(f"{len(misses) - MOST_MISSES:,} more are in the JSON.")
        return "\n\n".join(parts)


Keys = Callable[[TurnResult], Iterable[str]]
"""The groups that a result belongs to."""


def label_of(result: TurnResult) -> str:
    """Return the label of the subject that answered."""
    return f"{result.model} with knowledge" if result.knowledge else result.model


def percent(share: float | None) -> str:
    """Return a share as text, "-" for None. It is never rounded up to 100 %."""
    if share is None:
        return "-"
    return f"{int(share * 1_000) / 10:g} %"


def _count_cells(tally: Tally) -> dict[str, str]:
    """Return the verdicts of a line of the summary."""
    counts = {
        "questions": f"{tally.scored:,}",
        "right": f"{tally.right:,} ({percent(tally.accuracy)})",
        "lucky": f"{tally.lucky:,}" if tally.copies else "-",
        "wrong": f"{tally.wrong:,}",
        "failed": f"{tally.failed:,}",
        "not scored": f"{tally.unscored:,}",
    }
    interactions = f"{tally.interactions_right:,} of {tally.interactions:,}"
    return {**counts, "interactions": interactions}


def _taken_cells(tally: Tally, turns: int) -> dict[str, str]:
    """Return the seconds, tokens and money of a line of the summary."""
    about = "~" if tally.estimated else ""
    return {
        "s a turn": f"{tally.seconds / max(1, turns):.2f}",
        "calls": f"{tally.calls:,}",
        "input": f"{about}{tally.input:,}",
        "output": f"{about}{tally.output:,}",
        "cost": "" if tally.cost is None else f"{tally.cost:.4f}",
    }


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; the first column holds text, the others numbers."""
    lines = [_line(head), _line([":--", *["--:"] * (len(head) - 1)])]
    for row in rows:
        lines.append(_line([escaped(cell) for cell in row]))
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Return a text on one line that Markdown and HTML take literally: no picture, link, heading or
    list comes of it.
    """
    line = " ".join(clean(text).split())
    line = _MARKS.sub(r"\\\g<0>", line.replace("&", "&amp;")).replace("<", "&lt;")
    return _BEGINNING.sub(r"\1\\\2", line.replace("://", "&#58;//").replace("www.", r"www\."))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _tags_of(result: TurnResult) -> Iterable[str]:
    return result.tags


def _turn_of(result: TurnResult) -> Iterable[str]:
    return [str(result.turn)]


def _by(results: Sequence[TurnResult], keys: Keys) -> dict[str, dict[str, Any]]:
    tallies: dict[str, Tally] = {}
    for result in results:
        for key in keys(result):
            tallies.setdefault(key, Tally()).add(result)
    return {key: tally.as_json() for key, tally in tallies.items()}


def _miss(result: TurnResult) -> str:
    """Return one miss: what was asked, which check failed, both queries and both results."""
    title = f"### {escaped(result.dialogue)}, turn {result.turn} ({escaped(label_of(result))})"
    check = f"{result.verdict}: {result.check or result.status}"
    lines = [
        title,
        f"{escaped(result.question)}",
        f"**{escaped(check)}** · {escaped(result.place)}",
    ]
    if result.error:
        lines.append(escaped(result.error))
    if result.gold:
        lines += ["gold", _block(result.gold, "sql")]
    if result.sql:
        lines += ["answer", _block(result.sql, "sql")]
    if not result.sql and result.text:
        lines += ["answer", _block(result.text[:1_000])]
    if result.wanted:
        lines += ["wanted", _rows(result.wanted)]
    if result.found:
        lines += ["found", _rows(result.found)]
    return "\n\n".join(lines)


def _rows(rows: Rows) -> str:
    head = [escaped(str(cell)) for cell in rows[0]] or [""]
    return table(head, [_clipped(row) for row in rows[1:]])


def _clipped(row: Sequence[object]) -> list[str]:
    return [str(cell)[:MOST_CELL] for cell in row]


def _block(text: str, language: str = "") -> str:
    text = clean(text)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
