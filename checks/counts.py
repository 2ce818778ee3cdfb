"""Check counts of rows if the question asks about things that may each be in several rows."""

from collections.abc import Iterator

from sqlglot import exp

from longtable.checks.query_part import Part
from longtable.checks.vocabulary import NAME_WORDS, name_words
from longtable.tools.schema.schema_index import singular
from longtable.tools.sql.verdict import Probe


def counted_rows(part: Part) -> Iterator[Probe]:
    """Find counts of rows where the question asks for a count of distinct things, such as customers
    in rows of orders.
    """
    counts = any(isinstance(node, exp.Count) for node in part.aggregates)
    if not counts or not all(part.tables.values()):
        return
    for noun in part.question.says("counted"):
        keys = _keys_of(singular(noun), part)
        if keys:
            yield Probe(
                "counted_rows",
                f"the question counts {noun}, the query counts rows: {{0:,}} {noun} stand in"
                " {1:,} rows",
                part.repeats(keys),
            )
            return
    is_whole = part.select is part.root
    if is_whole and part.question.says("distinct") and not part.root.find(exp.Distinct):
        yield Probe(
            "counted_rows",
            "the question asks for different values, but the query counts rows: use COUNT(DISTINCT"
            " ...)",
        )


def _keys_of(noun: str, part: Part) -> list[str]:
    """Return SQL for the columns that identify the counted thing. These are the key of the table
    named like it, or another column. Empty if there is neither.
    """
    by_name = [alias for alias in part.tables if part.table_words(alias) == [noun]]
    if not by_name:
        by_name = [alias for alias in part.tables if part.table_words(alias)[-1:] == [noun]]
    return part.identity(*by_name[:1]) or _column_of(noun, part)


def _column_of(noun: str, part: Part) -> list[str]:
    """Return SQL for the first column that holds the counted thing, or refers to it. Empty if no
    column does.
    """
    references = _references_to(noun, part)
    for alias, table in part.tables.items():
        for column in table.columns if table else ():
            words = [word for word in name_words(column.name) if word not in NAME_WORDS["general"]]
            refers = bool(words) and (column.name,) in references
            if refers or _is_called(words, noun):
                return [part.column(alias, column.name)]
    return []


def _is_called(words: list[str], noun: str) -> bool:
    """Return whether a column's name ends with this noun, or is a short form of it."""
    if words[-1:] == [noun]:
        return True
    return len(words) == 1 and len(words[0]) > 3 and noun.startswith(words[0])


def _references_to(noun: str, part: Part) -> set[tuple[str, ...]]:
    """Return the primary keys of the tables named like this noun, and the foreign keys that refer
    to these tables.
    """
    targets = {
        table.name: table.primary_key
        for table in part.catalog.tables
        if name_words(table.bare_name) == [noun]
    }
    references = set(targets.values())
    for table in part.tables.values():
        for key in table.foreign_keys if table else ():
            if key.table in targets:
                references.add(key.columns)
    return references
