"""Say where a query failed, and which name was probably meant when the database does not know one."""

import re

from sqlglot import exp

from longtable.base.errors import QueryFailedError
from longtable.tools.catalog import Catalog, nearest, quoted
from longtable.tools.cells import clip
from longtable.tools.sql.parsing import Place, statement, statements
from longtable.tools.sql.places import place_as_asked, place_of_column, place_of_word

_UNKNOWN_COLUMN = (
    re.compile(r"no such column: (?P<name>.+)$"),
    re.compile(r'Referenced column "(?P<name>[^"]+)"'),
    re.compile(r'does not have a column named "(?P<name>[^"]+)"'),
    re.compile(r'Column "(?P<name>[^"]+)" in .* not found'),
    re.compile(r'Column with name "?(?P<name>[^"\s]+)"? does not exist'),
    re.compile(r'column "(?P<name>[^"]+)" (?:does not exist|must appear)'),
    re.compile(r"column (?P<name>\S+) does not exist"),
)

_AMBIGUOUS = re.compile(r"ambiguous column name: (\S+)")
_NO_SUCH_SIGNATURE = re.compile(r"function \w+\(.*\) does not exist")


def explained(
    error: QueryFailedError, *, asked: str, ran: str, dialect: str, catalog: Catalog, tables: tuple[str, ...]
) -> QueryFailedError:
    """Return the error as its readers want it: the place in the text as `asked`, the names that were probably meant, a hint."""
    found = next((match for pattern in _UNKNOWN_COLUMN if (match := pattern.search(error.reason))), None)
    place = _place(error, found["name"] if found else "", asked=asked, ran=ran, dialect=dialect)
    hint, close = error.hint, error.nearest
    if not hint and _NO_SUCH_SIGNATURE.match(error.reason):
        hint = "cast the arguments to what the function takes, as in round(CAST(x AS numeric), 2)"
    elif not hint and found is not None and error.problem != "ambiguous":
        in_quotes = re.search(f'(?<![."]){re.escape(quoted(found["name"]))}', asked) is not None
        wanted = found["name"] if in_quotes else found["name"].rpartition(".")[2].strip('"')
        hint, close = column_hint(wanted, sql=ran, dialect=dialect, catalog=catalog, tables=tables)
        if in_quotes and error.problem == "unknown_name":
            text = clip(wanted, 60).replace("'", "''")
            hint += f"; if text is meant, it stands in single quotes: '{text}'"
    elif not hint and error.problem == "ambiguous":
        hint = "name its table before it, as in t.name"
    line, column = place or (None, None)
    return QueryFailedError(error.reason, hint=hint, problem=error.problem, line=line, column=column, nearest=close)


def _place(error: QueryFailedError, name: str, *, asked: str, ran: str, dialect: str) -> Place | None:
    # A column by its name first: the engines point now at it, now at the table before it.
    name = name or (ambiguous[1] if (ambiguous := _AMBIGUOUS.search(error.reason)) else "")
    if name:
        trees = statements(asked, dialect)  # a semicolon may stand before the query
        if (place := next((place for tree in trees if (place := place_of_column(name, tree, asked))), None)) is not None:
            return place
    offset, word = getattr(error, "offset", None), getattr(error, "word", "")
    if offset is not None:
        return place_as_asked(ran, offset, asked, dialect)
    return place_of_word(word, asked, dialect) if word else None


def column_hint(wanted: str, *, sql: str, dialect: str, catalog: Catalog, tables: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Name the columns most like `wanted`: first in the tables of the query, then elsewhere; else list what there is."""
    used = [table for name in tables if (table := catalog.find(name)) is not None]
    here = [column.name for table in used for column in table.columns]
    here += [alias.alias for alias in statement(sql, dialect).find_all(exp.Alias) if alias.alias]
    if dialect == "postgres" and (same := [name for name in here if name.casefold() == wanted.casefold() and name != wanted]):
        return f"a name with capitals needs its quotes: {quoted(same[0])}", (quoted(same[0]),)
    if close := [name for name in nearest(wanted, here) if name.casefold() != wanted.casefold()]:
        return f"nearest columns: {', '.join(close)}", tuple(close)
    elsewhere = [
        f"{table.name}.{column.name}" for table in catalog.tables for column in table.columns if column.name.casefold() == wanted.casefold()
    ]
    if elsewhere:
        return f"there is such a column in: {', '.join(elsewhere[:5])}", tuple(elsewhere[:5])
    if len(used) == 1:
        return f"columns of {used[0].name}: {', '.join(column.name for column in used[0].columns[:40])}", ()
    return "see describe_tables for the columns", ()
