"""Let chunks stand aside that carry nothing of their own: units of what is measured, 'on file', 'staff members', verbs of a ranking."""

# ruff: noqa: E501, SIM905 - word lists read best as long lines of plain words

import itertools

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import UNTRUE, Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.idioms_counts import settle_counts
from longtable.app.offline.idle_verbs import idle_verbs
from longtable.app.offline.lacking import lacking
from longtable.app.offline.lexicon import MEASURE_UNITS, PEOPLE, UNIT_WORDS, UNITS
from longtable.app.offline.lexicon_events import events, same_event
from longtable.app.offline.lexicon_measures import DIMENSIONS, VERB_DIMENSIONS
from longtable.app.offline.linking import Hit, hits
from longtable.app.offline.subject import is_people
from longtable.app.offline.text import lemma, likeness, split_name, stem

_HOMES = frozenset(
    """collection catalog catalogue system database file record book register registry inventory archive portfolio books roster roll payroll premises
    site network fleet world company organization organisation business data dataset sample program programme zoo museum library school hospital
    farm shop store hotel gym clinic university bank club festival restaurant warehouse factory park garden gallery theatre theater cinema airline
    league resort practice agency brewery winery bakery pharmacy clinic estate studio chain group business plant fleet catalogue range
    assortment lineup programme schedule directory list register archives rolls ledger""".split()
)
_GROUPS_OF_PEOPLE = frozenset(["staff", "crew", "team", "club", "family", "board", "faculty", "cast", "band", "personnel", "committee"])
_RATES = frozenset(["hourly", "daily", "monthly", "weekly", "annual", "yearly", "salary", "wage", "rate", "pay", "fee", "price", "cost"])
_ADVERBS = {
    "hourly": "hour",
    "daily": "day",
    "monthly": "month",
    "yearly": "year",
    "annual": "year",
    "annually": "year",
    "nightly": "night",
    "quarterly": "quarter",
}
_CHARGED = frozenset(
    "charges charged cost costs earn earns earned make makes pay paid pays charge charges fee rate wage salary rent".split()
)
_FIXED = frozenset(["file", "record", "records", "books", "payroll", "roster", "site"])
_OPPOSITES = {
    "part-time": "fulltime",
    "failed": "passed",
    "offline": "online",
    "rejected": "approved",
    "absent": "present",
    "denied": "approved",
    "disabled": "enabled",
}
_MEASURING = frozenset(
    [
        *VERB_DIMENSIONS,
        "giving",
        "charging",
        "paying",
        "doing",
        "asking",
        "seeking",
        "requesting",
        "claiming",
        "demanding",
        "totalling",
        "offering",
        "using",
        "needing",
        "requiring",
        "reaching",
        "serving",
        "carrying",
    ]
)
_BEEN = frozenset("been were was are is never not quantity".split())
_FITTINGS = frozenset(
    ["machine", "facility", "service", "option", "equipment", "system", "feature", "access", "area", "license", "permit", "certificate"]
)
_ALL_PEOPLE = frozenset(["everyone", "everybody", "anyone", "anybody", "people", "persons", "those", "someone"])
_CASES = frozenset("job record entry case event item transaction work activity".split())
_ANYONE = frozenset("member customer client person people user guest visitor holder subscriber".split())


def stand_aside(chunks: list[Chunk], catalog: Catalog) -> None:
    """Turn what needs no place in a query into fillers."""
    settle_counts(chunks, catalog)
    idle_verbs(chunks, catalog)
    _units_of_measures(chunks)
    _general_homes(chunks)
    _members_of_staff(chunks)
    _rates(chunks, catalog)
    _per_measures(chunks)
    for before, each in itertools.pairwise(chunks):
        if before.kind == "mention" and entity(before) and each.kind == "word" and not each.name and lemma(each.word) in _CASES:
            each.kind = "filler"  # maintenance jobs
        if before.kind == "number" and each.is_op("percent"):
            each.kind, each.op = "filler", ""  # stronger than 6 percent
    for before, each, then in zip([*chunks], chunks[1:], [*chunks[2:], Chunk("stop", "")], strict=False):
        if each.is_op("order") and each.word == "ordered" and before.word in _BEEN and not then.is_op("by"):
            each.kind, each.op = "filler", ""  # have never been ordered
    _units_of_time(chunks)
    lacking(chunks, catalog)
    _adverbs(chunks)
    for before, each in itertools.pairwise(chunks):
        fitted = before.kind == "mention" and each.kind in ("word", "mention") and lemma(each.word) in _FITTINGS and each.best < 0.9
        if fitted and (column := catalog.column(before.hits[0].table, before.hits[0].column)) is not None and column.truth is not None:
            each.kind, each.hits = "filler", ()  # has an x-ray machine
    _untrue(chunks, catalog)
    _only_people(chunks, catalog)
    _everyone(chunks, catalog)


def _units_of_measures(chunks: list[Chunk]) -> None:
    """'the total yield in tonnes', 'weight in kg': the unit is in the column's name, or the column tells none."""
    for place, each in enumerate(chunks):
        if each.word != "in" or each.kind != "prep" or place + 1 >= len(chunks):
            continue
        unit = chunks[place + 1]
        measure = next((c for c in reversed(chunks[:place]) if c.kind == "mention" and any(hit.numeric for hit in c.hits)), None)
        following = chunks[place + 2] if place + 2 < len(chunks) else None
        if (
            measure is None
            or unit.kind not in ("mention", "filler", "word", "unit")
            or (following is not None and following.kind == "value")
        ):
            continue
        if unit.is_op() or (unit.kind == "unit" and unit.unit not in ("hour", "day")):
            continue
        numeric = [hit for hit in measure.hits if hit.numeric]
        ends = {lemma(split_name(hit.column)[-1]) for hit in numeric[:3] if hit.score >= measure.best - 0.06}
        word = lemma(unit.word)
        if measure is not unit and any(likeness(word, end) >= 0.95 for end in ends):
            measure.hits = tuple(hit for hit in numeric if likeness(word, split_name(hit.column)[-1]) >= 0.95) or measure.hits
            each.kind = unit.kind = "filler"
        elif word in UNIT_WORDS and not (ends & UNIT_WORDS) and unit.kind in ("filler", "word") and word not in MEASURE_UNITS:
            each.kind = unit.kind = "filler"
        elif word in UNIT_WORDS and (word in MEASURE_UNITS or ends & UNIT_WORDS) and unit.kind in ("filler", "unit"):
            unit.kind, unit.unit = "word", ""  # another unit than the column's: the figure would be wrong


def _general_homes(chunks: list[Chunk]) -> None:
    """'in the collection', 'on file', 'on our books': where all rows are."""
    for before, each, then in zip(chunks, chunks[1:], chunks[2:], strict=False):
        if (
            each.kind == "word"
            and lemma(each.word) in _HOMES
            and before.word in ("the", "our", "this")
            and then.word in ("have", "own", "employ", "hold", "has")
        ):
            each.kind = "filler"  # how many clients does the bank have
    for before, each in itertools.pairwise(chunks):
        if before.kind == "word" and before.word in _MEASURING and (each.is_op("cmp", "between") or each.word == "for"):
            before.kind = "filler"
        if before.kind == "word" and before.word in VERB_DIMENSIONS and each.kind == "number":
            before.kind = "filler"  # rated 3.5 or better
    for place, each in enumerate(chunks):
        if each.kind != "prep" or each.word not in ("in", "on", "of", "from", "at", "within", "across"):
            continue
        step = place + 1
        while (
            step < len(chunks)
            and chunks[step].kind == "filler"
            and chunks[step].word in ("the", "our", "this", "your", "my", "whole", "entire")
        ):
            step += 1
        fixed = each.word == "on" and step < len(chunks) and chunks[step].word in _FIXED and chunks[step].best < 0.95
        if fixed and chunks[step].kind in ("word", "filler", "mention"):
            each.kind = chunks[step].kind = "filler"
        elif (
            step < len(chunks) and chunks[step].kind in ("word", "filler") and lemma(chunks[step].word) in _HOMES and not chunks[step].name
        ):
            if step + 1 < len(chunks) and chunks[step + 1].kind in ("mention", "value") and chunks[step].kind == "word":
                continue
            each.kind = chunks[step].kind = "filler"


def _members_of_staff(chunks: list[Chunk]) -> None:
    for first, second in itertools.pairwise(chunks):
        if (
            first.kind == "mention"
            and second.kind in ("mention", "word")
            and lemma(second.word) == "member"
            and lemma(first.word) in _GROUPS_OF_PEOPLE
        ):
            second.kind = "filler"
    for first, middle, last in zip(chunks, chunks[1:], chunks[2:], strict=False):
        if (
            last.kind == "mention"
            and entity(last)
            and lemma(last.word) in _GROUPS_OF_PEOPLE
            and middle.word == "of"
            and lemma(first.word) == "member"
        ):
            first.kind = middle.kind = "filler"


def _rates(chunks: list[Chunk], catalog: Catalog) -> None:
    """'more than 12 an hour', '500 euros per month': said of a rate, the time is in its column."""
    rated = any(_RATES & set(column.words) for table in catalog.tables.values() for column in table.columns)
    adverbs = {word for table in catalog.tables.values() for column in table.columns for word in column.words} & set(_ADVERBS)
    for before, unit in itertools.pairwise(chunks):
        spoken = {each.word for each in chunks[: unit.order]} | {each.word for each in chunks[unit.order :]}
        priced = spoken & _CHARGED or any(each.arg.endswith((":price", ":pay")) for each in chunks)
        timed = UNITS.get(lemma(unit.word), "") if unit.kind in ("unit", "mention") else ""
        if before.is_op("each") and timed and priced and any(_ADVERBS[word] == timed for word in adverbs):
            before.kind, before.op, unit.kind, unit.unit, unit.hits = "filler", "", "filler", "", ()
    for place, each in enumerate(chunks):
        if each.kind != "number" or not rated:
            continue
        step = place + 1
        if (
            step < len(chunks)
            and chunks[step].kind in ("filler", "unit")
            and lemma(chunks[step].word) in ("dollar", "euro", "pound", "usd", "eur")
        ):
            step += 1
        if step + 1 >= len(chunks):
            continue
        joiner, unit = chunks[step], chunks[step + 1]
        if (
            (joiner.word in ("a", "an") or joiner.is_op("each"))
            and (unit.kind == "unit" or (unit.kind == "mention" and " " not in unit.text))
            and lemma(unit.word) in ("hour", "day", "month", "year", "week", "night", "head", "person", "kg", "km", "mile")
        ):
            joiner.kind, joiner.op = "filler", ""
            unit.kind, unit.unit, unit.hits = "filler", "", ()


def _per_measures(chunks: list[Chunk]) -> None:
    """'the price per kg', 'the cheapest per portion': what the name of a column of numbers holds is no group."""
    for before, each, unit in zip(chunks, chunks[1:], chunks[2:], strict=False):
        best = [hit for hit in unit.hits if hit.score >= unit.best - 0.05]
        if not each.is_op("each") or each.word != "per" or unit.kind != "mention" or not all(hit.numeric for hit in best):
            continue
        own = {(hit.table, hit.column) for hit in best}
        ranked = frozenset(DIMENSIONS.get(before.arg.partition(":")[2], ())) if before.is_op("sup") else frozenset()
        both = tuple(hit for hit in before.hits if (hit.table, hit.column) in own) if before.kind == "mention" else ()
        if both or any(ranked & set(map(lemma, split_name(hit.column))) for hit in best):
            before.hits = both or before.hits
            each.kind, each.op, unit.kind, unit.hits = "filler", "", "filler", ()


def _units_of_time(chunks: list[Chunk]) -> None:
    """'in which month of 2024': no monthly rent is meant."""
    for before, each, joiner in zip([Chunk("comma", ""), *chunks], chunks, [*chunks[1:], Chunk("comma", "")], strict=False):
        unit = UNITS.get(lemma(each.text.lower()), "")
        asked = before.is_op("wh") and before.word in ("which", "what")
        if each.kind == "mention" and unit and each.best < 0.9 and asked and (joiner.word == "of" or joiner.kind == "filler"):
            each.kind, each.unit, each.hits = "unit", unit, ()


def _adverbs(chunks: list[Chunk]) -> None:
    """'monthly revenue': the revenue of each month, where no column is called so."""
    for place, each in enumerate(chunks):
        following = chunks[place + 1] if place + 1 < len(chunks) else None
        before = chunks[place - 1] if place else None
        if each.kind != "unit" or each.word not in _ADVERBS or each.hits or following is None or following.kind not in ("mention", "op"):
            continue
        if before is None or not before.is_op("each", "by", "agg", "sup"):
            chunks.insert(place, Chunk("op", "each", "each", each.place, op="each"))
            for order, other in enumerate(chunks):
                other.order = order
            return


def _untrue(chunks: list[Chunk], catalog: Catalog) -> None:
    """'inactive clients', 'unpaid invoices': a column of flags denied."""
    for each in chunks:
        prefix = next((p for p in ("non-", "non", "in", "un") if each.word.startswith(p) and len(each.word) > len(p) + 3), "")
        if each.kind != "word" or not (prefix or each.word in _OPPOSITES) or each.name:
            continue
        rest = _OPPOSITES.get(each.word) or each.word.removeprefix(prefix)
        flags = [
            hit
            for hit in hits((rest,), rest, catalog)
            if hit.score >= 0.9 and (column := catalog.column(hit.table, hit.column)) is not None and column.truth is not None
        ]
        if flags:
            each.kind, each.arg, each.hits = "mention", UNTRUE, tuple(flags)


def _everyone(chunks: list[Chunk], catalog: Catalog) -> None:
    """'everyone hired before 2010', 'how many people signed up': the one table of people with a date of that event."""
    people = [t for t in catalog.tables.values() if t.kind == "table" and is_people(t)]
    for place, each in enumerate(chunks[:-1]):
        named = [table for c in chunks if c.kind == "mention" and (table := entity(c))]
        if each.kind not in ("filler", "word") or each.word not in _ALL_PEOPLE or (named and each.word != "people"):
            continue
        if any(is_people(catalog.table(name)) for name in named):
            continue
        if each.word == "people" and not (place and chunks[place - 1].is_op("count", "wh", "list")):
            continue
        verb = next((c for c in chunks[place + 1 : place + 4] if events(c.word)), None)
        found = people if len(people) == 1 else []
        if verb is None and not found:
            told = {c.hits[0].table for c in chunks[place + 1 :] if c.kind == "mention" and not entity(c)}
            found = [t for t in people if t.name in told]
        if verb is not None and not found:
            found = [t for t in people if any(c.is_date and same_event(verb.word, c.words) for c in t.columns)]
        if verb is not None and len(found) > 1:
            found = [t for t in found if any(c.is_date and stem(verb.word) in map(stem, c.words) for c in t.columns)]
        if len(found) == 1:
            each.kind, each.hits = "mention", (Hit(found[0].name, "", 0.9),)


def _only_people(chunks: list[Chunk], catalog: Catalog) -> None:
    """'gold members', 'how many people': in a schema of one table of people they are meant, whatever it calls them."""
    tables = [table for table in catalog.tables.values() if table.kind == "table" and any(lemma(word) in PEOPLE for word in table.words)]
    valued = {match.table for each in chunks for match in each.matches}
    if len(tables) > 1:
        tables = [table for table in tables if table.name in valued]
    if len(tables) != 1:
        return
    for each in chunks:
        people = each.kind == "filler" and each.word in ("people", "persons") and each.place and chunks[each.order - 1].is_op("wh", "list")
        if (each.kind == "word" or people) and each.text.islower() and lemma(each.word) in _ANYONE:
            each.kind, each.hits = "mention", (Hit(tables[0].name, "", 0.8),)


__all__ = ["stand_aside"]
