"""`longtable eval` through real processes, against a model server on loopback."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.app.runner import PROGRAM, Home
from tests.support.evaluated import (
    GOLD,
    QUESTIONS,
    SqlFor,
    beside,
    half,
    make_shop,
    right,
    served_by,
)
from tests.support.model_server import (
    ChatRequest,
    ModelServer,
    Reply,
    open_model_server,
    unauthorized,
)

FILE = "questions.toml"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    make_shop(tmp_path / "shop.db")
    (tmp_path / FILE).write_text(toml())
    return Home(tmp_path, at=tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as server:
        yield server


def toml(head: str = "") -> str:
    tables = [
        f"[[question]]\nask = {json.dumps(ask)}\nsql = {json.dumps(GOLD[ask])}" for ask in GOLD
    ]
    return "\n".join([head, *tables])


def evaluated(home: Home, server: ModelServer, *args: str) -> subprocess.CompletedProcess[str]:
    place = ("--base-url", server.base_url, "--model-limit", "100k")
    return home.run("eval", FILE, "--model", "small", *place, *args)


def report(home: Home, out: str = "longtable-eval") -> Any:
    return json.loads((home.folder / out / "report.json").read_text())


@pytest.mark.parametrize(("sql_for", "share"), [(right, 1.0), (beside, 0.0), (half, 0.5)])
def test_the_harness_proves_itself(
    home: Home, server: ModelServer, sql_for: SqlFor, share: float
) -> None:
    server.always(served_by(sql_for))
    done = evaluated(home, server)
    assert done.returncode == 0, done.stderr
    whole = report(home)
    assert whole["subjects"][0]["all"]["accuracy"] == share
    assert whole["subjects"][0]["all"]["scored"] == len(GOLD)
    assert whole["subjects"][0]["all"]["input"] == 2 * 100 * len(GOLD)
    assert f"{share:.0%}".replace("%", " %") in done.stdout
    text = (home.folder / "longtable-eval" / "report.md").read_text()
    assert text.count("### ") == round((1 - share) * len(GOLD))


def test_a_bar_fails_the_command_and_junit_names_each_miss(home: Home, server: ModelServer) -> None:
    (home.folder / FILE).write_text(toml("[bar]\nquestions = 0.6"))
    server.always(served_by(half))
    done = evaluated(home, server)
    assert done.returncode == 1
    assert "Below the bar. small: 50 % of questions are right, the bar is 60 %." in done.stdout
    suite = ElementTree.parse(home.folder / "longtable-eval" / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "3", "0")
    failed = [case.get("classname") for case in suite if case.find("failure") is not None]
    assert failed == [*QUESTIONS[::2]]
    (home.folder / FILE).write_text(toml("[bar]\nquestions = 0.5"))
    assert evaluated(home, server, "--force").returncode == 0


def test_mistakes_and_failing_gold_are_told_with_file_and_line(
    home: Home, server: ModelServer
) -> None:
    broken = '[[question]]\nask = "Gone?"\nsql = "SELECT gone FROM orders"\n'
    (home.folder / FILE).write_text(f'{broken}[[question]]\nsqll = "x"\n{toml()}')
    server.always(served_by(right))
    done = evaluated(home, server)
    assert "questions.toml:5: `sqll` is not known; did you mean `sql`?" in done.stdout
    assert "questions.toml:1: Gone?: not scored: gold fails: no such column: gone" in done.stdout
    figures = report(home)["subjects"][0]["all"]
    assert (figures["accuracy"], figures["scored"], figures["unscored"]) == (1, 6, 1)


def test_a_database_that_is_gone_leaves_the_other_questions(
    home: Home, server: ModelServer
) -> None:
    elsewhere = '[[question]]\nask = "Else?"\nsql = "SELECT 1"\ndatabase = "gone.db"\n'
    (home.folder / FILE).write_text(f"{elsewhere}{toml()}")
    server.always(served_by(right))
    done = evaluated(home, server)
    assert done.returncode == 0, done.stderr
    assert "questions.toml:1: not asked: " in done.stdout
    assert "gone.db" in done.stdout
    assert report(home)["subjects"][0]["all"]["accuracy"] == 1


def test_two_models_are_compared_and_asked_the_same(home: Home, server: ModelServer) -> None:
    def answer(request: ChatRequest) -> Reply:
        return served_by(right if request.body["model"] == "large" else half)(request)

    server.always(answer)
    evaluated(home, server, "--model", "large", "--jobs", "3")
    shares = {each["model"]: each["all"]["accuracy"] for each in report(home)["subjects"]}
    assert shares == {"small": 0.5, "large": 1.0}


def test_knowledge_is_switched_on_and_off(home: Home, server: ModelServer) -> None:
    (home.folder / "taught").mkdir()
    (home.folder / "taught" / "rules.md").write_text("Always answer rightly.")

    def answer(request: ChatRequest) -> Reply:
        taught = "Always answer rightly." in json.dumps(request.messages)
        return served_by(right if taught else beside)(request)

    server.always(answer)
    evaluated(home, server, "--knowledge", "taught", "--also-without-knowledge")
    shares = {each["label"]: each["all"]["accuracy"] for each in report(home)["subjects"]}
    # The second call of a turn has a tool's result as its last message.
    assert shares == {"small with knowledge": 1.0, "small": 0.0}


def test_a_policy_holds_for_gold_and_for_the_model(home: Home, server: ModelServer) -> None:
    (home.folder / "policy.toml").write_text('[tables]\nallowed = ["orders"]\n')
    server.always(served_by(right))
    done = evaluated(home, server, "--policy", "policy.toml")
    assert done.returncode == 0, done.stderr
    figures = report(home)["subjects"][0]["all"]
    assert (figures["scored"], figures["unscored"]) == (3, 3)
    assert "customers" in done.stdout


def test_a_run_is_compared_with_an_earlier_one_question_by_question(
    home: Home, server: ModelServer
) -> None:
    server.always(served_by(half))
    evaluated(home, server, "--out", "first")
    server.always(served_by(right))
    evaluated(home, server, "--out", "second", "--against", "first/report.json")
    text = (home.folder / "second" / "report.md").read_text()
    assert "| small | 50 % | 100 % | 3 | 0 | 0 | 0 | 0 |" in text
    assert f"- better: {QUESTIONS[0]}, turn 1: {QUESTIONS[0]} (wrong → right)" in text
    done = evaluated(home, server, "--against", FILE)
    assert done.returncode == 1
    assert "is no report of `longtable eval`" in done.stderr


def test_a_run_is_compared_and_continued_in_another_folder(
    home: Home, server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (home.folder / FILE).write_text(toml('database = "shop.db"'))
    server.always(served_by(half))
    evaluated(home, server)
    folder = tmp_path_factory.mktemp("moved") / "other"
    shutil.copytree(home.folder, folder)
    there = Home(folder, at=folder)
    asked = len(server.requests)
    done = evaluated(there, server, "--resume")
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == asked
    server.always(served_by(right))
    earlier = str(home.folder / "longtable-eval" / "report.json")
    evaluated(there, server, "--out", "second", "--against", earlier)
    text = (there.folder / "second" / "report.md").read_text()
    assert "| small | 50 % | 100 % | 3 | 0 | 0 | 0 | 0 |" in text


def test_a_paid_model_is_asked_only_after_a_yes(home: Home) -> None:
    settings = '[prices."gpt-4o-mini*"]\ninput = 1000\noutput = 0\n'
    (home.folder / "prices.toml").write_text(settings)
    elsewhere = '[[question]]\nask = "Else?"\nsql = "SELECT 1"\ndatabase = "gone.db"\n'
    (home.folder / FILE).write_text(f"{elsewhere}{toml()}")
    line = ("eval", FILE, "--model", "openai:gpt-4o-mini", "--config", "prices.toml")
    done = home.run(*line, OPENAI_API_KEY="sk-none")
    assert done.returncode == 1
    assert "Paid models are asked: 7 turns, about " in done.stdout
    cost = re.search(
        r"about ([\d,]+) tokens of input and 3,150 of output, about (\d+\.\d\d)", done.stdout
    )
    assert cost
    assert float(cost[2]) == pytest.approx(int(cost[1].replace(",", "")) / 1_000, rel=0.01)
    assert "only with --yes" in done.stderr
    assert (home.folder / "longtable-eval" / "journal.jsonl").read_text().count("\n") == 1


def test_a_finished_run_is_neither_mixed_nor_asked_again(home: Home, server: ModelServer) -> None:
    server.always(served_by(right))
    evaluated(home, server)
    asked = len(server.requests)
    refused = evaluated(home, server)
    assert refused.returncode == 1
    assert "continue it with --resume" in refused.stderr
    assert evaluated(home, server, "--resume").returncode == 0
    assert len(server.requests) == asked
    assert report(home)["subjects"][0]["all"]["accuracy"] == 1
    other = evaluated(home, server, "--resume", "--private")
    assert "has private 'False', found 'True'" in other.stderr
    (home.folder / "longtable-eval" / "mine.txt").write_text("kept")
    assert evaluated(home, server, "--force").returncode == 0
    assert len(server.requests) == 2 * asked
    assert (home.folder / "longtable-eval" / "mine.txt").exists()


def test_the_folder_never_becomes_part_of_the_database(home: Home, server: ModelServer) -> None:
    with closing(sqlite3.connect(home.folder / "shop.db")) as connection:
        before = connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    server.always(served_by(right))
    (home.folder / "longtable-eval").mkdir()
    (home.folder / "longtable-eval" / "threads.db").symlink_to(home.folder / "shop.db")
    done = evaluated(home, server)
    assert done.returncode == 1
    assert "give the store a file of its own" in done.stderr
    with closing(sqlite3.connect(home.folder / "shop.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchall() == before


def test_a_benchmark_is_asked_over_its_own_databases(home: Home, server: ModelServer) -> None:
    entries: list[dict[str, object]] = []
    for name in ("one", "two"):
        (home.folder / "database" / name).mkdir(parents=True)
        make_shop(home.folder / "database" / name / f"{name}.sqlite")
        turns = [{"utterance": ask, "query": GOLD[ask]} for ask in QUESTIONS[:2]]
        entries.append({"database_id": name, "interaction": turns})
    with closing(sqlite3.connect(home.folder / "database" / "two" / "two.sqlite")) as connection:
        connection.execute("DELETE FROM orders WHERE id > 5")
        connection.commit()
    entries.append({"database_id": "gone", "interaction": turns})
    (home.folder / "dev.json").write_text(json.dumps(entries, indent=1))
    server.always(served_by(right))
    place = ("--base-url", server.base_url, "--model-limit", "100k", "--jobs", "2")
    done = home.run("eval", "dev.json", "--model", "small", *place)
    assert done.returncode == 0, done.stderr
    assert "dev.json:28: there is no database 'gone'" in done.stdout
    figures = report(home)["subjects"][0]
    assert (figures["all"]["right"], figures["all"]["interactions_right"]) == (4, 2)
    assert set(figures["by_tag"]) == {"one", "two"}


def test_the_checked_queries_of_the_knowledge_folder_are_questions(
    home: Home, server: ModelServer
) -> None:
    queries = home.folder / "taught" / "queries"
    queries.mkdir(parents=True)
    for number, ask in enumerate(QUESTIONS):
        (queries / f"q{number}.sql").write_text(f"-- question: {ask}\n{GOLD[ask]}\n")
    server.always(served_by(half))
    place = ("--base-url", server.base_url, "--model-limit", "100k")
    line = ("eval", "--knowledge", "taught", "--also-without-knowledge", "--model", "small")
    done = home.run(*line, *place)
    assert done.returncode == 0, done.stderr
    assert "a model with the folder is shown the answers" in done.stdout
    assert [each["all"]["accuracy"] for each in report(home)["subjects"]] == [0.5, 0.5]
    without = home.run("eval", "--model", "small", *place)
    assert without.returncode == 1
    assert "name a file of questions" in without.stderr


@contextmanager
def terminal(home: Home, *args: str, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the program in a terminal; yield the process and the other end of the terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(PROGRAM), *args],
        cwd=home.folder,
        env=home.environment(**env),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            os.close(ours)


def read_until(end: int, text: str) -> str:
    """Return what a terminal shows, up to a text or its end."""
    shown = b""
    while text.encode() not in shown:
        try:
            piece = os.read(end, 1_000)
        except OSError:  # Linux's way to say that nobody writes any more
            break
        if not piece:
            break
        shown += piece
    return shown.decode(errors="replace")


@pytest.mark.parametrize("word", ["y", "n"])
def test_in_a_terminal_a_person_is_asked_and_sees_a_bar(
    home: Home, server: ModelServer, word: str
) -> None:
    server.always(served_by(right))
    line = ("eval", FILE, "--model", "openai:gpt-4o-mini")
    variables = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": server.base_url}
    with terminal(home, *line, **variables) as (process, end):
        shown = read_until(end, "[y/N]")
        assert "6 turns, about" in shown
        assert not server.requests
        os.write(end, f"{word}\n".encode())
        rest = read_until(end, "nothing ends so")
        code = process.wait(60)
    assert (code, "6/6" in rest) == ((0, True) if word == "y" else (1, False)), rest
    assert len(server.requests) == (12 if word == "y" else 0)


def test_a_provider_that_refuses_the_key_ends_the_run_and_it_goes_on(
    home: Home, server: ModelServer
) -> None:
    server.script(*[served_by(right)] * 4, unauthorized())
    done = evaluated(home, server)
    assert done.returncode == 1
    assert "go on with --resume" in done.stdout
    assert "The model's provider refused the key" in done.stderr
    server.always(served_by(right))
    assert evaluated(home, server, "--resume").returncode == 0
    assert report(home)["subjects"][0]["all"]["right"] == len(GOLD)
    assert len(server.requests) == 2 * len(GOLD) + 1


def test_a_folder_that_cannot_be_written_is_told(home: Home, server: ModelServer) -> None:
    done = evaluated(home, server, "--out", FILE)
    assert done.returncode == 1
    assert "name another folder with --out" in done.stderr


DIALOGUES = 12
TURNS = 3


def dialogues() -> str:
    """Return dialogues whose questions all differ, so that each can be counted."""
    tables: list[str] = []
    for dialogue in range(DIALOGUES):
        tables.append(f'[[dialogue]]\nid = "d{dialogue}"')
        for turn in range(TURNS):
            sql = f"SELECT {dialogue} + {turn}"
            tables.append(f'[[dialogue.turn]]\nask = "question {dialogue}.{turn}"\nsql = "{sql}"')
    return "\n".join(tables)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_run_ended_in_the_middle_goes_on_and_loses_and_repeats_nothing(
    home: Home, server: ModelServer, ending: signal.Signals
) -> None:
    (home.folder / FILE).write_text(dialogues())
    enough = threading.Event()
    asked: Counter[str] = Counter()

    def answer(request: ChatRequest) -> Reply:
        last = request.messages[-1]
        if last["role"] != "tool":
            asked[str(last["content"])] += 1
        if sum(asked.values()) >= 10:
            enough.set()
        time.sleep(0.02)
        return served_by(lambda text: "SELECT " + text.split()[1].replace(".", " + "))(request)

    server.always(answer)
    place = ("--base-url", server.base_url, "--model-limit", "100k", "--jobs", "3")
    line = [str(PROGRAM), "eval", FILE, "--model", "small", *place]
    environment = home.environment()
    with subprocess.Popen(line, cwd=home.folder, env=environment) as process:
        assert enough.wait(60)
        process.send_signal(ending)
        code = process.wait(60)
    assert code == (-signal.SIGKILL if ending == signal.SIGKILL else 130)
    journal = home.folder / "longtable-eval" / "journal.jsonl"
    kept = journal.read_text().count("\n") - 1
    assert 0 < kept < DIALOGUES * TURNS
    before = Counter(asked)
    done = subprocess.run(
        [*line, "--resume"],
        cwd=home.folder,
        env=environment,
        timeout=120,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    figures = report(home)["subjects"][0]["all"]
    assert (figures["right"], figures["scored"]) == (DIALOGUES * TURNS, DIALOGUES * TURNS)
    answered = {
        json.loads(line)["question"] for line in journal.read_text().splitlines()[1 : kept + 1]
    }
    again = {text for text in asked if asked[text] > before[text]}
    assert not again & answered
    # A call that the kill cut off has no answer, and is the only one that is made again.
    assert sum(count > 1 for count in asked.values()) <= 3
    assert len(asked) == DIALOGUES * TURNS


def test_a_run_is_replaced_only_once_the_next_one_begins(home: Home, server: ModelServer) -> None:
    server.always(served_by(right))
    assert evaluated(home, server).returncode == 0
    journal = home.folder / "longtable-eval" / "journal.jsonl"
    before = journal.read_bytes()
    paid = ("eval", FILE, "--model", "openai:gpt-4o", "--force")
    refused = home.run(*paid, OPENAI_API_KEY="sk-none")
    assert (refused.returncode, "only with --yes" in refused.stderr) == (1, True)
    assert journal.read_bytes() == before
    both = evaluated(home, server, "--resume", "--force")
    assert (both.returncode, "give one of them" in both.stderr) == (1, True)
    with journal.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        busy = evaluated(home, server, "--force")
    assert (busy.returncode, "another `longtable eval`" in busy.stderr) == (1, True)
    assert journal.read_bytes() == before
    assert evaluated(home, server, "--resume").returncode == 0
    assert not (home.folder / "longtable-eval" / ".replaced").exists()


@pytest.mark.parametrize(
    "head",
    [
        "[bar]\nqestions = 0.1",
        "[bar]\nquestions = 1.5",
        '[bar]\nquestions = 0.1\n[[question]]\nask = "?"\nsql = "SELECT gone FROM nowhere"',
        '[bar]\nquestions = 0.1\n[[question]]\nask = "?"\nsq = "SELECT 1"',
    ],
)
def test_with_a_bar_what_does_not_count_fails_the_command(
    home: Home, server: ModelServer, head: str
) -> None:
    (home.folder / FILE).write_text(toml(head))
    server.always(served_by(right))
    done = evaluated(home, server)
    assert (done.returncode, "not every question counts" in done.stdout) == (1, True)


def test_without_a_question_that_could_be_asked_it_says_so(home: Home, server: ModelServer) -> None:
    (home.folder / FILE).write_text(toml('database = "sqlite:///gone.db"'))
    done = evaluated(home, server)
    assert (done.returncode, "No question was asked." in done.stdout) == (1, True)
    assert "gone.db" in done.stdout
    assert "inside longtable" not in done.stderr
