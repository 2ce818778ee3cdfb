"""Row parameters from the settings file: a function of the operator's, or a table by owner."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from longtable.app.settings.run_settings import Settings, running_settings
from longtable.base.errors import ConfigError, RowParameterError

if TYPE_CHECKING:
    from longtable.tools.database import Database
    from longtable.tools.row_access import ReadParameters, RowSource


def row_function(settings: Settings) -> "ReadParameters | None":
    """Return the function that returns the row parameters of an owner, None if the settings name
    no parameters. A run without an owner is that of `owner` in the settings.

    Raises `ConfigError` for a function that cannot be imported.
    """
    table = settings.row_parameters
    if not table.function and not table.owners:
        return None
    own = _imported(table.function) if table.function else None

    def read(owner: str | None) -> Mapping[str, object]:
        who = owner if owner is not None else table.owner
        if own is not None:
            values = own(who)
            if not isinstance(values, Mapping):
                raise RowParameterError(
                    f"{table.function} must return a mapping of row parameters, found"
                    f" {type(values).__name__}"
                )
            return values
        return table.owners.get(who, {}) if who is not None else {}

    return read


def _imported(name: str) -> "ReadParameters":
    module, _, function = name.partition(":")
    try:
        found: ReadParameters = getattr(import_module(module), function)
    except Exception as error:  # whatever the operator's module raises
        raise ConfigError(
            f"row_parameters.function {name!r} cannot be imported ({type(error).__name__}): write"
            " module:function, of a module that Python finds"
        ) from error
    if not callable(found):
        raise ConfigError(f"row_parameters.function {name!r} is no function")
    return found


def seen_by_owner(database: "Database", settings: Settings) -> "Database":
    """Return a database as the owner in the settings sees it, for programs that ask it without a
    graph of their own. Raises `RowParameterError` for parameters that are no values.
    """
    read = row_function(settings)
    if read is None or not database.policy.row_filters:
        return database
    return database.bound(read(None))


def row_source_of(settings: Settings) -> "RowSource | None":
    """Return where row parameters come from, None if the policy has no row filters. It is for
    results that are read without a graph. Raises the errors of `row_function` and `load_policy`.
    """
    from longtable.tools.row_access import RowSource
    from longtable.tools.sql.table_policy import load_policy

    files = [settings.policy.file, *(each.policy for each in settings.databases.values())]
    policies = [load_policy(Path(file)) for file in files if file]
    filters = [policy.row_filters for policy in policies if policy.row_filters]
    if not filters:
        return None
    return RowSource(row_function(settings) or (lambda _: {}), filters[0], others=filters[1:])


@cache
def server_rows() -> "RowSource | None":
    """Return where the row parameters of this server come from."""
    return row_source_of(running_settings())
