"""What an import adds, what it leaves out, and how far it is when it is broken off."""

from pathlib import Path

import pytest

from longtable.knowledge.entries import Term, VerifiedQuery
from longtable.knowledge.exchange.importing import Import
from longtable.knowledge.folder import KnowledgeFolder

SOUND = VerifiedQuery(name="", question="How many orders?", sql="SELECT count(*) FROM orders")
BROKEN = VerifiedQuery(name="", question="How many ghosts?", sql="SELECT count(*) FROM ghosts")


def fault_of(query: VerifiedQuery) -> str:
    """Return a fault for a query of ghosts."""
    return "no such table: ghosts" if "ghosts" in query.sql else ""


def test_what_fits_is_added_and_what_does_not_is_said(tmp_path: Path) -> None:
    folder = KnowledgeFolder(tmp_path)
    imported = Import(folder, [])
    imported.add_terms([Term(term="margin", meaning="price less cost"), Term(term="margin")])
    imported.add_queries([SOUND, BROKEN], fault_of)
    assert imported.added == 2
    assert len(imported.problems) == 2
    assert imported.problems[1] == "How many ghosts?: no such table: ghosts"
    knowledge = folder.current()
    assert [term.term for term in knowledge.terms] == ["margin"]
    assert [query.question for query in knowledge.queries] == ["How many orders?"]


def test_what_the_folder_has_is_neither_added_nor_planned_again(tmp_path: Path) -> None:
    folder = KnowledgeFolder(tmp_path)
    Import(folder, []).add_queries([SOUND], fault_of)
    again = Import(folder, [])
    again.add_queries([SOUND], lambda _: "planned again")
    assert (again.added, again.problems) == (0, [])


def test_an_import_that_is_broken_off_has_counted_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = KnowledgeFolder(tmp_path)
    writing = folder.write_queries

    def broken_off(queries: list[VerifiedQuery]):  # type: ignore[no-untyped-def]
        outcomes = writing(queries)
        yield next(outcomes)
        outcomes.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "write_queries", broken_off)
    imported = Import(folder, [])
    with pytest.raises(KeyboardInterrupt):
        imported.add_queries([SOUND, BROKEN], lambda _: "")
    assert imported.added == len(folder.current().queries) == 1
