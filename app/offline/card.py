"""Read the schema's card in the system prompt: what is known of the tables once the answers of the tools are folded away."""

import re
from collections.abc import Iterator

from longtable.app.offline.catalog import Catalog, Column, Table

_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*(?:\.\w+)*)'
_HEAD = re.compile(
    r"^Database: .* \((?P<dialect>\w+) dialect\)\.$.*?^Schema \((?P<count>[\d,]+) tables?;[^\n]*\n(?P<lines>.*?)(?:\n\n|\Z)", re.M | re.S
)
_LINE = re.compile(rf"(?P<name>{_NAME})(?: \((?:(?P<view>view)|~?(?P<rows>[\d,]+) rows?)\))?: (?P<columns>.+)")
_COLUMN = re.compile(rf"(?P<name>{_NAME})(?P<key>\*)? (?P<type>\S.*?)(?: (?P<arrow>->|~>) (?P<target>{_NAME}(?:\.{_NAME})*))?")
_CUT = re.compile(r"…|, and [\d,]+ more$")


def card_in(text: str) -> Catalog | None:
    """Return the tables on the card, each with its columns, types and keys; None unless it tells all of that of every table.

    Samples, comments and the exact numbers of rows are not on it: `Catalog.carded` names the tables known by it alone.
    """
    found = _HEAD.search(text)
    if found is None:
        return None
    tables: dict[str, Table] = {}
    for line in found["lines"].splitlines():
        table = _table(line)
        if table is None:
            return None
        tables[table.name.casefold()] = table
    if len(tables) != int(found["count"].replace(",", "")):
        return None
    return Catalog(found["dialect"], tables, total=len(tables), carded=frozenset(tables))


def _table(line: str) -> Table | None:
    found = _LINE.fullmatch(line)
    if found is None or _CUT.search(line):
        return None
    name = _bare(found["name"])
    columns = [_column(name, part) for part in _parts(found["columns"])]
    rows = int(found["rows"].replace(",", "")) if found["rows"] else None
    told = tuple(column for column in columns if column is not None)
    kind = "view" if found["view"] else "table"
    return Table(name, kind, rows, told, described=True) if len(told) == len(columns) else None


def _column(table: str, text: str) -> Column | None:
    found = _COLUMN.fullmatch(text)
    if found is None:
        return None
    declared, guess = (found["target"], "") if found["arrow"] == "->" else ("", found["target"] or "")
    return Column(table, _bare(found["name"]), found["type"], bool(found["key"]), declared or "", guess=guess)


def _parts(text: str) -> Iterator[str]:
    """Yield the columns of a line: commas within quotes or the brackets of a type part nothing."""
    begin, depth, quoted = 0, 0, False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([") - (letter in ")]")
            if letter == "," and depth == 0:
                yield text[begin:place]
                begin = place + 2
    yield text[begin:]


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
