"""Keep why a turn failed, from its failure until the next turn begins, which takes it into the
thread's edits.

A run that fails cannot write the thread's state.
"""

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from longtable.base.events import Failed
from longtable.base.stored import thread_namespace
from longtable.memory.thread import Edit
from longtable.store.records.retired import DAMAGED


def keep_failure(store: BaseStore, thread_id: str, turn: int, event: Failed) -> None:
    """Write why a turn failed, in place of an earlier failure of this turn."""
    value = {name: event[name] for name in ("code", "text", "retry_after")}
    store.batch([PutOp(thread_namespace("failures", thread_id), str(turn), value, False)])


def failure_edit(store: BaseStore, thread_id: str, turn: int) -> Edit | None:
    """Return the edit that says why a turn failed, None if nothing is kept of a failure."""
    (item,) = store.batch([GetOp(thread_namespace("failures", thread_id), str(turn))])
    if not isinstance(item, Item) or DAMAGED in item.value:
        return None
    known = item.value
    code = str(known.get("code"))
    edit = Edit(id=f"fail-{turn}-{code}", op="fail", turn=turn, code=code)
    edit["text"] = str(known.get("text") or "")
    edit["retry_after"] = known.get("retry_after")
    return edit


def forget_failure(store: BaseStore, thread_id: str, turn: int) -> None:
    """Delete what is kept of a turn's failure."""
    store.batch([PutOp(thread_namespace("failures", thread_id), str(turn), None)])
