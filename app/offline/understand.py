"""Turn a question, in the company of the catalogue, found values and the query before, into one query."""

from collections.abc import Iterator

from longtable.app.offline.audit import audit
from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chinese import own_texts, translate, values_meant
from longtable.app.offline.chunks import Match, Values
from longtable.app.offline.columns import CannotRead, entity
from longtable.app.offline.cut import chunk
from longtable.app.offline.draft import Draft
from longtable.app.offline.echoes import echoes
from longtable.app.offline.far_values import far_columns, far_values
from longtable.app.offline.followup import asks_an_end, follow
from longtable.app.offline.goods import what_for
from longtable.app.offline.idioms import stand_aside
from longtable.app.offline.joins import hints_of
from longtable.app.offline.logic import Query
from longtable.app.offline.parse import parse
from longtable.app.offline.phrasing import plainly
from longtable.app.offline.rankings import rankings
from longtable.app.offline.rates import with_rates
from longtable.app.offline.reference import alone, is_yes_or_no, keeps, speaks_of_many
from longtable.app.offline.relink import relink
from longtable.app.offline.settle import settle
from longtable.app.offline.staff import in_its_words
from longtable.app.offline.text import Token, is_chinese, parts_of, skeleton, tokenize

_OPENERS = {
    "and", "also", "but", "only", "just", "same", "now", "then", "instead", "what about", "how about", "or", "again", "except", "excluding",
    "per", "by", "for", "in", "with", "without", "sort", "order", "top", "the same", "both", "ok and",
    "okay and", "as", "not", "from", "since", "before", "after",
}  # fmt: skip


def tokens_of(question: str, catalog: Catalog | None = None, values: Values | None = None) -> list[Token]:
    """Return the tokens of a question in English or Chinese; the schema chooses among words that a Chinese one may stand for."""
    if not is_chinese(question):
        question = question if catalog is None else what_for(in_its_words(with_rates(question, catalog), catalog), catalog)
        return tokenize(plainly(question, headcounts=_has(catalog, "headcount"), quantities=_has(catalog, "quantity", "qty")))
    if catalog is None:
        return translate(question, ())
    found = [text for text, matches in (values or {}).items() if any(match.how != "partial" for match in matches)]
    things = (table.words for table in catalog.tables.values())
    return translate(question, chinese_names(catalog, values or {}), _schema(catalog), found, things)


def _schema(catalog: Catalog) -> Iterator[tuple[str, ...]]:
    return (words for table in catalog.tables.values() for words in (table.words, *(column.words for column in table.columns)))


def other_texts(question: str, catalog: Catalog) -> list[str]:
    """Return what else to look for in the data: values in Chinese where it has such, and English ones that Chinese words may stand for."""
    if not is_chinese(question):
        return []
    names = chinese_names(catalog, {})
    samples = (value for table in catalog.tables.values() for column in table.columns for value in column.samples)
    chinese = bool(names) or any(isinstance(value, str) and is_chinese(value) for value in samples)
    return [*(own_texts(question, names) if chinese else []), *values_meant(question, _schema(catalog))]


def _has(catalog: Catalog | None, *names: str) -> bool:
    columns = (column for table in catalog.tables.values() for column in table.columns) if catalog is not None else ()
    wanted = {*names, *map(skeleton, names)}
    return any("".join(parts_of(column.name)) in wanted for column in columns)


def chinese_names(catalog: Catalog, values: Values) -> list[str]:
    """Return schema names and found values that hold Chinese characters."""
    names = [
        name
        for table in catalog.tables.values()
        for name in (table.name, table.comment, *(n for c in table.columns for n in (c.name, c.comment)))
    ]
    found = [text for text, matches in values.items() if matches]
    return [name for name in (*names, *found) if name and is_chinese(name) and len(name) <= 12]


def with_demonyms(tokens: list[Token], values: Values) -> dict[str, tuple[Match, ...]]:
    """Let 'French' stand for France where only France is a value."""
    from longtable.app.offline.lookups import DEMONYMS

    known = dict(values)
    for token in tokens:
        country = DEMONYMS.get(token.word)
        if country and not known.get(token.word) and (found := known.get(country)):
            known[token.word] = found
    return known


def understand(question: str, catalog: Catalog, values: Values, previous: Query | None = None, *, lost: bool = False) -> Query:
    """Return the query a question asks for; `CannotRead` when a part of it has no place.

    `previous` is the query before it: a question that leans on it edits it. `lost` says that the question before was declined, so
    that nothing may lean on it.
    """
    tokens = tokens_of(question, catalog, values)
    draft = draft_again(tokens, catalog, values)
    leaning = leans(tokens, draft)
    if is_yes_or_no(draft):
        raise CannotRead("words", *(chunk.text for chunk in draft.targets))
    if draft.back and (previous is None or lost):
        raise CannotRead("lost_thread" if lost else "before")
    if previous is None or lost or not leaning:
        try:
            query = settle(draft, catalog)
            asked = draft_again(tokens, catalog, values)
            audit(query, asked, catalog, hints_of(draft))
            return alone(query, asked, catalog)
        except CannotRead as error:
            if previous is None or lost or error.reason not in ("nothing", "group", "which", "measure"):
                raise
            if error.reason == "measure" and not asks_an_end(previous, draft_again(tokens, catalog, values), catalog):
                raise
    if draft.back and speaks_of_many(draft, previous, catalog):
        raise CannotRead("which", *(chunk.text for chunk in draft.targets))
    query = follow(previous, draft_again(tokens, catalog, values), catalog)
    if draft.back and not keeps(previous, query):
        raise CannotRead("rows")
    audit(query, draft_again(tokens, catalog, values), catalog, hints_of(draft), previous)
    return query


def draft_again(tokens: list[Token], catalog: Catalog, values: Values) -> Draft:
    """Return a fresh draft: settling one uses it up."""
    chunks = chunk(tokens, catalog, with_demonyms(tokens, values))
    far_values(chunks, catalog)
    far_columns(chunks, catalog, values)
    relink(chunks, catalog)
    stand_aside(chunks, catalog)
    echoes(chunks, catalog)
    rankings(chunks, catalog)
    return parse(chunks)


def leans(tokens: list[Token], draft: Draft) -> bool:
    """Say whether a question goes on from the one before it."""
    words = [token.word for token in tokens]
    opener = next((opener for size in (2, 1) if (opener := " ".join(words[:size])) in _OPENERS), "")
    tables = [mention for mention in draft.mentions if entity(mention)]
    asked = draft.targets or [chunk for chunk in draft.counts if chunk]
    if draft.rest or draft.back or (draft.pron and not (tables and asked)):
        return True
    if "same" in words:
        return True
    if opener in ("and", "also", "but", "ok and", "okay and", "or", "now", "then"):
        return not (tables and ((draft.counts and draft.counts[0] is not None) or draft.targets or draft.sups)) or len(words) <= 3
    if opener in ("what about", "how about", "only", "just", "instead"):
        return True
    if words[:2] in (["for", "each"], ["for", "every"]) and not draft.targets and not draft.counts:
        return True
    if any(value.order and draft.words[value.order - 1] in ("how", "number") for item in draft.filters for value in item.values):
        return False  # how many mats: the value itself is counted
    if draft.counts or draft.aggs or draft.sups or draft.percent:
        named = (
            [chunk for chunk in draft.counts if chunk]
            + [c for _, c in draft.aggs if c]
            + [s.chunk for s in draft.sups if s.chunk]
            + draft.targets
        )
        return not named and not tables
    if draft.sorts or draft.limit is not None:
        return not tables and not draft.targets
    if opener in ("per", "by") and not draft.targets:
        return True
    if opener and not tables:
        return True
    asks = (
        draft.listing
        or draft.which
        or any(word in words for word in ("what", "which", "who", "list", "show", "when", "where", "whose", "give"))
    )
    return not asks and not tables and len(words) <= 6
