"""The page speaks two languages."""

import re
from pathlib import Path

import pytest

from longtable.app.pages import page_words
from longtable.app.pages.page_words import WORDS, page_word, preferred_language

FOLDER = Path(page_words.__file__).parent


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("de, fr;q=0.8", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en;q=0.3, zh;q=0.7", "zh"),
        ("zh;q=x, en", "en"),
        ("de, zh-TW;q=0.5", "zh"),
        (",".join(["de"] * 1_000) + ",zh", "en"),
    ],
)
def test_the_language_is_the_first_that_the_browser_asks_for(header: str, language: str) -> None:
    assert preferred_language(header) == language


@pytest.mark.parametrize("key", WORDS)
def test_both_languages_say_it_with_the_same_values(key: str) -> None:
    words = WORDS[key]
    assert set(words) == {"en", "zh"}
    names = [set(re.findall(r"{(\w+)", text)) for text in words.values()]
    assert names[0] == names[1]


def test_a_value_is_filled_in() -> None:
    assert page_word("rows", "en", count="3") == "3 rows"


def test_no_words_are_left_that_no_page_says() -> None:
    pages = [*FOLDER.glob("*.py"), *(FOLDER / "templates").glob("*.html")]
    text = "".join(path.read_text() for path in pages)
    built = ("note_", "decided_")
    unused = [key for key in WORDS if f'"{key}"' not in text and f"'{key}'" not in text]
    assert [key for key in unused if not key.startswith(built)] == []
