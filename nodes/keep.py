"""Keep what a query gave in the result store; a store that fails costs the handle, never the query."""

from dataclasses import dataclass

from langchain_core.messages import ToolMessage

from longtable.base.errors import LongtableError
from longtable.base.redaction import redacted
from longtable.tools.database import QueryResult
from longtable.tools.query_tools import with_handle
from longtable.tools.result_tool import ThreadResults


@dataclass(frozen=True)
class Kept:
    """A query's answer, the handle of its whole result, and why it has none where keeping failed."""

    answer: ToolMessage
    handle: str = ""
    failure: str = ""


def keep(answer: ToolMessage, results: ThreadResults | None) -> Kept:
    """Put the result of a query away and tell the model its handle. Blocking: call it from a worker thread."""
    if results is None or not isinstance(answer.artifact, QueryResult):
        return Kept(answer)
    try:
        handle = results.put(answer.artifact)
        return Kept(answer.model_copy(update={"content": with_handle(answer.text, handle)}), handle)
    except LongtableError as error:
        return Kept(answer, failure=str(error))
    except Exception as error:  # a full disk, a value that Parquet has no form for: the rows are here all the same
        return Kept(answer, failure=f"{type(error).__name__}: {redacted(' '.join(str(error).split()))[:200]}")
