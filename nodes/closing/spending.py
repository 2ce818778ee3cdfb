"""Keep the tokens that turns used on a server outside of their threads, because the server can
delete a thread without telling us.

There is one item for each turn, in the thread's namespace "spent". An item is counted only after
its thread is gone; until then the thread itself is counted.
"""

from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from longtable.base.stored import thread_namespace
from longtable.memory.counting.usage import Spent, spent_of, spent_on
from longtable.memory.messages.marks import turn_number
from longtable.nodes.state import Now, Update
from longtable.store.records.thread_index import entry_of, owner_of

ENDINGS = ("settle", "prepare")
"""The nodes that may be the last of a turn."""


def keep_spending(before: Now, update: Update) -> None:
    """On a server, store how many tokens the newest turn has used. `update` is the update of the
    turn's last node.
    """
    thread_id = before.thread_id
    runtime = before.runtime
    if runtime.server_info is None or runtime.store is None or thread_id is None:
        return
    now = before.after(update)
    turn = now.turn
    number = turn.get("number", 0)
    with suppress(Exception):  # the answer has streamed
        project = str(entry_of(runtime.store, thread_id).get("project") or "")
        rows = [replace(row, project=project) for row in _spent_in_turn(now, number, thread_id)]
        value = {"owner": owner_of(turn), "thread": thread_id, "rows": list(map(asdict, rows))}
        if rows:
            runtime.store.put(thread_namespace("spent", thread_id), str(number), value, index=False)


def _spent_in_turn(now: Now, number: int, thread_id: str) -> list[Spent]:
    thread = now.thread
    calls = spent_of(
        [message for message in thread.messages if turn_number(message) == number],
        thread=thread_id,
        model=now.config.get("model") or "",
        encoding=now.config.get("encoding") or "o200k_base",
    )
    summaries = [record for record in thread.compactions if record.get("turn") == number]
    return calls + spent_on(summaries, thread=thread_id)


def rows_of(value: dict[str, Any]) -> list[Spent]:
    """Return the usage rows in a stored item whose thread is gone."""
    return [Spent(**{**row, "thread": "deleted"}) for row in value["rows"]]
