"""Read relations of a table to itself: whose boss, the children of, those who work for someone of the same table."""

from longtable.app.offline.catalog import Catalog, Link
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import CannotRead, Scope, entity
from longtable.app.offline.conditions import settle_filter
from longtable.app.offline.draft import Draft, Filter
from longtable.app.offline.logic import Col, Cond, Query, Within
from longtable.app.offline.text import lemma, split_name, stem

_YOUNG = frozenset(["child", "kid", "son", "daughter", "offspring", "cub", "puppy", "descendant"])
_PARENTS = frozenset(["mother", "father", "parent", "dam", "sire"])
_UNDER = frozenset(["subordinate", "report", "underling"])
_SMALL = frozenset(["of", "the", "a", "an", "for", "to"])


def kin(draft: Draft, catalog: Catalog) -> tuple[str, Within] | None:
    """Take what relates rows of one table to each other out of the draft: the table, and the condition on its rows."""
    for link in catalog.links:
        if link.many != link.one or len(link.many_columns) != 1:
            continue
        named = _named(draft, catalog, link)
        if not named:
            continue
        way = _way(draft, link, named[0].values[0], named[-1].values[-1])
        if way is None:
            continue
        return link.many, _taken(draft, catalog, link, named, up=way == "up")
    return None


def _named(draft: Draft, catalog: Catalog, link: Link) -> list[Filter]:
    """Return the conditions that name a row of the table."""
    table = catalog.table(link.many)
    names = {column.name for column in table.names} if table is not None else set()
    return [
        item
        for item in draft.filters
        if item.kind == "value" and any(match.table == link.many and match.column in names for match in item.values[0].matches)
    ]


def _mention(draft: Draft, link: Link) -> Chunk | None:
    """Return the mention of the key itself: boss, mother."""
    own = {stem(word) for word in split_name(link.many_columns[0])} - {"id"}
    for each in draft.mentions:
        keyed = [hit for hit in each.hits if (hit.table, hit.column) == (link.many, link.many_columns[0])]
        if keyed and keyed[0].score >= each.best - 0.05 and any(stem(word) in own for word in each.text.lower().split()):
            return each
    return None


def _way(draft: Draft, link: Link, value: Chunk, last_value: Chunk) -> str | None:
    """Say which way the question goes: up to the boss of the one named, or down to those whose boss is named."""
    words, key = draft.words, {stem(word) for word in split_name(link.many_columns[0])}
    before = words[max(0, value.order - 4) : value.order]
    mention = _mention(draft, link)
    if mention is not None:
        if mention.order > value.order:
            between = set(words[last_value.order + 1 : mention.order])
            return "down" if "as" in between else "up" if between <= {"s"} else None
        between = set(words[mention.order + 1 : value.order])
        if stem(mention.word if mention.word != "to" else mention.text.split()[0].lower()) == "report" and "to" in {*between, mention.word}:
            return "down"
        if between & {"is", "was", "named", "called", "="} or (not between and "with" in words):
            return "down"
        people = {lemma(word) for each in draft.mentions if entity(each) == link.many for word in each.text.lower().split()}
        if {lemma(word) for word in between} - people <= _SMALL:
            return "up"
        raise CannotRead("keys", link.many_columns[0])
    verb, last = (before[-2:-1] or ("",))[0], (before[-1:] or ("",))[0]
    if (lemma(verb).startswith("work") and last in ("for", "under")) or (stem(verb) == "report" and last == "to"):
        return "down"
    if stem(verb) in key and last == "by":
        return "down"
    if last == "of" and ((lemma(verb) in _YOUNG and _PARENTS & set(split_name(link.many_columns[0]))) or lemma(verb) in _UNDER):
        return "down"
    return "up" if stem(last) in key and len(last) > 3 and draft.which else None


def _taken(draft: Draft, catalog: Catalog, link: Link, named: list[Filter], *, up: bool) -> Within:
    """Move the name of the other row into a query of its own."""
    scope = Scope(catalog, link.many, (link.many,))
    conds: list[Cond] = [cond for item in named for cond in settle_filter(scope, item)[1]]
    mention = _mention(draft, link)
    first = named[0].values[0].order
    spoken = {"of", "for", "to", "under"} & set(draft.words[max(0, first - 1) : first])
    young = [item for item in draft.filters if item.kind == "value" and lemma(item.values[0].text.lower()) in _YOUNG and spoken]
    gone = [id(item) for item in (*named, *young)]
    draft.filters = [item for item in draft.filters if id(item) not in gone]
    relation = _YOUNG | _UNDER | {"report", "reports", "reporting"}
    draft.leftover = [word for word in draft.leftover if lemma(word.lower()) not in relation]
    draft.targets = [
        each for each in draft.targets if each is not mention and not (each.text.lower() in draft.words and lemma(each.word) in relation)
    ]
    draft.mentions = [each for each in draft.mentions if each is not mention and lemma(each.word) not in relation]
    key, pointer = Col(link.many, link.one_columns[0]), Col(link.many, link.many_columns[0])
    shown, asked = (pointer, key) if up else (key, pointer)
    if not draft.targets and not draft.computes:
        draft.listing = True
    return Within(asked, Query(link.many, select=(shown,), where=tuple(conds)))
