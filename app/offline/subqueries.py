"""Make conditions that need a query of their own: with more than three, without any, from here to there."""

from dataclasses import replace

from longtable.app.offline.catalog import Column, Link
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import CannotRead, entity
from longtable.app.offline.conditions import as_col, as_number, settle_filter
from longtable.app.offline.decompile import NotReadable, negate
from longtable.app.offline.draft import Draft, Having
from longtable.app.offline.joins import Step, path, plan, rivals
from longtable.app.offline.lexicon import FROM_COLUMNS, FROM_WORDS, TO_COLUMNS, TO_WORDS, VERB_TABLES
from longtable.app.offline.lexicon_events import same_event
from longtable.app.offline.lexicon_measures import UNIT_NAMES
from longtable.app.offline.logic import (
    Agg,
    AnyOf,
    Between,
    Col,
    Compare,
    Cond,
    Join,
    Null,
    Query,
    Scalar,
    Within,
)
from longtable.app.offline.reading import is_participle
from longtable.app.offline.superlatives import Superlatives
from longtable.app.offline.text import lemma, split_name, stem

_QUANTITIES = frozenset("unit stock quantity qty number num count staff balance sale seat ticket employee child".split())  # noqa: SIM905


_USES = frozenset(
    [
        "never",
        "used",
        "ordered",
        "rented",
        "bought",
        "borrowed",
        "booked",
        "visited",
        "sold",
        "played",
        "taken",
        "attended",
        "read",
        "hired",
        "flown",
        "driven",
        "made",
    ]
)


class Subqueries(Superlatives):
    """Conditions on related rows."""

    def within(self, base: str, table: str, conds: tuple[Cond, ...], *, negated: bool = False, having: tuple[Cond, ...] = ()) -> Within:
        """Return base.key [not] in (rows of `table` for which `conds` hold), along the links between them."""
        steps = path(self.catalog, (base,), table, self.hints)
        if not steps:
            raise CannotRead("join", base, table)
        first, joins = steps[0], _joins(steps[1:])
        left, right = first.pairs[0]
        if len(first.pairs) != 1:
            raise CannotRead("join", base, table)
        guard: tuple[Cond, ...] = (Null(right, negated=True),) if negated else ()  # NOT IN over a missing value holds for no row
        inner = Query(first.there, joins, (right,), (*conds, *guard), group=(right,) if having else (), having=having)
        return Within(left, inner, negated)

    def having(self, query: Query, item: Having, inner: dict[str, list[Cond]]) -> Cond:
        """'artists with more than 3 albums': key in (select fk from albums group by fk having count > 3)."""
        if item.counted is None:
            if not item.verbs:
                raise CannotRead("number", f"{item.number:g}")
            return self.within(
                query.base, self.child_by_verb(query.base, item.verbs, done=True), (), having=(Compare(Agg("count"), item.op, item.number),)
            )
        table = entity(item.counted) or self.column(item.counted).table
        count: Scalar = Agg("count")
        if item.func != "count":
            count = Agg(item.func, as_number(self.column(item.counted, number=True)))  # type: ignore[arg-type]  # func is one of Func
        compared: Cond = Between(count, item.number, item.high) if item.high is not None else Compare(count, item.op, item.number)
        if table == query.base:
            subjects = [chunk for chunk in (*self.draft.targets, *[c for c in self.draft.counts if c]) if not entity(chunk)]
            if not subjects:
                raise CannotRead("number", f"{item.number:g}", item.counted.text)
            col = as_col(self.column(subjects[0]))
            return Within(col, Query(table, select=(col,), group=(col,), having=(compared,)))
        if compared == Compare(count, "=", 0):
            return self.within(query.base, table, tuple(inner.get(table, ())), negated=True)
        if isinstance(compared, Compare) and compared.op in ("<", "<=") and count == Agg("count"):
            enough = replace(compared, op={"<": ">=", "<=": ">"}[compared.op])  # those without any have fewer too
            return self.within(query.base, table, tuple(inner.get(table, ())), negated=True, having=(enough,))
        return self.within(query.base, table, tuple(inner.get(table, ())), having=(compared,))

    def by_role(self, base: str, table: str, place: int, found: tuple[Cond, ...]) -> Within | None:
        """'from Hamburg to Munich': where two keys of the base point at one table, the word before the value picks the key."""
        links = [link for link in self.catalog.links if link.many == base and link.one == table and len(link.many_columns) == 1]
        if len(links) < 2 or table in self.join_only or place >= len(self.draft.filters):
            return None
        verbs = self.draft.filters[place].verbs
        nearest = next((verb for verb in verbs if verb in FROM_WORDS | TO_WORDS), "")
        names = TO_COLUMNS if nearest in TO_WORDS else FROM_COLUMNS if nearest else frozenset()
        roles = [link for link in links if set(split_name(link.many_columns[0])) & names]
        link = roles[0] if roles else min(links, key=self.hints.cost)
        if not roles and (others := rivals(self.catalog, link, self.hints)):
            raise CannotRead("keys", *(each.many_columns[0] for each in (link, *others)))
        one = Col(link.one, link.one_columns[0])
        return Within(Col(base, link.many_columns[0]), Query(link.one, (), (one,), found))

    def negated(self, query: Query, inner: Draft) -> list[Cond]:
        """Turn what stands after 'without' or 'not' into conditions that must fail."""
        scope = replace(
            self.scope,
            base=query.base,
            anchors=tuple(dict.fromkeys((*(entity(c) for c in inner.mentions if entity(c)), *self.scope.anchors))),
        )
        settled = [settle_filter(scope, item) for item in inner.filters]
        tables = [table for chunk in (*inner.targets, *[c for c in inner.counts if c]) if (table := entity(chunk)) and table != query.base]
        nested = [entity(item.counted) for item in inner.havings if item.counted is not None]
        if not inner.mentions and not inner.filters and inner.words:
            home = self.catalog.table(query.base)
            stems = {stem(word) for word in inner.words}
            named = [column for column in (home.columns if home else ()) if stems & {stem(word) for word in column.words}]
            named = [column for column in named if set(inner.words) & set(column.words)] or named
            if not named and home is not None:
                named = [each for each in home.columns if each.is_date and any(same_event(word, each.words) for word in inner.words)]
            exact = bool(named) and named[0].is_date and bool(stems & set(map(stem, named[0].words)))
            if len(named) == 1 and (exact or not (self.draft.never and self.child_named(query.base, inner.words))):
                return [self.none_of(named[0])]
            return [self.absent(query.base, self.child_by_verb(query.base, inner.words), [])]
        if inner.groups or inner.sups or inner.sorts or inner.aggs or inner.absent or (inner.counts and not inner.counts[0]):
            raise CannotRead("negation")
        for item in inner.havings:
            self.draft.havings = []
            return [negate(self.having(query, item, {}))]
        if tables or any(table != query.base and self.fans(query.base, table) for table, _ in settled):
            target = tables[-1] if tables else next(table for table, _ in settled if table != query.base)
            for table in (*tables, *nested):
                if table in self.join_only and not any(entity(chunk) == table for chunk in self.draft.targets):
                    self.join_only.remove(table)
            if not settled and (each := self.absent_by_all_keys(query.base, target)):
                return each
            return [self.absent(query.base, target, settled)]
        told = [*inner.targets, *(item.mention for item in inner.filters if item.kind == "null" and item.mention is not None)]
        if self.draft.never and any(self.named_weakly(chunk) for chunk in told if not entity(chunk) and not is_participle(chunk.word)):
            raise CannotRead("negation")  # never recorded any time: no column that only has such a word in its name
        columns = [self.column(chunk) for chunk in inner.targets if not entity(chunk)]
        apart = [column for column in columns if column.table != query.base and self.fans(query.base, column.table)]
        conds: list[Cond] = []
        for name in dict.fromkeys(column.table for column in apart):
            flags = tuple(
                Compare(as_col(column), "=", column.truth) for column in apart if column.table == name and column.truth is not None
            )
            conds.append(self.absent(query.base, name, [(name, flags)] if flags else []))  # never a lead role: none that is one
        for column in apart:
            if column.table in self.join_only:
                self.join_only.remove(column.table)
        columns = [column for column in columns if column not in apart]
        conds += [self.none_of(column) for column in columns]
        for column in columns:
            self.need(column.table)
        for table, denied in settled:
            self.need(table)
            try:
                conds += [negate(cond) for cond in denied] if len(denied) == 1 else _not_all(denied)
            except NotReadable as error:
                raise CannotRead("negation") from error
        if not conds and not tables:
            raise CannotRead("negation")
        return conds

    def named_weakly(self, chunk: Chunk) -> bool:
        """Say whether the column that a mention is taken for has only one of its words in common."""
        column = self.column(chunk)
        return max((hit.score for hit in chunk.hits if (hit.table, hit.column) == (column.table, column.name)), default=0.0) < 0.85

    def none_of(self, column: Column) -> Cond:
        """Return what 'no X' means: false for a flag, zero for a quantity, missing for the rest."""
        if column.truth is not None and column.truth != 1:
            return Compare(as_col(column), "<>", column.truth)
        counts = {lemma(word) for word in column.words} & _QUANTITIES
        if column.truth == 1 or (column.is_number and not column.is_id and counts):
            return Compare(as_number(column), "=", 0) if column.truth is not True else Compare(as_col(column), "=", False)
        if column.primary:
            raise CannotRead("negation")
        last = column.words[-1]
        if column.is_number and not column.is_id and lemma(last) != last and lemma(last) not in UNIT_NAMES:
            return AnyOf((Compare(as_number(column), "=", 0), Null(as_col(column))))  # no wheelchair spaces: zero, or none are known
        return Null(as_col(column))

    def absent_by_all_keys(self, base: str, target: str) -> list[Cond]:
        """'airports without flights': absent under every key that points here, unless the question names one."""
        links = [link for link in self.catalog.links if link.many == target and link.one == base and len(link.many_columns) == 1]
        if len(links) < 2 or len({self.hints.cost(replace_sure(link)) for link in links}) > 1:
            return []
        found: list[Cond] = []
        for link in links:
            many = Col(target, link.many_columns[0])
            found.append(Within(Col(base, link.one_columns[0]), Query(target, (), (many,), (Null(many, negated=True),)), negated=True))
        return found

    def child_named(self, base: str, verbs: tuple[str, ...]) -> bool:
        """Say whether one table that points here is called like a verb: drugs never prescribed, of prescriptions."""
        stems = {stem(verb) for verb in verbs if len(verb) > 4}
        children = {link.many for link in self.catalog.links if link.one == base}
        return sum(bool(stems & set(map(stem, split_name(name)))) for name in children) == 1

    def child_by_verb(self, base: str, verbs: tuple[str, ...], *, done: bool = False) -> str:
        """Return the table that records what 'never used', 'never prescribed' speaks of: named by the verb, or the only one."""
        children = list(dict.fromkeys(link.many for link in self.catalog.links if link.one == base))
        own = self.catalog.table(base)
        verbs = tuple(verb for verb in verbs if own is None or stem(verb) not in set(map(stem, own.words)))
        stems = {stem(verb) for verb in verbs} | {stem(VERB_TABLES[verb]) for verb in verbs if verb in VERB_TABLES}
        dated = [
            name
            for name in children
            if (table := self.catalog.table(name))
            and any(same_event(verb, each.words) for verb in verbs[:1] for each in table.columns if each.is_date)
        ]
        named = [name for name in children if (table := self.catalog.table(name)) and stems & {stem(word) for word in table.words}]
        if len(named) == 1:
            return named[0]
        if not named and len(dated) == 1 and done:
            return dated[0]  # applied more than four times: of the applications, which have a date of it
        if len(children) == 1 and (done or self.draft.never or set(verbs) & _USES):
            return children[0]
        raise CannotRead("negation")

    def absent(self, base: str, target: str, settled: list[tuple[str, tuple[Cond, ...]]]) -> Cond:
        steps = path(self.catalog, (base,), target, self.hints)
        if not steps or len(steps[0].pairs) != 1:
            raise CannotRead("join", base, target)
        first = steps[0]
        left, right = first.pairs[0]
        if not first.fans_out and first.there == target and not settled:
            return Null(left)  # loans without an officer: the key is missing
        wanted = [target, *(table for table, _ in settled)]
        planned = plan(self.catalog, first.there, wanted, self.hints, _joins(steps[1:]))
        if planned is None:
            raise CannotRead("join", base, target)
        conds = tuple(cond for _, found in settled for cond in found)
        none = Within(left, Query(first.there, planned[0], (right,), (*conds, Null(right, negated=True))), negated=True)
        return none if first.fans_out else AnyOf((Null(left), none))


def replace_sure(link: Link) -> Link:
    """Return the link as if declared: to compare what the question's words say of it."""
    return replace(link, sure=True)


def _not_all(conds: tuple[Cond, ...]) -> list[Cond]:
    return [AnyOf(tuple(negate(cond) for cond in conds))]


def _joins(steps: tuple[Step, ...]) -> tuple[Join, ...]:
    return tuple(Join(step.there, step.pairs) for step in steps)
