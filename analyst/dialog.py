"""Read the messages of one model call and decide what to do next: call tools or answer. Nothing is
remembered between calls.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from operator import itemgetter
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.analyst import talk
from longtable.analyst.lexicon import Token, costs, is_chinese, tokenize, vocabulary
from longtable.analyst.links import Match, name_meanings, texts_to_look_up
from longtable.analyst.query import Query, labelled, read_sql, write_sql
from longtable.analyst.reading import Reading, goes_on, is_fragment, operations_in, read_question
from longtable.analyst.schema import Catalog, read_catalog
from longtable.analyst.terms import (
    GlossaryTerm,
    labels_of,
    spoken_in,
    tables_of,
    terms_in,
    with_terms,
)
from longtable.base.words import fold
from longtable.knowledge.material import QUERIES_HEAD
from longtable.knowledge.material import SOURCE as KNOWLEDGE
from longtable.memory.compaction.ledger import LedgerLine, ledger_in
from longtable.memory.materials import PASSED_ID
from longtable.memory.summary.summary_text import Finding, findings_in
from longtable.tools.sql.parsing import DEFAULT_DIALECT

MOST_CHARACTERS = 600
"""The longest question that is read, in characters. For Chinese it is half of this."""
MOST_ROUNDS = 9
"""The most rounds of tool calls in one turn. Then the analyst gives up, because the graph allows
only 12 model calls.
"""
MOST_BLAMED = 3
"""The most words of a declined question that the answer names."""
MOST_TEXTS = 8
"""The most texts of one question that are looked up in the data."""
MOST_MATCHES = 10
"""The most values that are requested for each text."""
_DESCRIBE_ALL = 12
_DESCRIBE_AT_ONCE = 20
_PEEK = 100
_TOO_LARGE = ("too_many_rows", "result_too_large")
_MEMORY = "<memory>"
_BLOCKS = re.compile(r"\n\n(?=-- )")
_PARAMETER = re.compile(r"(?<![:\w]):[^\W\d]\w*")
_IN_DATABASE = re.compile(r"database: (?P<name>\w+)")
_RUN = re.compile(r"([^\w\s])\1{3,}|(\s)\s{3,}")


@dataclass(frozen=True)
class ToolResult:
    """One tool call with its answer. `data` is None if the call failed, or if the answer was cut or
    is missing.
    """

    name: str
    args: dict[str, Any]
    data: dict[str, Any] | None
    error: str = ""
    error_class: str = ""
    text: str = ""


@dataclass
class Turn:
    """One question with its tool results so far. `answer` is empty until the question has been
    answered.
    """

    question: str
    results: list[ToolResult] = field(default_factory=list)
    answer: str = ""
    calls: int = 0

    def of(self, name: str) -> list[ToolResult]:
        """Return the results of one tool, in order."""
        return [result for result in self.results if result.name == name]


@dataclass(frozen=True)
class View:
    """What the messages of one model call contain."""

    turns: tuple[Turn, ...]
    findings: tuple[Finding, ...] = ()
    queries: tuple[LedgerLine, ...] = ()
    """The queries that ran in compacted rounds, oldest first."""
    folded: bool = False
    checked: Mapping[str, str] = field(default_factory=dict)
    """SQL that the owner of the data checked, by its question, folded."""
    checked_in: Mapping[str, str] = field(default_factory=dict)
    """The databases of the checked SQL, by its question, if there are several."""
    terms: tuple[GlossaryTerm, ...] = ()
    """The terms of the company's glossary that came with the call."""
    card: str = ""
    """The system prompt up to the memory block, if earlier rounds were compacted; otherwise "".
    Without a compaction, the tools' own answers are still in the view.
    """

    @property
    def now(self) -> Turn:
        """Return the turn that waits for an answer."""
        return self.turns[-1]

    @property
    def results(self) -> list[ToolResult]:
        """Return all tool results of all turns, in order."""
        return list(chain.from_iterable(turn.results for turn in self.turns))


@dataclass(frozen=True)
class Call:
    """A tool call that the analyst makes."""

    name: str
    args: dict[str, Any]


Decision = str | tuple[Call, ...]
"""What one model call decides: the text of the answer, or tool calls."""


# -- reading the messages --------------------------------------------------------------------------


def read_view(messages: Sequence[BaseMessage]) -> View:
    """Return the turns in `messages`. A memory block is read as findings and never as a
    question.
    """
    answers = {
        message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)
    }
    turns: list[Turn] = []
    memory: list[str] = []
    checked: dict[str, str] = {}
    checked_in: dict[str, str] = {}
    terms: tuple[GlossaryTerm, ...] = ()
    for message in messages:
        text = str(message.text)
        if isinstance(message, SystemMessage) or text.lstrip().startswith(_MEMORY):
            memory.append(text)
        elif str(message.id or "").startswith(PASSED_ID):
            if message.id == f"{PASSED_ID}{KNOWLEDGE}":
                checked |= checked_queries(text)
                checked_in |= checked_databases(text)
                terms += terms_in(text)
        elif isinstance(message, HumanMessage):
            turns.append(
                Turn(
                    _RUN.sub(lambda run: run[1] * 3 if run[1] else run[2], text.strip())[
                        : MOST_CHARACTERS + 1
                    ]
                )
            )
        elif isinstance(message, AIMessage) and turns:
            if message.tool_calls:
                turns[-1].calls += 1
                turns[-1].results += [
                    _result(call["name"], call["args"], answers.get(call["id"] or ""))
                    for call in message.tool_calls
                ]
            elif text.strip():
                turns[-1].answer = text.strip()
    joined = "\n".join(memory)
    folded = _MEMORY in joined
    card = joined.partition(_MEMORY)[0] if folded else ""
    return View(
        tuple(turns) or (Turn(""),),
        tuple(findings_in(joined)),
        tuple(ledger_in(joined)),
        folded,
        checked,
        checked_in,
        terms,
        card,
    )


def checked_queries(material: str) -> dict[str, str]:
    """Return the queries in the material of a knowledge folder, by each of their questions, folded.
    Queries with parameters are left out: nobody fills them in.
    """
    found: dict[str, str] = {}
    _, _, queries = material.rpartition(QUERIES_HEAD)
    for block in _BLOCKS.split(queries)[1:]:
        lines = block.split("\n")
        comments = [line.removeprefix("-- ") for line in takewhile(_is_comment, lines)]
        sql = "\n".join(lines[len(comments) :]).strip()
        if sql and not _PARAMETER.search(sql):
            for question in comments:
                if not _IN_DATABASE.fullmatch(question):
                    found.setdefault(asked_words(question), sql)
    return found


def checked_databases(material: str) -> dict[str, str]:
    """Return the databases of the queries in the material, by each of their questions, folded."""
    found: dict[str, str] = {}
    _, _, queries = material.rpartition(QUERIES_HEAD)
    for block in _BLOCKS.split(queries)[1:]:
        comments = [each.removeprefix("-- ") for each in takewhile(_is_comment, block.split("\n"))]
        named = [match["name"] for each in comments if (match := _IN_DATABASE.fullmatch(each))]
        for question in comments if named else ():
            found.setdefault(asked_words(question), named[0])
    return found


def _is_comment(line: str) -> bool:
    return line.startswith("-- ")


def _result(name: str, args: dict[str, Any], answer: ToolMessage | None) -> ToolResult:
    text, failed = (
        (str(answer.text), answer.status == "error") if answer is not None else ("", False)
    )
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return ToolResult(name, args, None, text[:300] if failed else "", text=text)
    if not failed and "error" not in data:
        return ToolResult(name, args, data, text=text)
    raw = data.get("error")
    error: dict[str, Any] = raw if isinstance(raw, dict) else {"message": str(raw or text)}
    return ToolResult(
        name,
        args,
        None,
        str(error.get("message", "")) or "failed",
        str(error.get("class", "")),
        text,
    )


def catalog_in(view: View) -> Catalog | None:
    """Return the catalogue as the answers of list_tables and describe_tables in this view give it;
    without such answers, as the schema's card gives it. Return None if there is neither.
    """
    kinds = {"list_tables": "list", "describe_tables": "describe"}
    answers = [
        ("search" if result.args.get("search") else kinds[result.name], result.text)
        for result in view.results
        if result.name in kinds
        and result.data is not None
        and isinstance(result.data.get("tables"), list)
    ]
    catalog = read_catalog(tuple(dict.fromkeys(answers)), view.card)
    return with_terms(catalog, view.terms) if catalog is not None and view.terms else catalog


def values_in(view: View) -> dict[str, tuple[Match, ...]]:
    """Return the matches of find_values, by the text that was searched for. A text that was not
    found has an empty tuple.
    """
    values: dict[str, tuple[Match, ...]] = {}
    for args, data in (
        (result.args, result.data)
        for result in view.results
        if result.name == "find_values" and result.data
    ):
        argument = args.get("text", "")
        texts = [
            str(text).lower() for text in (argument if isinstance(argument, list) else [argument])
        ]
        values |= {text: values.get(text, ()) for text in texts}
        for raw in data.get("matches", ()):
            if "value" in raw:  # else it is withheld under `Context.privacy`
                text = str(raw.get("text", texts[0])).lower()
                match = Match(
                    str(raw["table"]),
                    str(raw["column"]),
                    raw["value"],
                    str(raw.get("match", "exact")),
                )
                values[text] = tuple(dict.fromkeys((*values.get(text, ()), match)))
    return values


def last_sql(view: View) -> str:
    """Return the SQL of the newest query that ran before the present question, "" if none is
    known.
    """
    results = chain.from_iterable(turn.of("run_sql") for turn in view.turns[:-1])
    ran = [result.args.get("sql") for result in results if not result.error]
    known = [*(line.sql for line in view.queries), *(sql for sql in ran if isinstance(sql, str))]
    return known[-1] if known else ""


# -- deciding --------------------------------------------------------------------------------------


NextStep = Callable[[View, str, frozenset[str]], Decision]
"""Returns the next step of a view in a language ("en" or "zh"), with the tools of these names."""


def decide(view: View, tools: frozenset[str], step: NextStep | None = None) -> Decision:
    """Return the next step. It depends only on the view and on `tools`, the names of the tools that
    are offered. An empty `tools` means that every tool may be called. `step`: what finds the next
    step, None for one over one database.
    """
    question = view.now.question
    language = "zh" if is_chinese(question) else "en"
    folded = view.folded or bool(view.findings) or any(turn.answer for turn in view.turns[:-1])
    try:
        if len(question) > MOST_CHARACTERS // (2 if is_chinese(question) else 1):
            raise talk.DeclineError("long")
        decision = (step or next_step)(view, language, tools)
        if not isinstance(decision, str):
            if tools and not {call.name for call in decision} <= tools:
                raise talk.DeclineError("tools")
            if view.now.calls >= MOST_ROUNDS:
                raise talk.DeclineError("lost")
            return decision
    except talk.DeclineError as error:
        decision = talk.decline(error, catalog_in(view), language)
    return decision if folded else f"{decision}\n\n{talk.say('introduction', language)}"


def next_step(view: View, language: str, tools: frozenset[str]) -> Decision:
    """Return the next step, over one database. Raises `DeclineError` if there is no answer."""
    question = view.now.question
    wish = talk.chart_wish(question)
    if wish is not None:
        return _charted(view, wish, language, tools)
    kind = talk.kind_of(question)
    if kind == "rule":
        raise talk.DeclineError("rule")
    if kind in ("greeting", "thanks", "write"):
        return talk.say(kind, language)
    if kind == "sql":
        return talk.sql_text(last_sql(view), language)
    if kind in ("first", "last", "recall"):
        return _recalled(view, kind, language, tools)
    if (done := _finished(view, language)) is not None:
        return done
    if sql := _checked_sql(view):
        return (Call("run_sql", {"sql": sql}),)
    catalog = catalog_in(view)
    if catalog is None or (catalog.carded and kind in ("help", "tables", "describe")):
        _stop_at(view.now.of("list_tables"), 2)
        return (Call("list_tables", {}),)
    if kind in ("help", "tables"):
        return (
            talk.help_text(catalog, language)
            if kind == "help"
            else talk.tables_text(catalog, language)
        )
    name = talk.described_name(question) if kind == "describe" else ""
    return _describe(view, catalog, name, language) if name else _answer(view, catalog)


def _checked_sql(view: View) -> str:
    """Return the checked SQL of the question's own words, "" if there is none. A question that goes
    on from another one means something else each time.
    """
    question = view.now.question
    tokens = tokenize(question)
    leads, _ = goes_on(tokens)
    if len(view.turns) > 1 and (leads or is_fragment(tokens)):
        return ""
    return view.checked.get(asked_words(question), "")


def asked_words(question: str) -> str:
    """Return the words of a question as they are compared with those of a checked query."""
    return fold(question).rstrip("?？.。!！ ")


def _charted(view: View, wish: talk.ChartWish, language: str, tools: frozenset[str]) -> Decision:
    """Answer what the question asks besides the chart, then draw the result."""
    charts = view.now.of("show_chart")
    handle = _handle(view.now)
    answer = ""
    if wish.question:
        answer_text = next_step(
            replace(view, turns=(*view.turns[:-1], replace(view.now, question=wish.question))),
            language,
            tools,
        )
        if not isinstance(answer_text, str) or not any(
            result.data for result in view.now.of("run_sql")
        ):
            return answer_text
        if any(result.error_class in _TOO_LARGE for result in view.now.of("run_sql")):
            return "\n\n".join([answer_text, talk.say("too_large_to_draw", language)])
        answer = answer_text
    else:
        handles = [*(line.handle for line in view.queries), *map(_handle, view.turns)]
        handle = next((each for each in reversed(handles) if each), "")
        if not handle and not charts:
            return talk.say("nothing_to_draw", language)
    if not charts and handle and (not tools or "show_chart" in tools):
        return (Call("show_chart", {"handle": handle, "wish": wish.text}),)
    text = talk.chart_text(
        charts[-1].data if charts else None, charts[-1].error if charts else "", handle, language
    )
    return "\n\n".join(part for part in (answer, text) if part)


def _handle(turn: Turn) -> str:
    """Return the handle of the turn's newest result that has rows, "" if there is none."""
    rows = [
        result.data for result in turn.of("run_sql") if result.data and result.data.get("row_count")
    ]
    return str(rows[-1].get("handle") or "") if rows else ""


def _recalled(view: View, kind: str, language: str, tools: frozenset[str]) -> Decision:
    """Answer from earlier messages: from those in the view, otherwise from the original messages of
    compacted rounds.
    """
    pairs = [(finding.question, finding.answer) for finding in view.findings]
    pairs += [(turn.question, turn.answer) for turn in view.turns[:-1] if turn.question]
    looked = [(result.data or {}).get("messages", []) for result in view.now.of("recall_history")]
    may_look = view.folded and "recall_history" in tools and not looked
    if kind == "first" and may_look:
        return (Call("recall_history", {"query": "m1"}),)
    if kind in ("first", "last") and pairs:
        first = looked[0][0]["text"] if looked and looked[0] else pairs[0][0]
        return talk.say(
            f"{kind}_question", language, question=first if kind == "first" else pairs[-1][0]
        )
    pairs = [pair for pair in pairs if pair[1] and talk.kind_of(pair[0]) == ""]
    best = talk.best_match(view.now.question, [question for question, _ in pairs])
    if best is not None:
        answer = talk.without_introduction(pairs[best][1])
        return talk.say("recalled", language, question=pairs[best][0], answer=answer)
    if may_look:
        words = " ".join(talk.content_words(view.now.question))
        return (Call("recall_history", {"query": words, "limit": MOST_MATCHES}),)
    return _recalled_from(looked, view.now.question, language, tools)


def _recalled_from(
    looked: list[list[dict[str, Any]]], question: str, language: str, tools: frozenset[str]
) -> Decision:
    """Answer from original messages that were recalled, or ask for the messages after them."""
    questions = [each for each in (looked or [[]])[0] if each["role"] == "human"]
    best = talk.best_match(question, [each["text"] for each in questions])
    if best is None:
        raise talk.DeclineError("recall")
    turn = questions[best]["turn"]
    same = [each for each in chain.from_iterable(looked) if each["turn"] == turn]
    same.sort(key=itemgetter("number"))
    answers = [
        each["text"]
        for each in same
        if each["role"] == "ai" and each["text"].partition(":")[0] not in tools
    ]
    if answers:
        answer = talk.without_introduction(answers[-1])
        return talk.say("recalled", language, question=questions[best]["text"], answer=answer)
    if len(looked) != 1:
        raise talk.DeclineError("recall")
    # A search finds the words; the answer follows the last message that holds them.
    last = same[-1]["number"]
    return (Call("recall_history", {"query": f"m{last}-m{last + MOST_ROUNDS}"}),)


def _stop_at(results: list[ToolResult], most: int) -> None:
    """Raise `DeclineError` if the last call of a tool failed, or if there were already `most` calls
    that did not help.
    """
    error = results[-1].error.strip() if results else ""
    if error:
        raise talk.DeclineError("failed", error.splitlines()[0][:200])
    if len(results) >= most:
        raise talk.DeclineError("lost")


def _search(view: View, catalog: Catalog, tokens: list[Token]) -> tuple[Call, ...]:
    """Return a call that searches for the tables named by the question's words, if the schema has
    several pages and this search was not made yet. Otherwise return no call.
    """
    if catalog.pages <= 1 or len(catalog.tables) >= catalog.total:
        return ()
    lists = vocabulary().lists
    words = [
        token.word
        for token in tokens
        if token.kind in ("word", "quoted") and token.word not in lists["grammar"] | lists["verbs"]
    ]
    search = " ".join(dict.fromkeys(word for word in words if (word,) not in vocabulary().phrases))
    done = {
        str(result.args.get("search", ""))
        for result in view.results
        if result.name == "list_tables"
    }
    return (Call("list_tables", {"search": search}),) if search and search not in done else ()


def _describe(view: View, catalog: Catalog, name: str, language: str) -> Decision:
    meanings = name_meanings(catalog, tuple(token.word for token in _tokens(name, catalog, {})))
    table = catalog.table(name) or catalog.table(
        next((each.table for each in meanings if each.kind == "table"), "")
    )
    if table is None:
        if more := _search(view, catalog, _tokens(name, catalog, {})):
            return more
        raise talk.DeclineError("unknown_table", name)
    return (
        () if table.described else _described(view, catalog, [table.name])
    ) or talk.describe_text(table, language)


def _described(view: View, catalog: Catalog, names: list[str]) -> tuple[Call, ...]:
    """Return the call that describes those of the tables in `names` that are not known yet; empty
    if all are known. If earlier answers were cut, fewer tables are described at once.
    """
    missing = [
        name
        for name in names
        if (table := catalog.table(name))
        and (not table.described or name.casefold() in catalog.carded)
    ]
    if not missing:
        return ()
    tries = view.now.of("describe_tables")
    cut = [result for result in tries if result.data is None and not result.error]
    _stop_at([result for result in tries if result.error] or cut, 4)
    return (
        Call("describe_tables", {"names": missing[: max(1, _DESCRIBE_AT_ONCE // (3 ** len(cut)))]}),
    )


def _tokens(
    question: str,
    catalog: Catalog,
    values: dict[str, tuple[Match, ...]],
    terms: Sequence[str] = (),
) -> list[Token]:
    if not is_chinese(question):
        return tokenize(question)
    # The Chinese lists are read for Chinese questions only.
    from longtable.analyst.zh import translate

    names = [*terms]
    for text, matches in values.items():
        if matches:
            names += [text, *(str(match.value) for match in matches)]
    lower = question.lower()
    return translate(question, catalog, [name for name in names if name.lower() in lower])


def _relevant(catalog: Catalog, tokens: list[Token]) -> list[str]:
    """Return the tables to describe: all tables of a small schema, only the tables that the
    question's words name in a large one.
    """
    if len(catalog.plain) <= _DESCRIBE_ALL:
        return [table.name for table in catalog.plain]
    words = [token.word for token in tokens]
    mentioned: list[str] = []
    for size in (3, 2, 1):
        for start in range(len(words) - size + 1):
            meanings = name_meanings(catalog, tuple(words[start : start + size]))[:6]
            mentioned += [each.table for each in meanings if each.cost < 0.6]
    return list(dict.fromkeys(mentioned))[:_DESCRIBE_AT_ONCE]


def _answer(view: View, catalog: Catalog) -> Decision:
    question = view.now.question
    # A thread may go on with another database: what was found in the one before is nothing here.
    values: dict[str, tuple[Match, ...]] = {}
    for text, matches in values_in(view).items():
        values[text] = tuple(each for each in matches if catalog.table(each.table))
    spoken = spoken_in(view.terms, question)
    tokens = _tokens(question, catalog, values, spoken)
    if look := _search(view, catalog, tokens):
        return look
    prior = _prior(view, catalog)
    open_ended = all(goes_on(tokens)) or is_fragment(tokens)
    if prior is None and len(view.turns) > 1 and open_ended:
        raise talk.DeclineError("before")
    lookup = _look_up(view, tokens, catalog, values, spoken)
    names = (
        []
        if catalog.carded
        else [
            *_relevant(catalog, tokens),
            *tables_of(catalog),
            *(prior.tables if prior is not None else ()),
        ]
    )
    if calls := (*_described(view, catalog, names), *lookup):
        return calls
    reading = read_question(tokens, catalog, values, prior, chinese=is_chinese(question))
    if (
        catalog.carded
        and reading.query is not None
        and (calls := _described(view, catalog, list(reading.query.tables)))
    ):
        return calls  # what the card lacks, units and samples, may change the reading
    if reading.query is None or reading.cost > costs.GOOD:
        raise _declined(view, reading)
    return (Call("run_sql", {"sql": write_sql(reading.query, catalog.dialect)}),)


def _look_up(
    view: View,
    tokens: list[Token],
    catalog: Catalog,
    values: Mapping[str, tuple[Match, ...]],
    spoken: Sequence[str],
) -> tuple[Call, ...]:
    """Return the call that looks up texts of a question in the data. Empty if there are none, or
    after two such calls. Words of company terms (`spoken`) are not looked up.
    """
    if len(view.now.of("find_values")) >= 2:
        return ()
    of_terms = "\n".join(spoken)
    unknown = texts_to_look_up(tokens, catalog, MOST_TEXTS)
    texts = [text for text in unknown if text not in values and text not in of_terms]
    if not texts:
        return ()
    text = texts if len(texts) > 1 else texts[0]
    return (Call("find_values", {"text": text, "limit": MOST_MATCHES}),)


def _declined(view: View, reading: Reading) -> talk.DeclineError:
    """Return the error that declines a question. It has the user's words that could not be read,
    and similar values that the user may have meant.
    """
    words = [word for word in reading.blamed[:MOST_BLAMED] if word.strip()]
    near: list[str] = []
    for result in view.now.of("find_values"):
        for raw in (result.data or {}).get("matches", ()):
            text = str(raw.get("text", result.args.get("text", ""))).lower()
            if (
                raw.get("match") == "typo"
                and len(text) > 4
                and "value" in raw
                and any(text in word.lower() or word.lower() in text for word in words)
            ):
                near.append(f"“{raw['value']}” ({raw['table']}.{raw['column']})")
    return talk.DeclineError(
        "words" if words else "nothing", *words, near=tuple(dict.fromkeys(near))[:3]
    )


def _prior(view: View, catalog: Catalog) -> Query | None:
    """Return the query of the last question about the data. Return None if there is none, or if
    that question's queries all failed.
    """
    last = next(
        (turn for turn in reversed(view.turns[:-1]) if turn.answer and _asks_data(turn.question)),
        None,
    )
    if last is not None and all(result.error for result in last.of("run_sql")):
        return None
    sql = last_sql(view)
    return read_sql(sql, catalog.dialect) if sql else None


def _asks_data(question: str) -> bool:
    return talk.kind_of(question) == "" and (
        (wish := talk.chart_wish(question)) is None or bool(wish.question)
    )


def _parts_in(question: str, catalog: Catalog, query: Query) -> list[str]:
    """Return the user's words that matched only a part of a name. Empty if the question itself asks
    for parts, as 'containing' does.
    """
    tokens = _tokens(question, catalog, {})
    parts: list[str] = []
    for cond in query.where if "like" not in operations_in(tokens) else ():
        if cond.query is not None:
            parts += _parts_in(question, catalog, cond.query)
        elif cond.op == "contains":
            words = str(cond.value).lower().split()
            parts.append(
                " ".join(dict.fromkeys(token.text for token in tokens if token.word in words))
                or str(cond.value)
            )
    return parts


def _finished(view: View, language: str) -> Decision | None:
    """Return the text about the newest query's result, or a further call. Return None if no query
    has run in this turn. Raises `DeclineError` if there is no answer.
    """
    results = view.now.of("run_sql")
    if not results:
        return None
    last = results[-1]
    catalog = catalog_in(view)
    dialect = catalog.dialect if catalog else DEFAULT_DIALECT
    query = read_sql(
        str((last.data if last.data and "edited" in last.data else last.args).get("sql", "")),
        dialect,
    )
    if query is not None and catalog is not None:
        query = labelled(query, labels_of(catalog))
    too_large = [result for result in results if result.error_class in _TOO_LARGE]
    if last in too_large and len(too_large) == 1 and query is not None and query.limit is None:
        return (Call("run_sql", {"sql": write_sql(replace(query, limit=_PEEK), dialect)}),)
    if last.error_class == "query_rejected":
        return talk.say("rejected", language)
    if last.data is None:
        _stop_at(results, 2)
        return (Call("run_sql", dict(last.args)),)
    if last.data.get("withheld"):
        return talk.withheld_text(last.data, language)
    nothing = not any(map(any, last.data.get("rows", ())))
    if nothing and catalog and query and (parts := _parts_in(view.now.question, catalog, query)):
        raise talk.DeclineError("part", *parts)
    peeked = [talk.say("peeked", language, rows=_PEEK)] if too_large else []
    return "\n\n".join([talk.result_text(query, last.data, language, whole=not too_large), *peeked])
