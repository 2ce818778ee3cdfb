"""The schema that the tools described: tables, columns and keys, and the ways to join tables."""

import heapq
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from longtable.analyst.lexicon import expanded, lemma, split_name, stem, vocabulary
from longtable.tools.sql.parsing import DEFAULT_DIALECT

Value = str | int | float

_NUMBER_TYPE = re.compile(r"INT|REAL|FLOA|DOUB|NUM|DEC|MONEY|SERIAL", re.IGNORECASE)
_DATE_TYPE = re.compile(r"DATE|TIMESTAMP", re.IGNORECASE)
_DATE_TEXT = re.compile(r"^\d{4}-\d{2}(-\d{2})?([ T].*)?$")
_UNIT_COMMENT = re.compile(r"\bin (\w+)")

FLAG_TYPE = "BOOLEAN"
OPPOSITES = {
    "0": "1",
    "no": "yes",
    "No": "Yes",
    "NO": "YES",
    "N": "Y",
    "n": "y",
    "F": "T",
    "f": "t",
    "false": "true",
    "False": "True",
    "否": "是",
}
"""The word for yes that belongs to each word for no. It is used for a column in which only the word
for no has been seen.
"""


@dataclass(frozen=True)
class Column:
    """One column: its declared type, whether it is a key, and the sample values that were shown."""

    table: str
    name: str
    type: str = ""
    primary: bool = False
    references: str = ""
    comment: str = ""
    samples: tuple[object, ...] = ()
    spoken: tuple[str, ...] = ()
    """The words of a company's term, if the column is computed. Its `name` is then an expression
    in brackets.
    """

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of the column's name, with abbreviations spelled out."""
        return self.spoken or expanded(self.name)

    @property
    def is_condition(self) -> bool:
        """Return whether the column is computed, and only tells which rows a company's term
        names.
        """
        return bool(self.spoken) and self.type == FLAG_TYPE

    @cached_property
    def seen(self) -> list[object]:
        """Return the sample values that are not NULL."""
        return [value for value in self.samples if value is not None]

    @cached_property
    def is_date(self) -> bool:
        """Return whether the column holds dates, by its type, or because its samples look like ISO
        dates.
        """
        return (
            True
            if _DATE_TYPE.search(self.type)
            else bool(self.seen)
            and all(isinstance(value, str) and _DATE_TEXT.match(value) for value in self.seen)
        )

    @cached_property
    def is_number(self) -> bool:
        """Return whether the column holds numbers."""
        numbers = bool(self.seen) and all(isinstance(value, int | float) for value in self.seen)
        return not (self.is_date or self.type.upper().startswith("BOOL")) and (
            numbers or bool(_NUMBER_TYPE.search(self.type))
        )

    @cached_property
    def is_id(self) -> bool:
        """Return whether the column is a key or a code, and so not a measure."""
        return (
            self.primary
            or bool(self.references)
            or self.words[-1:] in (("id",), ("identifier",), ("code",), ("key",))
        )

    @cached_property
    def is_measure(self) -> bool:
        """Return whether the column's numbers can be added up, averaged or compared."""
        return self.is_number and not self.is_id and self.words not in (("number",), ("phone",))

    @cached_property
    def is_year(self) -> bool:
        """Return whether the column holds years as numbers."""
        years = bool(self.seen) and all(
            str(value).isdigit() and 1500 <= int(str(value)) <= 2100 for value in self.seen
        )
        return self.is_number and not self.is_id and ("year" in self.words or years)

    @cached_property
    def is_clock(self) -> bool:
        """Return whether the column's numbers are only parts of a date, such as months or hours, or
        times of day in the form HHMM.
        """
        return self.is_number and (
            self.name.casefold() in ("month", "week", "weekday", "day", "hour", "minute", "second")
            or ("time" in self.words and not self.unit)
        )

    @cached_property
    def is_name(self) -> bool:
        """Return whether the column holds names of the rows."""
        return not self.is_number and (
            bool(vocabulary().lists["names"] & {*self.words})
            or self.name.lower().endswith(("name", "名"))
        )

    @cached_property
    def is_binary(self) -> bool:
        """Return whether the column holds bytes."""
        return bool(re.search("BLOB|BYTEA|BINARY", self.type, re.IGNORECASE))

    @cached_property
    def truth(self) -> Value | None:
        """Return the value that means yes in a column of flags. Return None if the column does not
        hold flags.
        """
        lists = vocabulary().lists
        if self.is_id or self.type.upper().startswith("BOOL"):
            return None if self.is_id else True
        values = {str(value).strip() for value in self.seen}
        parts = split_name(self.name)
        flagged = bool(set(parts) & {"is", "has", "flag", "was", "can"}) or (
            parts[-1:] and parts[-1].endswith(("ed", "ive", "able"))
        )
        if (
            not values
            or not values <= lists["yes"] | lists["no"]
            or (values <= {"0", "1"} and not flagged)
        ):
            return None
        yes = next((value for value in values if value in lists["yes"]), "")
        word = yes or OPPOSITES.get(next(iter(values)), "")
        return int(word) if word.isdigit() and self.is_number else word or None

    @cached_property
    def unit(self) -> str:
        """Return the unit that the column's name or comment tells, "" if neither tells one."""
        units = vocabulary().units
        units_named = [
            units[word].name
            for word in (*split_name(self.name), *self.words)
            if len(word) > 1 and word in units
        ]
        commented = [
            units[word].name
            for word in _UNIT_COMMENT.findall(self.comment.lower())
            if word in units
        ]
        return next(iter((*units_named, *commented)), "")


@dataclass(frozen=True)
class Table:
    """One table or view. `described` is True if its types and keys are known."""

    name: str
    kind: str = "table"
    rows: int | None = None
    columns: tuple[Column, ...] = ()
    described: bool = False
    comment: str = ""
    computed: tuple[Column, ...] = ()
    """What terms of the company's glossary compute from a row."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of the table's name, without words such as "tbl"."""
        words = tuple(
            word for word in expanded(self.name) if word not in ("tbl", "dim", "fact", "table")
        )
        return words or expanded(self.name)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Return the columns of the table by their case-folded names, computed ones included."""
        return {column.name.casefold(): column for column in (*self.columns, *self.computed)}

    @cached_property
    def key(self) -> tuple[Column, ...]:
        """Return the columns of the primary key. If none is declared, return the first column if it
        looks like a key.
        """
        declared = tuple(column for column in self.columns if column.primary)
        own = {lemma(word) for word in self.words}
        return declared or tuple(
            c
            for c in self.columns[:1]
            if c.words[-1:] == ("id",) and (len(c.words) == 1 or lemma(c.words[0]) in own)
        )

    @cached_property
    def names(self) -> tuple[Column, ...]:
        """Return the columns that name a row: first and last name of people, or the column with the
        best name.
        """
        candidates = [
            column
            for column in self.columns
            if column.is_name and not column.references and not column.is_date
        ]
        people = [
            column
            for column in candidates
            if {"first", "last", "given", "family", "surname", "forename"}
            & set(split_name(column.name))
        ]
        own = (
            {lemma(word) for word in self.words}
            | vocabulary().lists["names"]
            | {"company", "full", "display", "short", "legal"}
        )
        exact = [column for column in candidates if own.issuperset(map(lemma, column.words))]
        described = own | {"description"}
        called = [
            c
            for c in self.columns
            if described.issuperset(map(lemma, c.words)) and c.type and not (c.is_id or c.is_number)
        ]
        return tuple(people[:2] if len(people) > 1 else (exact or called)[:1])

    def part(self, unit: str) -> Column | None:
        """Return the column of numbers that is named after a part of a date, such as month or hour.
        Return None if there is none.
        """
        column = self.by_name.get(unit)
        return (
            column
            if column is not None
            and (column.is_number or not column.type)
            and not column.references
            else None
        )


@dataclass(frozen=True)
class Reference:
    """A foreign key: the column `column` of the table `many` points at `target` of the table `one`.
    `sure` is False if it is only inferred.
    """

    many: str
    column: str
    one: str
    target: str
    sure: bool = True


@dataclass(frozen=True)
class Step:
    """One join from the table `here` to the table `there`. `up` is True if each row of `here`
    matches at most one row of `there`.
    """

    here: str
    here_column: str
    there: str
    there_column: str
    up: bool
    rivals: int = 0
    """How many other keys between the two tables fit the question equally well."""


@dataclass(frozen=True)
class CompanyTerm:
    """A term of the company's glossary and what it stands for in the schema."""

    spellings: tuple[tuple[str, ...], ...]
    """The words of the term and of its synonyms, in the singular and in lower case."""
    kind: Literal["table", "column", "condition", "measure"]
    """What the term stands for: the rows of a table; a column, maybe a computed one; those rows
    for which a computed column is true; or a function of a column.
    """
    table: str
    column: str = ""
    func: str = ""


@dataclass(frozen=True, eq=False)
class Catalog:
    """Everything that the messages tell about the database."""

    dialect: str = DEFAULT_DIALECT
    tables: dict[str, Table] = field(default_factory=dict)
    pages: int = 1
    total: int = 0
    carded: frozenset[str] = frozenset()
    """Tables that are known only from the schema's card, and so without samples and comments."""
    terms: tuple[CompanyTerm, ...] = ()

    def table(self, name: str) -> Table | None:
        """Return the table with this name in any case, None if there is none."""
        return self.tables.get(name.casefold())

    def column(self, table: str, name: str) -> Column | None:
        """Return a column by the names of table and column, in any case. Return None if there is
        none.
        """
        of_table = self.table(table)
        return of_table.by_name.get(name.casefold()) if of_table else None

    @cached_property
    def plain(self) -> tuple[Table, ...]:
        """Return the tables that are not views. If there are only views, return these."""
        return tuple(table for table in self.tables.values() if table.kind == "table") or tuple(
            self.tables.values()
        )

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """Return every key that points at another table: first the declared keys, then those
        inferred from names.
        """
        declared = list(itertools.chain.from_iterable(map(self._declared, self.plain)))
        known = {(each.many, each.column) for each in declared}
        pairs = {(each.many, each.one) for each in declared}
        paired = [each for each in self._paired(declared) if (each.many, each.column) not in known]
        inferred: list[Reference] = []
        for many, one in itertools.product(self.plain, self.plain):
            if (many.name, one.name) not in pairs:
                inferred += self._inferred(many, one)
        return (*declared, *paired, *inferred)

    def _declared(self, table: Table) -> Iterator[Reference]:
        for column in table.columns:
            if column.references:
                target, _, name = column.references.rpartition(".")
                other = self.table(target.strip('"'))
                if other is not None and other.name != table.name:
                    yield Reference(table.name, column.name, other.name, name.strip('"'))

    def _paired(self, declared: list[Reference]) -> Iterator[Reference]:
        """Yield keys for columns that form a pair with a declared key, such as destination and
        origin. Both then point at the same table, even if only one of the keys is declared.
        """
        ends = [vocabulary().lists[name] for name in ("from_names", "to_names")]
        for each, (mine, others) in itertools.product(declared, (ends, ends[::-1])):
            table = self.tables[each.many.casefold()]
            known = table.by_name[each.column.casefold()]
            for column in table.columns if set(known.words) & mine else ():
                alike = (
                    set(column.words) & others
                    and set(column.words) - others == set(known.words) - mine
                )
                if alike and column.is_number == known.is_number:
                    yield Reference(each.many, column.name, each.one, each.target, sure=False)

    def _inferred(self, many: Table, one: Table) -> Iterator[Reference]:
        """Yield keys that names suggest: `country_id` points at `country.id`, and a column with the
        name of another table's key points at this key.
        """
        if many.name == one.name or len(one.key) != 1:
            return
        [key] = one.key
        own = [lemma(word) for word in one.words]
        for column in many.columns:
            words = [lemma(word) for word in column.words]
            if column.references or (column.primary and len(many.key) == 1):
                continue
            points = (
                words[-1:] == ["id"]
                and words[:-1]
                and words[:-1] == own[-len(words[:-1]) :]
                and key.words[-1:] == ("id",)
            )
            shared = column.name.casefold() == key.name.casefold() and key.words not in (
                ("id",),
                ("name",),
                ("code",),
            )
            if points or shared:
                yield Reference(many.name, column.name, one.name, key.name, sure=False)

    @cached_property
    def _steps(self) -> dict[str, list[tuple[Step, Reference]]]:
        steps: dict[str, list[tuple[Step, Reference]]] = {}
        for each in self.references:
            many = self.table(each.many)
            single = many is not None and [column.name for column in many.key] == [each.column]
            steps.setdefault(each.many, []).append(
                (Step(each.many, each.column, each.one, each.target, up=True), each)
            )
            steps.setdefault(each.one, []).append(
                (Step(each.one, each.target, each.many, each.column, up=single), each)
            )
        return steps

    @lru_cache(maxsize=2_000)  # noqa: B019 - the catalogues kept are few, and this is what makes a question quick
    def path(
        self, source: str, target: str, roles: frozenset[str] = frozenset()
    ) -> tuple[Step, ...] | None:
        """Return the cheapest joins from one table to another, None if there is no way.

        A step down after a step up has a high price, because two tables that point at the same
        third table are otherwise unrelated.
        """
        order = itertools.count()
        queue: list[tuple[float, int, str, bool, tuple[Step, ...]]] = [
            (0.0, next(order), source, False, ())
        ]
        done: set[tuple[str, bool]] = set()
        while queue:
            cost, _, here, climbed, steps = heapq.heappop(queue)
            if here == target:
                return steps
            if (here, climbed) in done or len(steps) >= 6:
                continue
            done.add((here, climbed))
            options = [
                (self._step_cost(reference, roles), step)
                for step, reference in self._steps.get(here, ())
            ]
            for price, step in options:
                if any(step.there == known.here for known in steps):
                    continue
                rivals = (
                    sum(
                        1
                        for other, alike in options
                        if alike.there == step.there and abs(other - price) < 0.01
                    )
                    - 1
                )
                price += (3.0 if climbed and not step.up else 0.0) + (0.05 if not step.up else 0.0)
                further = Step(
                    step.here, step.here_column, step.there, step.there_column, step.up, rivals
                )
                heapq.heappush(
                    queue, (cost + price, next(order), step.there, step.up, (*steps, further))
                )
        return None

    def _step_cost(self, reference: Reference, roles: frozenset[str]) -> float:
        words = set(expanded(reference.column)) | set(split_name(reference.column))
        fits = {stem(word) for word in words} & roles
        return (
            (1.0 if reference.sure else 1.1)
            - (0.4 if fits else 0.0)
            - (0.05 if words & vocabulary().lists["default_roles"] else 0.0)
        )


# -- what the tools' answers say -------------------------------------------------------------------


@lru_cache(maxsize=16)
def read_catalog(answers: tuple[tuple[str, str], ...], card: str = "") -> Catalog | None:
    """Return the catalogue given by answers of list_tables and describe_tables, and by the schema's
    card. The kind of an answer is "list" for a whole page, "search" or "describe". Return None if
    nothing tells the dialect.

    The same answers give the same object, so that everything derived from it is computed only once.
    """
    dialect = ""
    pages = 1
    total = 0
    tables: dict[str, Table] = {}
    for kind, text in answers:
        data = json.loads(text)
        dialect = str(data.get("dialect") or dialect)
        if kind == "list":
            pages = int(data.get("pages") or 1)
            total = int(data.get("total") or 0)
        for raw in data["tables"]:
            if kind == "describe" or str(raw["name"]).casefold() not in tables:
                tables[str(raw["name"]).casefold()] = _table(raw, described=kind == "describe")
    known = read_card(card) if card else None
    if not dialect and known is not None:
        return Catalog(
            known.dialect,
            {**known.tables, **tables},
            total=known.total,
            carded=known.carded - set(tables),
        )
    return Catalog(dialect, tables, pages, total or len(tables)) if dialect else None


def _table(raw: dict[str, Any], *, described: bool) -> Table:
    name = str(raw["name"])
    samples = [row for row in raw.get("sample_rows") or () if isinstance(row, list)]
    columns: list[Column] = []
    for place, column in enumerate(raw.get("columns", ())):
        if not isinstance(column, dict):
            columns.append(Column(name, str(column)))
            continue
        seen = tuple(row[place] for row in samples if place < len(row))
        points = str(column.get("references") or column.get("inferred_reference") or "")
        primary = bool(column.get("primary_key"))
        columns.append(
            Column(
                name,
                str(column["name"]),
                str(column.get("type") or ""),
                primary,
                points,
                str(column.get("comment") or ""),
                seen,
            )
        )
    rows = raw.get("rows", raw.get("rows_at_least", raw.get("rows_estimate")))
    count = int(rows) if isinstance(rows, int | float) else None
    return Table(
        name,
        str(raw.get("kind", "table")),
        count,
        tuple(columns),
        described,
        str(raw.get("comment") or ""),
    )


_NAME = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\W\d]\w*(?:\.\w+)*)'
_CARD = re.compile(
    r"^Database: .* \((?P<dialect>\w+) dialect\)\.$.*?^Schema \((?P<count>[\d,]+)"
    r" tables?;[^\n]*\n(?P<lines>.*?)(?:\n\n|\Z)",
    re.M | re.S,
)
_CARD_LINE = re.compile(
    rf"(?P<name>{_NAME})(?: \((?:(?P<view>view)|~?(?P<rows>[\d,]+) rows?)\))?: (?P<columns>.+)"
)
_CARD_COLUMN = re.compile(
    rf"(?P<name>{_NAME})(?P<key>\*)? (?P<type>\S.*?)(?: (?:->|~>)"
    rf" (?P<target>{_NAME}(?:\.{_NAME})*))?"
)
# Commas in quotes or brackets are no ends.
_CARD_PART = re.compile(
    r'(?:"[^"]*"|`[^`]*`|[(\[](?:[^()\[\]]|[(\[][^()\[\]]*[)\]])*[)\]]|[^,"`(\[])+'
)
_CUT = re.compile(r"…|, and [\d,]+ more$")


def read_card(text: str) -> Catalog | None:
    """Return the tables on the schema's card in a system prompt. Return None unless the card has
    every table with every column.
    """
    card = _CARD.search(text)
    tables: dict[str, Table] = {}
    for line in card["lines"].splitlines() if card else ():
        if (match := _CARD_LINE.fullmatch(line)) and not _CUT.search(line):
            name = _bare(match["name"])
            parts = [
                _CARD_COLUMN.fullmatch(part.strip())
                for part in _CARD_PART.findall(match["columns"])
            ]
            columns = tuple(
                Column(name, _bare(c["name"]), c["type"], bool(c["key"]), c["target"] or "")
                for c in parts
                if c
            )
            rows = int(match["rows"].replace(",", "")) if match["rows"] else None
            if len(columns) == len(parts):
                tables[name.casefold()] = Table(
                    name, "view" if match["view"] else "table", rows, columns, described=True
                )
    if card is None or len(tables) != int(card["count"].replace(",", "")):
        return None
    return Catalog(card["dialect"], tables, total=len(tables), carded=frozenset(tables))


def _bare(name: str) -> str:
    mark = name[0]
    return name[1:-1].replace(mark * 2, mark) if mark in '"`' else name
