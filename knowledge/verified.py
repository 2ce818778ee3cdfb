"""Compare SQL with verified queries: equal but for the values of parameters such as `:month`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase

from sqlglot import Token, TokenType

from longtable.knowledge.entries import VerifiedQuery
from longtable.tools.sql.parsing import RefusedError, tokens_of

ANY = "\0value"
"""Stands for each value in the shape of a query; no text of a query equals it."""
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_VALUES = {TokenType.NUMBER, TokenType.STRING}
_OPERANDS = {
    *_VALUES,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
}
"""After one of these a minus subtracts and a colon slices; elsewhere a minus belongs to the number
behind it, and a colon begins a parameter."""

_DAY = "'2000-01-01'"
_SAMPLES = {
    TokenType.DATE: _DAY,
    TokenType.DATETIME: _DAY,
    TokenType.TIMESTAMP: _DAY,
    TokenType.TIMESTAMPNTZ: _DAY,
    TokenType.TIMESTAMPTZ: _DAY,
    TokenType.TIMESTAMPLTZ: _DAY,
    TokenType.TIME: "'00:00:00'",
    TokenType.TIMETZ: "'00:00:00'",
    TokenType.INTERVAL: "'1'",
}
"""A value to plan with after the name of a type, as in `DATE :day`, where NULL is no value."""
_OTHER_TYPES = {
    TokenType.BIGINT,
    TokenType.BOOLEAN,
    TokenType.DECIMAL,
    TokenType.DOUBLE,
    TokenType.FLOAT,
    TokenType.INET,
    TokenType.INT,
    TokenType.JSON,
    TokenType.JSONB,
    TokenType.TEXT,
    TokenType.UUID,
    TokenType.VARCHAR,
}
"""Types after which no parameter can be planned: a value for one engine is none for another."""
_ZONED = ["WITH", "TIME", "ZONE"]
NULL = "NULL"
_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def tables_named(sql: str, dialect: str) -> list[str]:
    """Return the tables before the dots in a fragment of SQL. Raises `RefusedError` if its words
    cannot be told apart.
    """
    tokens = tokens_of(sql, dialect)
    names: list[str] = []
    for token, following in pairwise(tokens):
        if token.token_type in _NAMES and following.token_type is TokenType.DOT:
            names.append(token.text)
    return [*dict.fromkeys(names)]


@dataclass(frozen=True)
class Parameter:
    """A parameter in a query, such as `:month`."""

    name: str


Value = str | Parameter


@dataclass(frozen=True)
class Shape:
    """A query's words, with `ANY` in place of each value. Words without quotes are in lower case;
    whatever stands in quotes is as it was written.
    """

    words: tuple[str, ...]
    values: tuple[Value, ...]

    def allows(self, values: Sequence[Value]) -> bool:
        """Return whether these values are the query's own, but for its parameters. A parameter that
        stands there twice has one value.
        """
        filled: dict[str, Value] = {}
        for own, value in zip(self.values, values, strict=True):
            if isinstance(own, Parameter):
                own = filled.setdefault(own.name, value)
            if own != value:
                return False
        return True


def shape_of(sql: str, dialect: str) -> Shape:
    """Return the shape of a query. The case of words, blanks, comments and a semicolon at the end
    do not count.

    Raises `RefusedError` for SQL that cannot be split into words.
    """
    words: list[str] = []
    values: list[Value] = []
    for word in _words(sql, tokens_of(sql, dialect)):
        if isinstance(word, _ValueWord):
            words.append(ANY)
            values.append(word.value)
        else:
            words.append(word)
    while words and words[-1] == ";":
        words.pop()
    return Shape(tuple(words), tuple(values))


@dataclass(frozen=True)
class _ValueWord:
    """A word that is a value."""

    value: Value


def _words(sql: str, tokens: Sequence[Token]) -> Iterator["str | _ValueWord"]:
    """Yield each word of a query."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        written = sql[token.start : token.end + 1]
        if _is_parameter(tokens, place):
            yield _ValueWord(Parameter(tokens[place + 1].text))
            place += 2
        elif _is_sign(tokens, place):
            yield _ValueWord(f"-{tokens[place + 1].text}")
            place += 2
        else:
            is_plain = written == token.text
            # Engines fold at least ASCII; "straße" and "strasse" are two names to all of them.
            word = written.translate(_ASCII_LOWER) if is_plain else written
            yield _ValueWord(written) if token.token_type in _VALUES else word
            place += 1


def _is_parameter(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a colon begins a parameter, and not a slice or a field's value."""
    if tokens[place].token_type != TokenType.COLON or place + 1 == len(tokens):
        return False
    following = tokens[place + 1]
    if following.start != tokens[place].end + 1 or not following.text.isidentifier():
        return False
    if _sample(tokens, place) != NULL:
        return True
    before = tokens[place - 1].token_type if place else None
    return before not in {*_OPERANDS, *_SAMPLES, TokenType.L_BRACKET}


def _sample(tokens: Sequence[Token], place: int) -> str:
    """Return a value to plan with in place of the parameter that begins here."""
    before = place - 1
    if place >= 4 and [token.text.upper() for token in tokens[place - 3 : place]] == _ZONED:
        before = place - 4  # TIMESTAMP WITH TIME ZONE :moment
    if before < 0 or tokens[place - 1].end + 1 == tokens[place].start:
        return NULL  # without a blank it is a slice, such as [date:last]
    return _SAMPLES.get(tokens[before].token_type, NULL)


def _is_sign(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a minus belongs to the number behind it."""
    if tokens[place].token_type != TokenType.DASH or place + 1 == len(tokens):
        return False
    if tokens[place + 1].token_type != TokenType.NUMBER:
        return False
    return place == 0 or tokens[place - 1].token_type not in _OPERANDS


def parameters_of(sql: str, dialect: str) -> list[str]:
    """Return the names of a query's parameters, each once. Raises `RefusedError` as `shape_of`."""
    tokens = tokens_of(sql, dialect)
    places = [place for place in range(len(tokens)) if _is_parameter(tokens, place)]
    return [*dict.fromkeys(tokens[place + 1].text for place in places)]


def with_nulls(sql: str, dialect: str) -> str:
    """Return a query with NULL for each parameter, so that an engine can plan it. After the name of
    a type, as in `DATE :day`, it is a value of that type.
    """
    tokens = tokens_of(sql, dialect)
    parts: list[str] = []
    start = 0
    for place in range(len(tokens)):
        if _is_parameter(tokens, place):
            parts += [sql[start : tokens[place].start], _sample(tokens, place)]
            start = tokens[place + 1].end + 1
    return "".join([*parts, sql[start:]])


def cast_advice(sql: str, dialect: str) -> str:
    """Return how to write a parameter that stands after the name of a type and cannot be planned
    there, "" if there is none. Raises `RefusedError` as `shape_of`.
    """
    tokens = tokens_of(sql, dialect)
    for place in range(1, len(tokens)):
        kind = tokens[place - 1]
        if kind.token_type in _OTHER_TYPES and _is_parameter(tokens, place):
            parameter = f":{tokens[place + 1].text}"
            return f"for {kind.text} {parameter} write CAST({parameter} AS {kind.text})"
    return ""


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
