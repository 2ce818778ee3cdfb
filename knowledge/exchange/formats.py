"""Read a file of another program, whichever of the known formats it has."""

import json
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
    """Return what a file teaches. A file that ends in .yml is a test of nao. Any other is JSON: a
    semantic model of Apache Ossie, or the training data of Vanna.

    Raises `ConfigError` if the file cannot be read as text.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path}: at most {MOST_BYTES:,} bytes can be imported")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: save it as UTF-8") from error
    if path.suffix.lower() in YAML:
        query = read_nao(text, path.name)
        if isinstance(query, Problem):
            return Knowledge(problems=[query])
        return Knowledge(queries=[query])
    if _is_semantic_model(text):
        terms, problems = read_ossie(text, path.name)
        return Knowledge(terms=terms, problems=problems)
    queries, problems = read_vanna(text, path.name)
    return Knowledge(queries=queries, problems=problems)


def _is_semantic_model(text: str) -> bool:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False  # the reader of pairs says what is wrong with the text
    return isinstance(data, dict) and any(key in data for key in OSSIE_KEYS)
