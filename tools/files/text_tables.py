"""Read the rows of a text file: find its field separator, and how it escapes quotes."""

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from longtable.tools.cells import clip
from longtable.tools.files.column_types import looks_typed
from longtable.tools.files.load_target import Notes, Row
from longtable.tools.files.text_encodings import codec_of, encoding_of

HEAD_CHARS = 262_144
"""How many characters are read to find the field separator."""
MOST_LINE = 2_000_000
"""The most characters of one line, which is DuckDB's own limit."""
END_MARK = "\0end"


def text_sheet(file: Path) -> Iterator[tuple[str, Iterator[Row], None, Notes]]:
    encoding = encoding_of(file)
    yield "", text_rows(file, encoding), None, [("encoding", len(encoding), encoding)]


def text_rows(file: Path, encoding: str) -> Iterator[Row]:
    """Yield the rows of a text file."""
    with file.open(encoding=codec_of(encoding), errors="replace", newline="") as text:
        head = text.read(HEAD_CHARS).splitlines(keepends=True)
        text.seek(0)
        csv.field_size_limit(MOST_LINE)
        rows = _closed(_reader(head[:1000], file.suffix.lower())(itertools.chain(text, [END_MARK])))
        # Codes are written so to keep their zeros: ="007".
        has_codes = any('="' in line for line in head)
        yield from map(_plain_codes, rows) if has_codes else rows


def _plain_codes(row: Row) -> Row:
    return [re.sub(r'^="(.*)"$', r"\1", cell) for cell in row]


def _closed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows before the end mark. The end mark was appended to the text, and if a quote
    that is not closed swallowed it, `csv.Error` is raised.
    """
    for row in rows:
        if row[-1:] != [END_MARK] and row and row[-1].endswith(END_MARK):
            raise csv.Error(
                f"the quote before {clip(row[-1].splitlines()[0], 40)!r} is never closed, so all"
                " lines after it would be one cell: close it, or write it twice"
            )
        if row != [END_MARK]:
            yield row


def _reader(lines: Sequence[str], ending: str) -> Callable[[Iterable[str]], Iterator[Row]]:
    """Return a reader that splits lines into fields. The separator is the one that splits most of
    these lines into the same number of fields.
    """
    text = "".join(lines)
    # R puts a backslash before a quote where others write the quote twice. One before the end of a
    # field is a path's: "C:\".
    escape = bool(re.search(r'\\"[^,;\t|"\s]', text)) and not re.search(r'\w""\w', text)
    separator = re.match(r'(?i)"?sep=(.)"?\s*$', lines[0] if lines else "")
    best: tuple[float, int] = (0.0, 0)
    reader = partial(_split, sign=",", escape=escape)
    for sign in separator[1] if separator else "\t" if ending == ".tsv" else ",;\t| ":
        # Programs that write tabs between copied cells quote nothing.
        bare = sign == "\t" and re.search(
            r'(?m)(?:^|\t)"(?:[^"\t\n]*"[^"\t\r\n]|[^"\t]*\t[^"]*$)', text
        )
        tried = partial(
            _split, sign=sign, escape=escape, quoting=csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL
        )
        widths = Counter(len(row) for row in tried(lines) if any(map(str.strip, row)))
        width, count = max(
            widths.items(),
            key=lambda item: (item[0] * item[1] * (item[0] > 1), item[0]),
            default=(1, 0),
        )
        score = (count / max(widths.total(), 1) * min(width, 4) * (width > 1), width)
        # A space separates words, too: it counts only where nothing else does, and for all lines.
        if score > best and (
            sign != " "
            or (
                best[0] <= 1
                and count > 1
                and count >= 0.9 * (widths.total() - 1)
                and not all(map(looks_typed, map(str.strip, lines[1:])))
            )
        ):
            best = score
            reader = tried
    return (lambda lines: itertools.islice(reader(lines), 1, None)) if separator else reader


def _split(
    lines: Iterable[str], *, sign: str, escape: bool, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[Row]:
    return csv.reader(
        (line.replace('\\"', '""') for line in lines) if escape else lines,
        delimiter=sign,
        quoting=quoting,
    )
