"""Put conditions on groups in their place: 'towns with at least 5 clients, and how many', 'more than 3000 altogether'."""

from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.draft import Draft, Filter, Having

_FEW = frozenset(["<", "<="])


def settle_havings(draft: Draft) -> None:
    """Turn a draft so that its counts and sums of groups are conditions on the groups."""
    _summed(draft)
    _and_how_many(draft)


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


def _is_sum(item: Filter, order: int) -> bool:
    """Say whether a condition compares a measure named after the subject with a number."""
    compared = item.kind == "between" or (item.kind == "compare" and item.op in (">", ">=", "<", "<="))
    measured = item.mention is not None and not entity(item.mention) and any(hit.numeric for hit in item.mention.hits)
    return compared and measured and item.mention is not None and item.mention.order > order and not item.negated


def _and_how_many(draft: Draft) -> None:
    """'studios with at least 3 titles, and how many': the count of each is shown too."""
    counted = [item for item in draft.havings if item.func == "count" and item.counted is not None and item.op not in _FEW]
    subject = _subject(draft)
    if len(counted) != 1 or len(draft.havings) != 1 or len(draft.counts) != 1 or draft.aggs or draft.groups or subject is None:
        return
    chunk, again = counted[0].counted, draft.counts[0]
    if chunk is None or subject.order > chunk.order or entity(subject) == entity(chunk):
        return
    if again is not None and (again.order < chunk.order or again.hits[:1] != chunk.hits[:1]):
        return
    if again is None and not {"how", "number", "count"} & set(draft.words[chunk.order :]):
        return
    draft.counts, draft.groups = [chunk], [subject]
    draft.targets = [each for each in draft.targets if each is not subject]


def _subject(draft: Draft) -> Chunk | None:
    """Return what is asked for: the first thing or column to be shown."""
    return draft.targets[0] if draft.targets and draft.targets[0].hits else None
