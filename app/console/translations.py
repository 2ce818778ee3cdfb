"""The sentences of the command line, in English and Chinese."""

import os
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

from longtable.base.errors import LongtableError
from longtable.tools.engines.base import LOAD_SENTENCES

_FILE = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
WORDS: dict[str, dict[str, str]] = _FILE["words"]
WORDS |= {
    f"loaded_{code}": {"en": f"{{where}}: {texts['en']}.", "zh": f"{{where}}：{texts['zh']}。"}
    for code, texts in LOAD_SENTENCES.items()
}


def say(key: str, language: str, **values: object) -> str:
    """Return the sentence `key` in this language, with `values` filled in."""
    words = WORDS[key]
    return words.get(language, words["en"]).format(longtable=_command(), **values)


def _command() -> str:
    """Return how this program must be called from the current folder. It is a path if the program
    is not in the search path, as with `make chat`.
    """
    program = Path(sys.argv[0])
    here = Path.cwd()
    if program.name != "longtable" or shutil.which("longtable"):
        return "longtable"
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))


def counted(key: str, language: str, count: int, **values: object) -> str:
    """Return a sentence about a number of things. For exactly one, the sentence with the key
    `{key}_1` is used.
    """
    return say(f"{key}_1" if count == 1 else key, language, count=f"{count:,}", **values)


def system_language() -> str:
    """Return the language of the user's locale, for what is printed before the first message."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.startswith("zh") else "en"
    return "en"


ADVICE: dict[str, str] = _FILE["advice"]
"""Advice by error code. An error class without an entry uses the entry of its base class."""


def advice_for(error: LongtableError) -> str:
    """Return advice about an error, for a Chinese reader."""
    codes = (getattr(each, "code", "") for each in type(error).__mro__)
    return next(ADVICE[code] for code in codes if code in ADVICE)
