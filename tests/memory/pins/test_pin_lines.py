"""Pins as a view shows them: which give way when room is short."""

from longtable.memory.pins.pin_lines import LONG_PIN, fit_pins, pin_contract, render_pins
from longtable.memory.pins.pins import IN_PASSING, Pin


def pin(number: int, text: str, by: str = "model") -> Pin:
    return Pin(f"p{number}", text, f"m{number}", number, by)


def words(text: str) -> int:
    return len(text.split())


PINS = [
    pin(1, "always use euros"),
    pin(2, "no, rather the net figure", IN_PASSING),
    pin(3, "only paid orders", "user"),
]


def test_all_pins_are_shown_if_they_fit() -> None:
    shown, left_out = fit_pins(PINS, 500, words)
    assert shown == PINS
    assert left_out == 0


def test_pins_said_in_passing_go_first_and_those_made_by_hand_last() -> None:
    pins = [pin(each.turn, f"{each.text} {'and so on ' * 20}", each.by) for each in PINS]
    orders: list[list[str]] = []
    for budget in range(500, 0, -1):
        shown, left_out = fit_pins(pins, budget, words)
        assert len(shown) + left_out == len(pins)
        ids = [each.id for each in shown]
        if not orders or orders[-1] != ids:
            orders.append(ids)
    assert orders == [["p1", "p2", "p3"], ["p1", "p3"], ["p3"], []]


def test_a_long_pin_is_clipped_with_a_mark() -> None:
    [shown], _ = fit_pins([pin(1, "x" * 700)], 5_000, words)
    assert shown.text == f"{'x' * LONG_PIN}… (700 characters)"


def test_pins_said_in_passing_have_a_heading_of_their_own_and_stand_last() -> None:
    lines = render_pins(PINS, "en", left_out=2).splitlines()
    assert [line[:4] for line in lines if line.startswith("- ")] == ['- "a', '- "o', '- "n']
    assert "2 more pins" in lines[-1]
    assert render_pins([], "en") == ""


def test_the_summariser_is_told_which_pins_it_may_end() -> None:
    assert '"always use euros" [p1, turn 1]' in pin_contract("en", PINS)
    assert "第 1 轮" in pin_contract("zh", PINS)


def test_a_rule_goes_before_the_remark_that_may_end_it() -> None:
    pins = [
        pin(1, "From now on assume eighty beds at Fernside", IN_PASSING),
        pin(2, "Fernside got its new wing so that is void", IN_PASSING),
        *(
            pin(n, f"From now on show column {'abcdefgh'[n]}{n:06}", IN_PASSING)
            for n in range(3, 8)
        ),
    ]
    for budget in range(200, 0, -1):
        shown, _ = fit_pins(pins, budget, words)
        ids = [each.id for each in shown]
        assert "p2" in ids or "p1" not in ids
    assert "p2" in [each.id for each in fit_pins(pins, 200, words)[0]]
