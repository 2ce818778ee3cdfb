"""What a knowledge folder keeps in a LangGraph store: checked queries that the folder itself cannot
hold, and the questions of its queries by meaning, if the store embeds texts.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from longtable.base.stored import KNOWLEDGE, MEANINGS
from longtable.store.records.retired_store import embeds

PAGE = 500
MOST_KEPT = 20_000
MOST_EMBEDDED = 100
"""Questions that are embedded at once: a turn waits for them."""


class KnowledgeRecords:
    """The records of one knowledge folder, known by its path. All threads of a store share them."""

    def __init__(self, store: BaseStore, folder: Path) -> None:
        digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        self._store = store
        self._kept = (*KNOWLEDGE, digest)
        self._meanings = (*MEANINGS, digest)

    def keep(self, name: str, fields: Mapping[str, Any]) -> None:
        """Keep the fields of a query under its name."""
        self._store.put(self._kept, name, {**fields}, index=False)

    def kept(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the name and fields of each query that is kept, by name."""
        items: list[SearchItem] = []
        for start in range(0, MOST_KEPT, PAGE):
            page = self._store.search(self._kept, limit=PAGE, offset=start)
            items += page
            if len(page) < PAGE:
                break
        return sorted(((item.key, item.value) for item in items), key=lambda pair: pair[0])

    def forget(self, name: str) -> bool:
        """Delete the query of this name. Return False if there is none."""
        if self._store.get(self._kept, name) is None:
            return False
        self._store.delete(self._kept, name)
        return True

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
        keyed = {hashlib.sha256(text.encode()).hexdigest(): text for text in questions}
        keys = [*keyed]
        for start in range(0, len(keys), PAGE):
            some = keys[start : start + PAGE]
            found = self._store.batch([GetOp(self._meanings, key) for key in some])
            for key, item in zip(some, found, strict=True):
                text = keyed[key]
                if not isinstance(item, Item) or item.value["query"] != questions[text]:
                    yield key, text

    def near(self, question: str, limit: int) -> list[tuple[str, str]]:
        """Return the text and the query's name of those questions that are nearest in meaning, the
        nearest first. Some of their queries may be gone by now.
        """
        if not question.strip():
            return []
        items = self._store.search(self._meanings, query=question, limit=limit)
        scored = [item.value for item in items if item.score is not None]
        return [(value["text"], value["query"]) for value in scored]
