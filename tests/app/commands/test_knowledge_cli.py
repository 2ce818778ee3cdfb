"""`longtable knowledge ...` and `--knowledge` through real processes."""

import json
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longtable.app.commands.knowledge_cli import knowledge_app
from longtable.knowledge.entries import Problem, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from tests.app.runner import Home, make_home
from tests.support.isolation import opened_by_default

SQL = "SELECT count(*) AS n FROM orders WHERE id < :most"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def known(home: Home, *args: str, **env: str) -> list[dict[str, object]]:
    return home.events("knowledge", "list", *args, stdin=b"", **env)


def test_a_query_and_a_term_are_added_listed_checked_and_removed(home: Home) -> None:
    folder = str(home.folder / "taught")
    place = ("--knowledge", folder)
    question = "How many early orders?"
    added = home.run("knowledge", "add", question, "--sql", SQL, "--by", "Ann", *place)
    assert added.stdout == "added: queries/how_many_early_orders.sql\n"
    meaning = ("--meaning", "an order of the first days")
    term = home.run("knowledge", "add", "early bird", *meaning, "--also", "早单", *place)
    assert term.stdout == "added: early bird\n"
    entries = known(home, *place)
    assert [(each["kind"], each["name"]) for each in entries] == [
        ("term", "early bird"),
        ("query", "how_many_early_orders"),
    ]
    assert entries[1]["checked_by"] == "Ann"
    checked = home.run("knowledge", "check", *place)
    assert (checked.returncode, checked.stdout) == (0, "terms: 1, queries: 1, problems: 0\n")
    for name in ("early bird", "how_many_early_orders"):
        assert home.run("knowledge", "remove", name, *place).stdout == f"removed: {name}\n"
    assert known(home, *place) == []
    assert home.run("knowledge", "remove", "early bird", *place).returncode == 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT gone FROM orders", "no such column: gone"),
        ("DELETE FROM orders", "only"),
        ("", "give the SQL that answers the question with --sql"),
    ],
)
def test_a_query_that_cannot_run_is_not_kept(home: Home, sql: str, said: str) -> None:
    folder = home.folder / "taught"
    done = home.run("knowledge", "add", "How many?", "--sql", sql, "--knowledge", str(folder))
    assert done.returncode == 1
    assert said in done.stderr
    assert not folder.exists()


def test_a_check_names_file_and_line_and_ends_with_1(home: Home) -> None:
    folder = home.folder / "taught"
    (folder / "queries").mkdir(parents=True)
    (folder / "glossary.toml").write_text('[[term]]\nterm = "x"\n')
    (folder / "queries" / "old.sql").write_text("-- question: Old?\nSELECT gone FROM orders")
    done = home.run("knowledge", "check", "--knowledge", str(folder))
    assert done.returncode == 1
    assert "glossary.toml:1: 'x' needs a `meaning`" in done.stdout
    assert "queries/old.sql:1: no such column: gone" in done.stdout
    assert "terms: 0, queries: 1, problems: 2" in done.stdout


def test_without_a_folder_each_command_says_how_to_name_one(home: Home) -> None:
    done = home.run("knowledge", "list")
    assert done.returncode == 1
    assert "no knowledge folder is named: give one with --knowledge FOLDER" in done.stderr


def test_a_folder_that_only_stands_here_is_not_read_and_a_line_says_how(tmp_path: Path) -> None:
    here = tmp_path / "here"
    folder = here / "longtable_knowledge"
    folder.mkdir(parents=True)
    (folder / "glossary.toml").write_text('[[term]]\nterm = "x"\nmeaning = "y"\n')
    home = Home(make_home(tmp_path).folder, at=here)
    done = home.run("ask", "How many orders are there?")
    assert "the folder longtable_knowledge here does not count" in done.stderr
    assert "--knowledge longtable_knowledge" in done.stderr
    (here / "longtable.toml").write_text('[knowledge]\nfolder = "longtable_knowledge"\n')
    assert home.run("knowledge", "list").returncode == 1
    named = {"LONGTABLE_CONFIG": str(here / "longtable.toml")}
    assert [each["name"] for each in known(home, **named)] == ["x"]
    (here / "longtable.toml").write_text("")
    assert [each["name"] for each in known(home, **named)] == ["x"]  # it stands beside the file


def test_what_is_wrong_in_a_folder_is_told_when_a_chat_begins(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    (folder / "glossary.toml").write_text('[[term]]\nterm = "x"\n')
    done = home.run("ask", "How many orders are there?", "--knowledge", str(folder))
    assert "left out of the knowledge: glossary.toml:1: 'x' needs a `meaning`" in done.stdout
    assert "orders" in done.stdout


def test_an_answer_in_json_tells_what_was_quoted(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    (folder / "rules.md").write_text("Money is in euros.")
    place = ("--knowledge", str(folder))
    events = home.events("ask", "How many orders are there?", *place)
    passed = [event["passed"] for event in events if event["type"] == "context_passed"]
    assert json.loads(json.dumps(passed))[0][0]["cites"] == ["rules"]


def test_a_pair_is_kept_in_the_chat_after_a_person_confirmed_it(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    typed = b"/keep\nHow many orders are there?\n/keep\n/keep yes How many orders have we?\n"
    done = home.run("chat", "--knowledge", str(folder), stdin=typed)
    assert "If both are right: /keep yes" in done.stdout
    kept = (folder / "queries" / "how_many_orders_have_we.sql").read_text()
    assert kept.startswith("-- question: How many orders have we?\n-- checked by: ")
    assert "FROM orders" in kept
    again = home.run("ask", "How many orders are there?", "--knowledge", str(folder))
    assert "verified query how_many_orders_have_we (checked by: " in again.stdout


def test_without_a_folder_the_chat_says_that_nothing_can_be_kept(home: Home) -> None:
    done = home.run("chat", stdin=b"How many orders are there?\n/keep yes\n")
    assert "there is no knowledge folder" in done.stdout + done.stderr


def test_entries_of_other_programs_are_imported_and_terms_exported(home: Home) -> None:
    folder = home.folder / "taught"
    place = ("--knowledge", str(folder))
    pairs = [
        {"question": "How many orders?", "sql": "SELECT count(*) FROM orders"},
        {"question": "What is gone?", "sql": "SELECT gone FROM orders"},
    ]
    (home.folder / "pairs.json").write_text(json.dumps(pairs))
    done = home.run("knowledge", "import", str(home.folder / "pairs.json"), *place)
    assert "What is gone?: no such column: gone" in done.stdout
    assert done.stdout.endswith("1 added, 1 left out\n")
    home.run("knowledge", "add", "net take", "--meaning", "revenue less fees", *place)
    model = home.folder / "model.json"
    assert home.run("knowledge", "export", str(model), *place).stdout == f"written: {model}\n"
    assert home.run("knowledge", "export", str(model), *place).returncode == 1
    other = ("--knowledge", str(home.folder / "other"))
    done = home.run("knowledge", "import", str(model), *other)
    assert done.stdout == "1 added, 0 left out\n"
    assert [each["name"] for each in known(home, *other)] == ["net take"]


def test_the_sql_that_should_have_run_is_run_and_kept_after_a_yes(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    sql = "SELECT count(*) AS n FROM orders WHERE id > 1"
    typed = f"How many orders are there?\n/correct\n/correct yes\n/correct {sql}\n/correct yes\n"
    done = home.run("chat", "--knowledge", str(folder), stdin=typed.encode())
    assert "/correct needs the SQL that should have run" in done.stdout + done.stderr
    assert "29" in done.stdout
    assert "added: queries/how_many_orders_are_there.sql" in done.stdout
    assert sql in (folder / "queries" / "how_many_orders_are_there.sql").read_text()


def test_sql_that_may_not_run_corrects_nothing(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    typed = b"How many orders are there?\n/correct DROP TABLE orders\n/correct yes\n"
    done = home.run("chat", "--knowledge", str(folder), stdin=typed)
    assert "added" not in done.stdout
    assert not [*folder.iterdir()]
    assert known(home, "--knowledge", str(folder)) == []


def test_nothing_is_kept_that_was_not_shown_for_this_question(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    sql = b"/correct SELECT 1 AS n\n"
    asked = b"How many orders are there?\n"
    typed = asked + b"/keep\n" + sql + b"Which tables are there?\n/correct yes\n" + asked
    done = home.run("chat", "--knowledge", str(folder), stdin=typed)
    assert "/correct needs the SQL that should have run" in done.stdout + done.stderr
    assert "added" not in done.stdout
    typed = asked + b"/keep yes\n"
    done = home.run("chat", "--knowledge", str(folder), stdin=typed)
    assert "If both are right: /keep yes" in done.stdout
    assert "added" not in done.stdout


def test_pairs_are_imported_once(home: Home) -> None:
    place = ("--knowledge", str(home.folder / "taught"))
    pairs = [{"question": "How many orders?", "sql": "SELECT count(*) FROM orders"}]
    (home.folder / "pairs.json").write_text(json.dumps(pairs))
    for said in ("1 added, 0 left out\n", "0 added, 0 left out\n"):
        done = home.run("knowledge", "import", str(home.folder / "pairs.json"), *place)
        assert (done.returncode, done.stdout) == (0, said)


def test_a_folder_that_is_not_there_is_told_with_how_to_make_it(home: Home) -> None:
    folder = home.folder / "new one"
    for command in (("chat",), ("knowledge", "list")):
        done = home.run(*command, "--knowledge", str(folder))
        assert done.returncode == 1
        assert f"the knowledge folder {folder} is not there" in done.stderr
        assert f"knowledge add --knowledge '{folder}'" in done.stderr
    file = ("--knowledge", str(home.folder / "shop.db"))
    assert "is a file: a folder is needed" in home.run("chat", *file).stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--meaning", "x", "--by", "Ann"), "--by is for a query"),
        (("--meaning", "x", "--also", ""), "--also needs words"),
        (("--sql", "SELECT 1", "--also", "b", "--also", " "), "--also needs words"),
    ],
)
def test_what_would_be_dropped_is_refused(home: Home, args: tuple[str, ...], said: str) -> None:
    folder = home.folder / "taught"
    done = home.run("knowledge", "add", "a?", *args, "--knowledge", str(folder))
    assert done.returncode == 1
    assert said in done.stderr
    assert not folder.exists()


def test_what_is_there_already_is_told_and_not_written_again(home: Home) -> None:
    folder = home.folder / "taught"
    folder.mkdir()
    place = ("--knowledge", str(folder))
    shown = "/keep\n/keep yes\n"
    correct = "/correct SELECT count(*) AS n FROM orders WHERE id > 1\n/correct yes\n"
    typed = f"How many orders are there?\n{shown}{shown}{correct}{correct}"
    done = home.run("chat", *place, stdin=typed.encode())
    name = "queries/how_many_orders_are_there"
    told = [f"added: {name}.sql", f"it is there already: {name}.sql"]
    told += [line.replace(name, f"{name}_2") for line in told]
    assert [line for line in done.stdout.splitlines() if name in line] == told
    for said in ("added: queries/other.sql\n", "it is there already: queries/other.sql\n"):
        assert home.run("knowledge", "add", "Other?", "--sql", SQL, *place).stdout == said


def test_a_checked_query_that_breaks_is_told_once_in_a_chat(home: Home) -> None:
    folder = home.folder / "taught"
    (folder / "queries").mkdir(parents=True)
    (folder / "queries" / "old.sql").write_text("-- question: Old orders?\nSELECT gone FROM orders")
    place = ("--knowledge", str(folder))
    done = home.run("chat", *place, stdin=b"Old orders?\nOld orders now?\n")
    assert done.stdout.count("did not go with the question: knowledge: query old: no such") == 1
    done = home.run("ask", "旧订单 old orders?", *place)
    assert "未随问题发送：knowledge: query old: no such column" in done.stdout


def test_nothing_to_keep_is_told_in_chinese(home: Home) -> None:
    (home.folder / "taught").mkdir()
    place = ("--knowledge", str(home.folder / "taught"))
    done = home.run("chat", *place, stdin="你好\n/keep\n".encode(), LANG="zh_CN.UTF-8")
    assert done.stderr == "错误: 没有可保存的查询结果：请先提问。\n"


def test_ctrl_c_in_an_import_tells_how_many_were_added(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [{"question": f"Orders {n}?", "sql": f"SELECT {n} FROM orders"} for n in range(9)]
    (home.folder / "pairs.json").write_text(json.dumps(pairs))
    files = KnowledgeFolder.write_queries

    def interrupted(
        folder: KnowledgeFolder, queries: Sequence[VerifiedQuery]
    ) -> Generator[VerifiedQuery | Problem, None, None]:
        yield from files(folder, queries[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(KnowledgeFolder, "write_queries", interrupted)
    for name, value in home.environment().items():
        monkeypatch.setenv(name, value)
    folder = home.folder / "taught"
    command = ["import", str(home.folder / "pairs.json"), "--knowledge", str(folder)]
    with opened_by_default("none"):
        done = CliRunner().invoke(knowledge_app, command)
    assert (done.exit_code, done.stdout) == (130, "Cancelled: 3 added before it\n")
    assert len([*(folder / "queries").iterdir()]) == 3
