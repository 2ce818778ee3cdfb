"""Settle what counting words and comparisons bear on: 'how many seats each has', 'tickets sold', 'A compared with B', 'still open'."""

# ruff: noqa: SIM905 - word lists read best as long lines of plain words

import itertools

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.chunks import AGENT, LACKING, PRODUCT, Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.lexicon import AGENTS, PARTICIPLES, PEOPLE, SINGLE, UNIT_WORDS
from longtable.app.offline.lexicon_events import events, events_of
from longtable.app.offline.lexicon_measures import UNITS_OF
from longtable.app.offline.linking import Hit, date_hit, hits
from longtable.app.offline.text import lemma, likeness, split_name, stem

_PIECES = frozenset(
    """ticket seat copy piece unit item bottle box pack packet carton bag can case crate keg pallet share place portion serving meal
    dose night loaf cake book tree plant head pair set roll sheet""".split()
)
_TRADED = frozenset("sold bought booked ordered reserved purchased shipped delivered issued per by in of were did".split())
_SUMS = frozenset("price cost amount fee value charge".split())
_DEALT = frozenset("sold bought ordered purchased shipped delivered used issued".split())
_KEPT = frozenset("stock stk hand inventory reorder minimum safety available".split())
_QUANTITY = frozenset(["quantity", "qty", "count", "pieces", "units"])
_LENGTHS = {"metre": "m", "metres": "m", "kilometre": "km", "kilometres": "km", "litre": "l", "litres": "l"}
_MONEY_NOUNS = frozenset(["money", "revenue", "income", "sales", "takings", "earnings", "turnover"])
_BROUGHT = frozenset(["brought", "bring", "brings", "made", "makes", "spent", "paid", "earns", "took", "takes"])
_AMOUNTS = frozenset(["amount", "total", "paid", "price", "cost", "fee", "revenue"])
_OPEN = frozenset(["open", "ongoing", "unresolved", "unfinished", "running", "outstanding", "uncompleted", "unclosed", "out"])
_LATER = frozenset(["paying", "finishing", "closing", "returning", "cancelling", "approving"])
_SHUT = frozenset(["closing", "finishing", "returning", "leaving"])


def settle_counts(chunks: list[Chunk], catalog: Catalog) -> None:
    """Run these rules over the chunks of a question."""
    _units_of_things(chunks, catalog)
    _units_given(chunks, catalog)
    _columns_counted(chunks)
    _pieces(chunks, catalog)
    _pieces_of_things(chunks)
    _traded(chunks)
    _amounts_of_events(chunks, catalog)
    _money_of(chunks, catalog)
    _money_from(chunks, catalog)
    _money_of_rows(chunks, catalog)
    _numbers_of(chunks, catalog)
    _still_open(chunks, catalog)
    _done_things(chunks, catalog)
    _late(chunks, catalog)
    _events_compared(chunks, catalog)
    _versus(chunks)
    _writers(chunks, catalog)
    _people_of_role(chunks, catalog)


def _told(chunks: list[Chunk]) -> list[Chunk]:
    return [each for each in chunks if each.kind != "filler"]


def _tables(chunks: list[Chunk], catalog: Catalog) -> list[Table]:
    """Return the tables that the question names, by themselves or by a column that only one table has."""
    names = [entity(each) or (each.hits[0].table if each.best >= 0.9 else "") for each in chunks if each.kind == "mention" and each.hits]
    return [table for name in dict.fromkeys(names) if name and (table := catalog.table(name)) is not None]


def _measure_hit(column: Column, score: float = 0.95) -> Hit:
    return Hit(column.table, column.name, score, numeric=True)


def _units_of_things(chunks: list[Chunk], catalog: Catalog) -> None:
    """'how many metres of pipe': the length of the pipes, though there are meters too."""
    for place, each in enumerate(chunks[:-2]):
        word = each.text.lower()
        if chunks[place + 1].word != "of" or each.is_op():
            continue
        thing = next((c for c in chunks[place + 2 : place + 4] if c.kind == "mention"), None)
        table = catalog.table(entity(thing)) if thing is not None else None
        units = {_LENGTHS.get(word, lemma(word)), lemma(word)}
        nouns = {noun for noun, names in UNITS_OF.items() if units & names}
        if table is None or not nouns:
            continue
        found = [c for c in table.columns if c.is_number and not c.is_id and units & {*c.words, *map(lemma, c.words)}]
        if len(found) == 1:
            each.kind, each.hits, each.unit = "mention", (_measure_hit(found[0]),), ""
            chunks[place + 1].kind = "filler"


def _units_given(chunks: list[Chunk], catalog: Catalog) -> None:
    """'kilos delivered by depot', 'miles run per make': the one amount in that unit; where several are, the word is not passed over."""
    told = [each for each in chunks if not (each.is_op("agg") and each.arg == "sum")]
    if len(told) < 3 or told[0].kind != "filler" or told[0].word not in UNIT_WORDS or not any(c.is_op("each", "by") for c in told[1:4]):
        return
    unit = lemma(told[0].word)
    found = [
        column
        for table in catalog.tables.values()
        if table.kind == "table"
        for column in table.columns
        if column.is_number
        and not column.is_id
        and any(likeness(unit, word) >= 0.93 for word in column.words)
        and not SINGLE & set(column.words)
    ]
    told[0].kind, told[0].hits = ("mention", (_measure_hit(found[0]),)) if len(found) == 1 else ("word", ())


def _columns_counted(chunks: list[Chunk]) -> None:
    """'list the halls and how many seats each has': seats is a column of each hall, nothing is counted."""
    told = _told(chunks)
    for place, each in enumerate(told):
        if not each.is_op("count") or not place or place + 1 >= len(told):
            continue
        joined = told[place - 1].word in ("and", "with", ",", "plus")
        named = {entity(c) for c in told[:place] if c.kind == "mention"} - {""}
        measure = told[place + 1]
        listed = any(c.is_op("list", "wh") for c in told[:place]) or told[0].kind == "mention"
        if not (joined and listed and measure.kind == "mention" and not entity(measure) and measure.hits):
            continue
        own = tuple(hit for hit in measure.hits if not hit.is_table and hit.table in named and hit.numeric)
        counted = any(c.is_op("count", "agg") for c in told[:place])
        tail = told[place + 2 :]
        if own and not counted and all(c.is_op("each", "pron") or c.kind == "comma" for c in tail):
            measure.hits = own
            for c in (each, *tail):
                c.kind, c.op = "filler", ""


def _pieces(chunks: list[Chunk], catalog: Catalog) -> None:
    """'tickets sold', 'the average number of bottles per order': the one column of quantities counts them."""
    named = _tables(chunks, catalog)
    words = {each.word for each in chunks}
    for place, each in enumerate(chunks):
        if each.kind not in ("word", "filler") or each.name or lemma(each.word) not in _PIECES or not words & _TRADED:
            continue
        before = chunks[place - 1] if place else None
        asked = before is not None and (
            before.is_op("count", "agg", "most", "cmp")
            or before.word in ("many", "most", "total", "more")
            or (before.word == "of" and place > 1 and chunks[place - 2].is_op("count", "agg", "cmp", "sup", "most"))
        )
        if not asked:
            continue
        near = [table for table in named if _quantity(table)] or [t for t in catalog.tables.values() if t.kind == "table" and _quantity(t)]
        if len(near) == 1 and (column := _quantity(near[0])) is not None:
            each.kind, each.hits = "mention", (_measure_hit(column),)
            if before is not None and before.is_op("count") and place > 1 and chunks[place - 2].is_op("agg"):
                before.kind, before.op = "filler", ""


def _pieces_of_things(chunks: list[Chunk]) -> None:
    """'pieces of equipment': the things themselves are counted, where the quantities are of another table."""
    for each, joiner, thing in zip(chunks, chunks[1:], chunks[2:], strict=False):
        if (
            each.kind not in ("mention", "word")
            or lemma(each.text.lower()) not in _PIECES
            or joiner.word != "of"
            or not entity(thing)
            or thing.best < 0.95
        ):
            continue
        if not any(hit.table == thing.hits[0].table for hit in each.hits):
            each.kind, each.hits, joiner.kind = "filler", (), "filler"


def _traded(chunks: list[Chunk]) -> None:
    """'the quantity ordered', 'how many units were sold': no stock is meant."""
    if not {each.word for each in chunks} & _DEALT:
        return
    for each in chunks:
        moved = tuple(hit for hit in each.hits if not _KEPT & set(split_name(hit.column)))
        quantity = _QUANTITY & set(map(lemma, each.text.lower().split())) or lemma(each.text.lower()) in _PIECES
        if each.kind == "mention" and quantity and any(hit.numeric and _QUANTITY & set(split_name(hit.column)) for hit in moved):
            each.hits = moved


def _quantity(table: Table) -> Column | None:
    found = [c for c in table.columns if c.is_number and not c.is_id and _QUANTITY & set(c.words)]
    return found[0] if len(found) == 1 else None


def _amounts_of_events(chunks: list[Chunk], catalog: Catalog) -> None:
    """'the purchase price': the amount whose column says purchase or buy, and no date of it."""
    for each, noun in itertools.pairwise(chunks):
        lone = each.kind in ("mention", "word") and " " not in each.text and not each.name
        if not lone or noun.kind != "mention" or lemma(noun.text.lower()) not in _SUMS or noun.best >= 0.95:
            continue
        linked = [catalog.column(hit.table, hit.column) for hit in (*each.hits, *noun.hits) if hit.column]
        columns = [*filter(None, linked), *(column for table in _tables(chunks, catalog) for column in table.columns)]
        found = {
            (column.table, column.name): column
            for column in columns
            if column.is_number and not column.is_id and _SUMS & set(map(lemma, column.words))
            if events(each.word) & events_of(column.words) or any(likeness(each.word, word) >= 0.75 for word in column.words)
        }
        if len(found) == 1:
            each.kind, each.hits = "mention", tuple(map(_measure_hit, found.values()))
            noun.kind, noun.hits = "filler", ()


def _money_of(chunks: list[Chunk], catalog: Catalog) -> None:
    """'booking revenue': the one amount of the bookings."""
    for thing, money in itertools.pairwise(chunks):
        table = catalog.table(entity(thing)) if thing.kind == "mention" and money.word in _MONEY_NOUNS and money.best < 0.9 else None
        found = [c for c in table.columns if c.is_number and not c.is_id and _AMOUNTS & set(c.words)] if table is not None else []
        if len(found) == 1 and money.kind in ("mention", "word") and money.arg != PRODUCT:
            money.kind, money.hits = "mention", (_measure_hit(found[0], 1.0),)
            thing.kind, thing.hits = "filler", ()


def _money_from(chunks: list[Chunk], catalog: Catalog) -> None:
    """'brought in the most money from bookings': the money is what the bookings hold."""
    for place, each in enumerate(chunks[:-1]):
        if each.word not in _MONEY_NOUNS or each.arg == PRODUCT or each.kind not in ("mention", "word", "filler"):
            continue
        rest = [c for c in chunks[place + 1 : place + 4] if c.kind != "filler"]
        if len(rest) < 2 or rest[0].word not in ("from", "in", "on", "with", "through") or rest[1].kind != "mention":
            continue
        table = catalog.table(entity(rest[1]))
        found = [c for c in table.columns if c.is_number and not c.is_id and _AMOUNTS & set(c.words)] if table is not None else []
        if len(found) == 1:
            each.kind, each.hits, each.arg = "mention", (_measure_hit(found[0], 1.0),), ""


def _money_of_rows(chunks: list[Chunk], catalog: Catalog) -> None:
    """'which extra brought in the most money': what the rows that point to it hold, and not the price of it."""
    for place, each in enumerate(chunks[1:], 1):
        thing = next((c for c in chunks[:place] if c.kind == "mention" and entity(c)), None)
        verbs = [c.word for c in chunks[chunks.index(thing) + 1 : place] if c.word != "has"] if thing is not None else []
        if each.word != "money" or each.kind != "mention" or not chunks[place - 1].is_op("most") or thing is None:
            continue
        if not any(word.endswith("ed") or word in PARTICIPLES or word in _BROUGHT for word in verbs):
            continue
        rows = {link.many for link in catalog.links if link.one == entity(thing)}
        told = {name for name in rows if any(name.casefold().startswith(stem(word)) for word in verbs if len(stem(word)) > 2)}
        found = tuple(hit for hit in each.hits if hit.table in (told or rows))
        if len({hit.table for hit in found}) == 1:
            each.hits = found


def _numbers_of(chunks: list[Chunk], catalog: Catalog) -> None:
    """'numbers of the orders that ...': their keys, where the key is a number by name."""
    told = _told(chunks)
    if len(told) < 2 or not told[0].is_op("count") or told[0].text.lower() not in ("numbers of", "numbers"):
        return
    following = next((c for c in told[1:3] if c.kind == "mention" or c.kind == "value"), None)
    thing = next((c for c in told[1:] if c.kind == "mention" and entity(c)), None)
    table = catalog.table(entity(thing)) if thing is not None and following is not None else None
    if table is not None and len(table.key) == 1 and table.key[0].words[-1:] in (("no",), ("number",)):
        told[0].kind, told[0].op = "mention", ""
        told[0].hits = (Hit(table.name, table.key[0].name, 1.0),)


def _still_open(chunks: list[Chunk], catalog: Catalog) -> None:
    """'orders that are still open': they have no date of closing."""
    named = _tables(chunks, catalog)
    for place, each in enumerate(chunks):
        if each.kind not in ("filler", "word", "mention") or each.word not in _OPEN or " " in each.text or each.matches:
            continue
        before = [c.word for c in chunks[max(0, place - 2) : place]]
        if each.word in ("open", "out", "running") and "still" not in before and not {"are", "is"} & set(before):
            continue
        if any(column.words == (each.word,) for table in named for column in table.columns):
            continue
        found = [column for table in named for column in table.columns if column.is_date and _SHUT & events_of(column.words)]
        found = [column for column in found if not {"opening", "ordering", "reporting"} & events_of(column.words)] or found
        if len(found) == 1:
            each.kind, each.op, each.arg = "op", "missing", LACKING
            each.hits = (date_hit(found[0]),)


def _done_things(chunks: list[Chunk], catalog: Catalog) -> None:
    """'the total of paid invoices': those with a date of payment."""
    for before, each, thing in zip([Chunk("comma", ""), *chunks], chunks, chunks[1:], strict=False):
        table = catalog.table(entity(thing)) if thing.kind == "mention" and thing.best >= 0.9 else None
        past = each.word in PARTICIPLES or (each.word.endswith("ed") and len(each.word) > 4)
        if (
            each.kind != "filler"
            or not past
            or table is None
            or not _LATER & events(each.word)
            or before.word in ("not", "never", "been", "was", "were", "we", "they")
        ):
            continue
        found = [column for column in table.columns if column.is_date and stem(each.word) in map(stem, column.words)]
        if len(found) == 1:
            each.kind, each.op, each.arg = "op", "present", LACKING
            each.hits = (date_hit(found[0]),)


def _late(chunks: list[Chunk], catalog: Catalog) -> None:
    """'invoices paid late', 'returned on time': the date of it against the date it was due."""
    due = [c for table in _tables(chunks, catalog) for c in table.columns if c.is_date and {"due", "deadline"} & set(c.words)]
    for place, each in enumerate(chunks):
        past = place and (chunks[place - 1].word.endswith("ed") or chunks[place - 1].word in PARTICIPLES)
        if each.word != "late" or not past or len(due) != 1:
            continue
        each.kind, each.op, each.arg, each.hits = "op", "time", ">", ()
        chunks.insert(place + 1, Chunk("mention", due[0].name, "date", each.place + 1, hits=(date_hit(due[0]),)))
        for order, other in enumerate(chunks):
            other.order = order
        return


def _events_compared(chunks: list[Chunk], catalog: Catalog) -> None:
    """'bills paid after the due date': the date of paying against the other one."""
    for place, each in enumerate(chunks):
        if not each.is_op("time") or not place or place + 1 >= len(chunks):
            continue
        verb = chunks[place - 1]
        other = next((c for c in chunks[place + 1 : place + 4] if c.kind != "filler" and not c.is_op("pron")), None)
        past = verb.word.endswith("ed") or verb.word in PARTICIPLES
        if (
            not past
            or verb.kind not in ("filler", "word", "mention", "value")
            or verb.name
            or other is None
            or other.kind != "mention"
            or entity(other)
        ):
            continue
        dated = [hit for hit in other.hits if hit.dated]
        table = catalog.table(dated[0].table) if dated else None
        kinds = events(verb.word)
        found = [
            column
            for column in (table.columns if table is not None else ())
            if column.is_date
            and column.name != dated[0].column
            and (kinds & events_of(column.words) or stem(verb.word) in map(stem, column.words))
        ]
        exact = [column for column in found if stem(verb.word) in map(stem, column.words)] or found
        if len(exact) == 1:
            verb.kind, verb.hits, verb.matches = "mention", (date_hit(exact[0]),), ()
            for pronoun in chunks[place + 1 : other.order]:
                if pronoun.is_op("pron"):
                    pronoun.kind, pronoun.op = "filler", ""  # their due date
            other.hits = (dated[0],)


def _versus(chunks: list[Chunk]) -> None:
    """'the average cost of A compared with B', 'which has the bigger budget: A or B': a group for each of the two."""
    values = [each for each in chunks if each.kind == "value"]
    if len(values) != 2:
        return
    first, second = values
    between = [each for each in chunks if first.order < each.order < second.order and each.kind != "filler"]
    shared = [(m.table, m.column) for m in first.matches if (m.table, m.column) in {(n.table, n.column) for n in second.matches}]
    if not shared:
        return
    column = Chunk("mention", shared[0][1], shared[0][1].lower(), hits=(Hit(*shared[0], 1.0),))
    told = _told(chunks)
    if any(each.word == "versus" for each in between) and any(each.is_op("agg", "count", "howmuch") for each in chunks):
        for each in between:
            if each.word == "versus":
                each.kind, each.word, each.op = "prep", "and", ""
            elif each.kind == "mention" and each.hits[0].table == shared[0][0]:
                each.kind, each.hits = "filler", ()  # an engine job versus a door job
            elif each.is_op("agg"):
                chunks.remove(each)
                chunks.insert(chunks.index(first), each)
        for each in chunks[chunks.index(second) + 1 : chunks.index(second) + 2]:
            if each.kind == "mention" and each.hits[0].table == shared[0][0]:
                each.kind, each.hits = "filler", ()
        at = chunks[-1].place + 1
        chunks += [Chunk("op", "each", "each", at, op="each"), column]
        column.place = at + 1
    elif (
        [each.word for each in between] == ["or"]
        and told[-1] in (second, *[c for c in told[-1:] if c.kind == "comma"])
        and (asked := next((c for c in chunks if c.is_op("wh") and c.word in ("which", "what")), None)) is not None
        and (more := next((c for c in chunks if c.is_op("cmp", "sup", "most")), None)) is not None
        and not any(c.kind == "mention" for c in chunks[chunks.index(asked) : chunks.index(more)])
    ):
        if more.is_op("cmp"):
            sign = "max" if more.arg.startswith(">") else "min"
            more.op, more.arg = ("most", sign) if more.word in ("more", "fewer", "less") else ("sup", sign)
        column.place = asked.place
        chunks.insert(chunks.index(asked) + 1, column)
        average = next((c for c in chunks if c.is_op("agg") and c.arg == "avg" and chunks.index(c) < chunks.index(asked)), None)
        if average is not None:
            chunks.remove(average)
            chunks.insert(chunks.index(more) + 1, average)
            average.text = average.word = "average"
        for each in between:
            each.word = "or"
    else:
        return
    for order, each in enumerate(chunks):
        each.order = order


def _writers(chunks: list[Chunk], catalog: Catalog) -> None:
    """'who wrote X': the column of authors, where there is no table of them."""
    who = next((place for place, each in enumerate(chunks) if each.word in ("who", "whom")), None)
    if who is None:
        return
    for each in chunks[who + 1 : who + 3]:
        if each.kind not in ("filler", "word") or each.arg == AGENT:
            continue
        for agent in AGENTS.get(each.word, ()) + AGENTS.get(stem(each.word), ()):
            columns = tuple(hit for hit in hits((agent,), agent, catalog) if not hit.is_table and hit.score >= 0.86 and not hit.numeric)
            if columns:
                each.kind, each.arg, each.hits = "mention", AGENT, columns
                return


def _people_of_role(chunks: list[Chunk], catalog: Catalog) -> None:
    """'which actor has been cast most': of the tables a question names, one is linked to the people, whatever the schema calls them."""
    people = [t.name for t in catalog.tables.values() if t.kind == "table" and any(lemma(word) in PEOPLE for word in t.words)]
    named = {table.name for table in _tables(chunks, catalog)}
    for before, each in itertools.pairwise([Chunk("op", ""), *chunks]):
        if each.kind != "word" or each.name or lemma(each.word) not in PEOPLE or before.is_op("count"):
            continue
        ways = {link.one for link in catalog.links if link.many in named - set(people) and link.one in people}
        said = any(likeness(each.word, word) >= 0.75 for table in catalog.tables.values() for c in table.columns for word in c.words)
        if len(ways) == 1 and not said:
            each.kind, each.hits = "mention", (Hit(ways.pop(), "", 0.9),)
