"""Read a knowledge folder, read it again when its files change, and write single entries."""

import codecs
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

from longtable.base.concurrency import file_lock
from longtable.base.errors import ConfigError, KnowledgeNotWritableError
from longtable.base.words import fold
from longtable.knowledge.entries import (
    Knowledge,
    Place,
    Problem,
    Term,
    VerifiedQuery,
    one_line,
    unique_terms,
)
from longtable.knowledge.glossary import FILE as GLOSSARY
from longtable.knowledge.glossary import read_glossary, without_table, write_glossary
from longtable.knowledge.material import MOST_QUERIES, Found, fitting, merged
from longtable.knowledge.query_files import ENDING, FreeNames, bare_sql, read_query, write_query
from longtable.knowledge.query_files import FOLDER as QUERIES
from longtable.knowledge.query_search import QuerySearch

RULES = "rules.md"
LOCK = ".lock"
FILE_MODE = 0o644
MOST_FILE_BYTES = 1_000_000
MOST_RULES_CHARS = 4_000
"""The rules go with every call, whole."""
MOST_QUERY_FILES = 20_000

Fingerprint = tuple[tuple[str, int, int, int, int], ...]


def read_folder(path: Path) -> Knowledge:
    """Return what a folder teaches. What cannot be read is left out, with a problem for each.

    Raises `ConfigError` if there is no such folder, or it cannot be read.
    """
    _check_folder(path)
    terms: list[Term] = []
    files, problems = _files(path)
    rules = ""
    queries: list[VerifiedQuery] = []
    for file in files:
        name = file.relative_to(path).as_posix()
        text = _text(file, name, path)
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
    known = {_pair(query) for query in knowledge.queries}
    names = FreeNames({query.name for query in knowledge.queries})
    further: list[VerifiedQuery] = []
    for query in elsewhere.queries:
        if _pair(query) not in known:
            known.add(_pair(query))
            further.append(replace(query, name=names.for_question(query.name)))
    queries = [*knowledge.queries, *further]
    return replace(knowledge, queries=queries, problems=[*knowledge.problems, *elsewhere.problems])


def rivals_of(query: VerifiedQuery, queries: Sequence[VerifiedQuery]) -> list[VerifiedQuery]:
    """Return the queries that answer one of a query's questions in another way."""
    own = {fold(question) for question in query.questions}
    sql = bare_sql(query.sql)
    return [
        other
        for other in queries
        if bare_sql(other.sql) != sql and not own.isdisjoint(map(fold, other.questions))
    ]


def rival_problems(queries: Sequence[VerifiedQuery]) -> list[Problem]:
    """Return a problem for each query whose question another one has before it, with other SQL."""
    problems: list[Problem] = []
    by_question: dict[str, VerifiedQuery] = {}
    for query in queries:
        for question in map(fold, query.questions):
            other = by_question.setdefault(question, query)
            if bare_sql(other.sql) != bare_sql(query.sql):
                message = f"{other.place.file} answers the same question with other SQL: keep one"
                problems.append(Problem(query.place, message))
                break
    return problems


def _check_folder(path: Path) -> None:
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
        raise _unreadable(path, error) from error


def _check_within(path: Path, folder: Path) -> None:
    """Raise `ConfigError` if a path leads out of the folder: nothing is read from there."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise ConfigError(f"{path} leads out of the knowledge folder: nothing is written there")


def _check_terms(text: str, terms: Sequence[Term]) -> None:
    """Raise `ConfigError` unless the new text of a glossary has exactly these terms. TOML has more
    ways to write a table than are changed here.
    """
    found, problems = read_glossary(text)
    if problems or found != [*terms]:
        raise ConfigError(
            f"{GLOSSARY} is written in a way that is not changed here: edit it by hand; nothing was"
            " written"
        )


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted. Raises `OSError`: `Path.glob` would find nothing."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def _query_names(folder: Path) -> list[str]:
    """Return the names of a folder's query files. Raises `OSError` if they cannot be listed."""
    if not _is_there(folder / QUERIES):
        return []
    return [name for name in _names(folder / QUERIES) if name.endswith(ENDING)]


def _is_there(file: Path) -> bool:
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
    files = [path / name for name in (GLOSSARY, RULES) if _is_there(path / name)]
    try:
        names = _query_names(path)
    except OSError as error:
        return files, [Problem(Place(QUERIES), f"it cannot be read: {error.strerror}")]
    return [*files, *(path / QUERIES / name for name in names)], []


def _text(file: Path, name: str, folder: Path) -> str | Problem:
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


class KnowledgeFolder:
    """A folder whose files may change while it is in use. Safe for threads."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._seen: Fingerprint | None = None
        self._elsewhere = Knowledge()
        self._plan: Callable[[VerifiedQuery], str] | None = None
        self._knowledge = Knowledge()
        self._search: QuerySearch | None = None

    def current(self) -> Knowledge:
        """Return what the folder teaches now: the same object as long as no file changes.

        Raises `ConfigError` if the folder is gone, or cannot be read.
        """
        with self._lock:
            try:
                _check_folder(self.path)
            except ConfigError:
                self._knowledge = Knowledge()
                self._seen = None
                raise
            seen = _fingerprint(self.path)
            if seen != self._seen:
                self._knowledge = with_further(read_folder(self.path), self._elsewhere)
                self._search = None
                self._seen = seen
            return self._knowledge

    def also_teach(
        self, queries: Sequence[VerifiedQuery], problems: Sequence[Problem] = ()
    ) -> None:
        """Teach queries that are kept elsewhere, with the problems met there, in place of those
        given before. A query that the folder has too, with its question and SQL, is taught once.
        """
        elsewhere = Knowledge(queries=(*queries,), problems=(*problems,))
        with self._lock:
            if elsewhere != self._elsewhere:
                self._elsewhere = elsewhere
                self._seen = None

    def fault_of(self, query: VerifiedQuery) -> str:
        """Return why the database that the folder belongs to cannot run a query, "" if it can, or
        if the folder belongs to none. `plans_with` names the database.
        """
        return self._plan(query) if self._plan else ""

    def plans_with(self, plan: Callable[[VerifiedQuery], str]) -> None:
        """Let a function say why a query cannot run, "" if it can."""
        self._plan = plan

    @property
    def known(self) -> Knowledge:
        """Return what `current` read last. No file is looked at."""
        return self._knowledge

    def search(self) -> QuerySearch:
        """Return the search over what the folder teaches now. Raises `ConfigError` as `current`."""
        knowledge = self.current()
        with self._lock:
            if self._search is None or self._search.knowledge is not knowledge:
                self._search = QuerySearch(knowledge)
            return self._search

    def found(self, question: str, near: Sequence[str] = ()) -> Found:
        """Return what a question brings up, as it goes with a call. `near`: names of queries that
        are near in meaning, the nearest first. They take turns with those that share words.
        """
        search = self.search()
        queries = merged(search.queries(question, MOST_QUERIES), search.named(near))
        return fitting(search.terms(question), search.knowledge.rules, queries)

    def query_names(self) -> set[str]:
        """Return the names of the queries that are taught. Without a folder there are none.

        Raises `ConfigError` if the folder cannot be read.
        """
        if not _is_there(self.path):
            return set()
        return {query.name for query in self.current().queries}

    def add_query(self, query: VerifiedQuery) -> VerifiedQuery:
        """Write a query's file, under a name that is free, and return it as written. If a query
        with the same question and the same SQL is there, return that one and write nothing.

        Raises `ConfigError` if the file could not be read again, or cannot be written.
        """
        (written,) = self.add_queries([query])
        if isinstance(written, Problem):
            raise ConfigError(f"the query is not kept: {written.message}")
        return written

    def named(self, query: VerifiedQuery) -> VerifiedQuery:
        """Return a query as its file would have it, under a name that is free. Nothing is written.

        Raises `ConfigError` if a file of it could not be read.
        """
        names = FreeNames({each.name for each in self.current().queries})
        name = names.for_question(query.name or query.question)
        written = read_query(write_query(query), f"{QUERIES}/{name}{ENDING}")
        if isinstance(written, Problem):
            raise ConfigError(f"the query is not kept: {written.message}")
        return written

    def add_queries(self, queries: Sequence[VerifiedQuery]) -> list[VerifiedQuery | Problem]:
        """Write the queries as `write_queries` does, and return what it yields."""
        return [*self.write_queries(queries)]

    def write_queries(
        self, queries: Sequence[VerifiedQuery]
    ) -> Generator[VerifiedQuery | Problem, None, None]:
        """Write a file for each query, under names that are free. Yield each as soon as it is
        written, or why its file could not be read again. For a query that is there already, with
        the same question and the same SQL, yield that one.

        Raises `ConfigError` if the queries that are there cannot be read, or a file cannot be
        written.
        """
        with _writing(self.path):
            _check_within(self.path / QUERIES, self.path)
            known = {_pair(query): query for query in reversed(self.current().queries)}
            names = FreeNames(self._taken_names())
            for query in queries:
                if _pair(query) in known:
                    yield known[_pair(query)]
                    continue
                name = names.for_question(query.name or query.question)
                text = write_query(query)
                written = read_query(text, f"{QUERIES}/{name}{ENDING}")
                if not isinstance(written, Problem):
                    _write(self.path / QUERIES / f"{name}{ENDING}", text)
                    known[_pair(written)] = written
                yield written

    def _taken_names(self) -> set[str]:
        """Return the names of query files without their ending. Raises `ConfigError` if they cannot
        be listed, for a file could be written over.
        """
        try:
            return {name.removesuffix(ENDING) for name in _query_names(self.path)}
        except OSError as error:
            raise _unreadable(self.path / QUERIES, error) from error

    def add_term(self, term: Term) -> None:
        """Write a term below the others of the glossary.

        Raises `ConfigError` if it is no term, has a name of another one, or cannot be written.
        """
        problems = self.add_terms([term])
        if problems:
            raise ConfigError(str(problems[0]))

    def add_terms(self, terms: Sequence[Term]) -> list[Problem]:
        """Write the terms that fit below those of the glossary, and return why others do not.

        Raises `ConfigError` if the glossary has a mistake, or cannot be written.
        """
        with _writing(self.path):
            file = self.path / GLOSSARY
            before = self._glossary(file)
            known, _ = read_glossary(before)
            added = write_glossary(terms) if terms else ""
            sound, problems = read_glossary(added)
            kept, doubles = unique_terms([*known, *sound])
            fresh = kept[len(known) :]
            if fresh:
                after = _appended(before, write_glossary(fresh))
                _check_terms(after, kept)
                _rewrite(file, after)
        return [*problems, *doubles]

    def remove(self, name: str) -> bool:
        """Delete the query of this name, or the term. Return False if there is none. What else
        stands in the glossary stays as it is.

        Raises `ConfigError` if the glossary has a mistake, or cannot be written.
        """
        knowledge = read_folder(self.path)
        for query in knowledge.queries:
            if query.name == name:
                _delete(self.path / query.place.file)
                return True
        with _writing(self.path):
            file = self.path / GLOSSARY
            text = self._glossary(file)
            term = next((term for term in read_glossary(text)[0] if term.term == name), None)
            if term is None:
                return False
            after = without_table(text, term.place.line)
            _check_terms(after, [each for each in read_glossary(text)[0] if each.term != name])
            _rewrite(file, after)
        return True

    def _glossary(self, file: Path) -> str:
        """Return the text of the glossary.

        Raises `ConfigError` if it has a mistake: what is written below might not be read.
        """
        if not _is_there(file):
            return ""
        text = _text(file, GLOSSARY, self.path)
        problems = [text] if isinstance(text, Problem) else read_glossary(text)[1]
        if isinstance(text, Problem) or problems:
            raise ConfigError(f"mend {GLOSSARY} first: {problems[0]}")
        return text


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Let one writer at a time change a folder, whichever process it is in. Raises `ConfigError` if
    the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if sys.platform != "win32":  # one person writes there
                stack.enter_context(file_lock(folder / LOCK))
        except OSError as error:
            raise _unwritable(folder, error) from error
        yield


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"the knowledge folder cannot be read: {path}: {error.strerror}", name="knowledge"
    )


def _unwritable(path: Path, error: OSError) -> KnowledgeNotWritableError:
    return KnowledgeNotWritableError(
        f"the knowledge folder cannot be written: {path}: {error.strerror}", name="knowledge"
    )


def _fingerprint(path: Path) -> Fingerprint:
    """Return what changes with each file that is read, and the problems."""
    files, problems = _files(path)
    seen = [(str(problem), 0, 0, 0, 0) for problem in problems]
    for file in files:
        with suppress(OSError):
            about = file.stat()
            times = about.st_mtime_ns, about.st_ctime_ns
            seen.append((file.name, about.st_size, about.st_ino, *times))
    return tuple(seen)


def _pair(query: VerifiedQuery) -> tuple[str, str]:
    """Return a query's question and SQL as a file would have them."""
    return one_line(query.question), bare_sql(query.sql)


def _appended(before: str, text: str) -> str:
    """Return a glossary with terms below it, which get the line ends of its first line."""
    kept = before.rstrip()
    below = f"\n\n{text}" if kept else text
    if before.partition("\n")[0].endswith("\r"):
        below = below.replace("\n", "\r\n")
    return kept + below


def _delete(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(file, error) from error


def _rewrite(file: Path, text: str) -> None:
    """Write a file that may be there anew: the one that a link leads to, and with its byte order
    mark. Raises `ConfigError` as `_write`.
    """
    target = file.resolve()
    try:
        has_mark = target.exists() and target.read_bytes().startswith(codecs.BOM_UTF8)
    except OSError as error:
        raise _unwritable(file, error) from error
    _write(target, f"\ufeff{text}" if has_mark else text)


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all. Raises `ConfigError` if it cannot be written, or would be
    too large to be read.
    """
    data = text.encode("utf-8", "replace")
    if len(data) > MOST_FILE_BYTES:
        raise ConfigError(
            f"{file.name} may have {MOST_FILE_BYTES:,} bytes, and would have {len(data):,}"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else FILE_MODE
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".longtable-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            Path(temporary).chmod(mode)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(file, error) from error
