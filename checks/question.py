"""The question that a query answers, and what its words mean."""

import re
from dataclasses import dataclass
from functools import cached_property

from longtable.checks.vocabulary import PHRASES
from longtable.tools.schema.schema_index import singular


@dataclass(frozen=True)
class Question:
    """A question; its text is folded, and empty if nobody asked."""

    text: str

    def says(self, meaning: str) -> list[str]:
        """Return the words of the question that have a meaning of words.toml."""
        matches = PHRASES[meaning].finditer(self.text)
        return [match[match.lastindex or 0] for match in matches]

    @cached_property
    def words(self) -> set[str]:
        """Return its Latin words, singular."""
        return {singular(word) for word in re.findall("[a-z]+", self.text)}

    def names(self, term: str) -> bool:
        """Return whether the question has a part of a name as a word, or a word that it is short
        for, as `dep` is for `departure`.
        """
        if term in self.words:
            return True
        if len(term) in (3, 4) and any(word.startswith(term) for word in self.words):
            return True
        return not term.isascii() and term in self.text
