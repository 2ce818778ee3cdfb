"""Write what another program's file teaches into a knowledge folder."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from longtable.knowledge.entries import Problem, Term, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.knowledge.folder_reading import pair_of


@dataclass
class Import:
    """How far an import into a folder is: why entries are left out, and how many are added."""

    folder: KnowledgeFolder
    problems: list[str]
    added: int = 0

    def add_terms(self, terms: Sequence[Term]) -> None:
        """Write the terms that fit. Raises the errors of `KnowledgeFolder.add_terms`."""
        refused = self.folder.add_terms(terms)
        self.problems += map(str, refused)
        self.added += len(terms) - len(refused)

    def add_queries(
        self, queries: Sequence[VerifiedQuery], fault_of: Callable[[VerifiedQuery], str]
    ) -> None:
        """Write the queries that the folder has not and that can run, and count each as soon as its
        file is there. `fault_of` says why a query cannot run, "" if it can.

        Raises the errors of `KnowledgeFolder.write_queries`.
        """
        sound = self._without_fault(self._new(queries), fault_of)
        with closing(self.folder.write_queries(sound)) as outcomes:
            for query, written in zip(sound, outcomes, strict=True):
                if isinstance(written, Problem):
                    self.problems.append(f"{query.name}: {written.message}")
                else:
                    self.added += 1

    def _new(self, queries: Sequence[VerifiedQuery]) -> list[VerifiedQuery]:
        known: set[tuple[str, str, str]] = set()
        if self.folder.query_names():
            known = set(map(pair_of, self.folder.current().queries))
        return [query for query in queries if pair_of(query) not in known]

    def _without_fault(
        self, queries: Sequence[VerifiedQuery], fault_of: Callable[[VerifiedQuery], str]
    ) -> list[VerifiedQuery]:
        sound: list[VerifiedQuery] = []
        for query in queries:
            if fault := fault_of(query):
                self.problems.append(f"{query.question}: {fault}")
            else:
                sound.append(query)
        return sound
