"""Read a knowledge folder, read it again when its files change, and write single entries."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock

from longtable.base.concurrency import file_lock
from longtable.base.errors import ConfigError
from longtable.knowledge.entries import (
    Knowledge,
    Place,
    Problem,
    Term,
    VerifiedQuery,
    unique_terms,
)
from longtable.knowledge.glossary import FILE as GLOSSARY
from longtable.knowledge.glossary import read_glossary, without_table, write_glossary
from longtable.knowledge.material import MOST_QUERIES, Found, fitting
from longtable.knowledge.query_files import ENDING, FreeNames, read_query, write_query
from longtable.knowledge.query_files import FOLDER as QUERIES
from longtable.knowledge.query_search import QuerySearch

RULES = "rules.md"
LOCK = ".lock"
FILE_MODE = 0o644
MOST_FILE_BYTES = 1_000_000
MOST_RULES_CHARS = 4_000
"""The rules go with every call, whole."""
MOST_QUERY_FILES = 20_000

Fingerprint = tuple[tuple[str, int, int], ...]


def read_folder(path: Path) -> Knowledge:
    """Return what a folder teaches. What cannot be read is left out, with a problem for each.

    Raises `ConfigError` if there is no such folder.
    """
    if not path.is_dir():
        raise ConfigError(
            f"the knowledge folder {path} is not there; `longtable knowledge add` makes one",
            name="knowledge",
            wanted="a folder with glossary.toml, rules.md or queries/",
        )
    terms: list[Term] = []
    problems: list[Problem] = []
    rules = ""
    queries: list[VerifiedQuery] = []
    for file in _files(path):
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
    return Knowledge(terms, rules, queries, problems)


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of a folder that are read, in a fixed order."""
    for name in (GLOSSARY, RULES):
        if (path / name).exists():
            yield path / name
    if (path / QUERIES).is_dir():
        yield from sorted((path / QUERIES).glob(f"*{ENDING}"))


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
        self._knowledge = Knowledge()
        self._search: QuerySearch | None = None

    def current(self) -> Knowledge:
        """Return what the folder teaches now: the same object as long as no file changes.

        Raises `ConfigError` if the folder is gone.
        """
        with self._lock:
            seen = _fingerprint(self.path)
            if seen != self._seen or not self.path.is_dir():
                self._knowledge = read_folder(self.path)
                self._search = None
                self._seen = seen
            return self._knowledge

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

    def found(self, question: str) -> Found:
        """Return what a question brings up, as it goes with a call."""
        search = self.search()
        queries = search.queries(question, MOST_QUERIES)
        return fitting(search.terms(question), search.knowledge.rules, queries)

    def add_query(self, query: VerifiedQuery) -> VerifiedQuery:
        """Write a query's file, under a name that is free, and return it as written.

        Raises `ConfigError` if the file could not be read again, or cannot be written.
        """
        (written,) = self.add_queries([query])
        if isinstance(written, Problem):
            raise ConfigError(f"the query is not kept: {written.message}")
        return written

    def add_queries(self, queries: Sequence[VerifiedQuery]) -> list[VerifiedQuery | Problem]:
        """Write a file for each query, under names that are free. Return each as written, or why
        its file could not be read again.

        Raises `ConfigError` if a file cannot be written.
        """
        written: list[VerifiedQuery | Problem] = []
        with _writing(self.path):
            folder = self.path / QUERIES
            names = FreeNames({file.stem for file in folder.glob(f"*{ENDING}")})
            for query in queries:
                name = names.for_question(query.name or query.question)
                text = write_query(query)
                kept = read_query(text, f"{QUERIES}/{name}{ENDING}")
                if not isinstance(kept, Problem):
                    _write(folder / f"{name}{ENDING}", text)
                written.append(kept)
        return written

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
                parts = [before.rstrip(), write_glossary(fresh)]
                _write(file, "\n\n".join(filter(None, parts)))
        return [*problems, *doubles]

    def remove(self, name: str) -> bool:
        """Delete the query of this name, or the term. Return False if there is none. What else
        stands in the glossary stays as it is.

        Raises `ConfigError` if the glossary has a mistake, or cannot be written.
        """
        knowledge = self.current()
        for query in knowledge.queries:
            if query.name == name:
                (self.path / query.place.file).unlink(missing_ok=True)
                return True
        with _writing(self.path):
            file = self.path / GLOSSARY
            text = self._glossary(file)
            term = next((term for term in read_glossary(text)[0] if term.term == name), None)
            if term is None:
                return False
            _write(file, without_table(text, term.place.line))
        return True

    def _glossary(self, file: Path) -> str:
        """Return the text of the glossary.

        Raises `ConfigError` if it has a mistake: what is written below might not be read.
        """
        if not file.exists():
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


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"the knowledge folder cannot be written: {path}: {error.strerror}", name="knowledge"
    )


def _fingerprint(path: Path) -> Fingerprint:
    """Return name, size and time of change of each file that is read."""
    seen: list[tuple[str, int, int]] = []
    for file in _files(path):
        with suppress(OSError):
            about = file.stat()
            seen.append((file.name, about.st_size, about.st_mtime_ns))
    return tuple(seen)


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
