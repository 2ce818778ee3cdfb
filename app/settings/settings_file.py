"""Read and check the settings file, `longtable.toml`, and write a first settings file with
comments.
"""

import dataclasses
import filecmp
import os
import re
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from longtable.app.settings.settings_tables import (
    BACKSLASH,
    FIRST_FILE,
    FIRST_GLOSSARY,
    TABLES,
    PersonaTable,
    Place,
    SettingsTables,
    Values,
    team_of,
)
from longtable.base.errors import ConfigError
from longtable.base.redaction import redacted
from longtable.base.settings_base import nearest, shown
from longtable.memory.policy import CompactionPolicy
from longtable.tools.several.database_names import check_names

FILE = "longtable.toml"
GLOSSARY = "glossary.toml"
MOST_BYTES = 65_536
MOST_PARTS = 20
"""The most parts of a dotted key. The time of the parser grows with the square of this number:
130,000 parts took minutes.
"""
SECRET = re.compile(
    r"^(?:key|token|secret|credentials?|.*(?:api_?key|password|passphrase|store_?key))$",
    re.IGNORECASE,
)
INSTEAD = {
    "database": "LONGTABLE_DATABASE (or PGPASSWORD)",
    "databases": "that `url_env` names",
    "store": "LONGTABLE_STORE, and LONGTABLE_STORE_KEY for its key",
    "base_url": "LONGTABLE_BASE_URL, and LONGTABLE_API_KEY for its key",
}
"""The variables to use instead of a secret in the file, by table or key. The keys of providers have
their own variables.
"""
WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "bool_parsing": "1 or 0",
    "list_type": "a list",
    "dict_type": "a table",
}
"""What kind of value is needed, by the type of pydantic's error. For other types of errors,
pydantic's own message says it.
"""


_TOKEN = re.compile(
    r"\"{3}(?:\\.|[^\\]|\\\Z)*?(?:\"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|#[^\n]*|[\[\]{}\n]",
    re.DOTALL,
)
"""Matches texts and comments, in which brackets and line ends do not count, and brackets and line
ends outside of them. A text that is not closed extends to the end of the line or the file, so that
the time for reading is linear.
"""


@dataclasses.dataclass(frozen=True)
class SettingsFile:
    """A settings file that was read and checked. `values` are its values, with absolute paths;
    `lines` is the line of each value.
    """

    path: Path
    values: Values
    lines: Mapping[Place, int]
    notes: tuple[str, ...] = ()
    """Notes on settings of earlier versions that were left out."""

    def where(self, place: Place) -> str:
        """Return file and line of a setting. If its own line is unknown, return the line of the
        table around it.
        """
        line = next(
            (
                self.lines[place[:size]]
                for size in range(len(place), 0, -1)
                if place[:size] in self.lines
            ),
            None,
        )
        return f"{_shown_path(self.path)}, line {line}" if line else _shown_path(self.path)


def read_settings(path: Path) -> SettingsFile:
    """Read and check a settings file. Raises `ConfigError`, which names file and line and says what
    to do.
    """
    text = _text_of(path)
    _refuse_long_keys(path, text)
    try:
        values = tomllib.loads(text)
        lines = _lines_of(text)
        entries = list(leaves(values))
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        match = re.search(r"^(.*) \(at line (\d+), column \d+\)$", str(error), re.DOTALL)
        line = int(match[2]) if match else text.rstrip().count("\n") + 1
        reason = (
            "it is nested too deeply"
            if isinstance(error, RecursionError)
            else match[1]
            if match
            else str(error)
        )
        hint = (
            ": the file has it twice, keep one"
            if reason.startswith(("Cannot overwrite", "Cannot declare"))
            else ""
        )
        hint = BACKSLASH if "\\" in "".join(text.split("\n")[line - 1 : line]) else hint
        raise ConfigError(
            f"{_shown_path(path)}, line {line}: this is not TOML ({reason}){hint}"
        ) from None
    file = SettingsFile(path, values, lines)

    def where(place: Place) -> str:
        return f"{file.where(place)}: {'.'.join(place)}"

    for place, value in entries:
        _refuse_secret(place, value, where)
    notes = _without_idle(values, where)
    checked = check(values, where, strict=True, folder=path.absolute().parent)
    return dataclasses.replace(file, values=checked, notes=notes)


def _without_idle(values: dict[str, Any], where: Callable[[Place], str]) -> tuple[str, ...]:
    """Remove settings of earlier versions that no longer have an effect. Return a note on each."""
    table = values.get("compaction")
    if not isinstance(table, dict):
        return ()
    idle = [name for name in CompactionPolicy.WITHOUT_EFFECT if name in table]
    for name in idle:
        del table[name]
    return tuple(
        f"{where(('compaction', name))} has no effect any more:"
        f" {CompactionPolicy.WITHOUT_EFFECT[name]}"
        for name in idle
    )


def check(
    values: Mapping[str, Any],
    where: Callable[[Place], str],
    *,
    strict: bool,
    folder: Path | None = None,
) -> Values:
    """Return the values that are set, checked and converted. Raises `ConfigError` for the first
    wrong value.

    `where` returns the name of a setting for the message. If `strict` is False, the values are
    texts of an environment or a command line, so that "1" counts as true. Relative paths are
    resolved against `folder` if it is given.
    """
    try:
        tables = SettingsTables.model_validate(values, strict=strict, context=folder)
    except ValidationError as error:
        raise ConfigError(_sentence(error.errors(include_url=False)[0], where)) from None
    for table, build in (
        ("compaction", tables.compaction.policy),
        ("team", lambda: "team" in values and team_of(tables.team)),
        ("databases", lambda: check_databases(tables)),
    ):
        try:
            build()
        except ConfigError as error:
            raise ConfigError(f"{where((table,))}: {error}") from None
    return tables.model_dump(exclude_unset=True)


def check_databases(tables: SettingsTables) -> None:
    """Raise `ConfigError` for databases that cannot be asked together: a name that is none, no URL,
    or one URL too many.
    """
    if not tables.databases:
        return
    check_names(tables.databases)
    placed = [name for name, each in tables.databases.items() if each.url or each.url_env]
    for name, each in tables.databases.items():
        if each.url and each.url_env:
            raise ConfigError(f"{name} has both url and url_env: keep one")
        if name not in placed:
            what = "a policy" if each.policy else "settings"
            raise ConfigError(
                f"{name} has {what}, but neither url nor url_env: no such database is"
                f" configured{did_you_mean(name, placed) or ': give it a url'}"
            )
    if tables.database.url:
        raise ConfigError(
            "there is a [database], too: name one database in [database], or all of them in"
            " [databases.NAME]"
        )
    if tables.policy.file:
        raise ConfigError(
            "the policy of [policy] file is for one database: name a policy in each"
            " [databases.NAME]"
        )


def _sentence(error: ErrorDetails, where: Callable[[Place], str]) -> str:
    """Return a sentence about what is wrong with one value."""
    place = tuple(str(part) for part in error["loc"])
    sizes = {
        "databases": 3,
        "models": 3,
        "prices": 3,
        "project": 1,
        "team": {"personas": 4, "compaction": 3}.get("".join(place[1:2]), 2),
    }
    place = place[: sizes.get(place[0], 2)]
    if error["type"] == "extra_forbidden":
        known = list(_table_at(place).model_fields)
        return (
            f"{where(place)} is not"
            f" known{did_you_mean(place[-1], known) or '; known are ' + ', '.join(known)}"
        )
    if error["type"] in ("model_type", "model_attributes_type"):
        return f"{where(place)} must be a table: write [{'.'.join(place)}], and its keys below"
    rule = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    rule = WANTED.get(error["type"], rule)
    if error["type"] == "missing":
        return f"{where(place)} is missing"
    if place[-1] == "preset" and isinstance(error["input"], list):
        rule = "one name: two presets cannot be mixed"
    requirement = rule if rule.startswith("must ") else f"must be {rule}"
    if place[-1] in ("base_url", "api_key_env", "url_env"):
        return f"{where(place)} {requirement}"
    near = (
        did_you_mean(error["input"], re.findall(r"'(\w+)'", rule))
        if isinstance(error["input"], str)
        else ""
    )
    return f"{where(place)} {requirement}, found {shown(error['input'])}{near}"


def _table_at(place: Place) -> type[BaseModel]:
    """Return the class of the table that contains the last key of a place."""
    if len(place) == 1:
        return SettingsTables
    if place[:2] == ("team", "personas"):
        return PersonaTable
    if place[:2] == ("team", "compaction") and len(place) > 2:
        return TABLES["compaction"]
    return TABLES[place[0]]


def did_you_mean(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """Return "; did you mean ...?" with the most similar known name, "" if no name is similar."""
    best = nearest(name, known)
    return f"; did you mean {best}?" if best else ""


def _refuse_secret(place: Place, value: object, where: Callable[[Place], str]) -> None:
    """Raise `ConfigError` for a value that is a key or a password, because the file may be shared.
    The message does not repeat the secret.
    """
    text = f'{place[-1]} = "{value}"'
    if SECRET.match(place[-1]) or redacted(text) != text:
        instead = INSTEAD.get(place[-1]) or INSTEAD.get(
            place[0], "OPENAI_API_KEY, LONGTABLE_API_KEY, or that of your provider"
        )
        raise ConfigError(
            f"{where(place)} holds a key or a password, which has no place in a file: set the"
            f" variable {instead}"
        )


def leaves(values: Mapping[str, Any], above: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each value that is not a table, together with its place."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _text_of(path: Path) -> str:
    """Return the text of a file. Raises `ConfigError` if it is not a text file. Devices and pipes
    are not read.
    """
    reason = ""
    data = b""
    try:
        # Without O_NONBLOCK the open of a pipe would wait for its writer.
        with open(
            path,
            "rb",
            opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)),
        ) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                data = file.read(MOST_BYTES + 1)
            else:
                reason = "it is no regular file"
    except OSError as error:
        reason = "it is a folder" if path.is_dir() else error.strerror or type(error).__name__
    if reason or len(data) > MOST_BYTES:
        reason = reason or f"it is larger than {MOST_BYTES:,} bytes"
        raise ConfigError(f"the settings file {_shown_path(path)!r} cannot be read: {reason}")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{_shown_path(path)}, line {line}: this is not UTF-8: save the file as UTF-8"
        ) from None


def _refuse_long_keys(path: Path, text: str) -> None:
    """Raise `ConfigError` for a dotted key with so many parts that parsing it takes very long."""
    bare = _TOKEN.sub(
        lambda token: token[0] if token[0] in "[]{}" else "\n" * token[0].count("\n"), text
    )
    for number, line in enumerate(bare.split("\n"), 1):
        if any(part.count(".") >= MOST_PARTS for part in re.split(r"[][{},=]", line)):
            raise ConfigError(
                f"{_shown_path(path)}, line {number}: a key has more than {MOST_PARTS} dotted parts"
            )


def _lines_of(text: str) -> dict[Place, int]:
    """Return the line of each table and key of valid TOML, which tomllib does not report."""
    places: dict[Place, int] = {}
    table: Place = ()
    for line, statement in _statements(text):
        values: Any = tomllib.loads(statement)
        header = statement.lstrip().startswith("[")
        place = () if header else table
        while isinstance(values, dict) and values:
            name, values = next(iter(values.items()))
            place = (*place, name)
            places.setdefault(place, line)
        if header and isinstance(values, list):  # one of several tables of that name
            place = (*place, str(sum(known[:-1] == place for known in places)))
            places[place] = line
        table = place if header else table
    return places


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each header or assignment of valid TOML with its first line. An assignment of a list
    or a text may take several lines. The time is linear in the length of the text.
    """
    depth = 0
    start = 0
    first = 1
    line = 1
    for token in _TOKEN.finditer(f"{text}\n"):
        depth += (token[0] in "[{") - (token[0] in "]}")
        line += token[0].count("\n")
        if token[0] == "\n" and not depth:
            yield first, f"{text}\n"[start : token.end()]
            start = token.end()
            first = line


def _shown_path(path: Path) -> str:
    return path.name if path.absolute().parent == Path.cwd() else str(path)


def write_first_glossary(folder: Path) -> bool:
    """Write an example into a knowledge folder that is not there yet, and return whether it was
    written. Raises `ConfigError` if it cannot be.
    """
    if os.path.lexists(folder):
        return False
    try:
        folder.mkdir(parents=True)
        shutil.copyfile(FIRST_GLOSSARY, folder / GLOSSARY)
    except OSError as error:
        raise ConfigError(
            f"{_shown_path(folder)!r} cannot be written ({error.strerror or type(error).__name__})"
        ) from error
    return True


def is_first_glossary(folder: Path) -> bool:
    """Return whether a knowledge folder holds nothing but the example of `longtable init`."""
    try:
        names = [entry.name for entry in folder.iterdir()]
        return names == [GLOSSARY] and filecmp.cmp(folder / GLOSSARY, FIRST_GLOSSARY, shallow=False)
    except OSError:
        return False  # opening it tells what is wrong


def write_first_file(path: Path, *, force: bool) -> None:
    """Write `FIRST_FILE` to `path`. Raises `ConfigError` if the file cannot be written, or if it
    exists and `force` is False.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if force and (path.is_symlink() or path.is_file()):
            path.unlink()  # a link is replaced, what it leads to stays as it is
        with path.open("x", encoding="utf-8") as file:
            file.write(FIRST_FILE)
    except FileExistsError as error:
        raise ConfigError(
            f"{_shown_path(path)!r} already exists: edit it, or replace it with --force"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{_shown_path(path)!r} cannot be written ({error.strerror or type(error).__name__})"
        ) from error
