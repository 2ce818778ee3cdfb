"""A small typed subset of SELECT, which can be written as SQL and read back."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cache
from typing import Literal, TypeVar, cast

from sqlglot import exp

from longtable.analyst.lexicon import vocabulary
from longtable.analyst.schema import Value
from longtable.tools.sql.parsing import (
    DatePart,
    Dialect,
    RefusedError,
    dialect_of,
    statement,
    written,
)

Func = Literal["count", "sum", "avg", "min", "max"]
Unit = DatePart


@dataclass(frozen=True)
class Col:
    """A column of one of the query's tables, or an expression over its columns. The `name` of an
    expression is its SQL in brackets.
    """

    table: str
    name: str
    label: str = field(default="", compare=False)
    """What a person calls an expression, if it is a company's term."""

    @property
    def is_computed(self) -> bool:
        """Return whether this is an expression."""
        return self.name.startswith("(")


@dataclass(frozen=True)
class Bucket:
    """A unit of a date column, such as its month."""

    col: Col
    unit: Unit


@dataclass(frozen=True)
class Agg:
    """An aggregate. Without `arg` it is a count of rows."""

    func: Func
    arg: Col | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Ratio:
    """One aggregate divided by another and multiplied by `times`. `where` restricts the rows of the
    first aggregate (`above`). A ratio is written as SQL, but never read back.
    """

    name: str
    above: Agg
    below: Agg
    where: "tuple[Condition, ...]" = ()
    times: float = 1.0


Scalar = Col | Bucket | Agg | Ratio


@dataclass(frozen=True)
class Condition:
    """The condition `left op value`, or its negation if `negated` is True.

    The value depends on `op`. For = <> < <= > >= it is a single value, or an aggregate over the
    table of `left`. For "between" it is a pair, both ends included. For "in" it is a tuple of
    values or a query. For "contains", "starts" and "ends" it is a text, whose case does not matter.
    For "null" there is no value.
    """

    left: Scalar
    op: str
    value: "Value | tuple[Value, ...] | Agg | Query | None" = None
    negated: bool = False

    @property
    def query(self) -> "Query | None":
        """Return the subquery of an "in" condition, None for any other condition."""
        return self.value if isinstance(self.value, Query) else None

    @property
    def is_filled(self) -> bool:
        """Return whether the condition only says that `left` is not NULL."""
        return self.op == "null" and self.negated


def filled(left: Scalar) -> Condition:
    """Return the condition that `left` is not NULL."""
    return Condition(left, "null", negated=True)


@dataclass(frozen=True)
class Join:
    """A table that is joined where one of its columns equals a column of a table joined before. If
    `outer` is True, rows without a partner are kept.
    """

    table: str
    left: Col
    right: Col
    outer: bool = True


@dataclass(frozen=True)
class Order:
    """One sort key of a query."""

    by: Scalar
    desc: bool = False


def tables_within(conditions: "Iterable[Condition]") -> Iterator[str]:
    """Yield the tables that are read by the subqueries in these conditions."""
    for condition in conditions:
        if condition.query:
            yield from condition.query.tables


@dataclass(frozen=True)
class Query:
    """One SELECT. An empty `select` stands for all columns."""

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
        """Return every table that the query reads, the base table first."""
        own = (self.base, *(join.table for join in self.joins))
        return tuple(dict.fromkeys((*own, *tables_within(self.where))))

    @property
    def aggregates(self) -> tuple[Agg, ...]:
        """Return the aggregates among the selected items."""
        return tuple(item for item in self.select if isinstance(item, Agg))


Part = TypeVar("Part")


def labelled(part: Part, labels: Mapping[str, str]) -> Part:
    """Return a query, or a part of one, in which expressions bear labels. `labels`: by name."""
    if isinstance(part, Col):
        return replace(part, label=labels.get(part.name, part.label))
    if isinstance(part, tuple):
        return cast(Part, tuple(labelled(each, labels) for each in part))
    if isinstance(part, Query | Condition | Bucket | Agg | Ratio | Join | Order):
        changed = {each.name: labelled(getattr(part, each.name), labels) for each in fields(part)}
        return replace(part, **changed)
    return part


# -- writing ---------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BACKSLASH = "\\"
PATTERNS = {"contains": "%{}%", "starts": "{}%", "ends": "%{}"}


def write_sql(query: Query, dialect: str) -> str:
    """Return the SQL text of `query` in a dialect."""
    return _Writer(dialect, qualified=bool(query.joins)).select(query)


@dataclass(frozen=True)
class _Writer:
    dialect: str
    qualified: bool

    @property
    def rules(self) -> Dialect:
        return dialect_of(self.dialect)

    def select(self, query: Query) -> str:
        items = ", ".join(map(self.scalar, query.select)) or "*"
        parts = [f"SELECT {'DISTINCT ' * query.distinct}{items} FROM {self.name(query.base)}"]
        for join in query.joins:
            on = f"{self.scalar(join.left)} = {self.scalar(join.right)}"
            parts.append(f"{'LEFT ' * join.outer}JOIN {self.name(join.table)} ON {on}")
        clauses = {
            "WHERE": " AND ".join(map(self.condition, query.where)),
            "GROUP BY": ", ".join(map(self.scalar, query.group)),
            "HAVING": " AND ".join(map(self.condition, query.having)),
            "ORDER BY": ", ".join(map(self.order, query.order)),
            "LIMIT": "" if query.limit is None else str(query.limit),
            "OFFSET": "" if query.offset is None else str(query.offset),
        }
        return " ".join([*parts, *(f"{word} {text}" for word, text in clauses.items() if text)])

    def name(self, name: str) -> str:
        """Return a name, with quotes if it needs them. Some dialects turn names without quotes into
        lower case.
        """
        special = not _PLAIN.fullmatch(name) or name.lower() in vocabulary().lists["reserved"]
        folded = self.rules.exact_names and name != name.lower()
        return self.rules.quoted(name) if special or folded else name

    def literal(self, value: Value | None) -> str:
        """Return a value as SQL."""
        if isinstance(value, str):
            return self.rules.literal(value)
        return str(value).upper() if isinstance(value, bool) else str(value)

    def order(self, order: Order) -> str:
        """Return the SQL of a sort key with missing values last. Some dialects put them first."""
        rules = self.rules
        unusual = rules.nulls_first_descending if order.desc else rules.nulls_first_ascending
        return f"{self.scalar(order.by)} {'DESC' if order.desc else 'ASC'}{' NULLS LAST' * unusual}"

    def scalar(self, item: Scalar) -> str:
        match item:
            case Col() if item.is_computed:
                return item.name
            case Col():
                return (
                    f"{self.name(item.table)}.{self.name(item.name)}"
                    if self.qualified
                    else self.name(item.name)
                )
            case Bucket():
                return self.rules.date_parts[item.unit].format(self.scalar(item.col))
            case Agg():
                inner = self.scalar(item.arg) if item.arg is not None else "*"
                return f"{item.func.upper()}({'DISTINCT ' * item.distinct}{inner})"
            case Ratio():
                rows = (
                    f" FILTER (WHERE {' AND '.join(map(self.condition, item.where))})"
                    if item.where
                    else ""
                )
                return (
                    f"{item.times} * {self.scalar(item.above)}{rows} /"
                    f" NULLIF({self.scalar(item.below)}, 0) AS {item.name}"
                )

    def condition(self, cond: Condition) -> str:
        left = self.scalar(cond.left)
        value = cond.value
        if cond.op == "null":
            text = f"{left} IS NULL"
        elif value is True and isinstance(cond.left, Col) and cond.left.is_computed:
            text = left if cond.op == "=" else f"NOT {left}"
        elif cond.op in PATTERNS:
            escaped = re.sub(r"([\\%_])", r"\\\1", str(value))
            text = f"{left} {self.rules.like} {self.literal(PATTERNS[cond.op].format(escaped))}"
            if escaped != value:
                text += f" ESCAPE {self.rules.literal(_BACKSLASH)}"
        elif isinstance(value, tuple):
            values = list(map(self.literal, value))
            text = (
                f"{left} BETWEEN {values[0]} AND {values[1]}"
                if cond.op == "between"
                else f"{left} IN ({', '.join(values)})"
            )
        elif isinstance(value, Query | Agg):
            inner = (
                value
                if isinstance(value, Query)
                else Query(cast(Col, cond.left).table, select=(value,))
            )
            text = f"{left} {cond.op.upper()} ({write_sql(inner, self.dialect)})"
        else:
            text = f"{left} {cond.op} {self.literal(value)}"
        return f"NOT {text}" if cond.negated else text


# -- reading ---------------------------------------------------------------------------------------

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


class NotReadableError(Exception):
    """The SQL is outside of the subset that can be read."""


def read_sql(sql: str, dialect: str) -> Query | None:
    """Return the query of an SQL text, None if the text is outside of the subset."""
    try:
        return _Reader(dialect).query(statement(sql, dialect))
    except (RefusedError, NotReadableError, RecursionError):
        return None


@cache
def _buckets(dialect: str) -> dict[str, Unit]:
    """Return the unit for each SQL expression that computes one. The keys are texts as `_bare`
    returns them.
    """
    forms = {
        unit: statement(f"SELECT {form.format('x')}", dialect)
        for unit, form in dialect_of(dialect).date_parts.items()
    }
    return {_bare(tree.expressions[0]): unit for unit, tree in forms.items()}


def _bare(node: exp.Expr) -> str:
    """Return the SQL of a node in which every column is called x."""
    return written(
        node.transform(lambda each: exp.column("x") if isinstance(each, exp.Column) else each), ""
    )


@dataclass
class _Reader:
    dialect: str
    names: dict[str, str] = field(default_factory=dict)
    base: str = ""

    def query(self, select: exp.Expr) -> Query:
        source = select.args.get("from_")
        if not isinstance(select, exp.Select) or source is None or select.args.get("with_"):
            raise NotReadableError
        self.base = self.table(source.this)
        joins = tuple(self.join(join) for join in select.args.get("joins") or ())
        where = select.args.get("where")
        having = select.args.get("having")
        group = select.args.get("group")
        order = select.args.get("order")
        shown = [item for item in select.expressions if not isinstance(item, exp.Star)]
        return Query(
            base=self.base,
            joins=joins,
            select=tuple(map(self.scalar, shown)),
            where=self.conditions(where.this) if where else (),
            group=tuple(map(self.scalar, group.expressions)) if group else (),
            having=self.conditions(having.this) if having else (),
            order=tuple(map(self.order, order.expressions)) if order else (),
            limit=_whole(select.args.get("limit")),
            offset=_whole(select.args.get("offset")),
            distinct=select.args.get("distinct") is not None,
        )

    def order(self, item: exp.Expr) -> Order:
        return Order(self.scalar(item.this), bool(item.args.get("desc")))

    def table(self, table: exp.Expr) -> str:
        if not isinstance(table, exp.Table):
            raise NotReadableError
        self.names[table.alias_or_name.casefold()] = table.name
        return table.name

    def join(self, join: exp.Join) -> Join:
        name = self.table(join.this)
        on = join.args.get("on")
        if not isinstance(on, exp.EQ):
            raise NotReadableError
        left = self.column(on.this)
        right = self.column(on.expression)
        left, right = (left, right) if right.table == name else (right, left)
        return Join(name, left, right, outer=(join.args.get("side") or "").upper() == "LEFT")

    def column(self, node: exp.Expr) -> Col:
        if not isinstance(node, exp.Column):
            raise NotReadableError
        return Col(
            self.names.get(node.table.casefold(), node.table) if node.table else self.base,
            node.name,
        )

    def operand(self, node: exp.Expr) -> Col:
        """Return a column, or an expression in brackets over the columns of one table."""
        if isinstance(node, exp.Paren) and not isinstance(node.this, exp.Column):
            return self.computed(node)
        return self.column(node.unnest())

    def computed(self, node: exp.Expr) -> Col:
        outer = node.parent_select
        columns = [each for each in node.find_all(exp.Column) if each.parent_select is outer]
        tables = {self.column(each).table for each in columns}
        if len(tables) != 1 or node.find(exp.AggFunc):
            raise NotReadableError
        return Col(tables.pop(), written(node, self.dialect))

    def scalar(self, node: exp.Expr) -> Scalar:
        if isinstance(node, exp.Paren) and not isinstance(node.this, exp.Column):
            return self.computed(node)
        node = node.unalias() if isinstance(node, exp.Alias | exp.Paren) else node
        match node:
            case exp.Column():
                return self.column(node)
            case exp.Count():
                distinct = isinstance(node.this, exp.Distinct)
                arg = node.this.expressions[0] if distinct else node.this
                return (
                    Agg("count")
                    if isinstance(arg, exp.Star)
                    else Agg("count", self.column(arg), distinct)
                )
            case exp.Sum() | exp.Avg() | exp.Min() | exp.Max():
                return Agg(cast(Func, node.key), self.operand(node.this))
        column = node.find(exp.Column)
        unit = _buckets(self.dialect).get(_bare(node))
        if column is None or unit is None:
            raise NotReadableError
        return Bucket(self.column(column), unit)

    def conditions(self, node: exp.Expr) -> tuple[Condition, ...]:
        if isinstance(node, exp.Paren):
            return self.conditions(node.this)
        return (
            (*self.conditions(node.this), *self.conditions(node.expression))
            if isinstance(node, exp.And)
            else (self.condition(node),)
        )

    def condition(self, node: exp.Expr, *, negated: bool = False) -> Condition:
        if isinstance(node, exp.Paren):
            try:
                return self.condition(node.this, negated=negated)
            except NotReadableError:
                return Condition(self.computed(node), "=", True, negated)
        if isinstance(node, exp.Escape | exp.Not):
            return self.condition(node.this, negated=negated != isinstance(node, exp.Not))
        right = node.args.get("query") or node.args.get("expression")
        match node:
            case exp.In() if right is not None:
                return Condition(
                    self.column(node.this),
                    "in",
                    _Reader(self.dialect).query(right.unnest()),
                    negated,
                )
            case exp.In():
                return Condition(
                    self.scalar(node.this), "in", tuple(map(_value, node.expressions)), negated
                )
            case exp.Is() if isinstance(right, exp.Null):
                return Condition(self.column(node.this), "null", negated=negated)
            case exp.Like() | exp.ILike():
                pattern = str(_value(node.expression))
                starts = pattern.startswith("%")
                ends = pattern.endswith("%")
                text = re.sub(r"\\([\\%_])", r"\1", pattern[starts : len(pattern) - ends])
                return Condition(
                    self.column(node.this),
                    "contains" if starts and ends else "ends" if starts else "starts",
                    text,
                    negated,
                )
            case exp.Between() if not negated:
                return Condition(
                    self.scalar(node.this),
                    "between",
                    (_value(node.args["low"]), _value(node.args["high"])),
                )
        if type(node) not in _COMPARED or negated or right is None:
            raise NotReadableError
        if not isinstance(right, exp.Subquery):
            return Condition(self.scalar(node.this), _COMPARED[type(node)], _value(right))
        left = self.column(node.this)
        inner = _Reader(self.dialect).query(right.unnest())
        if len(inner.aggregates) != 1 or inner != Query(left.table, select=inner.aggregates):
            raise NotReadableError
        return Condition(left, _COMPARED[type(node)], inner.aggregates[0])


def _value(node: exp.Expr) -> Value:
    node = node.this if isinstance(node, exp.Cast) else node
    try:
        value = node.to_py()
    except ValueError as error:
        raise NotReadableError from error
    if not isinstance(value, str | int | Decimal):
        raise NotReadableError
    return float(value) if isinstance(value, Decimal) else value


def _whole(clause: exp.Expr | None) -> int | None:
    value = _value(clause.expression) if clause is not None else None
    if isinstance(value, str | float):
        raise NotReadableError
    return value
