"""Settle a draft on the catalogue: choose base, columns and joins, and make it one query."""

from dataclasses import replace

from longtable.app.offline.catalog import Catalog, Column, Link, Table
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import CannotRead, Scope, by_dimension, choose, date_column, entity
from longtable.app.offline.conditions import as_col, as_number, settle_filter
from longtable.app.offline.decompile import NotReadable, negate
from longtable.app.offline.draft import Draft, Filter, Having, Sorting, Superlative
from longtable.app.offline.joins import Hints, Step, distance, path, plan
from longtable.app.offline.lexicon import FROM_COLUMNS, FROM_WORDS, PEOPLE, TO_COLUMNS, TO_WORDS
from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Between,
    Bucket,
    Col,
    Compare,
    Cond,
    Join,
    Null,
    Order,
    Product,
    Query,
    Scalar,
    Share,
    Spread,
    Unit,
    Within,
)
from longtable.app.offline.text import lemma, likeness, split_name, stem

_MANY_COLUMNS = 15


def settle(draft: Draft, catalog: Catalog) -> Query:
    """Return the query a draft asks for; `CannotRead` when something in it has no place."""
    if left := unused(draft, catalog):
        raise CannotRead("words", *left)
    return Settler(draft, catalog).query()


def unused(draft: Draft, catalog: Catalog) -> list[str]:
    """Return the words that nothing took up; adverbs that tell keys apart ('permanently' for a permanent address) are taken."""
    keys = {stem(word) for link in catalog.links for column in link.many_columns for word in split_name(column)}
    return [word for word in draft.leftover if not (word.endswith("ly") and stem(word) in keys)]


class Settler:
    """Settle one draft; `start` may hold an earlier query whose rows it goes on from."""

    def __init__(self, draft: Draft, catalog: Catalog, base: str = "") -> None:
        self.draft, self.catalog = draft, catalog
        anchors = [table for chunk in draft.mentions if (table := entity(chunk))]
        self.scope = Scope(catalog, base, tuple(dict.fromkeys(anchors)), tuple((entity(c), c.place) for c in draft.mentions if entity(c)))
        stems = frozenset(stem(word) for word in draft.words if len(word) > 2)
        columns = frozenset(
            (hit.table.casefold(), hit.column.casefold()) for c in draft.mentions for hit in c.hits if hit.column and hit.score >= 0.75
        )
        self.hints = Hints(stems, columns)
        self.fixed = base
        self.extra: list[Cond] = []
        self.join_only: list[str] = []

    def query(self) -> Query:
        base = self.fixed or self.base()
        self.scope = replace(self.scope, base=base)
        self.flags(base)
        shaped = self.shape(base)
        return self.finish(shaped)

    def flags(self, base: str) -> None:
        """'which products are discontinued', 'full time employees': a column of flags beside the thing itself is a condition."""
        for chunk in [chunk for chunk in self.draft.targets if not entity(chunk)]:
            column = choose(self.scope, chunk)
            yes = column.truth if column is not None and column.table in (base, *self.scope.anchors) else None
            if column is None or yes is None or not self.scope.anchors or not self.is_adjective(chunk):
                continue
            self.draft.targets = [each for each in self.draft.targets if each is not chunk]
            self.extra.append(Compare(as_col(column), "=", yes))
            self.need(column.table)

    def is_adjective(self, chunk: Chunk) -> bool:
        words = self.draft.words
        before = words[chunk.order - 1] if 0 < chunk.order <= len(words) else ""
        following = [c for c in self.draft.mentions if c.order == chunk.order + 1]
        return before in ("are", "is", "was", "were", "be") or any(entity(c) for c in following)

    # -- base -------------------------------------------------------------------------------------------------------

    def base(self) -> str:
        """Return the table whose rows are counted, measured or listed."""
        draft = self.draft
        if (
            {"who", "whom"} & set(draft.words)
            and not draft.computes
            and not draft.targets
            and not any(_is_people(self.catalog.table(name)) for name in self.scope.anchors)
        ):
            return self.people()
        self.vote()
        for sup in draft.sups:
            if sup.chunk is not None and sup.kind in ("most", "plain") and (table := self.counted(sup)):
                return table
        for chunk in draft.counts:
            if chunk is not None:
                return entity(chunk) or self.column(chunk).table
        for func, chunk in draft.aggs:
            if chunk is not None:
                return entity(chunk) or self.column(chunk, number=func in ("avg", "sum", "spread")).table
        for chunk in (*draft.targets, *draft.groups):
            if chunk.hits and chunk.kind != "unit":
                return entity(chunk) or self.column(chunk).table
        for sup in draft.sups:
            if sup.chunk is not None and sup.chunk.hits:
                return entity(sup.chunk) or self.column(sup.chunk).table
        if self.scope.anchors:
            return self.scope.anchors[0]
        for item in draft.filters:
            if item.mention is not None and item.mention.hits:
                return item.mention.hits[0].table
            for value in item.values:
                return settle_filter(self.scope, item)[0] if value.matches else ""
        tables = [table for table in self.catalog.tables.values() if table.kind == "table"]
        if len(tables) == 1 and (draft.computes or draft.sups or draft.asks):
            return tables[0].name
        raise CannotRead("nothing")

    def vote(self) -> None:
        """Where the question names no table, let all its mentions and values vote for one."""
        if self.scope.anchors:
            return
        votes: dict[str, float] = {}
        for chunk in (*self.draft.mentions, *(value for item in self.draft.filters for value in item.values)):
            best: dict[str, float] = {}
            for hit in chunk.hits:
                best[hit.table] = max(best.get(hit.table, 0.0), hit.score)
            for match in chunk.matches:
                best[match.table] = max(best.get(match.table, 0.0), 0.9)
            for table, score in best.items():
                votes[table] = votes.get(table, 0.0) + score
        top = max(votes.values(), default=0.0)
        winners = [table for table, score in votes.items() if score >= top - 0.05]
        if len(winners) == 1 and (len(self.draft.mentions) > 1 or any(item.values for item in self.draft.filters)):
            self.scope = replace(self.scope, anchors=(winners[0],))

    def people(self) -> str:
        """Return the table of people that an open 'who' asks for: the only one, or the one the conditions are on."""
        tables = [table.name for table in self.catalog.tables.values() if _is_people(table) and table.kind == "table"]
        measured = [sup.dimension for sup in self.draft.sups if sup.dimension] + [
            item.dimension for item in self.draft.filters if item.dimension
        ]
        if len(tables) > 1 and measured:
            tables = [name for name in tables if by_dimension(self.scope, measured[0], (name,))] or tables
        homes = [settle_filter(self.scope, item)[0] for item in self.draft.filters if item.values or item.mention is not None]
        homes += [self.column(sup.chunk).table for sup in self.draft.sups if sup.chunk is not None and not entity(sup.chunk)]
        near = [name for name in tables if name in homes] or tables
        if len(near) != 1:
            raise CannotRead("nothing")
        return near[0]

    def counted(self, sup: Superlative) -> str:
        """Return the table whose rows a superlative counts ('the most albums'), empty when it measures a column."""
        chunk = sup.chunk
        if chunk is None or sup.dimension:
            return ""
        table = entity(chunk)
        measure = [
            hit
            for hit in chunk.hits
            if not hit.is_table and (column := self.catalog.column(hit.table, hit.column)) and column.is_number and not column.is_id
        ]
        if sup.kind == "plain":
            return table if sup.func == "count" else ""
        if measure and (not table or (measure[0].score > 0.9 and measure[0].table != table)):
            return ""
        return table or ("" if measure else self.column(chunk).table)

    def column(self, chunk: Chunk, *, number: bool = False) -> Column:
        found = choose(self.scope, chunk, (lambda column: column.is_number) if number else None)
        if found is None:
            raise CannotRead("measure" if number else "column", chunk.text)
        return found

    # -- shape ------------------------------------------------------------------------------------------------------

    def shape(self, base: str) -> Query:
        draft = self.draft
        own = [item for item in draft.havings if item.counted is None or (entity(item.counted) or self.column(item.counted).table) == base]
        subjects = [chunk for chunk in draft.targets if not entity(chunk)]
        if own and len(own) == len(draft.havings) and subjects and not draft.computes and not draft.sups and not draft.groups:
            draft.groups, draft.targets = subjects[:1], subjects[1:]
            return self.grouped(base, [Agg("count")])
        if (
            draft.limit is not None
            and draft.limit_desc is not None
            and not (draft.sorts or draft.computes or draft.sups or draft.groups)
            and subjects
        ):
            first = self.column(subjects[0])
            if not first.is_number and not first.primary and not first.is_date:
                draft.groups, draft.targets = subjects[:1], [chunk for chunk in draft.targets if chunk is not subjects[0]]
                return self.grouped(base, [Agg("count")])
        if not draft.computes and not draft.sups and (measured := [sorting for sorting in draft.sorts if sorting.func]):
            return self.ranked_by(base, measured[0])
        if draft.percent and not draft.groups:
            return self.share(base)
        if draft.sups:
            return self.superlative(base)
        if draft.computes:
            return self.computed(base)
        if draft.groups and not self.attribute_groups():
            return self.grouped(base, [Agg("count")])
        return self.listing(base)

    def ranked_by(self, base: str, sorting: Sorting) -> Query:
        """'top 5 destinations by number of flights': group what is listed, order by the measure."""
        if sorting.func == "count":
            self.draft.counts = [sorting.chunk]
        else:
            self.draft.aggs = [(sorting.func, sorting.chunk)]
        if not self.draft.groups:
            self.draft.groups, self.draft.targets = self.draft.targets[:1], self.draft.targets[1:]
        self.draft.sorts = []
        table = entity(sorting.chunk) if sorting.chunk is not None else ""
        if table and table != base and not self.fixed:
            base = table
        elif sorting.func != "count" and sorting.chunk is not None:
            base = self.column(sorting.chunk, number=True).table
        self.scope = replace(self.scope, base=base)
        grouped = self.grouped(base, self.aggregates(base))
        desc = (
            sorting.desc
            if sorting.desc is not None
            else self.draft.desc
            if self.draft.desc is not None
            else self.draft.limit_desc is not False
        )
        return replace(grouped, order=(Order(grouped.select[-1], desc),), limit=self.draft.limit)

    def share(self, base: str) -> Query:
        conds = tuple(cond for table, conds in self.filters() for cond in conds if table == base)
        others = [table for table, _ in self.filters() if table != base]
        if not conds or others:
            raise CannotRead("percent")
        self.draft.filters = []
        return Query(base, select=(Share(conds),))

    def aggregates(self, base: str) -> list[Scalar]:
        draft = self.draft
        found: list[Scalar] = []
        counts = [chunk for chunk in draft.counts if chunk is not None] or draft.counts[:1]
        for chunk in counts if not draft.percent else []:
            found.append(self.count(base, chunk))
        pending: Column | None = None
        for func, chunk in reversed(draft.aggs):
            arg = self.measure(chunk, func) if chunk is not None else None
            if arg is None and pending is not None:
                arg = as_number(pending)
            if arg is None:
                arg = self.lone_measure(base, func)
            if func == "spread":
                if not isinstance(arg, Col):
                    raise CannotRead("measure")
                found.insert(len(counts), Spread(arg))
            else:
                found.insert(len(counts), Agg(func, arg))  # type: ignore[arg-type]  # func is one of Func
        if draft.percent:
            found += [Agg("count"), Share()]
        return found

    def count(self, base: str, chunk: Chunk | None) -> Agg:
        if chunk is None:
            return Agg("count")
        table = entity(chunk)
        if table:
            if table == base:
                return Agg("count")
            home = self.catalog.table(table)
            if home is None or len(home.key) != 1:
                raise CannotRead("count", chunk.text)
            self.need(table)
            return Agg("count", as_col(home.key[0]), distinct=True)
        column = self.column(chunk)
        if column.is_number and not column.is_id and not self.draft.distinct and _is_amount(column):
            return Agg("sum", as_number(column))
        home = self.catalog.table(column.table)
        if home is not None and home.key == (column,) and column.table == base:
            return Agg("count")
        self.need(column.table)
        return Agg("count", as_col(column), distinct=True)

    def measure(self, chunk: Chunk, func: str) -> Col | Product:
        column = choose(
            self.scope,
            chunk,
            (lambda column: column.is_number) if func in ("sum", "avg", "spread") else (lambda column: not column.is_binary),
        )
        if column is None and entity(chunk) and func == "sum":
            raise CannotRead("sum", chunk.text)
        if column is None:
            column = choose(self.scope, chunk, lambda column: column.is_number or column.is_date)
        if column is None and (table := entity(chunk)):
            return self.lone_measure(table, func)
        if column is None:
            raise CannotRead("measure", chunk.text)
        self.need(column.table)
        return as_number(column) if column.is_number else as_col(column)

    def lone_measure(self, base: str, func: str) -> Col:
        """Return the only number of a table worth measuring; a table with several needs a name."""
        table = self.catalog.table(base)
        found = [column for column in (table.columns if table else ()) if column.is_number and not column.is_id]
        if len(found) != 1:
            raise CannotRead("measure", {"avg": "average", "sum": "total"}.get(func, func))
        return as_number(found[0])

    def computed(self, base: str) -> Query:
        aggregates = self.aggregates(base)
        if self.draft.havings and self.draft.counts and not self.draft.groups:
            return Query(base, select=tuple(aggregates))
        if self.draft.groups:
            return self.grouped(base, aggregates)
        targets = [chunk for chunk in self.draft.targets if not self.is_context(chunk, base)]
        if not targets:
            return Query(base, select=tuple(aggregates))
        if any(not entity(chunk) for chunk in targets):
            self.draft.groups, self.draft.targets = targets, [chunk for chunk in self.draft.targets if chunk not in targets]
            return self.grouped(base, aggregates)
        for chunk in targets:
            self.need(entity(chunk))
        return Query(base, select=tuple(aggregates))

    def is_context(self, chunk: Chunk, base: str) -> bool:
        """Say whether a mention only names the table the question is about anyhow."""
        table = entity(chunk)
        return bool(table) and (table == base or table in self.join_only)

    def attribute_groups(self) -> bool:
        """'the number of staff in each museum': a column of the very thing that each row is."""
        targets = [chunk for chunk in self.draft.targets if not entity(chunk)]
        return bool(targets) and all(
            entity(group) and self.column(chunk).table == entity(group) for group in self.draft.groups for chunk in targets
        )

    def grouped(self, base: str, aggregates: list[Scalar]) -> Query:
        keys: list[Scalar] = []
        joins: tuple[Join, ...] = ()
        for chunk in self.draft.groups:
            found, decoration = self.keys(base, chunk)
            keys += [key for key in found if key not in keys]
            joins += decoration
        own = {key.table for key in keys if isinstance(key, Col)}
        for chunk in self.draft.targets:
            table = entity(chunk)
            if table and (table in own or table == base):
                continue
            if table:
                self.need(table)
                continue
            near = replace(self.scope, base=next((t for t in own if t != base), base))
            found_column = choose(near, chunk)
            if found_column is None:
                raise CannotRead("column", chunk.text)
            key = as_col(found_column)
            self.need(key.table)
            keys += [key] if key not in keys else []
        order = self.sorts(base, aggregates)
        if not order and self.draft.limit is not None:
            order = (Order(aggregates[0], self.draft.limit_desc is not False),)
        if not order and any(isinstance(key, Bucket) or self.is_time(key) for key in keys):
            order = tuple(Order(key) for key in keys if isinstance(key, Bucket) or self.is_time(key))
        having = tuple(self.group_having(item) for item in self.draft.havings)
        self.draft.havings = []
        return Query(base, joins, (*keys, *aggregates), group=tuple(keys), having=having, order=order, limit=self.draft.limit)

    def is_time(self, key: Scalar) -> bool:
        return isinstance(key, Col) and key.name.lower() in ("year", "month", "day", "hour", "quarter", "weekday")

    def group_having(self, item: Having) -> Cond:
        agg: Agg = Agg("count")
        if item.func != "count" and item.counted is not None:
            agg = Agg(item.func, as_number(self.column(item.counted, number=True)))  # type: ignore[arg-type]  # func is one of Func
        return Between(agg, item.number, item.high) if item.high is not None else Compare(agg, item.op, item.number)

    def keys(self, base: str, chunk: Chunk) -> tuple[list[Scalar], tuple[Join, ...]]:
        """Return what to group by for a mention: a column (with the name it stands for), an entity, or a cut of time."""
        table = entity(chunk) if chunk.kind == "mention" else ""
        if table and table != base:
            home = self.catalog.table(table)
            self.need(table)
            if home is None:
                raise CannotRead("group", chunk.text)
            return list(map(as_col, _identity(home))), ()
        if table == base and table:
            home = self.catalog.table(table)
            return (list(map(as_col, _identity(home))) if home else []), ()
        if chunk.kind == "unit" or chunk.unit or lemma(chunk.word) in _UNITS:
            scalar = self.time_key(base, chunk)
            if scalar is not None:
                return [scalar], ()
        if not chunk.hits:
            raise CannotRead("group", chunk.text)
        column = self.column(chunk)
        self.need(column.table)
        home = self.catalog.table(column.table)
        if (
            home is not None
            and home.key == (column,)
            and column.table != base
            and lemma(chunk.word) not in ("id", "code", "number", "no", "key")
        ):
            return list(map(as_col, _identity(home))), ()
        return self.named_key(base, column)

    def named_key(self, base: str, column: Column) -> tuple[list[Scalar], tuple[Join, ...]]:
        """Return the column, and beside it the name it points at (an outer join: no row is lost)."""
        for link in self.catalog.links:
            if link.many == column.table and link.many_columns == (column.name,) and link.many == base:
                other = self.catalog.table(link.one)
                mentioned = link.one in self.scope.anchors
                if (
                    other is not None
                    and other.names
                    and not mentioned
                    and other.key
                    and other.key[0].name == link.one_columns[0]
                    and link.one != base
                ):
                    join = Join(link.one, ((as_col(column), Col(link.one, link.one_columns[0])),), outer=True)
                    return [as_col(column), *map(as_col, other.names)], (join,)
        return [as_col(column)], ()

    def time_key(self, base: str, chunk: Chunk) -> Scalar | None:
        unit = chunk.unit or _UNITS.get(lemma(chunk.word), "")
        found = date_column(self.scope, unit, tuple(dict.fromkeys((base, *self.scope.anchors))), self.draft.words)
        if found is None:
            return None
        column, plain = found
        if unit == "decade":
            return Bucket(as_number(column), "decade") if plain or column.is_number else None
        self.need(column.table)
        return as_col(column) if plain else Bucket(as_col(column), unit)  # type: ignore[arg-type]  # unit is one of Unit

    # -- superlatives -----------------------------------------------------------------------------------------------

    def superlative(self, base: str) -> Query:
        sup = self.draft.sups[0]
        if len(self.draft.sups) > 1 and not all(each.chunk is not None and each.kind == "plain" for each in self.draft.sups):
            raise CannotRead("words", *(each.dimension or each.kind for each in self.draft.sups[1:]))
        if sup.kind == "frequent":
            return self.frequent(base, sup)
        desc = sup.sign == "max"
        if self.counted(sup):
            return self.most(base, sup, desc)
        if sup.func:
            chunk = sup.chunk
            arg = None if sup.func == "count" else self.measure(chunk, sup.func) if chunk else self.lone_measure(base, sup.func)
            agg = Agg(sup.func, arg)  # type: ignore[arg-type]  # func is one of Func
            return self.ranked_groups(base, agg, desc)
        if self.draft.computes:
            return self.ranked_computed(base, desc)
        column, turned = self.sup_column(base, sup)
        desc ^= turned
        self.need(column.table)
        col = as_number(column) if column.is_number else as_col(column)
        subjects = [chunk for chunk in self.draft.targets if self.subject(chunk, column)]
        if self.draft.groups:
            return self.grouped(base, [Agg("max" if desc else "min", col)])
        if (
            not subjects
            and not self.draft.which
            and not self.draft.asks
            and not (sup.dimension and (sup.kind == "first" or sup.chunk is not None))
            and not self.draft.limit
        ):
            extra = tuple(
                Agg("max" if each.sign == "max" else "min", as_number(self.column(each.chunk, number=True)) if each.chunk else col)
                for each in self.draft.sups[1:]
            )
            return Query(column.table if not self.draft.targets else base, select=(Agg("max" if desc else "min", col), *extra))
        if sup.kind == "most" and subjects and (rolled := self.rolled(column, subjects[0], desc)) is not None:
            return rolled
        listing = self.listing(base if self.fixed else self.subject_table(subjects, column), everything=False)
        items = listing.select if col in listing.select else (*listing.select, col)
        return replace(listing, select=items, order=(Order(col, desc),), limit=self.draft.limit or 1)

    def subject(self, chunk: Chunk, column: Column) -> bool:
        return bool(chunk.hits) and (bool(entity(chunk)) or self.column(chunk) != column)

    def subject_table(self, subjects: list[Chunk], column: Column) -> str:
        tables = [entity(chunk) or self.column(chunk).table for chunk in subjects]
        base = tables[0] if tables else column.table
        if base != column.table:
            steps = path(self.catalog, (base,), column.table, self.hints)
            if steps is not None and any(step.fans_out for step in steps):
                base = column.table  # order the many rows, name the one each belongs to
        self.scope = replace(self.scope, base=base)
        return base

    def sup_column(self, base: str, sup: Superlative) -> tuple[Column, bool]:
        if self.draft.sorts and self.draft.sorts[0].chunk is not None:
            column = self.column(self.draft.sorts[0].chunk)
            self.draft.sorts = []
            return column, False
        if sup.chunk is not None and not entity(sup.chunk):
            named = choose(
                self.scope, sup.chunk, lambda column: (column.is_number or column.is_date) and not (sup.dimension and column.is_id)
            )
            if named is not None:
                return named, False
        if sup.dimension:
            tables = tuple(
                dict.fromkeys(
                    (
                        *([entity(sup.chunk)] if sup.chunk is not None and entity(sup.chunk) else []),
                        *(entity(c) for c in self.draft.targets if entity(c)),
                        base,
                        *self.scope.anchors,
                    )
                )
            )
            found = by_dimension(self.scope, sup.dimension, tables)
            if found is None and sup.dimension == "size":
                found = by_dimension(self.scope, "quality", tables)
            if found is not None:
                return found
            raise CannotRead("dimension", sup.dimension)
        if sup.chunk is not None:
            raise CannotRead("measure", sup.chunk.text)
        spent = sup.kind == "most" and {"spent", "spend", "spends", "paid", "pay", "pays", "earned", "earn"} & set(self.draft.words)
        if spent and (found := by_dimension(self.scope, "price", (base,))) is not None:
            return found
        if (found := by_dimension(self.scope, "height", (base,))) is not None:
            return found
        raise CannotRead("measure", "highest" if sup.sign == "max" else "lowest")

    def frequent(self, base: str, sup: Superlative) -> Query:
        chunk = sup.chunk or next(iter(self.draft.targets), None)
        if chunk is None:
            raise CannotRead("nothing")
        self.draft.targets = [each for each in self.draft.targets if each is not chunk and not entity(each)]
        self.draft.groups = [chunk]
        table = entity(chunk)
        if table:
            others = [name for name in self.scope.anchors if name != table and distance(self.catalog, name, table) is not None]
            base = others[0] if others else self.child_of(table, chunk)
            self.scope = replace(self.scope, base=base)
        if self.draft.limit is None:
            self.draft.limit, self.draft.limit_desc = 1, sup.sign == "max"
        else:
            self.draft.limit_desc = sup.sign == "max"
        return self.grouped(base, [Agg("count")])

    def child_of(self, table: str, chunk: Chunk) -> str:
        children = [link.many for link in self.catalog.links if link.one == table]
        if len(set(children)) != 1:
            raise CannotRead("popular", chunk.text, *sorted(set(children)))
        return children[0]

    def most(self, base: str, sup: Superlative, desc: bool) -> Query:
        targets = [chunk for chunk in (*self.draft.groups, *self.draft.targets) if entity(chunk) != base]
        if not targets:
            raise CannotRead("group", sup.chunk.text if sup.chunk else "")
        self.draft.groups, self.draft.targets = targets[:1], targets[1:]
        return self.ranked_groups(base, Agg("count"), desc)

    def ranked_groups(self, base: str, agg: Scalar, desc: bool) -> Query:
        if not self.draft.groups:
            subjects = [chunk for chunk in self.draft.targets if chunk.hits]
            if not subjects:
                raise CannotRead("group")
            self.draft.groups = [subjects[0]]
            self.draft.targets = subjects[1:]
        grouped = self.grouped(base, [agg])
        return replace(grouped, order=(Order(agg, desc),), limit=self.draft.limit or 1)

    def ranked_computed(self, base: str, desc: bool) -> Query:
        """'Which carrier has the highest average delay', 'the average price of the 5 most expensive': only the first is one query."""
        if not self.draft.groups and not [chunk for chunk in self.draft.targets if chunk.hits]:
            raise CannotRead("words", "highest" if desc else "lowest")
        aggregates = self.aggregates(base)
        return self.ranked_groups(base, aggregates[0], desc)

    def rolled(self, column: Column, subject: Chunk, desc: bool) -> Query | None:
        """'the customer who spent the most': sum the many rows of each subject."""
        table = entity(subject)
        steps = path(self.catalog, (column.table,), table, self.hints, no_fan_out=True) if table else None
        if not table or table == column.table or not steps:
            return None
        self.scope = replace(self.scope, base=column.table)
        self.draft.groups, self.draft.targets = [subject], [chunk for chunk in self.draft.targets if chunk is not subject]
        return self.ranked_groups(column.table, Agg("sum", as_number(column)), desc)

    # -- lists ------------------------------------------------------------------------------------------------------

    def listing(self, base: str, *, everything: bool = True) -> Query:
        table = self.catalog.table(base)
        if table is None:
            raise CannotRead("nothing")
        items: list[Scalar] = []
        columns = [chunk for chunk in self.draft.targets if not entity(chunk)]
        for index, chunk in enumerate(self.draft.targets):
            if other := entity(chunk):
                if other != base:
                    self.need(other)
                    if index and self.together(chunk):
                        home = self.catalog.table(other)
                        items += [as_col(each) for each in (home.names or home.key)] if home else []
                continue
            for column in self.expanded(chunk):
                self.need(column.table)
                items.append(as_col(column))
        for chunk in self.draft.groups:
            other = entity(chunk)
            home = self.catalog.table(other) if other else None
            items = [*(as_col(each) for each in (home.names or home.key if home else ())), *items]
            if other:
                self.need(other)
        for dimension in self.draft.asks:
            items.append(self.asked(base, dimension))
        if "when" in self.draft.words and not columns and (found := date_column(self.scope, "year", (base,), self.draft.words)):
            items = [*(as_col(each) for each in table.names), as_col(found[0])]
        if "where" in self.draft.words and not columns and (places := _places(table)):
            items = [*(as_col(each) for each in table.names), *map(as_col, places)]
        unique = list(dict.fromkeys(items))
        if not columns and not unique:
            unique = self.whole(table, everything) if everything else list(map(as_col, _identity(table)))
        elif not columns and not self.draft.asks and "when" not in self.draft.words and "where" not in self.draft.words:
            unique = list(dict.fromkeys([*map(as_col, _identity(table)), *unique]))
        order = self.sorts(base, [])
        limit = self.draft.limit
        if limit is not None and not order and self.draft.limit_desc is not None and not self.draft.sups:
            raise CannotRead("order")
        distinct = self.draft.distinct or (
            self.draft.which and bool(columns) and not self.draft.sups and not order and not any(self.identifies(item) for item in unique)
        )
        return Query(base, select=tuple(unique), order=order, limit=limit, distinct=distinct)

    def identifies(self, item: Scalar) -> bool:
        if not isinstance(item, Col):
            return False
        column = self.catalog.column(item.table, item.name)
        table = self.catalog.table(item.table)
        return column is not None and table is not None and (column in table.key or column in table.names)

    def together(self, chunk: Chunk) -> bool:
        """Say whether a second entity is to be shown too: 'albums and their artists', 'tracks with their genre'."""
        return chunk in self.draft.mentions and bool(
            {"and", "their", "its", "corresponding", "along", "together", "respective"} & set(self.draft.words)
        )

    def expanded(self, chunk: Chunk) -> list[Column]:
        """Return the columns of a mention; 'names' of people may be first and last name."""
        column = choose(self.scope, chunk)
        words = chunk.text.lower().split()
        if lemma(words[-1]) in ("name", "fullname") and not {"first", "last", "middle", "given", "family", "user", "company"} & set(words):
            home = self.named(chunk, column)
            exact = column is not None and home is not None and column.table == home.name and _best(chunk, column) >= 0.98
            if home is not None and home.names and not exact:
                return list(home.names)
        if column is None:
            raise CannotRead("column", chunk.text)
        return [column]

    def named(self, chunk: Chunk, column: Column | None) -> Table | None:
        prefix = [word for word in chunk.text.lower().split()[:-1] if word not in ("full", "the", "s")]
        for name in (*self.scope.anchors, *([self.scope.base] if self.scope.base else [])):
            table = self.catalog.table(name)
            if table is not None and prefix and any(likeness(prefix[-1], word) >= 0.85 for word in table.words):
                return table
        nearest = sorted(self.scope.places, key=lambda pair: (abs(pair[1] - chunk.place), pair[1] < chunk.place))
        name = nearest[0][0] if nearest else self.scope.base
        return self.catalog.table(name) if name and not prefix else (self.catalog.table(column.table) if column else None)

    def asked(self, base: str, dimension: str) -> Col:
        found = by_dimension(self.scope, dimension, tuple(dict.fromkeys((base, *self.scope.anchors))))
        if found is None:
            raise CannotRead("dimension", dimension)
        return as_col(found[0])

    def whole(self, table: Table, everything: bool) -> list[Scalar]:
        shown = [column for column in table.columns if not column.is_binary]
        if everything and len(shown) <= _MANY_COLUMNS:
            return [] if len(shown) == len(table.columns) else list(map(as_col, shown))
        return list(map(as_col, _identity(table)))

    def sorts(self, base: str, aggregates: list[Scalar]) -> tuple[Order, ...]:
        found: list[Order] = []
        for sorting in self.draft.sorts:
            desc = sorting.desc if sorting.desc is not None else self.draft.desc
            found.append(Order(self.sort_key(base, sorting, aggregates), bool(desc if desc is not None else self.draft.limit_desc)))
        return tuple(found)

    def sort_key(self, base: str, sorting: Sorting, aggregates: list[Scalar]) -> Scalar:
        if sorting.func == "count" and (sorting.chunk is None or entity(sorting.chunk) or not aggregates):
            return Agg("count")
        if sorting.func and sorting.chunk is not None:
            return Agg(sorting.func, as_number(self.column(sorting.chunk, number=True)))  # type: ignore[arg-type]  # func is one of Func
        if sorting.chunk is not None:
            table = entity(sorting.chunk)
            home = self.catalog.table(table) if table else None
            if home is not None and home.names:
                self.need(table)
                return as_col(home.names[0])
            if sorting.chunk.kind == "unit" and (key := self.time_key(base, sorting.chunk)) is not None:
                return key
            column = self.column(sorting.chunk)
            self.need(column.table)
            matching = [each for each in aggregates if isinstance(each, Agg) and each.arg in (as_col(column), as_number(column))]
            return matching[0] if matching else as_number(column) if column.is_number else as_col(column)
        if sorting.dimension and (found := by_dimension(self.scope, sorting.dimension, (base,))):
            return as_number(found[0])
        if aggregates:
            return aggregates[0]
        table_ = self.catalog.table(base)
        columns = [chunk for chunk in self.draft.targets if not entity(chunk)]
        if columns:
            return as_col(self.column(columns[0]))
        if table_ is not None and table_.names:
            return as_col(table_.names[0])
        raise CannotRead("order")

    # -- conditions and joins ---------------------------------------------------------------------------------------

    def need(self, table: str) -> None:
        if table not in self.join_only:
            self.join_only.append(table)

    def filters(self) -> list[tuple[str, tuple[Cond, ...]]]:
        return [settle_filter(self.scope, item) for item in self.draft.filters]

    def finish(self, query: Query) -> Query:
        """Add conditions and joins; a condition on many rows of one becomes a subquery where a join would count twice."""
        settled = self.filters()
        settled = self.either_or(settled)
        settled = self.both(query, settled)
        conds: list[Cond] = []
        joins = list(query.joins)
        summing = any((isinstance(item, Agg) and item.func in ("sum", "avg")) or isinstance(item, Share) for item in query.select)
        shown = {table for item in (*query.select, *query.group) for table in _tables(item)}
        conds += self.extra
        mere = [name for name in self.join_only if summing and name not in shown and name != query.base and self.fans(query.base, name)]
        wanted = [name for name in self.join_only if name != query.base and name not in mere]
        inner_tables: dict[str, list[Cond]] = {}
        for place, (table, found) in enumerate(settled):
            if (chosen := self.by_role(query.base, table, place, found)) is not None:
                conds.append(chosen)
                continue
            counted = [item.counted for item in self.draft.havings if item.counted is not None]
            if table != query.base and table in [entity(chunk) for chunk in counted]:
                inner_tables.setdefault(table, []).extend(found)
            elif table != query.base and table not in wanted and summing and self.fans(query.base, table):
                conds.append(self.within(query.base, table, found))
            else:
                conds += found
                if table and table != query.base:
                    wanted.append(table)
        conds += [
            self.within(query.base, name, ()) for name in mere if not any(isinstance(c, Within) and name in c.query.tables for c in conds)
        ]
        conds += [cond for item in self.draft.havings for cond in [self.having(query, item, inner_tables)]]
        conds += [cond for inner in self.draft.absent for cond in self.negated(query, inner)]
        planned = plan(self.catalog, query.base, wanted, self.hints, tuple(join for join in joins if join.table not in wanted))
        if planned is None:
            raise CannotRead("join", query.base, *wanted)
        all_joins, fans = planned
        if all_joins and not query.select and (home := self.catalog.table(query.base)) is not None:
            query = replace(query, select=tuple(map(as_col, home.columns)))
        result = replace(query, joins=all_joins, where=(*query.where, *conds, *self.present(query)))
        return self.without_repeats(result, fans)

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
        one = Col(link.one, link.one_columns[0])
        return Within(Col(base, link.many_columns[0]), Query(link.one, (), (one,), found))

    def either_or(self, settled: list[tuple[str, tuple[Cond, ...]]]) -> list[tuple[str, tuple[Cond, ...]]]:
        """Join by OR what the question joins by 'or' or 'either' across conditions."""
        words = self.draft.words
        if len(settled) < 2 or "or" not in words:
            return settled
        if any(len(item.values) > 1 or len(item.numbers) > 1 or len(item.times) > 1 for item in self.draft.filters):
            return settled
        if len({table for table, _ in settled}) == 1 and len(settled) == 2:
            return [(settled[0][0], (AnyOf(tuple(cond for _, conds in settled for cond in conds)),))]
        raise CannotRead("or")

    def both(self, query: Query, settled: list[tuple[str, tuple[Cond, ...]]]) -> list[tuple[str, tuple[Cond, ...]]]:
        """'both 2014 and 2015' on the many side: one subquery for each."""
        if "both" not in self.draft.words:
            return settled
        kept: list[tuple[str, tuple[Cond, ...]]] = []
        for table, conds in settled:
            if table == query.base or not self.fans(query.base, table):
                kept.append((table, conds))
                continue
            if table in self.join_only:
                self.join_only.remove(table)
            for cond in conds:
                singles = [Compare(cond.left, "=", value) for value in cond.values] if isinstance(cond, Among) else [cond]
                kept += [(query.base, (self.within(query.base, table, (single,)),)) for single in singles]
        return kept

    def present(self, query: Query) -> tuple[Cond, ...]:
        """Keep rows without the ordered value out of a superlative."""
        if (
            self.draft.sups
            and query.limit is not None
            and len(query.order) == 1
            and isinstance(query.order[0].by, Col)
            and not query.order[0].desc
        ):
            return (Null(replace(query.order[0].by, cast=False), negated=True),)
        return ()

    def fans(self, base: str, table: str) -> bool:
        steps = path(self.catalog, (base,), table, self.hints)
        return steps is not None and any(step.fans_out for step in steps)

    def without_repeats(self, query: Query, fans: bool) -> Query:
        """Count each row of the base once where joins repeat it."""
        if not fans:
            return query
        table = self.catalog.table(query.base)
        key = table.key if table is not None else ()
        if query.aggregates:
            if len(key) != 1:
                return query
            select = tuple(Agg("count", as_col(key[0]), distinct=True) if item == Agg("count") else item for item in query.select)
            order = tuple(
                replace(each, by=Agg("count", as_col(key[0]), distinct=True)) if each.by == Agg("count") else each for each in query.order
            )
            return replace(query, select=select, order=order)
        others = {item.table for item in query.select if isinstance(item, Col)} | {
            each.by.table for each in query.order if isinstance(each.by, Col)
        }
        return (
            query
            if query.group or others - {query.base}
            else replace(query, distinct=True, select=query.select or tuple(map(as_col, table.columns if table else ())))
        )

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
            raise CannotRead("number", f"{item.number:g}")
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
        return self.within(query.base, table, tuple(inner.get(table, ())), having=(compared,))

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
            if len(named) == 1:
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
        columns = [self.column(chunk) for chunk in inner.targets if not entity(chunk)]
        conds: list[Cond] = [self.none_of(column) for column in columns]
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

    def none_of(self, column: Column) -> Cond:
        """Return what 'no X' means: false for a flag, zero for a quantity, missing for the rest."""
        if column.truth is not None and column.truth != 1:
            return Compare(as_col(column), "<>", column.truth)
        if column.truth == 1 or (column.is_number and not column.is_id and {lemma(word) for word in column.words} & _QUANTITIES):
            return Compare(as_number(column), "=", 0) if column.truth is not True else Compare(as_col(column), "=", False)
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

    def child_by_verb(self, base: str, verbs: tuple[str, ...]) -> str:
        """Return the table that records what 'never used', 'never prescribed' speaks of: named by the verb, or the only one."""
        children = list(dict.fromkeys(link.many for link in self.catalog.links if link.one == base))
        stems = {stem(verb) for verb in verbs}
        named = [name for name in children if (table := self.catalog.table(name)) and stems & {stem(word) for word in table.words}]
        if len(named) == 1 or len(children) == 1:
            return (named or children)[0]
        raise CannotRead("negation")

    def absent(self, base: str, target: str, settled: list[tuple[str, tuple[Cond, ...]]]) -> Within:
        steps = path(self.catalog, (base,), target, self.hints)
        if not steps or len(steps[0].pairs) != 1:
            raise CannotRead("join", base, target)
        first = steps[0]
        left, right = first.pairs[0]
        wanted = [target, *(table for table, _ in settled)]
        planned = plan(self.catalog, first.there, wanted, self.hints, _joins(steps[1:]))
        if planned is None:
            raise CannotRead("join", base, target)
        conds = tuple(cond for _, found in settled for cond in found)
        return Within(left, Query(first.there, planned[0], (right,), (*conds, Null(right, negated=True))), negated=True)


def _tables(item: Scalar) -> tuple[str, ...]:
    match item:
        case Col(table=table):
            return (table,)
        case Bucket(col=col) | Spread(arg=col):
            return (col.table,)
        case Agg(arg=Col(table=table)):
            return (table,)
        case Agg(arg=Product(factors=factors)):
            return tuple(factor.table for factor in factors)
        case _:
            return ()


def replace_sure(link: Link) -> Link:
    """Return the link as if declared: to compare what the question's words say of it."""
    return replace(link, sure=True)


def _best(chunk: Chunk, column: Column) -> float:
    return max((hit.score for hit in chunk.hits if hit.column == column.name), default=0.0)


def _not_all(conds: tuple[Cond, ...]) -> list[Cond]:
    return [AnyOf(tuple(negate(cond) for cond in conds))]


def _joins(steps: tuple[Step, ...]) -> tuple[Join, ...]:
    return tuple(Join(step.there, step.pairs) for step in steps)


def _identity(table: Table) -> tuple[Column, ...]:
    """Return the columns that tell a row: its key and its name."""
    found = tuple(dict.fromkeys((*(table.key if len(table.key) == 1 else ()), *table.names)))
    if found and table.names:
        return found
    texts = tuple(column for column in table.columns if not column.is_binary)[:_MANY_COLUMNS]
    return found if found and len(texts) > 8 else texts


def _is_people(table: Table | None) -> bool:
    return table is not None and any(lemma(word) in PEOPLE for word in table.words)


def _places(table: Table) -> list[Column]:
    return [
        column for column in table.columns if {"city", "country", "location", "address", "place", "state", "region"} & set(column.words)
    ]


def _is_amount(column: Column) -> bool:
    return not {"year", "month", "day", "age", "grade", "level", "rank", "hour"} & {lemma(word) for word in column.words}


_QUANTITIES = frozenset(
    ["unit", "stock", "quantity", "qty", "number", "num", "count", "staff", "balance", "sale", "seat", "ticket", "employee", "child"]
)
_UNITS: dict[str, Unit] = {
    "year": "year",
    "month": "month",
    "day": "day",
    "quarter": "quarter",
    "hour": "hour",
    "weekday": "weekday",
    "decade": "decade",
}


__all__ = ["Filter", "Settler", "settle"]
