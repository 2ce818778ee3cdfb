"""Plan the checks of a query: the SQL that shows whether its figures can be trusted.

It reads the tree of a query that the wall let pass, so it belongs where texts are parsed. Each
check is a `Probe`, whose SQL the caller runs behind both walls. All figures are counts of rows: no
probe returns a cell. The question, where the caller has it, says what was meant: without it no
check knows that minutes were asked for, or customers and not orders.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import product

from sqlglot import exp

from longtable.tools.catalog import Catalog, Column, Table, fold, quoted
from longtable.tools.cells import clip
from longtable.tools.schema.sampling import NUMBER
from longtable.tools.schema.schema_index import singular
from longtable.tools.sql.narrow import owner_of, sources_of
from longtable.tools.sql.parsing import statement, written
from longtable.tools.sql.verdict import Probe

MOST_PROBES = 10
_DAY = timedelta(days=1)
_MOVES: dict[type[exp.Expr], int] = {exp.GT: 1, exp.GTE: 0, exp.LT: -1, exp.LTE: 0}
"""Comparisons by size, and how far the first or last number within stands from what is written."""
_SAYS = {
    "counted": r"\b(?:how many|number of|count of)\s+(?:[\w-]+\s+){0,3}?([a-z]+s)\b",
    "every": (
        r"\b(?:all|every)\s+(?:of\s+)?(?:the\s+)?(\w+)\b(?!\s+(?:who|that|which|whose|with|having)\b)"
    ),
    "before": r"(?:before|prior to|earlier than)\s+(?:the\s+)?$",
    "after": r"(?:after|later than)\s+(?:the\s+)?$",
    "distinct": r"\b(?:different|distinct|unique)\b|不同|去重|不重复",
    "percent": r"\bper ?cent|percentage|%|百分",
    "share": r"\b(?:share|proportion|fraction|ratio|rate)\b|占比|比例|率",
    "pairs": r"\bpair|\bcombin|组合|配对",
    "outer": r"\binclud|\beven (?:if|those|when)\b|\bwith or without\b|\bzero\b|包括|包含|即使",
    "negated": r"\b(?:not|never|no|without|except|other than|excluding)\b|n't\b|没有|不|未|非|除",
    "known": r"\b(?:known|recorded|listed|specified|stated)\b|已知|填写|有记录",
    "gross": (
        r"\b(?:before|without|ignor\w+|exclud\w+|not counting|regardless"
        r" of|no)\b[^.;?]{0,30}\bdiscount"
        r"|\b(?:gross|undiscounted|full price)\b|折扣前|不含折扣|不计折扣|原价"
    ),
    "list price": r"\b(?:list|current|catalogue?|standard) price|目录价|现价",
}
"""What words of a question mean."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[\u4e00-\u9fff]+")
_FACTORS = {"discount": 0, "rebate": 0, "折扣": 0, "quantity": 1, "qty": 1, "数量": 1}
"""Columns that a sum of prices needs beside it, and the value that changes nothing."""
_NAMES = {
    "price": frozenset({"price", "cost", "单价", "价格"}),
    "total": frozenset({"total", "amount", "sum", "总额"}),
    "rate": frozenset(
        {
            "rate",
            "ratio",
            "average",
            "avg",
            "mean",
            "percent",
            "pct",
            "percentage",
            "share",
            "temp",
            "temperature",
        }
    ),
    "clock": frozenset({"second", "minute", "min", "hour", "day"}),
    "general": frozenset(
        {
            "hour",
            "minute",
            "day",
            "id",
            "code",
            "date",
            "time",
            "name",
            "number",
            "total",
            "value",
            "amount",
            "year",
            "month",
        }
    ),
}
"""Parts of names that say what a column holds, or, as "general", little of it; "clock": parts of a
time, which are no units.
"""

# -- the question ----------------------------------------------------------------------------------

_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_TO = r"(?:\s*(?:-|–|to|and|through|until)\s*(\d{1,2})(?:st|nd|rd|th)?\b)?"
_MONTH = rf"({_MONTHS})(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?\b\.?"
_DATES = (
    (rf"\b(\d{{1,2}})(?:st|nd|rd|th)?{_TO}\s+(?:of\s+)?{_MONTH}", (3, 1, 2)),
    (rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?\b{_TO}", (1, 2, 3)),
    (r"\b\d{4}-(\d\d)-(\d\d)()", (1, 2, 3)),
    (r"(\d{1,2})月(\d{1,2})[日号]?(?:[到至~—-](\d{1,2})[日号])?", (1, 2, 3)),
)
"""How days are written, and where month, day and last day stand."""


def _days(asked: str) -> set[tuple[int, int, int]]:
    """Return the days that a question names: month, day, and how far the bound stands from it."""
    return {
        (int(month) if month.isdigit() else _MONTHS.index(month) // 4 + 1, int(match[place]), move)
        for pattern, (first, *places) in _DATES
        for match in re.finditer(pattern, asked)
        for month, place in product([match[first]], places)
        if match[place]
        for before in [asked[: match.start()]]
        for move in [
            bool(re.search(_SAYS["after"], before)) - bool(re.search(_SAYS["before"], before))
        ]
    }


_UNITS: dict[str, tuple[float, float]] = {
    word: unit
    for unit, words in {
        (0.001, 2.0): "millisecond ms 毫秒",
        (1.0, 2.0): "second sec 秒",
        (60.0, 2.0): "minute min mins 分钟",
        (3_600.0, 2.0): "hour hr 小时",
        (86_400.0, 2.0): "day 天",
        (1.0, 3.0): "byte 字节",
        (1_024.0, 3.0): "kilobyte kb kib",
        (1_024.0**2, 3.0): "megabyte mb mib 兆",
        (1_024.0**3, 3.0): "gigabyte gb gib",
        (0.3048, 5.0): "foot feet ft 英尺",
        (1.0, 5.0): "metre meter 米",
        (1_000.0, 5.0): "kilometre kilometer km 公里 千米",
        (1_609.344, 5.0): "mile mi 英里",
        (1_609.344 / 3_600, 2.5): "mph",
        (1 / 3.6, 2.5): "kmh km/h",
    }.items()
    for word in words.split()
}
"""For each how much 1 is of the base unit, and what it measures: 2 for time, 3 for data, 5 for
length, 2.5 for length by time.
"""
_UNIT = re.compile(
    rf"(\d[\d,.]*\s*|\ban?\s+|每)?(?<![a-z])({'|'.join(sorted(_UNITS, key=len, reverse=True))})s?(?![a-z])"
)


def _units(text: str) -> list[tuple[str, tuple[float, float], str]]:
    """Return the units that a text names: the number before each, its size, and how it is
    written.
    """
    return [
        ((match[1] or "").strip(), _UNITS[match[2]], match[0]) for match in _UNIT.finditer(text)
    ]


def _near(one: float, others: Sequence[float]) -> bool:
    """Return whether a size is one of these; a gigabyte may be 1,000 or 1,024 to the third."""
    return any(other and 0.92 < abs(one / other) < 1.08 for other in others)


# -- one SELECT ------------------------------------------------------------------------------------


def _words(name: str) -> list[str]:
    return [singular(part.casefold()) for part in _WORD.findall(name)]


@dataclass(frozen=True)
class _Part:
    """One SELECT of a query, and what its columns mean."""

    select: exp.Select
    root: exp.Expr
    asked: str
    dialect: str
    catalog: Catalog

    @cached_property
    def tables(self) -> Mapping[str, Table | None]:
        """Return what it reads, by the folded names that go for it; None for what is no table."""
        return sources_of(self.select, self.catalog, self.dialect)

    def called(self, alias: str) -> list[str]:
        """Return the words of a table's name."""
        return _words(getattr(self.tables.get(alias), "bare_name", ""))

    @cached_property
    def joins(self) -> list[exp.Join]:
        return self.select.args.get("joins") or []

    @cached_property
    def lists(self) -> bool:
        """Return whether each row of the joined tables is a row of the result."""
        return (
            self.select is self.root
            and not self.select.args.get("distinct")
            and not self.select.find(exp.AggFunc, exp.Group)
        )

    @cached_property
    def conditions(self) -> list[exp.Expr]:
        """Return the conditions that all must hold."""
        where = self.select.args.get("where")
        return (
            []
            if where is None
            else list(where.this.flatten())
            if isinstance(where.this, exp.And)
            else [where.this]
        )

    @cached_property
    def comparisons(self) -> list[tuple[exp.Expr, exp.Expr, type[exp.Expr], exp.Expr]]:
        """Return the comparisons by size that must hold: the condition, what it compares, how, and
        with what; BETWEEN is two.
        """
        between = [each for each in self.conditions if isinstance(each, exp.Between)]
        return [
            *(
                (each, each.this, type(each), each.expression)
                for each in self.conditions
                if isinstance(each, tuple(_MOVES))
            ),
            *((each, each.this, exp.GTE, each.args["low"]) for each in between),
            *((each, each.this, exp.LTE, each.args["high"]) for each in between),
        ]

    @cached_property
    def aggregates(self) -> list[exp.Expr]:
        """Return its sums, averages and counts of rows, those of inner queries left out."""
        nodes = (
            node
            for node in self.select.find_all(exp.Sum, exp.Avg, exp.Count)
            if node.parent_select is self.select
        )
        return [
            node
            for node in nodes
            if not node.find(exp.Distinct) and not node.find_ancestor(exp.Window)
        ]

    def says(self, what: str) -> list[str]:
        """Return the words of the question that mean this, none where there are none."""
        return [match[match.lastindex or 0] for match in re.finditer(_SAYS[what], self.asked)]

    def names(self, term: str) -> bool:
        """Return whether the question has a part of a name as a word, or a word that it is short
        for, as `dep` is for `departure`.
        """
        words = {singular(word) for word in re.findall("[a-z]+", self.asked)}
        short = len(term) in (3, 4) and any(word.startswith(term) for word in words)
        return short or term in words or (not term.isascii() and term in self.asked)

    def owners(self, node: exp.Expr) -> set[str]:
        return {owner_of(column, self.tables) for column in node.find_all(exp.Column)}

    def idle(self, join: exp.Join) -> bool:
        """Return whether nothing but its own condition reads what is joined."""
        return not any(
            isinstance(each, exp.Star) or self.owners(each) & {fold(join.this.alias_or_name), ""}
            for each in self.select.find_all(exp.Column, exp.Star)
            if each.find_ancestor(exp.Join) is not join
        )

    def used_outside_joins(self, alias: str) -> bool:
        """Return whether a condition, a group or a figure reads a table."""
        columns = self.select.find_all(exp.Column)
        return any(
            self.owners(each) == {alias} for each in columns if not each.find_ancestor(exp.Join)
        )

    def known(self, node: object) -> Column | None:
        """Return the catalogue's column of a column node, None for anything else."""
        table = (
            self.tables.get(owner_of(node, self.tables)) if isinstance(node, exp.Column) else None
        )
        return (
            next(
                (
                    each
                    for each in table.columns
                    if fold(each.name) == fold(getattr(node, "name", ""))
                ),
                None,
            )
            if table
            else None
        )

    def may_be_null(self, node: exp.Expr) -> bool:
        tables = [
            table for table in self.tables.values() if table and self.known(node) in table.columns
        ]
        return any(
            each is self.known(node) and each.nullable and each.name not in t.primary_key
            for t in tables
            for each in t.columns
        )

    def column(self, alias: str, name: str) -> str:
        """Return the text of a column of a table, by the name that the table goes by in the
        query.
        """
        table = self.tables[alias]
        return f"{quoted(table.bare_name if table and fold(table.bare_name) == alias else alias)}.{quoted(name)}"

    def identity(self, *aliases: str) -> list[str]:
        """Return what tells one row of these tables from another: their keys, or all that they
        hold.
        """
        return [
            self.column(alias, name)
            for alias in aliases
            if (table := self.tables[alias])
            for name in table.primary_key or [each.name for each in table.columns]
        ]

    def text(self, node: exp.Expr) -> str:
        return written(node, self.dialect)

    def short(self, node: exp.Expr) -> str:
        """Return a node's text for the template of a finding."""
        return clip(self.text(node), 80).replace("{", "{{").replace("}", "}}")

    def count(
        self,
        *conditions: str,
        without: exp.Expr | None = None,
        joins: int | None = None,
        figure: str = "COUNT(*)",
    ) -> str:
        """Return SQL that counts the rows where these conditions hold too, before they are grouped;
        with the first of the joins only.
        """
        with_ = self.root.args.get("with_")
        read = set(list(self.tables)[: None if joins is None else joins + 1])
        source = " ".join(
            self.text(each) for each in [self.select.args["from_"], *self.joins[:joins]]
        )
        texts = [
            self.text(each)
            for each in self.conditions
            if each is not without and (joins is None or self.owners(each) <= read)
        ]
        where = " AND ".join(f"({each})" for each in [*texts, *conditions])
        return f"{self.text(with_) if with_ else ''} SELECT {figure} {source} WHERE {where}"

    def repeats(self, keys: Sequence[str]) -> str:
        """Return SQL for how many different keys the groups hold, and in how many rows."""
        group = self.select.args.get("group")
        items = self.select.expressions
        by_alias = {fold(item.alias): item.this for item in items if isinstance(item, exp.Alias)}
        groups = [
            self.text(
                items[int(key.name) - 1].unalias()
                if key.is_int
                else key
                if self.known(key)
                else by_alias.get(fold(key.name), key)
            )
            for key in (group.expressions if group is not None else [])
        ]
        rows = self.count(f"{keys[0]} IS NOT NULL", figure="COUNT(*) AS n")
        return f"SELECT COUNT(*), SUM(n) FROM ({rows} GROUP BY {', '.join([*groups, *keys])}) AS r"


# -- joins and counts ------------------------------------------------------------------------------


def _fan_out(part: _Part) -> Iterator[Probe]:
    """Find rows of the table that is added up, or listed, that a join repeats."""
    whole = len(part.tables) > 1 and all(part.tables.values())
    yield from (
        Probe(
            "fan_out",
            f"{part.short(node)}: {{0:,}} rows of {' and '.join(owners)} count {{1:,}} times, for a"
            " join repeats them",
            part.repeats([part.text(column), *part.identity(*owners)]),
        )
        for node in part.aggregates
        for owners, column in [(sorted(part.owners(node)), node.find(exp.Column))]
        if whole and column is not None and "" not in owners
        if not (isinstance(node, exp.Avg) and _weighted(part, owners))
    )
    crossed = _crossed(part) if whole and not part.says("pairs") else []
    yield from (
        Probe(
            "fan_out",
            f"{part.short(node)}: {{0:,}} rows of {alias} count {{1:,}} times, for a join repeats"
            " them",
            part.repeats(part.identity(alias)),
        )
        for node, alias in product(part.aggregates, crossed[:1])
        if node.find(exp.Column) is None
    )
    yield from (
        Probe(
            "fan_out",
            f"{join.this.name} is joined and nothing of it is shown: {{0:,}} rows are listed"
            " {1:,} times",
            part.repeats(
                part.identity(
                    *(alias for alias in part.tables if alias != fold(join.this.alias_or_name))
                )
            ),
        )
        for join in part.joins
        if whole and part.lists and part.idle(join)
    )


def _crossed(part: _Part) -> list[str]:
    """Return the first table and those joined to it, if no condition ties a further one to them."""
    ties = [part.owners(each) for each in _conjuncts(part)]
    tied = {next(iter(part.tables))}
    for join in part.joins:
        if join.args.get("using") or join.method == "NATURAL":
            return []
    while more := {name for names in ties if names & tied for name in names} - tied:
        tied |= more
    return sorted(tied) if {*part.tables} - tied else []


def _conjuncts(part: _Part) -> Iterator[exp.Expr]:
    """Yield the conditions of a SELECT and its joins that all must hold."""
    yield from part.conditions
    for join in part.joins:
        if (on := join.args.get("on")) is not None:
            yield from on.flatten() if isinstance(on, exp.And) else [on]


def _weighted(part: _Part, owners: Sequence[str]) -> bool:
    """Return whether the question wants the average of each row of another table: of the weather
    at each late flight.
    """
    own = {word for owner in owners for word in part.called(owner)}
    for alias in part.tables:
        words = {*part.called(alias)} - own
        if alias in owners or not part.asked or not _is_one_each(part, alias):
            continue
        used = part.used_outside_joins(alias) and not any(map(part.names, own))
        if used or any(map(part.names, words)):
            return True
    return False


def _is_one_each(part: _Part, alias: str) -> bool:
    """Return whether each row of a table stands once in a join: the others are found by their
    keys.
    """
    found = {alias}
    while more := {name for name in part.tables if _is_found(part, name, found)} - found:
        found |= more
    return found == {*part.tables}


def _is_found(part: _Part, name: str, known: set[str]) -> bool:
    """Return whether a table's whole key equals columns of tables that are known."""
    table = part.tables[name]
    keys: set[str] = set()
    for each in _conjuncts(part):
        sides = [each.this, each.expression] if isinstance(each, exp.EQ) else []
        columns = [side for side in sides if isinstance(side, exp.Column)]
        own = [column for column in columns if part.owners(column) == {name}]
        others = [column for column in columns if part.owners(column) <= known]
        if own and others:
            keys.add(fold(own[0].name))
    primary = {fold(column) for column in table.primary_key} if table else set()
    return bool(primary) and primary <= keys


def _counted_rows(part: _Part) -> Iterator[Probe]:
    """Find counts of rows where the question counts what may stand in several rows."""
    counts = any(isinstance(node, exp.Count) for node in part.aggregates) and all(
        part.tables.values()
    )
    subjects = [
        (noun, keys)
        for noun in part.says("counted")
        if counts and (keys := _keys_of(singular(noun), part))
    ]
    yield from (
        Probe(
            "counted_rows",
            f"the question counts {noun}, the query counts rows: {{0:,}} {noun} stand in {{1:,}}"
            " rows",
            part.repeats(keys),
        )
        for noun, keys in subjects[:1]
    )
    if (
        counts
        and not subjects
        and part.says("distinct")
        and part.select is part.root
        and not part.root.find(exp.Distinct)
    ):
        yield Probe(
            "counted_rows",
            "the question asks for different values, but the query counts rows: use COUNT(DISTINCT"
            " ...)",
        )


def _keys_of(noun: str, part: _Part) -> list[str]:
    """Return the columns that say which of the things counted a row is about: the key of a table
    called so, or another column.
    """
    matching = [one for one in part.tables if part.called(one) == [noun]] or [
        one for one in part.tables if part.called(one)[-1:] == [noun]
    ]
    targets = {
        table.name: table.primary_key
        for table in part.catalog.tables
        if _words(table.bare_name) == [noun]
    }
    keys = {
        key.columns
        for table in part.tables.values()
        if table
        for key in table.foreign_keys
        if key.table in targets
    }
    return (
        part.identity(*matching[:1])
        or [
            part.column(alias, column.name)
            for alias, table in part.tables.items()
            for column in (table.columns if table else ())
            for words in [[word for word in _words(column.name) if word not in _NAMES["general"]]]
            if words[-1:] == [noun]
            or (len(words) == 1 and len(words[0]) > 3 and noun.startswith(words[0]))
            or (words and (column.name,) in keys | {*targets.values()})
        ][:1]
    )


# -- rows without a value --------------------------------------------------------------------------


def _nulls_dropped(part: _Part) -> Iterator[Probe]:
    """Find conditions and counts that leave out rows without a value."""
    kinds = (exp.NEQ, exp.Not, exp.Like, *(_MOVES if part.says("negated") else ()))
    yield from (
        Probe(
            "nulls_dropped",
            f"{part.short(each)} leaves out {{0:,}} rows without a value",
            part.count(f"({part.text(each)}) IS NULL", without=each),
        )
        for each in part.conditions
        if not part.says("known") and not each.find(exp.Is, exp.Coalesce, exp.Exists)
        for odd in [
            [
                node
                for node in each.find_all(*kinds)
                if not isinstance(node, exp.Like) or node.args.get("negate")
            ]
        ]
        if any(node.expression != exp.Literal.string("") for node in odd)
    )
    yield from (
        Probe(
            "nulls_dropped",
            f"{part.short(node)} leaves out {{0:,}} rows without a value",
            part.count(f"{part.text(node.this)} IS NULL"),
        )
        for node in part.aggregates
        if isinstance(node, exp.Count)
        and part.may_be_null(node.this)
        and part.asked
        and not _is_of_a_share(node)
        and not any(map(part.names, _words(node.this.name)))
    )


def _is_of_a_share(node: exp.Count) -> bool:
    """Return whether the other side of a share reads the column counted, or counts all rows."""
    quotient = node.find_ancestor(exp.Div)
    if quotient is None:
        return False
    others = [each for each in quotient.find_all(exp.Column) if each is not node.this]
    everything = any(isinstance(each.this, exp.Star) for each in quotient.find_all(exp.Count))
    return everything or any(fold(each.name) == fold(node.this.name) for each in others)


def _rows_lost(part: _Part) -> Iterator[Probe]:
    """Find rows without a match that a join loses: where the question wants them, or where nothing
    else of the join is used.
    """
    yield from (
        Probe(
            "rows_lost",
            f"the join with {join.this.name} loses {{0:,}} rows that have no match there",
            part.count(
                f"NOT EXISTS (SELECT 1 FROM {part.text(join.this)} WHERE {part.text(on)})",
                joins=place,
            ),
        )
        for place, join in enumerate(part.joins)
        if (on := join.args.get("on")) is not None and not join.side
        for onwards in [{*list(part.tables)[place + 1 :]}]
        for columns in [
            [each for each in on.find_all(exp.Column) if not part.owners(each) & onwards]
        ]
        for called in [
            {
                word
                for each in columns
                for owner in part.owners(each)
                for word in part.called(owner)[-1:]
            }
        ]
        if not any(onwards & part.owners(each) for each in part.conditions)
        if part.says("outer")
        or (part.lists and any(map(part.may_be_null, columns)))
        or (part.aggregates and part.idle(join))
        or called & set(map(singular, part.says("every")))
    )


# -- dates -----------------------------------------------------------------------------------------


def _date_bounds(part: _Part) -> Iterator[Probe]:
    """Find ranges that end within a day, or a day early or late."""
    days = _days(part.asked)
    bounds = [
        (
            node,
            kind in (exp.GT, exp.GTE),
            part.text(dated),
            date.fromisoformat(match[1]) + _MOVES[kind] * midnight * _DAY,
            cut,
        )
        for node, side, kind, value in part.comparisons
        if (literal := value.find(exp.Literal)) and not isinstance(value, exp.Binary)
        if (match := re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[ T](.+))?", literal.name))
        and (dated := side.find(exp.Column))
        for midnight in [not match[2] or match[2].startswith("00:00")]
        for cut in [kind is exp.LTE and midnight and dated is side]
    ]
    yield from (
        Probe(
            "date_bounds",
            f"{part.short(node)} {'takes in' if inside else 'leaves out'} {{0:,}} rows of {odd}",
            part.count(
                f"{column} >= '{odd}' AND {column} < '{odd + _DAY}' AND"
                f" {'' if inside else 'NOT '}({part.text(node)})",
                without=node,
            ),
        )
        for node, first, column, day, cut in bounds
        for others in [[each[3] for each in bounds if each[2] == column and each[1] != first]]
        for right in [
            _right_day(
                day,
                first,
                others,
                {date(day.year, month, number) + move * _DAY for month, number, move in days},
            )
        ]
        for odd, inside in [(day, False)] * cut
        + ([(day, True) if (right > day) == first else (right, False)] if right else [])
    )
    yield from (
        Probe(
            "date_bounds",
            f"{part.short(node)} is one {word} off: the question says"
            f" {', '.join(map(str, sorted(numbers)))}",
        )
        for node, side, kind, value in part.comparisons
        for word, place in (("month", 0), ("day", 1))
        for numbers in [{each[place] for each in days}]
        if value.is_int
        and _words(side.name) == [word]
        and (number := int(value.name) + _MOVES[kind]) not in numbers
        if {number - 1, number + 1} & numbers
    )


def _right_day(day: date, first: bool, others: list[date], days: set[date]) -> date | None:
    """Return the first or last day that was probably meant, None where this one may be right."""
    whole = [
        one for one in (day - _DAY, day, day + _DAY) if (one if first else one + _DAY).day == 1
    ]
    aligned = all((other + _DAY if first else other).day == 1 for other in others)
    near = [one for one in (day - _DAY, day + _DAY) if one in days] or [
        one for one in whole if aligned
    ]
    # "From May to 1 July" may well end with June.
    return None if {day} & {*days, *others, *whole} else next(iter(near), None)


# -- units and measures ----------------------------------------------------------------------------


def _unit(node: exp.Expr, part: _Part) -> tuple[float, float]:
    """Return the unit of an expression. A constant divides it: 1 of `ms / 1000` is a second."""
    if isinstance(node, exp.Column):
        column = part.known(node)
        text = (
            f"{' '.join(_WORD.findall(column.name)).lower()}  {(column.comment or '').lower()}"
            if column
            else ""
        )
        return next(
            (
                unit
                for before, unit, name in _units(text)
                if not before and name not in _NAMES["clock"]
            ),
            (1.0, 1.0),
        )
    if isinstance(node, exp.Mul | exp.Div):
        (size, kind) = _unit(node.this, part)
        (other, of) = _unit(node.expression, part)
        return (size * other, kind * of) if isinstance(node, exp.Mul) else (size / other, kind / of)
    if node.is_number and float(node.name or 0):
        return 1 / float(node.name), 1.0
    below = (
        node.expression
        if isinstance(node, exp.Add | exp.Sub) and not node.this.find(exp.Column)
        else node.this
    )
    below = node.args["ifs"][0].args["true"] if isinstance(node, exp.Case) else below
    return (
        _unit(below, part)
        if isinstance(below, exp.Expr) and not isinstance(node, exp.Count | exp.Subquery)
        else (1.0, 1.0)
    )


def _unit_faults(part: _Part) -> Iterator[Probe]:
    """Find factors that do not lead to the unit that the question, or the column's new name, asks
    for.
    """
    units_asked = _units(part.asked)
    items = [(item, *_unit(item, part)) for item in part.select.expressions]
    wanted = [unit for before, unit, _ in units_asked if not before]
    wanted += [
        (one[0] / other[0], one[1] / other[1])
        for one, other in product(wanted, wanted)
        if one[1] != other[1]
    ]
    yield from (
        Probe(
            "unit",
            f"{part.short(item)} is off by a factor of {abs(size / fits[0]):.6g} from the unit"
            " asked for",
        )
        for item, size, kind in items
        for named in [[*(unit for _, unit, _ in _units(" ".join(_words(item.alias)))), *wanted]]
        for fits in [
            [one for one, of in named if of == kind]
            or [one for one, of in _UNITS.values() if of == kind]
        ]
        if kind != 1 and fits and not _near(size, fits)
    )
    sizes = [size for item, size, kind in items if kind == 1 and item.find(exp.AggFunc, exp.Div)]
    if part.says("percent") and sizes and not _near(0.01, sizes):
        yield Probe(
            "unit",
            "the question asks for per cent, and no figure of the query is 100 times a share",
        )
    yield from (
        Probe(
            "unit",
            f"{part.short(node)} compares with another length or size than the question says",
        )
        for node, side, _, value in part.comparisons
        for size, kind in [_unit(side, part)]
        for meant in [
            [
                float(before.replace(",", "")) * of[0]
                for before, of, _ in units_asked
                if of[1] == kind and before[:1].isdigit()
            ]
        ]
        if kind != 1
        and meant
        and not value.find(exp.Column, exp.Null)
        and not _near(size / _unit(value, part)[0], meant)
    )
    yield from (
        Probe(
            "unit",
            f"{part.short(node)}: {{0:,}} values of {share.name} are"
            f" {'shares already' if by_100 else 'over 1, and no shares'}",
            part.count(
                f"{part.text(share)} > 0 AND {part.text(share)} < 1"
                if by_100
                else f"{part.text(share)} > 1"
            ),
        )
        for node in part.select.find_all(exp.Sub, exp.Div)
        for by_100, share in [
            (isinstance(node, exp.Div), node.this if isinstance(node, exp.Div) else node.expression)
        ]
        if part.known(share)
        and (
            node.expression == exp.Literal.number(100)
            if by_100
            else node.this == exp.Literal.number(1)
        )
    )


def _measure_faults(part: _Part) -> Iterator[Probe]:
    """Find sums that lack a factor, take the price of another table, or are of another column than
    the question names.
    """
    read = {fold(column.name) for column in part.root.find_all(exp.Column)}
    every = [
        (alias, t, c, {*_words(c.name)})
        for alias, t in part.tables.items()
        if t
        for c in t.columns
        if NUMBER.search(c.type)
    ]
    unread = [each for each in every if fold(each[2].name) not in read]
    for node in part.select.find_all(exp.Sum, exp.Avg, exp.Max, exp.Min):
        text = part.short(node)
        columns = list(node.find_all(exp.Column))
        total = isinstance(node, exp.Sum)
        prices = {
            owner_of(each, part.tables): each
            for each in columns
            if total and _NAMES["price"] & {*_words(each.name)}
        }
        words_named = {
            word for each in columns for word in _words(each.name) if part.names(word)
        } - _NAMES["general"]
        yield from (
            Probe(
                "measure",
                f"{text} leaves out {column.name}, not {by} in {{0:,}} rows",
                part.count(f"{part.column(alias, column.name)} <> {by}"),
            )
            for alias, _, column, words in unread
            for by in [_FACTORS.get("".join(words))]
            if by is not None and alias in prices and (by or not part.says("gross"))
        )
        yield from (
            Probe(
                "measure",
                f"{text}: {{0:,}} prices are not those of {alias}",
                part.count(f"{part.column(alias, column.name)} <> {part.text(price)}"),
            )
            for (owner, price), (alias, _, column, _) in product(prices.items(), every)
            if owner != alias
            and fold(price.name) == fold(column.name)
            and alias in part.owners(node)
            and not part.says("list price")
        )
        yield from (
            Probe("measure", f"the question names {alias}.{column.name}, the query measures {text}")
            for alias, table, column, words in unread
            for special in [
                [
                    word
                    for word in _words(column.name)
                    if word not in _NAMES["general"] | {*_words(table.bare_name)}
                ]
            ]
            if columns and special and "id" not in words and all(map(part.names, special))
            if words_named - {*_words(table.bare_name)} < {*special}
        )
        yield from (
            Probe("measure", f"{text} adds up rates, of which a sum is no figure")
            for column in columns
            if total and column is node.this and _NAMES["rate"] & {*_words(column.name)}
        )
        yield from (
            Probe(
                "other_route",
                f"{text} differs from {head.name}.{total_column.name} in {{0:,}} of its rows",
                f"SELECT COUNT(*) FROM {head.sql_name} AS h JOIN (SELECT {quoted(key.columns[0])}"
                f" AS k, {part.text(node)} AS s FROM {table.sql_name} AS {quoted(alias)} GROUP BY"
                f" 1) AS r ON r.k = h.{quoted(key.referenced_columns[0])} WHERE"
                f" ABS(h.{quoted(total_column.name)} - r.s) > 0.01",
            )
            for alias, table in part.tables.items()
            if table and {*prices} == part.owners(node) == {alias} and not part.says("gross")
            for key in table.foreign_keys
            if (head := part.catalog.find(key.table)) and len(key.columns) == 1
            for total_column in head.columns
            if {*_words(total_column.name)} & _NAMES["total"]
        )


_CHECKS = (
    _fan_out,
    _counted_rows,
    _nulls_dropped,
    _rows_lost,
    _date_bounds,
    _unit_faults,
    _measure_faults,
)


def probes_of(sql: str, question: str = "", *, dialect: str, catalog: Catalog) -> list[Probe]:
    """Return the checks of a query that ran: all that need no SQL, and at most `MOST_PROBES` that
    do.
    """
    tree = statement(sql, dialect)
    # Not those in a condition, which may name columns of the query around them.
    sources = [
        each
        for each in tree.find_all(exp.Select)
        if not each.find_ancestor(exp.Predicate) and each.args.get("from_")
    ]
    probes: dict[Probe, None] = {}
    for check, select in product(_CHECKS, sources):
        try:
            probes |= dict.fromkeys(
                check(_Part(select, tree, question.casefold(), dialect, catalog))
            )
        except Exception:  # sqlglot's trees of odd texts fail in other ways than by its own error
            probes[Probe(check.__name__.strip("_"))] = None
    return [
        *(one for one in probes if not one.sql),
        *[one for one in probes if one.sql][:MOST_PROBES],
    ]
