"""The functions and node types that a query may contain; anything else is refused."""

import tomllib
from pathlib import Path

from sqlglot import exp

from longtable.tools.engines import dialects

_FUNCTIONS = tomllib.loads(
    (Path(dialects.__file__).parent / "functions.toml").read_text(encoding="utf-8")
)


def _words(kind: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(lists[kind].split()) for name, lists in _FUNCTIONS.items()}


SCALAR_FUNCTIONS = _words("scalar")
"""Scalar, aggregate and window functions, by dialect."""

TABLE_FUNCTIONS = _words("table")
"""Functions that may be called in FROM, as if they were tables, by dialect."""

QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
"""The node types that may be at the top of a statement."""

_NODES = """
Add Adjacent Alias Aliases All Any AtTimeZone Between BitString BitwiseAnd BitwiseLeftShift
BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor Boolean Bracket ByteString CTE Column ColumnDef
Comprehension Cube DPipe DataType DataTypeParam Distinct Div Dot EQ Escape Except ExtendsLeft
ExtendsRight Fetch Filter From GT GTE Glob Group GroupingSets Having HavingMax HexString ILike
Identifier IgnoreNulls In IntDiv Intersect Interval IntervalSpan Is JSON JSONExtractQuote
JSONColumnDef JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRecursive JSONPathRoot JSONPathScript
JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard JSONSchema JSONValue Join Kwarg LT LTE
Lambda Lateral Like Limit LimitOptions Literal Match Mod Mul NEQ National Neg Not Null NullSafeEQ
NullSafeNEQ Offset Operator Order Ordered Overlaps Paren Pivot PivotAlias PivotAny PropertyEQ
Pseudocolumn Qualify RawString RespectNulls Rollup Select SimilarTo Slice Star Sub Subquery
TableAlias TableColumn TableSample Tuple UnicodeString Union UnpivotColumns Values Var Where Window
WindowSpec With WithinGroup
"""

# Written by an operator or a keyword, so that there is no function name in the text. All compute
# from their arguments alone.
_SYNTAX_FUNCTIONS = """
All And Array ArrayContainedBy ArrayContainsAll ArrayOverlaps ArrayConcat Case Cast CastToStrType Ceil Chr
Coalesce Collate Columns Concat CurrentDate CurrentTime CurrentTimestamp Distance Exists Extract
Floor GroupConcat If JSONArrayAgg JSONBContains JSONBContainsAllTopKeys JSONBContainsAnyTopKeys
JSONBContainsTopKey JSONBDeleteAtPath JSONBExtract JSONBExtractScalar JSONBPathExists JSONExtract
JSONExtractScalar JSONArray JSONObject JSONObjectAgg List Localtime Localtimestamp Map MatchAgainst Or Pow
RegexpILike RegexpLike Right Left StartsWith StrPosition Struct Substring ToMap Trim Try TryCast
TsOrDsToDate TsOrDsToTimestamp Unnest Xor
"""


def _classes(names: str) -> tuple[type[exp.Expr], ...]:
    # A name that a release of sqlglot does not have cannot be in its trees either.
    return tuple(getattr(exp, name) for name in names.split() if hasattr(exp, name))


NODES = frozenset(_classes(_NODES))
SYNTAX_FUNCTIONS = frozenset(_classes(_SYNTAX_FUNCTIONS))


def allowed_node(node: exp.Expr) -> bool:
    """Return whether the exact class of a node is in the lists above. A subclass of a listed class
    is refused, because a new release of sqlglot may add it.
    """
    return type(node) in NODES or type(node) in SYNTAX_FUNCTIONS
