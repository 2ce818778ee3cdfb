"""Find the input limit and the tokenizer of a model by the model's name."""

import re
import warnings
from collections.abc import Mapping

from longtable.base.errors import ConfigError
from longtable.base.extras import install_extra
from longtable.memory.counting.tokenizers import STAND_IN_ENCODING, UNKNOWN_ENCODING, is_installed

NEWEST_ENCODING = "o200k_base"
"""The encoding that is assumed for models of OpenAI that tiktoken does not list yet."""


# Input tokens. OpenAI: the providers' model pages as carried by langchain-openai's profiles
# (2026-11); DeepSeek and Qwen: their API documentation's context lengths for these names.
KNOWN_LIMITS: dict[str, int] = {
    "deepseek-chat": 64_000,
    "deepseek-reasoner": 64_000,
    "qwen-plus": 128_000,
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-mini": 1_047_576,
    "gpt-4.1-nano": 1_047_576,
    "gpt-5": 272_000,
    "gpt-5-mini": 272_000,
    "gpt-5-nano": 272_000,
    "gpt-5.1": 272_000,
    "gpt-5.2": 272_000,
    "gpt-5.4": 1_050_000,
    "o1": 200_000,
    "o3": 200_000,
    "o3-mini": 200_000,
    "o4-mini": 200_000,
}

_QWEN = re.compile(r"qwen|qwq|deepseek-r1-distill-qwen")

_QWEN_VERSION = re.compile(r"qwen-?(\d+(?:\.\d+)?)(?=$|[-:_.])")

_DEEPSEEK = re.compile(r"deepseek")


# Models by that name with another vocabulary: the first generation, and the small R1s, which are
# Llama or Qwen inside.
_OTHER_VOCABULARY = re.compile(
    r"distill|deepseek-llm|deepseek-coder-(?:1\.3|6\.7|7|33)b|deepseek-r1:(?:1\.5|7|8|14|32|70)b"
)

_DATED = re.compile(r"|-\d{4}(-\d{2}-\d{2})?|-latest|-preview")


class EncodingFallbackWarning(UserWarning):
    """A model's own tokenizer is not known or not installed; another tokenizer counts."""


def model_limit(
    name: str, *, setting: int | None = None, profile: Mapping[str, object] | None = None
) -> int:
    """Return the input limit in tokens: the setting, else the model's profile, else the table.

    A dated name ("gpt-4o-2024-08-06") counts as its family. Raises `ConfigError` if none of the
    three has a limit.
    """
    limit = setting if setting is not None else known_limit(name, profile)
    if limit is not None:
        return limit
    raise ConfigError(
        f"the input limit of model {name or 'without a name'!r} is not known: set"
        " Context.model_limit (on the command line --model-limit N) to the number of tokens its"
        " provider documents",
        says="limit_unknown",
    )


def known_limit(name: str, profile: Mapping[str, object] | None = None) -> int | None:
    """Return the input limit of a model by its profile, else by the table, None if neither has
    it.
    """
    profile_limit = (profile or {}).get("max_input_tokens")
    if isinstance(profile_limit, int) and profile_limit > 0:
        return profile_limit
    bare = name.rsplit("/", 1)[-1].lower()
    for known in sorted(KNOWN_LIMITS, key=len, reverse=True):
        rest = bare.removeprefix(known)
        if rest != bare and _DATED.fullmatch(rest):
            return KNOWN_LIMITS[known]
    return None


def encoding_name(name: str) -> str:
    """Return the encoding of a model name: tiktoken's, or a tokenizer of the extra `tokenizers`.

    If the model's tokenizer is not installed or not known, another tokenizer estimates the count. A
    warning says so, once for each name.
    """
    import tiktoken.model

    bare = name.rsplit("/", 1)[-1].lower()
    try:
        encoding = tiktoken.model.encoding_name_for_model(bare)
    except KeyError:
        if bare.startswith(("gpt-", "o1", "o3", "o4")):
            return NEWEST_ENCODING
        own = _own_tokenizer(bare)
        if own and is_installed(own):
            return own
        what_to_do = f"; for exact counts {install_extra('tokenizers')}" if own else ""
        warnings.warn(
            f"the tokenizer of model {name or 'without a name'!r} is not"
            f" {'installed' if own else 'known'}: tokens are counted with"
            f" {STAND_IN_ENCODING}{what_to_do}",
            EncodingFallbackWarning,
            stacklevel=2,
        )
        return own or UNKNOWN_ENCODING
    return encoding if encoding in {"cl100k_base", "o200k_base"} else UNKNOWN_ENCODING


def _own_tokenizer(bare: str) -> str | None:
    """Return the model's own tokenizer from the extra `tokenizers`, None if the extra does not have
    it.
    """
    if _QWEN.match(bare):
        version = _QWEN_VERSION.match(bare)
        return "qwen3.5" if version and float(version.group(1)) >= 3.5 else "qwen"
    return "deepseek" if _DEEPSEEK.match(bare) and not _OTHER_VOCABULARY.search(bare) else None
