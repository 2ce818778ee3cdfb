"""Whose rows the runs of a graph read, and whoever looks at its results from outside."""

from contextlib import AbstractContextManager, nullcontext

from langgraph.graph.state import CompiledStateGraph

from longtable.base.context import Context
from longtable.base.errors import ConfigError
from longtable.nodes.state import Input, State
from longtable.tools.row_access import JoinedAccess, ReadParameters, RowSource, reading_as
from longtable.tools.several.databases import Databases


def row_source(
    databases: Databases | None, row_parameters: ReadParameters | None
) -> RowSource | None:
    """Return where the row parameters of a graph come from, None if its databases have no row
    filters. Raises `ConfigError` for a function that nothing would ask.
    """
    filtered = [each for each in (databases or {}).values() if each.policy.row_filters]
    if not filtered:
        if row_parameters is not None:
            raise ConfigError(
                "row_parameters has no effect: give the database a policy with row_filters"
            )
        return None
    filters = [each.policy.row_filters for each in filtered]
    accesses = [each.access for each in filtered if each.is_bound]
    if accesses:
        if row_parameters is not None:
            raise ConfigError(
                "the database is bound to row parameters already: leave out row_parameters, or"
                " give the database as it was opened"
            )
        if len(accesses) < len(filtered):
            raise ConfigError(
                "some databases with row_filters are bound to row parameters and others are not:"
                " bind all of them, or give all as they were opened"
            )
        bound = list(filter(None, accesses))
        fixed = bound[0] if len(bound) == 1 else JoinedAccess(bound)
        return RowSource(_nothing, filters[0], fixed=fixed)
    read = _nothing if row_parameters is None else row_parameters
    return RowSource(read, filters[0], others=filters[1:])


def _nothing(_: str | None) -> dict[str, object]:
    return {}


def reading_for(
    graph: CompiledStateGraph[State, Context, Input, State], owner: str | None
) -> AbstractContextManager[None]:
    """Bind all queries and stored results within the block to the rows of an owner, as in a run of
    the graph. The owner must come from the program or a server's authentication.
    """
    source = getattr(graph.builder, "rows", None)
    if not isinstance(source, RowSource):
        return nullcontext()  # whoever calls may have named an access already
    return reading_as(source.access(owner))
