"""Change what the query before shows: other columns, groups, measures, order, limit."""

from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.columns import CannotRead, entity
from longtable.app.offline.conditions import as_col, as_number
from longtable.app.offline.draft import Draft
from longtable.app.offline.joins import plan
from longtable.app.offline.logic import (
    Agg,
    Bucket,
    Col,
    Order,
    Query,
    Scalar,
    Share,
    Spread,
    Within,
)
from longtable.app.offline.settle import Settler


class Reshape:
    """Hold the query before and the draft of the follow-up; change the shape of what is shown."""

    def __init__(self, previous: Query, draft: Draft, catalog: Catalog) -> None:
        self.previous, self.draft, self.catalog = previous, draft, catalog
        self.settler = Settler(draft, catalog, previous.base)
        anchors = tuple(dict.fromkeys((*self.settler.scope.anchors, *previous.tables)))
        self.settler.scope = replace(self.settler.scope, base=previous.base, anchors=anchors)

    def retargeted(self, query: Query) -> Query:
        """'what are their names': other columns of the same rows."""
        columns: list[Col] = []
        measures: list[Col] = []
        for chunk in self.draft.targets:
            if table := entity(chunk):
                if table != query.base:
                    raise CannotRead("words", chunk.text)
                continue
            for column in self.settler.expanded(chunk):
                if chunk.text.lower() in ("name", "names") and column.table != query.base and self.draft.pron:
                    raise CannotRead("column", chunk.text)
                columns.append(as_col(column))
                measures.append(as_number(column))
        for dimension in self.draft.asks:
            columns.append(self.settler.asked(query.base, dimension))
        if not columns:
            return query if self.draft.filters or self.draft.computes or self.draft.sups else self.listed(query)
        swapped = self.swapped(query, measures) if not self.draft.pron and not self.draft.groups and not self.draft.computes else None
        if swapped is not None:
            return swapped
        if not query.group:
            kept = self.kept(query) if any(word in self.draft.words for word in ("also", "too", "well", "add", "include")) else ()
            select = tuple(dict.fromkeys((*kept, *(self.labels(query) if self.draft.pron and not query.distinct else ()), *columns)))
            order = tuple(each for each in query.order if not isinstance(each.by, Agg))
            return replace(query, select=select, order=order)
        if query.limit is not None or query.having:
            keys = [key for key in query.group if isinstance(key, Col)]
            home = self.catalog.table(columns[0].table)
            if home is not None and len(home.key) == 1 and as_col(home.key[0]) in keys:
                return Query(
                    home.name, select=tuple(columns), where=(Within(as_col(home.key[0]), replace(query, select=(as_col(home.key[0]),))),)
                )
        raise CannotRead("rows")

    def labels(self, query: Query) -> tuple[Col, ...]:
        """Return the names of the rows, to tell whose attribute each one is."""
        table = self.catalog.table(query.base)
        return tuple(map(as_col, table.names)) if table is not None else ()

    def swapped(self, query: Query, measures: list[Col]) -> Query | None:
        """'the same for arrival delay': the measure of an aggregate is swapped."""
        if len(measures) != 1 or not any(isinstance(item, Agg) and item.arg is not None for item in query.select):
            return None
        column = self.catalog.column(measures[0].table, measures[0].name)
        if column is None or not column.is_number:
            return None

        def swap(item: Scalar) -> Scalar:
            return replace(item, arg=measures[0]) if isinstance(item, Agg) and item.arg is not None and not item.distinct else item

        return replace(query, select=tuple(map(swap, query.select)), order=tuple(replace(each, by=swap(each.by)) for each in query.order))

    def kept(self, query: Query) -> tuple[Scalar, ...]:
        return tuple(item for item in query.select if isinstance(item, Col))

    def listed(self, query: Query) -> Query:
        """'who are they': the rows themselves."""
        table = self.catalog.table(query.base)
        if table is None:
            raise CannotRead("rows")
        if query.group and not query.aggregates:
            return query
        if query.group:
            raise CannotRead("rows")
        items = self.settler.listing(query.base).select
        return replace(query, select=items, order=tuple(each for each in query.order if not isinstance(each.by, Agg)))

    def regrouped(self, query: Query) -> Query:
        """'and by month?': the same numbers for each group; 'also' keeps the groups there are."""
        keys: list[Scalar] = []
        joins = list(query.joins)
        adding = any(word in self.draft.words for word in ("also", "too", "additionally"))
        if adding:
            keys += query.group
        self.settler.join_only = []
        for chunk in self.draft.groups:
            found, decoration = self.settler.keys(query.base, chunk)
            keys += [key for key in found if key not in keys]
            joins += [join for join in decoration if join.table not in [each.table for each in joins]]
        aggregates = self.measures(query)
        timed = tuple(Order(key) for key in keys if isinstance(key, Bucket) or self.settler.is_time(key))
        order = timed or tuple(Order(key) for key in keys[:1])
        planned = plan(self.catalog, query.base, [t for t in self.settler.join_only if t != query.base], self.settler.hints, tuple(joins))
        if planned is None:
            raise CannotRead("join", query.base, *self.settler.join_only)
        return Query(query.base, planned[0], (*keys, *aggregates), query.where, tuple(keys), (), order)

    def measures(self, query: Query) -> list[Scalar]:
        if self.draft.computes:
            return self.own_measures(query)
        return list(query.aggregates) or [Agg("count")]

    def own_measures(self, query: Query) -> list[Scalar]:
        """Return the aggregates the follow-up names; one without a column takes the column of before."""
        earlier = next((item.arg for item in query.select if isinstance(item, Agg | Spread) and item.arg is not None), None)
        ordered = next((each.by for each in query.order if isinstance(each.by, Col)), None)
        found: list[Scalar] = []
        for chunk in self.draft.counts:
            if chunk is None or entity(chunk) in ("", query.base):
                found.append(Agg("count") if chunk is None or entity(chunk) else self.settler.count(query.base, chunk))
        for func, chunk in self.draft.aggs:
            arg = self.settler.measure(chunk, func) if chunk is not None else earlier or ordered
            if arg is None:
                arg = self.settler.lone_measure(query.base, func)
            found.append(Spread(arg) if func == "spread" and isinstance(arg, Col) else Agg(func, arg))  # type: ignore[arg-type]  # func is one of Func
        if self.draft.percent:
            found += [Agg("count"), Share()]
        return found

    def remeasured(self, query: Query) -> Query:
        found = self.own_measures(query)
        keys = () if self.draft.pron and self.draft.counts else query.group
        if self.draft.percent and not keys:
            raise CannotRead("percent")
        if query.limit is not None and not query.group and not self.draft.pron:
            query = replace(query, limit=None, order=())
        elif query.limit is not None and not query.group:
            key = self.catalog.table(query.base)
            if key is None or len(key.key) != 1:
                raise CannotRead("rows")
            col = as_col(key.key[0])
            return Query(query.base, (), tuple(found), (Within(col, replace(query, select=(col,))),))
        order = tuple(each for each in query.order if not isinstance(each.by, Agg | Spread | Share)) if keys else ()
        if keys and query.order and not order:
            order = (replace(query.order[0], by=found[0]),)
        return replace(
            query,
            select=(*keys, *found),
            group=keys,
            order=order,
            limit=query.limit if keys else None,
            having=query.having if keys else (),
            distinct=False,
        )

    def ranked(self, query: Query) -> Query:
        """'the highest?', 'and the shortest?': one end of a list, or of the groups."""
        sup = self.draft.sups[0]
        desc = sup.sign == "max"
        if query.group and query.aggregates and sup.chunk is None and not sup.dimension:
            return replace(query, order=(Order(query.aggregates[0], desc),), limit=self.draft.limit or 1)
        if query.aggregates and not query.group and sup.chunk is None and not sup.dimension:
            arg = next((item.arg for item in query.select if isinstance(item, Agg) and item.arg is not None), None)
            if arg is None:
                raise CannotRead("measure", "highest" if desc else "lowest")
            return replace(query, select=(Agg("max" if desc else "min", arg),))
        if query.order and sup.chunk is None and (not sup.dimension or sup.dimension) and query.limit is not None and len(query.order) == 1:
            return replace(query, order=(Order(query.order[0].by, self.flip(query, sup.sign)),))
        column, turned = self.settler.sup_column(query.base, sup)
        col = as_number(column) if column.is_number else as_col(column)
        self.settler.need(column.table)
        base = self.listed(query) if query.aggregates else query
        select = base.select if not base.select or col in base.select else (*base.select, col)
        return replace(base, select=select, order=(Order(col, desc ^ turned),), limit=self.draft.limit or 1)

    def flip(self, query: Query, sign: str) -> bool:
        sup = self.draft.sups[0]
        if sup.dimension and isinstance(query.order[0].by, Col):
            column, turned = self.settler.sup_column(query.base, sup)
            if column.name == query.order[0].by.name:
                return (sign == "max") ^ turned
            raise CannotRead("order")
        return sign == "max"

    def sorted(self, query: Query) -> Query:
        sortings = self.draft.sorts
        if len(sortings) == 1 and sortings[0].chunk is None and not sortings[0].func and not sortings[0].dimension:
            desc = self.draft.desc
            by_key = bool(query.group) and bool(query.order) and query.order[0].by in query.group
            timed = by_key and (isinstance(query.order[0].by, Bucket) or self.settler.is_time(query.order[0].by))
            if not query.group and query.aggregates:
                raise CannotRead("order")
            if query.order and not (by_key and (self.draft.pron or "that" in self.draft.words or not timed)):
                flipped = (
                    desc
                    if desc is not None
                    else not query.order[0].desc
                    if any(w.startswith("revers") for w in self.draft.words)
                    else query.order[0].desc
                )
                return replace(query, order=(replace(query.order[0], desc=flipped), *query.order[1:]))
            numbers = [item for item in query.select if isinstance(item, Agg | Share | Spread)]
            by = numbers[-1] if numbers else query.select[-1] if query.select else None
            if by is None:
                return replace(query, order=self.settler.sorts(query.base, []))
            return replace(query, order=(Order(by, bool(desc if desc is not None else numbers)),))
        order = self.settler.sorts(query.base, list(query.aggregates))
        if not query.group and query.aggregates:
            raise CannotRead("order")
        if query.group:
            order = tuple(self.in_group(query, each) for each in order)
        return replace(query, order=order)

    def in_group(self, query: Query, order: Order) -> Order:
        if isinstance(order.by, Col) and order.by not in query.group:
            same = [item for item in query.select if isinstance(item, Agg) and isinstance(item.arg, Col) and item.arg.name == order.by.name]
            if same:
                return replace(order, by=same[0])
            raise CannotRead("order")
        return order

    def limited(self, query: Query) -> Query:
        order = query.order
        if self.draft.limit_desc is not None and not self.draft.sorts:
            if query.aggregates and query.group:
                order = (Order(query.aggregates[0], self.draft.limit_desc),)
            elif order:
                order = (replace(order[0], desc=order[0].desc if self.draft.limit_desc else not order[0].desc), *order[1:])
        if not query.group and query.aggregates:
            query = self.listed(query)
        return replace(query, order=order, limit=self.draft.limit, offset=None)
