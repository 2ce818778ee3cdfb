"""Read the question files of Spider, BIRD, SParC and CoSQL: JSON lists, with a SQLite file for each
database.

    Spider        {"db_id": ..., "question": ..., "query": ...}
    BIRD          {"db_id": ..., "question": ..., "evidence": ..., "SQL": ..., "difficulty": ...}
    SParC, CoSQL  {"database_id": ..., "interaction": [{"utterance": ..., "query": ...}, ...]}
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from longtable.evaluation.question_set import Dialogue, QuestionSet, Turn
from longtable.knowledge.entries import Place, Problem
from longtable.knowledge.exchange.untrusted import fault_of_text, kind_of

FOLDERS = ("database", "databases", "dev_databases", "train_databases", "test_database")
"""Where the databases lie beside a file of questions."""
ENDINGS = (".sqlite", ".db", ".sqlite3")
MOST_ENTRIES = 100_000
_NAME = re.compile(r"(?!\.+$)[\w. -]{1,200}")
_BLANK = re.compile(r"[\s,]*")


class _FaultError(Exception):
    """A mistake in one entry."""


def read_benchmark(text: str, file: str, roots: Sequence[Path]) -> QuestionSet:
    """Return the questions of a JSON text. `roots`: folders in which databases are looked for."""
    dialogues: list[Dialogue] = []
    problems: list[Problem] = []
    missing: dict[str, Place] = {}
    try:
        for number, (line, entry) in enumerate(_entries(text), 1):
            place = Place(file, line)
            try:
                name, dialogue = _dialogue(entry, number, place)
            except _FaultError as fault:
                problems.append(Problem(place, str(fault)))
                continue
            path = _database(name, roots)
            if path is None:
                missing.setdefault(name, place)
            else:
                dialogues.append(dialogue(str(path)))
    except json.JSONDecodeError as error:
        problems.append(Problem(Place(file, error.lineno), f"this is no JSON list: {error.msg}"))
    except RecursionError:
        problems.append(Problem(Place(file), "the JSON is nested too deeply"))
    for name, place in missing.items():
        message = (
            f"there is no database {name!r}: name the folder of the databases with --databases"
        )
        problems.append(Problem(place, message))
    return QuestionSet(dialogues=dialogues, problems=problems)


def database_folders(file: Path) -> list[Path]:
    """Return the folders beside a file of questions in which its databases may lie."""
    return [file.absolute().parent / name for name in FOLDERS]


def _entries(text: str) -> Iterator[tuple[int, object]]:
    """Yield each entry of a JSON list with the line where it begins."""
    decoder = json.JSONDecoder()
    begin = _BLANK.match(text, 0)
    place = begin.end() if begin else 0
    if text[place : place + 1] != "[":
        raise json.JSONDecodeError("a list is needed", text, place)
    place += 1
    line = 1
    counted = 0
    for _ in range(MOST_ENTRIES):
        blank = _BLANK.match(text, place)
        place = blank.end() if blank else place
        if text[place : place + 1] == "]":
            return
        line += text.count("\n", counted, place)
        counted = place
        value, place = decoder.raw_decode(text, place)
        yield line, value
    raise json.JSONDecodeError(f"at most {MOST_ENTRIES:,} entries are read", text, place)


def _dialogue(entry: object, number: int, place: Place) -> tuple[str, Callable[[str], Dialogue]]:
    """Return the name of an entry's database, and what makes the dialogue for its file."""
    if not isinstance(entry, dict):
        raise _FaultError(f"an object is needed, found {kind_of(entry)}")
    name = _text(entry, "database_id" if "interaction" in entry else "db_id")
    if not _NAME.fullmatch(name):
        raise _FaultError(f"{name[:40]!r} is no name of a database")
    tags = [name]
    if "interaction" in entry:
        turns = _interaction(entry["interaction"], place)
    elif "SQL" in entry:
        turns = [_bird_turn(entry, place)]
        difficulty = entry.get("difficulty")
        tags += [difficulty] if isinstance(difficulty, str) and difficulty else []
    else:
        question = _text(entry, "question")
        turns = [Turn(text=question, gold=[_sql(entry, "query")], place=place)]
    own = entry.get("question_id", number)

    def on(database: str) -> Dialogue:
        return Dialogue(
            id=f"{name}-{own}",
            turns=turns,
            tags=tags,
            database=database,
            database_name=name,
            place=place,
        )

    return name, on


def _bird_turn(entry: Mapping[str, Any], place: Place) -> Turn:
    """Return a question of BIRD, whose evidence goes with it as in BIRD's own evaluation."""
    text = _text(entry, "question")
    evidence = entry.get("evidence")
    if isinstance(evidence, str) and evidence.strip():
        text = f"{text}\n{evidence.strip()}"
    return Turn(text=text, gold=[_sql(entry, "SQL")], place=place)


def _interaction(value: object, place: Place) -> list[Turn]:
    if not isinstance(value, list) or not value:
        raise _FaultError("`interaction` must be a list of turns")
    turns: list[Turn] = []
    for number, each in enumerate(value, 1):
        if not isinstance(each, dict):
            raise _FaultError(f"turn {number}: an object is needed, found {kind_of(each)}")
        # CoSQL puts a question, the question back and its answer into one text.
        text = _text(each, "utterance").replace(" | ", "\n")
        turns.append(Turn(text=text, gold=[_sql(each, "query")], place=place))
    return turns


def _sql(entry: Mapping[str, Any], key: str) -> str:
    return _text(entry, key).rstrip(";").rstrip()


def _text(entry: Mapping[str, Any], key: str) -> str:
    fault = fault_of_text(entry.get(key))
    if not fault and not entry[key].strip():
        fault = "it is empty"
    if fault:
        raise _FaultError(f"`{key}`: {fault}")
    return str(entry[key]).strip()


def _database(name: str, roots: Sequence[Path]) -> Path | None:
    for root in roots:
        for ending in ENDINGS:
            for path in (root / name / f"{name}{ending}", root / f"{name}{ending}"):
                if path.is_file():
                    return path
    return None
