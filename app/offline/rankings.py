"""Read 'best-selling', 'most sold', 'sold the most', 'most rented': a ranking by what the table of such events holds."""

from longtable.app.offline.catalog import Catalog, Table
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import entity, priced_quantity
from longtable.app.offline.lexicon import PARTICIPLES, VERB_TABLES
from longtable.app.offline.lexicon_events import events, events_of
from longtable.app.offline.linking import Hit
from longtable.app.offline.text import stem

_SELLING = frozenset(["best-selling", "best selling", "top-selling", "top selling", "worst-selling", "worst selling"])
_NO_EVENT = frozenset(["based", "used", "named", "called", "located", "paid", "rated", "priced", "valued", "ranked", "scored"])


def rankings(chunks: list[Chunk], catalog: Catalog) -> None:
    """Put such a ranking into the plain form 'the products with the most quantity', 'the bikes with the most rentals'."""
    for place, each in enumerate(chunks):
        if each.is_op("sup") and each.text.lower() in _SELLING:
            if any(later.is_op("by") for later in chunks[place:]):
                each.op, each.arg = "top", each.arg.partition(":")[0]
                _number_after(chunks, place)
                return
            _rank(chunks, place, None, "sold", catalog)
            return
        if not each.is_op("most") or each.text.lower() not in ("most", "least"):
            continue
        verb = _verb_beside(chunks, place)
        if verb is not None and not any(later.is_op("by") for later in chunks[place:]):
            _rank(chunks, place, verb, verb.word, catalog)
            return


def _number_after(chunks: list[Chunk], place: int) -> None:
    """Put a number behind 'top': our two best-selling products are the top two."""
    if place and chunks[place - 1].kind == "number":
        chunks[place - 1], chunks[place] = chunks[place], chunks[place - 1]
        chunks[place - 1].place, chunks[place].place = chunks[place].place, chunks[place - 1].place
        _renumber(chunks)


def _verb_beside(chunks: list[Chunk], place: int) -> Chunk | None:
    """Return the participle right after 'most', before a thing, or just before it at the end."""
    following = chunks[place + 1 : place + 3]
    if len(following) == 2 and _is_event(following[0]) and following[1].kind == "mention" and entity(following[1]):
        return following[0]
    rest = [each for each in chunks[place + 1 :] if each.kind not in ("comma", "filler") and each.word not in ("in", "often")]
    before = [each for each in chunks[max(0, place - 2) : place] if each.word not in ("the", "is", "was", "were", "are")]
    return before[-1] if before and _is_event(before[-1]) and all(each.kind in ("time", "number") for each in rest) else None


def _is_event(each: Chunk) -> bool:
    past = (each.word.endswith("ed") and len(each.word) > 4) or each.word in PARTICIPLES
    return each.kind in ("filler", "word") and past and each.word not in _NO_EVENT


def _rank(chunks: list[Chunk], place: int, verb: Chunk | None, word: str, catalog: Catalog) -> None:
    things = [each for each in chunks if each.kind == "mention" and entity(each)]
    thing = things[0] if things else None
    table = _records(entity(thing), word, catalog) if thing is not None else None
    if thing is None or table is None or len(things) > 1:
        return
    most = chunks[place]
    pair = priced_quantity(table)
    hit = Hit(table.name, pair[1].name, 1.0, numeric=True) if pair else Hit(table.name, "", 1.0)
    what = Chunk("mention", pair[1].name if pair else table.name, table.words[-1], hits=(hit,))
    sign = "min" if most.arg.startswith("min") else "max"
    most.op, most.arg, most.text, most.word = "most", sign, "most" if sign == "max" else "fewest", "most" if sign == "max" else "fewest"
    if verb is not None:
        chunks.remove(verb)
    at = chunks.index(most)
    after = at + 1
    if chunks.index(thing) > at:
        chunks.remove(thing)
        chunks.insert(at, thing)
        after = at + 2
    chunks.insert(after, what)
    for order, each in enumerate(chunks):
        each.place = order
    _renumber(chunks)


def _renumber(chunks: list[Chunk]) -> None:
    for order, each in enumerate(chunks):
        each.order = order


def _records(thing: str, word: str, catalog: Catalog) -> Table | None:
    """Return the one table of many rows for each thing that records such events: by its name, its date, or a priced quantity."""
    roots = {stem(VERB_TABLES.get(word, word)), stem(word)}
    near = [table for link in catalog.links if link.one == thing and (table := catalog.table(link.many)) is not None]
    near = list({table.name: table for table in near}.values())
    if word == "sold" and len(priced := [table for table in near if priced_quantity(table)]) == 1:
        return priced[0]
    named = [table for table in near if roots & set(map(stem, table.words))]
    told = named or [t for t in near if any(c.is_date and events(word) & events_of(c.words) for c in t.columns)]
    return told[0] if len(told) == 1 else None
