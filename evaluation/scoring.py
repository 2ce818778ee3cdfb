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
_FIGURE = re.compile(
    r"(?<![\w.])([-−]?\d[\d,\u00a0\u202f]*(?:\.\d+)?)"
    r"(?:\s?(%|％|k\b|thousand|million|m\b|billion|bn\b|万|亿))?",
    re.IGNORECASE,
)
_SCALES = {
    "%": 0.01,
    "％": 0.01,
    "k": 1e3,
    "thousand": 1e3,
    "million": 1e6,
    "m": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "万": 1e4,
    "亿": 1e8,
}
_QUESTION_MARKS = ("?", "？", "؟")
_CLOSING = " *_\"'”’」』)）"
_LIST_ITEM_OR_NOTE = re.compile(r"[-*•]\s|[(（]|\d+[.)、]")
"""How a line of a list begins, or a note in brackets."""


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
    scored = _by_rows(turn, reply, gold) if turn.expects == "result" else _without_rows(turn, reply)
    if scored.verdict == "right" and not _says_one(reply.text, turn.says):
        return Score(verdict="wrong", check="words")
    return scored


def _by_rows(turn: Turn, reply: Reply, gold: Sequence[GoldResult]) -> Score:
    """Score an answer by the rows of its query."""
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
    missing. A figure may be rounded, have separators of thousands, and be written as a percentage
    or in thousands, millions or billions.
    """
    written = [_read(match[1], match[2] or "") for match in _FIGURE.finditer(text)]
    missing: list[str] = []
    for figure in figures_of(rows):
        if not any(number.says(figure) for number in written):
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
    if turn.expects == "question":
        asks = reply.status in ASKING or asks_back(reply.text)
        return Score(verdict="right") if asks else Score(verdict="wrong", check="no question")
    if reply.status != ANSWERED:
        return Score(verdict="wrong", check=reply.status)
    return Score(verdict="right")


def asks_back(text: str) -> bool:
    """Return whether a text ends with a question, apart from a list or a note in brackets after it.
    A question in its middle, such as the person's own that is repeated, does not count.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    while len(lines) > 1 and _LIST_ITEM_OR_NOTE.match(lines[-1]):
        lines.pop()
    return bool(lines) and lines[-1].rstrip(_CLOSING).endswith(_QUESTION_MARKS)


def _says_one(text: str, says: Sequence[str]) -> bool:
    """Return whether a text holds one of the texts that are wanted, or none is wanted."""
    folded = text.casefold()
    return not says or any(each.casefold() in folded for each in says)


def _heads(gold: Sequence[GoldResult]) -> Rows:
    return head(gold[0].columns, gold[0].rows) if gold else ()


def _nearness(check: str) -> int:
    """Return how much of a result was right before a check failed."""
    order = ("row count", "columns", "rows", "order", "figures")
    return order.index(check.partition(":")[0]) if check.partition(":")[0] in order else 0


@dataclass(frozen=True)
class _Written:
    """A number as a text has it. `scale`: what a unit behind it multiplies it by."""

    number: float
    decimals: int
    scale: float = 1.0

    def says(self, figure: float) -> bool:
        """Return whether the number says a figure, whole or rounded to its decimals, with its unit
        or without.
        """
        for scale in (1.0, self.scale):
            scaled = figure / scale
            if close(self.number, scaled) or close(self.number, round(scaled, self.decimals)):
                return True
        return False


def _read(text: str, unit: str) -> _Written:
    """Return a written number."""
    plain = re.sub(r"[,\u00a0\u202f]", "", text.replace("−", "-")).rstrip(".")
    decimals = len(plain.partition(".")[2])
    return _Written(float(plain), decimals, _SCALES.get(unit.lower(), 1.0))
