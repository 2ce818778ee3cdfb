"""Join several files with the same columns into one table, such as one file for each year or
folders such as `year=2023`.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from longtable.base.url import data_stem
from longtable.tools.catalog import fold, quoted
from longtable.tools.engines.base import LoadNote
from longtable.tools.files.column_readings import text_literal
from longtable.tools.files.column_types import TEXT
from longtable.tools.files.data_files import hive_columns
from longtable.tools.files.load_target import Loading, columns_of, table_name
from longtable.tools.results.parquet import column_names

_ALIKE = ({"BIGINT", "DOUBLE"}, {"DATE", "TIMESTAMP"})
"""Sets of types. Columns of several files may become one column if their types are in the
same set.
"""
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
YEAR = re.compile(r"(?:19|20)\d\d")


def tables_alike(
    loading: Loading, loaded: Sequence[tuple[Path, str]]
) -> list[list[tuple[Path, str]]]:
    """Return the tables in groups. A table joins a group if it shares more than half of its columns
    with the group.
    """
    groups: list[list[tuple[Path, str]]] = []
    shared: list[set[str]] = []
    for item in loaded:
        columns = set(map(fold, columns_of(loading, item[1])))
        for group, common in zip(groups, shared, strict=True):
            if 2 * len(columns & common) > max(len(columns), len(common)):
                group.append(item)
                common &= columns
                break
        else:
            groups.append([item])
            shared.append(columns)
    return groups


def _made_alike(loading: Loading, tables: Sequence[str]) -> dict[str, str]:
    """Turn a column into text in all of these tables if its types differ from table to table.
    Return the code of a note for each column that needs one.
    """
    shapes = [columns_of(loading, table) for table in tables]
    codes: dict[str, str] = {}
    for name in dict.fromkeys(itertools.chain.from_iterable(shapes)):
        types = {shape[name] for shape in shapes if name in shape}
        if len(types) > 1 and not any(types <= alike for alike in _ALIKE):
            codes[name] = "types_differ"
        elif not all(name in shape for shape in shapes):
            codes[name] = "not_in_all"
    for table, shape in zip(tables, shapes, strict=True):
        for name in shape:
            if codes.get(name) == "types_differ":
                loading.root.execute(
                    f"ALTER TABLE {quoted(table)} ALTER {quoted(name)} TYPE {TEXT}"
                )
    return codes


def join_tables(loading: Loading, loaded: Sequence[tuple[Path, str]], home: Path) -> None:
    """Join tables that have the same columns into one table, and add columns that tell which file a
    row comes from.

    If the columns differ, the tables are joined only if the files are in folders such as
    `year=2023`; otherwise the tables stay apart, with a note.
    """
    shapes = [
        loading.root.execute(
            f"SELECT column_name, column_type FROM (DESCRIBE {quoted(table)})"
        ).fetchall()
        for _, table in loaded
    ]
    hive = hive_columns(loaded[0][0], home)
    # A column of amounts without decimals in one year is the same column.
    if len({str(shape).replace("'BIGINT'", "'DOUBLE'") for shape in shapes}) > 1:
        if not hive:
            names = ", ".join(loading.sources[table] for _, table in loaded)
            loading.notes.append(LoadNote("not_joined", home.name, len(loaded), value=names))
            return
        differing_columns = _made_alike(loading, [table for _, table in loaded])
    else:
        differing_columns = {}
    has_dates = {"DATE", "TIMESTAMP"} & {kind for _, kind in shapes[0]}
    marks = _marks(loading, loaded, home, with_year=not (hive or has_dates))
    every = itertools.chain.from_iterable(shapes)
    known = list(dict.fromkeys(str(name) for name, _ in every))
    added = column_names([*known, *marks[0]])[len(known) :]
    casts = []
    for new, key in zip(added, marks[0], strict=True):
        are_numbers = all(_WHOLE_NUMBER.fullmatch(mark[key]) for mark in marks)
        casts.append(f"::{'BIGINT' if are_numbers else TEXT} AS {quoted(new)}")
    selects = [
        f"SELECT *, {', '.join(map(str.__add__, map(text_literal, mark.values()), casts))} FROM"
        f" {quoted(table)}"
        for mark, (_, table) in zip(marks, loaded, strict=True)
    ]
    name = table_name(_shared_name(loaded[0][0], home, hive), loading.names)
    loading.root.execute(f"CREATE TABLE {quoted(name)} AS {' UNION ALL BY NAME '.join(selects)}")
    loading.sources[name] = home.name
    loading.note(
        "files_joined_by_name" if differing_columns else "files_joined",
        name,
        count=len(loaded),
        value=", ".join(loading.sources[table] for _, table in loaded),
    )
    for column, code in differing_columns.items():
        loading.note(code, name, column=column)
    loading.notes += [
        LoadNote("from_file_name", home.name, table=name, column=column) for column in added
    ]
    _drop_parts(loading, [table for _, table in loaded], name)


def _marks(
    loading: Loading, loaded: Sequence[tuple[Path, str]], home: Path, *, with_year: bool
) -> list[dict[str, str]]:
    """Return for each file the added columns and their values, which mark the rows of this file.
    With `with_year`, a year in the files' names becomes a column.
    """
    marks = [hive_columns(file, home) for file, _ in loaded]
    if len(set(map(str, marks))) < len(marks):
        for mark, (_, table) in zip(marks, loaded, strict=True):
            mark["file"] = loading.sources[table]
    years = _years([file for file, _ in loaded])
    if years and with_year:
        for mark, year in zip(marks, years, strict=True):
            mark["year"] = year
    return marks


def _years(files: Sequence[Path]) -> list[str]:
    """Return the year in each file's name if the names differ only in a year, otherwise an empty
    list.
    """
    digits = zip(*(re.findall(r"\d+", data_stem(file)) for file in files), strict=False)
    differing = [places for places in digits if len(set(places)) > 1]
    if len(differing) != 1 or not all(map(YEAR.fullmatch, differing[0])):
        return []
    return list(differing[0])


def _shared_name(file: Path, home: Path, hive: dict[str, str]) -> str:
    """Return the part of the file's name that all files of its group share, with the names of the
    folders.
    """
    stem = "" if hive else re.sub(r"\d+", " ", data_stem(file)).strip(" _-.()")
    parts = [*file.relative_to(home).parts[:-1], stem]
    return "_".join(part for part in parts if part and "=" not in part) or home.name


def _drop_parts(loading: Loading, tables: Sequence[str], name: str) -> None:
    """Drop the tables that were joined. Their notes become notes on the joined table."""
    loading.root.execute("; ".join(f"DROP TABLE {quoted(table)}" for table in tables))
    for table in tables:
        del loading.sources[table]
    loading.notes[:] = [
        note if note.table in loading.sources else replace(note, table=name)
        for note in loading.notes
    ]
