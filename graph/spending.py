"""Tokens that threads took, by day, thread and model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from longtable.graph.damage import Report, log_damaged, skipping
from longtable.graph.listing import MOST_THREADS, ThreadInfo, alist_threads, list_threads
from longtable.graph.persistence import Persistence
from longtable.graph.reading import reader
from longtable.graph.steps import Steps, arun, run
from longtable.graph.transcripts import Whole, load_steps
from longtable.memory.merging import unmerged
from longtable.memory.spent import By, Price, Spent, added, priced, spent_of, spent_on

ALL: tuple[By, ...] = ("day", "thread", "model")


def usage_of_threads(
    persistence: Persistence,
    *,
    by: Sequence[By] = ALL,
    prices: Mapping[str, Price] | None = None,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[Spent]:
    """Return the tokens that an owner's threads took, added up `by` day, thread, model or project; `pandas.DataFrame` takes the list.

    What an answer's provider reported, else an estimate, marked; with `prices` also what it cost. The summariser's calls for
    memories that were taken are in it. `on_damaged` is called for each thread that cannot be read; by default the log says it.
    """
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return added(_costed(run(_all(infos, on_damaged, all_owners=all_owners), reader(persistence)), prices), by)


async def ausage_of_threads(
    persistence: Persistence,
    *,
    by: Sequence[By] = ALL,
    prices: Mapping[str, Price] | None = None,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[Spent]:
    """Return the tokens that an owner's threads took: see `usage_of_threads`."""
    infos = await alist_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return added(_costed(await arun(_all(infos, on_damaged, all_owners=all_owners), reader(persistence)), prices), by)


def spent_in(whole: Whole, prices: Mapping[str, Price] | None = None) -> list[Spent]:
    """Return what one thread took, by day and model. Pure."""
    brief = whole.kept.get("brief") or {}
    model = str(brief.get("model") or whole.entry.get("model") or "")
    rows = spent_of(whole.messages, thread=whole.thread_id, model=model, encoding=str(brief.get("encoding") or "o200k_base"))
    rows = added([*rows, *spent_on(unmerged(whole.retired, whole.compactions), thread=whole.thread_id)], ALL)
    return _costed([replace(row, project=str(whole.entry.get("project") or "")) for row in rows], prices)


def _costed(rows: list[Spent], prices: Mapping[str, Price] | None) -> list[Spent]:
    return rows if prices is None else priced(rows, prices)


def _all(infos: Sequence[ThreadInfo], on_damaged: Report, *, all_owners: bool) -> Steps[list[Spent]]:
    spent: list[Spent] = []
    for info in infos:
        with skipping(on_damaged):
            whole, _ = yield from load_steps(info.thread_id, info.owner, all_owners=all_owners)
            spent += spent_in(whole)
    return spent
