"""Queries that wait for a person, on the command line: y, e and n from a pipe and a terminal,
across processes.
"""

from pathlib import Path

import pytest

from tests.app.console.test_prompt import Terminal
from tests.app.runner import Home, make_home

ALWAYS = ("--approve-sql", "always")
QUESTION = "How many orders are there?"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def test_ask_says_how_to_decide_and_a_later_chat_shows_the_question_again(home: Home) -> None:
    asked = home.run("ask", QUESTION, "--thread", "t", *ALWAYS)
    assert asked.returncode == 1
    assert "longtable chat --thread t" in asked.stderr
    assert "1 row" not in asked.stdout
    assert "There are" not in asked.stdout
    chat = home.run("chat", "--thread", "t", *ALWAYS, stdin=b"y\n")
    assert "waits for your approval" in chat.stdout
    assert "SELECT COUNT(*) FROM orders" in chat.stdout
    assert "There are 30 orders" in chat.stdout


def test_the_next_lines_of_a_pipe_decide_and_a_message_in_their_place_rejects(home: Home) -> None:
    lines = [
        QUESTION,
        "n too slow",
        QUESTION,
        "e",
        "SELECT count(*) FROM orders WHERE id < 5",
        QUESTION,
        "/tables",
        "hello",
        QUESTION,
    ]
    events = home.events("chat", "--thread", "t", *ALWAYS, stdin="\n".join(lines).encode())
    texts = [
        event["text"]
        for event in events
        if event["type"] == "answer" and event["status"] == "answered"
    ]
    assert ["did not approve" in texts[0], "4 orders" in texts[1], "Hello" in texts[2]] == [
        True,
        True,
        True,
    ]
    assert [event["status"] for event in events if event["type"] == "query_finished"] == [
        "error",
        "success",
    ]
    assert sum(event["type"] == "approval_requested" for event in events) == 4
    assert [event["note"] for event in events if event["type"] == "note"][1:] == [
        *["approval_ask"] * 2,
        "approval_sql",
        *["approval_ask"] * 2,
        "approval_replaced",
        "approval_ask",
    ]
    assert events[-1]["code"] == "approval_requested", "the last one still waits"
    done = home.run("ask", QUESTION, "--thread", "t", "--approve-sql", "never")
    assert done.returncode == 0
    assert "It is not run: this question takes its place" in " ".join(done.stdout.split())


def test_a_command_in_place_of_the_sql_is_a_command_and_a_comment_is_sql(home: Home) -> None:
    sql = "/* few */ SELECT count(*) FROM orders WHERE id < 5"
    events = home.events(
        "chat", "--thread", "t", *ALWAYS, stdin=f"{QUESTION}\ne\n/help\n{sql}\n".encode()
    )
    assert [event["command"] for event in events if event["type"] == "command"] == ["help"]
    assert [event["note"] for event in events if event["type"] == "note"][1:] == [
        "approval_ask",
        "approval_sql",
        "approval_sql",
    ]
    assert [event["rows"] for event in events if event["type"] == "query_finished"] == [[[4]]]


def test_a_person_decides_at_the_prompt(home: Home) -> None:
    with Terminal(home, "--thread", "t", "--approve-sql", "always") as chat:
        chat.expect("Ctrl-D leaves")
        chat.type("有多少订单？\n")
        chat.expect("执行吗")
        chat.type("是\n")
        chat.expect("30")
        chat.leave()
        chat.expect("--thread t")
        assert chat.close() == 0
