"""Find the place of an error in the SQL that a model wrote, and the name that was probably meant.

The text that runs is written from the checked tree. So an engine reports a place in that text, and
the same place must be found again in the model's own text.
"""

import re

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from longtable.base.errors import DatabaseError, QueryFailedError, QueryRefusedError
from longtable.tools.catalog import Catalog, each_column, fold, nearest, quoted
from longtable.tools.cells import clip
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.parsing import (
    MAX_WRITTEN_CHARS,
    RefusedError,
    line_and_column,
    statement,
    statements,
    tokens_of,
    written,
)
from longtable.tools.sql.verdict import Place, Verdict, without_values


def place_of(node: exp.Expr, sql: str) -> Place | None:
    """Return the place in `sql` where a node of its tree begins, None if sqlglot does not
    know it.
    """
    start = node.meta.get("start")
    return line_and_column(sql, start) if isinstance(start, int) and start < len(sql) else None


def place_of_fault(node: exp.Expr, ran: str, asked: str, dialect: str) -> Place | None:
    """Return the approximate place where a node begins in `asked`, the model's text. The node
    belongs to the tree of `ran`. Return None if there is no such place.
    """
    start = node.meta.get("start")
    if not isinstance(start, int):
        start = _start_of_keyword(node, ran, dialect)
    if start is None:
        start = min(
            (part.meta["start"] for part in node.walk() if isinstance(part.meta.get("start"), int)),
            default=None,
        )
    if start is None:
        return None
    return (
        line_and_column(asked, start)
        if ran == asked
        else place_as_asked(ran, start, asked, dialect)
    )


def _start_of_keyword(node: exp.Expr, sql: str, dialect: str) -> int | None:
    """Return where the first word of a node stands in `sql`, None unless the text has this word
    exactly once. sqlglot itself knows the place of only a few nodes.
    """
    try:
        first = fold(next(iter(written(node, dialect).split(maxsplit=1)), ""))
        starts = [
            token.start
            for token in tokens_of(sql, dialect, most=MAX_WRITTEN_CHARS)
            if first and fold(sql[token.start : token.start + len(first)]) == first
        ]
    except (SqlglotError, RefusedError, ValueError, RecursionError):
        return None
    return starts[0] if len(starts) == 1 else None


def place_of_start(sql: str, dialect: str, *, statement: int = 0) -> Place:
    """Return the place of the first word of a statement. `statement` is the number of the
    statement, from 0.
    """
    try:
        tokens = tokens_of(sql, dialect)
    except RefusedError:
        tokens = []
    before = [None, *tokens]
    starts = [
        token.start
        for last, token in zip(before, tokens, strict=False)
        if token.token_type != TokenType.SEMICOLON
        and (last is None or last.token_type == TokenType.SEMICOLON)
    ]
    return line_and_column(
        sql, starts[statement] if statement < len(starts) else len(sql) - len(sql.lstrip())
    )


def place_of_column(name: str, tree: exp.Expr, sql: str) -> Place | None:
    """Return the place where a column is first named, None if it is not named. `name` is the
    column's name as the engine reports it, with the table if the engine names one.
    """
    table, _, column = name.rpartition(".")
    last = None
    for node in tree.find_all(exp.Column, bfs=False):
        if not isinstance(node.this, exp.Identifier):
            continue
        if not node.table and fold(node.name) == fold(name):  # a name may hold dots
            return place_of(node.this, sql)
        if fold(node.name) != fold(column.strip('"')):
            continue
        if fold(node.table) == fold(table.strip('"')):
            return place_of(node.this, sql)
        last = last or place_of(node.this, sql)
    return last


def place_as_asked(ran: str, offset: int, asked: str, dialect: str) -> Place | None:
    """Return the place in `asked` of the word that stands at `offset` in `ran`, the text that ran.

    The word may occur several times, so its occurrences are counted in both texts. If the two
    numbers differ, None is returned.
    """
    try:
        run_tokens = tokens_of(ran, dialect, most=MAX_WRITTEN_CHARS)
        asked_tokens = tokens_of(asked, dialect)
    except RefusedError:
        return None
    at = next((token for token in run_tokens if token.start <= offset <= token.end), None)
    if at is None:
        return None
    same = [token.start for token in run_tokens if _word(token) == _word(at)]
    there = [token.start for token in asked_tokens if _word(token) == _word(at)]
    return line_and_column(asked, there[same.index(at.start)]) if len(same) == len(there) else None


def place_of_word(word: str, asked: str, dialect: str) -> Place | None:
    """Return the place of a word, None unless the text has this word exactly once."""
    try:
        starts = [
            token.start for token in tokens_of(asked, dialect) if fold(token.text) == fold(word)
        ]
    except RefusedError:
        return None
    return line_and_column(asked, starts[0]) if len(starts) == 1 else None


def _word(token: Token) -> tuple[object, str]:
    return token.token_type, fold(token.text)


_UNKNOWN_COLUMN = (
    re.compile(r"no such column: (?P<name>.+)$"),
    re.compile(r'Referenced column "(?P<name>[^"]+)"'),
    re.compile(r'does not have a column named "(?P<name>[^"]+)"'),
    re.compile(r'Column "(?P<name>[^"]+)" in .* not found'),
    re.compile(r'Column with name "?(?P<name>[^"\s]+)"? does not exist'),
    re.compile(r'column "(?P<name>[^"]+)" (?:does not exist|must appear)'),
    re.compile(r"column (?P<name>\S+) does not exist"),
    re.compile(r"Unknown column '(?P<name>[^']+)' in"),
    re.compile(r"Unknown expression(?: or function)? identifier `(?P<name>[^`]+)`"),
    re.compile(r"Identifier '(?P<name>[^']+)' cannot be resolved"),
)

_AMBIGUOUS = re.compile(
    r"(?:ambiguous column name: |Column '(?=[^']+' in .* is ambiguous))(?P<name>[^\s']+)"
)
_NO_SUCH_SIGNATURE = re.compile(r"function \w+\(.*\) does not exist")


def explained(
    error: QueryFailedError | QueryRefusedError,
    *,
    sql: str,
    verdict: Verdict,
    dialect: str,
    catalog: Catalog,
) -> DatabaseError:
    """Return an engine's error with the place of the fault in the model's text, and the name that
    was probably meant.
    """
    if isinstance(error, QueryFailedError):
        if verdict.masks or verdict.reads_some_rows:
            error = without_values(error, sql)
        return add_hints(
            error,
            asked=sql,
            ran=verdict.sql,
            dialect=dialect,
            catalog=catalog,
            tables=verdict.tables,
        )
    # The hint may hold the count that was too large.
    is_closed = verdict.masks or verdict.reads_some_rows
    hint = "write it another way" if is_closed else error.hint
    line, column = place_of_start(sql, dialect)  # an engine refuses the whole text, at no one place
    return QueryRefusedError(error.reason, rule=error.rule, hint=hint, line=line, column=column)


def add_hints(
    error: QueryFailedError,
    *,
    asked: str,
    ran: str,
    dialect: str,
    catalog: Catalog,
    tables: tuple[str, ...],
) -> QueryFailedError:
    """Return the error with help for its reader: the place of the fault in `asked`, the names that
    were probably meant, and a hint.
    """
    parts = next(
        (match for pattern in _UNKNOWN_COLUMN if (match := pattern.search(error.reason))), None
    )
    place = _place(error, parts["name"] if parts else "", asked=asked, ran=ran, dialect=dialect)
    hint = error.hint
    close = error.nearest
    if not hint and _NO_SUCH_SIGNATURE.match(error.reason):
        hint = "cast the arguments to what the function takes, as in round(CAST(x AS numeric), 2)"
    elif not hint and parts is not None and error.problem != "ambiguous":
        in_quotes = re.search(f'(?<![."]){re.escape(quoted(parts["name"]))}', asked) is not None
        unknown = parts["name"] if in_quotes else parts["name"].rpartition(".")[2].strip('"')
        hint, close = column_hint(unknown, sql=ran, dialect=dialect, catalog=catalog, tables=tables)
        if in_quotes and error.problem == "unknown_name":
            text = clip(unknown, 60).replace("'", "''")
            hint += f"; if text is meant, it stands in single quotes: '{text}'"
    elif not hint and error.problem == "ambiguous":
        hint = "name its table before it, as in t.name"
    line, column = place or (None, None)
    return QueryFailedError(
        error.reason, hint=hint, problem=error.problem, line=line, column=column, nearest=close
    )


def _place(
    error: QueryFailedError, name: str, *, asked: str, ran: str, dialect: str
) -> Place | None:
    # A column by its name first: the engines point now at it, now at the table before it.
    name = name or (ambiguous["name"] if (ambiguous := _AMBIGUOUS.search(error.reason)) else "")
    if name:
        trees = statements(asked, dialect)  # a semicolon may stand before the query
        if (
            place := next(
                (place for tree in trees if (place := place_of_column(name, tree, asked))), None
            )
        ) is not None:
            return place
    offset = getattr(error, "offset", None)
    word = getattr(error, "word", "")
    if offset is not None:
        return place_as_asked(ran, offset, asked, dialect)
    return place_of_word(word, asked, dialect) if word else None


def column_hint(
    unknown: str, *, sql: str, dialect: str, catalog: Catalog, tables: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Return a hint on an unknown column, and the names that were probably meant. The names most
    like `unknown` come from the query's own tables first, then from other tables. If none is
    similar, the hint lists the columns of the query's only table.
    """
    used = [table for name in tables if (table := catalog.find(name)) is not None]
    here = [column.name for _, column in each_column(used)]
    here += [alias.alias for alias in statement(sql, dialect).find_all(exp.Alias) if alias.alias]
    if dialect_of(dialect).exact_names and (
        same := [name for name in here if name.casefold() == unknown.casefold() and name != unknown]
    ):
        return f"a name with capitals needs its quotes: {quoted(same[0])}", (quoted(same[0]),)
    if close := [name for name in nearest(unknown, here) if name.casefold() != unknown.casefold()]:
        return f"nearest columns: {', '.join(close)}", tuple(close)
    elsewhere = [
        f"{table.name}.{column.name}"
        for table, column in each_column(catalog.tables)
        if column.name.casefold() == unknown.casefold()
    ]
    if elsewhere:
        return f"there is such a column in: {', '.join(elsewhere[:5])}", tuple(elsewhere[:5])
    if len(used) == 1:
        return (
            (
                f"columns of {used[0].name}:"
                f" {', '.join(column.name for column in used[0].columns[:40])}"
            ),
            (),
        )
    return "see describe_tables for the columns", ()
