"""Keep a turn's question and the SQL that answered it as a verified query: in the knowledge folder,
or, if the folder cannot be written, in the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.base import BaseStore

from longtable.base.errors import ConfigError, KnowledgeNotWritableError, NothingToKeepError
from longtable.knowledge.entries import Place, Problem, VerifiedQuery
from longtable.knowledge.folder import KnowledgeFolder
from longtable.memory.messages.call_reports import tool_report
from longtable.memory.messages.marks import TABLES, marks_of, turn_number
from longtable.memory.messages.rounds import all_calls, is_users
from longtable.nodes.tooling.tool_call import call_database
from longtable.store.records.knowledge_records import KnowledgeRecords

STORE = Place("store")
"""The place of a query that is kept in the store."""
_TEXTS = ("name", "question", "sql", "checked_by", "checked_on")
Asked = tuple[str, str, str]
"""A question, the SQL that answered it, and the name of its database, "" if there was only one."""


def query_of_turn(messages: Sequence[BaseMessage], turn: int | None) -> Asked:
    """Return the question of a turn, and the SQL and database of its last query that gave a result.
    If `turn` is None, it is the newest turn with such a query.

    Raises `NothingToKeepError` if there is none.
    """
    answered = [
        message
        for message in messages
        if TABLES in marks_of(message) and turn in (None, turn_number(message))
    ]
    if not answered:
        if turn is None:
            raise NothingToKeepError(
                "no turn of this thread ran a query that gave a result: ask one first"
            )
        raise NothingToKeepError(f"turn {turn} is not there or ran no query that gave a result")
    newest = answered[-1]
    number = turn_number(newest)
    of_turn = [
        message
        for message in messages
        if isinstance(message, AIMessage) and turn_number(message) == number
    ]
    calls = chain.from_iterable(map(all_calls, of_turn))
    call_id = getattr(newest, "tool_call_id", "")
    edited = tool_report(newest).get("sql")
    args = next((call["args"] for call in calls if call["id"] == call_id), {})
    sql = str(args.get("sql", ""))
    if edited is not None:
        sql = edited  # a person put it in place of the model's
    database = tool_report(newest).get("database") or call_database(args)
    return question_of_turn(messages, number), sql, database


def query_to_keep(
    messages: Sequence[BaseMessage],
    turn: int | None,
    *,
    question: str | None,
    sql: str | None,
    by: str,
    now: datetime,
    database: str = "",
) -> VerifiedQuery:
    """Return the question of a turn with the SQL that answered it, or with the SQL that should have
    run, as a query without a name. The arguments are those of `Conversation.keep`.

    Raises `NothingToKeepError` if there is none.
    """
    if sql is None:
        asked, sql, database = query_of_turn(messages, turn)
    else:
        asked = question or question_of_turn(messages, turn)
        database = database or database_of_turn(messages, turn)
    return VerifiedQuery(
        name="",
        question=question or asked,
        sql=sql,
        checked_by=by,
        checked_on=now.date().isoformat(),
        database=database,
    )


def database_of_turn(messages: Sequence[BaseMessage], turn: int | None) -> str:
    """Return the database that a turn asked, "" if it asked none."""
    try:
        return query_of_turn(messages, turn)[2]
    except NothingToKeepError:
        return ""


def question_of_turn(messages: Sequence[BaseMessage], turn: int | None) -> str:
    """Return the question of a turn, or of the newest if `turn` is None.

    Raises `NothingToKeepError` if there is none.
    """
    questions = [each for each in messages if is_users(each) and turn in (None, turn_number(each))]
    if not questions:
        raise NothingToKeepError(
            "there is no question to keep: ask one first, or name another turn"
        )
    number = turn_number(questions[-1])
    return next(str(each.text) for each in questions if turn_number(each) == number)


def keep_query(
    folder: KnowledgeFolder, query: VerifiedQuery, store: BaseStore | None, time: str
) -> VerifiedQuery:
    """Write a query into a knowledge folder, or into the store if the folder's files cannot be
    written. Return it as it was written; its `place` says where. A query that is there already,
    with its question and SQL, is returned and not written again. `time`: now, in ISO 8601.

    Raises `ConfigError` if the database of the folder cannot plan the query,
    `KnowledgeNotWritableError` without a store, and the errors of `add_query`.
    """
    fault = folder.fault_of(query)
    if fault:
        raise ConfigError(
            f"the query cannot run, so it is not kept: {fault}", name="sql", wanted="SQL that runs"
        )
    records = None if store is None else KnowledgeRecords(store, folder.path)
    if records is not None:
        teach_kept(folder, records)
    try:
        return folder.add_query(query)
    except KnowledgeNotWritableError:
        if records is None:
            raise
    kept = folder.named(query)
    fields = {
        "name": kept.name,
        "question": kept.question,
        "wordings": [*kept.wordings],
        "sql": kept.sql,
        "checked_by": kept.checked_by,
        "checked_on": kept.checked_on,
        "time": time,
    }
    if kept.database:
        fields["database"] = kept.database
    records.keep(fields)
    teach_kept(folder, records)
    return replace(kept, place=STORE)


def remove_entry(folder: KnowledgeFolder, name: str, store: BaseStore | None) -> bool:
    """Delete the query or the term of a name from a knowledge folder and its records in the store.
    Return False if there is none. Raises the errors of `KnowledgeFolder.remove`.
    """
    if store is None:
        return folder.remove(name)
    records = KnowledgeRecords(store, folder.path)
    teach_kept(folder, records)
    for query in folder.current().queries:
        if query.name == name and query.place == STORE:
            records.forget(query.question, query.sql, query.database)
            teach_kept(folder, records)
            return True
    return folder.remove(name)


def teach_kept(folder: KnowledgeFolder, records: KnowledgeRecords) -> None:
    """Let a folder teach the queries that the store keeps for it. A record that is none is told as
    a problem of the folder.
    """
    queries: list[VerifiedQuery] = []
    problems: list[Problem] = []
    for fields in records.kept():
        query = _from_record(fields)
        if query is None:
            problems.append(Problem(STORE, "a record of the store is no query: it is left out"))
        else:
            queries.append(query)
    folder.also_teach(queries, problems)


def _from_record(fields: Mapping[str, Any]) -> VerifiedQuery | None:
    texts = {name: fields.get(name) for name in _TEXTS}
    wordings = fields.get("wordings")
    sound = isinstance(wordings, list) and all(isinstance(each, str) for each in wordings)
    database = fields.get("database", "")
    sound = sound and isinstance(database, str)
    if not sound or not all(isinstance(text, str) for text in texts.values()):
        return None
    return VerifiedQuery(
        name=str(texts["name"]),
        question=str(texts["question"]),
        wordings=wordings or [],
        sql=str(texts["sql"]),
        checked_by=str(texts["checked_by"]),
        checked_on=str(texts["checked_on"]),
        database=str(database),
        place=STORE,
    )
