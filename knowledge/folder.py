"""Read a knowledge folder, read it again when its files change, and write single entries."""

import codecs
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

from longtable.base.concurrency import file_lock
from longtable.base.errors import ConfigError, KnowledgeNotWritableError
from longtable.knowledge.entries import (
    Knowledge,
    Problem,
    Term,
    VerifiedQuery,
    unique_terms,
)
from longtable.knowledge.folder_reading import (
    MOST_FILE_BYTES,
    Fingerprint,
    check_folder,
    fingerprint,
    is_there,
    pair_of,
    query_names,
    read_folder,
    text_of,
    unreadable,
    with_further,
)
from longtable.knowledge.glossary import FILE as GLOSSARY
from longtable.knowledge.glossary import read_glossary, without_table, write_glossary
from longtable.knowledge.material import MOST_QUERIES, Found, fitting, merged
from longtable.knowledge.query_files import ENDING, FreeNames, read_query, write_query
from longtable.knowledge.query_files import FOLDER as QUERIES
from longtable.knowledge.query_search import QuerySearch

LOCK = ".lock"
FILE_MODE = 0o644


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
                check_folder(self.path)
            except ConfigError:
                self._knowledge = Knowledge()
                self._seen = None
                raise
            seen = fingerprint(self.path)
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
        if not is_there(self.path):
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
            known = {pair_of(query): query for query in reversed(self.current().queries)}
            names = FreeNames(self._taken_names())
            for query in queries:
                if pair_of(query) in known:
                    yield known[pair_of(query)]
                    continue
                name = names.for_question(query.name or query.question)
                text = write_query(query)
                written = read_query(text, f"{QUERIES}/{name}{ENDING}")
                if not isinstance(written, Problem):
                    _write(self.path / QUERIES / f"{name}{ENDING}", text)
                    known[pair_of(written)] = written
                yield written

    def _taken_names(self) -> set[str]:
        """Return the names of query files without their ending. Raises `ConfigError` if they cannot
        be listed, for a file could be written over.
        """
        try:
            return {name.removesuffix(ENDING) for name in query_names(self.path)}
        except OSError as error:
            raise unreadable(self.path / QUERIES, error) from error

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
        if not is_there(file):
            return ""
        text = text_of(file, GLOSSARY, self.path)
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


def _unwritable(path: Path, error: OSError) -> KnowledgeNotWritableError:
    return KnowledgeNotWritableError(
        f"the knowledge folder cannot be written: {path}: {error.strerror}", name="knowledge"
    )


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
