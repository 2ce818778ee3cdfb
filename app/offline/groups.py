"""Make the queries that count, sum and share out, over all rows or for each group."""

from dataclasses import replace

from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import CannotRead, choose, entity
from longtable.app.offline.conditions import as_col
from longtable.app.offline.draft import Sorting
from longtable.app.offline.listing import Listing
from longtable.app.offline.logic import (
    Agg,
    Bucket,
    Col,
    Join,
    Order,
    Query,
    Scalar,
    Share,
)
from longtable.app.offline.measures import tables_of_scalar


class Groups(Listing):
    """Computed numbers, whole or by group."""

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
        conds += tuple(self.extra)
        self.extra = []
        if not conds or others:
            raise CannotRead("percent")
        self.draft.filters = []
        return Query(base, select=(Share(conds),))

    def computed(self, base: str) -> Query:
        aggregates = self.aggregates(base)
        if self.draft.havings and self.draft.counts and not self.draft.groups:
            return Query(base, select=tuple(aggregates))
        if self.draft.groups:
            return self.grouped(base, aggregates)
        targets = [chunk for chunk in self.draft.targets if not self.is_context(chunk, base)]
        if not targets:
            return Query(base, select=tuple(aggregates))
        late = [chunk for chunk in targets if not entity(chunk) and self.after_count(chunk)]
        if late:
            raise CannotRead("words", *(chunk.text for chunk in late))
        if any(not entity(chunk) for chunk in targets):
            self.draft.groups, self.draft.targets = targets, [chunk for chunk in self.draft.targets if chunk not in targets]
            return self.grouped(base, aggregates)
        for chunk in targets:
            self.need(entity(chunk))
        return Query(base, select=tuple(aggregates))

    def after_count(self, chunk: Chunk) -> bool:
        """Say whether a column follows what is counted in the same breath, as a condition that was not understood would."""
        counted = [each.order for each in self.draft.counts if each is not None]
        return (
            bool(counted)
            and chunk.order > counted[0]
            and not {"list", "show", "give", "and"} & set(self.draft.words[counted[0] : chunk.order])
        )

    def attribute_groups(self) -> bool:
        """'the batch number and date for each test': columns of the very thing that each row is, or of what it has one of."""
        homes = [self.column(chunk).table for chunk in self.draft.targets if not entity(chunk)]
        things = list(map(entity, self.draft.groups))
        return all(thing in homes and not any(home != thing and self.fans(thing, home) for home in homes) for thing in things)

    def grouped(self, base: str, aggregates: list[Scalar]) -> Query:
        keys: list[Scalar] = []
        joins: tuple[Join, ...] = ()
        for chunk in self.draft.groups:
            found, decoration = self.keys(base, chunk)
            keys += [key for key in found if key not in keys]
            joins += decoration
        keys = self.of_one_date(keys)
        own = {key.table for key in keys if isinstance(key, Col)}
        for chunk in self.draft.targets:
            table = entity(chunk)
            if table and (table in own or table == base):
                continue
            if table:
                self.need(table)
                continue
            near = replace(self.scope, base=next((t for t in own if t != base), base))
            if chunk.text.lower() in ("name", "names"):
                named = [home.names for name in own if (home := self.catalog.table(name)) is not None and home.names]
                columns = list(named[0]) if named else self.expanded(chunk)
            else:
                found_column = choose(near, chunk)
                columns = [found_column] if found_column is not None else []
            if not columns:
                raise CannotRead("column", chunk.text)
            self.need(columns[0].table)
            keys += [key for key in map(as_col, columns) if key not in keys]
        keys = self.told_apart(base, keys)
        averaged = bool(aggregates) and all(isinstance(item, Agg) and item.func == "avg" for item in aggregates)
        whole = [entity(chunk) for chunk in self.draft.groups] == [base] and "across" in self.draft.words
        if (averaged or whole) and self.is_each_row(base, keys, aggregates):
            return Query(base, select=tuple(aggregates))  # 'the average number of seats per venue': each venue has one
        order = self.sorts(base, aggregates)
        measured = [chunk for chunk in self.draft.targets if not entity(chunk) and chunk.hits and chunk.hits[0].numeric]
        if measured and aggregates == [Agg("count")] and not self.draft.counts and not self.draft.sups and not self.draft.havings:
            raise CannotRead("measure_of", *(chunk.text for chunk in measured))
        beside = [
            chunk for chunk in measured if base not in own and (column := choose(self.scope, chunk)) is not None and column.table == base
        ]
        if beside and all(isinstance(item, Agg) and item.func == "sum" for item in aggregates):
            raise CannotRead("measure_of", *(chunk.text for chunk in beside))  # no amount is a group of another's sum
        if not order and self.draft.limit is not None:
            order = (Order(aggregates[0], self.draft.limit_desc is not False),)
        if not order and any(isinstance(key, Bucket) or self.is_time(key) for key in keys):
            order = tuple(Order(key) for key in keys if isinstance(key, Bucket) or self.is_time(key))
        if not order:
            order = tuple(Order(key) for key in keys[:1])  # some order, so that the same question shows the same rows
        having = tuple(self.group_having(item) for item in self.draft.havings)
        self.draft.havings = []
        return Query(base, joins, (*keys, *aggregates), group=tuple(keys), having=having, order=order, limit=self.draft.limit)

    def of_one_date(self, keys: list[Scalar]) -> list[Scalar]:
        """'per year, by the day of arrival': the date that is named is the one to cut, no group beside the years."""
        cut = [key for key in keys if isinstance(key, Bucket) and key.unit in ("year", "quarter", "month")]
        named = [key for key in keys if self.is_day(key)]
        if len(keys) != 2 or len(cut) != 1 or len(named) != 1:
            return keys
        day = named[0].col if isinstance(named[0], Bucket) else named[0]
        return [Bucket(day, cut[0].unit)] if isinstance(day, Col) else keys

    def is_day(self, key: Scalar) -> bool:
        """Say whether a key is a date of a column, whole."""
        if isinstance(key, Bucket):
            return key.unit == "day"
        column = self.catalog.column(key.table, key.name) if isinstance(key, Col) else None
        return column is not None and column.is_date

    def is_each_row(self, base: str, keys: list[Scalar], aggregates: list[Scalar]) -> bool:
        """Say whether every group is one row of the base, with its own numbers."""
        table = self.catalog.table(base)
        key = [as_col(column) for column in table.columns if column.primary] if table is not None else []
        own = all(tables_of_scalar(item) in ((), (base,)) for item in (*keys, *aggregates))
        single = not any(self.fans(base, name) for name in self.join_only if name != base)
        return bool(key) and own and all(each in keys for each in key) and single

    def told_apart(self, base: str, keys: list[Scalar]) -> list[Scalar]:
        """Group things by their key beside their name: two of one name are two."""
        for key in keys:
            home = self.catalog.table(key.table) if isinstance(key, Col) else None
            if home is None or home.name == base or home.name not in self.scope.anchors or len(home.key) != 1:
                continue
            own = as_col(home.key[0])
            if any(as_col(name) == key for name in home.names) and own not in keys:
                return [own, *keys]
        return keys

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
