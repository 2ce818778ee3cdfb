"""The query ledger: what ran, from the tool messages alone, and lines that read back exactly."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.compaction.ledger import (
    LedgerLine,
    figures_of,
    fit_ledger,
    ledger_in,
    ledger_lines,
    render_ledger,
)
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import RECALLED, TABLES, marked
from longtable.tools.database import Database
from longtable.tools.toolset import database_tools
from tests.support.histories import histories

count = counter("o200k_base").text
TEXT = st.text(max_size=60)
LINES = st.builds(
    LedgerLine,
    turn=st.integers(0, 10**6),
    question=TEXT,
    sql=TEXT,
    tables=st.lists(st.text(min_size=1, max_size=12), max_size=3).map(tuple),
    rows=st.integers(0, 10**9),
    figures=TEXT | st.sampled_from(["tables x", "SQL: SELECT 1", "rows 3", "handle r1"]),
    handle=st.sampled_from(["", "r1", "r12"]),
)


def result(sql: str | None, *, rows: list[list[Any]], columns: list[str], **more: Any) -> str:
    answer = {
        "row_count": len(rows),
        "columns": columns,
        "types": ["BIGINT"] * len(columns),
        "shown": len(rows),
        "rows": rows,
        **more,
    }
    return json.dumps(answer if sql is None else {**answer, "sql": sql})


def asked(
    question: str,
    sql: str,
    answer: str,
    *,
    turn: int = 1,
    status: Any = "success",
    call: str = "call_0",
) -> list[BaseMessage]:
    calls = AIMessage(
        "", tool_calls=[{"name": "run_sql", "args": {"sql": sql}, "id": call}], id=f"a{turn}-{call}"
    )
    answered = ToolMessage(
        answer, tool_call_id=call, status=status, id=f"t{turn}-{call}", name="run_sql"
    )
    question_ = HumanMessage(question, id=f"h{turn}")
    return [marked(message, turn=turn) for message in (question_, calls, answered)]


def test_a_line_names_the_tables_that_the_database_says_were_read_and_reads_no_sql() -> None:
    history = asked("q", "SELECT * FROM a", result("SELECT * FROM a", rows=[[1]], columns=["n"]))
    assert [line.tables for line in ledger_lines(history)] == [()]
    assert [
        line.tables
        for line in ledger_lines([*history[:-1], marked(history[-1], **{TABLES: ["b", "c"]})])
    ] == [("b", "c")]


def test_a_line_stored_by_an_earlier_version_is_read() -> None:
    line = LedgerLine(
        3, "q", "SELECT 1", ("t",), rows=1, figures="n=1", handle="r1", message_id="m1"
    )
    assert LedgerLine.from_json({**line.as_json(), "filters": ["a > 1"]}) == line


def test_a_query_that_ran_on_a_real_database_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "f.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE flights AS SELECT * FROM (VALUES ('JFK', 3), ('LGA', 50)) v(origin,"
            " delay)"
        )
    with Database.open(f"duckdb:///{path}") as database:
        [run] = [tool for tool in database_tools(database) if tool.name == "run_sql"]
        sql = (
            "SELECT count(*) AS n, avg(delay) AS mean FROM flights WHERE delay > 1 AND origin <>"
            " 'EWR'"
        )
        answer = run.invoke(
            {"name": "run_sql", "args": {"sql": sql}, "id": "call_0", "type": "tool_call"}
        )
        [line] = ledger_lines(asked("How late?", sql, answer.content, turn=7))
    assert (line.turn, line.question, line.message_id) == (7, "How late?", "t7-call_0")
    assert (line.columns, line.rows, line.figures) == (("n", "mean"), 1, "n=2, mean=26.5")
    assert line.sql == json.loads(answer.content)["sql"]


def test_the_sql_is_the_one_that_ran_and_the_call_s_where_the_answer_has_none() -> None:
    [ran] = ledger_lines(
        asked("q", "select 1 -- as asked", result("SELECT 1", rows=[[1]], columns=["1"]))
    )
    [called] = ledger_lines(
        asked("q", "select 1 -- as asked", result(None, rows=[[1]], columns=["1"]))
    )
    assert (ran.sql, called.sql) == ("SELECT 1", "select 1 -- as asked")


@pytest.mark.parametrize(
    "answer",
    [
        '{"error":{"class":"x","message":"y"}}',
        "no JSON",
        '{"row_count":',
        "[]",
        '{"tables":[]}',
        "",
        "[" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_an_answer_that_is_no_result_gives_no_line(answer: str) -> None:
    assert ledger_lines(asked("q", "SELECT 1", answer)) == []


def test_failed_and_recalled_answers_give_no_line() -> None:
    fine = result("SELECT 1", rows=[[1]], columns=["n"])
    assert ledger_lines(asked("q", "SELECT 1", fine, status="error")) == []
    assert (
        ledger_lines([marked(message, kind=RECALLED) for message in asked("q", "SELECT 1", fine)])
        == []
    )


def test_the_same_sql_counts_once_in_a_round_and_again_in_the_next() -> None:
    answer = result("SELECT 1", rows=[[1]], columns=["n"], handle="r4")
    round_ = asked("first", "SELECT 1", answer)
    again = asked("first", "SELECT 1", answer, call="call_1")[1:]
    next_ = asked("second", "SELECT 1", answer, turn=2)
    lines = ledger_lines([*round_, *again, *next_])
    assert [(line.turn, line.question, line.handle) for line in lines] == [
        (1, "first", "r4"),
        (2, "second", "r4"),
    ]


def test_call_ids_that_begin_anew_each_time_keep_each_answer_with_its_sql() -> None:
    history = [
        m
        for n in range(3)
        for m in asked(f"q{n}", f"SELECT {n}", result(None, rows=[[n]], columns=["n"]), turn=n)
    ]
    assert [(line.question, line.sql) for line in ledger_lines(history)] == [
        (f"q{n}", f"SELECT {n}") for n in range(3)
    ]


@pytest.mark.parametrize(
    ("columns", "rows", "figures"),
    [
        (["count"], [[6200]], "count=6200"),
        (["count", "avg"], [[6200, 3.4]], "count=6200, avg=3.4"),
        (
            ["name", "n"],
            [["Ada", 1], ["Bo", None], ["Cy", True], ["Di", 4]],
            "Ada/1; Bo/null; Cy/true",
        ),
        (["a"], [], ""),
        (["a"], [["two\nlines " + "x" * 100]], "a=two lines " + "x" * 21 + "…"),
        (["金额"], [["¥1,200"]], "金额=¥1,200"),
    ],
)
def test_figures_are_the_first_ones_and_short(
    columns: list[str], rows: list[list[Any]], figures: str
) -> None:
    assert figures_of(columns, rows) == figures


@given(st.lists(LINES, min_size=1, max_size=4), st.sampled_from(["en", "zh"]), st.integers(0, 3))
def test_rendered_lines_read_back_exactly(
    lines: list[LedgerLine], language: str, left_out: int
) -> None:
    text = render_ledger(lines, language, left_out)
    assert ledger_in(f"before\n{text}\nafter") == lines
    assert len(text.splitlines()) == len(text.split("\n")) == len(lines) + 1 + bool(left_out)


def test_a_line_reads_as_people_expect_and_its_sql_stands_as_it_ran() -> None:
    sql = "SELECT count(*)\nFROM flights WHERE a || 'x | y\r\n' ~ '\\d\\n'"
    line = LedgerLine(
        12,
        'How many "late" | flights?',
        sql,
        ("flights",),
        rows=1,
        figures="count=6200",
        handle="r3",
    )
    text = render_ledger([line], "en")
    assert (
        text.splitlines()[1]
        == '- T12 "How many "late" ␛| flights?" | rows 1 | handle r3 | count=6200 | tables flights'
        " | SQL: SELECT count(*)⏎FROM flights WHERE a || 'x | y␍⏎' ~ '\\d\\n'"
    )
    assert ledger_in(text) == [line]
    assert render_ledger([], "en") == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- T1",
        '- T1 "q"',
        '- T1 "q" | rows x | SQL: a',
        '- T1 "q" | SQL: a',
        "- Asked: q | Answered: a | SQL: b",
    ],
)
def test_other_lines_are_no_ledger(text: str) -> None:
    assert ledger_in(text) == []


@given(st.lists(LINES, max_size=14), st.integers(0, 900), st.sampled_from(["en", "zh"]))
def test_the_ledger_never_goes_over_its_budget(
    lines: list[LedgerLine], budget: int, language: str
) -> None:
    kept, gone = fit_ledger(lines, budget, count, language)
    assert len(kept) + gone == len(lines)
    text = render_ledger(kept, language, gone)
    assert count(text) <= budget or not kept
    assert [line.sql for line in kept] == [
        line.sql for line in kept if line.sql in {other.sql for other in lines}
    ]


def test_older_lines_lose_figures_then_go_and_the_newest_stay_whole() -> None:
    lines = [
        LedgerLine(
            n, f"question {n}", f"SELECT {n} FROM t", ("t",), rows=1, figures=f"total={n * 1111}"
        )
        for n in range(20)
    ]
    whole = count(render_ledger(lines, "en"))
    kept, gone = fit_ledger(lines, whole - 20, count, "en")
    assert gone == 0
    assert [bool(line.figures) for line in kept] == sorted(bool(line.figures) for line in kept)
    assert any(not line.figures for line in kept)
    kept, gone = fit_ledger(lines, whole // 3, count, "en")
    assert gone > 0
    assert [line.turn for line in kept] == list(range(gone, 20))
    assert all(line.figures for line in kept[-4:])


def test_a_query_too_long_to_be_shown_takes_no_other_with_it() -> None:
    lines = [LedgerLine(1, "a", "SELECT 1"), LedgerLine(2, "b", "SELECT " + "x, " * 2_000)]
    kept, gone = fit_ledger(lines, 200, count, "en")
    assert ([line.turn for line in kept], gone) == ([1], 1)


@given(LINES)
def test_a_line_is_plain_json(line: LedgerLine) -> None:
    assert LedgerLine.from_json(json.loads(json.dumps(line.as_json()))) == line


@given(histories())
def test_any_history_gives_a_ledger_and_is_left_as_it_was(history: list[BaseMessage]) -> None:
    before = [message.model_dump_json() for message in history]
    ledger_lines(history)
    assert [message.model_dump_json() for message in history] == before


@pytest.mark.parametrize(("budget", "most"), [(0, 2_000), (500, 100), (10**7, 2_000)])
def test_lines_are_counted_a_few_times_and_those_before_the_oldest_that_stays_never(
    budget: int, most: int
) -> None:
    counted: list[str] = []

    def counting(text: str) -> int:
        counted.append(text)
        return len(text)

    lines = [LedgerLine(n, "q", f"SELECT {n}", rows=1, figures=f"n={n}") for n in range(500)]
    fit_ledger(lines, budget, counting, "en")
    assert len(counted) <= most


def test_a_line_keeps_its_database_and_older_lines_have_none() -> None:
    line = LedgerLine(1, "how many?", "SELECT 1", database="web")
    assert LedgerLine.from_json(line.as_json()) == line
    older = replace(line, database="")
    assert "database" not in older.as_json()
    assert LedgerLine.from_json(older.as_json()) == older
    text = render_ledger([line, older], "en")
    assert [each.database for each in ledger_in(text)] == ["web", ""]
    odd = replace(older, question="in web", figures="in web")
    assert ledger_in(render_ledger([odd], "en")) == [odd], "nothing else is read as a database"
