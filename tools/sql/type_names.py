"""Check the types and qualified calls of a query, in dialects that let a database define its own. A
type is refused if reading or writing its values may run code.
"""

from sqlglot import Token, TokenType, exp

from longtable.tools.catalog import Catalog, fold
from longtable.tools.sql.parsing import RefusedError, line_and_column, written

EXTENSION_TYPES = frozenset(
    {
        "citext",
        "cube",
        "geography",
        "geometry",
        "halfvec",
        "hstore",
        "isbn",
        "ltree",
        "lquery",
        "sparsevec",
        "vector",
    }
)

BUILT_IN_TYPES = frozenset({
    "bit", "box", "bpchar", "char", "cidr", "circle", "jsonpath", "line", "lseg", "macaddr", "macaddr8", "name", "path", "pg_lsn",
    "point", "polygon", "timetz", "tsquery", "tsvector", "varbit",
})  # fmt: skip
"""Built-in types that sqlglot does not know. None of them names a table or another object of the
database.
"""


def check_own_types(node: exp.Expr, catalog: Catalog, dialect: str) -> None:
    """Raise `RefusedError` if the node names a type, function or operator that somebody defined in
    the database and that is not allowed.
    """
    if isinstance(node, exp.DataType):
        _check_type(node, catalog, dialect)
    elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        # `schema.function(...)` may be a function of anybody's with an innocent name.
        if fold(node.this.name) != "pg_catalog" or isinstance(node.this, exp.Dot):
            what = f"the function {node.expression.name or 'named with a schema'!r}"
            raise RefusedError(
                "function", f"{what} is not allowed", "leave the schema out", node=node
            )
    elif isinstance(node, exp.Operator):
        operator = str(node.args.get("operator"))
        if "." in operator and not fold(operator).startswith("pg_catalog."):
            what = f"the operator {operator!r}"
            raise RefusedError(
                "function", f"{what} is not allowed", "leave the schema out", node=node
            )
    elif isinstance(node, exp.Column | exp.Dot):
        _check_attribute(node, catalog)


def check_tokens(sql: str, tokens: list[Token], *, distance: bool) -> None:
    """Refuse tokens that sqlglot reads differently from the server. Raises `RefusedError`.

    sqlglot reads `1_000` as `1 AS _000`, and `0x1F` as a bit string. With `distance`, `<=>` is
    refused, which sqlglot always takes for a comparison.
    """
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        text = sql[token.start : token.end + 1].lower()
        glued = (
            after is not None
            and after.start == token.end + 1
            and (after.text[:1].isalpha() or after.text[:1] == "_")
        )
        if (token.token_type == TokenType.NUMBER and glued) or text.startswith(("0x", "0b", "0o")):
            place = line_and_column(sql, token.start)
            reason = f"the number at {text[:20]!r} can be read in two ways"
            raise RefusedError("syntax", reason, "write it in plain digits", place=place)
        if distance and text == "<=>":
            place = line_and_column(sql, token.start)
            raise RefusedError(
                "syntax",
                "the operator '<=>' can be read in two ways",
                "write cosine_distance(a, b)",
                place=place,
            )


def _check_type(node: exp.DataType, catalog: Catalog, dialect: str) -> None:
    """Allow only built-in types, enums, domains, and types of known extensions. Raises
    `RefusedError` for any other type, because a cast to the row type of a table would reveal the
    columns of this table.
    """
    if node.this != exp.DataType.Type.USERDEFINED:
        return
    kind = node.args.get("kind")
    name = (
        kind
        if isinstance(kind, str)
        else written(kind, dialect)
        if isinstance(kind, exp.Expr)
        else ""
    ).replace('"', "")
    plain = fold(name).removeprefix("pg_catalog.").removesuffix("[]")
    if (
        name in catalog.own_types
        or plain in catalog.own_types
        or plain in EXTENSION_TYPES
        or plain in BUILT_IN_TYPES
    ):
        return
    raise RefusedError(
        "type",
        f"the type {name!r} is not allowed",
        "cast to a built-in type, an enum or a domain",
        node=node,
    )


def _check_attribute(node: exp.Column | exp.Dot, catalog: Catalog) -> None:
    """Refuse a column name that calls a hidden function: if `people` has no column `pay`, then
    `people.pay` calls the function `pay(people)`. Raises `RefusedError`.
    """
    name = fold(node.expression.name if isinstance(node, exp.Dot) else node.name)
    qualified = isinstance(node, exp.Dot) or bool(node.table)
    if qualified and name in catalog.hidden_functions and not catalog.has_column(name):
        raise RefusedError(
            "function", f"the function {name!r} is not allowed", "use another function", node=node
        )
