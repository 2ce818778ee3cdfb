"""Compare SQL with verified queries: equal but for the values of parameters such as `:month`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from longtable.knowledge.entries import VerifiedQuery
from longtable.tools.sql.parsing import RefusedError, tokens_of

ANY = "?"
"""Stands for each value in the shape of a query."""
_VALUES = {TokenType.NUMBER, TokenType.STRING}
_OPERANDS = {
    *_VALUES,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
}
"""After one of these a minus subtracts; elsewhere it belongs to the number behind it."""


@dataclass(frozen=True)
class Shape:
    """A query's words, in lower case, with `ANY` in place of each value."""

    words: tuple[str, ...]
    values: tuple[str | None, ...]
    """The values in their order; None for a parameter."""

    def allows(self, values: Sequence[str | None]) -> bool:
        """Return whether these values are the query's own, but for its parameters."""
        return all(own in (None, value) for own, value in zip(self.values, values, strict=True))


def shape_of(sql: str, dialect: str) -> Shape:
    """Return the shape of a query. Case, blanks, comments and a semicolon at the end do not count.

    Raises `RefusedError` for SQL that cannot be split into words.
    """
    words: list[str] = []
    values: list[str | None] = []
    for word, value, is_value in _words(tokens_of(sql, dialect)):
        words.append(ANY if is_value else word)
        if is_value:
            values.append(value)
    while words and words[-1] == ";":
        words.pop()
    return Shape(tuple(words), tuple(values))


def _words(tokens: Sequence[Token]) -> Iterator[tuple[str, str | None, bool]]:
    """Yield each word of a query as its text, its value (None for a parameter), and whether it is a
    value at all.
    """
    place = 0
    while place < len(tokens):
        token = tokens[place]
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if _is_parameter(token, following):
            yield ANY, None, True
            place += 2
            continue
        if following is not None and _is_sign(tokens, place):
            yield ANY, f"-{following.text}", True
            place += 2
            continue
        kind = "text" if token.token_type == TokenType.STRING else ""
        is_value = token.token_type in _VALUES
        yield token.text.casefold(), f"{kind}{token.text}" if is_value else "", is_value
        place += 1


def _is_parameter(token: Token, following: Token | None) -> bool:
    return (
        token.token_type == TokenType.COLON
        and following is not None
        and following.start == token.end + 1
        and following.text.isidentifier()
    )


def _is_sign(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a minus belongs to the number behind it."""
    if tokens[place].token_type != TokenType.DASH:
        return False
    if tokens[place + 1].token_type != TokenType.NUMBER:
        return False
    return place == 0 or tokens[place - 1].token_type not in _OPERANDS


def parameters_of(sql: str, dialect: str) -> list[str]:
    """Return the names of a query's parameters, each once. Raises `RefusedError` as `shape_of`."""
    tokens = tokens_of(sql, dialect)
    pairs = zip(tokens, [*tokens[1:], None], strict=True)
    names = [
        following.text
        for token, following in pairs
        if following and _is_parameter(token, following)
    ]
    return [*dict.fromkeys(names)]


def with_nulls(sql: str, dialect: str) -> str:
    """Return a query with NULL for each parameter, so that an engine can plan it."""
    tokens = tokens_of(sql, dialect)
    parts: list[str] = []
    start = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if following and _is_parameter(token, following):
            parts += [sql[start : token.start], "NULL"]
            start = following.end + 1
    return "".join([*parts, sql[start:]])


class VerifiedQueries:
    """Finds the verified query that a query equals."""

    def __init__(self, queries: Sequence[VerifiedQuery], dialect: str) -> None:
        self._dialect = dialect
        self._by_words: dict[tuple[str, ...], list[tuple[Shape, VerifiedQuery]]] = {}
        for query in queries:
            try:
                shape = shape_of(query.sql, dialect)
            except RefusedError:
                continue  # no query that runs equals it
            self._by_words.setdefault(shape.words, []).append((shape, query))

    def equal_to(self, sql: str) -> VerifiedQuery | None:
        """Return the verified query that this one equals but for parameters, None if none does."""
        try:
            asked = shape_of(sql, self._dialect)
        except RefusedError:
            return None
        candidates = self._by_words.get(asked.words, ())
        return next((query for shape, query in candidates if shape.allows(asked.values)), None)
