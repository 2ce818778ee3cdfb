"""Read the files of a knowledge folder: what they teach, and what is wrong with them."""

import os
import shlex
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from longtable.base.errors import ConfigError
from longtable.base.words import fold
from longtable.knowledge.entries import Knowledge, Place, Problem, Term, VerifiedQuery, one_line
from longtable.knowledge.glossary import FILE as GLOSSARY
from longtable.knowledge.glossary import read_glossary
from longtable.knowledge.query_files import ENDING, FreeNames, bare_sql, read_query
from longtable.knowledge.query_files import FOLDER as QUERIES

RULES = "rules.md"
MOST_FILE_BYTES = 1_000_000
MOST_RULES_CHARS = 4_000
"""The rules go with every call, whole."""
MOST_QUERY_FILES = 20_000
Fingerprint = tuple[tuple[str, int, int, int, int], ...]


def read_folder(path: Path) -> Knowledge:
    """Return what a folder teaches. What cannot be read is left out, with a problem for each.

    Raises `ConfigError` if there is no such folder, or it cannot be read.
    """
    check_folder(path)
    terms: list[Term] = []
    files, problems = _files(path)
    rules = ""
    queries: list[VerifiedQuery] = []
    for file in files:
        name = file.relative_to(path).as_posix()
        text = text_of(file, name, path)
        if isinstance(text, Problem):
            problems.append(text)
        elif name == GLOSSARY:
            terms, wrong = read_glossary(text)
            problems += wrong
        elif name == RULES:
            rules = text.strip()
        else:
            query = read_query(text, name)
            if isinstance(query, Problem):
                problems.append(query)
            else:
                queries.append(query)
    if len(rules) > MOST_RULES_CHARS:
        message = f"at most {MOST_RULES_CHARS:,} characters of rules, found {len(rules):,}"
        problems.append(Problem(Place(RULES, 1), message))
        rules = ""
    if len(queries) > MOST_QUERY_FILES:
        message = (
            f"at most {MOST_QUERY_FILES:,} queries, found {len(queries):,}; the first are used"
        )
        problems.append(Problem(Place(QUERIES), message))
        queries = queries[:MOST_QUERY_FILES]
    return Knowledge(terms, rules, queries, [*problems, *rival_problems(queries)])


def with_further(knowledge: Knowledge, elsewhere: Knowledge) -> Knowledge:
    """Return knowledge with queries and problems of elsewhere. Queries get other names where theirs
    are taken.
    """
    known = {pair_of(query) for query in knowledge.queries}
    names = FreeNames({query.name for query in knowledge.queries})
    further: list[VerifiedQuery] = []
    for query in elsewhere.queries:
        if pair_of(query) not in known:
            known.add(pair_of(query))
            further.append(replace(query, name=names.for_question(query.name)))
    queries = [*knowledge.queries, *further]
    return replace(knowledge, queries=queries, problems=[*knowledge.problems, *elsewhere.problems])


def rivals_of(query: VerifiedQuery, queries: Sequence[VerifiedQuery]) -> list[VerifiedQuery]:
    """Return the queries that answer one of a query's questions in another way."""
    own = {fold(question) for question in query.questions}
    sql = bare_sql(query.sql)
    database = fold(query.database)
    return [
        other
        for other in queries
        if fold(other.database) == database
        and bare_sql(other.sql) != sql
        and not own.isdisjoint(map(fold, other.questions))
    ]


def rival_problems(queries: Sequence[VerifiedQuery]) -> list[Problem]:
    """Return a problem for each query whose question another one of the same database has before
    it, with other SQL.
    """
    problems: list[Problem] = []
    by_question: dict[tuple[str, str], VerifiedQuery] = {}
    for query in queries:
        for question in map(fold, query.questions):
            other = by_question.setdefault((fold(query.database), question), query)
            if bare_sql(other.sql) != bare_sql(query.sql):
                message = f"{other.place.file} answers the same question with other SQL: keep one"
                problems.append(Problem(query.place, message))
                break
    return problems


def check_folder(path: Path) -> None:
    """Raise `ConfigError` if there is no such folder, or it cannot be read."""
    try:
        _names(path)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        quoted = shlex.quote(str(path))
        message = (
            f"is not there: check its name, or make it with mkdir {quoted}, or with its first"
            f" entry: longtable knowledge add --knowledge {quoted} ..."
        )
        if isinstance(error, NotADirectoryError) and path.exists():
            message = "is a file: a folder is needed"
        raise ConfigError(
            f"the knowledge folder {path} {message}",
            name="knowledge",
            wanted="a folder with glossary.toml, rules.md or queries/",
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted. Raises `OSError`: `Path.glob` would find nothing."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def query_names(folder: Path) -> list[str]:
    """Return the names of a folder's query files. Raises `OSError` if they cannot be listed."""
    if not is_there(folder / QUERIES):
        return []
    return [name for name in _names(folder / QUERIES) if name.endswith(ENDING)]


def is_there(file: Path) -> bool:
    """Return whether a file or link is there, though it may not be readable."""
    try:
        file.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # to read it tells why it cannot be read
    return True


def _files(path: Path) -> tuple[list[Path], list[Problem]]:
    """Return the files of a folder that are read, in a fixed order, and a problem if its queries
    cannot be listed.
    """
    files = [path / name for name in (GLOSSARY, RULES) if is_there(path / name)]
    try:
        names = query_names(path)
    except OSError as error:
        return files, [Problem(Place(QUERIES), f"it cannot be read: {error.strerror}")]
    return [*files, *(path / QUERIES / name for name in names)], []


def text_of(file: Path, name: str, folder: Path) -> str | Problem:
    """Return the text of a file, or why it cannot be read."""
    try:
        about = file.stat()
        if not file.resolve().is_relative_to(folder.resolve()):
            return Problem(Place(name), "this leads out of the folder")
        if not stat.S_ISREG(about.st_mode):
            return Problem(Place(name), "this is no file")
        if about.st_size > MOST_FILE_BYTES:
            message = f"at most {MOST_FILE_BYTES:,} bytes, found {about.st_size:,}"
            return Problem(Place(name), message)
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return Problem(Place(name, line), "the text is not UTF-8; save the file as UTF-8")
    except OSError as error:
        return Problem(Place(name), f"it cannot be read: {error.strerror}")


def unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"the knowledge folder cannot be read: {path}: {error.strerror}", name="knowledge"
    )


def fingerprint(path: Path) -> Fingerprint:
    """Return what changes with each file that is read, and the problems."""
    files, problems = _files(path)
    seen = [(str(problem), 0, 0, 0, 0) for problem in problems]
    for file in files:
        with suppress(OSError):
            about = file.stat()
            times = about.st_mtime_ns, about.st_ctime_ns
            seen.append((file.name, about.st_size, about.st_ino, *times))
    return tuple(seen)


def pair_of(query: VerifiedQuery) -> tuple[str, str, str]:
    """Return a query's question and SQL as a file would have them, and its database."""
    return one_line(query.question), bare_sql(query.sql), fold(query.database)
