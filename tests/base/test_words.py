"""Terms of English and Chinese text; Chinese and Japanese characters are told from others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtable.base.words import is_han, pairs_of, stem, tokens_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("客户", True),
        ("カタカナ", True),
        ("𠀀", True),
        ("客户1", False),
        ("abc", False),
        ("", False),
    ],
)
def test_chinese_and_japanese_are_told_from_other_text(text: str, expected: bool) -> None:
    assert is_han(text) is expected


def test_a_run_is_cut_into_pairs_that_overlap() -> None:
    assert list(pairs_of("客户名称")) == ["客户", "户名", "名称"]
    assert list(pairs_of("客")) == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Delays delayed delaying", ["delay", "delay", "delay"]),
        ("cancelled canceled cancellings", ["cancel", "cancel", "cancel"]),
        ("airlines Airline", ["airlin", "airlin"]),
        ("rates rated rating rate", ["rate"] * 4),
        ("countries country cities", ["country", "country", "city"]),
        ("planes planning", ["plane", "plan"]),
        ("status analysis boxes classes", ["status", "analysis", "box", "class"]),
        ("the airline's flight", ["the", "airlin", "flight"]),
        ("dep_delay", ["dep_delay", "dep", "delay"]),
        ("depDelay HTTPServer", ["depdelay", "dep", "delay", "httpserver", "http", "server"]),
        ("N14228", ["n14228", "14228"]),
        ("6,200 rows, 12,345.60 and 3.14", ["6200", "row", "12345.60", "and", "3.14"]),
        ("1,2,3", ["1", "2", "3"]),
        ("2013-05-01", ["2013", "05", "01"]),
        ("航班延误", ["航", "班", "延", "误", "航班", "班延", "延误"]),
        ("JFK的rate", ["jfk", "的", "rate"]),
        ("ＪＦＫ　１２", ["jfk", "12"]),
        ("naïve Straße Привет 서울", ["naïve", "strass", "привет", "서울"]),
        ("", []),
        (" \n!?", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokens_of(text) == tokens


@given(st.text(alphabet="abcdeginsuyzl", min_size=1, max_size=12))
def test_a_stem_is_never_empty_and_never_longer_than_one_letter_more(word: str) -> None:
    assert 1 <= len(stem(word)) <= len(word) + 1
