"""Withhold the cells of the database from every model, if `Context.privacy` is "types".

Cells are removed from the tools' messages. So they cannot reach a later call either, because
ledger, summaries and recall are made from the same messages. The lists below name the fields of a
tool's answer that may stay, not the fields that must go. So a field that a tool adds later is
withheld until it is listed.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage

from longtable.base.context import Context
from longtable.base.errors import DatabaseError, LongtableError
from longtable.memory.counting.tokens import compact_json
from longtable.nodes.state import Turn
from longtable.nodes.tooling.tool_jobs import RepairsUsedUpError, answer_json
from longtable.tools.cells import without_labels
from longtable.tools.database import QueryResult

WITHHELD = "values are withheld by the user's privacy setting; the user sees every row"


HIDDEN = "the reason is withheld, for it may quote values"


_OF_RESULT = (
    "database",
    "row_count",
    "total",
    "page",
    "pages",
    "columns",
    "types",
    "column_count",
    "handle",
    "sql",
    "ms",
    "edited",
)


_SIZE = ("name", "kind", "rows", "rows_estimate", "rows_at_least", "statistics_from")


_LISTING = (
    "database",
    "dialect",
    "page",
    "pages",
    "total",
    "more",
    "more_matches",
    "incomplete",
    "searched_columns",
)


_COLUMN = (
    *(
        "table",
        "name",
        "column",
        "type",
        "nullable",
        "primary_key",
        "references",
        "inferred_reference",
    ),
    *("masked", "distinct", "nulls", "match"),
)


_SCHEMA_TOOLS = ("list_tables", "describe_tables", "find_columns")


_CHART = ("shown", "handle", "points", "spec")


_ERROR = (
    "class",
    "database",
    "problem",
    "rule",
    "line",
    "column",
    "nearest",
    "message",
    "edited",
    "repairs_left",
    "final",
)


_NAMED = ("syntax", "unknown_name", "ambiguous", "refused", "too_slow", "too_big", "unavailable")
"""Kinds of problems whose error messages are made only from the SQL, the schema and the limits.
Messages of other problems come from the engine, and may quote a cell.
"""


def is_private(turn: Turn, context: Context) -> bool:
    """Return whether cells are withheld in this turn. They are if the present run's settings or
    those with which the turn began say so.
    """
    return context.privacy == "types" or bool(turn.get("private"))


def without_cells(answer: ToolMessage, args: Mapping[str, Any]) -> ToolMessage:
    """Return a tool's answer without cells. `args`: the arguments of the call. The answer of a
    caller's own tool is not changed, unless it holds the result of a query or an error.
    """
    data = answer_json(answer)
    name = str(answer.name)
    if answer.status == "error":
        safe: dict[str, Any] = {"error": _error(data.get("error"), answer.artifact)}
    elif isinstance(answer.artifact, QueryResult) or name in ("run_sql", "fetch_result"):
        safe = {
            **_only(data, _OF_RESULT),
            "shown": 0,
            "rows": [],
            "withheld": True,
            "note": WITHHELD,
        }
    elif name in (*_SCHEMA_TOOLS, "find_values") and "databases" in data:
        parts = [_of_database(each, name, args) for each in _dicts(data["databases"])]
        safe = {"databases": parts}
    elif name in (*_SCHEMA_TOOLS, "find_values"):
        safe = _found(data, name, args)
    elif name == "show_chart":
        safe = {**_only(data, _CHART), "withheld": True, "note": WITHHELD}
    else:
        return answer
    return answer.model_copy(update={"content": compact_json(safe)})


def _of_database(data: Mapping[str, Any], name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return one database's part of the answer of a search, without cells."""
    if "error" not in data:
        return _found(data, name, args)
    error = _only(data["error"] if isinstance(data["error"], dict) else {}, _ERROR)
    if error.get("problem") not in _NAMED:
        error["message"] = f"{error.get('problem', 'it failed')}: {HIDDEN}"
    return {**_only(data, ("database",)), "error": error}


def _found(data: Mapping[str, Any], name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a tool that looks at the schema or for values, without cells."""
    found: dict[str, Any] = _only(data, _LISTING)
    if name == "find_values":
        found["matches"] = _matches(data, args)
    else:
        found["tables"] = [
            {**_only(table, _SIZE), **_columns(table)} for table in _dicts(data.get("tables"))
        ]
        if "columns" in data:
            found["columns"] = [_only(each, _COLUMN) for each in _dicts(data["columns"])]
    return {**found, "withheld": True, "note": WITHHELD}


def _columns(table: Mapping[str, Any]) -> dict[str, Any]:
    columns = [
        each if isinstance(each, str) else _only(each, _COLUMN)
        for each in table.get("columns") or ()
        if isinstance(each, str | dict)
    ]
    return (
        {"columns": columns, "sample_rows": []} if "sample_rows" in table else {"columns": columns}
    )


def _matches(data: Mapping[str, Any], args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the columns in which `find_values` found values, and how many. A value itself is
    returned only if it equals the text that was searched for, character by character.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for match in _dicts(data.get("matches")):
        searched = match.get("text", args.get("text"))
        value = (
            searched if match.get("match") == "exact" and match.get("value") == searched else None
        )
        count = match.get("count")
        counts[
            match.get("text"), match.get("table"), match.get("column"), value, match.get("match")
        ] += count if isinstance(count, int) else 0
    return [
        {
            **({} if text is None else {"text": text}),
            "table": table,
            "column": column,
            **({} if value is None else {"value": value}),
            "count": count,
            "match": kind,
        }
        for (text, table, column, kind, value), count in counts.items()
    ]


def _error(detail: object, error: object) -> dict[str, Any]:
    known = _only(detail if isinstance(detail, dict) else {}, _ERROR)
    quotes = (
        isinstance(error, DatabaseError)
        and error.problem not in _NAMED
        and error.code == "query_failed"
    )
    if quotes or not isinstance(error, LongtableError):
        known.pop("nearest", None)
        known["message"] = f"{known.get('problem', 'it failed')}: {HIDDEN}"
    if isinstance(error, RepairsUsedUpError):  # the error it repeats was not withheld yet
        known["message"] = str(RepairsUsedUpError(repairs=error.repairs, last=HIDDEN))
    return known


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _only(data: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return only the items with these names. In types of columns, the values that an enum lists
    are removed.
    """
    safe_fields = {name: data[name] for name in names if name in data}
    if isinstance(safe_fields.get("type"), str):
        safe_fields["type"] = without_labels(safe_fields["type"])
    if isinstance(safe_fields.get("types"), list):
        safe_fields["types"] = [without_labels(str(kind)) for kind in safe_fields["types"]]
    return safe_fields
