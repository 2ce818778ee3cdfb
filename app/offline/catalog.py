"""Read the tools' JSON into a catalogue: tables, columns, keys, links between tables."""

import re
from dataclasses import dataclass, field
from functools import cached_property

from longtable.app.offline.lexicon import FROM_COLUMNS, NAME_WORDS, TO_COLUMNS
from longtable.app.offline.names import Names
from longtable.app.offline.text import lemma, split_name

_NUMERIC = re.compile(r"INT|REAL|FLOA|DOUB|NUM|DEC|MONEY|SERIAL", re.IGNORECASE)
_DATE = re.compile(r"DATE|TIMESTAMP", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_PATTERN = re.compile(r"^\d{4}-\d{2}(-\d{2})?([ T].*)?$")


_AMOUNTS = frozenset("quantity qty count number hours days nights minutes units pieces seats amount total price cost rating score".split())  # noqa: SIM905


@dataclass(frozen=True)
class Column:
    """One column: declared type, key marks, and the samples that were shown."""

    table: str
    name: str
    type: str = ""
    primary: bool = False
    references: str = ""
    comment: str = ""
    samples: tuple[object, ...] = ()
    guess: str = ""
    """The column that it points at by names and values, though nobody declared it."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of its name."""
        return split_name(self.name)

    @cached_property
    def is_date(self) -> bool:
        """Say whether it holds dates: by type, or text that looks like ISO dates."""
        if _DATE.search(self.type):
            return True
        seen = [value for value in self.samples if value is not None]
        return bool(seen) and all(isinstance(value, str) and _ISO_PATTERN.match(value) for value in seen)

    @cached_property
    def has_number_type(self) -> bool:
        """Say whether the declared type is a number."""
        return bool(_NUMERIC.search(self.type)) and not self.is_date

    @cached_property
    def is_number(self) -> bool:
        """Say whether it holds numbers: by type, or text whose samples all read as numbers."""
        if self.has_number_type:
            return True
        seen = [value for value in self.samples if value is not None]
        return bool(seen) and not self.is_date and all(_reads_as_number(value) for value in seen)

    @cached_property
    def is_id(self) -> bool:
        """Say whether it is a key rather than a measure."""
        return self.primary or bool(self.references) or self.words[-1:] in (("id",), ("code",), ("key",), ("no",))

    @cached_property
    def is_name(self) -> bool:
        """Say whether it names its row."""
        return (
            any(lemma(word) in NAME_WORDS for word in self.words)
            or self.name in NAME_WORDS
            or self.name.lower().endswith(("name", "名称", "姓名", "名"))
        )

    @cached_property
    def truth(self) -> str | int | None:
        """Return what stands for yes in a column of flags (1, 'yes', 'T', true), None when it is none."""
        seen = {value if isinstance(value, bool) else str(value).strip() for value in self.samples if value is not None}
        if not seen or self.is_id or {"sex", "gender"} & set(self.words) or (_AMOUNTS & set(self.words) and seen <= {"0", "1"}):
            return None
        if seen == {"1"} and len(self.words) == 1 and lemma(self.words[0]) != self.words[0]:
            return None  # one copy in each sample; an F alone among the samples is no 'false', a 1 no 'true'
        if seen <= {True, False} and (self.type.upper().startswith("BOOL") or all(isinstance(value, bool) for value in seen)):
            return True
        for yes, no in (
            ("1", "0"),
            ("yes", "no"),
            ("Yes", "No"),
            ("YES", "NO"),
            ("Y", "N"),
            ("y", "n"),
            ("T", "F"),
            ("true", "false"),
            ("True", "False"),
            ("是", "否"),
        ):
            if seen <= {yes, no}:
                return int(yes) if yes == "1" and self.has_number_type else yes
        return None

    @cached_property
    def is_binary(self) -> bool:
        """Say whether it holds bytes."""
        return "BLOB" in self.type.upper() or "BYTEA" in self.type.upper() or "BINARY" in self.type.upper()


def _reads_as_number(value: object) -> bool:
    if isinstance(value, (int, float)):
        return True
    return isinstance(value, str) and bool(re.fullmatch(r"-?\d+(\.\d+)?", value.strip()))


_MERE_TABLE = frozenset(["tbl", "dim", "fact", "master", "header", "table"])


@dataclass(frozen=True)
class Table:
    """One table or view; `described` once describe_tables told its types and keys."""

    name: str
    kind: str = "table"
    rows: int | None = None
    columns: tuple[Column, ...] = ()
    described: bool = False
    comment: str = ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of its name, without what only says that it is a table: drug_mst, tbl_drug."""
        words = split_name(self.name)
        return tuple(word for word in words if word not in _MERE_TABLE) or words

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Return its columns by case-folded name."""
        return {column.name.casefold(): column for column in self.columns}

    @cached_property
    def key(self) -> tuple[Column, ...]:
        """Return the primary key, or the column that looks like one."""
        declared = tuple(column for column in self.columns if column.primary)
        if declared:
            return declared
        named = {lemma(word) for word in self.words}
        for column in self.columns[:2]:
            if column.words[-1:] == ("id",) and (len(column.words) == 1 or lemma(column.words[0]) in named):
                return (column,)
        return ()

    @cached_property
    def names(self) -> tuple[Column, ...]:
        """Return the columns that name a row, best first: its own name, or first and last name."""
        found = [column for column in self.columns if column.is_name and not column.references and not column.is_number]
        people = [
            column
            for column in found
            if {"first", "last", "f", "l", "given", "family", "sur", "surname", "forename", "firstname", "lastname", "fname", "lname"}
            & set(column.words)
        ]
        if len(people) >= 2:
            return tuple(people[:2])
        own = {lemma(word) for word in self.words}
        best = sorted(
            found,
            key=lambda column: (
                len({lemma(word) for word in column.words} - own - set(NAME_WORDS) - {"full", "display", "legal"}),
                "title" in column.words,  # beside a name, a title is that of a job
                self.columns.index(column),
            ),
        )
        if not best or not {lemma(word) for word in best[0].words} <= own | set(NAME_WORDS) | {"full", "display", "legal"}:
            own |= {"description"}
            described = [column for column in self.columns if {"description"} < {lemma(word) for word in column.words} <= own]
            best = described or best  # the part is called by its part_desc, not by its supp_nm or its number
        return tuple(best[:1] or self.namesakes)

    @cached_property
    def names_itself(self) -> bool:
        """Say whether the first of its names is its own and not that of someone in it: a hearing's judge_name."""
        own = {lemma(word) for word in self.words} | set(NAME_WORDS) | {"full", "display", "legal", "first", "given", "company", "short"}
        return bool(self.names) and {lemma(word) for word in self.names[0].words} <= own

    @cached_property
    def namesakes(self) -> tuple[Column, ...]:
        """Return the texts called like the table itself: the maker of the makers."""
        own = {lemma(word) for word in self.words}
        return tuple(
            column
            for column in self.columns
            if column.type and {lemma(word) for word in column.words} <= own and not (column.is_id or column.is_number or column.is_date)
        )


@dataclass(frozen=True)
class Link:
    """A way to join: `many` columns point at `one` columns. `sure` when declared."""

    many: str
    many_columns: tuple[str, ...]
    one: str
    one_columns: tuple[str, ...]
    sure: bool = True
    by_role: bool = False
    """Guessed by what it says: HANDLED_BY of a complaint is someone of the staff."""


@dataclass(frozen=True)
class Catalog:
    """All that the view tells about the database."""

    dialect: str = "sqlite"
    tables: dict[str, Table] = field(default_factory=dict)
    pages: int = 1
    total: int = 0
    carded: frozenset[str] = frozenset()
    """Tables, case-folded, known by the schema's card alone: without samples, comments and the exact number of rows."""
    names: Names = field(default_factory=Names)
    """The real names, where a question spelled them out."""

    def table(self, name: str) -> Table | None:
        """Return a table by name, whatever its case."""
        return self.tables.get(name.casefold())

    def column(self, table: str, name: str) -> Column | None:
        """Return a column by names, whatever their case."""
        found = self.table(table)
        return found.by_name.get(name.casefold()) if found else None

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Return every way to join two described tables: declared keys, then inferred by names."""
        return tuple(_links(tuple(table for table in self.tables.values() if table.described)))


def _links(tables: tuple[Table, ...]) -> list[Link]:
    by_name = {table.name.casefold(): table for table in tables}
    declared = [link for table in tables for link in _declared(table, by_name)]
    pairs = {frozenset((link.many, link.one)) for link in declared}
    inferred = [
        link
        for many in tables
        for one in tables
        if many.name != one.name and frozenset((many.name, one.name)) not in pairs and many.kind == one.kind == "table"
        for link in _inferred(many, one)
    ]
    return declared + _paired(declared, by_name) + inferred


def _declared(table: Table, by_name: dict[str, Table]) -> list[Link]:
    groups: dict[str, list[tuple[Column, str]]] = {}
    for column in table.columns:
        if column.references:
            target, _, target_column = column.references.rpartition(".")
            groups.setdefault(target.strip('"').casefold(), []).append((column, target_column.strip('"')))
    links: list[Link] = []
    for target, pairs in groups.items():
        other = by_name.get(target)
        if other is None:
            continue
        names = [name.casefold() for _, name in pairs]
        if len(pairs) > 1 and len(set(names)) == len(names) == len(other.key):  # one composite key
            links.append(Link(table.name, tuple(column.name for column, _ in pairs), other.name, tuple(name for _, name in pairs)))
        else:
            links += [Link(table.name, (column.name,), other.name, (name,)) for column, name in pairs]
    return links


def _paired(declared: list[Link], by_name: dict[str, Table]) -> list[Link]:
    """Let a destination point where the origin of the same table points, though no key says so."""
    found: list[Link] = []
    taken = {(link.many, column) for link in declared for column in link.many_columns}
    for link in declared:
        if len(link.many_columns) != 1:
            continue
        column = link.many_columns[0]
        words = set(split_name(column))
        others = TO_COLUMNS if words & FROM_COLUMNS else FROM_COLUMNS if words & TO_COLUMNS else frozenset()
        rest = words - FROM_COLUMNS - TO_COLUMNS
        for other in by_name[link.many.casefold()].columns:
            mine = set(other.words)
            if mine & others and mine - FROM_COLUMNS - TO_COLUMNS == rest and (link.many, other.name) not in taken:
                found.append(Link(link.many, (other.name,), link.one, link.one_columns, sure=False))
    return found


_COMMON = frozenset(
    [
        "id",
        "name",
        "title",
        "type",
        "code",
        "date",
        "year",
        "month",
        "day",
        "hour",
        "time",
        "description",
        "status",
        "comment",
        "note",
        "number",
        "position",
        "value",
        "count",
    ]
)


def _inferred(many: Table, one: Table) -> list[Link]:
    """Infer a link by names: x.country_id -> country.id, or a shared column that looks like the key of the smaller table."""
    own = [lemma(word) for word in one.words]
    key = one.key
    for column in many.columns:
        table, _, target = column.guess.rpartition(".")
        if table.strip('"').casefold() == one.name.casefold():
            return [Link(many.name, (column.name,), one.name, (target.strip('"'),), sure=False)]
    for column in many.columns:
        words = [lemma(word) for word in column.words]
        if column.references or (column.primary and len(many.key) == 1):
            continue
        if len(key) == 1 and words[-1:] == ["id"] and words[:-1] and words[:-1] == own[-len(words[:-1]) :] and key[0].words[-1:] == ("id",):
            return [Link(many.name, (column.name,), one.name, (key[0].name,), sure=False)]
        if words[-1:] == ["by"] and len(words) > 1 and _WORKERS & set(own) and len(key) == 1 and _among(column, one):
            return [Link(many.name, (column.name,), one.name, (key[0].name,), sure=False, by_role=True)]
        twin = one.by_name.get(column.name.casefold())
        if twin is None or column.name.casefold() in _COMMON:
            continue
        if key == (twin,) or (not key and twin == one.columns[0] and _distinct(twin) and _smaller(one, many)):
            return [Link(many.name, (column.name,), one.name, (twin.name,), sure=False)]
    return []


_WORKERS = frozenset(["staff", "employee", "personnel", "worker"])


def _among(column: Column, one: Table) -> bool:
    """Say whether numbers lie among those of a key: HANDLED_BY of a complaint holds the number of someone of the staff."""
    seen, keys = ([value for value in each.samples if isinstance(value, int)] for each in (column, one.key[0]))
    return bool(seen and keys) and min(keys) <= min(seen) and max(seen) <= min(keys) + 1.2 * (one.rows or 0)


def _distinct(column: Column) -> bool:
    return len(set(map(str, column.samples))) == len(column.samples) > 0


def _smaller(one: Table, many: Table) -> bool:
    return one.rows is not None and many.rows is not None and one.rows <= many.rows
