"""Read the terms of a company's glossary, so that a question may use them like the names of the
schema: a condition becomes a flag of its table, a sum or an expression a column of numbers.

No word of English is added: what a term means is what its SQL says.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from sqlglot import exp

from longtable.analyst.lattice import Meaning
from longtable.analyst.lexicon import Token, costs, lemma, tokenize
from longtable.analyst.query import Func
from longtable.analyst.schema import FLAG_TYPE, Catalog, Column, CompanyTerm, Table
from longtable.knowledge.material import SQL_LINE
from longtable.tools.sql.parsing import RefusedError, statements, written

_NAME = r'(?:"(?:[^"\\\n]|\\[^\n])*"|[^",:()\n]+)'
_LINE = re.compile(
    rf"^- (?P<term>{_NAME})(?: \(also: (?P<also>{_NAME}(?:, {_NAME})*)\))?"
    rf"(?: \[database (?P<database>\w+)\])?:[^\n]*\n"
    rf"{SQL_LINE}(?P<sql>[^\n]+)$",
    re.MULTILINE,
)
_NAMES = re.compile(_NAME)
_OF_DATABASE = re.compile(r"(?P<name>.*) \[database (?P<database>\w+)\]")
_FUNCTIONS: dict[type[exp.Expr], Func] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
_NUMBER = "REAL"


@dataclass(frozen=True)
class GlossaryTerm:
    """A term as the material of a call writes it: its names, SQL for what it means, and the
    database that it is about, "" if there is only one.
    """

    names: tuple[str, ...]
    sql: str
    database: str = ""


def terms_in(material: str) -> tuple[GlossaryTerm, ...]:
    """Return the terms in the material of a knowledge folder that have SQL."""
    terms: list[GlossaryTerm] = []
    for line in _LINE.finditer(material):
        names = [_name(found[0]) for found in _NAMES.finditer(line["also"] or "")]
        term = line["term"]
        database = line["database"] or ""
        if placed := _OF_DATABASE.fullmatch(term):  # without other names it stands behind the term
            term = placed["name"]
            database = placed["database"]
        terms.append(GlossaryTerm((_name(term), *names), line["sql"].strip(), database))
    return tuple(terms)


def _name(shown: str) -> str:
    """Return a name as the glossary has it."""
    shown = shown.strip()
    return str(json.loads(shown)) if shown.startswith('"') else shown


def spoken_in(terms: Sequence[GlossaryTerm], question: str) -> list[str]:
    """Return the names of terms that stand in a question, in lower case."""
    lower = question.lower()
    names: list[str] = []
    for term in terms:
        names += [name.lower() for name in term.names if name.lower() in lower]
    return names


# -- what a term means -----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def with_terms(catalog: Catalog, terms: tuple[GlossaryTerm, ...]) -> Catalog:
    """Return the catalogue with the terms whose SQL it can explain. The others are left out, so
    that their words stay words that were not understood.
    """
    known: list[CompanyTerm] = []
    columns: dict[str, list[Column]] = {}
    for term in terms:
        found = _explained(catalog, term)
        if found is None:
            continue
        meaning, column = found
        known.append(meaning)
        if column is not None:
            columns.setdefault(column.table.casefold(), []).append(column)
    tables = {
        key: replace(table, computed=tuple(columns.get(key, ())))
        for key, table in catalog.tables.items()
    }
    return replace(catalog, tables=tables, terms=tuple(known))


def labels_of(catalog: Catalog) -> dict[str, str]:
    """Return the terms of a catalogue's computed columns, by the name of the column."""
    labels: dict[str, str] = {}
    for table in catalog.tables.values():
        labels |= {column.name: " ".join(column.words) for column in table.computed}
    return labels


def tables_of(catalog: Catalog) -> list[str]:
    """Return the tables that the terms of a catalogue belong to."""
    return list(dict.fromkeys(term.table for term in catalog.terms))


def _explained(catalog: Catalog, term: GlossaryTerm) -> tuple[CompanyTerm, Column | None] | None:
    """Return what a term means, with the computed column that it needs. None if the analyst cannot
    use its SQL.
    """
    spellings = tuple(spelling for name in term.names if (spelling := _spelling(name)))
    node = _expression(term.sql, catalog.dialect)
    if node is None or not spellings:
        return None
    pointed = _pointed_table(catalog, node)
    if pointed:
        return CompanyTerm(spellings, "table", pointed), None
    table = _owner(catalog, node)
    if table is None:
        return None
    if isinstance(node, exp.Column):
        column = table.by_name[node.name.casefold()]
        return CompanyTerm(spellings, "column", table.name, column.name), None
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        flag = _computed(table, node, FLAG_TYPE, term, catalog.dialect)
        return CompanyTerm(spellings, "condition", table.name, flag.name), flag
    function = _function_of(node)
    if function is not None:
        func, inner = function
        return _measure(catalog.dialect, term, spellings, table, func, inner)
    if node.find(exp.AggFunc, exp.Window):
        return None
    column = _computed(table, node, _NUMBER, term, catalog.dialect)
    return CompanyTerm(spellings, "column", table.name, column.name), column


def _measure(
    dialect: str,
    term: GlossaryTerm,
    spellings: tuple[tuple[str, ...], ...],
    table: Table,
    func: Func,
    inner: exp.Expr,
) -> tuple[CompanyTerm, Column | None] | None:
    """Return a term that is a function of a column, or of an expression."""
    if inner.find(exp.AggFunc):
        return None
    if isinstance(inner, exp.Column):
        name = table.by_name[inner.name.casefold()].name
        return CompanyTerm(spellings, "measure", table.name, name, func), None
    column = _computed(table, inner, _NUMBER, term, dialect)
    return CompanyTerm(spellings, "measure", table.name, column.name, func), column


def _function_of(node: exp.Expr) -> tuple[Func, exp.Expr] | None:
    """Return the function of an aggregate and what it computes over, None if the SQL is none.

    A sum or mean times a number is the sum or mean of each value times this number. One divided by
    a whole number is not: databases divide whole numbers without a remainder.
    """
    node = node.unnest()
    if node.find(exp.Distinct, exp.Window):
        return None
    if type(node) in _FUNCTIONS and isinstance(node.this, exp.Expr):
        return _FUNCTIONS[type(node)], node.this
    if not isinstance(node, exp.Mul | exp.Div):
        return None
    left = node.this.unnest()
    right = node.expression.unnest()
    if isinstance(node, exp.Mul) and isinstance(left, exp.Literal):
        left, right = right, left
    if not isinstance(left, exp.Sum | exp.Avg) or not isinstance(right, exp.Literal):
        return None
    if isinstance(node, exp.Div) and right.is_int:
        return None
    scaled = type(node)(this=exp.paren(left.this.copy()), expression=right.copy())
    return _FUNCTIONS[type(left)], scaled


def _expression(sql: str, dialect: str) -> exp.Expr | None:
    """Return the one expression that a fragment of SQL is, None if it is something else."""
    try:
        found = statements(f"SELECT {sql}", dialect)
    except (RefusedError, RecursionError):
        return None
    select = found[0] if len(found) == 1 else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return None
    if any(value for key, value in select.args.items() if key != "expressions"):
        return None
    return cast(exp.Expr, select.expressions[0].unalias().unnest())


def _outer_columns(node: exp.Expr) -> list[exp.Column]:
    """Return the columns of an expression, without those of its subqueries."""
    return [each for each in node.find_all(exp.Column) if each.parent_select is node.parent_select]


def _owner(catalog: Catalog, node: exp.Expr) -> Table | None:
    """Return the one table whose columns an expression uses, None if there are several or none."""
    owners: set[str] = set()
    for column in _outer_columns(node):
        table = _table_of(catalog, column)
        if table is None or column.name.casefold() not in table.by_name:
            return None
        owners.add(table.name)
    return catalog.table(owners.pop()) if len(owners) == 1 else None


def _table_of(catalog: Catalog, column: exp.Column) -> Table | None:
    if column.table:
        return catalog.table(column.table)
    name = column.name.casefold()
    holding = [table for table in catalog.plain if name in table.by_name]
    return holding[0] if len(holding) == 1 else None


def _pointed_table(catalog: Catalog, node: exp.Expr) -> str:
    """Return the table that a foreign key points at, if the expression only says that a row of it
    belongs to a row of another table, as `Employee.Id = Customer.RepId` does. Otherwise "".
    """
    if not isinstance(node, exp.EQ):
        return ""
    ends = [node.this, node.expression]
    if not all(isinstance(end, exp.Column) and end.table for end in ends):
        return ""
    sides = {(end.table.casefold(), end.name.casefold()) for end in ends}
    for key in catalog.references:
        many = (key.many.casefold(), key.column.casefold())
        one = (key.one.casefold(), key.target.casefold())
        if sides == {many, one}:
            return key.one
    return ""


def _computed(table: Table, node: exp.Expr, type_: str, term: GlossaryTerm, dialect: str) -> Column:
    words = tuple(token.word for token in tokenize(term.names[0]))
    return Column(table.name, f"({written(node, dialect)})", type_, spoken=words)


# -- where a question names a term -----------------------------------------------------------------


def _spelling(name: str) -> tuple[str, ...]:
    """Return the words of a name as tokens of a question are compared with them."""
    if not name.isascii():
        return (name.lower(),)
    return tuple(lemma(token.word) for token in tokenize(name))


def term_meanings(tokens: Sequence[Token], catalog: Catalog) -> Iterator[Meaning]:
    """Yield what the words of a question mean that name a term of the glossary."""
    words = [lemma(token.word) for token in tokens]
    for term in catalog.terms:
        for spelling in term.spellings:
            for start in range(len(words) - len(spelling) + 1):
                if tuple(words[start : start + len(spelling)]) == spelling:
                    yield from _meanings(catalog, term, tokens, start, start + len(spelling))


def _meanings(
    catalog: Catalog, term: CompanyTerm, tokens: Sequence[Token], start: int, end: int
) -> Iterator[Meaning]:
    text = " ".join(token.text for token in tokens[start:end])
    named = Meaning(start, end, "table", costs.LINK, text, term.table)
    if term.kind == "table":
        yield named
    elif term.kind == "measure":
        yield replace(named, kind="op", op="money", arg=term.func, column=term.column)
    elif term.kind == "condition":
        yield replace(named, must=term.column)
        yield replace(named, kind="flag", column=term.column, value=True, cost=costs.TERM_FLAG)
    else:
        yield replace(named, kind="column", column=term.column)
        table = catalog.table(term.table)
        if table is not None and term.column in [each.name for each in (*table.names, *table.key)]:
            yield named
