"""Each sentence of the command line is there in both languages, with the same blanks."""

from string import Formatter

import pytest

from longtable.app.console.translations import WORDS, counted, say


@pytest.mark.parametrize("key", sorted(WORDS))
def test_every_sentence_is_there_in_both_languages_with_the_same_blanks(key: str) -> None:
    def blanks(language: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(WORDS[key][language]) if name}

    assert set(WORDS[key]) == {"en", "zh"}
    assert blanks("en") == blanks("zh")


def test_unknown_language_reads_english() -> None:
    assert say("leave", "fr") == WORDS["leave"]["en"]


def test_one_thing_has_a_sentence_of_its_own_in_english() -> None:
    assert counted("rows", "en", 1, ms=3) != counted("rows", "en", 2, ms=3)
