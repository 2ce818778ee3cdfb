"""Render a logical form as a sqlglot tree."""

import re
from functools import reduce

from sqlglot import exp

from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Beats,
    Between,
    Bucket,
    Col,
    ColumnsCompare,
    Compare,
    Cond,
    Join,
    Like,
    Null,
    Order,
    Product,
    Query,
    Scalar,
    Share,
    Spread,
    Value,
    Within,
)
from longtable.tools.parsing import written

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset([
    "all", "alter", "analyze", "and", "any", "array", "as", "asc", "attach", "between", "both", "by", "case", "cast", "check",
    "collate", "column", "constraint", "create", "cross", "current", "current_date", "current_time", "current_timestamp", "default",
    "deferrable", "desc", "describe", "distinct", "do", "drop", "else", "end", "escape", "except", "exists", "false", "fetch",
    "filter", "for", "foreign", "from", "full", "glob", "grant", "group", "having", "in", "index", "initially", "inner", "insert",
    "intersect", "interval", "into", "is", "isnull", "join", "key", "lateral", "leading", "left", "like", "limit", "match", "natural",
    "not", "notnull", "null", "of", "offset", "on", "only", "or", "order", "outer", "over", "partition", "pivot", "placing", "plan",
    "pragma", "primary", "qualify", "range", "references", "reindex", "release", "rename", "replace", "returning", "right", "row",
    "rows", "select", "session_user", "set", "share", "show", "similar", "some", "symmetric", "table", "temp", "temporary", "then",
    "to", "trailing", "transaction", "trigger", "true", "union", "unique", "unpivot", "update", "user", "using", "values", "vacuum",
    "view", "virtual", "when", "where", "window", "with", "without",
])  # fmt: skip
_OPS: dict[str, type[exp.Binary]] = {"=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}
_FUNCS: dict[str, type[exp.AggFunc]] = {"sum": exp.Sum, "avg": exp.Avg, "min": exp.Min, "max": exp.Max}


def render(query: Query, dialect: str) -> str:
    """Return the SQL text of `query` in `dialect` ("sqlite", "duckdb" or "postgres")."""
    return written(tree(query, dialect), dialect)


def tree(query: Query, dialect: str, *, qualify: bool | None = None) -> exp.Select:
    """Return the SELECT of `query`; columns are qualified when it joins or when an outer query needs it."""
    return _Composer(dialect, bool(query.joins) if qualify is None else qualify).select(query)


def identifier(name: str) -> exp.Identifier:
    """Return a name, quoted only where it must be."""
    return exp.to_identifier(name, quoted=not _PLAIN.fullmatch(name) or name.lower() in _RESERVED)


class _Composer:
    def __init__(self, dialect: str, qualify: bool) -> None:
        self.dialect, self.qualify = dialect, qualify

    def identifier(self, name: str) -> exp.Identifier:
        """Return a name; PostgreSQL folds capitals that are not quoted."""
        found = identifier(name)
        return exp.to_identifier(name, quoted=True) if self.dialect == "postgres" and name != name.lower() else found

    def select(self, query: Query) -> exp.Select:
        items = [self.scalar(item) for item in query.select] or [exp.Star()]
        select = exp.select(*items).from_(exp.Table(this=self.identifier(query.base)))
        for join in query.joins:
            select = self.join(select, join)
        for cond in query.where:
            select = select.where(self.cond(cond))
        if query.group:
            select = select.group_by(*(self.scalar(key) for key in query.group))
        for cond in query.having:
            select = select.having(self.cond(cond))
        if query.order:
            select = select.order_by(*(self.order(order) for order in query.order))
        if query.limit is not None:
            select = select.limit(query.limit)
        if query.offset is not None:
            select = select.offset(query.offset)
        return select.distinct() if query.distinct else select

    def join(self, select: exp.Select, join: Join) -> exp.Select:
        on = exp.and_(*(exp.EQ(this=self.column(left), expression=self.column(right)) for left, right in join.pairs))
        return select.join(exp.Table(this=self.identifier(join.table)), on=on, join_type="left" if join.outer else "")

    def order(self, order: Order) -> exp.Ordered:
        return exp.Ordered(this=self.scalar(order.by), desc=order.desc, nulls_first=False)

    def column(self, col: Col) -> exp.Expr:
        table = self.identifier(col.table) if self.qualify and col.table else None
        column = exp.Column(this=self.identifier(col.name), table=table)
        return exp.Cast(this=column, to=exp.DataType.build("REAL" if self.dialect == "sqlite" else "DOUBLE")) if col.cast else column

    def scalar(self, item: Scalar) -> exp.Expr:
        match item:
            case Col():
                return self.column(item)
            case Bucket():
                return self.bucket(item)
            case Product():
                return self.product(item)
            case Agg(func="count", arg=None):
                return exp.Count(this=exp.Star(), big_int=True)
            case Agg(func="count", arg=arg, distinct=distinct) if arg is not None:
                inner = self.scalar(arg)
                return exp.Count(this=exp.Distinct(expressions=[inner]) if distinct else inner, big_int=True)
            case Agg(func=func, arg=arg) if arg is not None:
                return _FUNCS[func](this=self.scalar(arg))
            case Spread(arg=arg):
                return exp.Sub(this=exp.Max(this=self.column(arg)), expression=exp.Min(this=self.column(arg)))
            case Share(conds=()):
                whole = exp.Window(this=exp.Sum(this=exp.Count(this=exp.Star(), big_int=True)))
                return exp.Div(
                    this=exp.Mul(this=exp.Literal.number("100.0"), expression=exp.Count(this=exp.Star(), big_int=True)), expression=whole
                )
            case Share(conds=conds):
                case = (
                    exp.Case()
                    .when(exp.and_(*(self.cond(cond) for cond in conds)), exp.Literal.number("100.0"))
                    .else_(exp.Literal.number("0.0"))
                )
                return exp.Avg(this=case)
        raise AssertionError(f"no rendering for {item!r}")

    def product(self, product: Product) -> exp.Expr:
        factors = [self.column(factor) for factor in product.factors]
        if product.less is not None:
            factors.append(exp.Paren(this=exp.Sub(this=exp.Literal.number(1), expression=self.column(product.less))))
        return reduce(lambda left, right: exp.Mul(this=left, expression=right), factors)

    def bucket(self, bucket: Bucket) -> exp.Expr:
        column = self.column(bucket.col)
        if bucket.unit == "decade":
            year = self.column(bucket.col)
            return exp.Mul(
                this=exp.cast(exp.Floor(this=exp.Div(this=year, expression=exp.Literal.number("10.0"))), "INT"),
                expression=exp.Literal.number(10),
            )
        if self.dialect != "sqlite":
            stamp = exp.cast(column, "TIMESTAMP")
            if bucket.unit == "month" and self.dialect == "postgres":
                return exp.Anonymous(this="TO_CHAR", expressions=[stamp, exp.Literal.string("YYYY-MM")])
            if bucket.unit == "month":
                return exp.Anonymous(this="STRFTIME", expressions=[stamp, exp.Literal.string("%Y-%m")])
            if bucket.unit == "day":
                return exp.cast(column, "DATE")
            part = {"month_of_year": "month", "weekday": "dow"}.get(bucket.unit, bucket.unit)
            return exp.Anonymous(this="DATE_PART", expressions=[exp.Literal.string(part), stamp])
        if bucket.unit == "quarter":
            month = exp.cast(_strftime("%m", column), "INT")
            return exp.cast(
                exp.Div(this=exp.Paren(this=exp.Add(this=month, expression=exp.Literal.number(2))), expression=exp.Literal.number(3)), "INT"
            )
        if bucket.unit in ("month", "day"):
            return _strftime("%Y-%m" if bucket.unit == "month" else "%Y-%m-%d", column)
        return exp.cast(_strftime({"year": "%Y", "month_of_year": "%m", "hour": "%H", "weekday": "%w"}[bucket.unit], column), "INT")

    def cond(self, cond: Cond) -> exp.Expr:
        match cond:
            case Compare(left=left, op=op, value=value):
                return _OPS[op](this=self.scalar(left), expression=_literal(value))
            case ColumnsCompare(left=left, op=op, right=right):
                return _OPS[op](this=self.column(left), expression=self.column(right))
            case Between(left=left, low=low, high=high):
                return exp.Between(this=self.scalar(left), low=_literal(low), high=_literal(high))
            case Among(left=left, values=values, negated=negated):
                among = exp.In(this=self.scalar(left), expressions=[_literal(value) for value in values])
                return exp.Not(this=among) if negated else among
            case Like():
                return self.like(cond)
            case Null(left=left, negated=negated):
                null = exp.Is(this=self.column(left), expression=exp.Null())
                return exp.Not(this=null) if negated else null
            case Beats(left=left, op=op, agg=agg):
                inner = tree(Query(base=left.table, select=(agg,)), self.dialect, qualify=False)
                return _OPS[op](this=self.column(left), expression=exp.Subquery(this=inner))
            case Within(keys=keys, query=query, negated=negated):
                within = exp.In(this=self.column(keys), query=exp.Subquery(this=tree(query, self.dialect)))
                return exp.Not(this=within) if negated else within
            case AnyOf(conds=conds):
                return exp.Paren(this=exp.or_(*(self.cond(each) for each in conds)))
        raise AssertionError(f"no rendering for {cond!r}")

    def like(self, cond: Like) -> exp.Expr:
        escaped = re.sub(r"([\\%_])", r"\\\1", cond.text)
        pattern = {"contains": f"%{escaped}%", "starts": f"{escaped}%", "ends": f"%{escaped}"}[cond.how]
        kind = exp.Like if self.dialect == "sqlite" else exp.ILike  # LIKE of SQLite disregards case
        like: exp.Expr = kind(this=self.column(cond.left), expression=exp.Literal.string(pattern))
        if escaped != cond.text:
            like = exp.Escape(this=like, expression=exp.Literal.string("\\"))
        return exp.Not(this=like) if cond.negated else like


def _strftime(form: str, column: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="STRFTIME", expressions=[exp.Literal.string(form), column])


def _literal(value: Value) -> exp.Expr:
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, str):
        return exp.Literal.string(value)
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
