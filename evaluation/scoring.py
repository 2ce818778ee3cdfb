"""Score one answer: by the rows of its newest query, and by what the question expects."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from longtable.evaluation.gold import GoldResult, figures_of
from longtable.evaluation.matching import Rows, close, difference
from longtable.evaluation.question_set import Turn

Verdict = Literal["right", "lucky", "wrong", "failed", "unscored"]
"""`lucky`: right on the database, not on a changed copy of it. `failed`: the turn gave no answer.
`unscored`: gold fails.
"""
HEAD_ROWS = 5
"""Rows of both results that a miss shows."""
HEAD_COLUMNS = 20
ANSWERED = "answered"
ASKING = ("input_requested",)
_FIGURE = re.compile(r"(?<![\w.])[-−]?\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_QUESTION_MARKS = ("?", "？")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came of one turn. `sql` and `rows` are those of its newest query that gave a result."""

    status: str
    text: str = ""
    sql: str = ""
    columns: Sequence[str] = ()
    rows: Rows | None = None
    error: str = ""
    """Code and message of the error that ended the turn."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The verdict on one answer. `check`: what failed, such as "rows" or "no query". `wanted` and
    `found`: the first rows of both results, each below its columns.
    """

    verdict: Verdict
    check: str = ""
    wanted: Rows = ()
    found: Rows = ()


def score(turn: Turn, reply: Reply, gold: Sequence[GoldResult]) -> Score:
    """Return the score of an answer. The best of several gold results counts."""
    if reply.error:
        return Score(verdict="failed", check="error", wanted=_heads(gold))
    if turn.expects != "result":
        return _without_rows(turn, reply)
    if reply.rows is None:
        check = "no query" if reply.status == ANSWERED else reply.status
        return Score(verdict="wrong", check=check, wanted=_heads(gold))
    checks: list[str] = []
    for result in gold:
        check = difference(
            result.rows,
            reply.rows,
            result.order,
            extra_columns=turn.extra_columns,
            widths=(len(result.columns), len(reply.columns)),
        )
        if not check and turn.figures:
            check = missing_figures(result.rows, reply.text)
        if not check:
            return Score(verdict="right")
        checks.append(check)
    nearest = max(range(len(gold)), key=lambda place: _nearness(checks[place]))
    return Score(
        verdict="wrong",
        check=checks[nearest],
        wanted=head(gold[nearest].columns, gold[nearest].rows),
        found=head(reply.columns, reply.rows),
    )


def missing_figures(rows: Rows, text: str) -> str:
    """Return the figures of rows that a text does not hold as "figures: 1, 2", "" if none is
    missing. A figure may be rounded, and have separators of thousands.
    """
    written = [_read(match[0]) for match in _FIGURE.finditer(text)]
    missing: list[str] = []
    for figure in figures_of(rows):
        if not any(_says(number, decimals, figure) for number, decimals in written):
            missing.append(f"{figure:g}")
    return f"figures: {', '.join(missing)}" if missing else ""


def head(columns: Sequence[str], rows: Rows) -> Rows:
    """Return the names of columns and the first rows."""
    shown = [list(columns[:HEAD_COLUMNS])]
    shown += [list(map(str, row[:HEAD_COLUMNS])) for row in rows[:HEAD_ROWS]]
    return shown


def _without_rows(turn: Turn, reply: Reply) -> Score:
    """Score an answer that should refuse or ask back: nothing may be queried for it."""
    if reply.rows is not None:
        return Score(verdict="wrong", check="a query", found=head(reply.columns, reply.rows))
    asks = reply.status in ASKING or any(mark in reply.text for mark in _QUESTION_MARKS)
    if turn.expects == "question":
        return Score(verdict="right") if asks else Score(verdict="wrong", check="no question")
    if reply.status != ANSWERED:
        return Score(verdict="wrong", check=reply.status)
    return Score(verdict="right")


def _heads(gold: Sequence[GoldResult]) -> Rows:
    return head(gold[0].columns, gold[0].rows) if gold else ()


def _nearness(check: str) -> int:
    """Return how much of a result was right before a check failed."""
    order = ("row count", "columns", "rows", "order", "figures")
    return order.index(check.partition(":")[0]) if check.partition(":")[0] in order else 0


def _read(text: str) -> tuple[float, int]:
    """Return a written number, and how many decimals it has."""
    plain = re.sub(r"[,\u00a0\u202f]", "", text.replace("−", "-")).rstrip(".")
    return float(plain), len(plain.partition(".")[2])


def _says(number: float, decimals: int, figure: float) -> bool:
    """Return whether a written number says a figure, whole or rounded to its decimals."""
    return close(number, figure) or close(number, round(figure, decimals))
