"""Make what is computed, grouped and sorted by out of a draft."""

from itertools import pairwise

from longtable.app.offline.catalog import Column, Table
from longtable.app.offline.chunks import PRODUCT, Chunk
from longtable.app.offline.columns import (
    CannotRead,
    by_dimension,
    choose,
    date_column,
    dated_whole,
    entity,
    holds_years,
    is_time_or_count,
    priced_quantity,
)
from longtable.app.offline.conditions import as_col, as_number
from longtable.app.offline.draft import Having, Sorting
from longtable.app.offline.lexicon import ADDITIVE, PAID, REVENUE, SINGLE, UNIT_WORDS
from longtable.app.offline.lexicon_measures import DIMENSIONS, VERB_DIMENSIONS
from longtable.app.offline.lexicon_places import LABELS
from longtable.app.offline.logic import (
    Agg,
    Between,
    Bucket,
    Col,
    Compare,
    Cond,
    Join,
    Order,
    Product,
    Scalar,
    Share,
    Spread,
    Unit,
)
from longtable.app.offline.subject import Subject
from longtable.app.offline.text import lemma, parts_of, split_name

_UNITS: dict[str, Unit] = {
    "year": "year",
    "month": "month",
    "day": "day",
    "quarter": "quarter",
    "hour": "hour",
    "weekday": "weekday",
    "decade": "decade",
}

MANY_COLUMNS = 15
_PRICES = frozenset(["price", "cost", "fee", "rate", "salary", "wage", "amount"])
AMOUNTS = frozenset(["amount", "total", "value", "price", "cost", "paid", "payment", "principal", "sum"])
BILLS = frozenset(["bill", "invoice", "claim", "grant", "loan", "pledge"])
_PARTS = frozenset(["paid", "tax", "vat", "discount", "tip", "deposit", "refund", "outstanding", "balance", "unpaid", "approved"])
_MEASURING = frozenset("cost costs weigh weighs last lasts lasted earn earns earned scored rated".split())  # noqa: SIM905
_REACHED = frozenset(["phone", "telephone", "mobile", "fax", "house", "street", "account", "tax", "vat", "sequence", "line", "cell"])
_ADDED = ("sum", "avg", "spread")
_TRADED = frozenset(["sold", "bought", "ordered", "purchased", "shipped", "delivered", "done", "used", "fitted", "served", "installed"])


_MONEY = frozenset(["amount", "total", "cost", "paid", "payment", "price", "spent", "fee"])


def amounts_of(table: Table) -> list[Column]:
    """Return the columns of money of a table that can be added up."""
    found = [column for column in table.columns if column.is_number and not column.is_id and _MONEY & set(map(lemma, column.words))]
    found = [column for column in found if not is_time_or_count(column)]
    return [column for column in found if not {"vat", "tax", "discount", "tip"} & set(column.words)] or found


class Measures(Subject):
    """Aggregates, group keys and sort keys."""

    def aggregates(self, base: str) -> list[Scalar]:
        draft = self.draft
        found: list[Scalar] = []
        counts = [chunk for chunk in draft.counts if chunk is not None] or draft.counts[:1]
        if draft.aggs == [("avg", None)] and len(counts) == 1 and counts[0] is not None:
            measured = choose(self.scope, counts[0], lambda column: column.is_number and not column.is_id)
            if measured is not None and measured.table == base:
                return [Agg("avg", as_number(measured))]  # how many days is it down on average
        for chunk in counts if not draft.percent else []:
            found.append(self.count(base, chunk))
        pending: Column | None = None
        for func, chunk in reversed(draft.aggs):
            arg = self.measure(chunk, func) if chunk is not None else None
            if arg is None and pending is not None:
                arg = as_number(pending)
            if (
                arg is None
                and draft.asks
                and (asked := by_dimension(self.scope, draft.asks[0], (base, *self.scope.anchors))) is not None
                and asked[0].is_number
            ):
                draft.asks = draft.asks[1:]  # how long does it take on average
                self.need(asked[0].table)
                arg = as_number(asked[0])
            if arg is None:
                arg = (self.lone_amount(base) if func == "sum" and draft.money else None) or self.lone_measure(base, func)
            if func == "spread":
                if not isinstance(arg, Col):
                    raise CannotRead("measure")
                found.insert(len(counts), Spread(arg))
            else:
                found.insert(len(counts), Agg(func, arg))  # type: ignore[arg-type]  # func is one of Func
        if draft.percent:
            found += [Agg("count"), Share()]
        return found

    def units(self, base: str, chunk: Chunk | None) -> Agg | None:
        """'how many mats were sold': the sum of the quantities, where what is counted is a thing and not the sale itself."""
        table = self.catalog.table(base)
        if table is None or not _TRADED & set(self.draft.words) or (chunk is not None and (entity(chunk) != base or chunk.best >= 0.95)):
            return None
        found = [column for column in table.columns if {"quantity", "qty"} & {lemma(word) for word in column.words} and column.is_number]
        return Agg("sum", as_number(found[0])) if len(found) == 1 else None

    def count(self, base: str, chunk: Chunk | None) -> Agg:
        if (units := self.units(base, chunk)) is not None:
            return units
        if chunk is None:
            crowd = by_dimension(self.scope, "crowd", (base,)) if ("how", "people") in pairwise(self.draft.words) else None
            return Agg("sum", as_number(crowd[0])) if crowd is not None and crowd[0].table == base else Agg("count")
        table = entity(chunk)
        first = self.catalog.column(chunk.hits[0].table, chunk.hits[0].column) if chunk.hits and chunk.hits[0].column else None
        if table == base and first is not None and self.draft.distinct and first.is_name and first.table == base:
            return Agg("count", as_col(first), distinct=True)  # how many different vets, of the visits' vet_name
        if table:
            if table == base:
                return Agg("count")
            home = self.catalog.table(table)
            if home is None or len(home.key) != 1:
                raise CannotRead("count", chunk.text)
            self.need(table)
            return Agg("count", as_col(home.key[0]), distinct=True)
        counted = choose(self.scope, chunk, lambda column: not _PRICES & {lemma(word) for word in column.words})
        if counted is None:
            raise CannotRead("count", chunk.text)  # how many never asks for a price
        column = counted
        if column.truth is not None and column.table == base and not self.draft.distinct:
            self.extra.append(Compare(as_col(column), "=", column.truth))  # how many male singers
            return self.summed(base, chunk) or Agg("count")
        if column.is_number and not column.is_id and not self.draft.distinct and _is_amount(column):
            return Agg("sum", as_number(column))
        home = self.catalog.table(column.table)
        if home is not None and home.key == (column,) and column.table == base:
            return Agg("count")
        self.need(column.table)
        return Agg("count", as_col(column), distinct=True)

    def summed(self, base: str, flag: Chunk) -> Agg | None:
        """'how many billable hours': the sum of the hours, where what is counted after the flag is a measure of the same rows."""
        counted = next((each for each in self.draft.targets if each.order == flag.order + 1 and not entity(each)), None)
        column = choose(self.scope, counted) if counted is not None else None
        if column is None or column.table != base or not column.is_number or column.is_id or not _is_amount(column):
            return None
        self.draft.targets = [each for each in self.draft.targets if each is not counted]
        return Agg("sum", as_number(column))

    def measure(self, chunk: Chunk, func: str) -> Col | Product:
        column = choose(
            self.scope,
            chunk,
            (lambda column: column.is_number and not (column.is_id and entity(chunk)))
            if func in ("sum", "avg", "spread")
            else (lambda column: not column.is_binary),
        )
        if chunk.arg == PRODUCT and column is not None:
            return self.product(column)
        if column is None and (table := entity(chunk)) and func == "sum":
            home = self.catalog.table(table)
            money = [
                each
                for each in (home.columns if home else ())
                if each.is_number and not each.is_id and AMOUNTS & {lemma(word) for word in each.words}
            ]
            plain = [each for each in money if not _PARTS & {lemma(word) for word in each.words}]
            money = plain or money
            billed = {lemma(word) for word in home.words} if home is not None else set()
            paid = self.draft.money or bool(billed & (PAID | BILLS))
            if len(money) != 1 or not paid:
                raise CannotRead("sum", chunk.text)
            self.need(table)
            return as_number(money[0])  # total payments: the sum of their amounts
        if column is None:
            column = choose(
                self.scope, chunk, lambda column: (column.is_number or column.is_date) and not (entity(chunk) and func in _ADDED)
            )
        if column is None and (table := entity(chunk)) and lemma(chunk.word) in DIMENSIONS["quality"]:
            rated = by_dimension(self.scope, "quality", (table,))
            if rated is not None and rated[0].table == table:
                self.need(table)
                return as_number(rated[0])  # the average rating, of a table of reviews
        if column is None and (table := entity(chunk)):
            lone = self.lone_measure(table, func)
            if not AMOUNTS & set(split_name(lone.name)):
                raise CannotRead("measure", chunk.text)
            return lone
        if column is None:
            raise CannotRead("measure", chunk.text)
        self.need(column.table)
        return as_number(column) if column.is_number else as_col(column)

    def product(self, price: Column) -> Col | Product:
        """Return price times quantity, less the discount when the table has one as a share and the question does not put it aside."""
        table = self.catalog.table(price.table)
        pair = priced_quantity(table) if table is not None else None
        if table is None or pair is None:
            raise CannotRead("measure", price.name)
        self.need(table.name)
        shares = [column for column in table.columns if "discount" in column.words and column.is_number]
        less = shares[0] if shares and all(_is_share(value) for value in shares[0].samples) else None
        if shares and {"before", "without", "excluding", "gross"} & set(self.draft.words):
            less = None
        elif shares and less is None:
            raise CannotRead("measure", price.name, shares[0].name)
        return Product((as_number(pair[0]), as_number(pair[1])), as_number(less) if less is not None else None)

    def lone_amount(self, base: str) -> Col | None:
        """Return the one amount of a table: 'the total amount of the open orders'."""
        table = self.catalog.table(base)
        money = [c for c in (table.columns if table else ()) if c.is_number and not c.is_id and AMOUNTS & {lemma(word) for word in c.words}]
        money = [c for c in money if not _PARTS & {lemma(word) for word in c.words}] or money
        return as_number(money[0]) if len(money) == 1 else None

    def lone_measure(self, base: str, func: str) -> Col:
        """Return the only number of a table worth measuring; a table with several needs a name."""
        table = self.catalog.table(base)
        found = [column for column in (table.columns if table else ()) if column.is_number and not column.is_id]
        told = [VERB_DIMENSIONS[word] for word in self.draft.words if word in _MEASURING]
        if len(found) > 1 and told and (measured := by_dimension(self.scope, told[0], (base,))) is not None:
            found = [measured[0]] if measured[0].table == base and not measured[1] else found
        spent = func == "sum" and {"spent", "spend", "spends", "paid", "pay", "pays"} & set(self.draft.words)
        if len(found) != 1 or (spent and not AMOUNTS & {lemma(word) for word in found[0].words}):
            raise CannotRead("measure", {"avg": "average", "sum": "total"}.get(func, func))
        return as_number(found[0])

    def is_context(self, chunk: Chunk, base: str) -> bool:
        """Say whether a mention only names the table the question is about anyhow."""
        table = entity(chunk)
        return bool(table) and (table == base or table in self.join_only)

    def keys(self, base: str, chunk: Chunk) -> tuple[list[Scalar], tuple[Join, ...]]:
        """Return what to group by for a mention: a column (with the name it stands for), an entity, or a cut of time."""
        table = entity(chunk) if chunk.kind == "mention" else ""
        if table and table != base:
            home = self.catalog.table(table)
            self.need(table)
            if home is None:
                raise CannotRead("group", chunk.text)
            return list(map(as_col, identity(home))), ()
        if table == base and table:
            home = self.catalog.table(table)
            return (list(map(as_col, identity(home))) if home else []), ()
        if whole := self.whole_day(base, chunk):
            return list(map(as_col, whole)), ()
        named = any(hit.score >= 1.0 and hit.table == base and not hit.dated for hit in chunk.hits)
        if (chunk.kind == "unit" or chunk.unit or lemma(chunk.word) in _UNITS) and not named:
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
            return list(map(as_col, identity(home))), ()
        return self.named_key(base, column)

    def whole_day(self, base: str, chunk: Chunk) -> list[Column]:
        """Return year, month and day where each is a column of its own and the question asks for days of no one month."""
        table = self.catalog.table(base)
        if table is None or lemma(chunk.text.lower()) not in ("day", "date") or any(item.kind == "time" for item in self.draft.filters):
            return []
        found = [table.by_name.get(unit) for unit in ("year", "month", "day")]
        whole = [column for column in found if column is not None and column.is_number]
        return whole if len(whole) == 3 else []

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
        if found is None and unit:
            found = date_column(self.scope, unit, dated_whole(self.catalog, base), self.draft.words)
        if found is None:
            return None
        column, plain = found
        if unit == "decade":
            return Bucket(as_number(column), "decade") if plain or column.is_number else None
        self.need(column.table)
        return as_col(column) if plain else Bucket(as_col(column), unit)  # type: ignore[arg-type]  # unit is one of Unit

    def group_agg(self, item: Having) -> Agg:
        """Return what a condition on groups compares."""
        if item.func == "count" or item.counted is None:
            return Agg("count")
        return Agg(item.func, as_number(self.column(item.counted, number=True)))  # type: ignore[arg-type]  # func is one of Func

    def group_having(self, item: Having) -> Cond:
        agg = self.group_agg(item)
        return Between(agg, item.number, item.high) if item.high is not None else Compare(agg, item.op, item.number)

    def is_time(self, key: Scalar) -> bool:
        return isinstance(key, Col) and key.name.lower() in ("year", "month", "day", "hour", "quarter", "weekday")

    def sorts(self, base: str, aggregates: list[Scalar]) -> tuple[Order, ...]:
        found: list[Order] = []
        for sorting in self.draft.sorts:
            desc = sorting.desc if sorting.desc is not None else self.draft.desc
            if aggregates and sorting.chunk is None and sorting.dimension == "size":
                found.append(Order(aggregates[0], desc is not False))  # biggest first: the counts
                continue
            key = self.sort_key(base, sorting, aggregates)
            column = self.catalog.column(key.table, key.name) if isinstance(key, Col) else None
            born = column is not None and (not column.is_number or "year" in column.words or holds_years(column))
            if sorting.dimension and sorting.chunk is None and desc is not None:
                measured = by_dimension(self.scope, sorting.dimension, (base,))
                if measured is not None and measured[1]:
                    found.append(Order(key, not desc))
                    continue
            if desc is not None and born and {"oldest", "youngest"} & set(" ".join(self.draft.words).split()):
                desc = "youngest" in self.draft.words  # the oldest was born first
            found.append(Order(key, bool(desc if desc is not None else self.draft.limit_desc)))
        return tuple(found)

    def own_date(self, base: str, chunk: Chunk) -> Column | None:
        """'sorted by date': the one date of what is listed, whatever it is called, not that of another table."""
        table = self.catalog.table(base)
        dates = [column for column in table.columns if column.is_date] if table is not None and chunk.text.lower() == "date" else []
        return dates[0] if len(dates) == 1 else None

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
            column = self.own_date(base, sorting.chunk) or self.column(sorting.chunk)
            self.need(column.table)
            matching = [each for each in aggregates if isinstance(each, Agg) and each.arg in (as_col(column), as_number(column))]
            return matching[0] if matching else as_number(column) if column.is_number else as_col(column)
        if sorting.dimension and (found := by_dimension(self.scope, sorting.dimension, (base,))):
            return as_number(found[0]) if found[0].is_number else as_col(found[0])
        if aggregates:
            return aggregates[0]
        table_ = self.catalog.table(base)
        columns = [chunk for chunk in self.draft.targets if not entity(chunk)]
        if columns:
            return as_col(self.column(columns[0]))
        if table_ is not None and table_.names:
            return as_col(table_.names[0])
        raise CannotRead("order")


def identity(table: Table) -> tuple[Column, ...]:
    """Return the columns that tell a row: its key, its number (shipment_no of a shipment) and its name."""
    own = tuple(map(lemma, table.words))
    numbers = (column for column in table.columns if _numbered(column) and tuple(map(lemma, column.words[:-1])) == own)
    found = tuple(dict.fromkeys((*(table.key if len(table.key) == 1 else ()), *numbers, *table.names)))
    if found and table.names:
        return found
    labels = tuple(column for column in table.columns if _labels(column) and not column.references and not column.primary)[:2]
    texts = tuple(column for column in table.columns if not column.is_binary)[:MANY_COLUMNS]
    if len(texts) > 8 and labels:
        return (*found, *labels)
    return found if found and len(texts) > 8 else texts


def _labels(column: Column) -> bool:
    """Say whether people know a thing by a column: its plate or label, its fleet number."""
    return (_numbered(column) and not _REACHED & set(column.words)) or bool(LABELS & set(column.words))


def _numbered(column: Column) -> bool:
    return column.words[-1:] in (("no",), ("number",), ("nr",))


def adds_up(text: str, column: Column) -> bool:
    """Say whether a column named so is added up for groups though nobody says 'total': fees, passengers, hours; but no prices or ages."""
    named = {lemma(word) for word in column.words}
    told = text.lower().replace("_", " ").split()
    if (ADDITIVE | REVENUE | {"money"}) & set(map(lemma, told)) and not {"unit", "hourly"} & named:
        return True
    if all(lemma(word) == word for word in told):
        return False
    return not SINGLE & {*named, lemma(told[-1])} or (told[-1] in UNIT_WORDS and not {"rate", "price", "unit", "level"} & named)


def _is_amount(column: Column) -> bool:
    if {"hours", "hrs"} & set(parts_of(column.name)):
        return True
    if "hour" in column.words and any(isinstance(value, float) and value != int(value) for value in column.samples):
        return True  # hours worked, no time of day
    return not {"year", "month", "day", "age", "grade", "level", "rank", "hour"} & {lemma(word) for word in column.words}


def _is_share(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and 0 <= value <= 1)


def tables_of_scalar(item: Scalar) -> tuple[str, ...]:
    """Return the tables whose columns a scalar uses."""
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
