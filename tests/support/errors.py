"""Every class of error, each with texts that nobody outside may read."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from longtable.base.errors import LongtableError, RunFailedError

KEY, TOKEN = "sk-proj-" + "Ab3dE6gH9" * 4, "ghp_" + "x1Y2z3" * 6
URL = "postgresql://ann:hunter2secret@db.internal:5432/shop"
PEM = "BEGIN RSA " + "PRIVATE KEY"  # in two: no file of the repository holds what looks like a key
SQL = "SELECT salary FROM staff_of_another_owner"
STACK = 'Traceback (most recent call last):\n  File "/srv/app/inside.py", line 3, in work'
SECRETS = (KEY, TOKEN, "hunter2secret", "pa55word99", "c0okie-bearer-77", "AKIAABCDEFGHIJKLMNOP")
HOSTILE = (
    f"{KEY} {TOKEN} {URL} password=pa55word99 Authorization: Bearer c0okie-bearer-77"
    f" AKIAABCDEFGHIJKLMNOP {SQL} {STACK}"
)
INSIDE = (*SECRETS, SQL, "Traceback", "inside.py", "db.internal")
ROOT = Path(__file__).parents[2]
ROOMS = ("analyst", "app", "graph", "memory", "nodes", "tools")


def _family(cls: type[LongtableError]) -> Iterator[type[LongtableError]]:
    yield cls
    for each in cls.__subclasses__():
        yield from _family(each)


def _classes() -> list[type[LongtableError]]:
    """Return every public class of error in the package, by name. No module without one is
    imported: it may need an extra.
    """
    ours_alone = re.compile(r"^class [A-Z]\w*Error\((?!Exception\b)", re.MULTILINE)
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        if ours_alone.search(path.read_text(encoding="utf-8")):
            import_module(".".join(("longtable", *path.relative_to(ROOT).with_suffix("").parts)))
    ours = {
        each
        for each in _family(LongtableError)
        if each.__module__.startswith("longtable.")
        and not issubclass(each, RunFailedError)
        and not each.__name__.startswith("_")
    }
    return sorted(ours, key=lambda cls: cls.__name__)


CLASSES = _classes()


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
        if (
            parameter.kind is parameter.VAR_POSITIONAL
            or parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            first.append(value)
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            given[parameter.name] = value
    return cls(*first, **given)
