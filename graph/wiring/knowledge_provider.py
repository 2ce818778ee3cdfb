"""Connect a knowledge folder with a graph's database. It decides what goes with the calls, and
tells which queries that ran are verified.
"""

from dataclasses import dataclass, field, replace
from threading import Lock

from longtable.base.concurrency import BoundedCache
from longtable.base.errors import ConfigError, LongtableError, Reason
from longtable.base.events import Verified
from longtable.knowledge.entries import Knowledge, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.knowledge.knowledge_hook import NAME
from longtable.knowledge.material import material_text
from longtable.knowledge.verified import VerifiedQueries, with_nulls
from longtable.nodes.calling.context_providers import CitedText, ContextProvider, ContextRequest
from longtable.tools.database import Database
from longtable.tools.sql.parsing import RefusedError

MOST_TOKENS = 5_000
"""The most tokens that a knowledge folder adds to a call."""
CHECKS = 2_000
"""Verified queries whose check is remembered."""


@dataclass(frozen=True)
class KnowledgeProvider:
    """What a graph takes from a knowledge folder. Without a database no query is checked."""

    folder: KnowledgeFolder
    database: Database | None
    _sound: BoundedCache[str, bool] = field(
        default_factory=lambda: BoundedCache(CHECKS), compare=False, repr=False
    )
    """Queries that could be planned. Faults are not kept: that of a locked file passes."""
    _verified: dict[str, tuple[Knowledge, VerifiedQueries]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _lock: Lock = field(default_factory=Lock, compare=False, repr=False)

    def provider(self) -> ContextProvider:
        """Return the provider of what a question brings up. Raises `ConfigError` if the folder is
        not there.
        """
        self.folder.current()
        return ContextProvider(name=NAME, provide=self._provide, max_tokens=MOST_TOKENS)

    def _provide(self, request: ContextRequest) -> CitedText:
        try:
            found = self.folder.found(request.question)
        except ConfigError as error:
            return CitedText("", (), [Reason(code="no_folder", message=f"{NAME}: {error}")])
        faults = {query.name: self.fault(query) for query in found.queries}
        sound = [query for query in found.queries if not faults[query.name]]
        left_out = [
            Reason(code="broken_query", message=f"{NAME}: query {name}: {fault}")
            for name, fault in faults.items()
            if fault
        ]
        found = replace(found, queries=sound)
        return CitedText(material_text(found), found.cites, left_out)

    def fault(self, query: VerifiedQuery) -> str:
        """Return why a query cannot run on the database as it is now, "" if it can.

        The engine plans the query, with NULL for each parameter; it does not run.
        """
        if self.database is None:
            return ""
        key = f"{self.database.version!r} {query.sql}"
        if self._sound.get(key):
            return ""
        fault = self._planned(self.database, query)
        if not fault:
            self._sound.put(key, True)
        return fault

    def _planned(self, database: Database, query: VerifiedQuery) -> str:
        try:
            database.check_sql(with_nulls(query.sql, database.dialect))
        except RefusedError as error:
            return error.reason
        except LongtableError as error:
            return str(error)
        return ""

    def verified(self, sql: str) -> Verified | None:
        """Return the query that this SQL equals but for parameters. None if there is none, or none
        that names who checked it.
        """
        if self.database is None:
            return None
        try:
            query = self._equal_to(sql, self.database.dialect)
        except ConfigError:
            return None  # the folder is gone, which the event of the turn's material tells
        if query is None or not query.checked_by:
            return None
        return Verified(
            query=query.name,
            question=query.question,
            checked_by=query.checked_by,
            checked_on=query.checked_on,
        )

    def _equal_to(self, sql: str, dialect: str) -> VerifiedQuery | None:
        knowledge = self.folder.current()
        with self._lock:
            known = self._verified.get(dialect)
            if known is None or known[0] is not knowledge:
                known = knowledge, VerifiedQueries(knowledge.queries, dialect)
                self._verified[dialect] = known
        return known[1].equal_to(sql)
