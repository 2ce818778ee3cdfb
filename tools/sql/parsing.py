"""Parse and write SQL within fixed limits of length, nesting and work. Only this module calls
sqlglot's parser and writer.

sqlglot tries to read a bracket after the name of a type first as a type and then as a call, and
does the same for everything inside the bracket. So each nested level of some 600 constructs, such
as `DATE(`, `STRUCT(`, `[` and `{'a':`, doubles the work: 131 characters took 12 s. sqlglot also
writes the arguments of some calls two or three times, such as `length(x, 1)` in DuckDB's SQL. So
the work itself is counted, in parsing and in writing.
"""

import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from types import FunctionType

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect as SqlglotDialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.generator import Generator
from sqlglot.parser import Parser
from sqlglot.parsers.base import BaseParser

from longtable.base.errors import ConfigError
from longtable.tools.engines.dialects import DEFAULT_DIALECT as DEFAULT_DIALECT
from longtable.tools.engines.dialects import DIALECTS
from longtable.tools.engines.dialects import DatePart as DatePart
from longtable.tools.engines.dialects import Dialect as Dialect
from longtable.tools.engines.dialects import dialect_of as dialect_of
from longtable.tools.sql.verdict import Place


class RefusedError(Exception):
    """A check failed; this error never leaves the wall. The cause is either at `place` in the
    model's text, or it is `node` in the checked tree.
    """

    def __init__(
        self,
        rule: str,
        reason: str,
        hint: str = "",
        *,
        place: tuple[int, int] | None = None,
        node: exp.Expr | None = None,
        nearest: Sequence[str] = (),
    ) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.hint = hint
        self.place = place
        self.node = node
        self.nearest = tuple(nearest)


MAX_SQL_CHARS = 50_000
"""The most characters of a query as the model sends it."""
MAX_WRITTEN_CHARS = 80_000
"""The most characters of a query as it runs. This is more than the model may send, because a list
of numbers gets a space after each comma.
"""
MAX_TOKENS = 25_000
"""The most tokens of a query. A list of 10,000 numbers has 20,000 tokens."""
MAX_DEPTH = 30
"""The most levels of nested brackets. At 36 to 60 levels the parser reaches Python's recursion
limit; how many depends on the caller's stack.
"""
FREE_STEPS = 4_000
STEPS_PER_TOKEN = 2
"""The steps that the parser may take, forward or back: `FREE_STEPS`, and `STEPS_PER_TOKEN` for each
token. 100,000 steps take about 0.5 s. Legal texts take 1 step for each token, and up to 400 more.
"""
SUBSCRIPT_STEPS = 4
"""The steps counted for a subscript, for each node before it, because sqlglot works out the type of
what comes before. 600 subscripts in a row took 4 s.
"""
STEPS_PER_NODE = 15
"""The steps that the writer may take for each node. Legal texts take up to 12."""

_WORDS = re.compile(r"""--[^\n]*|'[^']*'|"[^"]*"|\d+\.\d+|\w+|<>|[<>!]=|\|\||::|->>?|[^\w\s]""")
"""Each match is roughly one token. Finding 50,000 matches takes 5 ms, while the tokenizer needs 150
ms.
"""
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_STEPS = "longtable_steps_left"
_FEWER = "write it with fewer nested brackets"

# sqlglot reports what it cannot parse by a warning on top of the Command node that the wall
# refuses.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def require_plain_classes(parser: type[Parser]) -> None:
    """Raise `ConfigError` if sqlglot's classes are compiled ones, which allow no subclasses: then
    nothing could count the steps below.
    """
    if not isinstance(parser.parse, FunctionType):
        raise ConfigError(
            "the package sqlglotc is installed, and this program needs the classes of sqlglot as"
            " Python code: run pip uninstall sqlglotc, or use an environment without it"
        )


require_plain_classes(Parser)


class _CountingParser(Parser):
    """A parser that stops when no steps are left. The steps are kept in the dialect, so that
    sqlglot's further parsers for types and hints in the same text use up the same steps.
    """

    def _advance(self, times: int = 1) -> None:
        self._spend(1)
        super()._advance(times)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        if this is not None and self._curr.token_type == TokenType.L_BRACKET:
            self._spend(SUBSCRIPT_STEPS * len(nodes_of(this)))
        return super()._parse_bracket(this)

    def _spend(self, steps: int) -> None:
        self.dialect.settings[_STEPS] -= steps
        if self.dialect.settings[_STEPS] < 0:
            reason = "the SQL takes too long to parse: too many brackets within each other"
            raise RefusedError(
                "depth", reason, _FEWER, place=line_and_column(self.sql, self._curr.start)
            )


class _CountingGenerator(Generator):
    """A writer that stops when no steps are left in the dialect, or when the text gets too long to
    run.
    """

    def sql(
        self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True
    ) -> str:
        self.dialect.settings[_STEPS] -= 1
        text = super().sql(expression, key, comment)
        if self.dialect.settings[_STEPS] < 0 or len(text) > MAX_WRITTEN_CHARS:
            reason = "the SQL gets too long when it is written out for the database"
            raise RefusedError(
                "length",
                reason,
                _FEWER if self.dialect.settings[_STEPS] < 0 else "send a shorter query",
            )
        return text


@cache
def _counting(parser: type[Parser]) -> type[BaseParser]:
    return type(f"Counting{parser.__name__}", (_CountingParser, parser), {})


@cache
def _counting_generator(generator: type[Generator], dialect: str) -> type[Generator]:
    names = dialect_of(dialect).function_names if dialect in DIALECTS else {}
    forms = dialect_of(dialect).function_forms if dialect in DIALECTS else {}
    spelled = {getattr(exp, kind): _spelling(name) for kind, name in names.items()}
    spelled |= {getattr(exp, kind): _form(text) for kind, text in forms.items()}
    members = {"TRANSFORMS": {**generator.TRANSFORMS, **spelled}}
    return type(f"Counting{generator.__name__}", (_CountingGenerator, generator), members)


def _spelling(name: str) -> Callable[[Generator, exp.Expr], str]:
    return lambda writer, node: writer.func(name, *(node.expressions or [node.this]))


def _form(text: str) -> Callable[[Generator, exp.Expr], str]:
    """Return a writer of calls with two arguments. Others have no form, which is an error for
    whoever wants an exact text.
    """

    def write(writer: Generator, node: exp.Expr) -> str:
        for name, value in node.args.items():
            more = value and isinstance(value, exp.Expr | list)
            if more and name not in ("this", "expression"):
                writer.unsupported(f"{node.key} with more arguments")
        expression = node.args.get("expression")
        return text.format(this=writer.sql(node, "this"), expression=writer.sql(expression))

    return write


def line_and_column(sql: str, offset: int) -> Place:
    """Return line and column of a character in `sql`, both counted from 1. `offset` is the number
    of the character, counted from 0.
    """
    return sql.count("\n", 0, offset) + 1, offset - sql.rfind("\n", 0, offset)


def tokens_of(sql: str, dialect: str, *, most: int = MAX_SQL_CHARS) -> list[Token]:
    """Return the tokens of a text. If `dialect` is "", no particular dialect is assumed. Raises
    `RefusedError` if the text has more than `most` characters or cannot be read.
    """
    if len(sql) > most:
        reason = f"the SQL has {len(sql):,} characters, {most:,} are allowed"
        raise RefusedError(
            "length", reason, "send a shorter query", place=line_and_column(sql, most)
        )
    if "\x00" in sql:
        place = line_and_column(sql, sql.index("\x00"))
        raise RefusedError(
            "syntax", "the SQL holds a NUL character", "send plain text", place=place
        )
    if len(sql) > MAX_TOKENS and (
        over := next(islice(_WORDS.finditer(sql), MAX_TOKENS, None), None)
    ):
        raise _too_many_words(sql, over.start())
    try:
        tokens = SqlglotDialect.get_or_raise(dialect).tokenize(sql)
    except Exception as error:
        # Sqlglot fails on odd texts in other ways than by its own error, at times by an assertion.
        raise _unreadable(error, dialect) from error
    if len(tokens) > MAX_TOKENS:
        raise _too_many_words(sql, tokens[MAX_TOKENS].start)
    return tokens


def statements(sql: str, dialect: str, *, tokens: list[Token] | None = None) -> list[exp.Expr]:
    """Return the tree of each statement. A caller that already has the tokens of the text passes
    them as `tokens`. Raises `RefusedError` if the text is over a limit or cannot be parsed.
    """
    tokens = tokens_of(sql, dialect) if tokens is None else tokens
    _check_depth(sql, tokens)
    parsing = SqlglotDialect.get_or_raise(dialect)
    parsing.parser_class = _counting(type(parsing).parser_class)
    parsing.settings[_STEPS] = FREE_STEPS + STEPS_PER_TOKEN * len(tokens)
    if dialect in DIALECTS and dialect_of(dialect).bare_unions:
        parsing.SET_OP_DISTINCT_BY_DEFAULT = dict.fromkeys(
            (exp.Union, exp.Intersect, exp.Except), True
        )
    try:
        trees = parsing.parser().parse(tokens, sql)
    except ParseError as error:
        raise RefusedError(
            "syntax", _message(error), _send(dialect), place=_place(error)
        ) from error
    except RecursionError as error:
        raise RefusedError("depth", "the SQL is nested too deeply", _FEWER) from error
    except RefusedError:
        raise
    except Exception as error:  # as above
        raise _unreadable(error, dialect) from error
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


def statement(sql: str, dialect: str) -> exp.Expr:
    """Return the tree of the first statement of a text that may run. Raises the errors of
    `statements`, and `RefusedError` if the text has no statement.
    """
    tokens = tokens_of(sql, dialect, most=MAX_WRITTEN_CHARS)
    trees = statements(sql, dialect, tokens=tokens)
    if not trees:
        raise RefusedError("statement", "there is no statement in the text", "send one SELECT")
    return trees[0]


@cache
def _with_backticks(dialect: str) -> type[SqlglotDialect]:
    """Return a dialect that writes names in backticks, as `Dialect.backticks` asks."""
    base = type(SqlglotDialect.get_or_raise(dialect))
    # sqlglot writes the first kind of quotes in this list.
    identifiers: list[str | tuple[str, str]] = ["`", ("[", "]"), '"']
    tokenizer = type("Tokenizer", (base.tokenizer_class,), {"IDENTIFIERS": identifiers})
    return type("Backticks", (base,), {"Tokenizer": tokenizer})


def written(
    tree: exp.Expr,
    dialect: str,
    *,
    exact: bool = False,
    backticks: bool = False,
    keep: bool = True,
) -> str:
    """Return the text of a tree, without comments. Raises `RefusedError` if it is too long.

    With `exact`, sqlglot's `UnsupportedError` is raised if the dialect cannot express the tree.
    With `backticks`, names are written in backticks. Without `keep`, the tree cannot be
    used afterwards, because writing changes it; the copy that `keep` makes takes as long as
    parsing.
    """
    writing = _with_backticks(dialect)() if backticks else SqlglotDialect.get_or_raise(dialect)
    writing.generator_class = _counting_generator(type(writing).generator_class, dialect)
    writing.settings[_STEPS] = FREE_STEPS + STEPS_PER_NODE * len(nodes_of(tree))
    level = ErrorLevel.RAISE if exact else ErrorLevel.IGNORE
    return writing.generate(tree, copy=keep, comments=False, unsupported_level=level)


def nodes_of(tree: exp.Expr) -> list[exp.Expr]:
    """Return all nodes of a tree, breadth first. This takes a third of the time of
    `tree.walk()`.
    """
    nodes = [tree]
    for node in nodes:
        nodes += children_of(node)
    return nodes


def children_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the nodes right below a node, in the order of its arguments."""
    children: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            children.append(value)
        elif isinstance(value, list):
            children += [child for child in value if isinstance(child, exp.Expr)]
    return children


def _too_many_words(sql: str, offset: int) -> RefusedError:
    reason = f"the SQL has more than {MAX_TOKENS:,} words and signs"
    return RefusedError(
        "length", reason, "send a shorter query", place=line_and_column(sql, offset)
    )


def _check_depth(sql: str, tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
        elif token.token_type in _CLOSING:
            depth = max(0, depth - 1)
        if depth > MAX_DEPTH:
            reason = (
                f"the SQL is nested too deeply: more than {MAX_DEPTH} brackets within each other"
            )
            raise RefusedError(
                "depth", reason, f"{_FEWER}, or with WITH", place=line_and_column(sql, token.start)
            )


def _unreadable(error: Exception, dialect: str) -> RefusedError:
    why = first_line(error) or type(error).__name__
    return RefusedError("syntax", f"the SQL cannot be read: {why}", _send(dialect))


def _send(dialect: str) -> str:
    return f"send one {dialect} SELECT".replace("  ", " ")


def _message(error: ParseError) -> str:
    detail = error.errors[0] if error.errors else {}
    place_found = _place(error)
    place = f" at line {place_found[0]}, column {place_found[1]}" if place_found else ""
    near = f", near {str(detail['highlight'])[:40]!r}" if detail.get("highlight") else ""
    return (
        f"syntax error{place}{near}:"
        f" {str(detail.get('description') or first_line(error)).rstrip('.')}"
    )


def _place(error: ParseError) -> Place | None:
    detail = error.errors[0] if error.errors else {}
    # sqlglot gives the column where the word ends.
    return (
        (detail["line"], max(1, detail["col"] - len(str(detail.get("highlight") or " ")) + 1))
        if detail.get("line")
        else None
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return str(error).strip().split("\n", 1)[0]
