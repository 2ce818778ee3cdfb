"""Choose among several databases: each question is read over each of them, and the one that has it
answers. If several have it, the person is asked which one is meant.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtable.analyst import talk
from longtable.analyst.dialog import (
    Call,
    Decision,
    ToolResult,
    Turn,
    View,
    catalog_in,
    next_step,
)

DATABASE = "database"
_ASKING = ("list_tables", "describe_tables", "find_columns", "find_values", "run_sql")
_SMALL_TALK = ("greeting", "thanks", "write", "rule", "sql", "first", "last", "recall")
_PARTS = "databases"


def names_in(tools: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of the databases that the definition of run_sql offers, empty if there is
    only one.
    """
    for tool in tools:
        function = tool["function"]
        if function["name"] == "run_sql":
            properties = function.get("parameters", {}).get("properties", {})
            return tuple(map(str, properties.get(DATABASE, {}).get("enum") or ()))
    return ()


@dataclass(frozen=True)
class _Outcome:
    """What one database gives for a question: a step, or why it declines."""

    name: str
    step: Decision | None = None
    declined: talk.DeclineError | None = None

    @property
    def runs(self) -> bool:
        """Return whether the database can be asked for the answer."""
        return isinstance(self.step, tuple) and any(call.name == "run_sql" for call in self.step)


def step_among(names: Sequence[str], view: View, language: str, tools: frozenset[str]) -> Decision:
    """Return the next step over the databases of these names. Raises `DeclineError` if there is no
    answer.
    """
    view, names_meant = _meant(view, names)
    wish = talk.chart_wish(view.now.question)
    if talk.kind_of(view.now.question) in _SMALL_TALK or (wish and not wish.question):
        return next_step(view, language, tools)
    down = {name: reason for name in names if (reason := _down(view, name, names))}
    unread = [name for name in names_meant if not _listed(view, name, names)]
    if unread and not view.now.of("list_tables"):
        return (Call("list_tables", {}),)
    usable = [name for name in names_meant if name not in down] or list(names_meant)
    ran = [result for result in view.now.of("run_sql") if result.args.get(DATABASE) in names]
    if ran:
        usable = [str(ran[-1].args[DATABASE])]
    outcomes = [_outcome(view, name, names, language, tools) for name in usable]
    if talk.kind_of(view.now.question) in ("help", "tables"):
        texts = [f"{each.name}: {each.step}" for each in outcomes if isinstance(each.step, str)]
        return "\n\n".join([*texts, *_told(down, language)])
    return _chosen(view, outcomes, names, down, language)


def _chosen(
    view: View,
    outcomes: Sequence[_Outcome],
    names: Sequence[str],
    down: Mapping[str, str],
    language: str,
) -> Decision:
    """Return the step of the database that can answer. Whatever is still to be looked up comes
    first.
    """
    looks: list[Call] = []
    for each in outcomes:
        if isinstance(each.step, tuple) and not each.runs:
            looks += [_placed(call, each.name) for call in each.step]
    if looks:
        return tuple(looks)
    running = [each for each in outcomes if each.runs]
    if len(running) > 1:
        return talk.say("which_database", language, names=_listing(running, language))
    if running and isinstance(running[0].step, tuple):
        return tuple(_placed(call, running[0].name) for call in running[0].step)
    answers = [each for each in outcomes if isinstance(each.step, str)]
    if answers:
        named = talk.say("from_database", language, database=answers[0].name)
        return "\n\n".join([str(answers[0].step), named])
    first = outcomes[0]
    error = first.declined or talk.DeclineError("nothing")
    catalog = catalog_in(_view_of(view, first.name, names))
    return "\n\n".join([talk.decline(error, catalog, language), *_told(down, language)])


def _outcome(
    view: View, name: str, names: Sequence[str], language: str, tools: frozenset[str]
) -> _Outcome:
    try:
        return _Outcome(name, next_step(_view_of(view, name, names), language, tools))
    except talk.DeclineError as error:
        return _Outcome(name, declined=error)


def _placed(call: Call, name: str) -> Call:
    return Call(call.name, {**call.args, DATABASE: name}) if call.name in _ASKING else call


def _listing(outcomes: Sequence[_Outcome], language: str) -> str:
    return ("、" if language == "zh" else ", ").join(each.name for each in outcomes)


def _told(down: Mapping[str, str], language: str) -> list[str]:
    """Return a sentence for each database that cannot be reached."""
    return [
        talk.say("database_down", language, database=name, reason=reason[:200])
        for name, reason in down.items()
    ]


# -- which one is meant ----------------------------------------------------------------------------


def _meant(view: View, names: Sequence[str]) -> tuple[View, Sequence[str]]:
    """Return the view without the words that name a database, and the databases that may be meant.
    A name alone answers the question which one was meant.
    """
    question = view.now.question
    for name in names:
        named = re.escape(name)
        alone = rf"\W*(?:in|the|from|database|数据库|\s)*{named}(?:\s*database|数据库|库)?\W*"
        if re.fullmatch(alone, question, re.IGNORECASE) and len(view.turns) > 1:
            now = replace(view.now, question=view.turns[-2].question)
            return replace(view, turns=(*view.turns[:-1], now)), [name]
        place = (
            rf"(?:\b(?:in|from|of|on|using)\s+(?:the\s+)?(?:database\s+)?{named}(?:\s+database)?\b"
            rf"|^\s*{named}\s*[:：]|在?{named}\s*(?:数据库|库)(?:里|中)?的?)"
        )
        rest = re.sub(place, " ", question, count=1, flags=re.IGNORECASE)
        if rest != question:
            words = re.sub(r"\s+([?？.。!！])", r"\1", " ".join(rest.split()))
            now = replace(view.now, question=words)
            return replace(view, turns=(*view.turns[:-1], now)), [name]
    return view, names


def _listed(view: View, name: str, names: Sequence[str]) -> bool:
    """Return whether the tables of a database are known, or that they cannot be."""
    known = _view_of(view, name, names)
    return catalog_in(known) is not None or bool(_down(view, name, names))


def _down(view: View, name: str, names: Sequence[str]) -> str:
    """Return why a database could not be reached in this turn, "" if it could or was not asked."""
    now = _view_of(replace(view, turns=view.turns[-1:]), name, names).now
    failed = [each for each in now.results if each.error_class == "database_unavailable"]
    return failed[-1].error.partition("\n")[0] if failed else ""


# -- the view over one database --------------------------------------------------------------------


def _view_of(view: View, name: str, names: Sequence[str]) -> View:
    """Return the view as if this database were the only one. What names no database is of the
    first: the thread began with it.
    """
    is_first = name == names[0]
    own = (name, "") if is_first else (name,)
    checked = {
        question: sql
        for question, sql in view.checked.items()
        if view.checked_in.get(question, "") in own
    }
    return replace(
        view,
        turns=tuple(_turn_of(turn, name, is_first=is_first) for turn in view.turns),
        queries=tuple(line for line in view.queries if line.database in own),
        checked=checked,
        terms=tuple(term for term in view.terms if term.database in own),
        card=_card_of(view.card, name) if view.card else "",
    )


def _turn_of(turn: Turn, name: str, *, is_first: bool) -> Turn:
    results: list[ToolResult] = []
    for result in turn.results:
        if result.name not in _ASKING:
            results.append(result)
        elif (own := _result_of(result, name, is_first=is_first)) is not None:
            results.append(own)
    return Turn(turn.question, results, turn.answer, turn.calls)


def _result_of(result: ToolResult, name: str, *, is_first: bool) -> ToolResult | None:
    """Return what a tool answered about one database, None if it was not asked."""
    asked = result.args.get(DATABASE)
    if asked:
        return result if str(asked).casefold() == name.casefold() else None
    parts = (result.data or {}).get(_PARTS)
    if not isinstance(parts, list):
        return result if is_first else None
    part = next((each for each in parts if each.get(DATABASE) == name), None)
    if part is None:
        return None
    error = part.get("error")
    if isinstance(error, dict):
        return replace(
            result,
            data=None,
            error=str(error.get("message", "failed")),
            error_class=str(error.get("class", "")),
        )
    return replace(result, data=part, text=json.dumps(part, ensure_ascii=False))


def _card_of(card: str, name: str) -> str:
    """Return the card of one database in the form that it has alone, "" if it is not there."""
    named = re.escape(name)
    dialect = re.search(rf"\b{named} \((\w+) dialect\)", card)
    section = re.search(rf"^Database {named}\. (.*?)(?:\n\n|\Z)", card, re.M | re.S)
    if dialect is None or section is None:
        return ""
    return f"Database: {name} ({dialect[1]} dialect).\n{section[1]}\n\n"
