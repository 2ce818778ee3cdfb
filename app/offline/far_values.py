"""Drop what a word meets only by chance, far from all that the question speaks of: a value, or a column of a table that nobody named."""

from collections.abc import Iterator
from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Chunk, Match, Values
from longtable.app.offline.columns import Scope, date_column, entity
from longtable.app.offline.joins import distance
from longtable.app.offline.lexicon import UNITS
from longtable.app.offline.linking import date_hit
from longtable.app.offline.text import lemma

_PART, _WHOLE = 1, 2  # how many joins away a value may be that a lower-case word is part of, or is
_STOP = Chunk("comma", "")


def far_values(chunks: list[Chunk], catalog: Catalog) -> None:
    """Make a word of a value again ('vineyard' is no 'Vineyard Walk' of the visits) where nothing named is near that value's table."""
    near = named = _named(chunks)
    near = near | {match.table for each in chunks if each.kind == "value" and (each.name or _is_whole(each)) for match in each.matches}
    for each in chunks:
        if each.kind != "value" or each.name or each.quoted or not each.text.isascii():
            continue
        whole = _is_whole(each)
        others = near - {match.table for match in each.matches} if whole else near
        if not others or (whole and any(match.table in named for match in each.matches)):
            continue
        reach = _WHOLE if whole else _PART
        if not any(
            (far := distance(catalog, table, match.table)) is not None and far <= reach for table in others for match in each.matches
        ):
            each.kind, each.matches = "word", ()


def _is_whole(value: Chunk) -> bool:
    return bool(value.matches) and value.matches[0].how != "partial"


def far_columns(chunks: list[Chunk], catalog: Catalog, values: Values) -> None:
    """Let things, values and dates of the named tables go before a column of a far one; a participle is no such column."""
    for each, near in far_mentions(chunks):
        before = chunks[each.order - 1] if each.order else _STOP
        told = before.is_op("each", "by", "count", "agg", "sup", "most", "cmp", "order")
        things = [hit for hit in each.hits if hit.is_table and hit.table in near]
        homes = {hit.table for hit in each.hits}
        lone, unit = " " not in each.text, UNITS.get(lemma(each.text.lower()), "")
        if things and not told and lemma(each.word) != each.word:
            each.hits = (replace(things[0], score=each.best), *each.hits)  # the Helios panels: no number of panels
        elif things:
            continue
        elif not (told or each.hits[0].numeric) and (found := _values_of(each, near, values)):
            each.kind, each.hits, each.matches = "value", (), found
        elif lone and each.word.endswith("ed") and each.best < 0.95 and not each.hits[0].numeric:
            each.kind, each.hits = "filler", ()
        elif each.text.lower() in ("date", "dates"):
            _date(chunks, each, catalog, near)
        elif unit and each.best < 0.8 and any(hit.dated and hit.table in near for hit in before.hits):
            before.kind, before.hits = "filler", ()  # per install year
            each.kind, each.unit, each.hits = "unit", unit, ()
        elif lone and each.best < 1.0 and not told and len(homes) > 1 and not any(hit.numeric or hit.is_table for hit in each.hits):
            each.kind, each.hits = "word", ()  # a type, of two tables that nobody named: either may be meant, or neither


def far_mentions(chunks: list[Chunk]) -> Iterator[tuple[Chunk, set[str]]]:
    """Yield the mentions that are columns only of tables nothing else speaks of, with the tables that the others are of."""
    homes = [{match.table for match in each.matches} for each in chunks if each.kind == "value"]
    valued = {table for home in homes if len(home) == 1 for table in home}
    for each, then in zip(chunks, [*chunks[1:], _STOP], strict=False):
        compared = then.is_op("cmp", "between") or then.kind == "number"
        if each.kind == "mention" and not each.hits[0].is_table and not compared:
            near = _named([other for other in chunks if other is not each]) | valued
            if near and not {hit.table for hit in each.hits if not hit.is_table} & near:
                yield each, near


def _named(chunks: list[Chunk]) -> set[str]:
    """Return the tables of things and columns that could be of no other."""
    mentions = [each for each in chunks if each.kind == "mention" and each.best >= 0.72]
    homes = [{entity(each)} - {""} or {hit.table for hit in each.hits if hit.score >= each.best - 0.05} for each in mentions]
    return {table for home in homes if len(home) == 1 for table in home}


def _values_of(each: Chunk, near: set[str], values: Values) -> tuple[Match, ...]:
    """Return the values of a named table that the word is: staff who are not optometrists."""
    text = each.text.lower()
    forms = dict.fromkeys((text, " ".join((*text.split()[:-1], lemma(each.word)))))
    return tuple(match for form in forms for match in values.get(form, ()) if match.table in near and match.how != "partial")


def _date(chunks: list[Chunk], each: Chunk, catalog: Catalog, near: set[str]) -> None:
    """'the date we received them', 'date of birth': the date of the thing, which a verb or a noun after it tells."""
    rest = chunks[each.order + 1 :]
    if len(rest) > 1 and rest[0].word == "of" and any(hit.dated and hit.table in near for hit in rest[1].hits):
        each.kind = rest[0].kind = "filler"
        return
    end = next((place for place, other in enumerate(rest) if other.kind == "comma" or other.word == "and"), len(rest))
    verbs = tuple(other.word for other in rest[:end])
    if len(near) == 1 and (found := date_column(Scope(catalog), "day", tuple(near), verbs)):
        each.hits = (date_hit(found[0]),)
