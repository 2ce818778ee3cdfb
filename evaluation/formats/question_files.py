"""Read a TOML file of questions. Mistakes are told with file and line, and left out.

database = "shop.db"

[bar]
questions = 0.8

[[question]]
ask = "How many orders came in 2024?"
sql = "SELECT count(*) FROM orders WHERE year = 2024"
tags = ["orders"]

[[question]]
ask = "Delete all orders."
expect = "refusal"

[[dialogue]]
id = "best-customer"
[[dialogue.turn]]
ask = "Which customer bought most?"
sql = ["SELECT ...", "SELECT ..."]
"""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtable.evaluation.question_set import EXPECTATIONS, Bar, Dialogue, QuestionSet, Turn
from longtable.knowledge.entries import Place, Problem

FILE_KEYS = ("database", "extra_columns", "bar", "question", "dialogue")
TURN_KEYS = ("ask", "sql", "expect", "ordered", "figures", "extra_columns", "says")
QUESTION_KEYS = ("id", "database", "tags", *TURN_KEYS)
DIALOGUE_KEYS = ("id", "database", "tags", "turn")
BAR_KEYS = ("questions", "interactions")
MOST_CHARS = 100_000
"""Most characters of one text."""
_TEXT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*'''
    r"""|'''.*?'''|'[^'\n]*'""",
    re.DOTALL,
)
"""A text or a comment."""
_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*(?P<name>[\w.]+)[ \t]*\]\]?", re.MULTILINE)
_KINDS = {
    "id": str,
    "database": str,
    "ask": str,
    "expect": str,
    "ordered": bool,
    "figures": bool,
    "extra_columns": bool,
}
_KIND_NAMES = {str: "a text", bool: "true or false"}


class _FaultError(Exception):
    """A mistake in one table. `key`: the key that it is about, "" for the whole table."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True)
class _Defaults:
    """What holds for all questions of a file."""

    folder: Path
    database: str = ""
    """As the file names it."""
    extra_columns: bool = False


def read_questions(text: str, file: str, folder: Path) -> QuestionSet:
    """Return the questions of a file's text. A database's path starts at `folder`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.rstrip().count("\n") + 1
        return QuestionSet(problems=[Problem(Place(file, line), f"this is not TOML: {error}")])
    reader = _Reader(text, file)
    defaults, bar = reader.head(data, folder)
    dialogues: list[Dialogue] = []
    for number, table in enumerate(_tables(data, "question")):
        dialogues += reader.dialogue(table, ("question", number), defaults)
    for number, table in enumerate(_tables(data, "dialogue")):
        dialogues += reader.dialogue(table, ("dialogue", number), defaults)
    dialogues = reader.without_doubles(dialogues)
    if not dialogues and not reader.problems:
        message = "there is no question: write [[question]] with `ask` and `sql`"
        reader.problems.append(Problem(Place(file), message))
    return QuestionSet(dialogues=dialogues, problems=reader.problems, bar=bar)


class _Reader:
    """Reads the tables of one file, and collects what is wrong with them."""

    def __init__(self, text: str, file: str) -> None:
        self.problems: list[Problem] = []
        self._text = _TEXT.sub(_blank, text)
        self._file = file
        self._headers = [*_HEADER.finditer(self._text)]

    def head(self, data: Mapping[str, Any], folder: Path) -> tuple[_Defaults, Bar]:
        """Return the defaults and the bar of a file."""
        end = self._headers[0].start() if self._headers else len(self._text)
        try:
            _check_keys(data, FILE_KEYS)
            for key in ("question", "dialogue"):
                if not isinstance(data.get(key, []), list):
                    raise _FaultError(f"write [[{key}]], with two brackets", key)
            defaults = _Defaults(folder, _database(data, ""), data.get("extra_columns", False))
        except _FaultError as fault:
            self._add(fault, 0, end)
            defaults = _Defaults(folder)
        span = self._span("bar", 0)
        try:
            bar = _bar(data.get("bar", {}))
        except _FaultError as fault:
            self._add(fault, *span)
            bar = Bar(is_wrong=True)
        return defaults, bar

    def dialogue(
        self, table: object, header: tuple[str, int], defaults: _Defaults
    ) -> list[Dialogue]:
        """Return the dialogue of a table, none if something is wrong with it."""
        name, number = header
        span = self._span(name, number)
        try:
            if not isinstance(table, dict):
                raise _FaultError(f"write [[{name}]], with two brackets")
            if name == "question":
                turns = [self._turn(table, QUESTION_KEYS, span, defaults)]
            else:
                _check_keys(table, DIALOGUE_KEYS)
                turns = self._turns(table, span, defaults)
            database = _database(table, defaults.database)
            dialogue = Dialogue(
                id=_id(table, turns),
                turns=turns,
                tags=_tags(table),
                database=_located(database, defaults.folder),
                database_name=database,
                place=Place(self._file, self._line(span[0])),
            )
        except _FaultError as fault:
            self._add(fault, *span)
            return []
        return [dialogue]

    def without_doubles(self, dialogues: Sequence[Dialogue]) -> list[Dialogue]:
        """Return the dialogues whose id no earlier one has, and tell the others."""
        kept: dict[str, Dialogue] = {}
        for dialogue in dialogues:
            other = kept.setdefault(dialogue.id, dialogue)
            if other is not dialogue:
                message = f"the id {dialogue.id!r} is already in line {other.place.line}"
                self.problems.append(Problem(dialogue.place, message))
        return [*kept.values()]

    def _turns(
        self, table: Mapping[str, Any], span: tuple[int, int], defaults: _Defaults
    ) -> list[Turn]:
        tables = table.get("turn", [])
        if not isinstance(tables, list) or not tables:
            raise _FaultError("a dialogue needs turns: [[dialogue.turn]] with `ask` and `sql`")
        headers = [each for each in self._headers if span[0] < each.start() < span[1]]
        starts = [each.start() for each in headers if each["name"] == "dialogue.turn"]
        turns: list[Turn] = []
        for number, each in enumerate(tables):
            inside = span
            if len(starts) == len(tables):
                inside = (starts[number], [*starts[1:], span[1]][number])
            try:
                turns.append(self._turn(each, TURN_KEYS, inside, defaults))
            except _FaultError as fault:
                self._add(fault, *inside)
                raise _FaultError(f"turn {number + 1} is wrong, so the dialogue is left out") from (
                    fault
                )
        return turns

    def _turn(
        self, table: object, keys: Sequence[str], span: tuple[int, int], defaults: _Defaults
    ) -> Turn:
        if not isinstance(table, dict):
            raise _FaultError("a turn is a table: [[dialogue.turn]]")
        _check_keys(table, keys)
        if not table.get("ask", "").strip():
            raise _FaultError('a question is missing: ask = "..."', "ask")
        gold = _gold(table)
        expects = table.get("expect", "result")
        if expects not in EXPECTATIONS:
            raise _FaultError(
                f"`expect` must be one of {', '.join(EXPECTATIONS)}, found {expects!r}", "expect"
            )
        if expects == "result" and not gold:
            raise _FaultError('the SQL that answers it is missing: sql = "SELECT ..."')
        if expects != "result" and gold:
            raise _FaultError(f'with expect = "{expects}" there is no `sql`', "sql")
        return Turn(
            text=table["ask"].strip(),
            gold=gold,
            expects=expects,
            ordered=table.get("ordered"),
            figures=table.get("figures", False),
            extra_columns=table.get("extra_columns", defaults.extra_columns),
            says=_texts(table, "says"),
            place=Place(self._file, self._line(span[0])),
        )

    def _span(self, name: str, number: int) -> tuple[int, int]:
        """Return where the text of a table begins and ends. A dialogue's holds its turns."""
        own = [place for place, each in enumerate(self._headers) if each["name"] == name]
        if number >= len(own):
            return 0, len(self._text)
        after = [
            each.start()
            for each in self._headers[own[number] + 1 :]
            if not each["name"].startswith(f"{name}.")
        ]
        return self._headers[own[number]].start(), after[0] if after else len(self._text)

    def _line(self, offset: int) -> int:
        return self._text.count("\n", 0, offset) + 1

    def _add(self, fault: _FaultError, start: int, end: int) -> None:
        line = self._line(start)
        if fault.key:
            key = re.compile(rf'^[ \t]*"?{re.escape(fault.key)}"?[ \t]*=', re.MULTILINE)
            found = key.search(self._text, start, end)
            line = self._line(found.start()) if found else line
        self.problems.append(Problem(Place(self._file, line), str(fault)))


def _blank(text: re.Match[str]) -> str:
    """Return a text of several lines as blanks and line ends, so that no line of it is taken for a
    header or a key.
    """
    return re.sub(r"[^\n]", " ", text[0]) if "\n" in text[0] else text[0]


def _tables(data: Mapping[str, Any], name: str) -> list[Any]:
    tables = data.get(name, [])
    return tables if isinstance(tables, list) else []


def _check_keys(table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise an error for an unknown key, and for a value of a wrong kind."""
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            guess = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
            raise _FaultError(f"`{key}` is not known; {guess}", key)
        kind = _KINDS.get(key)
        if kind is not None and not isinstance(value, kind):
            raise _FaultError(
                f"`{key}` must be {_KIND_NAMES[kind]}, found {type(value).__name__}", key
            )
        if isinstance(value, str) and len(value) > MOST_CHARS:
            raise _FaultError(
                f"`{key}` may have {MOST_CHARS:,} characters, found {len(value):,}", key
            )


def _gold(table: Mapping[str, Any]) -> list[str]:
    return [each.rstrip(";").rstrip() for each in _texts(table, "sql")]


def _texts(table: Mapping[str, Any], key: str) -> list[str]:
    """Return the texts of a key, without blanks around them."""
    value = table.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise _FaultError(f"`{key}` must be a text, or a list of texts", key)
    if not all(each.strip() for each in texts):
        raise _FaultError(f"`{key}` is empty", key)
    return [each.strip() for each in texts]


def _tags(table: Mapping[str, Any]) -> list[str]:
    tags = table.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise _FaultError('write tags as a list of texts: tags = ["..."]', "tags")
    return [*dict.fromkeys(tags)]


def _database(table: Mapping[str, Any], default: str) -> str:
    """Return the database that a table names."""
    name = table.get("database", "")
    if not isinstance(name, str):
        raise _FaultError("`database` must be a text", "database")
    return name or default


def _located(name: str, folder: Path) -> str:
    """Return a database with its path, which starts at the folder of the file."""
    return name if not name or "://" in name else str(folder / Path(name).expanduser())


def _id(table: Mapping[str, Any], turns: Sequence[Turn]) -> str:
    """Return the id of a question: its own, or the beginning of its text."""
    own = table.get("id", "").strip()
    return own or " ".join(turns[0].text.split())[:60]


def _bar(table: object) -> Bar:
    if not isinstance(table, dict):
        raise _FaultError("write [bar] with `questions` or `interactions`")
    _check_keys(table, BAR_KEYS)
    for key, value in table.items():
        is_share = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_share or not 0 <= value <= 1:
            raise _FaultError(f"`{key}` must be a number from 0 to 1, found {value!r}", key)
    return Bar(questions=table.get("questions"), interactions=table.get("interactions"))
