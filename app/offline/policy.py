"""Decide, from the view alone, what to do next: call tools, or answer."""

from dataclasses import dataclass, replace
from typing import Any

from longtable.app.offline import charting, talk
from longtable.app.offline.audit import casts
from longtable.app.offline.catalog import Catalog
from longtable.app.offline.charting import Wish, wish_of
from longtable.app.offline.chinese import as_asked
from longtable.app.offline.chunks import Values
from longtable.app.offline.columns import CannotRead, entity
from longtable.app.offline.compose import render
from longtable.app.offline.cut import chunk
from longtable.app.offline.decompile import read_sql
from longtable.app.offline.followup import follow
from longtable.app.offline.labels import condition
from longtable.app.offline.logic import Query
from longtable.app.offline.lookups import value_texts
from longtable.app.offline.nearby import did_you_mean
from longtable.app.offline.recall import asked, best_match, content_words, recall
from longtable.app.offline.second import SecondReader
from longtable.app.offline.smalltalk import asked_place, described_name, is_rule, kind_of
from longtable.app.offline.spelling import in_names, spelled_out
from longtable.app.offline.text import lemma, stem
from longtable.app.offline.understand import draft_again, other_texts, tokens_of, understand
from longtable.app.offline.view import ToolResult, View, catalog_in, is_too_long, last_sql, values_in
from longtable.app.offline.withheld import withheld_text
from longtable.app.offline.wording import word_result

MOST_CALLS = 9
"""Rounds of tool calls in one turn before giving up; the graph allows 12 model calls."""
_MOST_WORDS = 12  # that a decline names
_PEEK = 100
_PEEKED = {
    "en": f"The whole result is too large to fetch: these are only {_PEEK} of its rows. Filter or count to see all.",
    "zh": f"完整结果太大，无法全部取出：以上只是其中 {_PEEK} 行。可以筛选或计数。",
}
_REJECTED = {
    "en": "You did not approve the query, so it was not run, and I have no answer.",
    "zh": "您没有批准这个查询，因此没有执行，也没有答案。",
}
_NO_NUMBER = "null"  # what exports of text write for a number that is missing
_MOST_MATCHES = 20  # that find_values tells
_DESCRIBE_ALL = 12
_DESCRIBE_AT_ONCE = 10


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


def decide(view: View) -> Decision:
    """Return the next step; a pure function of the view."""
    question = view.now.question
    language = talk.language_of(question)
    if is_too_long(question):
        return Decision(text=talk.with_intro(talk.decline(CannotRead("long"), catalog_in(view), language), view, language))
    wish = wish_of(question)
    try:
        decision = _decide(view, language) if wish is None else _charted(view, wish, language)
    except CannotRead as error:
        near = did_you_mean(view, error, language)
        words = tuple(dict.fromkeys(error.words))[:_MOST_WORDS]
        said = CannotRead(error.reason, *(as_asked(question, word) if language == "zh" else word for word in words))
        decision = Decision(text="\n".join([talk.decline(said, catalog_in(view), language), *([near] if near else [])]))
    if decision.calls and view.now.calls >= MOST_CALLS:
        decision = Decision(text=talk.decline(CannotRead("lost"), catalog_in(view), language))
    return decision if decision.calls else Decision(text=talk.with_intro(decision.text, view, language))


def _charted(view: View, wish: Wish, language: str) -> Decision:
    """Find out what is to be drawn, draw it, and say so; what cannot be drawn is still answered in words."""
    done = charting.drawn(view)
    if not wish.question:
        handle = charting.newest_handle(view)
        if done is None and handle:
            return Decision((Call("show_chart", {"handle": handle, "wish": wish.text}),))
        return Decision(text=charting.said(done, language) if done else charting.nothing_yet(language))
    found = _decide(charting.without_wish(view, wish), language)
    if found.calls or not any(result.data for result in view.now.of("run_sql")):
        return found
    if done is None and (handle := charting.handle_in(view.now)):
        return Decision((Call("show_chart", {"handle": handle, "wish": wish.text}),))
    return Decision(text=f"{found.text}\n\n{charting.said(done, language)}")


def _decide(view: View, language: str) -> Decision:
    question = view.now.question
    kind = kind_of(question)
    if kind in ("greeting", "thanks", "write", "sql"):
        return Decision(text=_small_talk(kind, view, language))
    if is_rule(question):
        raise CannotRead("rule")
    if place := asked_place(question):
        if (said := asked(view, place, language)) is not None:
            return Decision(text=said)
        raise CannotRead("recall")
    if kind == "recall" and not _asks_again(question):
        if (said := recall(question, view, language)) is not None:
            return Decision(text=said)
        raise CannotRead("recall")
    if (done := _finished(view, language)) is not None:
        return done
    catalog = catalog_in(view)
    if catalog is None or (catalog.carded and kind in ("help", "tables", "describe")):
        return _list(view)
    if kind == "help":
        return _described(view, catalog, ()) or Decision(text=talk.help_text(catalog, language))
    if kind == "tables":
        return Decision(text=talk.tables_text(catalog, language))
    if kind == "describe" and (table := described_name(question)):
        return _describe(view, catalog, table, language)
    return _answer(view, catalog)


def _asks_again(question: str) -> bool:
    """Say whether an earlier question is to be asked anew with a change: 'the same as when I asked about carriers but for JFK'."""
    words = question.lower()
    return ("same" in words and ("but" in words or "for" in words)) or ("一样" in words and "但" in words)


def _small_talk(kind: str, view: View, language: str) -> str:
    if kind == "greeting":
        return talk.greeting(language)
    if kind == "thanks":
        return talk.thanks(language)
    return talk.read_only(language) if kind == "write" else talk.sql_text(last_sql(view), language)


# -- looking at the database ------------------------------------------------------------------------------------------


def _list(view: View) -> Decision:
    failed = [result for result in view.now.of("list_tables") if result.error]
    if failed:
        raise CannotRead("failed", _first_line(failed[-1].error))
    if len(view.now.of("list_tables")) >= 2:
        raise CannotRead("lost")
    return Decision((Call("list_tables", {}),))


def _search(view: View, catalog: Catalog) -> Decision | None:
    """In a schema of many pages, look for the tables that the question's words name."""
    if catalog.pages <= 1 or len(catalog.tables) >= catalog.total:
        return None
    done = {str(result.args.get("search", "")).lower() for result in view.results if result.name == "list_tables"}
    words = [word for word in dict.fromkeys(_search_words(view.now.question)) if word not in done][:6]
    return Decision(tuple(Call("list_tables", {"search": word}) for word in words)) if words else None


_PARTS = frozenset(
    ["item", "record", "entry", "event", "line", "detail", "result", "group"]
)  # idle words, but the ends of many tables' names


def _search_words(question: str) -> list[str]:
    words = [
        word
        for token in tokens_of(question)
        if token.kind == "word"
        for word in [token.word]
        if len(word) > 3 and (word in content_words(token.word) or lemma(word) in _PARTS)
    ]
    return [stem(word) if word.isascii() and len(stem(word)) >= 4 else word for word in words][:6]


def _describe(view: View, catalog: Catalog, name: str, language: str) -> Decision:
    tokens = tokens_of(name, catalog)
    mention = next((each for each in chunk(tokens, catalog, {}) if each.kind == "mention" and entity(each)), None)
    if mention is None:
        if (more := _search(view, catalog)) is not None:
            return more
        raise CannotRead("unknown_table", name)
    table = catalog.table(entity(mention))
    if table is not None and not table.described:
        return _described(view, catalog, (table.name,)) or Decision(text=talk.describe_text(table, language))
    return Decision(text=talk.describe_text(table, language) if table else talk.tables_text(catalog, language))


def _relevant(view: View, catalog: Catalog, values: Values) -> list[str]:
    """Return the tables worth describing, those the question names first, then those near them."""
    plain = [table for table in catalog.tables.values() if table.kind == "table"]
    chosen = [table.name for table in plain] if len(plain) <= _DESCRIBE_ALL else []
    tokens = tokens_of(view.now.question, catalog, values)
    for each in chunk(tokens, catalog, values):
        best = each.best
        hits = [hit for hit in each.hits if hit.score >= best - 0.06][:4]
        chosen += [
            hit.table
            for hit in hits
            if (table := catalog.table(hit.table)) and (table.kind == "table" or (hit.is_table and hit.score >= 0.9))
        ]
        chosen += [match.table for match in each.matches[:4] if (table := catalog.table(match.table)) and table.kind == "table"]
    if (query := _before(view, catalog)) is not None:
        chosen += query.tables
    return list(dict.fromkeys(chosen))


def _described(view: View, catalog: Catalog, names: tuple[str, ...]) -> Decision | None:
    """Return the call that describes what of `names` is not yet described; fewer at a time when answers came back cut."""
    wanted = names or tuple(table.name for table in catalog.tables.values() if table.kind == "table")[:_DESCRIBE_AT_ONCE]
    missing = [name for name in wanted if _unseen(name, catalog)]
    if not missing:
        return None
    tries = view.now.of("describe_tables")
    cut = [result for result in tries if result.cut]
    failed = [result for result in tries if result.error]
    if failed:
        raise CannotRead("failed", _first_line(failed[-1].error))
    if len(cut) >= 4:
        raise CannotRead("lost")
    size = max(1, _DESCRIBE_AT_ONCE * 2 // (3 ** len(cut)) if cut else 20)
    return Decision((Call("describe_tables", {"names": [catalog.names.real_name(name) for name in missing[:size]]}),))


def _unseen(name: str, catalog: Catalog) -> bool:
    table = catalog.table(name)
    return table is not None and (not table.described or name.casefold() in catalog.carded)


def _needed(view: View, catalog: Catalog, values: Values, relevant: list[str]) -> list[str]:
    """Return the tables of the query that the card alone makes of the question: their samples may yet change it; else all."""
    if not catalog.carded:
        return relevant
    try:
        return list(_query(view, catalog, values).tables)
    except CannotRead:
        return relevant


def _neighbours(catalog: Catalog, names: list[str]) -> list[str]:
    """Return tables that keys of `names` point at, and tables that share a key's name with them."""
    found: list[str] = []
    for name in names:
        table = catalog.table(name)
        for column in table.columns if table else ():
            if points_at := column.references or column.guess:
                target = catalog.table(points_at.rpartition(".")[0].strip('"'))
                found += [target.name] if target else []
    keys = {column.name.casefold() for name in names if (table := catalog.table(name)) for column in table.columns if column.is_id}
    for table in catalog.tables.values():
        if table.kind == "table" and len(keys & set(table.by_name)) >= 1:
            found.append(table.name)
    return [name for name in dict.fromkeys(found) if name not in names]


def _lookups(view: View, catalog: Catalog, values: Values) -> tuple[Call, ...]:
    tokens = tokens_of(view.now.question, catalog, values)
    asked: dict[str, int] = {}
    for result in view.now.of("find_values"):
        asked[str(result.args.get("text", "")).lower()] = asked.get(str(result.args.get("text", "")).lower(), 0) + 1
    calls: list[Call] = []
    for text in dict.fromkeys([*value_texts(tokens, catalog), *other_texts(view.now.question, catalog)]):
        if text not in values and asked.get(text, 0) < 2:
            calls.append(Call("find_values", {"text": text}))
        elif len(found := values.get(text, ())) >= _MOST_MATCHES and (named := _relevant(view, catalog, {})[:1]):
            again = {"text": text, "table": named[0]}  # so many tables hold it that the list ended before the one asked for
            if not any(match.table in named for match in found) and not any(result.args == again for result in view.results):
                calls.append(Call("find_values", again))
    return tuple(calls)


# -- answering --------------------------------------------------------------------------------------------------------


def _before(view: View, catalog: Catalog) -> Query | None:
    query = read_sql(sql, catalog.dialect) if (sql := last_sql(view)) else None
    return catalog.names.out(query) if query is not None else None


def _answer(view: View, catalog: Catalog) -> Decision:
    if (look := _search(view, catalog)) is not None:
        return look
    found = values_in(view)
    catalog = spelled_out(tokens_of(view.now.question, catalog, found), catalog)
    values = in_names(found, catalog)
    relevant = _relevant(view, catalog, values)
    lookups = _lookups(view, catalog, values)
    if catalog.carded and lookups:
        return Decision(lookups)
    needed = _needed(view, catalog, values, relevant)
    described = _described(view, catalog, tuple(needed)) if needed else None
    if described is not None or lookups:
        return Decision((*(described.calls if described else ()), *lookups))
    try:
        query = _query(view, catalog, values)
        if _before(view, catalog) is None and not kind_of(view.now.question):
            query = SecondReader(view.now.question, catalog, values).better(query)
    except CannotRead as error:
        if error.reason in ("join", "time", "dimension", "measure", "column", "number") and (near := _neighbours(catalog, relevant)):
            more = _described(view, catalog, tuple(near[:_DESCRIBE_AT_ONCE])) if len(view.now.of("describe_tables")) < 4 else None
            if more is not None:
                return more
        second = _second(view, catalog, values, error)
        if isinstance(second, Decision):
            return second
        query = second
    query = catalog.names.back(query)
    if (unsure := _texts_as_numbers(query, view, found)) is not None:
        return unsure
    return Decision((Call("run_sql", {"sql": render(query, catalog.dialect)}),))


def _second(view: View, catalog: Catalog, values: Values, error: CannotRead) -> Decision | Query:
    """Return what the search makes of a question that was declined, or the look-ups it needs first; raise the decline if nothing."""
    reader = SecondReader(view.now.question, catalog, values)
    before = _before(view, catalog)
    if not reader.may_search(before, error):
        raise error
    asked = {str(result.args.get("text", "")).lower() for result in view.now.of("find_values")}
    if calls := tuple(Call("find_values", {"text": text}) for text in reader.further_texts(asked)):
        return Decision(calls)
    found = reader.searched(later=before is not None)
    if found is None:
        raise error
    return found


def _texts_as_numbers(query: Query, view: View, values: Values) -> Decision | None:
    """Before a column of texts is ordered as numbers, look whether it holds what is none: 'null' would be the lowest of all."""
    for col in casts(query):
        asked = {"text": _NO_NUMBER, "table": col.table, "column": col.name}
        if not any(result.name == "find_values" and result.args == asked for result in view.results):
            return Decision((Call("find_values", asked),))
        place = (col.table.casefold(), col.name.casefold())
        if any((match.table.casefold(), match.column.casefold()) == place for match in values.get(_NO_NUMBER, ())):
            raise CannotRead("texts", col.name)
    return None


def _query(view: View, catalog: Catalog, values: Values) -> Query:
    question = view.now.question
    if kind_of(question) == "recall" or "when i asked" in question.lower():
        return _again(view, catalog, values)
    return understand(question, catalog, values, _before(view, catalog), lost=_declined(view))


def _declined(view: View) -> bool:
    """Say whether the last question about the data got no answer: what leans on it has nothing to lean on."""
    for turn in reversed(view.turns[:-1]):
        if (wish := wish_of(turn.question)) is not None and not wish.question:
            continue  # 'draw it' asks for no data
        if kind_of(turn.question) in ("", "recall") and turn.answer:
            return not any(not result.error for result in turn.of("run_sql")) and kind_of(turn.question) == ""
    return False


def _again(view: View, catalog: Catalog, values: Values) -> Query:
    """Take up the query of an earlier question, with the change that this one names."""
    question = view.now.question
    earlier = [(line.question, line.sql) for line in view.queries]
    earlier += [(turn.question, str(turn.of("run_sql")[-1].args.get("sql", ""))) for turn in view.turns[:-1] if turn.of("run_sql")]
    old, _, change = question.partition(" but ")
    if not change:
        old, _, change = question.partition("但")
    place = best_match(old, [asked for asked, _ in earlier])
    query = read_sql(earlier[place][1], catalog.dialect) if place is not None else None
    if query is None:
        raise CannotRead("recall")
    return follow(catalog.names.out(query), draft_again(tokens_of(change or question, catalog, values), catalog, values), catalog)


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
        return Decision((Call("run_sql", {"sql": render(replace(query, limit=_PEEK), dialect)}),))
    if last.error_class == "query_rejected":
        return Decision(text=_REJECTED[language])
    if last.error:
        raise CannotRead("failed", _first_line(last.error))
    if last.data is None:
        if len(results) < 2:
            return Decision((Call("run_sql", dict(last.args)),))
        raise CannotRead("lost")
    if last.data.get("withheld"):
        return Decision(text=withheld_text(last.data, language))
    if query is not None and catalog is not None:
        query = spelled_out(tokens_of(view.now.question, catalog), catalog).names.out(query)
    text = word_result(query, last.data, language, whole=not too_large)
    return Decision(text=f"{text}\n\n{_PEEKED[language]}" if too_large else text)


def _first_line(error: str) -> str:
    line = error.strip().splitlines()[0] if error.strip() else ""
    return line if len(line) <= 200 else line[:199] + "…"


def understood(query: Query, language: str) -> str:
    """Return the conditions of a query in words."""
    return ", ".join(condition(cond, language) for cond in query.where)


__all__ = ["Call", "Decision", "ToolResult", "decide"]
