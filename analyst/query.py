"""Define a small typed subset of SELECT, write it as SQL, and read it back."""

import re
from dataclasses import dataclass
from typing import Literal, cast

from sqlglot import exp

from longtable.analyst.schema import Value
from longtable.analyst.words import vocabulary
from longtable.tools.sql.parsing import statement, written
from longtable.tools.sql.refusal import RefusedError

Func = Literal["count", "sum", "avg", "min", "max"]
Unit = Literal["year", "month", "month_of_year", "quarter", "day", "hour", "weekday"]


@dataclass(frozen=True)
class Col:
    """A column of a table of the query."""

    table: str
    name: str


@dataclass(frozen=True)
class Bucket:
    """A date column cut to a unit."""

    col: Col
    unit: Unit


@dataclass(frozen=True)
class Agg:
    """An aggregate; without `arg` a count of rows."""

    func: Func
    arg: Col | None = None
    distinct: bool = False


Scalar = Col | Bucket | Agg


@dataclass(frozen=True)
class Compare:
    """`left op value`, with one of = <> < <= > >=."""

    left: Scalar
    op: str
    value: Value


@dataclass(frozen=True)
class Between:
    """`left` between two values, both included."""

    left: Scalar
    low: Value
    high: Value


@dataclass(frozen=True)
class Among:
    """`left` is one of the values, or none of them."""

    left: Scalar
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True)
class Like:
    """`left` matches a pattern, whatever its case."""

    left: Col
    how: Literal["contains", "starts", "ends"]
    text: str
    negated: bool = False


@dataclass(frozen=True)
class Null:
    """`left` is missing (or, negated, present)."""

    left: Col
    negated: bool = False


@dataclass(frozen=True)
class Beats:
    """`left op (SELECT agg FROM the same table)`: above the average."""

    left: Col
    op: str
    agg: Agg


@dataclass(frozen=True)
class Within:
    """`left` [not] in the rows of a subquery."""

    left: Col
    query: "Query"
    negated: bool = False


Condition = Compare | Between | Among | Like | Null | Beats | Within


@dataclass(frozen=True)
class Join:
    """A table joined where a column already there equals one of its own; rows without a partner stay when `outer`."""

    table: str
    left: Col
    right: Col
    outer: bool = True


@dataclass(frozen=True)
class Order:
    """One sort key."""

    by: Scalar
    desc: bool = False


@dataclass(frozen=True)
class Query:
    """One SELECT; an empty `select` means all columns."""

    base: str
    joins: tuple[Join, ...] = ()
    select: tuple[Scalar, ...] = ()
    where: tuple[Condition, ...] = ()
    group: tuple[Scalar, ...] = ()
    having: tuple[Condition, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None
    distinct: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """Return every table that it reads, its base first."""
        inner = [name for cond in self.where if isinstance(cond, Within) for name in cond.query.tables]
        return tuple(dict.fromkeys((self.base, *(join.table for join in self.joins), *inner)))

    @property
    def aggregates(self) -> tuple[Agg, ...]:
        """Return what it computes over rows."""
        return tuple(item for item in self.select if isinstance(item, Agg))


class NotReadableError(Exception):
    """This SQL is outside of the subset."""


# -- writing ------------------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPS: dict[str, type[exp.Binary]] = {"=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}
_FUNCS: dict[str, type[exp.AggFunc]] = {"sum": exp.Sum, "avg": exp.Avg, "min": exp.Min, "max": exp.Max}
_FORMATS: dict[Unit, str] = {"month": "%Y-%m", "day": "%Y-%m-%d", "year": "%Y", "month_of_year": "%m", "hour": "%H", "weekday": "%w"}
_PARTS: dict[str, str] = {"month_of_year": "month", "weekday": "dow"}


def write_sql(query: Query, dialect: str) -> str:
    """Return the SQL text of `query` in "sqlite", "duckdb" or "postgres"."""
    return written(_Writer(dialect, qualified=bool(query.joins)).select(query), dialect)


@dataclass(frozen=True)
class _Writer:
    dialect: str
    qualified: bool

    def identifier(self, name: str) -> exp.Identifier:
        """Return a name, quoted where it must be; PostgreSQL folds capitals that are not quoted."""
        special = not _PLAIN.fullmatch(name) or name.lower() in vocabulary().lists["reserved"]
        return exp.to_identifier(name, quoted=special or (self.dialect == "postgres" and name != name.lower()))

    def select(self, query: Query) -> exp.Select:
        items = [self.scalar(item) for item in query.select] or [exp.Star()]
        select = exp.select(*items).from_(exp.Table(this=self.identifier(query.base)))
        for join in query.joins:
            on = exp.EQ(this=self.column(join.left), expression=self.column(join.right))
            select = select.join(exp.Table(this=self.identifier(join.table)), on=on, join_type="left" if join.outer else "")
        if query.where:
            select = select.where(exp.and_(*(self.condition(cond) for cond in query.where)))
        if query.group:
            select = select.group_by(*(self.scalar(key) for key in query.group))
        if query.having:
            select = select.having(exp.and_(*(self.condition(cond) for cond in query.having)))
        if query.order:
            ordered = [exp.Ordered(this=self.scalar(order.by), desc=order.desc, nulls_first=False) for order in query.order]
            select = select.order_by(*ordered)
        if query.limit is not None:
            select = select.limit(query.limit)
        if query.offset is not None:
            select = select.offset(query.offset)
        return select.distinct() if query.distinct else select

    def column(self, col: Col) -> exp.Expr:
        return exp.Column(this=self.identifier(col.name), table=self.identifier(col.table) if self.qualified else None)

    def scalar(self, item: Scalar) -> exp.Expr:
        match item:
            case Col():
                return self.column(item)
            case Bucket():
                return self.bucket(item)
            case Agg(func="count", arg=None):
                return exp.Count(this=exp.Star(), big_int=True)
            case Agg(func="count", arg=arg, distinct=distinct) if arg is not None:
                inner = self.scalar(arg)
                return exp.Count(this=exp.Distinct(expressions=[inner]) if distinct else inner, big_int=True)
            case Agg(func=func, arg=arg) if arg is not None:
                return _FUNCS[func](this=self.scalar(arg))
        raise AssertionError(f"no SQL for {item!r}")

    def bucket(self, bucket: Bucket) -> exp.Expr:
        column, unit = self.column(bucket.col), bucket.unit
        if self.dialect != "sqlite":
            stamp = exp.cast(column, "TIMESTAMP")
            if unit == "month":
                name, form = ("TO_CHAR", "YYYY-MM") if self.dialect == "postgres" else ("STRFTIME", "%Y-%m")
                return exp.Anonymous(this=name, expressions=[stamp, exp.Literal.string(form)])
            return (
                exp.cast(column, "DATE")
                if unit == "day"
                else exp.Anonymous(this="DATE_PART", expressions=[exp.Literal.string(_PARTS.get(unit, unit)), stamp])
            )
        if unit == "quarter":
            month = exp.cast(_strftime("%m", column), "INT")
            shifted = exp.Paren(this=exp.Add(this=month, expression=exp.Literal.number(2)))
            return exp.cast(exp.Div(this=shifted, expression=exp.Literal.number(3)), "INT")
        text = _strftime(_FORMATS[unit], column)
        return text if unit in ("month", "day") else exp.cast(text, "INT")

    def condition(self, cond: Condition) -> exp.Expr:
        match cond:
            case Compare(left=left, op=op, value=value):
                return _OPS[op](this=self.scalar(left), expression=_literal(value))
            case Between(left=left, low=low, high=high):
                return exp.Between(this=self.scalar(left), low=_literal(low), high=_literal(high))
            case Among(left=left, values=values):
                found: exp.Expr = exp.In(this=self.scalar(left), expressions=[_literal(value) for value in values])
            case Null(left=left):
                found = exp.Is(this=self.column(left), expression=exp.Null())
            case Beats(left=left, op=op, agg=agg):
                inner = _Writer(self.dialect, qualified=False).select(Query(left.table, select=(agg,)))
                return _OPS[op](this=self.column(left), expression=exp.Subquery(this=inner))
            case Within(left=left, query=query):
                inner = _Writer(self.dialect, qualified=bool(query.joins)).select(query)
                found = exp.In(this=self.column(left), query=exp.Subquery(this=inner))
            case Like(left=left, how=how, text=text):
                escaped = re.sub(r"([\\%_])", r"\\\1", text)
                pattern = {"contains": f"%{escaped}%", "starts": f"{escaped}%", "ends": f"%{escaped}"}[how]
                kind = exp.Like if self.dialect == "sqlite" else exp.ILike  # SQLite's LIKE disregards case
                found = kind(this=self.column(left), expression=exp.Literal.string(pattern))
                if escaped != text:
                    found = exp.Escape(this=found, expression=exp.Literal.string("\\"))
        return exp.Not(this=found) if cond.negated else found


def _strftime(form: str, column: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="STRFTIME", expressions=[exp.Literal.string(form), column])


def _literal(value: Value) -> exp.Expr:
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, str):
        return exp.Literal.string(value)
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


# -- reading ------------------------------------------------------------------------------------------------------------

_COMPARED: dict[type[exp.Expr], str] = {kind: op for op, kind in _OPS.items()}
_UNITS: dict[str, Unit] = {"YYYY-MM": "month", **{form: unit for unit, form in _FORMATS.items()}}
_NAMED: dict[str, Unit] = {"month": "month_of_year", "dow": "weekday", "year": "year", "hour": "hour", "quarter": "quarter"}


def read_sql(sql: str, dialect: str) -> Query | None:
    """Return the query that `sql` writes, None where it is outside of the subset."""
    try:
        tree = statement(sql, dialect)
        return _Reader().query(tree) if isinstance(tree, exp.Select) else None
    except (RefusedError, NotReadableError, RecursionError):
        return None


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.base = ""

    def query(self, select: exp.Select) -> Query:
        source = select.args.get("from_") or select.args.get("from")
        if source is None or not isinstance(source.this, exp.Table) or select.args.get("with_") or select.args.get("with"):
            raise NotReadableError
        self.base = self.table(source.this)
        joins = tuple(self.join(join) for join in select.args.get("joins") or ())
        where, having, group, order = (select.args.get(name) for name in ("where", "having", "group", "order"))
        limit, offset = select.args.get("limit"), select.args.get("offset")
        ordered = [each for each in order.expressions if isinstance(each, exp.Ordered)] if order else []
        return Query(
            base=self.base,
            joins=joins,
            select=tuple(self.scalar(item) for item in select.expressions if not isinstance(item, exp.Star)),
            where=self.conditions(where.this) if where else (),
            group=tuple(self.scalar(key) for key in group.expressions) if group else (),
            having=self.conditions(having.this) if having else (),
            order=tuple(Order(self.scalar(each.this), bool(each.args.get("desc"))) for each in ordered),
            limit=_whole(limit.expression) if limit else None,
            offset=_whole(offset.expression) if offset else None,
            distinct=select.args.get("distinct") is not None,
        )

    def table(self, table: exp.Table) -> str:
        self.names[table.alias_or_name.casefold()] = table.name
        return table.name

    def join(self, join: exp.Join) -> Join:
        on = join.args.get("on")
        if not isinstance(join.this, exp.Table) or not isinstance(on, exp.EQ):
            raise NotReadableError
        name = self.table(join.this)
        left, right = self.column(on.this), self.column(on.expression)
        left, right = (left, right) if right.table == name else (right, left)
        return Join(name, left, right, outer=(join.args.get("side") or "").upper() == "LEFT")

    def column(self, node: exp.Expr) -> Col:
        if not isinstance(node, exp.Column):
            raise NotReadableError
        return Col(self.names.get(node.table.casefold(), node.table) if node.table else self.base, node.name)

    def scalar(self, node: exp.Expr) -> Scalar:
        node = node.unalias() if isinstance(node, exp.Alias | exp.Paren) else node
        if (bucket := self.bucket(node)) is not None:
            return bucket
        match node:
            case exp.Column():
                return self.column(node)
            case exp.Count():
                if isinstance(node.this, exp.Star):
                    return Agg("count")
                distinct = isinstance(node.this, exp.Distinct)
                return Agg("count", self.column(node.this.expressions[0] if distinct else node.this), distinct)
            case exp.Sum() | exp.Avg() | exp.Min() | exp.Max():
                arg = self.scalar(node.this)
                if isinstance(arg, Col):
                    return Agg(cast(Func, node.key), arg)
        raise NotReadableError

    def bucket(self, node: exp.Expr) -> Bucket | None:
        """Read a part of a date by the forms in which `bucket` of the writer writes it."""
        columns = list(node.find_all(exp.Column))
        if len(columns) != 1 or isinstance(node, exp.Column) or node.find(exp.AggFunc, exp.Case, exp.Mul):
            return None
        texts = [each.this for each in node.find_all(exp.Literal) if each.is_string]
        unit: Unit | None = next((_UNITS[each] for each in texts if each in _UNITS), None)
        if unit is not None:
            return Bucket(self.column(columns[0]), "quarter") if node.find(exp.Div) else Bucket(self.column(columns[0]), unit)
        if "DATE_PART" in written(node, "").upper() or isinstance(node, exp.Extract):
            part = next((each for each in texts if each in _NAMED), "") or str(node.this).strip("'").lower()
            return Bucket(self.column(columns[0]), _NAMED[part]) if part in _NAMED else None
        return Bucket(self.column(columns[0]), "day") if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DATE else None

    def conditions(self, node: exp.Expr) -> tuple[Condition, ...]:
        if isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
            return self.conditions(node.this)
        return (*self.conditions(node.this), *self.conditions(node.expression)) if isinstance(node, exp.And) else (self.condition(node),)

    def condition(self, node: exp.Expr, *, negated: bool = False) -> Condition:
        match node:
            case exp.Paren() | exp.Escape():
                return self.condition(node.this, negated=negated)
            case exp.Not():
                return self.condition(node.this, negated=not negated)
            case exp.In():
                if (query := node.args.get("query")) is not None:
                    inner = query.this if isinstance(query, exp.Subquery) else query
                    return Within(self.column(node.this), _Reader().query(cast(exp.Select, inner)), negated)
                return Among(self.scalar(node.this), tuple(_value(each) for each in node.expressions), negated)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Null(self.column(node.this), negated)
            case exp.Like() | exp.ILike():
                return self.like(node, negated=negated)
            case exp.Between() if not negated:
                return Between(self.scalar(node.this), _value(node.args["low"]), _value(node.args["high"]))
        if type(node) not in _COMPARED or negated:
            raise NotReadableError
        op, right = _COMPARED[type(node)], node.args["expression"]
        if isinstance(right, exp.Subquery):
            agg = _Reader().query(cast(exp.Select, right.this)).select[0]
            if isinstance(agg, Agg):
                return Beats(self.column(node.this), op, agg)
            raise NotReadableError
        return Compare(self.scalar(node.this), op, _value(right))

    def like(self, node: exp.Expr, *, negated: bool) -> Like:
        pattern = str(_value(node.args["expression"]))
        starts, ends = pattern.startswith("%"), pattern.endswith("%")
        text = re.sub(r"\\([\\%_])", r"\1", pattern[starts : len(pattern) - ends])
        how: Literal["contains", "starts", "ends"] = "contains" if starts and ends else "ends" if starts else "starts"
        return Like(self.column(node.this), how, text, negated)


def _value(node: exp.Expr) -> Value:
    if isinstance(node, exp.Neg) and not isinstance(inner := _value(node.this), str):
        return -inner
    if isinstance(node, exp.Cast):
        return _value(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        raise NotReadableError
    if node.is_string:
        return str(node.this)
    return float(node.this) if "." in node.this or "e" in node.this.lower() else int(node.this)


def _whole(node: exp.Expr) -> int:
    value = _value(node)
    if not isinstance(value, int):
        raise NotReadableError
    return value
