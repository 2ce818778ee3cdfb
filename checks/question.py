"""The question that a query answers, and the meaning of its words."""

import re
from dataclasses import dataclass
from functools import cached_property

from longtable.checks.vocabulary import PHRASES
from longtable.tools.schema.schema_index import singular


@dataclass(frozen=True)
class Question:
    """A question. Its text is folded, and empty if there is no question."""

    text: str

    def says(self, meaning: str) -> list[str]:
        """Return the words of the question that have this meaning in words.toml."""
        matches = PHRASES[meaning].finditer(self.text)
        return [match[match.lastindex or 0] for match in matches]

    @cached_property
    def words(self) -> set[str]:
        """Return its Latin words, in the singular."""
        return {singular(word) for word in re.findall("[a-z]+", self.text)}

    def names(self, term: str) -> bool:
        """Return whether the question has this part of a name as a word, or has a word that the
        part abbreviates, as `dep` does `departure`.
        """
        if term in self.words:
            return True
        if len(term) in (3, 4) and any(word.startswith(term) for word in self.words):
            return True
        return not term.isascii() and term in self.text
