"""`longtable threads ...` and `longtable usage` through real processes."""

import json
import os
import pty
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.app.runner import PROGRAM, SECONDS, Home, make_home
from tests.store.test_damage import damage


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home with the threads a and b, which no test changes."""
    home = make_home(tmp_path_factory.mktemp("asked"))
    for thread, *questions in (
        ("a", "How many orders are there?", "Which tables are there?"),
        ("b", "有多少 orders？"),
    ):
        for question in questions:
            assert home.run("ask", question, "--thread", thread).returncode == 0
    return home


@pytest.fixture
def home(asked: Home, tmp_path: Path) -> Home:
    """Return a copy of that home."""
    return Home(copytree(asked.folder, tmp_path / "home"))


def ids(home: Home, *args: str) -> list[str]:
    return [line["thread_id"] for line in home.events("threads", *args)]


def test_usage_by_the_same_thing_twice_has_one_column_of_it(home: Home) -> None:
    once, twice = (home.run("usage", *["--by", "model"] * times).stdout for times in (1, 2))
    assert twice == once


def test_a_store_that_is_named_and_not_there_is_told_and_not_made(home: Home) -> None:
    missing = home.folder / "nowhere" / "threads.db"
    done = home.run("threads", "list", "--json", "--store", f"sqlite:///{missing}")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"Note: There is no store at {missing}; nothing was created.\n"
    assert not missing.parent.exists()
    # Without a name it is where the threads will be.
    assert home.run("usage", LONGTABLE_STORE=f"sqlite:///{missing}").stderr == ""


def test_threads_are_listed_with_and_without_the_word_list(home: Home) -> None:
    assert sorted(ids(home)) == sorted(ids(home, "list")) == ["a", "b"]
    assert ids(home, "--thread", "a") == ["a"]
    assert ids(home, "list", "--text", "how many") == ["a"]
    assert (
        len({*ids(home, "list", "--limit", "1"), *ids(home, "list", "--limit", "1", "--page", "2")})
        == 2
    )
    assert "How many orders" in home.run("threads", "list").stdout
    assert (
        home.run(
            "ask", "How many orders are there?", "--thread", "a", "--project", "north"
        ).returncode
        == 0
    )
    assert ids(home, "list", "--project", "north") == ["a"]
    assert (
        home.run(
            "ask", "How many orders are there?", "--thread", "a", "--project", "south"
        ).returncode
        == 1
    )
    assert home.run("threads", "move", "a", "south").returncode == 0
    assert (
        home.run(
            "ask", "How many orders are there?", "--thread", "a", "--project", "south"
        ).returncode
        == 0
    )
    assert home.run("threads", "move", "a", "north").returncode == 0
    assert ids(home, "list", "--owner", "ann") == ids(home, "list", "--all-owners")


def test_show_search_rename_and_usage(home: Home) -> None:
    shown = home.events("threads", "show", "a")
    assert [line["turn"] for line in shown if line["role"] == "human"] == [1, 2]
    assert "How many orders" in home.run("threads", "show", "a").stdout
    assert ("a", 2) in {
        (line["thread_id"], line["turn"])
        for line in home.events("threads", "search", "which tables")
    }
    assert "Nothing was found" in home.run("threads", "search", "submarine").stdout
    assert "没有找到" in home.run("threads", "search", "潜水艇", LANG="zh_CN.UTF-8").stdout
    assert home.run("threads", "rename", "a", "Orders \x1b[31m").returncode == 0
    (info,) = home.events("threads", "--thread", "a")
    assert info["title"].startswith("Orders")
    spent = home.events("usage", "--by", "thread")
    (total,) = home.events("usage")
    assert {line["thread"] for line in spent} == {"a", "b"}
    assert total["calls"] >= 3
    for name in ("calls", "input", "output", "cached", "reasoning", "estimated"):
        assert sum(line[name] for line in spent) == total[name]
    assert "input" in home.run("usage").stdout


def test_fork_export_delete_and_import(home: Home) -> None:
    assert home.run("threads", "fork", "a", "--turn", "1", "--as", "f").returncode == 0
    assert [line["turn"] for line in home.events("threads", "show", "f")][-1] == 1
    assert home.run("ask", "How many orders are there?", "--thread", "f").returncode == 0
    file = home.folder / "f.jsonl"
    assert home.run("threads", "export", "f", "--output", str(file)).returncode == 0
    again = home.run("threads", "export", "f", "--output", str(file))
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert home.run("threads", "export", "f").stdout == file.read_text()
    assert "```sql" in home.run("threads", "export", "f", "--format", "markdown").stdout
    assert home.run("threads", "export", "f", "--format", "html").stdout.startswith(
        "<!DOCTYPE html>"
    )
    assert home.run("threads", "delete", "f", "--yes").returncode == 0
    assert home.run("threads", "show", "f").returncode == 1
    assert home.run("threads", "import", str(file)).returncode == 0
    assert home.run("threads", "export", "f").stdout == file.read_text()
    assert (
        home.run(
            "threads", "import", "-", "--as", "g", stdin=b"\xef\xbb\xbf" + file.read_bytes()
        ).returncode
        == 0
    )
    assert sorted(ids(home)) == ["a", "b", "f", "g"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["show", "nobody"], "no such conversation"),
        (["delete", "nobody", "--yes"], "no such conversation"),
        (["delete", "nobody"], "no such conversation"),
        (["delete", "a"], "add --yes"),
        (["prune", "--older-than", "0d"], "add --yes"),
        (["prune", "--older-than", "soon"], "as in 90d"),
        (["fork", "a", "--turn", "9"], "found 9: name one of them"),
        (["fork", "a", "--turn", "1", "--as", "b"], "of this id already"),
        (["fork", "a", "--turn", "1", "--as", " "], "printable"),
        (["rename", "a", " "], "title"),
        (["import", "nowhere.jsonl"], "cannot be used"),
        (["import", "shop.db"], "not a conversation"),
        (["import", "a", "--as", ""], "printable"),
        (["export", "a", "-o", "/nowhere/at/all"], "cannot be used"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    asked: Home, args: list[str], says: str
) -> None:
    args = [str(asked.folder / arg) if arg == "shop.db" else arg for arg in args]
    done = asked.run("threads", *args)
    assert done.returncode == 1
    assert says in done.stderr
    assert sorted(ids(asked)) == ["a", "b"]


def test_a_damaged_thread_is_named_and_the_others_are_shown(home: Home) -> None:
    file = Path(home.store.removeprefix("sqlite:///"))
    damage(file, "checkpoints", "thread_id = 'a'", column="checkpoint")
    for args in (
        ["threads", "show", "a"],
        ["threads", "export", "a"],
        ["threads", "rename", "a", "new"],
        ["ask", "hi", "--thread", "a"],
    ):
        done = home.run(*args)
        assert done.returncode == 1
        assert "'a' is damaged" in " ".join(done.stderr.split())
        assert "inside longtable" not in done.stderr
    assert sorted(ids(home)) == ["a", "b"]
    found = home.run("threads", "search", "orders", "--json")
    assert {json.loads(line)["thread_id"] for line in found.stdout.splitlines()} == {"b"}
    for told in (found, home.run("usage")):
        assert told.returncode == 0
        assert "Thread a is damaged and was left out" in told.stderr
    # Its queries are kept apart from its messages.
    assert {line["thread"] for line in home.events("audit")} == {"a", "b"}
    forked = home.run("threads", "fork", "a", "--as", "again")
    assert "New thread again: thread a up to turn " in forked.stdout
    assert "How many orders" in home.run("threads", "show", "again").stdout
    assert home.run("threads", "delete", "a", "--yes").returncode == 0
    damage(file, "store", "prefix = 'longtable.threads' AND key = 'b'", column="value")
    listed = home.run("threads")
    assert "line of thread b is damaged" in listed.stderr
    assert sorted(ids(home)) == ["again", "b"]


def test_a_delete_that_the_store_refuses_keeps_the_results(home: Home) -> None:
    file = Path(home.store.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "CREATE TRIGGER refuse BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT,"
            " 'refused'); END"
        )
    before = sorted(file.with_name(f"{file.name}.results").rglob("*.parquet"))
    assert before
    assert home.run("threads", "delete", "a", "--yes").returncode == 1
    assert sorted(file.with_name(f"{file.name}.results").rglob("*.parquet")) == before


def test_commands_to_type_next_quote_the_thread(home: Home) -> None:
    assert (
        "longtable chat --thread 'a copy'"
        in home.run("threads", "fork", "a", "--as", "a copy").stdout
    )
    damage(
        Path(home.store.removeprefix("sqlite:///")),
        "checkpoints",
        "thread_id = 'a copy'",
        column="checkpoint",
    )
    assert "longtable threads fork 'a copy'" in home.run("usage").stderr


def test_prune_deletes_or_reduces(home: Home) -> None:
    assert (
        "No thread is that old"
        in home.run("threads", "prune", "--older-than", "90d", "--yes").stdout
    )
    before = home.run("threads", "export", "a").stdout
    assert (
        "2" in home.run("threads", "prune", "--older-than", "0h", "--keep-archive", "--yes").stdout
    )
    assert home.run("threads", "export", "a").stdout == before
    assert home.run("threads", "prune", "--older-than", "0h", "--yes", "--json").returncode == 0
    assert ids(home) == []


def test_a_store_named_before_the_command_is_the_one_that_is_changed(home: Home) -> None:
    other = f"sqlite:///{home.folder / 'other.db'}"
    home.run("ask", "How many orders are there?", "--thread", "a", "--store", other)
    assert home.run("threads", "--store", other, "delete", "a", "--yes").returncode == 0
    assert sorted(ids(home)) == ["a", "b"]
    assert ids(home, "--store", other) == []


@pytest.mark.parametrize(("typed", "left"), [(b"\n", ["a", "b"]), (b"y\n", ["b"])])
def test_deleting_asks_in_a_terminal(home: Home, typed: bytes, left: list[str]) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "threads", "delete", "a"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=home.environment(),
    )
    os.close(theirs)
    os.write(ours, typed)
    out, err = process.communicate(timeout=SECONDS)
    os.close(ours)
    assert b"Delete thread a" in out
    assert b"Traceback" not in err
    assert sorted(ids(home)) == left


def test_every_command_has_help(home: Home) -> None:
    for command in (
        "list",
        "show",
        "search",
        "rename",
        "move",
        "fork",
        "export",
        "import",
        "delete",
        "prune",
    ):
        assert "--store" in home.run("threads", command, "--help", COLUMNS="200").stdout
    assert "--by" in home.run("usage", "--help", COLUMNS="200").stdout
    assert json.loads(home.run("threads", "--json", "--thread", "a").stdout)["turns"] == 2


def test_usage_shows_what_the_tokens_cost_by_the_users_table(home: Home) -> None:
    (home.folder / "prices.toml").write_text('["*"]\ninput = 1\noutput = 2\n')
    (row,) = home.events("usage", "--prices", str(home.folder / "prices.toml"))
    assert row["cost"] * 1_000_000 == pytest.approx(row["input"] + 2 * row["output"])
    assert row["unpriced"] == 0
    failed = home.run("usage", "--prices", "none.toml")
    assert (failed.returncode, "none.toml" in failed.stderr) == (1, True)


def test_what_is_compacted_is_written_to_files_that_are_listed_and_go_with_the_thread(
    home: Home,
) -> None:
    asked = b"How many orders are there?\n" * 9 + b"/compact\n"
    told = home.events("chat", "--thread", "c", "--archive-on-compact", stdin=asked)
    [key] = [event["archive"] for event in told if event["type"] == "context_compressed"]
    assert [file["key"] for file in home.events("threads", "archive", "c")] == [key]
    assert key in home.run("threads", "archive", "c").stdout
    assert json.loads(home.run("threads", "archive", "c", key).stdout)["first"] == 1
    assert home.run("threads", "archive", "c", "../" + key).returncode == 1
    assert "--archive-on-compact" in home.run("threads", "archive", "a").stdout
    assert "memory" in home.run("ask", "x", "--archive-on-compact", "--store", "memory://").stderr
    assert home.run("threads", "delete", "c", "--yes").returncode == 0
    assert not list(home.folder.rglob("2*.json"))


def test_with_a_key_nothing_of_a_turn_stays_on_the_disk_in_plain_text(home: Home) -> None:
    secret: Any = {
        "LONGTABLE_STORE": f"sqlite:///{home.folder}/sealed/threads.db",
        "LONGTABLE_STORE_KEY": "correct horse battery staple",
    }
    (home.folder / "sealed").mkdir()
    asked = b"List the customers\n/result r1\n" * 5 + b"/compact\n"
    told = home.events(
        "chat",
        "--thread",
        "s",
        "--archive-on-compact",
        stdin=asked,
        **secret,
        TMPDIR=str(home.folder / "sealed"),
    )
    assert [event["row_count"] for event in told if event["type"] == "query_finished"][:1] == [30]
    files = [path for path in (home.folder / "sealed").rglob("*") if path.is_file()]
    assert [
        path.name
        for path in files
        if b"customer 7" in path.read_bytes() or path.suffix == ".parquet"
    ] == []
    assert "in plain text" in home.run("result", "r1", "--thread", "s", **secret).stderr


def test_the_ending_of_an_exported_file_decides_its_form(home: Home, tmp_path: Path) -> None:
    home.run("ask", "How many orders are there?", "--thread", "e")
    for ending, start in ((".jsonl", "{"), (".md", "# "), (".html", "<!"), ("", "{")):
        file = tmp_path / f"thread{ending}"
        done = home.run("threads", "export", "e", "-o", str(file))
        assert (done.returncode, file.read_text().startswith(start)) == (0, True), file.read_text()
    file = tmp_path / "other.md"
    refused = home.run("threads", "export", "e", "-o", str(file), "--format", "html")
    assert (refused.returncode, file.exists()) == (1, False)
    assert "--format html does not fit" in refused.stderr


def test_an_ending_of_no_form_is_refused_unless_the_form_is_said(
    home: Home, tmp_path: Path
) -> None:
    home.run("chat", "--thread", "e", stdin=b"How many orders are there?\n")
    file = tmp_path / "e.pdf"
    refused = home.run("threads", "export", "e", "-o", str(file))
    assert refused.returncode != 0
    assert "'.pdf'" in refused.stderr
    assert not file.exists()
    assert home.run("threads", "export", "e", "-o", str(file), "--format", "jsonl").returncode == 0
    assert file.read_text().startswith('{"')


def test_ratings_are_listed_and_without_one_it_says_so(home: Home) -> None:
    assert "No answer was rated yet." in home.run("threads", "ratings").stdout
    assert home.events("threads", "ratings") == []
