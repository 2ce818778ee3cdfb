"""Read a file of another program, whichever of the known formats it has."""

import json
import stat
from pathlib import Path

from longtable.base.errors import ConfigError
from longtable.knowledge.entries import Knowledge, Problem
from longtable.knowledge.exchange.nao import read_nao
from longtable.knowledge.exchange.ossie import read_ossie
from longtable.knowledge.exchange.vanna import read_vanna

YAML = (".yml", ".yaml")
MOST_BYTES = 40_000_000
OSSIE_KEYS = ("semantic_model", "datasets", "metrics")
"""A JSON object with one of these keys is a semantic model."""


def read_file(path: Path) -> Knowledge:
    """Return what a file teaches, as `read_text` reads it.

    Raises `ConfigError` if it is no regular file, which might never end, or is too large.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a folder" if path.is_dir() else "a pipe or a device"
            raise ConfigError(f"{path} is {kind}: a file is needed")
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{path}: at most {MOST_BYTES:,} bytes can be imported")
    return read_text(data, str(path))


def read_text(data: bytes, file: str) -> Knowledge:
    """Return what the text of a file teaches. A file that ends in .yml is a test of nao. Any other
    is JSON: a semantic model of Apache Ossie, or the training data of Vanna.

    Raises `ConfigError` if the text is not UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: save it as UTF-8") from error
    name = Path(file).name
    if name.lower().endswith(YAML):
        query = read_nao(text, name)
        if isinstance(query, Problem):
            return Knowledge(problems=[query])
        return Knowledge(queries=[query])
    if _is_semantic_model(text):
        terms, problems = read_ossie(text, name)
        return Knowledge(terms=terms, problems=problems)
    queries, problems = read_vanna(text, name)
    return Knowledge(queries=queries, problems=problems)


def _is_semantic_model(text: str) -> bool:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False  # the reader of pairs says what is wrong with the text
    return isinstance(data, dict) and any(key in data for key in OSSIE_KEYS)
