"""Read the audit of one thread or of all that an owner may see."""

from collections.abc import Sequence
from dataclasses import asdict

from langgraph.store.base import Item, SearchOp

from longtable.base.errors import ConfigError
from longtable.base.store_keys import thread_namespace
from longtable.graph.damage import Report, log_damaged, readable, skipping
from longtable.graph.listing import MOST_THREADS, alist_threads, list_threads
from longtable.graph.persistence import Persistence
from longtable.graph.reading import reader
from longtable.graph.steps import Batch, Steps, arun, run
from longtable.graph.transcripts import seen_steps
from longtable.nodes.records.audit import AuditEntry

MOST_ENTRIES = 1_000_000


def audit_steps(thread_id: str, owner: str | None, *, all_owners: bool = False) -> Steps[list[AuditEntry]]:
    """Return a thread's queries, the oldest first. Raises `ThreadNotFoundError` where it is not there, or is another's."""
    yield from seen_steps(thread_id, owner, all_owners=all_owners)
    namespace = thread_namespace("audit", thread_id)
    (found,) = yield Batch([SearchOp(namespace, limit=MOST_ENTRIES)])
    if found is None:
        raise ConfigError("the audit is kept in a store: compile the graph with it, graph.compile(..., store=...)")
    with readable(thread_id, "its audit"):
        entries = [AuditEntry.from_json(item.value) for item in found if isinstance(item, Item) and tuple(item.namespace) == namespace]
        return sorted(entries, key=lambda entry: (entry.turn, entry.time, entry.key))


def audit_of_threads(
    persistence: Persistence, *, owner: str | None = None, all_owners: bool = False, on_damaged: Report = log_damaged
) -> list[tuple[str, AuditEntry]]:
    """Return the queries of every thread an owner may see, each with its thread's id, the oldest first.

    `on_damaged` is called for each thread that cannot be read; by default the log says it.
    """
    found: list[tuple[str, AuditEntry]] = []
    for info in list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners):
        with skipping(on_damaged):
            entries = run(audit_steps(info.thread_id, owner, all_owners=all_owners), reader(persistence))
            found += [(info.thread_id, entry) for entry in entries]
    return _by_time(found)


async def aaudit_of_threads(
    persistence: Persistence, *, owner: str | None = None, all_owners: bool = False, on_damaged: Report = log_damaged
) -> list[tuple[str, AuditEntry]]:
    """Return the queries of every thread an owner may see: see `audit_of_threads`."""
    found: list[tuple[str, AuditEntry]] = []
    for info in await alist_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners):
        with skipping(on_damaged):
            entries = await arun(audit_steps(info.thread_id, owner, all_owners=all_owners), reader(persistence))
            found += [(info.thread_id, entry) for entry in entries]
    return _by_time(found)


def _by_time(found: Sequence[tuple[str, AuditEntry]]) -> list[tuple[str, AuditEntry]]:
    return sorted(found, key=lambda pair: (pair[1].time, pair[0], pair[1].key))


def row_of(thread_id: str, entry: AuditEntry) -> dict[str, object]:
    """Return an entry as one flat row: lists as one text, for a table or a file."""
    plain = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in asdict(entry).items() if name != "key"}
    return {"thread": thread_id, **plain}
