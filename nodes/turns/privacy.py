"""Keep the cells of the database from every model: of a tool's answer only types, counts and names are left.

`Context.privacy = "types"`. What a model is not shown cannot reach a later call either: ledger, summaries and recall are made of
these same messages. Lists of what may stay, not of what must go: what a tool learns to tell later is withheld until it stands here.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage

from longtable.base.context import Context
from longtable.base.errors import DatabaseError, LongtableError
from longtable.memory.tokens import compact_json
from longtable.nodes.state import turn_of
from longtable.nodes.turns.tool_jobs import RepairsUsedUpError, answer_json
from longtable.tools.cells import without_labels
from longtable.tools.database import QueryResult

NOTE = "values are withheld by the user's privacy setting; the user sees every row"
HIDDEN = "the reason is withheld, for it may quote values"

_RESULT = ("row_count", "total", "page", "pages", "columns", "types", "column_count", "handle", "sql", "ms", "edited")
_SIZE = ("name", "kind", "rows", "rows_estimate", "rows_at_least", "statistics_from")
_LISTING = ("dialect", "page", "pages", "total", "more", "more_matches", "incomplete", "searched_columns")
_COLUMN = (
    *("table", "name", "column", "type", "nullable", "primary_key", "references", "inferred_reference"),
    *("masked", "distinct", "nulls", "match"),
)
_CHART = ("shown", "handle", "points", "spec")
_ERROR = ("class", "problem", "rule", "line", "column", "nearest", "message", "edited", "repairs_left", "final")
_NAMED = ("syntax", "unknown_name", "ambiguous", "refused", "too_slow", "too_big", "unavailable")
"""Problems whose messages are made of the SQL, the schema and the limits; others come from the engine and may quote a cell."""


def is_private(state: Mapping[str, Any], context: Context) -> bool:
    """Return whether cells are withheld in this turn: as its settings say, also where it is resumed under others."""
    return context.privacy == "types" or bool(turn_of(state).get("private"))


def without_cells(answer: ToolMessage, args: Mapping[str, Any]) -> ToolMessage:
    """Return a tool's answer without cells; `args` are the call's. A tool of the caller's own says what it says, unless it ran a query."""
    if answer.status == "error":
        return _with(answer, {"error": _error(answer_json(answer).get("error"), answer.artifact)})
    if isinstance(answer.artifact, QueryResult) or answer.name in ("run_sql", "fetch_result"):
        return _with(answer, {**_only(answer_json(answer), _RESULT), "shown": 0, "rows": [], "withheld": True, "note": NOTE})
    made = _MADE.get(str(answer.name))
    return answer if made is None else _with(answer, {**made(answer_json(answer), args), "withheld": True, "note": NOTE})


def _listed(told: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    del args
    tables = [{**_only(table, _SIZE), **_columns(table)} for table in _dicts(told.get("tables"))]
    columns = {"columns": [_only(each, _COLUMN) for each in _dicts(told["columns"])]} if "columns" in told else {}
    return {**_only(told, _LISTING), "tables": tables, **columns}


def _columns(table: Mapping[str, Any]) -> dict[str, Any]:
    found = table.get("columns")
    columns = [each if isinstance(each, str) else _only(each, _COLUMN) for each in found or () if isinstance(each, str | dict)]
    return {"columns": columns, "sample_rows": []} if "sample_rows" in table else {"columns": columns}


def _found(told: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return where values stand, and how many; the value itself only where it is, word for word, what was asked for."""
    counts: dict[tuple[Any, ...], int] = {}
    for match in _dicts(told.get("matches")):
        asked = match.get("text", args.get("text"))
        exact = match.get("match") == "exact" and match.get("value") == asked
        key = (match.get("table"), match.get("column"), match.get("match"), asked if exact else None, match.get("text"))
        count = match.get("count")
        counts[key] = counts.get(key, 0) + (count if isinstance(count, int) else 0)
    matches = [
        {
            **({"text": text} if text is not None else {}),
            "table": table,
            "column": column,
            **({"value": value} if value is not None else {}),
            "count": count,
            "match": kind,
        }
        for (table, column, kind, value, text), count in counts.items()
    ]
    return {**_only(told, _LISTING), "matches": matches}


def _drawn(told: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    del args
    return _only(told, _CHART)


_MADE = {"list_tables": _listed, "describe_tables": _listed, "find_columns": _listed, "find_values": _found, "show_chart": _drawn}


def _error(told: object, error: object) -> dict[str, Any]:
    known = _only(told if isinstance(told, dict) else {}, _ERROR)
    quotes = isinstance(error, DatabaseError) and error.problem not in _NAMED and error.code == "query_failed"
    if quotes or not isinstance(error, LongtableError):
        known = {name: value for name, value in known.items() if name not in ("nearest", "message")}
        known["message"] = f"{known.get('problem', 'it failed')}: {HIDDEN}"
    if isinstance(error, RepairsUsedUpError):  # the error it repeats was not withheld yet
        known["message"] = str(RepairsUsedUpError(repairs=error.repairs, last=HIDDEN))
    return known


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _only(told: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: _bare(name, told[name]) for name in names if name in told}


def _bare(name: str, value: Any) -> Any:
    """Take the values that an enum lists out of types."""
    if name == "type" and isinstance(value, str):
        return without_labels(value)
    return [without_labels(str(kind)) for kind in value] if name == "types" and isinstance(value, list) else value


def _with(answer: ToolMessage, told: Mapping[str, Any]) -> ToolMessage:
    return answer.model_copy(update={"content": compact_json(told)})
