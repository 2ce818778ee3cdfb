"""The question that a query must answer, and the meaning of words in it."""

import re
from dataclasses import dataclass
from functools import cached_property

from longtable.checks.vocabulary import PHRASES
from longtable.tools.schema.schema_index import singular


@dataclass(frozen=True)
class Question:
    """A question. The text is in lower case, and empty if there is no question."""

    text: str

    def says(self, meaning: str) -> list[str]:
        """Return the words of the question that match this meaning. The meanings are listed in
        words.toml.
        """
        matches = PHRASES[meaning].finditer(self.text)
        return [match[match.lastindex or 0] for match in matches]

    @cached_property
    def words(self) -> set[str]:
        """Return the words of the question in Latin letters, in the singular."""
        return {singular(word) for word in re.findall("[a-z]+", self.text)}

    def names(self, term: str) -> bool:
        """Return whether the question contains this part of a column's name. The part counts as
        contained if it is a word of the question, or short for one, such as `dep` for `departure`.
        """
        if term in self.words:
            return True
        if len(term) in (3, 4) and any(word.startswith(term) for word in self.words):
            return True
        return not term.isascii() and term in self.text
