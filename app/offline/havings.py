"""Put conditions on groups in their place: 'towns with at least 5 clients, and how many', 'more than 3000 altogether'."""

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.draft import Draft, Filter, Having

_FEW = frozenset(["<", "<="])


def settle_havings(draft: Draft, catalog: Catalog) -> None:
    """Turn a draft so that its counts and sums of groups are conditions on the groups."""
    _summed(draft)
    _totals(draft, catalog)
    _and_how_many(draft, catalog)


def _summed(draft: Draft) -> None:
    """'purposes that raised more than 3000 altogether': the number is compared with the sum of each."""
    if [func for func, chunk in draft.aggs if chunk is None] != ["sum"] or len(draft.aggs) != 1 or draft.groups or draft.counts:
        return
    subject = _subject(draft)
    found = [item for item in draft.filters if subject is not None and _is_sum(item, subject.order)]
    if subject is None or len(found) != 1 or found[0].mention is None:
        return
    item = found[0]
    draft.filters = [each for each in draft.filters if each is not item]
    high = item.numbers[1] if item.kind == "between" else None
    draft.havings.append(Having(item.op, item.numbers[0], item.mention, high=high, func="sum"))  # type: ignore[arg-type]  # numbers of a comparison
    draft.aggs = []


def _totals(draft: Draft, catalog: Catalog) -> None:
    """'buyers with total sales of more than 3000': the amounts of another table are added up, no single one is so large."""
    subject = _subject(draft)
    table = entity(subject) if subject is not None else ""
    if subject is None or not table or draft.groups or draft.counts or draft.aggs or draft.sups:
        return
    for item in draft.filters:
        if item.mention is None or not _is_sum(item, subject.order) or not item.mention.text.lower().startswith("total "):
            continue
        column = catalog.column(item.mention.hits[0].table, item.mention.hits[0].column)
        children = {link.many for link in catalog.links if link.one == table}
        if column is None or "total" in column.words or column.table not in children:
            continue
        high = item.numbers[1] if item.kind == "between" else None
        draft.filters = [each for each in draft.filters if each is not item]
        draft.havings.append(Having(item.op, item.numbers[0], item.mention, high=high, func="sum"))  # type: ignore[arg-type]  # numbers of a comparison
        return


def _is_sum(item: Filter, order: int) -> bool:
    """Say whether a condition compares a measure named after the subject with a number."""
    compared = item.kind == "between" or (item.kind == "compare" and item.op in (">", ">=", "<", "<="))
    measured = item.mention is not None and not entity(item.mention) and any(hit.numeric for hit in item.mention.hits)
    return compared and measured and item.mention is not None and item.mention.order > order and not item.negated


def _and_how_many(draft: Draft, catalog: Catalog) -> None:
    """'studios with at least 3 titles, and how many': the count of each is shown too."""
    subject = _subject(draft)
    if len(draft.counts) != 1 or draft.aggs or draft.groups or draft.sups or draft.percent or draft.absent or subject is None:
        return
    counted, again = _counted(draft, subject, catalog), draft.counts[0]
    chunk = counted.counted if counted is not None else None
    if counted is None or chunk is None or counted.op in _FEW or counted.func != "count" or subject.order > chunk.order:
        return
    if again is not None and (again.order < chunk.order or _meant(again) != _meant(chunk)):
        return
    if again is None and not {"how", "number", "count"} & set(draft.words[chunk.order :]):
        return
    draft.counts, draft.groups, draft.havings = [chunk], [subject], [counted]
    draft.targets = [each for each in draft.targets if each is not subject and each.hits and not entity(each) and each.order < chunk.order]


def _meant(chunk: Chunk) -> tuple[str, str]:
    return (table, "") if (table := entity(chunk)) else (chunk.hits[0].table, chunk.hits[0].column) if chunk.hits else ("", "")


def _counted(draft: Draft, subject: Chunk, catalog: Catalog) -> Having | None:
    """Return the one condition on a count; a number compared with a column of texts beside the subject counts its rows."""
    table = entity(subject)
    if len(draft.havings) == 1:
        counted = draft.havings[0].counted
        return draft.havings[0] if counted is not None and (not table or entity(counted) != table) else None
    if draft.havings or table:
        return None
    for item in draft.filters:
        if item.kind != "compare" or item.mention is None or item.dimension or len(item.numbers) != 1 or entity(item.mention):
            continue
        hit, number = item.mention.hits[0], item.numbers[0]
        column = catalog.column(hit.table, hit.column)
        texts = column is not None and not column.is_number and not column.is_date
        if hit.table == subject.hits[0].table and texts and isinstance(number, int | float):
            draft.filters = [other for other in draft.filters if other is not item]
            return Having(item.op, number, item.mention)
    return None


def _subject(draft: Draft) -> Chunk | None:
    """Return what is asked for: the first thing or column to be shown."""
    return draft.targets[0] if draft.targets and draft.targets[0].hits else None
