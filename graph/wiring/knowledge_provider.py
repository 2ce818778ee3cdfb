"""Connect a knowledge folder with a graph's database. It decides what goes with the calls, and
tells which queries that ran are verified.
"""

from dataclasses import replace

from longtable.base.concurrency import BoundedCache
from longtable.base.errors import ConfigError, LongtableError, Reason
from longtable.base.events import Verified
from longtable.graph.kept_queries import teach_kept
from longtable.knowledge.entries import Knowledge, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.knowledge.knowledge_hook import NAME
from longtable.knowledge.material import material_text
from longtable.knowledge.verified import VerifiedQueries, cast_advice, with_nulls
from longtable.nodes.calling.context_providers import CitedText, ContextProvider, ContextRequest
from longtable.store.records.knowledge_records import KnowledgeRecords
from longtable.tools.database import Database
from longtable.tools.sql.parsing import RefusedError

MOST_TOKENS = 5_000
"""The most tokens that a knowledge folder adds to a call."""
NEAR = 10
"""Questions nearest in meaning that are looked at; several may belong to one query."""
CHECKS = 2_000
"""Verified queries whose check is remembered."""


class KnowledgeProvider:
    """What a graph takes from a knowledge folder. Without a database no query is checked."""

    def __init__(self, folder: KnowledgeFolder, database: Database | None) -> None:
        self.folder = folder
        self.database = database
        self._sound: BoundedCache[str, bool] = BoundedCache(CHECKS)
        """Queries that could be planned. Faults are not kept: that of a locked file passes."""
        self._compared: tuple[Knowledge, VerifiedQueries] | None = None
        """What the folder taught last, and its queries to compare with."""

    def provider(self) -> ContextProvider:
        """Return the provider of what a question brings up. Raises `ConfigError` if the folder is
        not there.
        """
        self.folder.current()
        return ContextProvider(name=NAME, provide=self._provide, max_tokens=MOST_TOKENS)

    def _provide(self, request: ContextRequest) -> CitedText:
        try:
            near = self._from_store(request)
            found = self.folder.found(request.question, near)
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

    def _from_store(self, request: ContextRequest) -> list[str]:
        """Teach the folder what the store keeps for it, and return the names of its queries that
        are near to a question in meaning. Without a store, or one that embeds texts, none are.
        """
        if request.store is None:
            return []
        records = KnowledgeRecords(request.store, self.folder.path)
        teach_kept(self.folder, records)
        if not records.finds_by_meaning:
            return []
        names: dict[str, str] = {}
        for query in self.folder.current().queries:
            names |= dict.fromkeys(query.questions, query.name)
        if not names:
            return []
        records.embed(names)
        nearest = records.near(request.question, NEAR)
        return [name for text, name in nearest if names.get(text) == name]

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
        advice = ""
        try:
            advice = cast_advice(query.sql, database.dialect)
            database.check_sql(with_nulls(query.sql, database.dialect))
        except RefusedError as error:
            fault = error.reason
        except LongtableError as error:
            fault = str(error)
        else:
            return ""
        return f"{fault}; {advice}" if advice else fault

    def verified(self, sql: str) -> Verified | None:
        """Return the query that this SQL equals but for parameters. None if there is none, or none
        that names who checked it.
        """
        if self.database is None:
            return None
        knowledge = self.folder.known  # as the turn's material was made of it
        compared = self._compared
        if compared is None or compared[0] is not knowledge:
            compared = knowledge, VerifiedQueries(knowledge.queries, self.database.dialect)
            self._compared = compared
        query = compared[1].equal_to(sql)
        if query is None or not query.checked_by:
            return None
        return Verified(
            query=query.name,
            question=query.question,
            checked_by=query.checked_by,
            checked_on=query.checked_on,
        )
