"""Open a database behind the tools a model calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evals.loop import RunTool, error_content
from longtable.graph.errors import DatabaseError
from longtable.tools.database import Database
from longtable.tools.toolset import database_tools


@contextmanager
def open_database(path: Path) -> Iterator[RunTool]:
    """Yield a function that runs one tool call over the database at `path` and returns (content, status)."""
    with Database.open(str(path)) as database:
        tools = {tool.name: tool for tool in database_tools(database)}

        def run(name: str, args: dict[str, Any]) -> tuple[str, str]:
            try:
                message = tools[name].invoke({"name": name, "args": args, "id": "call", "type": "tool_call"})
            except DatabaseError as error:
                return error_content(error.code, str(error)), "error"
            return str(message.content), "success"

        yield run
