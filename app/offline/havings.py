"""Put conditions on groups in their place: 'towns with at least 5 clients, and how many', 'more than 3000 altogether'."""

# ruff: noqa: SIM905 - word lists read best as long lines of plain words

from longtable.app.offline.catalog import Catalog, Column
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.draft import Draft, Filter, Having
from longtable.app.offline.lexicon import MONEY_VERBS, VERB_TABLES
from longtable.app.offline.linking import Hit
from longtable.app.offline.measures import amounts_of
from longtable.app.offline.text import lemma, stem

_FEW = frozenset(["<", "<="])
_TAKEN = frozenset(
    ["brought", "bring", "brings", "took", "take", "taken", "made", "make", "received", "receive", "generated", "generate", "owe", "owes"]
)
_GATHERED = (
    MONEY_VERBS
    | _TAKEN
    | frozenset("logged worked sold bought drove driven flown clocked ordered produced delivered hauled booked used".split())
)


def settle_havings(draft: Draft, catalog: Catalog) -> None:
    """Turn a draft so that its counts and sums of groups are conditions on the groups."""
    _gathered(draft, catalog)
    _on_counts(draft)
    _summed(draft)
    _totals(draft, catalog)
    _and_how_many(draft, catalog)


def _gathered(draft: Draft, catalog: Catalog) -> None:
    """'spent over 200 on bookings', 'logged more than 200 hours': what someone did often is added up before it is compared."""
    subject = _subject(draft)
    whole = [func for func, chunk in draft.aggs if chunk is None] == ["sum"] and len(draft.aggs) == 1
    if subject is None or (draft.aggs and not whole) or draft.groups or draft.counts or draft.sups:
        return
    _gathered_amounts(draft, catalog)
    for item in draft.filters:
        if item.kind != "compare" or item.op == "=" or item.negated or item.dimension or not (_GATHERED & set(item.verbs[:3])):
            continue
        column = _gathered_column(item, draft, catalog)
        home = subject.hits[0].table
        if column is None or (column.table == home and entity(subject)):
            continue
        counted = Chunk("mention", column.name, hits=(Hit(column.table, column.name, 1.0, numeric=True),), order=subject.order + 1)
        draft.filters = [each for each in draft.filters if each is not item]
        draft.havings.append(Having(item.op, item.numbers[0], counted, func="sum"))  # type: ignore[arg-type]  # numbers of a comparison
        draft.targets = [each for each in draft.targets if each is subject or entity(each) != column.table]
        draft.aggs = []
        if column.table != home and not entity(subject):  # which categories brought in over 1000: a sum for each of them
            draft.targets, draft.groups, draft.aggs = draft.targets[1:], [subject], [("sum", counted)]
        return


def _gathered_amounts(draft: Draft, catalog: Catalog) -> None:
    """'brought in more than 1000 in sales', 'paid over 200 for stays': an amount, and no number of sales or stays."""
    for item in draft.havings:
        table = catalog.table(entity(item.counted)) if item.counted is not None and item.func == "count" else None
        order = item.counted.order if item.counted is not None else 0
        told = (MONEY_VERBS | _TAKEN) & set(draft.words[max(0, order - 7) : order])
        if table is None or not told or draft.words[order - 1] not in ("in", "of", "on", "for", "from"):
            continue
        if len(found := amounts_of(table)) == 1:
            item.func = "sum"
            item.counted = Chunk("mention", found[0].name, hits=(Hit(table.name, found[0].name, 1.0, numeric=True),), order=order)


def _gathered_column(item: Filter, draft: Draft, catalog: Catalog) -> Column | None:
    """Return what is added up: the measure named after the number, or the one amount of the table named there or that the verb tells."""
    if item.mention is not None:
        hit = item.mention.hits[0]
        plural = lemma(item.mention.word) != item.mention.word
        return catalog.column(hit.table, hit.column) if hit.numeric and not hit.is_table and plural else None
    if item.unit or not (MONEY_VERBS | _TAKEN) & set(item.verbs[:2]):
        return None
    named = [entity(chunk) for chunk in draft.targets[1:] if entity(chunk)]
    told = {stem(VERB_TABLES[verb]) for verb in item.verbs[:2] if verb in VERB_TABLES}
    named = named or [table.name for table in catalog.tables.values() if told & set(map(stem, table.words))]
    table = catalog.table(named[0]) if len(named) == 1 else None
    found = amounts_of(table) if table is not None else []
    return found[0] if len(found) == 1 else None


def _on_counts(draft: Draft) -> None:
    """'staff per site, only sites with more than five': a bare number after the count of groups is compared with it."""
    if len(draft.counts) != 1 or draft.counts[0] is None or not draft.groups or draft.aggs:
        return
    for item in list(draft.filters):
        bare = item.kind == "compare" and item.mention is None and not (item.dimension or item.unit) and len(item.numbers) == 1
        if bare and {"with", "have", "has", "having"} & set(item.verbs):
            draft.filters.remove(item)
            draft.havings.append(Having(item.op, item.numbers[0], None))  # type: ignore[arg-type]  # numbers of a comparison


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
