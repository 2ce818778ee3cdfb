"""Plant one fault in each sound query of `blind/checks.jsonl`, for the measurement of a checker of
queries.

Kinds: `fan_out` (a table is joined that multiplies rows), `counted_rows` (rows are counted instead
of different values), `nulls_dropped` (a filter or join loses the rows without a value),
`date_bounds` (a day too many or too few), `unit` and `measure` (a factor is missing or wrong, or
another column is taken).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "blind" / "checks.jsonl"
_AFTER_FROM = re.compile(r"\s+(?=WHERE\b|GROUP BY\b|ORDER BY\b|LIMIT\b)|$")


@dataclass(frozen=True)
class Check:
    """A question with a sound query, and the same query with one fault."""

    id: str
    database: str
    kind: str
    question: str
    sound: str
    faulty: str


def planted(sql: str, kind: str, *, join: str = "", take: str = "", put: str = "") -> str:
    """Return a query with one fault of a kind. Raises `ValueError` where it has no place for it."""
    if kind == "fan_out":
        faulty = _AFTER_FROM.sub(f" {join} ", sql, count=1).strip()
    elif kind == "counted_rows":
        faulty = re.sub(r"COUNT\(DISTINCT [\w.]+\)", "COUNT(*)", sql)
    else:
        faulty = sql.replace(take, put)
    if faulty == sql:
        raise ValueError(f"no place for a fault of kind {kind} in {sql}")
    return faulty


def checks() -> Iterator[Check]:
    """Yield the sixty queries, each sound and faulty."""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        words = {name: raw[name] for name in ("join", "take", "put") if name in raw}
        yield Check(
            raw["id"],
            raw["database"],
            raw["kind"],
            raw["question"],
            raw["sql"],
            planted(raw["sql"], raw["kind"], **words),
        )
