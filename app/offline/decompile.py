"""Read SQL back into the logical form, as far as it goes: the inverse of compose."""

from typing import cast

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
    Func,
    Join,
    Like,
    Null,
    Order,
    Product,
    Query,
    Scalar,
    Share,
    Spread,
    Unit,
    Value,
    Within,
)
from longtable.tools.parsing import statement as parse_statement
from longtable.tools.parsing import written
from longtable.tools.refusal import RefusedError


class NotReadable(Exception):
    """This SQL is outside the logical form."""


def read_sql(sql: str, dialect: str) -> Query | None:
    """Return the logical form of `sql`, or None when it is outside of it."""
    try:
        statement = parse_statement(sql, dialect)
        return _Reader().query(statement) if isinstance(statement, exp.Select) else None
    except (RefusedError, NotReadable, RecursionError):
        return None


_OPS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_PARTS: dict[str, Unit] = {"%Y-%m": "month", "%Y-%m-%d": "day", "%Y": "year", "%m": "month_of_year", "%H": "hour", "%w": "weekday"}
_DATE_PARTS: dict[str, Unit] = {"month": "month_of_year", "dow": "weekday", "year": "year", "hour": "hour", "quarter": "quarter"}


class _Reader:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.base = ""

    def query(self, select: exp.Select) -> Query:
        source = select.args.get("from_") or select.args.get("from")
        if source is None or not isinstance(source.this, exp.Table) or select.args.get("with_") or select.args.get("with"):
            raise NotReadable
        self.base = self.table(source.this)
        joins = tuple(self.join(join) for join in select.args.get("joins") or ())
        where, having, group, order = (select.args.get(name) for name in ("where", "having", "group", "order"))
        limit, offset = select.args.get("limit"), select.args.get("offset")
        return Query(
            base=self.base,
            joins=joins,
            select=tuple(self.scalar(item) for item in select.expressions if not isinstance(item, exp.Star)),
            where=self.conds(where.this) if where else (),
            group=tuple(self.scalar(key) for key in group.expressions) if group else (),
            having=self.conds(having.this) if having else (),
            order=tuple(
                Order(self.scalar(each.this), bool(each.args.get("desc"))) for each in order.expressions if isinstance(each, exp.Ordered)
            )
            if order
            else (),
            limit=_whole(limit.expression) if limit else None,
            offset=_whole(offset.expression) if offset else None,
            distinct=select.args.get("distinct") is not None,
        )

    def table(self, table: exp.Table) -> str:
        self.names[table.alias_or_name.casefold()] = table.name
        return table.name

    def join(self, join: exp.Join) -> Join:
        if not isinstance(join.this, exp.Table) or join.args.get("on") is None:
            raise NotReadable
        name = self.table(join.this)
        pairs: list[tuple[Col, Col]] = []
        for part in _flatten(join.args["on"], exp.And):
            if not isinstance(part, exp.EQ):
                raise NotReadable
            left, right = self.column(part.this), self.column(part.expression)
            pairs.append((left, right) if right.table == name else (right, left))
        return Join(name, tuple(pairs), outer=(join.args.get("side") or "").upper() == "LEFT")

    def column(self, node: exp.Expr) -> Col:
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
            inner = self.column(node.this)
            return Col(inner.table, inner.name, cast=True)
        if not isinstance(node, exp.Column):
            raise NotReadable
        return Col(self.names.get(node.table.casefold(), node.table) if node.table else self.base, node.name)

    def scalar(self, node: exp.Expr) -> Scalar:
        node = node.unalias() if isinstance(node, exp.Alias) else node
        if isinstance(node, exp.Paren):
            return self.scalar(node.this)
        if (bucket := self.bucket(node)) is not None:
            return bucket
        if isinstance(node, exp.Column | exp.Cast):
            return self.column(node)
        if isinstance(node, exp.Count):
            if isinstance(node.this, exp.Star):
                return Agg("count")
            if isinstance(node.this, exp.Distinct):
                return Agg("count", self.column(node.this.expressions[0]), distinct=True)
            return Agg("count", self.column(node.this))
        if isinstance(node, exp.Avg) and isinstance(node.this, exp.Case):
            return Share(self.conds(node.this.args["ifs"][0].this))
        if isinstance(node, exp.Sum | exp.Avg | exp.Min | exp.Max):
            arg = self.scalar(node.this)
            if not isinstance(arg, Col | Product):
                raise NotReadable
            return Agg(cast(Func, node.key), arg)
        if isinstance(node, exp.Sub) and isinstance(node.this, exp.Max):
            return Spread(self.column(node.this.this))
        if isinstance(node, exp.Div) and isinstance(node.expression, exp.Window):
            return Share()
        if isinstance(node, exp.Mul):
            return self.product(node)
        raise NotReadable

    def product(self, node: exp.Expr) -> Product:
        factors: list[Col] = []
        less: Col | None = None
        for part in _flatten(node, exp.Mul):
            if isinstance(part, exp.Sub):
                less = self.column(part.expression)
            else:
                factors.append(self.column(part))
        return Product(tuple(factors), less)

    def bucket(self, node: exp.Expr) -> Bucket | None:
        """Read a date part by its rendering: both dialects print one form per unit."""
        text = written(node, "")
        columns = list(node.find_all(exp.Column))
        if len(columns) != 1 or isinstance(node, exp.Column | exp.AggFunc) or node.find(exp.AggFunc, exp.Case):
            return None
        col = self.column(columns[0])
        if isinstance(node, exp.Mul) and "FLOOR" in text:
            return Bucket(col, "decade")
        literals = [each.this for each in node.find_all(exp.Literal) if each.is_string]
        if any(each in _PARTS for each in literals):
            quarter = node.find(exp.Div) is not None
            return Bucket(col, "quarter" if quarter else next(_PARTS[each] for each in literals if each in _PARTS))
        if "DATE_PART" in text.upper() or isinstance(node, exp.Extract):
            part = next((each for each in literals if each in _DATE_PARTS), "") or str(node.this).strip("'").lower()
            return Bucket(col, _DATE_PARTS[part]) if part in _DATE_PARTS else None
        if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DATE:
            return Bucket(col, "day")
        return None

    def conds(self, node: exp.Expr) -> tuple[Cond, ...]:
        return tuple(self.cond(part) for part in _flatten(node, exp.And))

    def cond(self, node: exp.Expr) -> Cond:
        if isinstance(node, exp.Paren):
            return self.cond(node.this)
        if isinstance(node, exp.Or):
            return AnyOf(tuple(self.cond(part) for part in _flatten(node, exp.Or)))
        if isinstance(node, exp.Not):
            return negate(self.cond(node.this))
        if type(node) in _OPS:
            return self.compare(node, _OPS[type(node)])
        if isinstance(node, exp.Between):
            return Between(self.scalar(node.this), _value(node.args["low"]), _value(node.args["high"]))
        if isinstance(node, exp.In):
            query = node.args.get("query")
            if query is not None:
                return Within(
                    self.column(node.this), _Reader().query(cast(exp.Select, query.this if isinstance(query, exp.Subquery) else query))
                )
            return Among(self.scalar(node.this), tuple(_value(each) for each in node.expressions))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Null(self.column(node.this))
        if isinstance(node, exp.Escape):
            return self.cond(node.this)
        if isinstance(node, exp.Like | exp.ILike):
            return self.like(node)
        raise NotReadable

    def compare(self, node: exp.Expr, op: str) -> Cond:
        right = node.args["expression"]
        if isinstance(right, exp.Subquery):
            agg = _Reader().query(cast(exp.Select, right.this)).select[0]
            if isinstance(agg, Agg):
                return Beats(self.column(node.this), op, agg)
            raise NotReadable
        if isinstance(right, exp.Column):
            return ColumnsCompare(self.column(node.this), op, self.column(right))
        return Compare(self.scalar(node.this), op, _value(right))

    def like(self, node: exp.Expr) -> Like:
        pattern = str(_value(node.args["expression"]))
        starts, ends = pattern.startswith("%"), pattern.endswith("%")
        text = pattern[starts : len(pattern) - ends].replace("\\%", "%").replace("\\_", "_").replace("\\\\", "\\")
        return Like(self.column(node.this), "contains" if starts and ends else "ends" if starts else "starts", text)


def negate(cond: Cond) -> Cond:
    """Return the opposite of `cond`; `NotReadable` when it has no simple one."""
    match cond:
        case Compare(left, op, value):
            return Compare(left, {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[op], value)
        case Among(left, values, negated):
            return Among(left, values, not negated)
        case Like(left, how, text, negated):
            return Like(left, how, text, not negated)
        case Null(left, negated):
            return Null(left, not negated)
        case Within(keys, query, negated):
            return Within(keys, query, not negated)
        case Beats(left, op, agg):
            return Beats(left, {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}[op], agg)
        case Between(left, low, high):
            return AnyOf((Compare(left, "<", low), Compare(left, ">", high)))
        case _:
            raise NotReadable


def _flatten(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    if isinstance(node, exp.Paren) and isinstance(node.this, kind | exp.Sub):
        return _flatten(node.this, kind)
    if isinstance(node, kind):
        return _flatten(node.args["this"], kind) + _flatten(node.args["expression"], kind)
    return [node]


def _value(node: exp.Expr) -> Value:
    if isinstance(node, exp.Neg):
        inner = _value(node.this)
        if isinstance(inner, str):
            raise NotReadable
        return -inner
    if isinstance(node, exp.Cast):
        return _value(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        raise NotReadable
    if node.is_string:
        return str(node.this)
    return float(node.this) if "." in node.this or "e" in node.this.lower() else int(node.this)


def _whole(node: exp.Expr) -> int:
    value = _value(node)
    if not isinstance(value, int):
        raise NotReadable
    return value
