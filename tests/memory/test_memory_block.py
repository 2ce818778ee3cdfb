"""The lines of the ledger are read and fitted once, and are those of their compaction."""

from typing import Any, cast

from longtable.memory.compaction.ledger import LedgerLine, fit_ledger, ledger_in, render_ledger
from longtable.memory.counting.tokens import counter
from longtable.memory.memory_block import _ledger_text, _lines_of
from longtable.memory.records import Compaction

ENCODING = "o200k_base"


def record(turn: int) -> Compaction:
    lines = [LedgerLine(turn, f"question {turn}", f"SELECT {n}", rows=n) for n in range(9)]
    made: Any = {"id": f"c{turn}", "ledger": [line.as_json() for line in lines]}
    return cast("Compaction", made)


def test_the_lines_are_those_of_each_compaction_also_of_one_in_the_place_of_another() -> None:
    for turn in range(2_000):  # more than are kept; each takes the memory of the one before
        made = record(turn)
        assert [line.turn for line in _lines_of(made)] == [turn] * 9
        assert _lines_of(made) is _lines_of(made)
    assert _lines_of(cast("Any", {"id": "none"})) == ()


def test_the_text_is_fitted_to_each_budget_and_language() -> None:
    lines = _lines_of(record(1))
    count = counter(ENCODING).text
    for most in (40, 90, 10_000):
        for language in ("en", "zh"):
            fitting, dropped = fit_ledger(lines, most, count, language)
            expected = render_ledger(fitting, language, 3 + dropped) if fitting else ""
            for _ in range(2):
                assert _ledger_text(lines, 3, most, ENCODING, language) == expected
    assert len(ledger_in(_ledger_text(lines, 3, 10_000, ENCODING, "en"))) == 9
