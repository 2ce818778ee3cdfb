"""Measure how plainly the code of each room is written, and how large the rooms are.

`python -m benchmarks.rooms` prints the table; tests/test_plain_code.py holds the measures that may
only fall. Sizes are printed and never tested: a bound on them was met by packing code.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    "base",
    "memory",
    "store",
    "tools",
    "nodes",
    "graph",
    "app",
    "analyst",
    "checks",
    "modes",
    "knowledge",
    "evaluation",
)
LONG_STATEMENT = 12
"""Lines; a statement that is a table of data may be longer."""
LONG_FUNCTION = 50
"""Lines, without the docstring."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COMPOUND = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.Match,
)
"""Statements that hold others: their lines are counted one by one."""


@dataclass(frozen=True)
class Measures:
    """Counts of one or several files."""

    files: int = 0
    lines: int = 0
    statements: int = 0
    """Docstrings aside."""
    expressions: int = 0
    """Expression nodes, which packing does not hide."""
    tuple_assignments: int = 0
    """Several values bound to several names at once; swaps aside."""
    nested_comprehensions: int = 0
    """Comprehensions with another one, or a second `for`, inside."""
    one_item_loops: int = 0
    """`for x in [expr]`: an assignment in disguise."""
    long_statements: int = 0
    long_functions: int = 0

    def __add__(self, other: "Measures") -> "Measures":
        """Return the sums."""
        sums = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return Measures(**sums)

    def a_thousand(self, count: int) -> float:
        """Return a count for each thousand statements."""
        return 1_000 * count / max(1, self.statements)


def sources(room: str) -> list[Path]:
    """Return a room's files."""
    return sorted((ROOT / room).rglob("*.py"))


def measure(path: Path) -> Measures:
    """Measure one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    statements = [node for node in nodes if isinstance(node, ast.stmt) and not _is_docstring(node)]
    return Measures(
        files=1,
        lines=text.count("\n"),
        statements=len(statements),
        expressions=sum(isinstance(node, ast.expr) for node in nodes),
        tuple_assignments=sum(map(_is_tuple_assignment, statements)),
        nested_comprehensions=sum(map(_nested_in, nodes)),
        one_item_loops=sum(map(_is_one_item_loop, nodes)),
        long_statements=sum(map(_is_long, statements)),
        long_functions=sum(map(_is_long_function, nodes)),
    )


def room_measures(room: str) -> Measures:
    """Measure a room."""
    return sum(map(measure, sources(room)), Measures())


def fullest_folder(room: str) -> int:
    """Return the most files that a folder of a room holds, `__init__` aside."""
    folders = {path.parent for path in sources(room)}
    return max(map(files_in, folders))


def files_in(folder: Path) -> int:
    """Return how many modules a folder holds, `__init__` aside."""
    return sum(path.name != "__init__.py" for path in folder.glob("*.py"))


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_tuple_assignment(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    names = sorted(map(ast.unparse, target.elts))
    values = sorted(map(ast.unparse, node.value.elts))
    return names != values


def _nested_in(node: ast.AST) -> int:
    """Return 1 for a comprehension that holds another one or a second `for`, else 0."""
    if not isinstance(node, COMPREHENSIONS):
        return 0
    inside = [child for child in ast.walk(node) if isinstance(child, COMPREHENSIONS)]
    return int(len(inside) > 1 or len(node.generators) > 1)


def _is_one_item_loop(node: ast.AST) -> bool:
    if not isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        return False
    return isinstance(node.iter, ast.List | ast.Tuple) and len(node.iter.elts) == 1


def _is_long(node: ast.stmt) -> bool:
    if isinstance(node, (*COMPOUND, ast.Import, ast.ImportFrom)):
        return False
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    return length > LONG_STATEMENT and not _is_table(node)


def _is_table(node: ast.stmt) -> bool:
    """Return whether a statement is data: a constant, by its name in capitals, a union of types, or
    a record that is filled by keywords alone.
    """
    if _is_record(getattr(node, "value", None)):
        return True
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Name):
        return False
    return target.id.strip("_").isupper() or _is_union(node.value)


def _is_record(node: ast.AST | None) -> bool:
    if not isinstance(node, ast.Call) or node.args:
        return False
    return all(each.arg and each.value.lineno == each.value.end_lineno for each in node.keywords)


def _is_union(node: ast.AST | None) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_union(node.left) and _is_union(node.right)
    return isinstance(node, ast.Name)


def _is_long_function(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    body = node.body[1:] if _is_docstring(node.body[0]) else node.body
    if not body:
        return False
    length = (body[-1].end_lineno or 0) - body[0].lineno + 1
    return length > LONG_FUNCTION


def main() -> None:
    """Print the table of rooms."""
    heads = list(Measures().__dict__)
    print(f"| room | {' | '.join(name.replace('_', ' ') for name in heads)} | fullest folder |")
    print(f"|---|{'---:|' * (len(heads) + 1)}")
    measured = {room: room_measures(room) for room in ROOMS}
    for room, measures in measured.items():
        cells = [f"{value:,}" for value in vars(measures).values()]
        print(f"| {room} | {' | '.join(cells)} | {fullest_folder(room)} |")
    total = sum(measured.values(), Measures())
    cells = [f"{value:,}" for value in vars(total).values()]
    print(f"| all | {' | '.join(cells)} | |")


if __name__ == "__main__":
    main()
