"""Infer foreign keys that nobody declared: where a column's name points at a key of another table, and its values are found there."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from longtable.base.errors import DatabaseError, QueryCancelledError, QueryTimeoutError
from longtable.tools.catalog import Catalog, Column, ForeignKey, Table, quoted
from longtable.tools.query_runner import Cancel
from longtable.tools.schema.sampling import NESTED, NUMBER, TEXT, Budget, Reader
from longtable.tools.schema.search_terms import singular, terms

VALUES = 200
"""Distinct values that are looked up in the other table."""
ROWS = 20_000
"""Rows that are searched for that many values."""
SECONDS = 0.3
KEY_ROWS = 200_000
"""A column that is not declared as a key counts as one where it is unique; a longer table is not looked through for that."""
KEY_WORDS = frozenset({"id", "code", "key", "no", "nr", "num", "number", "编号", "号", "代码"})
_GENERAL = "id name title type code date year month day hour time status note comment value number count position 编号 名称 日期"
COMMON = frozenset(_GENERAL.split())
"""Names that many tables give to columns of their own: that two share one says nothing."""
MOST_TRIED = 12
"""Columns of one table that are looked at."""


@dataclass(frozen=True)
class Candidate:
    """A key that the names speak for."""

    column: Column
    table: Table
    target: Column
    declared: bool
    """The target is the other table's declared primary key."""


class KeyNames:
    """The keys of a catalogue by the names that point at them. Build once."""

    def __init__(self, catalog: Catalog) -> None:
        self._by_word: dict[tuple[str, str], list[tuple[Table, Column, bool]]] = {}
        self._by_name: dict[tuple[str, str], list[tuple[Table, Column, bool]]] = {}
        for table in catalog.tables:
            for target, declared in _keys(table) if table.kind == "table" else ():
                for word in _pointers(table.bare_name, target.name):
                    self._by_word.setdefault((table.schema, word), []).append((table, target, declared))
                if (name := target.name.casefold()) not in COMMON:
                    self._by_name.setdefault((table.schema, name), []).append((table, target, declared))

    def candidates(self, table: Table) -> Iterator[Candidate]:
        """Yield what the names of a table's columns point at, one target a column; columns with a declared key are left out."""
        taken = {name for key in table.foreign_keys for name in key.columns}
        for column in table.columns if table.kind == "table" else ():
            if column.name in taken or table.primary_key == (column.name,):
                continue
            called_after = self._by_word.get((table.schema, _word(column.name)), [])
            of_that_name = self._by_name.get((table.schema, column.name.casefold()), [])
            fits = (found for found in [*called_after, *of_that_name] if found[0] is not table and _same_kind(column, found[1]))
            if (best := next(fits, None)) is not None:
                yield Candidate(column, *best)


def _keys(table: Table) -> list[tuple[Column, bool]]:
    """Return the column that identifies a row: the declared key, or what is named like one in a table that declares none."""
    if table.primary_key:
        return [(column, True) for column in table.columns if table.primary_key == (column.name,)]
    own = _word(table.bare_name)
    return [
        (column, False)
        for column in table.columns[:3]
        if column.name.casefold() in KEY_WORDS
        or (set(terms(column.name)) & KEY_WORDS and own in _word(column.name))
        or column is table.columns[0]
    ][:1]


def _pointers(table: str, target: str) -> list[str]:
    """Return what a column is called that points at a table's key: artist_id, ArtistId or artist for artists.id or artists.ArtistId."""
    own, key = _word(table), _word(target)
    if not own:
        return []
    return [own + key, own] if key in KEY_WORDS else [key] if own in key and key != own else []


def _word(name: str) -> str:
    """Return a name as one word, each part in the singular: `order_items` and `OrderItem` are the same."""
    parts = [part for part in name.replace("_", " ").split() if part]
    return "".join(term for part in parts for term in _parts(part))


def _parts(part: str) -> list[str]:
    found = list(terms(part))
    if not part.isascii():
        return [part.casefold()]
    return found[:-1] if len(found) > 1 else [singular(part.casefold())] if found else []


def _same_kind(one: Column, other: Column) -> bool:
    if NESTED.search(one.type) or NESTED.search(other.type):
        return False
    return bool(NUMBER.search(one.type)) == bool(NUMBER.search(other.type)) and bool(TEXT.search(one.type)) == bool(TEXT.search(other.type))


def inferred_keys(
    database: Reader, table: Table, names: KeyNames, budget: Budget, cancel: Cancel | None
) -> tuple[tuple[ForeignKey, ...], bool]:
    """Return the keys that names and values speak for, and whether there was time to look at all."""
    found: list[ForeignKey] = []
    whole = True
    for candidate in islice(names.candidates(table), MOST_TRIED):
        holds = _holds(database, table, candidate, budget, cancel)
        whole = whole and holds is not None
        if holds:
            found.append(ForeignKey((candidate.column.name,), candidate.table.name, (candidate.target.name,)))
    return tuple(found), whole


def _holds(database: Reader, table: Table, candidate: Candidate, budget: Budget, cancel: Cancel | None) -> bool | None:
    """Say whether every sampled value is found in the target; None where there was no time to look."""
    column, target, other = quoted(candidate.column.name), quoted(candidate.target.name), candidate.table.sql_name
    sample = f"SELECT DISTINCT v FROM (SELECT {column} AS v FROM {table.sql_name} LIMIT {ROWS}) AS r WHERE v IS NOT NULL LIMIT {VALUES}"
    agree = f"SELECT count(*), count(CASE WHEN EXISTS (SELECT 1 FROM {other} AS o WHERE o.{target} = s.v) THEN 1 END) FROM ({sample}) AS s"
    unique = f"SELECT count(*), count(DISTINCT k) FROM (SELECT {target} AS k FROM {other} LIMIT {KEY_ROWS}) AS o"
    for sql in (agree,) if candidate.declared else (agree, unique):
        if budget.left <= 0:
            return None
        try:
            all_of_them, those = database.read(sql, seconds=min(SECONDS, budget.left), cancel=cancel)[0]
        except QueryCancelledError:
            raise
        except QueryTimeoutError:
            return None
        except DatabaseError:
            return False  # types that do not compare, a table that cannot be read
        if not all_of_them or all_of_them != those:
            return False
    return True
