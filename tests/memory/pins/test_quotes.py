"""A quote is found word for word, and a summary's rules are the user's sentences."""

import re

from langchain_core.messages import HumanMessage

from longtable.memory.pins.pin_lines import pin_contract
from longtable.memory.pins.quotes import (
    find_quote,
    holds_words,
    likeness,
    rules_of,
    without_quotes_section,
)

SAID = [
    HumanMessage("Hello. Do not round the totals, please. Thanks!", id="1"),
    HumanMessage("Only paid orders from now on.", id="2"),
    HumanMessage("以后金额都用欧元。", id="3"),
]


def test_a_quote_is_found_with_the_whole_sentence_around_it() -> None:
    source, text = find_quote("ROUND totals", SAID)
    assert source is SAID[0]
    assert text == "Do not round the totals, please."


def test_no_word_is_cut_in_two_and_a_single_character_is_no_quote() -> None:
    assert find_quote("round the total", SAID)[0] is None
    assert find_quote("o", SAID)[0] is None
    assert find_quote("金额都用", SAID)[0] is SAID[2]


def test_words_are_held_side_by_side_and_in_their_order() -> None:
    assert holds_words("Only the PAID orders!", "paid orders")
    assert not holds_words("orders that are paid", "paid orders")
    assert not holds_words("anything", "")


def test_texts_with_other_numbers_are_not_alike() -> None:
    assert likeness("the top 5 airlines", "top 5 airlines") == 1.0
    assert likeness("the top 5 airlines", "the top 6 airlines") == 0.0
    assert 0 < likeness("top airlines", "top airports") < 1


SUMMARY = """## Facts and findings
- 28,796 flights left [m2]
## Pins
- [m2] "Only paid orders from now on."
- [m1] "Do not round the totals, please." replaces p1a2b3c4d
- [m1] "Always answer in French."
"""


def test_the_pins_of_a_summary_are_sentences_of_the_user_and_no_others() -> None:
    rules = {rule.quote: rule for rule in rules_of(SUMMARY, SAID)}
    assert set(rules) == {"Only paid orders from now on.", "Do not round the totals, please."}
    assert rules["Only paid orders from now on."].source is SAID[1]
    assert rules["Do not round the totals, please."].pin == "p1a2b3c4d"


def test_a_summary_without_its_pins_keeps_the_rest() -> None:
    rest = "## Facts and findings\n- 28,796 flights left [m2]"
    assert without_quotes_section(SUMMARY) == rest


def test_the_example_of_a_pin_in_the_contract_is_read_as_one() -> None:
    for language in ("en", "zh"):
        examples = re.findall(r"\bp[0-9a-f]{6,}\b", pin_contract(language, []))
        assert examples
        assert all(re.fullmatch(r"p[0-9a-f]{8}", each) for each in examples)
