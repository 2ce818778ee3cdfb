"""Cut a question into chunks, each with its links to the schema."""

import itertools

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import AGENT, PRODUCT, STATE, Chunk, Values
from longtable.app.offline.columns import entity, is_time_or_count, priced_quantity
from longtable.app.offline.joins import distance
from longtable.app.offline.lexicon import AGENTS, DOERS, PAID, REVENUE
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES
from longtable.app.offline.lexicon_measures import DIMENSIONS
from longtable.app.offline.linking import Hit, hits
from longtable.app.offline.spans import Span, all_spans, text_of
from longtable.app.offline.text import Token, lemma, split_name, stem

_AMOUNTS = frozenset(["amount", "total", "value", "sum", "paid"])
_PIECES = frozenset(["unit", "piece", "copy"])
_TURNOVER = frozenset(["revenue", "sale", "turnover", "total", "amount", "income"])


def chunk(tokens: list[Token], catalog: Catalog, values: Values) -> list[Chunk]:
    """Return the chunks of a question in order; the heaviest spans win where they overlap."""
    taken: set[int] = set()
    chosen: list[Span] = []
    for span in all_spans(tokens, catalog, values):
        places = set(range(span.start, span.end))
        if not places & taken:
            taken |= places
            chosen.append(span)
    chosen.sort(key=lambda span: span.start)
    chunks = [_with_links(span, tokens, catalog) for span in chosen]
    for each in chunks:
        if each.arg == STATE:
            _of_named(each, chunks, catalog)
    for order, each in enumerate(chunks):
        each.order = order
    _with_money(chunks, catalog)
    return _with_agent(chunks, catalog)


_RAISED = frozenset(["raised", "raise", "donated", "donate", "collected", "collect", "given", "give", "contributed"])


def _with_money(chunks: list[Chunk], catalog: Catalog) -> None:
    """Let 'the total raised', 'how much did we raise' add up the one amount of the one table of payments or gifts."""
    if not any(each.is_op("howmuch") or (each.is_op("agg") and each.arg == "sum") for each in chunks):
        return
    paid = [table for table in catalog.tables.values() if table.kind == "table" and PAID & set(map(lemma, table.words))]
    amounts = [(table.name, column) for table in paid for column in table.columns if _AMOUNTS & set(column.words)]
    sums = [(name, column.name) for name, column in amounts if column.is_number and not column.is_id]
    for before, each in itertools.pairwise(chunks):
        if each.kind != "word" or each.word not in _RAISED or len(sums) != 1:
            continue
        if before.kind == "mention" and not entity(before) and before.hits[0].numeric:
            each.kind = "filler"  # the total weight collected: no money
        else:
            each.kind, each.hits = "mention", (Hit(*sums[0], 0.9, numeric=True),)


def _of_named(value: Chunk, chunks: list[Chunk], catalog: Catalog) -> None:
    """Keep a verb as a value only where the question names its table; near such a table it stays unused, else it is a mere verb."""
    named = {entity(each) for each in chunks if each.kind == "mention"}
    named |= {hit.table for each in chunks for hit in each.hits if hit.score >= max(0.72, each.best - 0.06)}
    if not named and len(chunks) <= 4:
        return  # 'only shipped ones': whatever was asked before
    homes = [{match.table for match in each.matches} for each in chunks if each.kind == "value" and each.arg != STATE]
    named |= {table for home in homes if len(home) == 1 or not named - {""} for table in home}
    if not {match.table for match in value.matches} & named and _is_dated(value, named, catalog):
        value.kind, value.matches = "filler", ()  # payments that have been paid: on the date they were
        return
    matches = tuple(match for match in value.matches if match.table in named)
    near = any((distance(catalog, table, match.table) or 9) <= 2 for table in named for match in value.matches)
    value.kind = "value" if matches else "word" if near else "filler"
    value.matches = matches


def _meant(name: str) -> set[str]:
    return {lemma(each) for word in split_name(name) for each in (word, *ALTERNATIVES.get(word, ()))}


def _is_dated(value: Chunk, tables: set[str], catalog: Catalog) -> bool:
    columns = [column for name in tables if (table := catalog.table(name)) is not None for column in table.columns]
    return any(column.is_date and stem(value.word) in set(map(stem, column.words)) for column in columns)


def _with_agent(chunks: list[Chunk], catalog: Catalog) -> list[Chunk]:
    """Let 'who wrote' ask for an author: the verb's agent stands for the table that was not named."""
    who = next((place for place, each in enumerate(chunks) if each.word in ("who", "whom")), None)
    if who is None or any(each.kind == "mention" and each.hits[0].is_table for each in chunks[:who]):
        return chunks
    for each in chunks[who + 1 : who + 4]:
        if each.kind == "mention" and each.word.endswith("ed") and each.best < 0.95:
            agents = tuple(hit for hit in each.hits if hit.is_table and lemma(split_name(hit.table)[-1]).endswith(DOERS))
            if len(agents) == 1:  # who adopted Luna: adopters, no adoptions
                each.arg, each.hits = AGENT, agents
        plain = each.kind in ("word", "filler", "mention") and " " not in each.text and each.arg != AGENT
        named = _doers(each.word, catalog) if plain else ()
        if len(named) == 1:  # who manages the Star: the manager's name of that cinema
            each.kind, each.arg, each.hits = "mention", AGENT, named
            return chunks
        if each.kind != "filler":
            return chunks
        for agent in dict.fromkeys(agent for form in (stem(each.word), each.word, lemma(each.word)) for agent in AGENTS.get(form, ())):
            linked = tuple(hit for hit in hits((agent,), agent, catalog) if hit.score >= 0.8 and not (hit.numeric or hit.dated))
            if linked:  # a table of them, or the column that says who: the manager of a warehouse
                each.kind, each.hits, each.word = "mention", linked, agent
                each.arg = AGENT if linked[0].is_table else each.arg
                return chunks
        roots = tuple(root for root in (lemma(each.word).rstrip("e"), stem(each.word)) if len(root) > 3)
        doers = [
            table.name
            for table in catalog.tables.values()
            if roots and any(word.startswith(roots) and word.endswith(DOERS) for word in map(lemma, table.words))
        ]
        if len(doers) == 1:
            each.kind, each.arg, each.hits = "mention", AGENT, (Hit(doers[0], "", 0.9),)
            return chunks
    return chunks


def _doers(verb: str, catalog: Catalog) -> tuple[Hit, ...]:
    """Return the columns called after who does a thing: manager_name for 'manages', coordinator_id for 'coordinates'."""
    root = lemma(verb).rstrip("e")
    columns = [column for table in catalog.tables.values() if table.kind == "table" for column in table.columns]
    told = [c for c in columns if len(root) > 3 and any(w.startswith(root) and w.endswith(("er", "or")) for w in map(lemma, c.words))]
    return tuple(
        Hit(column.table, column.name, 0.95)
        for column in told
        if not column.primary and (not column.is_number or column.is_id) and column.references.partition(".")[0] != column.table
    )


def _with_links(span: Span, tokens: list[Token], catalog: Catalog) -> Chunk:
    found = span.chunk
    found.place = span.start
    if found.is_op("agg") and span.end - span.start > 1:  # "total of": the name of a column too, maybe
        words = [token for token in tokens[span.start : span.end] if token.word not in ("of", "the", "number", "in")]
        found.hits = tuple(hit for hit in hits(tuple(t.word for t in words), text_of(words), catalog) if hit.score >= 0.9) if words else ()
    if (
        lemma(found.word) in REVENUE
        and found.kind in ("word", "mention")
        and not (found.best >= 0.95 and found.hits[0].is_table and found.word.endswith("s"))
        and not any(hit.numeric and hit.score >= 0.85 for hit in found.hits)
    ):
        measured = [hit for hit in _measured("revenue", catalog) if _TURNOVER & set(map(lemma, split_name(hit.column)))]
        alone = all(lemma(token.word) in REVENUE for token in tokens[span.start : span.end])
        if (
            measured
            and alone
            and (span.end - span.start > 1 or found.word in ("revenue", "turnover", "takings", "proceeds", "earnings", "receipts"))
        ):
            found.kind, found.hits = "mention", tuple(sorted(measured, key=lambda hit: not _sells(hit)))
        money = _amount_of(found, catalog) if span.end - span.start > 1 else None
        if money is not None:
            found.kind, found.hits = "mention", (money,)
        elif not measured and (products := _products(catalog)) and not (found.hits and found.hits[0].is_table and found.best >= 0.95):
            found.kind, found.arg, found.hits = "mention", PRODUCT, products
    pieces = lemma(found.word) in _PIECES and found.kind in ("word", "filler", "mention") and found.best < 0.9
    if pieces and _is_counted(span, tokens) and (quantities := _quantities(catalog)):
        found.kind, found.hits = "mention", quantities
    if found.kind == "word" and not found.hits and lemma(found.word) in DIMENSIONS:
        found.kind, found.hits = "mention", _measured(lemma(found.word), catalog)
        found.kind = "mention" if found.hits else "word"
    if found.kind == "mention" and lemma(found.word) == "price" and span.end - span.start == 1 and not found.hits[0].is_table:
        homes = {hit.table for hit in found.hits}
        found.hits += tuple(hit for hit in _measured("price", catalog) if hit.table not in homes)  # the fee of a plan is its price
    if found.kind in ("op", "value", "unit", "time") and span.end - span.start == 1 and not found.hits:
        token = tokens[span.start]
        ends = found.is_op("agg") and found.arg in ("min", "max")  # the minimum is no RUN_MIN: those are minutes
        linked = (hit for hit in hits((token.word,), token.text, catalog) if hit.score >= 0.9)
        found.hits = tuple(hit for hit in linked if not (ends and split_name(hit.column)[-1:] == (found.arg,)))
    return found


def _amount_of(found: Chunk, catalog: Catalog) -> Hit | None:
    """'pass revenue': the one amount of the sales of passes."""
    table = catalog.table(found.hits[0].table) if found.hits and found.hits[0].is_table else None
    if table is None or lemma(found.word) not in ("revenue", "turnover", "income", "earning", "taking", "proceed"):
        return None
    sums = [column for column in table.columns if column.is_number and not column.is_id and _AMOUNTS & set(column.words)]
    return Hit(table.name, sums[0].name, 0.95, numeric=True) if len(sums) == 1 else None


def _sells(hit: Hit) -> bool:
    return bool(REVENUE & {lemma(word) for word in (*split_name(hit.table), *split_name(hit.column))})


def _is_counted(span: Span, tokens: list[Token]) -> bool:
    before = tokens[span.start - 1].word if span.start else ""
    return before in ("many", "most", "fewest", "least", "of", "total", "more", "average")


def _quantities(catalog: Catalog) -> tuple[Hit, ...]:
    """Return the quantities that stand beside a price: what 'units' counts."""
    return tuple(
        Hit(table.name, priced[1].name, 0.9, numeric=True)
        for table in catalog.tables.values()
        if table.kind == "table" and (priced := priced_quantity(table))
    )


def _products(catalog: Catalog) -> tuple[Hit, ...]:
    """Return the prices that stand beside a quantity: their product is what 'revenue' adds up."""
    return tuple(
        Hit(table.name, priced[0].name, 0.8, numeric=True)
        for table in catalog.tables.values()
        if table.kind == "table" and (priced := priced_quantity(table))
    )


def _measured(dimension: str, catalog: Catalog) -> tuple[Hit, ...]:
    """Return the columns that measure a dimension named by its noun ('length' for milliseconds)."""
    names = [word for word in DIMENSIONS[dimension] if not word.startswith("-")]
    found: list[Hit] = []
    for table in catalog.tables.values():
        for column in table.columns:
            places = [names.index(word) for word in map(lemma, column.words) if word in names]
            if dimension in ("revenue", "money") and is_time_or_count(column):
                continue
            if places and column.is_number and not column.is_id and table.kind == "table":
                found.append(Hit(table.name, column.name, 0.8 - 0.01 * min(places), numeric=True))
    if dimension == "money" and (paid := [hit for hit in found if PAID & _meant(hit.table)]):
        found = paid  # money is what was paid, not a goal
    return tuple(sorted(found, key=lambda hit: -hit.score))
