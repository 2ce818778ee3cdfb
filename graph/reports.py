"""What threads ran and what they cost: the audit of their queries, their tokens, and a table of prices."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from langgraph.store.base import Item, SearchOp

from longtable.base.errors import ConfigError
from longtable.base.store_keys import thread_namespace
from longtable.base.twins import a_from
from longtable.graph.loading import Report, log_damaged, readable, skip_unreadable
from longtable.graph.persistence import Persistence, storage_errors
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.threads import MOST_THREADS, list_threads
from longtable.graph.transcripts import ThreadRecord, find_thread, load_thread
from longtable.memory.merging import unmerged
from longtable.memory.spent import By, Price, Spent, added, price_rows, spent_of, spent_on
from longtable.nodes.records.audit import AuditEntry

MOST_ENTRIES = 1_000_000
ALL: tuple[By, ...] = ("day", "thread", "model", "purpose")
PRICE_FIELDS = {"input", "output", "cached", "reasoning"}

# -- audit ----------------------------------------------------------------------------------------------------------


def audit_of(threads: StoredThreads, thread_id: str, owner: str | None, *, all_owners: bool = False) -> list[AuditEntry]:
    """Return a thread's queries, the oldest first. Raises `ThreadNotFoundError` where it is not there, or is another's."""
    with storage_errors():
        find_thread(threads, thread_id, owner, all_owners=all_owners)
        namespace = thread_namespace("audit", thread_id)
        (items,) = threads.batch([SearchOp(namespace, limit=MOST_ENTRIES)])
    if items is None:
        raise ConfigError("the audit is kept in a store: compile the graph with it, graph.compile(..., store=...)")
    with readable(thread_id, "its audit"):
        entries = [AuditEntry.from_json(item.value) for item in items if isinstance(item, Item) and tuple(item.namespace) == namespace]
        return sorted(entries, key=lambda entry: (entry.turn, entry.time, entry.key))


def audit_of_threads(
    persistence: Persistence | StoredThreads, *, owner: str | None = None, all_owners: bool = False, on_damaged: Report = log_damaged
) -> list[tuple[str, AuditEntry]]:
    """Return the queries of every thread an owner may see, each with its thread's id, the oldest first.

    `on_damaged` is called for each thread that cannot be read; by default the log says it.
    """
    threads = threads_in(persistence)
    entries: list[tuple[str, AuditEntry]] = []
    for info in list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners):
        with skip_unreadable(on_damaged):
            entries += [(info.thread_id, entry) for entry in audit_of(threads, info.thread_id, owner, all_owners=all_owners)]
    return sorted(entries, key=lambda pair: (pair[1].time, pair[0], pair[1].key))


aaudit_of_threads = a_from(audit_of_threads)


def row_of(thread_id: str, entry: AuditEntry) -> dict[str, object]:
    """Return an entry as one flat row: lists as one text, for a table or a file."""
    plain = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in asdict(entry).items() if name != "key"}
    return {"thread": thread_id, **plain}


# -- tokens ---------------------------------------------------------------------------------------------------------


def usage_of_threads(
    persistence: Persistence | StoredThreads,
    *,
    by: Sequence[By] = ALL,
    prices: Mapping[str, Price] | None = None,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[Spent]:
    """Return the tokens that an owner's threads took, added up `by` day, thread, model, project or purpose.

    What an answer's provider reported, else an estimate, marked; with `prices` also what it cost. The summariser's calls for
    memories that were taken are rows of the purpose "summary". `pandas.DataFrame` takes the list. `on_damaged` is called
    for each thread that cannot be read; by default the log says it.
    """
    threads = threads_in(persistence)
    spent: list[Spent] = []
    for info in list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners):
        with skip_unreadable(on_damaged):
            whole, _ = load_thread(threads, info.thread_id, info.owner, all_owners=all_owners)
            spent += spent_in(whole)
    return added(_with_costs(spent, prices), by)


ausage_of_threads = a_from(usage_of_threads)


def spent_in(whole: ThreadRecord, prices: Mapping[str, Price] | None = None) -> list[Spent]:
    """Return what one thread took, by day and model. Pure."""
    brief = whole.channels.get("brief") or {}
    model = str(brief.get("model") or whole.entry.get("model") or "")
    rows = spent_of(whole.messages, thread=whole.thread_id, model=model, encoding=str(brief.get("encoding") or "o200k_base"))
    rows = added([*rows, *spent_on(unmerged(whole.retired, whole.compactions), thread=whole.thread_id)], ALL)
    return _with_costs([replace(row, project=str(whole.entry.get("project") or "")) for row in rows], prices)


def _with_costs(rows: list[Spent], prices: Mapping[str, Price] | None) -> list[Spent]:
    return rows if prices is None else price_rows(rows, prices)


# -- prices ---------------------------------------------------------------------------------------------------------


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices by model name or pattern, from a TOML or JSON file with a table for each model.

        ["gpt-4o-mini*"]
        input = 0.15
        cached = 0.075
        output = 0.60

    Raises `ConfigError` that names file, model and field."""
    try:
        text = path.read_text(encoding="utf-8")
        table: Any = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:  # missing, no UTF-8, no TOML, no JSON
        why = (error.strerror if isinstance(error, OSError) else "it is not UTF-8" if isinstance(error, UnicodeError) else None) or error
        raise ConfigError(f"the price table {path.name!r} cannot be read: {why}") from error
    if not isinstance(table, dict) or not table:
        raise ConfigError(f'the price table {path.name!r} must hold a table for each model, as in ["gpt-4o-mini"] input = 0.15')
    return {str(model): _price(path.name, str(model), fields) for model, fields in table.items()}


def _price(file: str, model: str, fields: Any) -> Price:
    where = f"the price table {file!r}, model {model!r}"
    if not isinstance(fields, dict):
        raise ConfigError(f"{where}: give input and output, found {fields!r}")
    if unknown := sorted(set(fields) - PRICE_FIELDS):
        raise ConfigError(f"{where}: there is no {unknown[0]!r}, only {', '.join(sorted(PRICE_FIELDS))}")
    if missing := sorted({"input", "output"} - set(fields)):
        raise ConfigError(f"{where}: {missing[0]} is missing")
    try:
        return Price(**fields)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
