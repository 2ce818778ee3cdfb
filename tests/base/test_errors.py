"""The errors: one base, a flat tree that its module draws, and sentences for people."""

import re

from longtable.base import errors
from longtable.base.errors import LongtableError, sentences

CLASSES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LongtableError)
]


def test_the_module_draws_the_tree_as_it_is() -> None:
    lines = re.findall(r"^( +)(\w+Error)$", errors.__doc__ or "", re.MULTILINE)
    path: list[str] = []
    drawn: dict[str, str] = {}
    for indent, name in lines:
        depth = len(indent) // 4 - 1
        path[depth:] = [name]
        drawn[name] = path[depth - 1] if depth else ""
    assert drawn == {
        kind.__name__: "" if kind is LongtableError else kind.__bases__[0].__name__
        for kind in CLASSES
    }


def test_each_sentence_is_in_both_languages() -> None:
    for code, of_languages in sentences().items():
        assert {"en", "zh"} <= of_languages.keys(), code


def test_an_error_without_a_sentence_of_its_own_tells_its_parents() -> None:
    silent = [kind for kind in CLASSES if kind.code not in sentences()]
    assert silent
    for kind in silent:
        parents = [parent.code for parent in kind.__mro__[1:] if parent in CLASSES]
        assert any(code in sentences() for code in parents), kind
