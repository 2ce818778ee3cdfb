"""Reports on threads: the audit of their queries, the tokens they took, and their cost by a table
of prices.
"""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from langgraph.store.base import Item, SearchOp

from longtable.base.concurrency import a_from
from longtable.base.errors import ConfigError
from longtable.base.stored import AUDIT, SPENDING, SPENT, USAGE, Namespace, thread_namespace
from longtable.graph.listing.thread_list import visible_entries
from longtable.graph.listing.thread_states import OnIndexed, states_of
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import find_thread, load_thread, spent_in, usage_key
from longtable.memory.counting.prices import Price, price_rows
from longtable.memory.counting.provider_reports import UNKNOWN
from longtable.memory.counting.usage import By, Spent, added
from longtable.nodes.closing.spending import rows_of
from longtable.nodes.tooling.audit import AuditEntry
from longtable.store.damage import Report, log_damaged, readable, skip_unreadable
from longtable.store.persistence import Persistence
from longtable.store.records.item_values import values_in
from longtable.store.records.thread_index import Entry, may_see, names_owner, owner_of
from longtable.store.records.thread_spending import Row, Spending, added_rows, keep_spending_of
from longtable.store.storage_errors import storage_errors

MOST_ENTRIES = 1_000_000
FEW_THREADS = 100
ALL: tuple[By, ...] = ("day", "thread", "model", "purpose", "voice")
TIMES = {7: "%Y-%m", 10: "%Y-%m-%d", 13: "%Y-%m-%dT%H"}
PRICE_FIELDS = {"input", "output", "cached", "reasoning", "cache_write"}

# -- audit -----------------------------------------------------------------------------------------


def audit_of(
    threads: StoredThreads, thread_id: str, owner: str | None, *, all_owners: bool = False
) -> list[AuditEntry]:
    """Return the queries of a thread, the oldest first. Raises `ThreadNotFoundError` if the thread
    does not exist or belongs to another owner, `ConfigError` if there is no store.
    """
    with storage_errors():
        find_thread(threads, thread_id, owner, all_owners=all_owners)
        namespace = thread_namespace("audit", thread_id)
        (items,) = threads.batch([SearchOp(namespace, limit=MOST_ENTRIES)])
    if items is None:
        raise ConfigError(
            "the audit is kept in a store: compile the graph with it, graph.compile(..., store=...)"
        )
    entries = _audit_in(thread_id, [item for item in items if tuple(item.namespace) == namespace])
    return sorted(entries, key=lambda entry: (entry.turn, entry.time, entry.key))


def audit_of_threads(
    persistence: Persistence | StoredThreads,
    *,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[tuple[str, AuditEntry]]:
    """Return the queries of all threads that an owner may see, the oldest first. Each comes with
    the id of its thread.

    `on_damaged` is called for each thread that cannot be read; by default it writes to the log.
    """
    threads = threads_in(persistence)
    visible = visible_entries(threads, owner, all_owners=all_owners)
    with storage_errors():
        stored = _stored_audits(threads, [thread_id for thread_id, _ in visible])
    pairs: list[tuple[str, AuditEntry]] = []
    for thread_id, entry in visible:
        with skip_unreadable(on_damaged):
            if not names_owner(entry):
                audit = audit_of(threads, thread_id, owner, all_owners=all_owners)
            else:
                audit = _audit_in(thread_id, stored.get(thread_namespace("audit", thread_id), ()))
            pairs += [(thread_id, each) for each in audit]
    return sorted(pairs, key=lambda pair: (pair[1].time, pair[0], pair[1].key))


def _stored_audits(
    threads: StoredThreads, thread_ids: Sequence[str]
) -> Mapping[Namespace, Sequence[Item]]:
    """Return the queries of threads by namespace, as they are stored. A few threads are asked for
    one by one, many together with all others, if these are not too many.
    """
    if len(thread_ids) > FEW_THREADS:
        (items,) = threads.batch([SearchOp(AUDIT, limit=MOST_ENTRIES)])
        if len(items or ()) < MOST_ENTRIES:
            return _by_namespace(items or ())
    namespaces = [thread_namespace("audit", thread_id) for thread_id in thread_ids]
    found = threads.batch([SearchOp(each, limit=MOST_ENTRIES) for each in namespaces])
    return _by_namespace(chain.from_iterable(items or () for items in found))


def _by_namespace(items: Iterable[Item]) -> Mapping[Namespace, Sequence[Item]]:
    sorted_out: dict[Namespace, list[Item]] = defaultdict(list)
    for item in items:
        sorted_out[tuple(item.namespace)].append(item)
    return sorted_out


def _audit_in(thread_id: str, items: Sequence[Item]) -> list[AuditEntry]:
    """Return stored queries of a thread. Raises `DamagedThreadError` if one cannot be read."""
    with readable(thread_id, "its audit"):
        return [AuditEntry.from_json(item.value) for item in items]


aaudit_of_threads = a_from(audit_of_threads)


def row_of(thread_id: str, entry: AuditEntry) -> dict[str, object]:
    """Return an entry as one flat row for a table or a file. A list becomes one text. The row names
    a database only if there were several.
    """
    plain = {
        name: ", ".join(value) if isinstance(value, tuple) else value
        for name, value in asdict(entry).items()
        if name != "key" and (value or name != "database")
    }
    return {"thread": thread_id, **plain}


# -- tokens ----------------------------------------------------------------------------------------


@storage_errors()
def usage_of_threads(
    persistence: Persistence | StoredThreads,
    *,
    by: Sequence[By] = ALL,
    prices: Mapping[str, Price] | None = None,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
    first: str = "",
    last: str = "",
    on_indexed: OnIndexed | None = None,
) -> list[Spent]:
    """Return the tokens that an owner's threads took, added up `by` hour, day, month, thread,
    model, project, purpose or voice.

    Counts are as the provider reported them. Where it reported none, they are estimates and
    marked. With `prices`, each row also has its cost. The summariser's calls for memories that were
    accepted have the purpose "summary". Deleted threads are included. `first` and `last` are the
    first and the last day, month or hour to include, in UTC, such as "2026-11-23", "2026-11" or
    "2026-11-23T09".

    `pandas.DataFrame` accepts the returned list. `on_damaged` is called for each thread that cannot
    be read; by default it writes to the log. `on_indexed` is called with the number of threads that
    were read, and of those to be read: all of them for the first report, later those that changed.
    """
    within([], first, last)  # raises for an invalid period before anything is read
    threads = threads_in(persistence)
    (items,) = threads.batch([SearchOp(USAGE, limit=MOST_ENTRIES)])
    deleted = {
        item.key: item.value
        for item in items or []
        if all_owners or may_see(item.value.get("owner"), owner)
    }
    (kept,) = threads.batch([SearchOp(SPENT, limit=MOST_ENTRIES)])
    spending = _spending_of(threads, owner, all_owners, on_damaged, on_indexed)
    rows = _rows(
        spending,
        deleted,
        [
            item.value
            for item in kept or []
            if all_owners or may_see(item.value.get("owner"), owner)
        ],
    )
    return _sums(rows, by, prices, first, last)


ausage_of_threads = a_from(usage_of_threads)


def _sums(
    rows: Iterable[Row],
    by: Sequence[By],
    prices: Mapping[str, Price] | None,
    first: str,
    last: str,
) -> list[Spent]:
    """Return the rows of a period, added up. Rows that agree in `by`, hour and model are added up
    first, so that few have to be compared and priced.
    """
    names: list[By] = [*by]
    if first or last:
        names.append("hour")
    if prices is not None:
        names.append("model")
    spent = within(added_rows(rows, names), first, last)
    return added(spent if prices is None else price_rows(spent, prices), by)


def _rows(
    spending: Iterable[tuple[str, Entry, Spending]],
    deleted: Mapping[str, Mapping[str, Any]],
    of_turns: Sequence[dict[str, Any]],
) -> Iterator[Row]:
    """Yield the rows of threads, then those of deleted threads.

    `deleted`: what deleted threads took, by their usage key. `of_turns`: what turns took; those
    whose thread is not among `spending` count.
    """
    counted: set[str] = set()
    usage_keys: set[str] = set()
    for thread_id, entry, took in spending:
        counted.add(thread_id)
        if took.rows:  # a thread whose deletion was cut short counts once
            yield from took.in_project(str(entry.get("project") or ""))
            usage_keys.add(took.usage_key)
    for value in of_turns:
        if value["thread"] not in counted:
            yield from map(vars, rows_of(value))
    for key, gone in deleted.items():
        if key not in usage_keys:
            yield from gone["rows"]


def _spending_of(
    threads: StoredThreads,
    owner: str | None,
    all_owners: bool,
    on_damaged: Report,
    on_indexed: OnIndexed | None,
) -> Iterator[tuple[str, Entry, Spending]]:
    """Yield id, entry in the index, and what it took, of each thread that can be read. Read only
    threads that changed since the last report, and those whose entry does not name their owner.
    """
    entries = visible_entries(threads, owner, all_owners=all_owners)
    states = states_of(threads, entries)
    changed = dict(entries)
    store = threads.optional_store
    for thread_id, value in values_in(store, SPENDING) if store is not None else ():
        entry = changed.get(thread_id)
        if entry is None or not names_owner(entry):
            continue
        known = Spending.from_json(value)
        if known is not None and known.state == states.get(thread_id):
            del changed[thread_id]
            yield thread_id, entry, known
    reading = threads.reading([*changed])
    for done, (thread_id, entry) in enumerate(changed.items()):
        if on_indexed is not None:
            on_indexed(done, len(changed))
        state = states.get(thread_id, "")
        spending: Spending | None = None
        with skip_unreadable(on_damaged):
            reader = owner_of(entry) if names_owner(entry) else owner
            whole, _ = load_thread(reading, thread_id, reader, all_owners=all_owners, entry=entry)
            spending = Spending.of(state, usage_key(whole), spent_in(whole))
        if spending is not None:
            if state:
                keep_spending_of(store, thread_id, spending)
            yield thread_id, entry, spending


def within(rows: list[Spent], first: str, last: str) -> list[Spent]:
    """Return the rows of a period; see `usage_of_threads` for `first` and `last`. An empty text
    leaves this end of the period open. Raises `ConfigError` for a text that is not a day, month or
    hour, or if the period ends before it begins.
    """
    for text in filter(None, (first, last)):
        try:
            datetime.strptime(text, TIMES.get(len(text.encode("utf-8", "replace")), ""))
        except ValueError:
            raise ConfigError(
                "give a day, month or hour as 2026-11-23, 2026-11 or 2026-11-23T09, found"
                f" {text[:40]!r}",
                name="from= / to=",
                wanted="2026-11-23 | 2026-11 | 2026-11-23T09",
            ) from None
    if first[: len(last)] > last[: len(first)]:
        raise ConfigError(
            f"a period ends after it begins, found {first} to {last}", says="period_order"
        )
    known = [row for row in rows if row.hour != UNKNOWN or not first + last]
    return [
        row for row in known if row.hour[: len(first)] >= first and row.hour[: len(last)] <= last
    ]


# -- prices ----------------------------------------------------------------------------------------


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices by model name or pattern, from a TOML or JSON file with a table for each
    model.

        ["gpt-4o-mini*"]
        input = 0.15
        cached = 0.075
        output = 0.60

    Raises `ConfigError`, which names file, model and field, if the file is not such a table.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        table: Any = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:  # missing, no UTF-8, no TOML, no JSON
        why = (
            error.strerror
            if isinstance(error, OSError)
            else "it is not UTF-8"
            if isinstance(error, UnicodeError)
            else None
        ) or error
        raise ConfigError(f"the price table {path.name!r} cannot be read: {why}") from error
    if not isinstance(table, dict) or not table:
        raise ConfigError(
            f'the price table {path.name!r} must hold a table for each model, as in ["gpt-4o-mini"]'
            " input = 0.15"
        )
    return {str(model): _price(path.name, str(model), fields) for model, fields in table.items()}


def _price(file: str, model: str, fields: Any) -> Price:
    where = f"the price table {file!r}, model {model!r}"
    if not isinstance(fields, dict):
        raise ConfigError(f"{where}: give input and output, found {fields!r}")
    if unknown := sorted(set(fields) - PRICE_FIELDS):
        raise ConfigError(
            f"{where}: there is no {unknown[0]!r}, only {', '.join(sorted(PRICE_FIELDS))}"
        )
    if missing := sorted({"input", "output"} - set(fields)):
        raise ConfigError(f"{where}: {missing[0]} is missing")
    try:
        return Price(**fields)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
