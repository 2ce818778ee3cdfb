"""Find what a masked value reaches in a query: an expression's value, or the rows of a query inside."""

from sqlglot import exp

from longtable.tools.catalog import fold
from longtable.tools.sql.masks import goes_by
from longtable.tools.sql.nodes_allowed import depends_on_children


def touches(node: object, names: set[str], sources: set[str]) -> bool:
    """Return whether the value of an expression may come of a masked column; what is counted does not come through."""
    if not isinstance(node, exp.Expr) or isinstance(node, exp.Count):
        return False
    if not depends_on_children(node):
        return True
    if isinstance(node, exp.Identifier | exp.Literal | exp.Var) and goes_by(node.name, names):
        return True
    if isinstance(node, exp.Column) and (isinstance(node.this, exp.Star) or fold(node.name) in sources):
        return True
    return any(touches(child, names, sources) for child in node.iter_expressions())


def reaches(node: exp.Expr, names: set[str], sources: set[str]) -> bool:
    """Like `touches`, but of a subquery check only the selected columns; its conditions are checked separately."""
    if isinstance(node, exp.Select):
        return not isinstance(node.parent, exp.Exists) and any(reaches(item, names, sources) for item in node.expressions)
    if isinstance(node, exp.SetOperation):
        return any(reaches(part, names, sources) for part in (node.this, node.expression))
    if any(isinstance(child, exp.Select | exp.SetOperation | exp.Subquery) for child in node.iter_expressions()):
        return any(reaches(child, names, sources) for child in node.iter_expressions())
    if isinstance(node, exp.Count) or not list(node.iter_expressions()):
        return touches(node, names, sources)
    if isinstance(node, exp.Column):
        return touches(node, names, sources)
    return any(reaches(child, names, sources) for child in node.iter_expressions())


def is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
