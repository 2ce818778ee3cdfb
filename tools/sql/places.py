"""Say where in a query something stands: line and column of the text as it was asked, though the engine read another.

What runs is written anew from the checked tree, so an engine's place is a place in a text that nobody sent.
"""

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from longtable.tools.catalog import fold
from longtable.tools.sql.parsing import Place, line_and_column, tokens_of, written
from longtable.tools.sql.refusal import RefusedError


def place_of(node: exp.Expr, sql: str) -> Place | None:
    """Return where a node of this text's tree begins, None for one that has no place of its own."""
    start = node.meta.get("start")
    return line_and_column(sql, start) if isinstance(start, int) and start < len(sql) else None


def place_of_fault(node: exp.Expr, ran: str, asked: str, dialect: str) -> Place | None:
    """Return where a node of the tree of `ran` begins in the text that was asked, as near as can be told."""
    start = node.meta.get("start")
    if not isinstance(start, int):
        start = _start_of_keyword(node, ran, dialect)
    if start is None:
        start = min((part.meta["start"] for part in node.walk() if isinstance(part.meta.get("start"), int)), default=None)
    if start is None:
        return None
    return line_and_column(asked, start) if ran == asked else place_as_asked(ran, start, asked, dialect)


def _start_of_keyword(node: exp.Expr, sql: str, dialect: str) -> int | None:
    """Return where the word stands that a node begins with, where the text holds it once: sqlglot gives few nodes a place."""
    try:
        first = written(node, dialect).split(maxsplit=1)[:1]
        found = [token.start for token in tokens_of(sql, dialect) if first and fold(sql[token.start :]).startswith(fold(first[0]))]
    except (SqlglotError, RefusedError, ValueError, RecursionError):
        return None
    return found[0] if len(found) == 1 else None


def place_of_start(sql: str, dialect: str, *, statement: int = 0) -> Place:
    """Return where a statement's first word stands, the first one's by default."""
    try:
        tokens = tokens_of(sql, dialect)
    except RefusedError:
        tokens = []
    before = [None, *tokens]
    starts = [
        token.start
        for last, token in zip(before, tokens, strict=False)
        if token.token_type != TokenType.SEMICOLON and (last is None or last.token_type == TokenType.SEMICOLON)
    ]
    return line_and_column(sql, starts[statement] if statement < len(starts) else len(sql) - len(sql.lstrip()))


def place_of_column(name: str, tree: exp.Expr, sql: str) -> Place | None:
    """Return where a column is first named, `name` as the engine writes it: with its table where the text says one."""
    table, _, column = name.rpartition(".")
    found = None
    for node in tree.find_all(exp.Column, bfs=False):
        if not isinstance(node.this, exp.Identifier):
            continue
        if not node.table and fold(node.name) == fold(name):  # a name may hold dots
            return place_of(node.this, sql)
        if fold(node.name) != fold(column.strip('"')):
            continue
        if fold(node.table) == fold(table.strip('"')):
            return place_of(node.this, sql)
        found = found or place_of(node.this, sql)
    return found


def place_as_asked(ran: str, offset: int, asked: str, dialect: str) -> Place | None:
    """Return where the word at `offset` of the text that ran stands in the text that was asked.

    The same word may stand there several times: it is counted, and none is returned where the counts differ.
    """
    try:
        run_tokens, asked_tokens = tokens_of(ran, dialect), tokens_of(asked, dialect)
    except RefusedError:
        return None
    at = next((token for token in run_tokens if token.start <= offset <= token.end), None)
    if at is None:
        return None
    same = [token.start for token in run_tokens if _word(token) == _word(at)]
    there = [token.start for token in asked_tokens if _word(token) == _word(at)]
    return line_and_column(asked, there[same.index(at.start)]) if len(same) == len(there) else None


def place_of_word(word: str, asked: str, dialect: str) -> Place | None:
    """Return where a word stands that the text holds once."""
    try:
        found = [token.start for token in tokens_of(asked, dialect) if fold(token.text) == fold(word)]
    except RefusedError:
        return None
    return line_and_column(asked, found[0]) if len(found) == 1 else None


def _word(token: Token) -> tuple[object, str]:
    return token.token_type, fold(token.text)
