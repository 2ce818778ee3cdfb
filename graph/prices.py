"""Read a price table: a TOML or JSON file with a table for each model.

["gpt-4o-mini*"]
input = 0.15
cached = 0.075
output = 0.60
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from longtable.base.errors import ConfigError
from longtable.memory.spent import Price

FIELDS = {"input", "output", "cached", "reasoning"}


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices by model name or pattern. Raises `ConfigError` that names file, model and field."""
    try:
        text = path.read_text(encoding="utf-8")
        found: Any = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:  # missing, no UTF-8, no TOML, no JSON
        why = (error.strerror if isinstance(error, OSError) else "it is not UTF-8" if isinstance(error, UnicodeError) else None) or error
        raise ConfigError(f"the price table {path.name!r} cannot be read: {why}") from error
    if not isinstance(found, dict) or not found:
        raise ConfigError(f'the price table {path.name!r} must hold a table for each model, as in ["gpt-4o-mini"] input = 0.15')
    return {str(model): _price(path.name, str(model), fields) for model, fields in found.items()}


def _price(file: str, model: str, fields: Any) -> Price:
    where = f"the price table {file!r}, model {model!r}"
    if not isinstance(fields, dict):
        raise ConfigError(f"{where}: give input and output, found {fields!r}")
    if unknown := sorted(set(fields) - FIELDS):
        raise ConfigError(f"{where}: there is no {unknown[0]!r}, only {', '.join(sorted(FIELDS))}")
    if missing := sorted({"input", "output"} - set(fields)):
        raise ConfigError(f"{where}: {missing[0]} is missing")
    try:
        return Price(**fields)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
