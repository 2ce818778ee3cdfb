"""Tokens that threads took, by day, thread and model."""

from collections.abc import Sequence

from longtable.graph.errors import ThreadNotFoundError
from longtable.graph.listing import MOST_THREADS, ThreadInfo, alist_threads, list_threads
from longtable.graph.persistence import Persistence
from longtable.graph.reading import reader
from longtable.graph.steps import Steps, arun, run
from longtable.graph.transcripts import Whole, load_steps
from longtable.memory.spent import By, Spent, added, spent_of

ALL: tuple[By, ...] = ("day", "thread", "model")


def usage_of_threads(
    persistence: Persistence, *, by: Sequence[By] = ALL, owner: str | None = None, all_owners: bool = False
) -> list[Spent]:
    """Return the tokens that an owner's threads took, added up `by` day, thread and model; `pandas.DataFrame` takes the list.

    What an answer's provider reported, else an estimate, marked. Calls of the summariser leave no message: they are not in it.
    """
    infos = list_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return added(run(_all(infos), reader(persistence)), by)


async def ausage_of_threads(
    persistence: Persistence, *, by: Sequence[By] = ALL, owner: str | None = None, all_owners: bool = False
) -> list[Spent]:
    """Return the tokens that an owner's threads took: see `usage_of_threads`."""
    infos = await alist_threads(persistence, limit=MOST_THREADS, owner=owner, all_owners=all_owners)
    return added(await arun(_all(infos), reader(persistence)), by)


def spent_in(whole: Whole) -> list[Spent]:
    """Return what one thread took, by day and model. Pure."""
    brief = whole.kept.get("brief") or {}
    model = str(brief.get("model") or whole.entry.get("model") or "")
    return spent_of(whole.messages, thread=whole.thread_id, model=model, encoding=str(brief.get("encoding") or "o200k_base"))


def _all(infos: Sequence[ThreadInfo]) -> Steps[list[Spent]]:
    spent: list[Spent] = []
    for info in infos:
        try:
            whole, _ = yield from load_steps(info.thread_id, info.owner)
        except ThreadNotFoundError:  # deleted since it was listed
            continue
        spent += spent_in(whole)
    return spent
