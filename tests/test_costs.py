"""The rules by which `benchmarks/cost.py` bills: what Claude and OpenAI publish."""

import pytest

from benchmarks.costs.caches import (
    LOOKBACK,
    OPENAI_SECONDS,
    SECONDS,
    Bill,
    Block,
    ClaudeCache,
    OpenAICache,
    claude_blocks,
)

MARK = {"type": "ephemeral"}


def blocks(*sizes: int, mark: str = "5m") -> list[Block]:
    """Return blocks of these sizes in tokens, the last one marked."""
    parts = [Block("x" * size) for size in sizes]
    return [*parts[:-1], Block(parts[-1].text, mark)]


def test_claude_reads_what_the_marks_of_an_earlier_call_wrote() -> None:
    cache = ClaudeCache(len)
    assert cache.bill(blocks(2_000, 10), 0) == Bill(0, 0, 2_010, 1.25)
    assert cache.bill(blocks(2_000, 10, 30), 60) == Bill(0, 2_010, 30, 1.25)


def test_claude_writes_nothing_for_less_than_1024_tokens_or_without_a_mark() -> None:
    cache = ClaudeCache(len)
    assert cache.bill(blocks(1_000, 23), 0) == Bill(1_023)
    assert cache.bill([Block("x" * 5_000)], 0) == Bill(5_000)


@pytest.mark.parametrize(("mark", "price"), [("5m", 1.25), ("1h", 2.0)])
def test_claude_forgets_what_is_not_read_in_its_time(mark: str, price: float) -> None:
    cache = ClaudeCache(len)
    call = blocks(2_000, 10, mark=mark)
    cache.bill(call, 0)
    assert cache.bill(call, SECONDS[mark] - 1).read == 2_010
    assert cache.bill(call, 2 * SECONDS[mark] - 2).read == 2_010  # each reading prolongs it
    assert cache.bill(call, 3 * SECONDS[mark]) == Bill(0, 0, 2_010, price)


def test_claude_looks_back_a_limited_number_of_blocks() -> None:
    cache = ClaudeCache(len)
    cache.bill(blocks(2_000), 0)
    assert cache.bill(blocks(2_000, *[1] * (LOOKBACK - 1)), 1).read == 2_000
    far = ClaudeCache(len)
    far.bill(blocks(2_000), 0)
    assert far.bill(blocks(2_000, *[1] * LOOKBACK), 1).read == 0


def test_claude_refuses_more_than_four_marks() -> None:
    with pytest.raises(ValueError, match="at most 4 marks, found 5"):
        ClaudeCache(len).bill([Block("x", "5m")] * 5, 0)


def test_a_mark_on_the_request_is_one_on_its_last_block() -> None:
    body = {
        "tools": [{"name": "look", "cache_control": MARK}],
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi"}],
        "cache_control": {**MARK, "ttl": "1h"},
    }
    assert [block.lifetime for block in claude_blocks(body)] == ["5m", "", "1h"]
    as_blocks = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    assert claude_blocks({"messages": [as_blocks]}) == claude_blocks(
        {"messages": [{"role": "user", "content": "Hi"}]}
    )


def test_openai_reads_a_common_beginning_from_1024_tokens_in_steps_of_128() -> None:
    cache = OpenAICache(len)
    assert cache.bill([Block("x" * 1_000), Block("a")], 0) == Bill(1_001)
    assert cache.bill([Block("x" * 1_000), Block("a" * 200)], 1) == Bill(1_200)
    longer = [Block("x" * 1_000), Block("a" * 200), Block("b")]
    assert cache.bill(longer, 2) == Bill(1_201 - 1_152, 1_152)
    assert cache.bill(longer, 2 + OPENAI_SECONDS) == Bill(1_201)


def test_a_bill_is_in_plain_input_tokens() -> None:
    assert Bill(10, 100, 40, 1.25).billed == 10 + 10 + 50
    assert Bill(10, 100, 40, 1.25).tokens == 150
