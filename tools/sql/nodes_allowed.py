"""The kinds of syntax node a query may be made of. What is not named here is refused."""

from sqlglot import exp

QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
"""What a statement may be at its top."""

_NODES = """
Add Adjacent Alias Aliases All Any AtTimeZone Between BitString BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift
BitwiseXor Boolean Bracket ByteString CTE Column ColumnDef Comprehension Cube DPipe DataType DataTypeParam Distinct Div Dot EQ Escape
Except ExtendsLeft ExtendsRight Fetch Filter From GT GTE Glob Group GroupingSets Having HavingMax HexString ILike Identifier IgnoreNulls
In IntDiv Intersect Interval IntervalSpan Is JSON JSONExtractQuote JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathRecursive
JSONPathRoot JSONPathScript JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard Join Kwarg LT LTE Lambda
Lateral Like Limit LimitOptions Literal Match Mod Mul NEQ National Neg Not Null NullSafeEQ NullSafeNEQ Offset Operator Order Ordered
Overlaps Paren Pivot PivotAlias PivotAny PropertyEQ Pseudocolumn Qualify RawString RespectNulls Rollup Select SimilarTo
Slice Star Sub Subquery TableAlias TableColumn TableSample Tuple UnicodeString Union UnpivotColumns Values Var Where Window WindowSpec
With WithinGroup
"""

# Written by an operator or a keyword, so that there is no function name in the text. All compute from their arguments alone.
_SYNTAX_FUNCTIONS = """
All And Array ArrayContainedBy ArrayContainsAll ArrayOverlaps ArrayConcat Case Cast Ceil Chr Coalesce Collate Columns Concat CurrentDate
CurrentTime CurrentTimestamp Distance Exists Extract Floor GroupConcat If JSONArrayAgg JSONBContains JSONBContainsAllTopKeys
JSONBContainsAnyTopKeys JSONBContainsTopKey JSONBDeleteAtPath JSONBExtract JSONBExtractScalar JSONBPathExists JSONExtract
JSONExtractScalar JSONArray JSONObject List Localtime Localtimestamp Map MatchAgainst Or Pow RegexpILike RegexpLike Right Left StartsWith
StrPosition Struct Substring ToMap Trim Try TryCast TsOrDsToDate TsOrDsToTimestamp Unnest Xor
"""


def _classes(names: str) -> tuple[type[exp.Expr], ...]:
    # A name that a release of sqlglot does not have cannot be in its trees either.
    return tuple(getattr(exp, name) for name in names.split() if hasattr(exp, name))


# Their value does not come from their child nodes.
_NAMES_NOT_FROM_CHILDREN = "Columns Pivot PivotAny Pseudocolumn Star TableColumn Unpivot UnpivotColumns"

NODES = frozenset(_classes(_NODES))
SYNTAX_FUNCTIONS = _classes(_SYNTAX_FUNCTIONS)
NOT_FROM_CHILDREN = frozenset(_classes(_NAMES_NOT_FROM_CHILDREN))


def depends_on_children(node: exp.Expr) -> bool:
    """Return whether a node's value depends on its child nodes alone; False for unknown kinds."""
    return (type(node) in NODES or isinstance(node, exp.Func)) and type(node) not in NOT_FROM_CHILDREN


def allowed_node(node: exp.Expr) -> bool:
    """Say whether this very class is named above: a subclass that a new release brings is not."""
    return type(node) in NODES or type(node) in SYNTAX_FUNCTIONS
