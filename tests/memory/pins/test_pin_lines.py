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
