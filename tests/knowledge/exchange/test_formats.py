"""A file of another program is read by its form, and what cannot be read is told."""

import json
import os
from pathlib import Path

import pytest

from longtable.base.errors import ConfigError
from longtable.knowledge.entries import Term
from longtable.knowledge.exchange.formats import MOST_BYTES, read_file
from longtable.knowledge.exchange.ossie import write_ossie

PAIRS = [{"question": "How many?", "sql": "SELECT 1"}]
MODEL = write_ossie([Term(term="net take", meaning="revenue less fees", sql="a - b")], "shop")


@pytest.mark.parametrize(
    ("name", "text", "terms", "questions"),
    [
        ("model.json", MODEL, ["net take"], []),
        ("pairs.json", json.dumps(PAIRS), [], ["How many?"]),
        ("test.yml", "name: n\nprompt: How many?\nsql: SELECT 1\n", [], ["How many?"]),
    ],
)
def test_each_form_is_known(
    tmp_path: Path, name: str, text: str, terms: list[str], questions: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    found = read_file(tmp_path / name)
    assert [term.term for term in found.terms] == terms
    assert [query.question for query in found.queries] == questions
    assert not found.problems


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "no"), ("a.json", "[" * 9_999), ("a.yml", "")]
)
def test_what_is_no_such_file_is_a_problem(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = read_file(tmp_path / name)
    assert (found.terms, found.queries) == ((), ()) or not [*found.terms, *found.queries]
    assert found.problems


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_file(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes("é".encode("latin-1"))
    with pytest.raises(ConfigError, match="is not UTF-8"):
        read_file(tmp_path / "latin.json")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in [
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "a pipe or a device"),
        (Path("/dev/zero"), "a pipe or a device"),
    ]:
        with pytest.raises(ConfigError, match=f"is {kind}: a file is needed"):
            read_file(path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    with pytest.raises(ConfigError, match="at most 40,000,000 bytes can be imported"):
        read_file(tmp_path / "large.json")
