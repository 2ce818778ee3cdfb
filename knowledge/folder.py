"""Read a knowledge folder, read it again when its files change, and write single entries."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from longtable.base.errors import ConfigError
from longtable.knowledge.entries import Knowledge, Place, Problem, Term, VerifiedQuery
from longtable.knowledge.glossary import FILE as GLOSSARY
from longtable.knowledge.glossary import read_glossary, write_glossary
from longtable.knowledge.material import MOST_QUERIES, Found, fitting
from longtable.knowledge.query_files import ENDING, name_for, read_query, write_query
from longtable.knowledge.query_files import FOLDER as QUERIES
from longtable.knowledge.query_search import QuerySearch

RULES = "rules.md"
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
        text = _text(file, name)
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


def _text(file: Path, name: str) -> str | Problem:
    """Return the text of a file, or why it cannot be read."""
    try:
        about = file.stat()
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
        folder = self.path / QUERIES
        text = write_query(query)
        with self._lock:
            taken = {file.stem for file in folder.glob(f"*{ENDING}")}
            name = name_for(query.name or query.question, taken)
            written = read_query(text, f"{QUERIES}/{name}{ENDING}")
            if isinstance(written, Problem):
                raise ConfigError(f"the query is not kept: {written.message}")
            _write(folder / f"{name}{ENDING}", text)
        return written

    def add_term(self, term: Term) -> None:
        """Write a term below the others of the glossary.

        Raises `ConfigError` if it is no term, or has a name that another one has.
        """
        with self._lock:
            file = self.path / GLOSSARY
            before = file.read_text(encoding="utf-8-sig") if file.exists() else ""
            added = write_glossary([term])
            text = f"{before.rstrip()}\n\n{added}" if before.strip() else added
            old = read_glossary(before)[1]
            new = [problem for problem in read_glossary(text)[1] if problem not in old]
            if new:
                raise ConfigError(str(new[0]))
            _write(file, text)

    def remove(self, name: str) -> bool:
        """Delete the query of this name, or the term. Return False if there is none."""
        knowledge = self.current()
        for query in knowledge.queries:
            if query.name == name:
                (self.path / query.place.file).unlink()
                return True
        kept = [term for term in knowledge.terms if name not in term.names]
        if len(kept) == len(knowledge.terms):
            return False
        if any(problem.place.file == GLOSSARY for problem in knowledge.problems):
            raise ConfigError(f"mend {GLOSSARY} first: {knowledge.problems[0]}")
        _write(self.path / GLOSSARY, write_glossary(kept))
        return True


def _fingerprint(path: Path) -> Fingerprint:
    """Return name, size and time of change of each file that is read."""
    seen: list[tuple[str, int, int]] = []
    for file in _files(path):
        with suppress(OSError):
            about = file.stat()
            seen.append((file.name, about.st_size, about.st_mtime_ns))
    return tuple(seen)


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all. Raises `ConfigError` if it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".longtable-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(
            f"the knowledge folder cannot be written: {file}: {error.strerror}", name="knowledge"
        ) from error
