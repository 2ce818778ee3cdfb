"""Read words that say an event has not come: 'current agents' have not left, 'unpaid deliveries' have no date of payment."""

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.chunks import LACKING, Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.lexicon_events import ENDS, events, events_of
from longtable.app.offline.linking import date_hit

_THERE = frozenset(["current", "active", "existing", "serving", "present", "remaining"])
_EMPLOYED = frozenset(["employ", "employed", "work", "working", "serve", "serving"])
_UNDONE = {"outstanding": "paid", "pending": "finished", "unfinished": "finished", "incomplete": "finished"}


def lacking(chunks: list[Chunk], catalog: Catalog) -> None:
    """Turn such words into operations on the date column that must be empty."""
    named = [table for each in chunks if each.kind == "mention" and (table := catalog.table(entity(each))) is not None]
    for place, each in enumerate(chunks):
        if each.kind not in ("word", "filler") or each.name or each.quoted:
            continue
        following = chunks[place + 1] if place + 1 < len(chunks) else None
        found: list[Column] = []
        if each.word in _THERE and following is not None and following.kind == "mention":
            home = catalog.table(entity(following))
            found = _dated(home, ENDS) if home is not None else []
        elif each.word in ("currently", "still") and _EMPLOYED & {other.word for other in chunks[place:]}:
            found = [column for table in named for column in _dated(table, ENDS)]
        elif each.kind == "word" and (verb := _undone(each.word)):
            found = [column for table in named for column in _dated(table, events(verb))]
        if len(found) == 1:
            each.kind, each.op, each.arg = "op", "missing", LACKING
            each.hits = (date_hit(found[0]),)


def _undone(word: str) -> str:
    return _UNDONE.get(word) or (word[2:] if word.startswith("un") and len(word) > 5 and events(word[2:]) else "")


def _dated(table: Table, kinds: frozenset[str]) -> list[Column]:
    return [column for column in table.columns if column.is_date and kinds & events_of(column.words)]
