"""Whose rows the runs of a graph read, and whoever looks at its results from outside."""

from contextlib import AbstractContextManager, nullcontext

from langgraph.graph.state import CompiledStateGraph

from longtable.base.context import Context
from longtable.base.errors import ConfigError
from longtable.nodes.state import Input, State
from longtable.tools.database import Database
from longtable.tools.row_access import ReadParameters, RowSource, reading_as


def row_source(
    database: Database | None, row_parameters: ReadParameters | None
) -> RowSource | None:
    """Return where the row parameters of a graph come from, None if its database has no row
    filters. Raises `ConfigError` for a function that nothing would ask.
    """
    filters = database.policy.row_filters if database is not None else {}
    if database is None or not filters:
        if row_parameters is not None:
            raise ConfigError(
                "row_parameters has no effect: give the database a policy with row_filters"
            )
        return None
    if database.is_bound:
        if row_parameters is not None:
            raise ConfigError(
                "the database is bound to row parameters already: leave out row_parameters, or"
                " give the database as it was opened"
            )
        return RowSource(_nothing, filters, fixed=database.access)
    return RowSource(_nothing if row_parameters is None else row_parameters, filters)


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
