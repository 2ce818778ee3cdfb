"""Read the messages of one model call, and decide what to do next: call tools, or answer. Nothing is remembered between calls."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.analyst import costs, talk
from longtable.analyst.follow import Reading, goes_on, read_question
from longtable.analyst.links import Match, name_meanings, texts_to_look_up
from longtable.analyst.query import Query, read_sql, write_sql
from longtable.analyst.schema import Catalog, read_catalog
from longtable.analyst.words import Token, is_chinese, tokenize, vocabulary
from longtable.memory.ledger import LedgerLine, ledger_in
from longtable.memory.summary import Finding, findings_in

MOST_CHARACTERS = 600
"""Of a question that is read; of a Chinese one half as many."""
MOST_ROUNDS = 9
"""Rounds of tool calls in one turn before giving up; the graph allows 12 model calls."""
MOST_TEXTS = 8
"""Texts of one question that are looked up."""
MOST_MATCHES = 10
"""Values asked for each text."""
_DESCRIBE_ALL = 12
_DESCRIBE_AT_ONCE = 20
_PEEK = 100
_MEMORY = "<memory>"
_RUN = re.compile(r"([^\w\s])\1{3,}|(\s)\s{3,}")


@dataclass(frozen=True)
class ToolResult:
    """One tool call with its answer; `data` is None when the answer failed, was cut or is missing."""

    name: str
    args: dict[str, Any]
    data: dict[str, Any] | None
    error: str = ""
    error_class: str = ""
    text: str = ""

    @property
    def cut(self) -> bool:
        """Return whether the answer was there but can no longer be read."""
        return self.data is None and not self.error


@dataclass
class Turn:
    """One question with its tool results so far and the answer, empty while it is being made."""

    question: str
    results: list[ToolResult] = field(default_factory=list)
    answer: str = ""
    calls: int = 0

    def of(self, name: str) -> list[ToolResult]:
        """Return the results of one tool, in order."""
        return [result for result in self.results if result.name == name]


@dataclass(frozen=True)
class View:
    """What one model call was sent."""

    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...] = ()
    queries: tuple[LedgerLine, ...] = ()
    """Folded queries that ran, oldest first."""
    folded: bool = False
    card: str = ""
    """The system prompt up to the memory, once something is folded: before that the tools' own answers are there."""

    @property
    def now(self) -> Turn:
        """Return the turn that waits for an answer."""
        return self.turns[-1]

    @property
    def results(self) -> list[ToolResult]:
        """Return every tool result, in order."""
        return [result for turn in self.turns for result in turn.results]


@dataclass(frozen=True)
class Call:
    """One tool call to make."""

    name: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Decision:
    """What one model call says: tool calls, or the text of the answer."""

    calls: tuple[Call, ...] = ()
    text: str = ""


# -- reading the messages -----------------------------------------------------------------------------------------------


def read_view(messages: Sequence[BaseMessage]) -> View:
    """Return the turns of `messages`; text in a memory block is read as findings, never as a question."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    turns: list[Turn] = []
    memory: list[str] = []
    for message in messages:
        text = str(message.text)
        if isinstance(message, SystemMessage) or text.lstrip().startswith(_MEMORY):
            memory.append(text)
        elif isinstance(message, HumanMessage):
            turns.append(Turn(_RUN.sub(lambda run: run[1] * 3 if run[1] else run[2], text.strip())[: MOST_CHARACTERS + 1]))
        elif isinstance(message, AIMessage) and turns:
            if message.tool_calls:
                turns[-1].calls += 1
                turns[-1].results += [_result(call["name"], call["args"], answers.get(call["id"] or "")) for call in message.tool_calls]
            elif text.strip():
                turns[-1].answer = text.strip()
    joined = "\n".join(memory)
    folded = _MEMORY in joined
    card = joined.partition(_MEMORY)[0] if folded else ""
    return View(tuple(turns) or (Turn(""),), tuple(findings_in(joined)), tuple(ledger_in(joined)), folded, card)


def _result(name: str, args: dict[str, Any], answer: ToolMessage | None) -> ToolResult:
    if answer is None:
        return ToolResult(name, args, None)
    text = str(answer.text)
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return ToolResult(name, args, None, text[:300] if answer.status == "error" else "", text=text)
    if answer.status == "error" or "error" in data:
        raw = data.get("error")
        found: dict[str, Any] = raw if isinstance(raw, dict) else {"message": str(raw or text)}
        return ToolResult(name, args, None, str(found.get("message", "")) or "failed", str(found.get("class", "")), text)
    return ToolResult(name, args, data, text=text)


def catalog_in(view: View) -> Catalog | None:
    """Return what list_tables and describe_tables told in this view, else what the schema's card tells; None without either."""
    answers: list[tuple[str, str]] = []
    for result in view.results:
        if result.data is not None and isinstance(result.data.get("tables"), list):
            if result.name == "list_tables":
                answers.append(("search" if result.args.get("search") else "list", result.text))
            elif result.name == "describe_tables":
                answers.append(("describe", result.text))
    return read_catalog(tuple(dict.fromkeys(answers)), view.card)


def values_in(view: View) -> dict[str, tuple[Match, ...]]:
    """Return what find_values found, by the text asked for; a text without matches maps to nothing."""
    found: dict[str, tuple[Match, ...]] = {}
    for result in view.results:
        if result.name != "find_values" or result.data is None:
            continue
        asked = result.args.get("text", "")
        texts = [str(text).lower() for text in (asked if isinstance(asked, list) else [asked])]
        found |= {text: found.get(text, ()) for text in texts}
        for raw in result.data.get("matches", ()):
            text = str(raw.get("text", texts[0] if texts else "")).lower()
            if "value" in raw:  # else it is withheld under `Context.privacy`
                match = Match(str(raw["table"]), str(raw["column"]), raw["value"], str(raw.get("match", "exact")))
                found[text] = tuple(dict.fromkeys((*found.get(text, ()), match)))
    return found


def last_sql(view: View) -> str:
    """Return the SQL of the newest query that ran before the question now open; "" if none is known."""
    for turn in reversed(view.turns[:-1]):
        for result in reversed(turn.of("run_sql")):
            if not result.error and isinstance(sql := result.args.get("sql"), str):
                return sql
    return view.queries[-1].sql if view.queries else ""


# -- deciding -----------------------------------------------------------------------------------------------------------


def decide(view: View, tools: frozenset[str]) -> Decision:
    """Return the next step; a pure function of the view and of the names of the tools that are there (empty: all)."""
    question = view.now.question
    language = talk.language_of(question)
    folded = view.folded or bool(view.findings) or any(turn.answer for turn in view.turns[:-1])
    try:
        if len(question) > MOST_CHARACTERS // (2 if is_chinese(question) else 1):
            raise talk.DeclineError("long")
        decision = _decide(view, language, tools)
        if decision.calls and tools and not {call.name for call in decision.calls} <= tools:
            raise talk.DeclineError("tools")
        if decision.calls and view.now.calls >= MOST_ROUNDS:
            raise talk.DeclineError("lost")
    except talk.DeclineError as error:
        decision = Decision(text=talk.decline(error, catalog_in(view), language))
    return decision if decision.calls or folded else Decision(text=talk.with_introduction(decision.text, language))


def _decide(view: View, language: str, tools: frozenset[str]) -> Decision:
    question = view.now.question
    wish = talk.chart_wish(question)
    if wish is not None:
        return _charted(view, wish, language, tools)
    kind = talk.kind_of(question)
    if kind in ("greeting", "thanks", "write", "rule", "sql"):
        if kind == "rule":
            raise talk.DeclineError("rule")
        return Decision(text=talk.sql_text(last_sql(view), language) if kind == "sql" else talk.say(kind, language))
    if kind in ("first", "last", "recall"):
        return Decision(text=_recalled(view, kind, language))
    if (done := _finished(view, language)) is not None:
        return done
    catalog = catalog_in(view)
    if catalog is None or (catalog.carded and kind in ("help", "tables", "describe")):
        return _list(view)
    if kind == "help":
        return Decision(text=talk.help_text(catalog, language))
    if kind == "tables":
        return Decision(text=talk.tables_text(catalog, language))
    return (
        _describe(view, catalog, name, language)
        if kind == "describe" and (name := talk.described_name(question))
        else _answer(view, catalog)
    )


def _charted(view: View, wish: talk.ChartWish, language: str, tools: frozenset[str]) -> Decision:
    """Answer what is left of the question, then draw its result."""
    drawn = view.now.of("show_chart")
    handle = _handle(view.now)
    if not wish.question:
        handle = next((found for turn in reversed(view.turns) if (found := _handle(turn))), "")
        handle = handle or next((line.handle for line in reversed(view.queries) if line.handle), "")
        if not handle and not drawn:
            return Decision(text=talk.say("nothing_to_draw", language))
        answered = Decision()
    else:
        answered = _decide(replace(view, turns=(*view.turns[:-1], replace(view.now, question=wish.question))), language, tools)
        if answered.calls or not any(result.data for result in view.now.of("run_sql")):
            return answered
    if not drawn and handle and (not tools or "show_chart" in tools):
        return Decision((Call("show_chart", {"handle": handle, "wish": wish.text}),))
    chart = drawn[-1] if drawn else None
    text = talk.chart_text(chart.data if chart else None, chart.error if chart else "", handle, language)
    return Decision(text="\n\n".join(part for part in (answered.text, text) if part))


def _handle(turn: Turn) -> str:
    """Return the handle of the turn's newest result that has rows."""
    rows = [result.data for result in turn.of("run_sql") if result.data and result.data.get("row_count")]
    return str(rows[-1].get("handle") or "") if rows else ""


def _recalled(view: View, kind: str, language: str) -> str:
    """Answer from what was said before: the visible turns, and the findings that compaction left in the memory."""
    pairs = [(finding.question, finding.answer) for finding in view.findings]
    pairs += [(turn.question, turn.answer) for turn in view.turns[:-1] if turn.question]
    if kind in ("first", "last") and pairs:
        return talk.say(f"{kind}_question", language, question=pairs[0 if kind == "first" else -1][0])
    pairs = [pair for pair in pairs if pair[1] and talk.kind_of(pair[0]) in ("", "recall")]
    best = talk.best_match(view.now.question, [question for question, _ in pairs])
    if best is None:
        raise talk.DeclineError("recall")
    question, answer = pairs[best]
    return talk.say("recalled", language, question=question, answer=talk.without_introduction(answer))


def _list(view: View) -> Decision:
    listed = view.now.of("list_tables")
    if listed and listed[-1].error:
        raise talk.DeclineError("failed", _first_line(listed[-1].error))
    if len(listed) >= 2:
        raise talk.DeclineError("lost")
    return Decision((Call("list_tables", {}),))


def _search(view: View, catalog: Catalog, tokens: list[Token]) -> Decision | None:
    """In a schema of many pages, look once for the tables that the question's words name."""
    if catalog.pages <= 1 or len(catalog.tables) >= catalog.total:
        return None
    lists = vocabulary().lists
    words = [token.word for token in tokens if token.kind in ("word", "quoted") and token.word not in lists["grammar"] | lists["verbs"]]
    search = " ".join(dict.fromkeys(word for word in words if (word,) not in vocabulary().phrases))
    done = {str(result.args.get("search", "")) for result in view.results if result.name == "list_tables"}
    return Decision((Call("list_tables", {"search": search}),)) if search and search not in done else None


def _describe(view: View, catalog: Catalog, name: str, language: str) -> Decision:
    tokens = _tokens(name, catalog, {})
    table = catalog.table(name)
    if table is None:
        tables = [each for each in name_meanings(catalog, tuple(token.word for token in tokens)) if each.kind == "table"]
        if not tables and (more := _search(view, catalog, tokens)) is not None:
            return more
        table = catalog.table(tables[0].table) if tables else None
    if table is None:
        raise talk.DeclineError("unknown_table", name)
    if not table.described:
        return _described(view, catalog, [table.name]) or Decision(text=talk.describe_text(table, language))
    return Decision(text=talk.describe_text(table, language))


def _described(view: View, catalog: Catalog, names: list[str]) -> Decision | None:
    """Return the call that describes what of `names` is not known yet; fewer tables at a time when answers came back cut."""
    missing = [name for name in names if (table := catalog.table(name)) and (not table.described or name.casefold() in catalog.carded)]
    if not missing:
        return None
    tries = view.now.of("describe_tables")
    cut = [result for result in tries if result.cut]
    failed = [result for result in tries if result.error]
    if failed:
        raise talk.DeclineError("failed", _first_line(failed[-1].error))
    if len(cut) >= 4:
        raise talk.DeclineError("lost")
    return Decision((Call("describe_tables", {"names": missing[: max(1, _DESCRIBE_AT_ONCE // (3 ** len(cut)))]}),))


def _tokens(question: str, catalog: Catalog, values: dict[str, tuple[Match, ...]]) -> list[Token]:
    if not is_chinese(question):
        return tokenize(question)
    from longtable.analyst.zh import translate  # the Chinese lists are read for Chinese questions only

    return translate(question, catalog, [text for text, matches in values.items() if matches])


def _relevant(catalog: Catalog, tokens: list[Token]) -> list[str]:
    """Return the tables worth describing: all of a small schema, else those that the question's words name."""
    if len(catalog.plain) <= _DESCRIBE_ALL:
        return [table.name for table in catalog.plain]
    words = [token.word for token in tokens]
    spans = [tuple(words[n : n + size]) for size in (3, 2, 1) for n in range(len(words) - size + 1)]
    named = [each.table for span in spans for each in name_meanings(catalog, span)[:6] if each.cost < 0.6]
    return list(dict.fromkeys(named))[:_DESCRIBE_AT_ONCE]


def _answer(view: View, catalog: Catalog) -> Decision:
    question = view.now.question
    values = values_in(view)
    tokens = _tokens(question, catalog, values)
    if (look := _search(view, catalog, tokens)) is not None:
        return look
    prior = _prior(view, catalog)
    if prior is None and len(view.turns) > 1 and all(goes_on(tokens)):
        raise talk.DeclineError("before")
    texts = [text for text in texts_to_look_up(tokens, catalog, MOST_TEXTS) if text not in values]
    lookup = [Call("find_values", {"text": texts if len(texts) > 1 else texts[0], "limit": MOST_MATCHES})] if texts else []
    if len(view.now.of("find_values")) >= 2:
        lookup = []
    if not catalog.carded:
        names = _relevant(catalog, tokens) + (list(prior.tables) if prior is not None else [])
        described = _described(view, catalog, names)
        if described is not None or lookup:
            return Decision((*(described.calls if described else ()), *lookup))
    elif lookup:
        return Decision(tuple(lookup))
    reading = read_question(tokens, catalog, values, prior, chinese=is_chinese(question))
    if catalog.carded and reading.query is not None and (more := _described(view, catalog, list(reading.query.tables))) is not None:
        return more  # what the card lacks, units and samples, may change the reading
    if reading.query is None or reading.cost > costs.GOOD:
        raise _declined(view, reading)
    return Decision((Call("run_sql", {"sql": write_sql(reading.query, catalog.dialect)}),))


def _declined(view: View, reading: Reading) -> talk.DeclineError:
    """Return why a question is declined, with the user's own words and the values that they may have meant."""
    words = [word for word in reading.blamed if word.strip()]
    near: list[str] = []
    for result in view.now.of("find_values"):
        for raw in (result.data or {}).get("matches", ()):
            text = str(raw.get("text", result.args.get("text", ""))).lower()
            if raw.get("match") == "typo" and "value" in raw and any(text in word.lower() or word.lower() in text for word in words):
                near.append(f"“{raw['value']}” ({raw['table']}.{raw['column']})")
    return talk.DeclineError("words" if words else "nothing", *words, near=tuple(dict.fromkeys(near))[:3])


def _prior(view: View, catalog: Catalog) -> Query | None:
    """Return the query before; None where the last question about the data got no answer: then there is nothing to go on from."""
    for turn in reversed(view.turns[:-1]):
        wish = talk.chart_wish(turn.question)
        if turn.answer and not (wish is not None and not wish.question) and talk.kind_of(turn.question) == "":
            if not any(not result.error for result in turn.of("run_sql")):
                return None
            break
    sql = last_sql(view)
    return read_sql(sql, catalog.dialect) if sql else None


def _finished(view: View, language: str) -> Decision | None:
    """Word the newest query's result, or say why there is none; None while no query has run in this turn."""
    results = view.now.of("run_sql")
    if not results:
        return None
    last = results[-1]
    catalog = catalog_in(view)
    dialect = catalog.dialect if catalog else "sqlite"
    edited = last.data is not None and "edited" in last.data
    query = read_sql(str(last.data.get("sql", "") if last.data and edited else last.args.get("sql", "")), dialect)
    too_large = [result for result in results if result.error_class in ("too_many_rows", "result_too_large")]
    if last.error and last in too_large and len(too_large) == 1 and query is not None and query.limit is None:
        return Decision((Call("run_sql", {"sql": write_sql(replace(query, limit=_PEEK), dialect)}),))
    if last.error_class == "query_rejected":
        return Decision(text=talk.say("rejected", language))
    if last.error:
        raise talk.DeclineError("failed", _first_line(last.error))
    if last.data is None:
        if len(results) < 2:
            return Decision((Call("run_sql", dict(last.args)),))
        raise talk.DeclineError("lost")
    if last.data.get("withheld"):
        return Decision(text=talk.withheld_text(last.data, language))
    text = talk.result_text(query, last.data, language, whole=not too_large)
    return Decision(text="\n\n".join([text, *([talk.say("peeked", language, rows=_PEEK)] if too_large else [])]))


def _first_line(error: str) -> str:
    line = error.strip().splitlines()[0] if error.strip() else ""
    return line if len(line) <= 200 else line[:199] + "…"
