"""recall_history returns earlier messages word for word, within its budget, and hides what the
model must not give.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from longtable.base.errors import RecallRefusedError
from longtable.tools.excerpts import excerpt, words_of
from longtable.tools.memory_tools import (
    LEAST_TEXT,
    MOST_FOUND,
    MOST_SHOWN,
    NOTE,
    PAGE,
    Hit,
    recall,
    recall_tool,
)


def hit(number: int, text: str = "the tailnum is N14228") -> Hit:
    return Hit(number, f"id-{number}", number // 2, "2026-01-01T00:00:00+00:00", "ai", text)


@dataclass
class Fixed:
    """Originals that are always these; remembers what it was asked."""

    hits: Sequence[Hit] = ()
    budget_chars: int = 4_000
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def search(
        self, query: str, from_turn: int | None, to_turn: int | None, limit: int
    ) -> Sequence[Hit]:
        self.asked.append((query, from_turn, to_turn, limit))
        return self.hits[:limit]

    def numbered(self, numbers: Sequence[int]) -> Sequence[Hit]:
        self.asked.append(tuple(numbers))
        by_number = {hit.number: hit for hit in self.hits}
        return [by_number[number] for number in numbers if number in by_number]


def call(**args: object) -> dict[str, object]:
    return {"name": "recall_history", "id": "call_1", "type": "tool_call", "args": args}


def test_the_model_sees_four_arguments_and_not_the_originals() -> None:
    tool = recall_tool()
    definition = convert_to_openai_tool(tool)["function"]
    assert list(definition["parameters"]["properties"]) == [
        "query",
        "from_turn",
        "to_turn",
        "limit",
    ]
    assert definition["parameters"]["required"] == ["query"]
    assert tool.metadata == {"kind": "recall"}
    assert "originals" not in json.dumps(definition)


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
def test_the_node_gives_the_originals_with_the_call(wait: bool) -> None:
    originals = Fixed([hit(3)])
    given_call = call(query="tailnum", from_turn=1, to_turn=2, limit=3, originals=originals)
    answer = (
        asyncio.run(recall_tool().ainvoke(given_call)) if wait else recall_tool().invoke(given_call)
    )
    assert isinstance(answer, ToolMessage)
    assert (answer.tool_call_id, answer.status) == ("call_1", "success")
    assert (
        answer.content
        == '{"messages":[{"number":3,"id":"id-3","turn":1,"time":"2026-01-01T00:00:00+00:00","role":"ai","text":"the'
        f' tailnum is N14228"}}],"found":1,"shown":1,"note":"{NOTE}"}}'
    )
    assert originals.asked == [("tailnum", 1, 2, MOST_FOUND)]


@pytest.mark.parametrize(
    "originals", [None, "mine", {"search": "x"}], ids=["missing", "text", "object"]
)
def test_originals_that_a_model_makes_up_are_refused(originals: object) -> None:
    with pytest.raises(ValidationError, match="originals"):
        recall_tool().invoke(call(query="x", **({"originals": originals} if originals else {})))


@pytest.mark.parametrize("query", ["", "  \n", "?!", "。"])
def test_a_query_without_words_is_refused(query: str) -> None:
    with pytest.raises(RecallRefusedError, match="name what the earlier message speaks of"):
        recall_tool().invoke(call(query=query, originals=Fixed([hit(1)])))


def test_turns_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(RecallRefusedError, match="from_turn 5 comes after to_turn 2: swap them"):
        recall_tool().invoke(call(query="x", from_turn=5, to_turn=2, originals=Fixed([hit(1)])))


def test_nothing_found_says_what_to_try() -> None:
    told = json.loads(recall(Fixed(), "tailnum"))
    assert told["messages"] == []
    assert (told["found"], told["shown"]) == (0, 0)
    assert "other or fewer words" in told["note"]


@pytest.mark.parametrize(("limit", "shown"), [(-1, 1), (0, 1), (3, 3), (1_000, MOST_SHOWN)])
def test_the_limit_is_kept_and_what_is_beyond_it_counted(limit: int, shown: int) -> None:
    told = json.loads(
        recall(
            Fixed([hit(n) for n in range(30, 0, -1)], budget_chars=100_000), "tailnum", limit=limit
        )
    )
    assert [message["number"] for message in told["messages"]] == list(range(30, 30 - shown, -1))
    assert (told["found"], told["shown"], told.get("more")) == (30, shown, None)


def test_as_many_as_were_asked_for_may_be_more() -> None:
    told = json.loads(recall(Fixed([hit(n) for n in range(80)]), "tailnum"))
    assert (told["found"], told["more"]) == (MOST_FOUND, True)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("m3", [3]),
        ("#3", [3]),
        ("[m3]", [3]),
        (" m3, m1 ", [3, 1]),
        ("m3，m1", [3, 1]),
        ("[m3 m1]", [3, 1]),
        ("m1-m3", [1, 2, 3]),
        ("[m1–3]", [1, 2, 3]),
        ("m1 to m3 and m4", [1, 2, 3, 4]),
        ("m1至m3、m4", [1, 2, 3, 4]),
        ("m1到m3", [1, 2, 3]),
        ("M3", [3]),
        ("Ｍ３", [3]),
        ("the m3", [3]),
        ("message 3", [3]),
        ("Message #3", [3]),
        ("messages 1 to 3", [1, 2, 3]),
        ("messages 1-3", [1, 2, 3]),
        ("messages 1, 2 and 4", [1, 2, 4]),
        ("messages m1 through m3", [1, 2, 3]),
        ("between m1 and m3", [1, 2, 3]),
        ("from m3 to m1", [1, 2, 3]),
        ("m1..m3", [1, 2, 3]),
        ("m1～m3", [1, 2, 3]),
        ("[m1, m3-m4]", [1, 3, 4]),
        ("【m1，m3】", [1, 3]),
        ("第3条消息", [3]),
        ("第1到3条消息", [1, 2, 3]),
        ("第 1 条至第 3 条消息", [1, 2, 3]),
        ("从m1到m3", [1, 2, 3]),
        ("消息 3", [3]),
        ("please read [m1-m3] again", [1, 2, 3]),
        ("消息1至3", [1, 2, 3]),
    ],
)
def test_messages_are_read_by_their_numbers(query: str, numbers: list[int]) -> None:
    originals = Fixed([hit(n) for n in range(5)])
    assert [
        message["number"] for message in json.loads(recall(originals, query))["messages"]
    ] == numbers
    assert all(type(number) is int for asked in originals.asked for number in asked)


def test_a_range_is_read_whole_as_far_as_it_fits_and_never_searched_as_words() -> None:
    originals = Fixed([hit(n) for n in range(40)])
    # More than a search shows by default.
    assert json.loads(recall(originals, "m11-m22"))["shown"] == 12
    assert json.loads(recall(originals, "m50-m60"))["messages"] == []
    assert json.loads(recall(originals, "m1-m999999999"))["found"] == 39
    assert not any(isinstance(asked[0], str) for asked in originals.asked)


@pytest.mark.parametrize(
    ("query", "wanted", "budget", "asks"),
    [
        ("m1-m30", range(1, 31), 1_000, 5),
        ("m3, m1, m20-m25", [3, 1, *range(20, 26)], 700, 2),
        ("m1-m3000", range(1, 300), 9_000, 2),
        ("messages 5 to 6", [5, 6], 400, 2),
    ],
)
def test_a_range_over_the_budget_is_read_page_by_page_without_a_gap(
    query: str, wanted: Sequence[int], budget: int, asks: int
) -> None:
    texts = {n: f"message {n}: " + "x" * (n * 37 % 90) for n in range(1, 300)} | {5: "y" * 2_000}
    originals = Fixed([hit(n, text) for n, text in texts.items()], budget_chars=budget)
    read = dict.fromkeys(wanted, "")
    count = 0
    while query:
        answer = json.loads(recall(originals, query))
        assert len(recall(originals, query)) <= budget
        for message in answer["messages"]:
            text = re.sub(r"^\[… [\d,]+ characters …\] ", "", message["text"])
            read[message["number"]] += re.sub(r" \[… [^\]]* …\]$", "", text)
        query = answer.get("next", "")
        assert not query or f'recall_history("{query}")' in answer["note"]
        count += 1
    assert count >= asks
    assert read == {n: texts[n] for n in wanted}


def test_a_range_of_thousands_says_where_to_read_on() -> None:
    originals = Fixed([hit(n, "x") for n in range(1, 900)], budget_chars=10**7)
    answer = json.loads(recall(originals, "m1-m5000"))
    assert answer["shown"] == PAGE
    assert answer["next"] == f"m{PAGE + 1}-m5000"


@pytest.mark.parametrize(
    "query", ["m3 engine", "3", "m3x", "m99", "the 3 of us", "2013", "message queue 3 is full"]
)
def test_what_is_no_number_of_a_message_is_searched_for(query: str) -> None:
    originals = Fixed([hit(n) for n in range(5)])
    assert json.loads(recall(originals, query))["found"] == 5
    assert originals.asked[-1][0] == query


def test_a_long_message_is_clipped_around_the_words_and_read_on_by_its_number() -> None:
    text = (
        "".join(f"line {n}: nothing here\n" for n in range(400))
        + "the tailnum is N14228.\n"
        + "more of it\n" * 400
    )
    originals = Fixed([hit(7, text)], budget_chars=700)
    (shown,) = json.loads(recall(originals, "which tailnums?"))["messages"]
    assert "the tailnum is N14228." in shown["text"]
    before, middle, after = re.fullmatch(
        r"\[… ([\d,]+) characters …\] (.*) \[… [\d,]+ more characters: ask for (m7\+\d+) …\]",
        shown["text"],
        re.DOTALL,
    ).groups()  # type: ignore[union-attr]  # a mismatch fails the test
    assert text[int(before.replace(",", "")) :].startswith(middle)

    pieces, ask = [], "m7"
    for _ in range(100):
        answer = recall(originals, ask)
        assert len(answer) <= 700
        (part,) = json.loads(answer)["messages"]
        body, _, rest = re.sub(r"^\[… [\d,]+ characters …\] ", "", part["text"]).partition(" [… ")
        pieces.append(body)
        if not rest:
            break
        ask = re.findall(r"m7\+\d+", rest)[0]
    assert "".join(pieces) == text
    assert after.startswith("m7+")


TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ['"quoted" \\ \n', "二月的航班延误 " * 40, "tailnum " * 400, "\x00\ud800" * 50, "x" * 3_000]
    ),
)


@given(
    st.lists(TEXTS, max_size=8),
    st.integers(400, 3_000),
    st.sampled_from(["tailnum", "航班延误", "m1 m2 m3", "zzz"]),
    st.integers(1, 20),
)
def test_an_answer_is_never_over_its_budget(
    texts: list[str], budget: int, query: str, limit: int
) -> None:
    answer = recall(
        Fixed([hit(n, text) for n, text in enumerate(texts, 1)], budget_chars=budget),
        query,
        limit=limit,
    )
    assert len(answer) <= budget
    assert answer.encode(), "no half characters: no request could be sent with them"
    told = json.loads(answer)
    assert len(told["messages"]) == told["shown"] <= told["found"] <= len(texts)
    assert bool(told["messages"]) == bool(texts)
    if len(told["messages"]) > 1:
        for message in told["messages"]:
            text = texts[message["number"] - 1]
            assert message["text"] == text.replace("\ud800", "\ufffd") or len(
                message["text"]
            ) >= min(LEAST_TEXT, len(text))


@given(
    TEXTS,
    st.sampled_from(["tailnum", "航班", "the", "n1 n2"]),
    st.integers(0, 500),
    st.none() | st.integers(0, 5_000),
)
def test_an_excerpt_is_a_slice_and_its_marks_count_what_is_left_out(
    text: str, query: str, size: int, start: int | None
) -> None:
    shown = excerpt(text, words_of(query), size, start=start, name="m1")
    before = re.match(r"\[… ([\d,]+) characters …\] ", shown)
    after = re.search(r" \[… ([\d,]+) more characters: ask for m1\+(\d+) …\]$", shown)
    left, right = (int(mark[1].replace(",", "")) if mark else 0 for mark in (before, after))
    body = shown[before.end() if before else 0 : after.start() if after else len(shown)]
    assert body == text[left : len(text) - right]
    assert len(body) <= size
    assert len(body) == min(size, len(text) - left)
    assert after is None or int(after[2]) == left + len(body)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("delayed flights", ["dela", "flig"]),
        ("N14228", ["N14228"]),
        ("航班延误", ["航班", "班延", "延误"]),
        ("冰 JFK", ["冰", "JFK"]),
        ("?", []),
    ],
)
def test_words_are_looked_for_without_their_endings(query: str, words: list[str]) -> None:
    assert words_of(query) == words


def test_the_place_where_most_words_stand_together_is_shown() -> None:
    text = (
        "carrier " * 100
        + "x " * 500
        + "the carrier with the worst delay "
        + "y " * 500
        + "delay " * 100
    )
    assert "the carrier with the worst delay" in excerpt(
        text, words_of("carrier delay"), 200, name="m1"
    )
