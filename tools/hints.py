"""Say which name was probably meant when the database does not know one."""

import re

from sqlglot import exp, parse_one

from longtable.graph.errors import QueryFailedError
from longtable.tools.catalog import Catalog, nearest, quoted

_UNKNOWN_COLUMN = (
    re.compile(r"no such column: (?P<name>.+)$"),
    re.compile(r'Referenced column "(?P<name>[^"]+)"'),
    re.compile(r'does not have a column named "(?P<name>[^"]+)"'),
    re.compile(r'Column "(?P<name>[^"]+)" in .* not found'),
    re.compile(r'Column with name "?(?P<name>[^"\s]+)"? does not exist'),
    re.compile(r'column "(?P<name>[^"]+)" (?:does not exist|must appear)'),
    re.compile(r"column (?P<name>\S+) does not exist"),
)

_NO_SUCH_SIGNATURE = re.compile(r"function \w+\(.*\) does not exist")


def with_hint(error: QueryFailedError, *, sql: str, dialect: str, catalog: Catalog, tables: tuple[str, ...]) -> QueryFailedError:
    """Return the error with the nearest columns named, where it is about a column of these tables."""
    if not error.hint and _NO_SUCH_SIGNATURE.match(error.reason):
        return QueryFailedError(error.reason, hint="cast the arguments to what the function takes, as in round(CAST(x AS numeric), 2)")
    found = next((match for pattern in _UNKNOWN_COLUMN if (match := pattern.search(error.reason))), None)
    if found is None or error.hint:
        return error
    wanted = found["name"].rpartition(".")[2].strip('"')
    hint = column_hint(wanted, sql=sql, dialect=dialect, catalog=catalog, tables=tables)
    return QueryFailedError(error.reason, hint=hint) if hint else error


def column_hint(wanted: str, *, sql: str, dialect: str, catalog: Catalog, tables: tuple[str, ...]) -> str:
    """Name the columns most like `wanted`: first in the tables of the query, then elsewhere; else list what there is."""
    used = [table for name in tables if (table := catalog.find(name)) is not None]
    here = [column.name for table in used for column in table.columns]
    here += [alias.alias for alias in parse_one(sql, dialect=dialect).find_all(exp.Alias) if alias.alias]
    if dialect == "postgres" and (same := [name for name in here if name.casefold() == wanted.casefold() and name != wanted]):
        return f"a name with capitals needs its quotes: {quoted(same[0])}"
    if close := [name for name in nearest(wanted, here) if name.casefold() != wanted.casefold()]:
        return f"nearest columns: {', '.join(close)}"
    elsewhere = [
        f"{table.name}.{column.name}" for table in catalog.tables for column in table.columns if column.name.casefold() == wanted.casefold()
    ]
    if elsewhere:
        return f"there is such a column in: {', '.join(elsewhere[:5])}"
    if len(used) == 1:
        return f"columns of {used[0].name}: {', '.join(column.name for column in used[0].columns[:40])}"
    return "see describe_tables for the columns"
