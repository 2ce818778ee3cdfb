"""Read questions from files and folders, whichever of the known formats each has."""

from collections.abc import Sequence
from pathlib import Path

from longtable.base.errors import ConfigError
from longtable.evaluation.formats.benchmark_files import database_folders, read_benchmark
from longtable.evaluation.formats.checked_queries import read_knowledge, read_nao_test
from longtable.evaluation.formats.question_files import read_questions
from longtable.evaluation.question_set import QuestionSet, merged

MOST_BYTES = 100_000_000
YAML = (".yml", ".yaml")


def read_sources(paths: Sequence[Path], *, databases: Path | None = None) -> QuestionSet:
    """Return the questions of all files and folders. `databases`: the folder with the databases of
    a benchmark, if they do not lie beside its file.

    A file that ends in .toml has questions of one's own, one that ends in .json those of a
    benchmark, one that ends in .yml is a test of nao. A folder is a knowledge folder, or holds
    tests of nao. Raises `ConfigError` for anything else, and for what cannot be read.
    """
    sets: list[QuestionSet] = []
    for path in paths:
        if path.is_dir():
            sets += _read_folder(path)
        else:
            sets.append(_read_file(path, databases))
    return merged(sets)


def _read_folder(path: Path) -> list[QuestionSet]:
    tests = sorted(file for file in path.iterdir() if file.suffix.lower() in YAML)
    if tests and not (path / "queries").is_dir():
        return [read_nao_test(_text_of(file), str(file)) for file in tests]
    return [read_knowledge(path)]


def _read_file(path: Path, databases: Path | None) -> QuestionSet:
    ending = path.suffix.lower()
    if ending == ".toml":
        return read_questions(_text_of(path), str(path), path.absolute().parent)
    if ending == ".json":
        roots = [databases.absolute()] if databases else database_folders(path)
        return read_benchmark(_text_of(path), str(path), roots)
    if ending in YAML:
        return read_nao_test(_text_of(path), str(path))
    raise ConfigError(
        f"{path}: questions are read from .toml, from .json (Spider, BIRD, SParC, CoSQL), from .yml"
        " (nao), or from a knowledge folder"
    )


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{path}: at most {MOST_BYTES:,} bytes of questions are read")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8: save it as UTF-8") from error
