"""Names of databases: which texts may be names, and when two names are the same."""

import re
import unicodedata
from collections.abc import Iterable

from longtable.base.errors import ConfigError

_NAME = re.compile(r"[^\W\d]\w{0,63}")


def folded(name: str) -> str:
    """Return a name in the form in which names of databases are compared."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


def check_names(names: Iterable[str]) -> None:
    """Raise `ConfigError` unless the names can name databases, each a different one."""
    by_form: dict[str, str] = {}
    for name in names:
        if (
            not isinstance(name, str)
            or not _NAME.fullmatch(name)
            or unicodedata.normalize("NFKC", name) != name
        ):
            raise ConfigError(
                f"the name of a database must be a word of letters, digits and underscores that"
                f" begins with a letter, at most 64 characters, as in shop, found {name!r:.60}"
            )
        other = by_form.setdefault(folded(name), name)
        if other != name:
            raise ConfigError(
                f"two databases have one name: {other!r} and {name!r}: names must differ in more"
                " than case"
            )
    if not by_form:
        raise ConfigError("no database was given: give at least one, or None for no database")
