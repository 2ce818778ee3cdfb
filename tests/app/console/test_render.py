"""Drawing: values in, text out."""

import io
import json
import re
from typing import Any, cast

import pytest
from rich.console import Console, RenderableType

from longtable.app.commands.chat_commands import COMMANDS, Commands
from longtable.app.console import render
from longtable.app.console.screen import ConsoleScreen
from longtable.app.console.streams import clean, clean_line, json_line, language_of
from longtable.app.console.translations import ADVICE
from longtable.base.errors import (
    ConfigError,
    InputError,
    LongtableError,
    MessageTooLongError,
    ProviderRateLimitedError,
)
from longtable.base.events import (
    ContextCompressed,
    ContextUsage,
    Event,
    MessagesRetired,
    QueryFinished,
    Recall,
    ReportedTokens,
)
from longtable.memory.pins.pins import Pin
from longtable.memory.topics.topics import Topic
from longtable.tools.catalog import Catalog, Column, Table
from longtable.tools.results.result_store import UnknownResultError


def drawn(what: RenderableType, width: int = 100) -> str:
    console = Console(width=width, force_terminal=False, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def finished(columns: list[str], rows: list[list[object]]) -> QueryFinished:
    return QueryFinished(
        type="query_finished",
        call_id="1",
        name="run_sql",
        status="success",
        ms=3,
        sql="SELECT 1",
        columns=columns,
        column_types=["TEXT"] * len(columns),
        rows=rows,
        row_count=len(rows),
    )


def usage(total: int, limit: int = 1000) -> ContextUsage:
    return ContextUsage(
        type="context_usage",
        total=total,
        calibrated=total,
        ratio=1.0,
        limit=limit,
        fraction=total / limit,
        threshold=0.6,
        parts={"system": 10, "tools": 20, "memory": 1200, "messages": total - 30},
        shrunk=0,
        left_out=0,
        estimated=False,
    )


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain 文字\n\tline", "plain 文字\n\tline"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x9b31m", "\ufffd31m"),
        ("a\r\nb", "a\nb"),
        ("bell\x07 nul\x00 del\x7f", "bell␇ nul␀ del␡"),
        ("abc\u202ecba", "abc\ufffdcba"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_control_characters_are_shown_not_sent(text: str, safe: str) -> None:
    assert clean(text) == safe


def test_clean_line_is_one_line_of_bounded_length() -> None:
    assert clean_line("a\nb\x1bc") == "a b␛c"
    assert len(clean_line("x" * 1000, 50)) == 50


def test_json_line_round_trips_and_holds_no_raw_control() -> None:
    data = {"text": "\x1b[1m \x9b \x7f 文字 \ud83d"}
    line = json_line(data)
    assert json.loads(line) == data
    assert "文字" in line
    assert line.isprintable()
    line.encode()


@pytest.mark.parametrize(
    ("text", "language"),
    [("how many?", "en"), ("有多少 orders?", "zh"), ("", "en"), ("café", "en")],
)
def test_language_follows_the_script(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "NULL"),
        (2013, "2013"),
        (336776, "336776"),
        (12.639070257304708, "12.6391"),
        (0.1 + 0.2, "0.3"),
        (0.0, "0"),
        (-0.00001234, "-1.234e-05"),
        (1e20, "1e+20"),
        (True, "true"),
        ("two\nlines", "two⏎lines"),
        ([1, "a"], '[1, "a"]'),
        ("x" * 100, "x" * 59 + "…"),
        ("\x1b[1m", "␛[1m"),
    ],
)
def test_cell(value: object, shown: str) -> None:
    assert render.cell(value) == shown


def test_lookups_are_one_quiet_line() -> None:
    calls: list[tuple[str, dict[str, object]]] = [
        ("list_tables", {}),
        ("describe_tables", {"names": ["a", "b"]}),
        ("find_values", {"text": ["x\x1b[1m"], "limit": 8}),
    ]
    assert (
        drawn(render.lookups(calls, 12)).strip()
        == "list_tables · describe_tables a, b · find_values x␛[1m 8: 12 ms"
    )


def test_result_shows_twenty_rows_and_counts_the_rest() -> None:
    event = finished(["n"], [[n] for n in range(1234)])
    text = drawn(render.query_finished(event, 100, "en"))
    assert "1,234 rows, 3 ms" in text
    assert "│  19 │" in text or "│ 19 │" in text
    assert " 20 │" not in text
    assert "... 1,214 more rows" in text


def test_columns_that_do_not_fit_are_named_and_shown_by_the_whole_result() -> None:
    event = finished([f"column_{n}" for n in range(12)], [[f"value {n}" for n in range(12)]])
    first = drawn(render.first_rows(event, 60, "en"), 60)
    assert "column_0" in first
    assert "more columns" in first
    whole = drawn(render.whole_result(event, 60), 60)
    assert all(f"value {n}" in whole for n in range(12))
    assert all(len(line) <= 60 for line in (first + whole).splitlines())


def test_one_column_wider_than_the_screen_is_folded_not_lost() -> None:
    event = finished(["long"], [["word " * 11]])
    assert drawn(render.first_rows(event, 30, "en"), 30).count("word") == 11


@pytest.mark.parametrize(
    ("rows", "said"),
    [(1, "1 row, 3 ms"), (2, "2 rows, 3 ms"), (21, "... 1 more row ("), (22, "... 2 more rows (")],
)
def test_one_row_is_one_row(rows: int, said: str) -> None:
    assert said in drawn(
        render.query_finished(finished(["n"], [[n] for n in range(rows)]), 80, "en")
    )


@pytest.mark.parametrize(("rows", "hint"), [(10, ""), (11, " (/table shows all)")])
def test_a_result_that_an_answer_may_show_in_part_says_how_to_see_all(rows: int, hint: str) -> None:
    event = finished(["n"], [[n] for n in range(rows)])
    text = drawn(render.query_finished(event, 80, "en", rows=False))
    assert text.strip() == f"{rows} rows, 3 ms{hint}"


def test_one_column_left_out_is_one_column() -> None:
    text = drawn(render.first_rows(finished(["a", "b"], [["x" * 40, "y" * 40]]), 60, "en"), 60)
    assert "... 1 more column: b" in text


def test_a_name_with_a_line_break_stays_on_its_line_of_the_list() -> None:
    odd = Table("two\nlines", "table", (Column("a\nb", "TEXT"),))
    text = drawn(
        render.tables({"": Catalog((odd, Table("plain", "view", (Column("c", "TEXT"),))))})
    )
    assert "two⏎lines" in text
    assert "a b" in text
    assert len(text.splitlines()) == 6


def test_empty_result_is_a_line_without_a_table() -> None:
    assert drawn(render.query_finished(finished(["n"], []), 80, "en")).strip() == "0 rows, 3 ms"
    assert drawn(render.query_finished(finished(["n"], []), 80, "zh")).strip() == "0 行，3 毫秒"


def test_markup_in_data_is_data() -> None:
    event = finished(["[red]a[/red]"], [["[bold]x[/bold] :smile:"]])
    text = drawn(render.first_rows(event, 80, "en"))
    assert "[red]a[/red]" in text
    assert "[bold]x[/bold] :smile:" in text


@pytest.mark.parametrize(("total", "blocks"), [(0, 0), (500, 12), (1000, 24), (5000, 24)])
def test_gauge_fills_with_use_and_never_past_its_end(total: int, blocks: int) -> None:
    text = drawn(render.gauge(usage(total), "en"), 200)
    assert text.count("█") == blocks
    assert f"{total:,} / 1,000 tokens ({total / 10:.1f}%)" in text
    assert "system 10 · tools 20 · memory 1,200 · messages" in text


@pytest.mark.parametrize(
    ("cached", "language", "shown"),
    [
        (830, "en", "messages 370 · cached 83%"),
        (830, "zh", "消息 370 · 缓存 83%"),
        (0, "en", "370\n"),
    ],
)
def test_gauge_tells_the_share_read_from_the_cache(
    cached: int, language: render.Language, shown: str
) -> None:
    tokens = ReportedTokens(input=1_000, output=9, cached=cached, cache_written=0, reasoning=0)
    assert shown in drawn(render.gauge(usage(400), language, "", tokens), 200)


def test_compaction_is_told_in_numbers() -> None:
    text = drawn(
        render.compressed(
            {
                "type": "context_compressed",
                "id": "x",
                "original_tokens": 12345,
                "compressed_tokens": 3210,
                "messages": 14,
                "strategy": "rolling",
                "method": "fallback",
                "writer": "code",
                "why_by_code": "no model writes summaries here",
                "input": 0,
                "output": 0,
                "coverage": 1.0,
                "rebuilt": False,
                "ahead": False,
                "reasons": [],
                "ms": 3,
            },
            "en",
        )
    )
    assert text.strip() == "compacted 12,345 -> 3,210 tokens (14 messages, by code, 3 ms)"


USUAL = ContextCompressed(
    type="context_compressed",
    id="x",
    original_tokens=9_000,
    compressed_tokens=3_000,
    messages=1,
    strategy="rolling",
    method="model",
    writer="gpt-4o",
    why_by_code="",
    input=5_100,
    output=600,
    coverage=1.0,
    rebuilt=False,
    ahead=False,
    reasons=[],
    ms=3,
)


@pytest.mark.parametrize(
    ("changes", "en", "zh"),
    [
        (
            {"writer": "gpt-4o", "why_by_code": ""},
            "3 ms)\ncompacted by gpt-4o: 5,100 in, 600 out",
            "\n由 gpt-4o 压缩：输入 5,100，输出 600",
        ),
        (
            {
                "writer": "code",
                "why_by_code": "it cites messages that do not exist: 99",
                "reasons": [{"code": "empty", "message": "empty"}],
            },
            "\ncompacted by code: 5,100 in, 600 out; it cites messages that do not exist: 99",
            "\n由 code 压缩：输入 5,100，输出 600; it cites",
        ),
    ],
)
def test_a_compaction_says_who_wrote_it_what_it_cost_and_why_not_the_model(
    changes: dict[str, Any], en: str, zh: str
) -> None:
    event = cast("ContextCompressed", {**USUAL, "input": 5_100, "output": 600, **changes})
    assert en in render.compressed(event, "en").plain
    assert zh in render.compressed(event, "zh").plain


def test_a_compaction_that_no_model_was_asked_for_says_nothing_of_models() -> None:
    event = cast(
        "ContextCompressed",
        {
            **USUAL,
            "input": 0,
            "output": 0,
            "writer": "code",
            "why_by_code": "no model writes summaries here",
        },
    )
    assert "\n" not in render.compressed(event, "en").plain


def test_results_that_code_shortened_are_one_dim_line_without_summary_or_writer() -> None:
    event = cast(
        "ContextCompressed",
        {
            **USUAL,
            "kind": "results",
            "original_tokens": 5_100,
            "messages": 4,
            "input": 0,
            "output": 0,
            "method": "fallback",
            "writer": "code",
            "why_by_code": "only results of tools were shortened",
        },
    )
    en = render.compressed(event, "en")
    assert en.plain == "results of earlier rounds shortened: 5,100 -> 3,000 tokens"
    assert {str(en.style), *(str(span.style) for span in en.spans)} == {"dim"}
    zh = render.compressed(event, "zh")
    assert zh.plain == "较早轮次的结果已缩短：5,100 -> 3,000 个词元"


@pytest.mark.parametrize(
    ("changes", "en", "zh"),
    [
        ({}, "(1 message, model, 3 ms)", "（1 条消息，模型，3 毫秒）"),
        (
            {"strategy": "topics"},
            "(1 message, topics, model, 3 ms)",
            "（1 条消息，topics，模型，3 毫秒）",
        ),
        ({"rebuilt": True}, "model, made from the originals, 3 ms", "模型，由原文重做，3 毫秒"),
        ({"ahead": True}, "model, for the next turn, 3 ms", "模型，为下一轮准备，3 毫秒"),
        (
            {"coverage": 0.999},
            "model, 99 % of the text read, 3 ms",
            "模型，读了 99 % 的原文，3 毫秒",
        ),
    ],
)
def test_a_compaction_says_what_was_unusual(changes: dict[str, Any], en: str, zh: str) -> None:
    event = cast("ContextCompressed", {**USUAL, **changes})
    assert en in render.compressed(event, "en").plain
    assert zh in render.compressed(event, "zh").plain


@pytest.mark.parametrize(
    ("count", "en", "zh"),
    [
        (
            1,
            "1 message moved to the archive (1,234 in all; /history shows it)",
            "1 条消息已移入存档（共 1,234 条；/history 仍可查看）",
        ),
        (
            20,
            "20 messages moved to the archive (1,234 in all; /history shows them)",
            "20 条消息已移入存档（共 1,234 条；/history 仍可查看）",
        ),
    ],
)
def test_messages_that_retire_are_told(count: int, en: str, zh: str) -> None:
    event = MessagesRetired(type="messages_retired", messages=count, archived=1_234)
    assert render.retired(event, "en").plain == en
    assert render.retired(event, "zh").plain == zh


@pytest.mark.parametrize(
    ("found", "turns", "en", "zh"),
    [
        (0, [], "recalled nothing on “a b␛”", "没有找到关于“a b␛”的消息"),
        (1, [7], "recalled 1 message on “a b␛” (turn 7)", "找回 1 条关于“a b␛”的消息（第 7 轮）"),
        (
            3,
            [1, 2],
            "recalled 3 messages on “a b␛” (turn 1, 2)",
            "找回 3 条关于“a b␛”的消息（第 1, 2 轮）",
        ),
    ],
)
def test_a_recall_is_told(found: int, turns: list[int], en: str, zh: str) -> None:
    event = Recall(type="recall", query="a\nb\x1b", found=found, turns=turns, via="tool")
    assert render.recalled(event, "en").plain == en
    assert render.recalled(event, "zh").plain == zh


def test_every_event_is_drawn_or_counted_by_the_screen() -> None:
    console = Console(width=100, force_terminal=False, record=True, file=io.StringIO())
    screen = ConsoleScreen(console, console)
    screen.language = "en"
    screen.event(MessagesRetired(type="messages_retired", messages=2, archived=2))
    screen.event(Recall(type="recall", query="tax", found=2, turns=[4], via="marker"))
    screen.event(USUAL)
    text = console.export_text()
    assert "moved to the archive" in text
    assert "recalled 2 messages on “tax” (turn 4)" in text
    assert "compacted 9,000 -> 3,000 tokens" in text


def test_pins_and_topics_are_listed_whole_and_safe() -> None:
    pin = Pin("p1", "keep\n\x1b[1m" + "word " * 40, "", 3, "user", ended="let it\x1b[1m go")
    text = drawn(render.pins([pin], "en"))
    assert text.count("word") == 40
    assert text.count("␛[1m") == 2
    assert "turn" in text
    topic = Topic("t1", 2, "Prices\x1b", "What prices\nare in", "# Prices", ("a",), 3, "")
    drawn_topics = drawn(render.topics([topic], "zh"))
    assert "Prices␛" in drawn_topics
    assert "摘要" in drawn_topics
    assert "are in" in drawn_topics


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_line_of_help(name: str) -> None:
    for language in ("en", "zh"):
        assert f"/{name} " in drawn(render.commands(COMMANDS, language)).replace("\n", " \n")
    assert callable(getattr(Commands, f"_{name}"))


@pytest.mark.parametrize(
    ("error", "language", "sentence", "hint"),
    [
        (ConfigError("set X to Y"), "en", "A setting or an argument does not fit.", "set X to Y"),
        (
            ConfigError("set X to Y"),
            "zh",
            "有一项设置或参数不合适。",
            "请检查选项、参数和环境变量（set X to Y）",
        ),
        (
            MessageTooLongError(size=9, limit=8),
            "en",
            "The message has 9 characters, the limit is 8: please shorten it.",
            "",
        ),
        (
            ProviderRateLimitedError("wait", retry_after=7),
            "en",
            "The model's provider is busy: try again in 7 s.",
            "wait",
        ),
        (
            KeyError("secret"),
            "en",
            "Something went wrong inside longtable.",
            "KeyError; run again with --debug for the details",
        ),
    ],
)
def test_error_is_a_sentence_and_a_hint(
    error: Exception, language: str, sentence: str, hint: str
) -> None:
    assert render.error_texts(error, language) == (sentence, hint)


@pytest.mark.parametrize(
    ("error", "language", "lines"),
    [
        (ConfigError("set X to Y"), "en", ["Error: set X to Y"]),
        (ConfigError("set X to Y"), "zh", ["错误: 请检查选项、参数和环境变量（set X to Y）"]),
        (
            ProviderRateLimitedError("wait", retry_after=7),
            "en",
            ["Error: wait", "The model's provider is busy: try again in 7 s."],
        ),
    ],
)
def test_a_wrong_setting_is_told_in_its_own_words_alone(
    error: Exception, language: str, lines: list[str]
) -> None:
    assert drawn(render.error(error, language)).splitlines() == lines


SEEN = {LongtableError.__module__, UnknownResultError.__module__}
"""Where the errors stand that a person is told of; others are answers to a model."""


def errors_of(base: type[LongtableError]) -> set[type[LongtableError]]:
    return {
        base,
        *(
            each
            for kind in base.__subclasses__()
            for each in errors_of(kind)
            if each.__module__ in SEEN
        ),
    }


def test_every_error_says_in_chinese_what_to_do() -> None:
    told = {
        error.code for error in errors_of(LongtableError) if not issubclass(error, InputError)
    } | {InputError.code}
    assert told == set(ADVICE)
    # Its marks are Chinese.
    assert all(not re.search(r"[,;:.!?]", advice) for advice in ADVICE.values())


def test_links_in_an_answer_make_no_hyperlink_escape() -> None:
    console = Console(width=80, force_terminal=True)
    with console.capture() as capture:
        console.print(render.answer("see [here](http://example.org/\x1b) \x1b]0;t\x07"))
    assert "\x1b]" not in capture.get()


def test_reasoning_is_hidden_until_asked_for_and_then_stands_apart_from_the_answer() -> None:
    def shown(*, reasoning: bool, terminal: bool) -> str:
        console = Console(
            file=io.StringIO(), width=80, markup=False, force_terminal=terminal, color_system=None
        )
        screen = ConsoleScreen(console, console)
        screen.reasoning = reasoning
        for piece in ("First I ", "look\x1b[5m."):
            screen.event({"type": "reasoning", "text": piece})
        screen.event({"type": "token", "text": "It is 42."})
        screen.event({"type": "answer", "text": "It is 42.", "status": "answered", "turn": 1})
        file = console.file
        assert isinstance(file, io.StringIO)
        return file.getvalue()

    assert shown(reasoning=True, terminal=False) == "First I look␛[5m.\nIt is 42.\n"
    assert shown(reasoning=False, terminal=False) == "It is 42.\n"
    told = shown(reasoning=True, terminal=True)
    assert told.index("First I look␛") < told.index("It is 42.")
    assert "\x1b[5m" not in told


def test_an_answer_is_printed_once_where_another_event_comes_between_its_text_and_its_end() -> None:
    console = Console(file=(printed := io.StringIO()), width=80)
    screen = ConsoleScreen(console, console)
    screen.asked("Forget km.")
    screen.event(cast("Any", {"type": "token", "text": "As you like."}))
    screen.event(cast("Any", {"type": "audit_failed", "failure": "disk"}))
    screen.event(cast("Any", {"type": "answer", "text": "As you like."}))
    assert printed.getvalue().count("As you like.") == 1


def shown_turn(answer: str) -> str:
    """Return what a turn with one query of two rows looks like."""
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    screen = ConsoleScreen(console)
    screen.language = "en"
    screen.asked("which?")
    screen.event(finished(["city", "n"], [["Oslo", 1], ["Rome", 20]]))
    screen.event(cast("Event", {"type": "token", "text": answer}))
    screen.event(cast("Event", {"type": "answer", "text": answer, "status": "answered"}))
    screen.finish()
    return console.export_text()


def test_a_table_stands_once_in_the_answer_or_else_below_it() -> None:
    table = "Here:\n\n| city | n |\n| --- | --- |\n| Oslo | 1 |\n| Rome | 20 |\n"
    assert shown_turn(table).count("Rome") == 1
    assert shown_turn("Two cities.").count("Rome") == 1
    assert "│ Rome │ 20 │" in shown_turn("Two cities.")


def test_numbers_of_a_table_in_an_answer_stand_to_the_right() -> None:
    table = "| n | s | g |\n|---|---|:---|\n| 1 | a\\|b | 3 |\n| -2,000.5 | 4 | 5 |"
    assert render.numbers_to_the_right(table).split("\n")[1] == "| ---: | --- | :--- |"
    text = drawn(render.answer("| city | n |\n| --- | --- |\n| Oslo | 1 |\n| Rome | 2,000 |"))
    [oslo] = [line for line in text.split("\n") if "Oslo" in line]
    [rome] = [line for line in text.split("\n") if "Rome" in line]
    assert oslo.rstrip().endswith("1")
    assert len(oslo.rstrip()) == len(rome.rstrip())
    assert render.numbers_to_the_right("a - b\n---\n1") == "a - b\n---\n1"
