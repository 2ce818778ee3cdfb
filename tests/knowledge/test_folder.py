"""A knowledge folder is read whole, is read again when a file changes, and is written entry by
entry.
"""

import codecs
import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from longtable.base.errors import ConfigError
from longtable.knowledge.entries import Knowledge, Term, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.knowledge.folder_reading import read_folder, rivals_of

QUERY = VerifiedQuery(name="", question="How many orders?", sql="SELECT count(*) FROM orders")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "orders.sql").write_text("-- question: How many orders?\nSELECT 1")
    (tmp_path / "glossary.toml").write_text('[[term]]\nterm = "mover"\nmeaning = "sells"\n')
    (tmp_path / "rules.md").write_text("Money is in euros.\n")
    return tmp_path


def test_a_folder_is_read_whole(folder: Path) -> None:
    knowledge = read_folder(folder)
    assert [term.term for term in knowledge.terms] == ["mover"]
    assert knowledge.rules == "Money is in euros."
    assert [query.name for query in knowledge.queries] == ["orders"]
    assert knowledge.problems == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    said = r"is not there: .* make it with mkdir .*none, or .*knowledge add --knowledge .*none"
    with pytest.raises(ConfigError, match=said):
        read_folder(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is not there"):
        read_folder(tmp_path / "file" / "none")


def test_a_file_in_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file is a file: a folder is needed"):
        read_folder(tmp_path / "file")


def test_a_folder_that_may_not_be_read_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, folder)
    with pytest.raises(ConfigError, match=r"folder cannot be read: .*: Permission denied"):
        KnowledgeFolder(folder).current()


def test_queries_that_may_not_be_listed_are_told_and_the_rest_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = KnowledgeFolder(folder)
    assert len(opened.current().queries) == 1
    with monkeypatch.context() as during:
        forbid(during, folder / "queries")
        knowledge = opened.current()
        assert knowledge.queries == []
        assert [term.term for term in knowledge.terms] == ["mover"]
        problems = [str(problem) for problem in knowledge.problems]
        assert problems == ["queries: it cannot be read: Permission denied"]
        with pytest.raises(ConfigError, match=r"cannot be read: .*queries: Permission denied"):
            opened.add_query(QUERY)
    assert len(opened.current().queries) == 1


def test_a_link_that_leads_to_itself_is_told_wherever_it_stands(tmp_path: Path) -> None:
    for name in ("glossary.toml", "queries"):
        (tmp_path / name).symlink_to(tmp_path / name)
    problems = {str(problem) for problem in read_folder(tmp_path).problems}
    said = "it cannot be read: Too many levels of symbolic links"
    assert problems == {f"glossary.toml: {said}", f"queries: {said}"}


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Refuse to list one folder, as the system does not for the administrator."""
    scandir = os.scandir

    def refuse(path: Path) -> "os._ScandirIterator[str]":
        if path == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)


def test_files_that_cannot_be_read_are_told_and_the_others_are_used(folder: Path) -> None:
    (folder / "queries" / "large.sql").write_text("-- question: x?\n" + "x" * 10_000_000)
    (folder / "queries" / "latin.sql").write_bytes("-- question: é?\nSELECT 1".encode("latin-1"))
    (folder / "queries" / "folder.sql").mkdir()
    (folder / "queries" / "empty.sql").write_text("")
    (folder / "rules.md").write_text("x" * 4_001)
    knowledge = read_folder(folder)
    assert [query.name for query in knowledge.queries] == ["orders"]
    assert knowledge.rules == ""
    assert [str(problem) for problem in knowledge.problems] == [
        "queries/empty.sql:1: the first comment needs one line `-- question: ...`",
        "queries/folder.sql: this is no file",
        "queries/large.sql: at most 1,000,000 bytes, found 10,000,016",
        "queries/latin.sql:1: the text is not UTF-8; save the file as UTF-8",
        "rules.md:1: at most 4,000 characters of rules, found 4,001",
    ]


def test_a_change_is_seen_and_without_one_nothing_is_read_again(folder: Path) -> None:
    opened = KnowledgeFolder(folder)
    before = opened.current()
    assert opened.current() is before
    (folder / "queries" / "more.sql").write_text("-- question: More?\nSELECT 2")
    assert [query.name for query in opened.current().queries] == ["more", "orders"]
    (folder / "rules.md").unlink()
    assert opened.current().rules == ""


def test_a_query_is_written_under_a_free_name_and_removed(folder: Path) -> None:
    opened = KnowledgeFolder(folder)
    first = opened.add_query(QUERY)
    second = opened.add_query(replace(QUERY, sql="SELECT 2"))
    assert [first.name, second.name] == ["how_many_orders", "how_many_orders_2"]
    assert first.place.file == "queries/how_many_orders.sql"
    assert opened.remove("how_many_orders")
    assert [query.name for query in opened.current().queries] == ["how_many_orders_2", "orders"]
    assert not opened.remove("how_many_orders")


def test_the_same_question_with_the_same_sql_is_written_once(tmp_path: Path) -> None:
    opened = KnowledgeFolder(tmp_path)
    first = opened.add_query(QUERY)
    same = replace(QUERY, question="How  many\norders?", sql=f"-- all\n{QUERY.sql};\n")
    assert opened.add_query(same) == first
    assert opened.add_queries([QUERY, same]) == [first, first]
    assert KnowledgeFolder(tmp_path).query_names() == {"how_many_orders"}
    other = opened.add_query(replace(QUERY, sql="SELECT 2"))
    assert opened.query_names() == {first.name, other.name}


def test_a_query_is_read_back_as_it_was_written_whatever_ends_a_line_elsewhere(
    tmp_path: Path,
) -> None:
    sql = "SELECT 'a\u2028b\x0bc\x0cd\re\x85f\r\ng\x1ch\u2029i\nj'"
    question = "How many\u2028-- checked by: The Board\x0b of\rthem?"
    written = KnowledgeFolder(tmp_path).add_query(replace(QUERY, question=question, sql=sql))
    (read,) = read_folder(tmp_path).queries
    assert read == written
    assert read.sql == sql
    assert (read.question, read.checked_by) == (
        "How many -- checked by: The Board of them?",
        "",
    )


def test_a_glossary_keeps_its_byte_order_mark_and_its_line_ends(tmp_path: Path) -> None:
    mark = codecs.BOM_UTF8
    text = b"[[term]]\r\nterm = 'one'\r\nmeaning = 'x'\r\n"
    file = tmp_path / "glossary.toml"
    file.write_bytes(mark + text)
    opened = KnowledgeFolder(tmp_path)
    opened.add_term(Term(term="two", meaning="y"))
    added = b'\r\n[[term]]\r\nterm = "two"\r\nmeaning = "y"\r\n'
    assert file.read_bytes() == mark + text + added
    assert opened.remove("two")
    assert file.read_bytes() == mark + text + b"\r\n"
    assert opened.remove("one")
    opened.add_term(Term(term="two", meaning="y"))
    assert file.read_bytes().startswith(mark)


def test_a_glossary_behind_a_link_is_written_where_the_link_leads(folder: Path) -> None:
    target = folder / "words.toml"
    (folder / "glossary.toml").rename(target)
    (folder / "glossary.toml").symlink_to("words.toml")
    KnowledgeFolder(folder).add_term(Term(term="net take", meaning="x"))
    assert (folder / "glossary.toml").is_symlink()
    assert 'term = "net take"' in target.read_text()
    target.unlink()
    with pytest.raises(ConfigError, match=r"mend glossary.toml first"):
        KnowledgeFolder(folder).add_term(Term(term="net take", meaning="x"))


def test_a_term_goes_and_a_mark_that_ends_a_line_elsewhere_moves_no_other(folder: Path) -> None:
    kept = '[[term]]\nterm = "one\u2028eins"\nmeaning = "x\x85y"\n\n'
    text = f'{kept}[[term]]\nterm = "two"\nmeaning = "y"\n'
    (folder / "glossary.toml").write_text(text, encoding="utf-8")
    assert KnowledgeFolder(folder).remove("two")
    assert (folder / "glossary.toml").read_text(encoding="utf-8") == kept


def test_a_term_is_written_below_the_others_which_stay_as_they_were(folder: Path) -> None:
    opened = KnowledgeFolder(folder)
    before = (folder / "glossary.toml").read_text()
    opened.add_term(Term(term="net take", meaning="revenue less fees"))
    assert (folder / "glossary.toml").read_text().startswith(before.rstrip())
    assert [term.term for term in opened.current().terms] == ["mover", "net take"]
    with pytest.raises(ConfigError, match="'Net Take' is already a name of 'net take'"):
        opened.add_term(Term(term="Net Take", meaning="other"))
    assert opened.remove("net take")
    assert [term.term for term in opened.current().terms] == ["mover"]


def test_a_term_that_is_there_is_a_problem_and_is_not_written_again(tmp_path: Path) -> None:
    opened = KnowledgeFolder(tmp_path)
    assert opened.add_terms([Term(term="order", meaning="x")]) == []
    (problem,) = opened.add_terms([Term(term="order", meaning="x")])
    assert "'order' is already a name of 'order' (glossary.toml:1)" in str(problem)
    assert len(opened.current().terms) == 1


def test_a_glossary_with_a_mistake_is_not_written_over(folder: Path) -> None:
    (folder / "glossary.toml").write_text('[[term]]\nterm = "mover"\nmeaning = "x"\n[[term]]\n')
    before = (folder / "glossary.toml").read_text()
    opened = KnowledgeFolder(folder)
    with pytest.raises(ConfigError, match=r"mend glossary.toml first: glossary.toml:4"):
        opened.remove("mover")
    with pytest.raises(ConfigError, match=r"mend glossary.toml first: glossary.toml:4"):
        opened.add_term(Term(term="x", meaning="y"))
    assert (folder / "glossary.toml").read_text() == before


@pytest.mark.parametrize("wrong", [b"[[term", b"\xff\xfe"])
def test_a_glossary_that_cannot_be_read_takes_no_term(folder: Path, wrong: bytes) -> None:
    (folder / "glossary.toml").write_bytes(wrong)
    with pytest.raises(ConfigError, match=r"mend glossary.toml first"):
        KnowledgeFolder(folder).add_term(Term(term="x", meaning="y"))
    assert (folder / "glossary.toml").read_bytes() == wrong


def test_a_term_goes_and_comments_and_other_terms_stay(folder: Path) -> None:
    text = (
        "# ours\n[[term]]\nterm = 'one'\nmeaning = 'x'\nsynonyms = ['eins']\n\n# of two\n"
        "[[term]]\nterm = 'two'\nmeaning = 'y'\n"
    )
    (folder / "glossary.toml").write_text(text)
    (folder / "glossary.toml").chmod(0o664)
    opened = KnowledgeFolder(folder)
    assert not opened.remove("eins")
    assert opened.remove("one")
    kept = "# ours\n\n# of two\n[[term]]\nterm = 'two'\nmeaning = 'y'\n"
    assert (folder / "glossary.toml").read_text() == kept
    assert (folder / "glossary.toml").stat().st_mode & 0o777 == 0o664


def test_writers_of_one_folder_lose_nothing_of_each_other(tmp_path: Path) -> None:
    def write(number: int) -> None:
        opened = KnowledgeFolder(tmp_path)
        opened.add_query(replace(QUERY, sql=f"SELECT {number}"))
        opened.add_term(Term(term=f"term {number}", meaning="x"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    knowledge = read_folder(tmp_path)
    assert (len(knowledge.queries), len(knowledge.terms)) == (40, 40)
    assert (tmp_path / "glossary.toml").stat().st_mode & 0o777 == 0o644


def test_nothing_is_written_that_would_be_too_large_to_read(tmp_path: Path) -> None:
    opened = KnowledgeFolder(tmp_path)
    with pytest.raises(ConfigError, match="may have 1,000,000 bytes, and would have"):
        opened.add_query(replace(QUERY, sql="SELECT " + "1" * 1_000_000))
    assert not [*tmp_path.glob("queries/*")]


def test_a_link_that_leads_out_of_the_folder_is_not_read(folder: Path, tmp_path: Path) -> None:
    (folder / "rules.md").unlink()
    (folder / "rules.md").symlink_to("/proc/self/environ")
    knowledge = read_folder(folder)
    assert knowledge.rules == ""
    assert str(knowledge.problems[0]) == "rules.md: this leads out of the folder"


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    opened = KnowledgeFolder(tmp_path / "taken")
    with pytest.raises(ConfigError, match=r"the knowledge folder cannot be written: .*taken"):
        opened.add_query(QUERY)
    with pytest.raises(ConfigError, match="the knowledge folder cannot be written"):
        opened.add_term(Term(term="x", meaning="y"))


@pytest.mark.parametrize(
    "text",
    [
        '[["term"]]\nterm = "alpha"\nmeaning = "a"\n\n[[term]]\nterm = "beta"\nmeaning = "b"\n',
        '[[term]]\nterm = "alpha"\nmeaning = """a\n[[term]]\nb"""\n\n[[term]]\nterm = "beta"\nmeaning = "b"\n',
        'term = [{term = "alpha", meaning = "a"}, {term = "beta", meaning = "b"}]\n',
    ],
)
def test_a_glossary_in_another_way_of_writing_is_changed_rightly_or_not_at_all(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "glossary.toml").write_text(text)
    folder = KnowledgeFolder(tmp_path)
    for name in ("alpha", "beta"):
        if changed(partial(folder.remove, name)):
            assert [term.term for term in folder.current().terms] == [
                other for other in ("alpha", "beta") if other != name
            ]
        else:
            assert (tmp_path / "glossary.toml").read_text() == text
        (tmp_path / "glossary.toml").write_text(text)
    names = ["alpha", "beta"]
    if changed(partial(folder.add_term, Term(term="gamma", meaning="c"))):
        names.append("gamma")
    assert [term.term for term in folder.current().terms] == names


def changed(change: Callable[[], object]) -> bool:
    """Return whether a change of a glossary was made. If not, the reason must be its writing."""
    try:
        change()
    except ConfigError as error:
        return "edit it by hand" not in str(error)
    return True


def test_nothing_is_written_into_a_folder_that_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "taught").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "taught" / "queries").symlink_to(tmp_path / "elsewhere")
    query = VerifiedQuery(name="", question="How many?", sql="SELECT 1")
    with pytest.raises(ConfigError, match="leads out of the knowledge folder"):
        KnowledgeFolder(tmp_path / "taught").add_query(query)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_two_answers_to_one_question_are_told_and_the_newest_comes_first(tmp_path: Path) -> None:
    folder = KnowledgeFolder(tmp_path)
    old = VerifiedQuery(name="", question="How many?", sql="SELECT 1", checked_on="2026-01-01")
    folder.add_query(old)
    new = folder.add_query(
        VerifiedQuery(name="", question="how MANY?", sql="SELECT 2", checked_on="2026-02-01")
    )
    assert [problem.message for problem in folder.current().problems] == [
        "queries/how_many.sql answers the same question with other SQL: keep one"
    ]
    assert [query.sql for query in folder.found("How many?").queries] == ["SELECT 2", "SELECT 1"]
    assert [rival.sql for rival in rivals_of(new, folder.current().queries)] == ["SELECT 1"]


def test_a_change_of_the_same_size_and_time_is_seen(tmp_path: Path) -> None:
    folder = KnowledgeFolder(tmp_path)
    (tmp_path / "rules.md").write_text("one")
    os.utime(tmp_path / "rules.md", (1, 1))
    assert folder.current().rules == "one"
    (tmp_path / "rules.md").write_text("two")
    os.utime(tmp_path / "rules.md", (1, 1))
    assert folder.current().rules == "two"


def test_a_folder_that_is_gone_teaches_nothing(folder: Path) -> None:
    opened = KnowledgeFolder(folder)
    assert opened.current().terms
    folder.rename(folder.with_name("moved"))
    with pytest.raises(ConfigError, match="is not there"):
        opened.current()
    assert opened.known == Knowledge()


def test_ten_thousand_pairs_are_read_and_the_one_that_is_meant_is_found(tmp_path: Path) -> None:
    folder = KnowledgeFolder(tmp_path)
    (tmp_path / "queries").mkdir()
    for number in range(10_000):
        text = f"-- question: How many crates of sort{number} came?\nSELECT {number}\n"
        (tmp_path / "queries" / f"q{number}.sql").write_text(text)
    found = folder.found("crates of sort7654, how many were there?")
    assert found.queries[0].sql == "SELECT 7654"
    assert len(found.queries) <= 5
    assert len(folder.query_names()) == 10_000
