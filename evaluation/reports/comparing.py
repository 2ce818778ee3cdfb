"""Compare a run with an earlier one, question by question."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longtable.base.errors import ConfigError
from longtable.evaluation.reports.eval_report import (
    VERSION,
    Report,
    escaped,
    label_of,
    percent,
    table,
)
from longtable.evaluation.turn_results import TurnResult, tally_of

Key = tuple[str, int]
"""Id of a dialogue, and number of a turn."""


@dataclass
class SubjectChanges:
    """What changed for one subject. `before` is the label of the earlier subject. `better` and
    `worse` hold the earlier and the new result of each question whose verdict changed.
    """

    label: str
    before: str
    shares: tuple[float | None, float | None]
    """The accuracy before and now, of the questions that both runs scored."""
    better: list[tuple[TurnResult, TurnResult]] = field(default_factory=list)
    worse: list[tuple[TurnResult, TurnResult]] = field(default_factory=list)
    changed: list[TurnResult] = field(default_factory=list)
    """Questions whose text or gold changed, so that they are not compared."""
    new: list[TurnResult] = field(default_factory=list)
    gone: list[TurnResult] = field(default_factory=list)


def read_results(path: Path) -> list[TurnResult]:
    """Return the results of an earlier run's JSON. Raises `ConfigError` if it is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["longtable_eval"] != VERSION:
            raise ValueError(f"its version is {data['longtable_eval']!r}, {VERSION} is needed")
        return [TurnResult.from_json(each) for each in data["results"]]
    except OSError as error:
        raise ConfigError(f"--against {path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"--against {path} is no report of `longtable eval` (report.json): {error}"
        ) from error


def compare(before: Sequence[TurnResult], report: Report) -> list[SubjectChanges]:
    """Return the changes for each subject. A subject is compared with the earlier one of its label;
    if each run has one subject, these two are compared.
    """
    earlier: dict[str, list[TurnResult]] = {}
    for result in before:
        earlier.setdefault(label_of(result), []).append(result)
    changes: list[SubjectChanges] = []
    for label, results in report.subjects.items():
        partner = label if label in earlier else ""
        if not partner and len(earlier) == 1 and len(report.subjects) == 1:
            partner = next(iter(earlier))
        if partner:
            changes.append(_changes(partner, earlier[partner], label, results))
    return changes


def changes_text(changes: Sequence[SubjectChanges]) -> str:
    """Return the changes as Markdown."""
    if not changes:
        return "## Against the earlier run\n\nNo model of this run was in the earlier one."
    parts = ["## Against the earlier run"]
    for each in changes:
        title = each.label if each.label == each.before else f"{each.before} → {each.label}"
        figures: dict[str, Any] = {
            "before": percent(each.shares[0]),
            "now": percent(each.shares[1]),
            "better": str(len(each.better)),
            "worse": str(len(each.worse)),
            "question changed": str(len(each.changed)),
            "new": str(len(each.new)),
            "gone": str(len(each.gone)),
        }
        parts.append(table(["model", *figures], [[title, *figures.values()]]))
        lines: list[str] = []
        for name, pairs in (("worse", each.worse), ("better", each.better)):
            for old, now in pairs:
                verdicts = f"{old.verdict} → {now.verdict} {now.check}".strip()
                question = f"{now.dialogue}, turn {now.turn}: {now.question}"
                lines.append(f"- {name}: {escaped(question)} ({escaped(verdicts)})")
        if lines:
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _changes(
    before_label: str, before: Sequence[TurnResult], label: str, now: Sequence[TurnResult]
) -> SubjectChanges:
    old: dict[Key, TurnResult] = {(each.dialogue, each.turn): each for each in before}
    both = [each for each in now if _is_scored(each) and _same(old.get(_key(each)), each)]
    keys = {_key(each) for each in both}
    shares = (
        tally_of(old[key] for key in keys).accuracy,
        tally_of(both).accuracy,
    )
    changes = SubjectChanges(label, before_label, shares)
    for each in now:
        earlier = old.pop(_key(each), None)
        if earlier is None:
            changes.new.append(each)
        elif earlier.fingerprint != each.fingerprint:
            changes.changed.append(each)
        elif _key(each) in keys and (earlier.verdict == "right") != (each.verdict == "right"):
            (changes.better if each.verdict == "right" else changes.worse).append((earlier, each))
    changes.gone += old.values()
    return changes


def _same(earlier: TurnResult | None, now: TurnResult) -> bool:
    return earlier is not None and earlier.fingerprint == now.fingerprint and _is_scored(earlier)


def _is_scored(result: TurnResult) -> bool:
    return result.verdict != "unscored"


def _key(result: TurnResult) -> Key:
    return result.dialogue, result.turn
