"""What DuckDB guessed of a CSV file that its reader should know: lines left out, no row of names, lines it could not part."""

from collections.abc import Sequence

import duckdb

from longtable.tools.engines.base import LoadNote

_BETWEEN_FIELDS = frozenset(",;\t|")


def csv_guesses(root: duckdb.DuckDBPyConnection, path: str, file: str, *, names: Sequence[str]) -> list[LoadNote]:
    """Return what was guessed of a file, loaded with the columns `names`; `path` as DuckDB takes it."""
    if len(names) == 1 and _BETWEEN_FIELDS & set(names[0]):
        # Lines of unequal length part at no sign alike: the first that no line holds is then taken for the one between fields.
        return [LoadNote("lines_not_parted", file)]
    try:
        found = root.execute("SELECT SkipRows, HasHeader, [c.name FOR c IN Columns] FROM sniff_csv(?)", [path]).fetchall()
    except duckdb.Error:  # a sample may be read otherwise than the whole: then nothing is known of it
        return []
    skipped, named, sampled = found[0]
    if sampled != list(names):
        return []
    notes = [LoadNote("lines_left_out", file, int(skipped))] if skipped else []
    return notes if named else [*notes, LoadNote("no_names", file)]


_TOLD = {
    "lines_not_parted": "its lines have different numbers of fields: each is one value, not parted into columns",
    "lines_left_out": "its first {count:,} lines are left out",
    "no_names": "it has no row of names: its columns are numbered",
}


def told(note: LoadNote) -> str:
    """Return a note as the comment on its table says it, for who reads the schema."""
    return _TOLD[note.code].format(count=note.count)
