"""Read the messages of one model call: turns, tool results, earlier findings. Nothing is remembered between calls."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.app.offline.card import card_in
from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.chunks import Match
from longtable.app.offline.text import is_chinese
from longtable.memory.ledger import LedgerLine
from longtable.memory.ledger_view import ledger_in
from longtable.memory.summary import Finding, findings_in

_MEMORY = "<memory>"
MOST_CHARACTERS = 600
"""Of a question, a Chinese one half as many: rules over text take long over long texts, and nobody asks for one thing in so many words."""
_RUN = re.compile(r"([^\w\s])\1{3,}|(\s)\s{3,}")
_LOOSE = ("plural", "typo")
"""Matches that are a guess at what was meant: rules do not lean on them."""


@dataclass(frozen=True)
class ToolResult:
    """One tool call with its answer. `data` is None when the answer failed, was cut or is missing."""

    name: str
    args: dict[str, Any]
    data: dict[str, Any] | None
    error: str = ""
    error_class: str = ""
    text: str = ""

    @property
    def cut(self) -> bool:
        """Say whether the answer was there but can no longer be read."""
        return self.data is None and not self.error


@dataclass(frozen=True)
class Turn:
    """One question with the rounds of tool results so far and the answer, empty while it is being made."""

    question: str
    results: tuple[ToolResult, ...] = ()
    answer: str = ""
    calls: int = 0

    def of(self, name: str) -> tuple[ToolResult, ...]:
        """Return the results of one tool, in order."""
        return tuple(result for result in self.results if result.name == name)


@dataclass(frozen=True)
class View:
    """What one model call was sent."""

    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...] = ()
    queries: tuple[LedgerLine, ...] = ()
    """Folded queries that ran, oldest first, as the memory's ledger has them."""
    folded: bool = False
    card: Catalog | None = None
    """What the schema's card tells, once something is folded: before that the tools' own answers are there."""

    @property
    def now(self) -> Turn:
        """Return the turn that waits for an answer."""
        return self.turns[-1]

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Return every tool result in the view, in order."""
        return tuple(result for turn in self.turns for result in turn.results)


@dataclass
class _Open:
    question: str
    results: list[ToolResult] = field(default_factory=list)
    answer: str = ""
    calls: int = 0

    def close(self) -> Turn:
        return Turn(self.question, tuple(self.results), self.answer, self.calls)


def read_view(messages: Sequence[BaseMessage]) -> View:
    """Return the turns of `messages`; text that stands in a memory block is read as findings, never as a question."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    turns: list[_Open] = []
    memory: list[str] = []
    for message in messages:
        text = str(message.text)
        if isinstance(message, SystemMessage) or text.lstrip().startswith(_MEMORY):
            memory.append(text)
        elif isinstance(message, HumanMessage):
            turns.append(_Open(_bounded(text)))
        elif isinstance(message, AIMessage) and turns:
            if message.tool_calls:
                turns[-1].calls += 1
                turns[-1].results += [_result(call["name"], call["args"], answers.get(call["id"] or "")) for call in message.tool_calls]
            elif text.strip():
                turns[-1].answer = text.strip()
    joined = "\n".join(memory)
    closed = tuple(turn.close() for turn in turns) or (Turn(""),)
    folded = _MEMORY in joined
    card = card_in(joined.partition(_MEMORY)[0]) if folded else None
    return View(closed, findings=tuple(findings_in(joined)), queries=tuple(ledger_in(joined)), folded=folded, card=card)


def is_too_long(question: str) -> bool:
    """Say whether a question has more characters than are read."""
    return len(question) > MOST_CHARACTERS // (2 if is_chinese(question) else 1)


def _bounded(question: str) -> str:
    """Return a question with long runs of one mark or of blanks cut short, and one character over the most that is read."""
    return _RUN.sub(lambda run: run[1] * 3 if run[1] else run[2], question.strip())[: MOST_CHARACTERS + 1]


def _result(name: str, args: dict[str, Any], answer: ToolMessage | None) -> ToolResult:
    if answer is None:
        return ToolResult(name, args, None)
    text = str(answer.text)
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return ToolResult(name, args, None, error=text[:300] if answer.status == "error" else "", text=text)
    if answer.status == "error" or "error" in data:
        raw = data.get("error")
        found: dict[str, Any] = raw if isinstance(raw, dict) else {"message": str(raw or text)}
        return ToolResult(name, args, None, str(found.get("message", "")) or "failed", str(found.get("class", "")), text)
    return ToolResult(name, args, data, text=text)


# -- what the results say ---------------------------------------------------------------------------------------------


def catalog_in(view: View) -> Catalog | None:
    """Return what list_tables and describe_tables told in this view; else what the card tells; None without either."""
    dialect, pages, total = "", 1, 0
    tables: dict[str, Table] = {}
    for result in view.results:
        if result.data is None:
            continue
        if result.name == "list_tables" and isinstance(result.data.get("tables"), list):
            dialect = str(result.data.get("dialect") or dialect)
            if not result.args.get("search"):
                pages, total = int(result.data.get("pages") or 1), int(result.data.get("total") or 0)
            for raw in result.data["tables"]:
                tables.setdefault(str(raw["name"]).casefold(), _listed(raw))
        elif result.name == "describe_tables" and isinstance(result.data.get("tables"), list):
            for raw in result.data["tables"]:
                tables[str(raw["name"]).casefold()] = _described(raw)
    if not dialect and view.card is not None:
        return replace(view.card, tables={**view.card.tables, **tables}, carded=view.card.carded - set(tables))
    if not dialect:
        return None
    return Catalog(dialect, tables, pages, total or len(tables))


def _listed(raw: dict[str, Any]) -> Table:
    name = str(raw["name"])
    columns = tuple(Column(name, str(column)) for column in raw.get("columns", ()))
    return Table(name, str(raw.get("kind", "table")), _rows(raw), columns, comment=str(raw.get("comment") or ""))


def _rows(raw: dict[str, Any]) -> int | None:
    rows = raw.get("rows", raw.get("rows_at_least"))
    return int(rows) if isinstance(rows, (int, float)) else None


def _described(raw: dict[str, Any]) -> Table:
    name = str(raw["name"])
    samples = [row for row in raw.get("sample_rows") or () if isinstance(row, list)]
    columns = tuple(
        Column(
            name,
            str(column["name"]),
            str(column.get("type") or ""),
            bool(column.get("primary_key")),
            str(column.get("references") or ""),
            str(column.get("comment") or ""),
            tuple(row[place] for row in samples if place < len(row)),
            str(column.get("inferred_reference") or ""),
        )
        for place, column in enumerate(raw.get("columns", ()))
    )
    return Table(name, str(raw.get("kind", "table")), _rows(raw), columns, described=True, comment=str(raw.get("comment") or ""))


def values_in(view: View) -> dict[str, tuple[Match, ...]]:
    """Return what find_values found, by the text asked for; a text without matches maps to nothing."""
    found: dict[str, tuple[Match, ...]] = {}
    for result in view.results:
        if result.name != "find_values" or result.cut:
            continue
        text = str(result.args.get("text", "")).lower()
        raw = result.data.get("matches", ()) if result.data else ()
        matches = tuple(
            Match(str(m["table"]), str(m["column"]), m["value"], str(m.get("match", "exact")), int(m.get("count") or 0))
            for m in raw
            if "value" in m and m.get("match") not in _LOOSE  # it is withheld under `Context.privacy`
        )
        found[text] = tuple(dict.fromkeys((*found.get(text, ()), *matches)))
    return found


def last_sql(view: View) -> str:
    """Return the SQL of the newest query that ran before the question now open; "" if none is known."""
    for turn in reversed(view.turns[:-1]):
        for result in reversed(turn.of("run_sql")):
            if not result.error and isinstance(sql := result.args.get("sql"), str):
                return sql
    return view.queries[-1].sql if view.queries else ""
