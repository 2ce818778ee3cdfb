"""Find the data files under a path, and the groups of files that may form one table."""

import gzip
import itertools
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from longtable.base.errors import DatabaseUnavailableError
from longtable.base.url import DATA_ENDINGS, data_ending, data_stem
from longtable.tools.cells import clip
from longtable.tools.engines.base import FileLimits
from longtable.tools.files.load_target import Loading
from longtable.tools.sql.parsing import first_line

MOST_DEPTH = 6
"""How many levels of nested folders are searched."""


def data_files(path: Path, limits: FileLimits) -> list[Path]:
    try:
        if not path.exists():
            raise DatabaseUnavailableError(
                f"there is no file or folder {str(path)!r}: check the path in the URL"
            )
        paths = list(itertools.islice(_inside(path), limits.files + 1)) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in paths)
    except OSError as error:
        raise DatabaseUnavailableError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    if not paths:
        raise DatabaseUnavailableError(
            f"{str(path)!r} holds no data file: known are {', '.join(sorted(DATA_ENDINGS))}"
        )
    if len(paths) > limits.files:
        raise DatabaseUnavailableError(
            f"{str(path)!r} holds over {limits.files:,} data files, FileLimits.files allows"
            f" {limits.files:,}"
        )
    if size > limits.bytes:
        raise DatabaseUnavailableError(
            f"the data files of {str(path)!r} have {size:,} bytes, FileLimits.bytes allows"
            f" {limits.bytes:,}"
        )
    return paths


def _inside(path: Path) -> Iterator[Path]:
    """Yield the data files of a folder and its sub-folders. `.txt` files are left out, because they
    may hold anything; they are loaded only if the path names one.
    """
    for folder, folders, names in os.walk(path):
        deeper = folders if len(Path(folder).relative_to(path).parts) < MOST_DEPTH else []
        folders[:] = sorted(name for name in deeper if not name.startswith("."))
        known = [Path(folder, name) for name in sorted(names) if not name.startswith((".", "~$"))]
        yield from (
            file for file in known if data_ending(file) not in ("", ".txt") and file.is_file()
        )


def hive_columns(file: Path, home: Path) -> dict[str, str]:
    """Return columns from the names of the folders that a file is in, as Hive names them: the
    folder `year=2023` gives a column `year`.
    """
    return dict(part.split("=", 1) for part in file.relative_to(home).parts[:-1] if "=" in part)


def file_groups(sources: Sequence[Path], home: Path) -> list[list[Path]]:
    """Return groups of files that may form one table: files whose names differ only in digits, or
    files in folders such as `year=2023`.
    """
    groups: dict[object, list[Path]] = {}
    for file in sources:
        parent = tuple(part for part in file.parts[:-1] if "=" not in part)
        groups.setdefault(
            (
                parent,
                tuple(hive_columns(file, home)) or re.sub(r"\d+", "#", data_stem(file)),
                data_ending(file),
            ),
            [],
        ).append(file)
    return list(groups.values())


def unpacked(loading: Loading, file: Path) -> Path:
    """Unpack a gzip file into the scratch folder. Raises `DatabaseUnavailableError` if it is
    damaged or too large.
    """
    target = loading.scratch / f"unpacked{data_ending(file)}"
    most = loading.limits.memory_bytes
    try:
        with gzip.open(file) as packed, target.open("wb") as whole:
            for part in iter(partial(packed.read, 1 << 20), b""):
                whole.write(part)
                if whole.tell() > most:
                    raise DatabaseUnavailableError(
                        f"{file.name!r} has more than the {most:,} bytes when unpacked that"
                        " FileLimits.memory_bytes allows"
                    )
    except (EOFError, OSError, zlib.error) as error:
        raise DatabaseUnavailableError(
            f"the file {file.name!r} cannot be unpacked: {clip(first_line(error), 300)}"
        ) from error
    return target
