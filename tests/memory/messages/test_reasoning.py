"""Reasoning within an answer's text is told apart, however a stream is cut; what only looks like it
stays.
"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from longtable.memory.messages.reasoning import ThinkTagParser, separate_reasoning, split_reasoning

TEXTS = [
    ("<think>\nfirst <b>\nthen</think>\n\nThe answer.", "first <b>\nthen", "The answer."),
    ("\n<think></think>The answer.", "", "The answer."),
    ("The answer: <think>no</think>.", "", "The answer: <think>no</think>."),
    ("<thinker> is a tag", "", "<thinker> is a tag"),
    ("<think>cut off </thi", "cut off </thi", ""),
    ("<thi", "", "<thi"),
    ("  plain", "", "  plain"),
    ("", "", ""),
]


def sieved(pieces: list[str]) -> tuple[str, str]:
    sieve = ThinkTagParser()
    told = [*map(sieve.feed, pieces), sieve.close()]
    return "".join(thought for thought, _ in told), "".join(text for _, text in told)


@given(st.sampled_from(TEXTS), st.lists(st.integers(0, 60), max_size=12))
def test_a_stream_is_parted_however_it_is_cut(case: tuple[str, str, str], cuts: list[int]) -> None:
    whole, thought, text = case
    places = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    found, rest = sieved([whole[a:b] for a, b in itertools.pairwise(places)])
    assert (found.strip("\n"), rest) == (thought, text)


@pytest.mark.parametrize(
    ("model", "text", "thought", "rest"),
    [
        ("any", "<think>a</think>\nb", "a", "b"),
        # Its chat template has opened the tag.
        ("qwen3-30b-thinking", "a\n</think>\n\nb", "a", "b"),
        ("gpt-4o", "close it with </think> here", "", "close it with </think> here"),
        ("deepseek-r1", "write <think>x</think> there", "", "write <think>x</think> there"),
        ("qwen3", "<think>cut off", "", "<think>cut off"),
    ],
)
def test_a_whole_answer_is_parted(model: str, text: str, thought: str, rest: str) -> None:
    answer = split_reasoning(AIMessage(text), model)
    assert (separate_reasoning(answer), answer.content) == (thought, rest)
