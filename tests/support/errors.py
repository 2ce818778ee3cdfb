"""Every class of error, each with texts that nobody outside may read."""

import inspect
from typing import Any

from longtable.app import web_threads
from longtable.graph import errors
from longtable.graph.errors import LongtableError
from longtable.nodes import repairs, run_tools
from longtable.tools import chart_fields, result_meta, result_tool
from longtable.tools.engines import base

KEY, TOKEN = "sk-proj-" + "Ab3dE6gH9" * 4, "ghp_" + "x1Y2z3" * 6
URL = "postgresql://ann:hunter2secret@db.internal:5432/shop"
PEM = "BEGIN RSA " + "PRIVATE KEY"  # in two: no file of the repository holds what looks like a key
SQL = "SELECT salary FROM staff_of_another_owner"
STACK = 'Traceback (most recent call last):\n  File "/srv/app/inside.py", line 3, in work'
SECRETS = (KEY, TOKEN, "hunter2secret", "pa55word99", "c0okie-bearer-77", "AKIAABCDEFGHIJKLMNOP")
HOSTILE = f"{KEY} {TOKEN} {URL} password=pa55word99 Authorization: Bearer c0okie-bearer-77 AKIAABCDEFGHIJKLMNOP {SQL} {STACK}"
INSIDE = (*SECRETS, SQL, "Traceback", "inside.py", "db.internal")
OURS = (base, errors, repairs, run_tools, chart_fields, result_meta, result_tool, web_threads)
"""Where errors of ours stand."""
CLASSES = sorted(
    {cls for module in OURS for cls in vars(module).values() if inspect.isclass(cls) and issubclass(cls, LongtableError)},
    key=lambda cls: cls.__name__,
)


def made(cls: type[LongtableError]) -> LongtableError:
    """Return an error of a class, every text in it hostile."""
    signature = inspect.signature(cls)
    given: dict[str, Any] = {}
    first: list[Any] = []
    for parameter in signature.parameters.values():
        kind = str(parameter.annotation)
        value: Any = HOSTILE
        if "list[tuple" in kind:
            value = [(1, 2)]
        elif "int" in kind or "float" in kind:
            value = 7
        elif "bool" in kind:
            value = False
        if parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            first.append(value)
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            given[parameter.name] = value
    return cls(*first, **given)
