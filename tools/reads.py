"""Say which tables and columns a checked query reads, for the audit."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from longtable.tools.catalog import Catalog, Table, fold
from longtable.tools.scope import is_cte, written_name

MOST_COLUMNS = 500


@dataclass(frozen=True)
class Reads:
    """What one query reads: the SQL as it runs, the tables, the columns as "table.column". `whole`: no column was left out."""

    sql: str
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    whole: bool = True


def reads_of(sql: str, *, tables: tuple[str, ...], dialect: str, catalog: Catalog) -> Reads:
    """Return what a checked query reads; `tables` are those the wall found in it.

    Every column of its tables where the names cannot be told apart: an audit may say too much, never too little.
    """
    known = [table for name in tables if (table := catalog.find(name)) is not None]
    try:
        found = sorted(set(_columns(sql, known, dialect, catalog)))
    except Exception:  # sqlglot's optimizer raises of all kinds on what the engine takes
        found = sorted(f"{table.name}.{column.name}" for table in known for column in table.columns)
    return Reads(sql, tables, tuple(found[:MOST_COLUMNS]), len(found) <= MOST_COLUMNS)


def _columns(sql: str, known: list[Table], dialect: str, catalog: Catalog) -> Iterator[str]:
    """Yield each column that is read, in whatever part of the query."""
    tree = parse_one(sql, dialect=dialect)
    for node in list(tree.find_all(exp.Table)):
        if isinstance(node.this, exp.Identifier) and not is_cte(node, dialect):
            table = catalog.resolve(written_name(node.this, dialect), schema=written_name(node.args.get("db"), dialect))
            if table is not None:
                if not node.alias:
                    node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
                node.set("this", exp.to_identifier(f"t{known.index(table)}"))
                node.set("db", None)
                node.set("catalog", None)
    schema: dict[str, object] = {f"t{place}": {fold(column.name): "text" for column in table.columns} for place, table in enumerate(known)}
    qualified = qualify(tree, dialect=dialect, schema=schema, validate_qualify_columns=False, identify=False, quote_identifiers=False)
    yield from (name for scope in traverse_scope(qualified) for name in _of_scope(scope, known))
    if any(str(join.args.get("method")).upper() == "NATURAL" for join in tree.find_all(exp.Join)):
        yield from _shared(known)


def _shared(known: list[Table]) -> Iterator[str]:
    """Yield the columns whose names stand in several tables: what a NATURAL JOIN compares."""
    for table in known:
        others = {fold(column.name) for other in known if other is not table for column in other.columns}
        yield from (f"{table.name}.{column.name}" for column in table.columns if fold(column.name) in others)


def _of_scope(scope: Scope, known: list[Table]) -> Iterator[str]:
    by_name = {f"t{place}": table for place, table in enumerate(known)}
    here = {name: by_name[s.name] for name, s in scope.sources.items() if isinstance(s, exp.Table) and s.name in by_name}
    for column in scope.columns:
        name = fold(column.name)
        # Without a table sqlglot could not say whose it is: each one here that has it.
        tables = [here[column.table]] if column.table in here else [] if column.table else list(here.values())
        found = [f"{table.name}.{each.name}" for table in tables for each in table.columns if fold(each.name) == name]
        if not found and (row := next((table for alias, table in here.items() if fold(alias) == name), None)) is not None:
            found = [f"{row.name}.{each.name}" for each in row.columns]  # a table's name as a column: its whole row
        yield from found
