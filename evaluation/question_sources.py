"""Read questions from files and folders, whichever of the known formats each has."""

from collections.abc import Sequence
from pathlib import Path

from longtable.base.errors import ConfigError
from longtable.evaluation.question_files import read_questions
from longtable.evaluation.question_set import QuestionSet, merged

MOST_BYTES = 40_000_000


def read_sources(paths: Sequence[Path]) -> QuestionSet:
    """Return the questions of all files. Raises `ConfigError` if a file cannot be read as text."""
    return merged([_read(path) for path in paths])


def _read(path: Path) -> QuestionSet:
    return read_questions(text_of(path), str(path), path.parent.absolute())


def text_of(path: Path) -> str:
    """Return the text of a file. Raises `ConfigError`."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path}: at most {MOST_BYTES:,} bytes of questions are read")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8: save it as UTF-8") from error
