"""The command line through real processes: ask, chat, threads, and what goes wrong."""

import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longtable.memory.messages.sent_messages import REFUSED_NOTE
from tests.app.runner import Home, make_home
from tests.support.model_server import (
    ChatRequest,
    Fault,
    ModelServer,
    Reply,
    Step,
    ToolCall,
    answer_or_summary,
    call,
    calls,
    context_overflow,
    empty,
    error,
    open_model_server,
    rate_limited,
    say,
    server_error,
    unauthorized,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def using(server: ModelServer) -> list[str]:
    return ["--model", "gpt-4o-mini", "--base-url", server.base_url]


def test_ask_prints_sql_rows_answer_and_gauge(home: Home) -> None:
    done = home.run("ask", "How many orders are there?", "--thread", "t1")
    assert done.returncode == 0
    assert "new thread t1" in done.stdout
    assert "run_sql" in done.stdout
    assert "COUNT(" in done.stdout
    assert "1 row, " in done.stdout
    assert "30" in done.stdout
    assert " tokens (" in done.stdout


def test_ask_twice_continues_the_thread_and_threads_lists_it(home: Home) -> None:
    home.run("ask", "How many orders are there?", "--thread", "t1")
    again = home.run("ask", "有多少 orders？", "--thread", "t1")
    assert "t1" in again.stdout
    assert "上下文" in again.stdout
    listed = home.events("threads")
    assert [(info["thread_id"], info["turns"], info["title"]) for info in listed] == [
        ("t1", 2, "How many orders are there?")
    ]
    assert "How many orders" in home.run("threads").stdout


def test_json_prints_one_event_a_line(home: Home, server: ModelServer) -> None:
    server.script(
        call("run_sql", sql="SELECT customer FROM orders WHERE id = 30"),
        say("One\x1b[2J customer."),
    )
    done = home.run("ask", "who?", "--json", *using(server))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "\x1b" not in done.stdout
    assert [event["type"] for event in events if event["type"] != "token"] == [
        "thread",
        "question",
        "context_usage",
        "query_started",
        "query_finished",
        "context_usage",
        "answer",
    ]
    finished = next(event for event in events if event["type"] == "query_finished")
    assert finished["row_count"] == 1
    assert (
        "".join(event["text"] for event in events if event["type"] == "token")
        == events[-1]["text"]
        == "One\x1b[2J customer."
    )


def test_what_was_guessed_of_a_csv_file_is_told_first(home: Home) -> None:
    (home.folder / "sales.csv").write_text("Report\nof 2024\n\nid,name,price\n1,a,2\n2,b,3\n")
    for question, said in (
        (
            "How many sales are there?",
            "sales.csv: lines above the table were left out: 2 (Report / of 2024).",
        ),
        ("有多少 sales？", "sales.csv：表格上方有 2 行未载入（Report / of 2024）。"),
    ):
        done = home.run("ask", question, LONGTABLE_DATABASE=str(home.folder / "sales.csv"))
        assert done.stdout.splitlines()[1] == said


def test_long_results_show_twenty_rows_and_table_shows_all(home: Home, server: ModelServer) -> None:
    server.script(call("run_sql", sql="SELECT id, customer FROM orders ORDER BY id"), say("Here."))
    done = home.run("chat", *using(server), stdin=b"list them\n/table\n")
    _, _, after = done.stdout.partition("Here.")
    first, _, rest = after.partition("context ")
    assert "customer 20" in first
    assert "customer 21" not in first
    assert "... 10 more rows" in first
    assert "customer 29" in rest


def test_nothing_from_database_or_model_reaches_the_terminal_as_an_escape(
    home: Home, server: ModelServer
) -> None:
    server.script(
        call("run_sql", sql="SELECT customer, '\x1b[5m' AS \"a\x1bb\" FROM orders WHERE id = 30"),
        say("\x1b]0;title\x07 \x9b31m done"),
    )
    done = home.run("ask", "show \x1b[1m", *using(server))
    assert not {"\x1b", "\x07", "\x9b"} & set(done.stdout + done.stderr)
    assert "red" in done.stdout
    assert "[31m" not in done.stdout.partition("1 row")[2]  # of a cell the whole sequence goes
    assert "done" in done.stdout


def test_piped_chat_answers_each_line_and_broken_ones_do_not_stop_it(
    home: Home, server: ModelServer
) -> None:
    server.always(lambda request: say(f"heard {request.messages[-1]['content']}"))
    lines = [
        b"one",
        b"",
        b"   ",
        b"bad \xff\xfe byte",
        b"nul \x00 here",
        b"x" * 1_000_100,
        b"y" * 9_000,
        "二".encode(),
        b"/nonsense",
        b"last",
    ]
    done = home.run("chat", *using(server), stdin=b"\n".join(lines))
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("heard")] == [
        "heard one",
        "heard 二",
        "heard last",
    ]
    said = done.stderr.splitlines()
    assert "line 4: not valid UTF-8 at byte 5; it is skipped" in said[0]
    assert "line 5: it holds a NUL character" in said[1]
    assert "line 6: longer than 1,000,000 bytes" in said[2]
    assert "9,000 characters, the limit is 8,000" in said[3]
    assert "没有命令 /nonsense" in said[4]
    assert len(server.requests) == 3


def test_piped_chat_of_nothing_exits_zero(home: Home) -> None:
    assert home.run("chat", stdin=b"").returncode == 0


def test_every_command_of_a_chat_answers(home: Home, server: ModelServer) -> None:
    server.always(say("fine"))
    talk = (
        b"/history\n/usage\n/table\nhello\n/help\n/history\n/view\n/usage\n/threads\n/tables\n/compact\n/quit\nnever"
        b" reached\n"
    )
    events = home.events("chat", "--thread", "t", *using(server), stdin=talk)
    assert [event["note"] for event in events if event["type"] == "note"] == [
        "greeting",
        "no_history",
        "no_usage",
        "no_table",
        "nothing_to_fold",
    ]
    shown = {event["command"]: event["text"] for event in events if event["type"] == "command"}
    assert set(shown) == {"help", "history", "view", "usage", "threads", "tables"}
    assert "human: hello" in shown["history"]
    assert "system:" in shown["view"]
    assert "customer" in shown["tables"]
    assert "/quit" in shown["help"]
    assert len(server.requests) == 1


def test_table_shows_the_last_result_of_the_chat(home: Home, server: ModelServer) -> None:
    first = call("run_sql", sql="SELECT 'early' AS a")
    two = [call("run_sql", sql="SELECT 11 AS a"), call("run_sql", sql="SELECT 22 AS a")]
    failing = call("run_sql", sql="SELECT nothing FROM orders")
    server.script(first, say("one"), *two, say("two"), say("thanks"), failing, say("no"))
    talk = (
        "a\nb\nc\n/table\n/table 1\nd\n/table\n/table 2\n/table 3\n/table x\n/table " + "9" * 5_000
    )
    events = home.events("chat", *using(server), stdin=talk.encode())
    shown = [event["text"] for event in events if event["type"] == "command"]
    assert [("11" in text, "22" in text, "early" in text) for text in shown] == [
        (False, True, False),
        (True, False, False),
        (False, True, False),
        (False, True, False),
    ]
    errors = [event["message"] for event in events if event["type"] == "error"]
    assert errors == [
        f"There is no table {number}: there are 2." for number in ("3", "x", "9" * 19 + "…")
    ]


def test_a_compaction_can_be_undone_in_a_chat(home: Home, server: ModelServer) -> None:
    server.always(say("word " * 150))
    talk = (
        "/undo\n"
        + "".join(f"question {n}\n" for n in range(12))
        + "/undo\n/compact\n/undo\n/usage\n/undo\n"
    )
    events = home.events("chat", *using(server), stdin=talk.encode())
    notes = [
        event["note"] for event in events if event["type"] == "note" and event["note"] != "greeting"
    ]
    assert notes == ["nothing_to_undo", "nothing_to_undo", "undone", "nothing_to_undo"]
    folded = next(event for event in events if event["type"] == "context_compressed")
    assert {"strategy", "rebuilt", "ahead", "coverage"} <= set(folded)
    (usage,) = (event["text"] for event in events if event["type"] == "command")
    assert f" {folded['original_tokens']:,} / " in usage


def summaries(server: ModelServer) -> list[ChatRequest]:
    return [request for request in server.requests if request.is_for_summary]


def test_a_command_that_ends_while_a_summary_is_made_ends_in_seconds_and_quietly(
    home: Home, server: ModelServer
) -> None:
    release = threading.Event()

    def step(request: ChatRequest) -> Reply:
        if request.is_for_summary:
            release.wait(30)
        return answer_or_summary(request, answer="word " * 800)

    server.always(step)
    n, start = 0, time.monotonic()
    try:
        while not summaries(server):
            n, start = n + 1, time.monotonic()
            assert n < 15
            done = home.run(
                "ask", f"question {n}", "--thread", "t1", "--model-limit", "9000", *using(server)
            )
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        release.set()
    assert time.monotonic() - start < 20
    assert f"question {n}" in home.run("threads", "export", "t1").stdout


def test_in_a_chat_the_conversations_model_writes_the_summaries(
    home: Home, server: ModelServer
) -> None:
    server.always(answer_or_summary)
    talk = "".join(f"question {n}\n" for n in range(14)) + "/compact\nand now?\n"
    events = home.events(
        "chat", "--thread", "t", "--model-limit", "8000", *using(server), stdin=talk.encode()
    )
    compactions = [event for event in events if event["type"] == "context_compressed"]
    assert {event["method"] for event in compactions} == {"model"}
    assert {(event["writer"], event["input"], event["output"]) for event in compactions} == {
        ("gpt-4o-mini", 5_100, 600)
    }
    asked = summaries(server)
    assert len(asked) == len(compactions) > 0
    assert len(server.requests) == 15 + len(asked)
    for request in asked:
        assert request.tool_names == []
        assert not request.streams
        assert 0 < request.body["max_completion_tokens"] < 8_000
    assert "the user asked for words" in str(
        [request.messages[0] for request in server.requests if not request.is_for_summary][-1]
    )


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (["--summarizer", "code"], None),
        (["--summarizer", "same"], "gpt-4o-mini"),
        (["--summarizer", "openai:small"], "small"),
    ],
)
def test_the_summarizer_option_says_who_writes(
    home: Home, server: ModelServer, options: list[str], model: str | None
) -> None:
    server.always(answer_or_summary)
    talk = "".join(f"question {n}\n" for n in range(6)) + "/compact\n"
    more = ["--compaction", "rolling-chat", "--thread", "t", *using(server)]
    events = home.events("chat", *more, *options, stdin=talk.encode())
    [made] = [event for event in events if event["type"] == "context_compressed"]
    assert made["method"] == ("model" if model else "fallback")
    assert [request.body["model"] for request in summaries(server)] == ([model] if model else [])


def picky(request: ChatRequest) -> Reply | Fault:
    """Refuse the word "poison", as a content policy does."""
    refused = error(400, "The prompt was flagged.", code="content_policy_violation")
    return refused if "poison" in str(request.messages) else say(f"seen {len(request.messages)}")


def test_a_refused_message_is_told_and_can_be_tried_again_or_left_out_in_a_chat(
    home: Home, server: ModelServer
) -> None:
    server.always(picky)
    lines = (
        "/retry\none\n有 poison 吗？\n/retry\ntwo\n/history\n/exclude m1\n/exclude"
        " last\n/exclude\n/exclude m99\n/history\nthree\n"
    )
    done = home.run("chat", *using(server), stdin=lines.encode())
    assert "there is nothing to try again" in done.stdout
    assert done.stderr.count("模型服务拒绝了这条消息") == 2
    assert "/exclude" in done.stderr
    assert "m3 (left out) human: 有 poison 吗？" in done.stdout
    assert "/exclude needs a message" in done.stderr
    assert "no message 'm99'" in done.stderr
    numbered = [line for line in done.stdout.rpartition("m1 ")[2].splitlines() if line[:1] == "m"]
    assert numbered == [
        "m2 ai: seen 2",
        "m3 (left out) human: 有 poison 吗？",
        "m4 (left out) human: two",
        "m5 (left out) ai: seen 5",
    ]
    assert [message["content"] for message in server.requests[-1].messages[1:]] == [
        "seen 2",
        REFUSED_NOTE["en"],
        "three",
    ]


def test_the_last_question_is_edited_and_asked_again_in_a_chat(
    home: Home, server: ModelServer
) -> None:
    server.always(lambda request: say(f"seen {len(request.messages)}"))
    lines = (
        "/edit\n/edit How many?\nHow many orders?\none\nHow many orders in Mai?\n/edit How many"
        " orders in May?\n/history\n"
    )
    done = home.run("chat", *using(server), stdin=lines.encode())
    assert "/edit needs the new question" in done.stderr
    assert "There is no question to edit" in done.stdout
    assert [
        message["content"] for message in server.requests[-1].messages if message["role"] == "user"
    ] == [
        "How many orders?",
        "one",
        "How many orders in May?",
    ]
    assert "(left out) human: How many orders in Mai?" in done.stdout


def test_the_question_that_is_edited_stays_until_the_new_one_is_accepted(
    home: Home, server: ModelServer
) -> None:
    limited = home.folder / "limited.toml"
    limited.write_text("[limits]\nmax_message_chars = 40\n[rate_limit]\nturns = 3\nseconds = 600\n")
    server.always(picky)
    lines = (
        "the old question\n/edit "
        + "x" * 50
        + "\n/edit poison\n/edit the new question\n/edit over the rate\n/history\n"
    )
    done = home.run("chat", "--config", str(limited), *using(server), stdin=lines.encode())
    assert [
        word in done.stderr for word in ("50", "refused this message", "No more than 3 questions")
    ] == [True] * 3
    history = [
        "m1 " + done.stdout.rpartition("m1 ")[2].splitlines()[0],
        *re.findall(r"^m[2-9].*", done.stdout.rpartition("m1 ")[2], re.M),
    ]
    assert history == [
        "m1 (left out) human: the old question",
        "m2 (left out) ai: seen 2",
        "m3 (left out) human: poison",
        "m4 human: the new question",
        "m5 ai: seen 3",
    ]


def test_pins_are_made_listed_sent_and_let_go(home: Home, server: ModelServer) -> None:
    server.always(say("fine"))
    first = home.events(
        "chat",
        "--thread",
        "t",
        *using(server),
        stdin=(
            b"/pin p1\n/pin too early\n/pins\nhello\n/pin\n/pin amounts are in cents\n/pins\nand?\n"
        ),
    )
    assert [event["note"] for event in first if event["type"] == "note"] == [
        "greeting",
        "no_history",
        "no_pins",
        "pinned",
    ]
    errors = [
        "There is no such pinned statement.",
        "/pin needs the words to keep: /pin amounts are in cents",
    ]
    assert [event["message"] for event in first if event["type"] == "error"] == errors
    (listed,) = (event["text"] for event in first if event["type"] == "command")
    assert "amounts are in cents" in listed
    assert "amounts are in cents" in str(server.requests[-1].messages[0]["content"])
    found = re.search(r"p[0-9a-f]{8}", listed)
    assert found
    again = home.run(
        "chat",
        "--thread",
        "t",
        *using(server),
        stdin=(
            f"/unpin\n/pins p0\n/pins {found[0]}\n/unpin {found[0]}\n/pins\n/pin {'x' * 8_001}\n".encode()
        ),
    )
    assert "/unpin needs an id" in again.stderr
    assert "the thread has no pin 'p0'" in again.stderr
    assert f"{found[0]} holds again." in again.stdout
    assert f"{found[0]} is no longer pinned." in again.stdout
    assert "Nothing is pinned." in again.stdout
    assert "8,001 characters, the limit is 8,000" in again.stderr


def test_what_a_command_does_not_take_is_refused_with_what_it_does(
    home: Home, server: ModelServer
) -> None:
    server.always(say("word " * 150))
    talk = "".join(f"question {n}\n" for n in range(12))
    commands = (
        "/compact now\n/compact preview\n/undo m3\n/history 5\n/exclude m1 m2\n/reasoning"
        " loud\n/pin p1\n/pins\n/undo\n"
    )
    events = home.events("chat", "--thread", "t", *using(server), stdin=(talk + commands).encode())
    errors = [event["message"] for event in events if event["type"] == "error"]
    assert [error.split(". ")[0] for error in errors[:5]] == [
        "/compact does not take “now”",
        "/undo does not take “m3”",
        "/history does not take “5”",
        "/exclude does not take “m1 m2”",
        "/reasoning does not take “loud”",
    ]
    assert "/compact preview: only say what it would do" in errors[0]
    assert errors[5:] == ["There is no such pinned statement."]
    notes = {event["note"]: event["text"] for event in events if event["type"] == "note"}
    assert re.match(
        r"Nothing was compacted. /compact would compact messages m1 to m\d+: ",
        notes["compact_preview"],
    )
    assert {"no_pins", "nothing_to_undo"} <= set(notes)


def test_what_is_left_out_names_its_pin_and_comes_back_with_it(
    home: Home, server: ModelServer
) -> None:
    rule = "以后金额都用万元。"
    server.always(
        lambda request: (
            call("remember", quote=rule) if request.messages[-1]["content"] == rule else say("好")
        )
    )
    lines = (
        "以后金额都用万元。\n/exclude last\n/pins\n/include last\n/pins\n/include m1\n/include\n"
    )
    done = home.run("chat", *using(server), stdin=lines.encode())
    left, _, back = done.stdout.partition("没有固定的内容。")
    assert re.search(
        r"随之排除的固定内容 p[0-9a-f]{8}：“以后金额都用万元。”；用 /include 可一并恢复", left
    )
    assert "将重新发给模型。" in back
    assert "以后金额都用万元。" in back
    assert "m1 没有被排除。" in done.stdout
    assert "Conversation" not in done.stderr
    assert "/include 后面要写已排除的消息" in done.stderr


def test_commands_speak_the_language_of_the_chat(home: Home, server: ModelServer) -> None:
    server.always(say("好"))
    done = home.run(
        "chat",
        *using(server),
        stdin="你好\n/pin 金额以分为单位\n/pins\n/unpin\n/undo\n/topics\n/help\n".encode(),
    )
    assert "逐字保留" in done.stdout
    assert "金额以分为单位" in done.stdout
    assert "/unpin 后面要写编号" in done.stderr
    assert "没有可撤销的压缩。" in done.stdout
    assert "没有主题。" in done.stdout
    assert "撤销最近一次压缩" in done.stdout


def test_usage_after_a_compaction_is_the_new_one(home: Home, server: ModelServer) -> None:
    server.always(say("word " * 150))
    talk = "".join(f"question {n}\n" for n in range(12)) + "/usage\n/compact\n/usage\n"
    events = home.events("chat", "--thread", "t", *using(server), stdin=talk.encode())
    before, after = (event["text"] for event in events if event["type"] == "command")
    folded = next(event for event in events if event["type"] == "context_compressed")
    assert f" {folded['original_tokens']:,} / " in before
    assert f" {folded['compressed_tokens']:,} / " in after
    again = home.events("chat", "--thread", "t", *using(server), stdin=b"/usage\n")
    assert [event["text"] for event in again if event["type"] == "command"] == [after]


def test_a_limit_that_is_too_small_fails_and_names_the_one_it_takes(home: Home) -> None:
    limit, tries = "1000", 0
    while (
        "There are 30 orders"
        not in (
            done := home.run("ask", "How many orders are there?", "--model-limit", limit)
        ).stdout
    ):
        tries += 1
        assert tries < 8
        if done.returncode == 0:
            # Calibration moved within the turn: the limit named may be a little short, and the
            # analyst says so.
            assert "too large for the conversation's limit" in done.stdout
            limit = str(int(limit) + 100)
            continue
        found = re.search(r"limit is too small.*\(--model-limit (\d+),", done.stderr)
        assert found, done.stderr
        assert int(found[1]) > int(limit)
        limit = found[1]
    assert done.returncode == 0
    assert int(limit) <= 2_900  # it needs no more than what it had to be told


def test_a_limit_that_is_too_small_is_told_line_by_line_in_a_piped_chat(home: Home) -> None:
    done = home.run(
        "chat",
        "--model-limit",
        "1680",
        stdin="How many orders are there?\n有多少 orders？\n/tables\n".encode(),
    )
    assert done.returncode == 0
    assert "needs one of" in done.stderr.splitlines()[0]
    assert "至少需要" in done.stderr.splitlines()[1]
    assert "customer" in done.stdout


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([call("list_tables"), call("run_sql", sql="SELECT 1 AS one"), say("One.")], 0),
        ([call("list_tables"), say("There is one table.")], 0),
        ([say("Hello.")], 0),
        ([empty(), empty()], 1),
    ],
)
def test_ask_fails_when_there_is_no_answer(
    home: Home, server: ModelServer, script: list[Step], code: int
) -> None:
    server.script(*script)
    assert home.run("ask", "hello", *using(server)).returncode == code


def test_ask_fails_when_the_models_calls_are_spent(home: Home, server: ModelServer) -> None:
    server.always(call("list_tables"))
    done = home.run("ask", "hello", *using(server))
    assert done.returncode == 1
    assert "limit is too small" not in done.stderr  # all it called fits: the limit is not to blame


def test_compactions_are_shown_with_sizes(home: Home, server: ModelServer) -> None:
    server.always(say("word " * 150))
    talk = b"\n".join(b"tell me more about this and that, please" for _ in range(14))
    done = home.run(
        "chat", "--model-limit", "4000", "--summarizer", "code", *using(server), stdin=talk
    )
    assert done.returncode == 0
    assert "compacted " in done.stdout
    assert "by code" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--database", "oracle:///x"], "oracle"),
        (["--database", "sqlite:////nowhere/at/all.db"], "cannot be opened"),
        (["--database", "sqlite:///{folder}/notes.md"], "cannot be opened"),
        (["--model", "nobody:gpt"], "no provider 'nobody'"),
        (["--model", "gpt-4o"], "must be provider:name"),
        (["--model", "openai:gpt-4o"], "OPENAI_API_KEY"),
        (["--base-url", "ftp://x", "--model", "m"], "http://"),
        (["--base-url", "http://127.0.0.1:9/v1"], "--model must name a model at the base URL"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "gpt-4o"], "not reachable"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "mystery"], "--model-limit N"),
        (["--base-url", "http://[bad", "--model", "m"], "must name a host"),
        (["--base-url", "http://127.0.0.1:99999/v1", "--model", "m"], "a port from 1 to 65,535"),
        (["--model-limit", "0"], "--model-limit must be a whole number"),
        (
            ["--model-limit", "99999999999999999999"],
            "a whole number of tokens from 1 to 100,000,000",
        ),
        (["--model-limit", "50"], "limit is too small"),
        (["--store", "redis://x"], "store URL"),
        (["--store", "x.db"], "write sqlite:///x.db"),
        (["--database", "notes.md"], "postgresql://user:password@host/database"),
        (["--store", "sqlite:///{folder}/notes.md"], "not a SQLite database"),
        (["--thread", "a\nb"], "printable"),
        (["--thread", ""], "printable"),
        (["--thread", "x" * 129], "printable"),
    ],
)
def test_wrong_settings_are_one_sentence_and_exit_code_one(
    home: Home, args: list[str], said: str
) -> None:
    (home.folder / "notes.md").write_text("these are notes, and no database at all\n" * 50)
    done = home.run("ask", "How many orders?", *(arg.format(folder=home.folder) for arg in args))
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.startswith("Error: ") or done.stderr.startswith("Note: ")
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize("command", [["ask", "How many orders?"], ["chat"], ["threads"]])
@pytest.mark.parametrize("store", ["sqlite:///{folder}/shop.db", "sqlite:///{folder}/link.db"])
def test_threads_are_never_kept_in_the_database_that_is_asked(
    home: Home, command: list[str], store: str
) -> None:
    (home.folder / "link.db").symlink_to("shop.db")
    before = (home.folder / "shop.db").read_bytes()
    done = home.run(*command, "--store", store.format(folder=home.folder))
    assert done.returncode == 1
    assert "--store and --database are the same file" in done.stderr
    assert (home.folder / "shop.db").read_bytes() == before
    assert {path.name for path in home.folder.iterdir() if path.is_file()} == {"shop.db", "link.db"}


def test_error_of_a_chinese_question_is_in_chinese(home: Home) -> None:
    done = home.run("ask", "有多少订单？", "--database", "sqlite:////nowhere/at/all.db")
    assert done.stderr.startswith("错误: 请检查数据库的地址和文件")
    assert done.stderr.endswith("无法打开数据库。\n")


@pytest.mark.parametrize("question", ["", "   "])
def test_empty_question_is_refused(home: Home, question: str) -> None:
    done = home.run("ask", question)
    assert done.returncode == 1
    assert "The message is empty" in done.stderr


def test_question_that_is_no_utf8_is_refused(home: Home) -> None:
    done = home.run("ask", "caf\udce9")
    assert done.returncode == 1
    assert "not valid UTF-8" in done.stderr


def test_locked_store_is_a_clear_error(home: Home) -> None:
    home.run("ask", "How many orders?", "--thread", "t")
    with sqlite3.connect(home.folder / "threads.db", isolation_level=None) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        done = home.run("ask", "How many orders?", "--thread", "t")
        connection.execute("ROLLBACK")
    assert done.returncode == 1
    assert "locked" in done.stderr


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (unauthorized("sk-secret-12345"), "provider_auth", "refused the key"),
        (rate_limited(0.01), "provider_rate_limited", "busy"),
        (server_error(), "provider_unavailable", "not reachable"),
        (
            Reply(text="one two three four", pieces=4, breaks="drop"),
            "provider_unavailable",
            "not reachable",
        ),
        (context_overflow("llama_cpp"), "model_context_overflow", "does not fit"),
    ],
)
def test_provider_fault_is_one_sentence_and_the_thread_lives(
    home: Home, server: ModelServer, fault: Fault | Reply, code: str, said: str
) -> None:
    faulty: list[Step] = [fault] * 8
    server.script(*faulty)
    done = home.run(
        "ask",
        "hello",
        "--thread",
        "t",
        "--json",
        *using(server),
        LONGTABLE_API_KEY="sk-secret-12345",
    )
    assert done.returncode == 1
    error = json.loads(done.stdout.splitlines()[-1])
    assert (error["type"], error["code"]) == ("error", code)
    assert said in error["message"]
    assert "sk-secret" not in done.stdout + done.stderr
    server._steps.clear()
    server.always(say("back again"))
    assert "back again" in home.run("ask", "and now?", "--thread", "t", *using(server)).stdout


def test_a_forgotten_v1_is_one_sentence(home: Home, server: ModelServer) -> None:
    server._http.expect_request("/chat/completions").respond_with_data(
        "<html>Welcome</html>", content_type="text/html"
    )
    done = home.run(
        "ask", "hello", "--model", "gpt-4o-mini", "--base-url", server.base_url.removesuffix("/v1")
    )
    assert done.returncode == 1
    assert "gave an answer that cannot be read" in done.stderr
    assert "is /v1 missing" in done.stderr


@pytest.mark.parametrize(
    "first",
    [
        calls(ToolCall(name="run_sql", arguments='{"sql": oops}')),
        call("drop_everything", table="orders"),
        call("run_sql", sql="DROP TABLE orders"),
        call("run_sql", sql="SELECT nothing FROM orders"),
    ],
)
def test_a_models_bad_call_is_shown_and_the_turn_goes_on(
    home: Home, server: ModelServer, first: Reply
) -> None:
    server.script(first, say("Sorry, that failed."))
    done = home.run("ask", "hello", *using(server))
    assert done.returncode == 0
    assert "Sorry, that failed." in done.stdout


def test_an_empty_answer_is_told(home: Home, server: ModelServer) -> None:
    server.always(empty())
    events = home.events("ask", "hello", *using(server))
    assert events[-1]["type"] == "answer"
    assert events[-1]["status"] != "answered"
    assert events[-1]["text"]


def test_an_answer_that_was_cut_off_is_told(home: Home, server: ModelServer) -> None:
    server.always(say("The first half", finish_reason="length"))
    done = home.run("ask", "hello", *using(server))
    assert done.returncode == 1
    assert "The first half" in done.stdout
    assert "cut off" in done.stderr


def test_an_endless_tool_loop_ends_with_a_notice(home: Home, server: ModelServer) -> None:
    server.always(call("list_tables"))
    events = home.events("ask", "hello", *using(server))
    assert events[-1]["type"] == "answer"
    assert events[-1]["status"] != "answered"
    assert len(server.requests) <= 13


def test_memory_store_and_environment_are_honoured(home: Home, server: ModelServer) -> None:
    server.always(say("from the environment"))
    env: dict[str, Any] = {
        "LONGTABLE_MODEL": "gpt-4o-mini",
        "LONGTABLE_BASE_URL": server.base_url,
        "LONGTABLE_STORE": "memory://",
        "LONGTABLE_MODEL_LIMIT": "9000",
    }
    done = home.run("ask", "hello", **env)
    assert "from the environment" in done.stdout
    assert "/ 9,000 tokens" in done.stdout
    assert not (home.folder / "threads.db").exists()


def test_default_store_is_in_the_data_folder(home: Home) -> None:
    home.run("ask", "How many orders?", LONGTABLE_STORE="")
    assert (home.folder / "data" / "longtable" / "threads.db").is_file()


def test_threads_of_an_empty_store_and_an_unknown_thread(home: Home) -> None:
    assert "no threads yet" in home.run("threads").stdout
    assert not (home.folder / "threads.db").exists()  # who only looks makes no store
    home.run("ask", "How many orders?", "--thread", "t1")
    for beyond in (["--page", "2"], ["--text", "zebra"]):
        assert "No thread fits" in home.run("threads", "list", *beyond).stdout
    missing = home.run("threads", "--thread", "nobody")
    assert missing.returncode == 1
    assert "no such conversation" in missing.stderr


@pytest.mark.parametrize(
    "args",
    [["--help"], ["ask", "--help"], ["chat", "--help"], ["threads", "--help"], ["demo", "--help"]],
)
def test_help_is_there(home: Home, args: list[str]) -> None:
    done = home.run(*args)
    assert done.returncode == 0
    assert "Usage:" in done.stdout


def test_wrong_option_is_a_usage_error(home: Home) -> None:
    assert home.run("ask", "hi", "--nonsense").returncode == 2
    assert home.run("ask", "hi", "--model-limit").returncode == 2


def test_debug_shows_the_trace(home: Home) -> None:
    with pytest.raises(AssertionError, match="Traceback"):
        # What the runner forbids everywhere else.
        home.run("ask", "hi", "--debug", "--database", "sqlite:////nowhere/at/all.db")


def test_demo_is_built_once_and_asked_by_default(home: Home) -> None:
    built = home.run("demo")
    path = Path(built.stdout.strip())
    assert path.is_file()
    assert home.folder in path.parents
    assert "Building" in built.stderr
    assert home.run("demo").stderr == ""
    done = home.run("ask", "How many airlines are there?", LONGTABLE_DATABASE="")
    assert "16" in done.stdout
    path.write_bytes(path.read_bytes()[:100_000])
    torn = home.run("ask", "How many airlines are there?", LONGTABLE_DATABASE="")
    assert torn.returncode == 1
    assert "longtable demo --force" in torn.stderr


def test_help_shows_what_is_in_square_brackets(home: Home) -> None:
    words = home.run("chat", "--help").stdout.split()
    assert "[team]" in words


def test_help_imports_nothing_heavy() -> None:
    heavy = {
        "langgraph",
        "langchain_core",
        "langchain",
        "openai",
        "duckdb",
        "sqlglot",
        "tiktoken",
        "numpy",
    }
    run = (
        "import sys; from longtable.app.program import app; sys.argv = ['longtable', 'ask',"
        " '--help']; app(standalone_mode=False)"
    )
    code = f"{run}; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_policy_file_holds_and_a_slip_in_it_is_told_with_its_line(home: Home) -> None:
    policy = home.folder / "policy.toml"
    policy.write_text("[columns]\ndenied = ['orders.custumer']\n", encoding="utf-8")
    wrong = home.run("ask", "How many orders are there?", "--policy", str(policy))
    assert wrong.returncode == 1
    assert "policy.toml, line 2" in wrong.stderr
    policy.write_text("[columns]\ndenied = ['orders.customer']\n", encoding="utf-8")
    done = home.run("ask", "list the orders", LONGTABLE_POLICY=str(policy))
    assert done.returncode == 0
    assert "customer 1" not in done.stdout
    assert "0.5" in done.stdout


def test_what_a_chat_is_asked_in_vain_names_what_the_chat_has(home: Home) -> None:
    done = home.run(
        "chat", stdin=b"How many orders are there?\n/exclude m99\n/include m1\n/unpin 99\n/result\n"
    )
    said = done.stdout + done.stderr
    assert "the thread has no message 'm99': /history," in said
    assert "m1 was not left out." in said
    assert "the thread has no pin '99': /pins," in said
    assert "/result needs a handle: r1" in said
    empty = home.run("chat", stdin=b"/result\n")
    assert "This thread has no results yet." in empty.stderr


def test_ask_answers_the_new_question_after_a_turn_that_failed(
    home: Home, server: ModelServer
) -> None:
    options = ("--thread", "failed", *using(server))
    server.script(unauthorized())
    assert home.run("ask", "first", *options).returncode == 1
    server.script(unauthorized(), say("Second."))
    answered = home.run("ask", "second", *options)
    assert (answered.returncode, "Second." in answered.stdout) == (0, True), answered.stderr


def test_a_wait_for_a_busy_provider_is_told_in_a_line(home: Home, server: ModelServer) -> None:
    server.script(rate_limited(2), say("There."))
    asked = home.run("ask", "Hi", *using(server))
    assert asked.returncode == 0
    assert "2 s" in asked.stdout.partition("There.")[0]


def test_another_model_answers_from_the_next_turn_on(home: Home, server: ModelServer) -> None:
    (home.folder / "models.toml").write_text(
        f'[model]\nname = "gpt-4o"\nchoices = ["gpt-4o-mini"]\nbase_url = "{server.base_url}"\n'
    )
    server.always(say("fine"))
    options = ["--config", str(home.folder / "models.toml")]
    talk = b"one\n/model\n/model gpt-4o-mini\ntwo\n/model nonesuch\n"
    events = home.events("chat", *options, stdin=talk)
    notes = [event["text"] for event in events if event.get("note") == "model_now"]
    assert [("gpt-4o, gpt-4o-mini" in note) for note in notes] == [True, True]
    assert [request.body["model"] for request in server.requests] == ["gpt-4o", "gpt-4o-mini"]
    [wrong] = [event["message"] for event in events if event["type"] == "error"]
    assert wrong == "There is no model nonesuch here: choose one of gpt-4o, gpt-4o-mini."


def test_usage_of_a_range_of_dates_and_the_projects_of_a_store(
    home: Home, server: ModelServer
) -> None:
    server.always(say("fine"))
    for project in ("north", "north", "south"):
        home.run("ask", "Hi", *using(server), LONGTABLE_PROJECT=project)
    projects = home.events("threads", "projects")
    assert [(each["project"], each["threads"]) for each in projects] == [("north", 2), ("south", 1)]
    assert "south" in home.run("threads", "projects").stdout
    calls = [
        sum(row["calls"] for row in home.events("usage", *period))
        for period in (["--from", "2020-01"], ["--to", "2020-01-01"], [])
    ]
    assert calls == [3, 0, 3]
    wrong = home.run("usage", "--from", "2026-02-30")
    assert (wrong.returncode, "2026-11-23" in wrong.stderr) == (1, True)
