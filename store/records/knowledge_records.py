"""What a knowledge folder keeps in a LangGraph store: checked queries that the folder itself cannot
hold, and the questions of its queries by meaning, if the store embeds texts.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from longtable.base.errors import ConfigError
from longtable.base.stored import KNOWLEDGE, MEANINGS
from longtable.store.records.retired_store import embeds

PAGE = 500
MOST_KEPT = 2_000
"""Queries that a store keeps of one folder. All of them are read in each turn."""
MOST_EMBEDDED = 100
"""Questions that are embedded at once: a turn waits for them."""


class KnowledgeRecords:
    """The records of one knowledge folder, known by its path. All threads of a store share them."""

    def __init__(self, store: BaseStore, folder: Path) -> None:
        # Unlike `Path.resolve`, it goes through a loop of links.
        path = os.path.realpath(folder)
        digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._store = store
        self._kept = (*KNOWLEDGE, digest)
        self._meanings = (*MEANINGS, digest)

    def keep(self, fields: Mapping[str, Any]) -> None:
        """Keep the fields of a query: `question`, `sql`, `time` (ISO 8601) and others. A query with
        the same question, SQL and database is replaced; two SQLs of one question are both kept.

        Raises `ConfigError` if the store keeps `MOST_KEPT` queries already.
        """
        key = _key_of(fields["question"], fields["sql"], fields.get("database", ""))
        if self._store.get(self._kept, key) is None and len(self.kept()) >= MOST_KEPT:
            raise ConfigError(
                f"a store keeps at most {MOST_KEPT:,} queries of a knowledge folder: let its owner"
                " write them into files"
            )
        self._store.put(self._kept, key, {**fields}, index=False)

    def kept(self) -> list[Mapping[str, Any]]:
        """Return the fields of each query that is kept, in the order in which they were kept."""
        items: list[SearchItem] = []
        for start in range(0, MOST_KEPT, PAGE):
            page = self._store.search(self._kept, limit=PAGE, offset=start)
            items += page
            if len(page) < PAGE:
                break
        items.sort(key=lambda item: (str(item.value.get("time")), item.key))
        return [item.value for item in items]

    def forget(self, question: str, sql: str, database: str = "") -> None:
        """Delete the query with this question and this SQL, of this database if there are
        several.
        """
        self._store.delete(self._kept, _key_of(question, sql, database))

    @property
    def finds_by_meaning(self) -> bool:
        """Return whether the store embeds texts."""
        return embeds(self._store)

    def embed(self, questions: Mapping[str, str]) -> int:
        """Make questions searchable by meaning, at most `MOST_EMBEDDED` at once, and return how
        many of them still are not. `questions`: the name of its query by the text of each.
        """
        missing = self._missing(questions)
        now = [*islice(missing, MOST_EMBEDDED)]
        puts = [
            PutOp(self._meanings, key, {"text": text, "query": questions[text]}, ["text"])
            for key, text in now
        ]
        if puts:
            self._store.batch(puts)
        return sum(1 for _ in missing)

    def _missing(self, questions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the key and text of each question that is not stored for its query yet."""
        keyed = {_key_of(text, ""): text for text in questions}
        keys = [*keyed]
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            found = self._store.batch([GetOp(self._meanings, key) for key in some])
            for key, item in zip(some, found, strict=True):
                text = keyed[key]
                if not isinstance(item, Item) or item.value.get("query") != questions[text]:
                    yield key, text

    def near(self, question: str, limit: int, questions: Mapping[str, str]) -> list[str]:
        """Return the names of queries whose questions are nearest in meaning, the nearest first.
        `questions`: as for `embed`. What is stored of a question that is not among them is deleted.
        """
        if not question.strip():
            return []
        names: list[str] = []
        for item in self._store.search(self._meanings, query=question, limit=limit):
            if item.score is None:
                continue
            name = str(item.value.get("query"))
            if questions.get(str(item.value.get("text"))) == name:
                names.append(name)
            else:
                self._store.delete(self._meanings, item.key)
        return [*dict.fromkeys(names)]


def _key_of(question: str, sql: str, database: str = "") -> str:
    # A hash: of an encrypted store only values are encrypted.
    text = f"{question}\0{sql}" + (f"\0{database}" if database else "")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
