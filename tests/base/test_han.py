"""Chinese and Japanese characters are told from others, and cut into pairs."""

import pytest

from longtable.base.han import is_han, pairs_of


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
