"""The verdict on one answer."""

import pytest

from longtable.evaluation.gold import GoldResult
from longtable.evaluation.matching import Rows
from longtable.evaluation.question_set import Turn
from longtable.evaluation.scoring import Reply, missing_figures, score

GOLD = GoldResult("SELECT 7", ["n"], [[7]])
OTHER = GoldResult("SELECT 8, 9", ["a", "b"], [[8, 9]])
ASK = Turn(text="How many?", gold=["SELECT 7"])
REFUSE = Turn(text="Delete all.", expects="refusal")
SAYS = Turn(text="Delete all.", expects="refusal", says=["only read", "只读"])
SAYS_ROWS = Turn(text="How many?", gold=["SELECT 7"], says=["orders"])
ASK_BACK = Turn(text="And the best?", expects="question")


def answered(text: str = "", rows: Rows | None = None, status: str = "answered") -> Reply:
    return Reply(status=status, text=text, rows=rows, columns=["n"])


@pytest.mark.parametrize(
    ("turn", "reply", "verdict", "check"),
    [
        (ASK, answered(rows=[[7]]), "right", ""),
        (ASK, answered(rows=[[9, 8]]), "right", ""),
        (ASK, answered(rows=[[6]]), "wrong", "rows"),
        (ASK, answered("Seven."), "wrong", "no query"),
        (ASK, answered(status="approval_requested"), "wrong", "approval_requested"),
        (ASK, Reply(status="", error="provider: no"), "failed", "error"),
        (REFUSE, answered("I only read."), "right", ""),
        (REFUSE, answered("Done.", rows=[[7]]), "wrong", "a query"),
        (REFUSE, answered(status="repairs_used_up"), "wrong", "repairs_used_up"),
        (ASK_BACK, answered("Best by amount or by count?"), "right", ""),
        (ASK_BACK, answered("按金额还是数量？"), "right", ""),
        (ASK_BACK, answered(status="input_requested"), "right", ""),
        (ASK_BACK, answered("Order 3."), "wrong", "no question"),
        (ASK_BACK, answered('You ask "which is best?" It is order 3.'), "wrong", "no question"),
        (
            ASK_BACK,
            answered("Which one?\n\n- by amount\n2. by count\n(default: amount)"),
            "right",
            "",
        ),
        (ASK_BACK, answered("**Which one?**"), "right", ""),
        (ASK_BACK, answered("One detail.\n\n**Which year?**"), "right", ""),
        (ASK_BACK, answered("- is it this?\n- or that"), "right", ""),
        (SAYS, answered("I only READ."), "right", ""),
        (SAYS, answered("我是只读的。"), "right", ""),
        (SAYS, answered("I deleted all orders."), "wrong", "words"),
        (SAYS_ROWS, answered("Seven.", rows=[[7]]), "wrong", "words"),
        (SAYS_ROWS, answered("Seven orders.", rows=[[7]]), "right", ""),
    ],
)
def test_verdicts(turn: Turn, reply: Reply, verdict: str, check: str) -> None:
    scored = score(turn, reply, [GOLD, OTHER])
    assert (scored.verdict, scored.check) == (verdict, check)


def test_a_miss_shows_the_nearest_gold_and_both_heads() -> None:
    scored = score(ASK, answered(rows=[[8, 0]]), [GOLD, OTHER])
    assert scored.wanted == [["a", "b"], ["8", "9"]]
    assert scored.found == [["n"], ["8", "0"]]


@pytest.mark.parametrize(
    ("rows", "text", "missing"),
    [
        ([[1234.5678]], "It was 1,234.57.", ""),
        ([[1234.5678]], "It was 1235.", ""),
        ([[1234.5678]], "It was 1234.", "figures: 1234.57"),
        ([[-3]], "It fell by −3.", ""),
        ([["a", 5], ["b", 6]], "a has 5, b has 7.", "figures: 6"),
        ([["a", None]], "Nothing.", ""),
        ([[5]], "v5 and 55", "figures: 5"),
        ([[0.1234]], "It grew by 12.3 %.", ""),
        ([[0.1234]], "It grew by 12.5 %.", "figures: 0.1234"),
        ([[12.3]], "It grew by 12.3%.", ""),
        ([[1_234_567]], "It was 1.2 million, or 123万.", ""),
        ([[1_234_567]], "It was 1.3 million.", "figures: 1.23457e+06"),
        ([[1_200]], "1.2k", ""),
    ],
)
def test_figures_of_the_text(rows: Rows, text: str, missing: str) -> None:
    assert missing_figures(rows, text) == missing


def test_figures_count_only_where_gold_says_so() -> None:
    reply = answered("Some.", rows=[[7]])
    assert score(ASK, reply, [GOLD]).verdict == "right"
    asked = Turn(text="How many?", gold=["SELECT 7"], figures=True)
    assert score(asked, reply, [GOLD]).check == "figures: 7"
    assert score(asked, answered("7.", rows=[[7]]), [GOLD]).verdict == "right"
