"""Connect a knowledge folder with a graph's databases. It decides what goes with the calls, and
says which executed queries equal a verified one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from langchain_core.tools import BaseTool
from langgraph.store.base import BaseStore

from longtable.base.concurrency import BoundedCache, in_daemon
from longtable.base.errors import (
    ConfigError,
    DatabaseError,
    LongtableError,
    Reason,
    UnknownDatabaseError,
)
from longtable.base.events import Verified
from longtable.graph.kept_queries import teach_kept
from longtable.knowledge.entries import Knowledge, Problem, Term, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.knowledge.knowledge_hook import examples_tool
from longtable.knowledge.material import SOURCE, Found, ends_in, material_text
from longtable.knowledge.verified import VerifiedQueries, cast_advice, tables_named, with_nulls
from longtable.nodes.calling.context_providers import CitedText, ContextProvider, ContextRequest
from longtable.store.records.knowledge_records import KnowledgeRecords
from longtable.tools.database import Database
from longtable.tools.several.databases import Databases
from longtable.tools.sql.parsing import RefusedError

MOST_TOKENS = 5_000
"""The most tokens that a knowledge folder adds to a call."""
NEAR_SECONDS = 2.0
"""How long a turn waits for the search by meaning. New questions go on being embedded after it."""
NEAR = 10
"""Questions nearest in meaning that are looked at; several may belong to one query."""
MOST_TRIED = 50
"""Tables of a database with which a fragment that names no table is tried."""
CHECKS = 2_000
"""Verified queries whose check is remembered."""


Entry = TypeVar("Entry", Term, VerifiedQuery)


class KnowledgeProvider:
    """What a graph takes from a knowledge folder. Without a database no query is checked. An entry
    that names no database belongs to the first one.
    """

    def __init__(self, folder: KnowledgeFolder, databases: Databases | Database | None) -> None:
        self.folder = folder
        self.databases = databases if isinstance(databases, Databases) else Databases.of(databases)
        self._sound: BoundedCache[str, bool] = BoundedCache(CHECKS)
        """Queries that could be planned. Faults are not kept: that of a locked file passes."""
        self._told: Sequence[Problem] = ()
        """Problems that were there when the graph was built. Whoever opened it tells them."""
        if self.databases is not None:
            folder.plans_with(self.fault)
        self._compared: tuple[Knowledge, dict[str, VerifiedQueries]] | None = None
        """What the folder taught last, and its queries of each database to compare with."""

    def provider(self) -> ContextProvider:
        """Return the provider of what a question brings up. Raises `ConfigError` if the folder is
        not there.
        """
        self._told = self.folder.current().problems
        return ContextProvider(name=SOURCE, provide=self._provide, max_tokens=MOST_TOKENS)

    def tool(self) -> BaseTool:
        """Return the tool with which a model searches in its own words."""
        return examples_tool(self.folder, self.fault, self.term_fault, self._shown)

    def _provide(self, request: ContextRequest) -> CitedText:
        missing: list[Reason] = []
        near: list[str] = []
        if request.store is not None:
            near, missing = self._from_store(request, request.store)
        try:
            found = self.folder.found(request.question, near)
        except ConfigError as error:
            return CitedText("", (), [Reason(code="no_folder", message=f"{SOURCE}: {error}")])
        for problem in self.folder.known.problems:
            if problem not in self._told:
                message = f"{SOURCE}: {problem}"
                missing.append(Reason(code="knowledge_problem", message=message))
        term_faults = [self.term_fault(term) for term in found.terms]
        paired = zip(found.terms, term_faults, strict=True)
        terms = [term for term, fault in paired if not fault]
        missing += [
            Reason(code="broken_term", message=f"{SOURCE}: term {term.term}: {fault}")
            for term, fault in zip(found.terms, term_faults, strict=True)
            if fault
        ]
        faults = {query.name: self.fault(query) for query in found.queries}
        sound = [query for query in found.queries if not faults[query.name]]
        left_out = missing + [
            Reason(code="broken_query", message=f"{SOURCE}: query {name}: {fault}")
            for name, fault in faults.items()
            if fault
        ]
        found = self._shown(replace(found, terms=terms, queries=sound))
        text = material_text(found)
        return CitedText(text, found.cites, left_out, ends_in(text, found))

    def _from_store(
        self, request: ContextRequest, store: BaseStore
    ) -> tuple[list[str], list[Reason]]:
        """Teach the folder what the store keeps for it, and return the names of its queries that
        are near to a question in meaning. What fails is a reason: the words of the folder's files
        still count.
        """
        records = KnowledgeRecords(store, self.folder.path)
        missing: list[Reason] = []
        try:
            teach_kept(self.folder, records)
        except Exception as error:  # whatever somebody's store raises
            missing.append(_store_failed(error))
        if not records.finds_by_meaning:
            return [], missing
        work = partial(self._near, records, request.question)
        try:
            return in_daemon(work, "knowledge-near").result(NEAR_SECONDS), missing
        except TimeoutError:
            slow = f"{SOURCE}: the search by meaning took too long"
            return [], [*missing, Reason(code="store_slow", message=slow)]
        except Exception as error:  # or their client for embeddings
            return [], [*missing, _store_failed(error)]

    def _near(self, records: KnowledgeRecords, question: str) -> list[str]:
        questions: dict[str, str] = {}
        for query in self.folder.current().queries:
            questions |= dict.fromkeys(query.questions, query.name)
        if not questions:
            return []
        records.embed(questions)
        return records.near(question, NEAR, questions)

    def fault(self, query: VerifiedQuery) -> str:
        """Return why a query cannot run on the database as it is now, "" if it can.

        The engine plans the query, with NULL for each parameter; it does not run.
        """
        database, fault = self._database_of(query)
        if database is None:
            return fault
        key = f"{query.database} {database.version!r} {query.sql}"
        if self._sound.get(key):
            return ""
        fault = self._planned(database, query)
        if not fault:
            self._sound.put(key, True)
        return fault

    def problems(self, knowledge: Knowledge) -> list[Problem]:
        """Return a problem for each term and query that does not fit the database as it is now."""
        faults = [(term.place, self.term_fault(term)) for term in knowledge.terms]
        faults += [(query.place, self.fault(query)) for query in knowledge.queries]
        return [Problem(place, fault) for place, fault in faults if fault]

    def term_fault(self, term: Term) -> str:
        """Return why a term does not fit the database as it is now: its SQL names a table or column
        that is not there, or that the policy denies. "" if it fits.
        """
        database, fault = self._database_of(term)
        if database is None or not term.sql:
            return fault
        key = f"{term.database} {database.version!r} term {term.sql}"
        if self._sound.get(key):
            return ""
        fault = self._unknown_name(database, term.sql)
        if not fault:
            self._sound.put(key, True)
        return fault

    def _unknown_name(self, database: Database, sql: str) -> str:
        """Return what a fragment of SQL names that is not there. If it names no table, each of the
        database's tables is tried. What else may be wrong with it is no matter: it is a fragment.
        """
        try:
            tables = tables_named(sql, database.dialect)
            names = tables or [table.name for table in database.catalog().tables][:MOST_TRIED]
            bare = with_nulls(sql, database.dialect)
        except (RefusedError, LongtableError):
            return ""
        sources = [", ".join(map(_quoted, names))] if tables else [*map(_quoted, names)]
        reason = ""
        for source in sources:
            try:
                database.check_names(f"SELECT {bare} FROM {source}")
            except DatabaseError as error:
                if error.problem == "unknown_name":
                    reason = str(error)
                    continue
            return ""
        return reason

    def _planned(self, database: Database, query: VerifiedQuery) -> str:
        advice = ""
        try:
            advice = cast_advice(query.sql, database.dialect)
            database.check_names(with_nulls(query.sql, database.dialect))
        except RefusedError as error:
            fault = error.reason
        except LongtableError as error:
            fault = str(error)
        else:
            return ""
        return f"{fault}; {advice}" if advice else fault

    def _database_of(self, entry: Term | VerifiedQuery) -> tuple[Database | None, str]:
        """Return the database of an entry. If there is none, also return why, "" if the graph has
        no database at all.
        """
        if self.databases is None:
            return None, ""
        try:
            return self.databases.named(entry.database or self.databases.first_name), ""
        except UnknownDatabaseError as error:
            return None, str(error)

    def _shown(self, found: Found) -> Found:
        """Return what was found as the model is shown it."""
        terms = [self._with_database(term) for term in found.terms]
        return replace(found, terms=terms, queries=[*map(self._with_database, found.queries)])

    def _with_database(self, entry: Entry) -> Entry:
        """Return an entry as the material shows it: of several databases, it names its own."""
        if self.databases is None or not self.databases.are_several:
            return entry if not entry.database else replace(entry, database="")
        if isinstance(entry, Term) and not entry.sql and not entry.database:
            return entry  # it is about none of them
        name = self.databases.name_of(entry.database or self.databases.first_name)
        return replace(entry, database=name)

    def verified(self, sql: str, database: str = "") -> Verified | None:
        """Return the query of a database that this SQL equals but for parameters. None if no query
        matches, or nobody is named as its checker.
        """
        asked = self.databases.recorded(database) if self.databases else None
        if self.databases is None or asked is None:
            return None
        knowledge = self.folder.known  # as the turn's material was made of it
        if self._compared is None or self._compared[0] is not knowledge:
            self._compared = (knowledge, {})
        compared = self._compared[1]
        if database not in compared:
            queries = [each for each in knowledge.queries if self._database_of(each)[0] is asked]
            compared[database] = VerifiedQueries(queries, asked.dialect)
        query = compared[database].equal_to(sql)
        if query is None or not query.checked_by:
            return None
        return Verified(
            query=query.name,
            question=query.question,
            checked_by=query.checked_by,
            checked_on=query.checked_on,
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _store_failed(error: Exception) -> Reason:
    # Its class only: the words of somebody else's client may hold a key or a URL.
    message = f"{SOURCE}: the store failed ({type(error).__name__})"
    return Reason(code="store_failed", message=message)
