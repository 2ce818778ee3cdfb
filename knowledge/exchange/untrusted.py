"""Read JSON and single texts that other programs wrote, within limits."""

import json
import re

from longtable.knowledge.entries import Place, Problem

MOST_JSON_CHARS = 10_000_000
MOST_ENTRIES = 20_000
"""Most terms or queries of one document."""
MOST_CHARS = 4_000
"""Most characters of one text of an entry."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_KINDS = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def read_json(text: str, file: str) -> object:
    """Return the value of a JSON text, or a `Problem` that says why it cannot be read.

    NaN and the infinities become None: Python's own writer puts them in for missing values, though
    they are no JSON.
    """
    if len(text) > MOST_JSON_CHARS:
        message = f"at most {MOST_JSON_CHARS:,} characters of JSON, found {len(text):,}"
        return Problem(Place(file), message)
    try:
        value: object = json.loads(text.removeprefix("\ufeff"), parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        return Problem(Place(file, error.lineno), f"this is no JSON: {error.msg}")
    except ValueError:
        return Problem(Place(file), "a number of the JSON has too many digits")
    except RecursionError:
        return Problem(Place(file), "the JSON is nested too deeply")
    return value


def fault_of_text(value: object) -> str:
    """Return why a value is no text that an entry may have, "" if it is one."""
    if not isinstance(value, str):
        return f"a text is needed, found {kind_of(value)}"
    if len(value) > MOST_CHARS:
        return f"at most {MOST_CHARS:,} characters, found {len(value):,}"
    if _SURROGATE.search(value):
        return "half of a surrogate pair is no character"
    return ""


def kind_of(value: object) -> str:
    """Return the name that JSON and YAML have for the kind of a value."""
    return _KINDS.get(type(value), type(value).__name__)
