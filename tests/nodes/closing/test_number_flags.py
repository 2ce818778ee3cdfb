"""Figures of an answer are held against the results of its turn: what is invented is flagged,
nothing else is.
"""

import asyncio
import json
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.concurrency import BoundedCache
from longtable.graph import ConfigError, Context, Conversation, Database, ResultStore, build_graph
from longtable.memory.thread import Thread
from longtable.nodes import settle
from longtable.nodes.closing.number_flags import KEPT_MESSAGES, unsupported_in
from tests.support.models import ScriptedModel, call, script
from tests.support.threads import values_of

CONTEXT = Context(model_limit=16_000)
ALL = "SELECT id, price FROM teas ORDER BY id"
SOME = "SELECT id, price FROM teas WHERE id <= 3 ORDER BY id"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    connection = sqlite3.connect(tmp_path / "shop.db")
    with connection:
        connection.execute("CREATE TABLE teas (id INTEGER PRIMARY KEY, price REAL)")
        connection.executemany(
            "INSERT INTO teas (price) VALUES (?)", [(n * 37.25,) for n in range(1, 101)]
        )
    connection.close()
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture
def talk(shop: str, tmp_path: Path) -> Callable[..., Conversation]:
    def talk(
        *said: AIMessage | str,
        kept: bool = True,
        check: str = "flag",
        model: ScriptedModel | None = None,
    ) -> Conversation:
        results = (
            ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC)) if kept else None
        )
        graph = build_graph(
            model=model or script(*said), database=Database.open(shop), results=results
        )
        context = CONTEXT.replace(check_numbers=check)
        return Conversation(
            graph.compile(checkpointer=InMemorySaver()), "t", context=context, results=results
        )

    return talk


@pytest.mark.parametrize(
    ("sql", "text", "flagged"),
    [
        (SOME, "The prices are 37.25, 74.5 and 111.75, together 223.50.", []),
        (SOME, "The dearest costs 111.75, the cheapest 41.90.", ["41.90"]),
        (SOME, "最贵的是 111.75，最便宜的是 41.9。", ["41.9"]),
        (SOME, "\x1b[31mThe dearest\x1b[2J costs 111.75.", []),
        (ALL, "The dearest costs 3,725, the 73rd 2,719.25.", []),
        (ALL, "The dearest costs 3,725, the cheapest 918.33.", ["918.33"]),
    ],
)
def test_an_invented_figure_is_flagged_in_record_event_and_answer(
    talk: Callable[..., Conversation], sql: str, text: str, flagged: list[str]
) -> None:
    conversation = talk(call("run_sql", sql=sql), text)
    answer = conversation.ask("What do they cost?")
    assert answer.text == text
    assert answer.unsupported_numbers == flagged
    assert values_of(conversation)["turn"].get("unsupported_numbers", []) == flagged


def test_the_event_comes_after_the_tokens_and_before_the_answer(
    talk: Callable[..., Conversation],
) -> None:
    async def kinds() -> list[str]:
        conversation = talk(call("run_sql", sql=SOME), "It costs 918.33.")
        return [event["type"] async for event in conversation.astream("What does it cost?")]

    told = asyncio.run(kinds())
    assert told[-2:] == ["unsupported_numbers", "answer"]
    assert told[-3] == "token"


def test_rows_that_are_neither_shown_nor_kept_flag_nothing(
    talk: Callable[..., Conversation],
) -> None:
    assert (
        talk(call("run_sql", sql=ALL), "One costs 918.33.", kept=False)
        .ask("What?")
        .unsupported_numbers
        == []
    )
    assert talk(call("run_sql", sql=SOME), "One costs 918.33.", kept=False).ask(
        "What?"
    ).unsupported_numbers == ["918.33"]


def test_it_can_be_turned_off_and_other_values_are_refused(
    talk: Callable[..., Conversation],
) -> None:
    assert (
        talk(call("run_sql", sql=SOME), "One costs 918.33.", check="off")
        .ask("What?")
        .unsupported_numbers
        == []
    )
    with pytest.raises(ConfigError, match=r"Context\.check_numbers must be 'off' or 'flag'"):
        CONTEXT.replace(check_numbers="repair")


def test_a_turn_without_a_result_is_not_checked(talk: Callable[..., Conversation]) -> None:
    assert talk("There are 918 ways to ask.").ask("hello").unsupported_numbers == []
    assert talk(call("list_tables"), "There are 918 tables.").ask("hello").unsupported_numbers == []


def test_figures_after_queries_that_all_failed_are_made_up_but_for_what_the_errors_say(
    talk: Callable[..., Conversation],
) -> None:
    failing = call("run_sql", sql="SELECT nme FROM teas")
    assert talk(failing, "There are 918 of them.").ask("How many?").unsupported_numbers == ["918"]
    assert (
        talk(failing, "I tried 1 query; it failed at line 1, column 8.")
        .ask("How many?")
        .unsupported_numbers
        == []
    )


def test_what_was_said_and_found_before_may_be_repeated_and_compared(
    talk: Callable[..., Conversation],
) -> None:
    conversation = talk(
        call("run_sql", sql="SELECT sum(price) AS total FROM teas"),
        "Together 188,112.5.",
        call("run_sql", "call_2", sql="SELECT max(price) AS top FROM teas"),
        "The dearest is 3,725 of 188,112.5; the others cost 184,387.5 together, and 77.77 I"
        " made up.",
    )
    assert conversation.ask("How much in all?").unsupported_numbers == []
    assert conversation.ask("And the dearest?").unsupported_numbers == ["77.77"]


def test_a_flag_is_the_turns_own(talk: Callable[..., Conversation]) -> None:
    conversation = talk(call("run_sql", sql=SOME), "One costs 918.33.", "Hello.")
    assert conversation.ask("What?").unsupported_numbers == ["918.33"]
    assert conversation.ask("hello").unsupported_numbers == []
    assert "unsupported_numbers" not in values_of(conversation)["turn"]


def test_fetched_rows_vouch_too(talk: Callable[..., Conversation]) -> None:
    fetch = call(
        "fetch_result", "call_2", sql="SELECT round(avg(price) * 1.19, 3) AS gross FROM r1"
    )
    conversation = talk(
        call("run_sql", sql=ALL), "There.", fetch, "With tax they cost 2238.539 on average."
    )
    conversation.ask("Prices?")
    answer = conversation.ask("With tax?")
    assert answer.unsupported_numbers == []


def test_a_check_that_fails_is_told_and_fails_no_turn(
    talk: Callable[..., Conversation], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[str]:
        raise RuntimeError("out of numbers")

    monkeypatch.setattr(settle, "unsupported_in", broken)
    events = list(talk(call("run_sql", sql=SOME), "One costs 918.33.").stream("What?"))
    assert events[-1]["type"] == "answer"
    [told] = [event for event in events if event["type"] == "unsupported_numbers"]
    assert (told["figures"], told.get("failure")) == ([], "RuntimeError: out of numbers")


INVENTED, MENDED = "The cheapest costs 41.90.", "The cheapest costs 37.25."


@pytest.mark.parametrize("name", ["*.parquet", "meta.json"])
def test_a_result_that_is_damaged_on_the_disk_costs_no_turn(
    name: str, talk: Callable[..., Conversation], tmp_path: Path
) -> None:
    def say(sent: Sequence[BaseMessage]) -> AIMessage:
        if sent[-1].type == "human":
            return call("run_sql", sql=ALL)
        (file,) = (tmp_path / "results").rglob(name)
        file.write_bytes(bytes(byte ^ 0x11 for byte in file.read_bytes()))
        return AIMessage("The dearest costs 3,725, the cheapest 918.33.")

    assert talk(model=ScriptedModel(say=say)).ask("What do they cost?").status == "answered"


class CountingCache(BoundedCache[bytes, "array[float]"]):
    puts = 0

    def put(self, key: bytes, value: "array[float]") -> "array[float]":
        self.puts += 1
        return super().put(key, value)


def test_the_numbers_of_an_earlier_message_are_read_once_a_process() -> None:
    said = CountingCache(KEPT_MESSAGES)
    earlier, later = {"longtable": {"turn": 1}}, {"longtable": {"turn": 9}}
    rows = json.dumps([[f"City {n}", n * 7.5] for n in range(300)])
    messages: list[BaseMessage] = [
        ToolMessage(
            f'{{"columns": ["city", "n"], "rows": {rows}, "row_count": 300}}',
            tool_call_id="a",
            additional_kwargs=earlier,
        ),
        ToolMessage(
            '{"columns": ["n"], "rows": [[3]], "row_count": 1}',
            tool_call_id="b",
            additional_kwargs=later,
        ),
        AIMessage("They are 2,242.5 and 41.9.", additional_kwargs=later),
    ]
    for _ in range(3):  # each turn loads the messages anew
        again = [message.model_copy(deep=True) for message in messages]
        assert unsupported_in(Thread(again), 9, lambda _: None, said) == ["41.9"]
    assert said.puts == 1


def test_the_messages_that_a_check_reads_do_not_grow_with_the_thread() -> None:
    def puts(turns: int) -> int:
        messages: list[BaseMessage] = []
        for turn in range(1, turns + 1):
            stamp = {"longtable": {"turn": turn}}
            result = json.dumps({"columns": ["n"], "rows": [[turn * 7]], "row_count": 1})
            messages += [
                ToolMessage(result, tool_call_id=f"{turn}", additional_kwargs=stamp),
                AIMessage(f"It is {turn * 7}.", additional_kwargs=stamp),
            ]
        cache = CountingCache(KEPT_MESSAGES)
        messages[-1] = AIMessage("It is 918.33.", additional_kwargs=messages[-1].additional_kwargs)
        assert unsupported_in(Thread(messages), turns, lambda _: None, cache) == ["918.33"]
        return cache.puts

    assert puts(600) == puts(60)
